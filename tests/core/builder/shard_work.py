"""What worker processes import in tests: a network, and sources that go wrong."""

import os
import signal
from pathlib import Path

import attrs
import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.network import Network

TENSORS = ["x", "conv", "relu", "probabilities"]


def network():
    """A convolution, a ReLU, a softmax; any batch and any size; weights that make every addition round."""
    random = np.random.default_rng(2)
    built = Network("sharded")
    x = built.add_input("x", DataType.FLOAT, (-1, 3, -1, -1))
    layer = built.add_convolution_nd(x, 16, (3, 3), random.standard_normal((16, 3, 3, 3)).astype(np.float32))
    layer.padding_nd = (1, 1)
    convolved = layer.get_output(0)
    relu = built.add_activation(convolved, ActivationType.RELU).get_output(0)
    softmax = built.add_softmax(relu).get_output(0)
    for tensor, name in zip((convolved, relu, softmax), TENSORS[1:], strict=True):
        built.rename_tensor(tensor, name)
    built.mark_output(softmax)
    return built


@attrs.frozen
class Pictures:
    """Pictures of changing sizes, each made from its number. What was shown is told in a file for each.

    Attributes:
        count: how many.
        shown: a folder, or None where nothing is told.
        deadly: the sample at which the process is killed.
        deaths: how often.
        nan: the sample that is not finite.
        broken: the sample that cannot be made.
        lost: the sample that is left out.
    """

    count: int
    shown: Path | None = None
    deadly: str = ""
    deaths: int = 1
    nan: str = ""
    broken: str = ""
    lost: str = ""

    @property
    def text(self):
        return "pictures made of noise"

    def names(self, network):
        return [f"{number:02}" for number in range(self.count)]

    def samples(self, names, network):
        for name in names:
            if self.shown is not None:
                (self.shown / f"{name} by {os.getpid()}").touch()
            if name == self.deadly and len(self.tellings(name)) <= self.deaths:
                os.kill(os.getpid(), signal.SIGKILL)
            if name == self.broken:
                raise ZeroDivisionError("no picture")
            if name != self.lost:
                yield name, {"x": self.picture(name)}

    def picture(self, name):
        number = int(name)
        random = np.random.default_rng(number)
        made = random.standard_normal((1 + number % 2, 3, 5 + number % 4, 6)).astype(np.float32) * (1 + number)
        if name == self.nan:
            made[0, 0, 0, 0] = np.nan
        return made

    def tellings(self, name):
        """One for each process that was shown the sample."""
        return list(self.shown.glob(f"{name} by *"))


def network_that_is_not_to_be_loaded():
    raise AssertionError("loaded")


def end_by_signal(number):
    os.kill(os.getpid(), number)
    return "alive"


def wait_for(path, seconds=30.0):
    """The process's number, after a file has appeared; another file tells that the wait has begun."""
    import time

    path.with_suffix(".waits").touch()
    end = time.monotonic() + seconds
    while not path.exists():
        if time.monotonic() > end:
            raise TimeoutError(path)
        time.sleep(0.01)
    return os.getpid()


def unsendable():
    return lambda: None


def fail(error):
    raise error
