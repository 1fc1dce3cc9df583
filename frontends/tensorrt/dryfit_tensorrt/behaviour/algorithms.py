"""Programs that choose kernels: algorithm selectors, and the entries of timing caches that replaced them.

An algorithm is a host kernel of dryfit, its tactic a number made of the kernel's name.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Sequence
from typing import Any

import dryfit
from dryfit_tensorrt.behaviour.monitoring import report, report_failure
from dryfit_tensorrt.behaviour.objects import Base, called_back
from dryfit_tensorrt.behaviour.values import of_enum


def tactic_of(kernel: str) -> int:
    """Return the number that stands for a kernel."""
    return int.from_bytes(hashlib.sha256(kernel.encode()).digest()[:8], "big") >> 1


# Algorithm selectors --------------------------------------------------------------------------------------------------


class IAlgorithmSelector(Base):
    """Chooses among the algorithms of each layer: to be implemented by the program."""

    def __init__(self) -> None:
        """Make a selector."""

    def select_algorithms(self, context: Any, choices: Sequence[Any]) -> list[int]:
        """Return the indices of the algorithms among which the fastest is taken. To be overridden."""
        raise NotImplementedError(f"{type(self).__name__} must override select_algorithms(context, choices)")

    def report_algorithms(self, contexts: Sequence[Any], choices: Sequence[Any]) -> None:
        """Receive the algorithm of each layer at the end of a build. To be overridden."""
        raise NotImplementedError(f"{type(self).__name__} must override report_algorithms(contexts, choices)")


class IAlgorithmVariant(Base):
    """What tells algorithms of a layer apart."""

    @property
    def implementation(self) -> int:
        """Number of the kind of the layer."""
        return zlib.crc32(self._kind.encode())

    @property
    def tactic(self) -> int:
        """Number of the kernel."""
        return tactic_of(self._kernel)


class IAlgorithmIOInfo(Base):
    """Type and layout of an input or output of an algorithm."""

    vectorized_dim = -1
    components_per_element = 1

    @property
    def dtype(self) -> Any:
        """Type of the elements."""
        return of_enum(self._api, "DataType", self._spec.dtype)

    @property
    def tensor_format(self) -> Any:
        """LINEAR: host kernels read rows."""
        return self._api.TensorFormat.LINEAR

    @property
    def strides(self) -> Any:
        """Distance of elements along each axis."""
        strides, step = [], 1
        for extent in reversed(self._spec.shape):
            strides.append(step)
            step *= extent
        return self._api.Dims(reversed(strides))


class IAlgorithm(Base):
    """A kernel that can compute a layer."""

    workspace_size = 0

    def get_algorithm_io_info(self, index: int) -> Any:
        """Return type and layout of an input, or after these of an output; None for another index."""
        tensors = _tensors(self._layer)
        if not 0 <= index < len(tensors):
            return None
        made = object.__new__(self._api.IAlgorithmIOInfo)
        made._spec = self._layer.usual[tensors[index].name]
        return made

    @property
    def algorithm_variant(self) -> Any:
        """What tells it apart."""
        made = object.__new__(self._api.IAlgorithmVariant)
        made._kind, made._kernel = self._layer.group.main.kind, self._kernel
        return made

    @property
    def timing_msec(self) -> float:
        """Measured time in ms; 0 if it was not measured."""
        return float(self._milliseconds)


class IAlgorithmContext(Base):
    """A layer whose algorithms are chosen."""

    @property
    def name(self) -> str:
        """Name of the engine layer."""
        return str(self._layer.group.name)

    def get_shape(self, index: int) -> list[Any]:
        """Return smallest, usual and largest shape of an input, or after these of an output."""
        layer, tensors = self._layer, _tensors(self._layer)
        if not 0 <= index < len(tensors):
            return []
        bounds = (layer.smallest, layer.usual, layer.largest)
        return [self._api.Dims(specs[tensors[index].name].shape) for specs in bounds]

    @property
    def num_inputs(self) -> int:
        """Number of inputs."""
        return len(_inputs(self._layer))

    @property
    def num_outputs(self) -> int:
        """Number of outputs."""
        return len(self._layer.group.outputs)


class SelectorOfProgram(dryfit.KernelSelector):
    """Asks a program's selector about the kernels of each engine layer.

    Args:
        selector: the program's.
        api: names of the version.
    """

    def __init__(self, selector: Any, api: Any) -> None:
        self._selector, self._api = selector, api

    def select(self, layer: dryfit.EngineLayer, kernels: Sequence[str]) -> Sequence[str]:
        """Return the kernels of the algorithms that the program chose; none if it raised."""
        choices = [self._algorithm(layer, name, None) for name in kernels]
        found = called_back(self._selector.select_algorithms, self._context(layer), choices, otherwise=())
        return [kernels[int(index)] for index in found or () if 0 <= int(index) < len(kernels)]

    def report(self, choices: Sequence[dryfit.SelectedKernel]) -> None:
        """Report the kernel of each engine layer to the program."""
        contexts = [self._context(one.layer) for one in choices]
        algorithms = [self._algorithm(one.layer, one.kernel, one.microseconds) for one in choices]
        called_back(self._selector.report_algorithms, contexts, algorithms, otherwise=None)

    def _context(self, layer: dryfit.EngineLayer) -> Any:
        made = object.__new__(self._api.IAlgorithmContext)
        made._layer = layer
        return made

    def _algorithm(self, layer: dryfit.EngineLayer, kernel: str, microseconds: float | None) -> Any:
        made = object.__new__(self._api.IAlgorithm)
        made._layer, made._kernel, made._milliseconds = layer, kernel, (microseconds or 0.0) / 1000
        return made


def _inputs(layer: dryfit.EngineLayer) -> list[dryfit.Tensor]:
    """What an engine layer reads when it runs, which constants are not part of."""
    return [one for one in layer.group.inputs if not one.is_constant and layer.usual[one.name].value is None]


def _tensors(layer: dryfit.EngineLayer) -> list[dryfit.Tensor]:
    return [*_inputs(layer), *layer.group.outputs]


# Timing caches --------------------------------------------------------------------------------------------------------


class TimingCacheKey(Base):
    """The key of an entry: a hash of the layers, their parameters, types and shapes."""

    @staticmethod
    def parse(text: str) -> Any:
        """Return the key of a text, as `str(key)` gives it. Replaced in the class of each version."""
        raise NotImplementedError

    def __str__(self) -> str:
        return str(self._text)

    def __repr__(self) -> str:
        return f"TimingCacheKey({self._text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and str(other) == str(self)

    def __hash__(self) -> int:
        return hash(str(self))


def parse_key(api: Any, text: str) -> Any:
    """Return the key of a text.

    Raises:
        ValueError: The text is not the hash of a key.
    """
    digits = text.removeprefix("0x")
    if len(digits) != _DIGITS or any(one not in "0123456789abcdef" for one in digits):
        raise ValueError(f"A timing cache key must be 0x and {_DIGITS} hexadecimal digits (found {text!r})")
    return _key(api, f"0x{digits}")


_DIGITS = 32


def _key(api: Any, text: str) -> Any:
    made = object.__new__(api.TimingCacheKey)
    made._text = text
    return made


def _key_text(group: str) -> str:
    return f"0x{hashlib.sha256(group.encode()).hexdigest()[:_DIGITS]}"


class TimingCacheValue(Base):
    """The fastest kernel of a key and its time."""

    tacticHash = 0  # noqa: N815  TensorRT's name
    timingMSec = 0.0  # noqa: N815  TensorRT's name

    def __init__(self, tacticHash: int = 0, timingMSec: float = 0.0) -> None:
        self.tacticHash, self.timingMSec = int(tacticHash), float(timingMSec)


def query_keys(self: Any) -> list[Any]:
    """Return the key of each group of layers that was measured."""
    groups = dict.fromkeys(key.group for key in self._core.query_keys())
    return [_key(self._api, _key_text(group)) for group in groups]


def query(self: Any, key: Any) -> Any:
    """Return the fastest kernel of a key and its time; tactic 0 if the cache has no such key."""
    times = _of_key(self._core, key)
    if not times:
        return self._api.TimingCacheValue(0, 0.0)
    fastest = min(times, key=times.__getitem__)
    return self._api.TimingCacheValue(tactic_of(fastest.kernel), times[fastest] / 1000)


def update(self: Any, key: Any, value: Any) -> bool:
    """Make a kernel the one that builds choose for a key; returns whether the cache has both.

    The time is that of the kernel. Kernels of the key that are faster get the same time and a little more.
    """
    times = _of_key(self._core, key)
    chosen = [one for one in times if tactic_of(one.kernel) == int(value.tacticHash)]
    if not chosen:
        report(self, "ERROR", f"update: the timing cache has no tactic {value.tacticHash} for the key {key}")
        return False
    microseconds = float(value.timingMSec) * 1000
    try:
        self._core.update(chosen[0], microseconds)
        for other, time in times.items():
            if other is not chosen[0] and time <= microseconds:
                self._core.update(other, microseconds * _SLOWER)
    except dryfit.DryfitError as error:
        report_failure(self, error)
        return False
    return True


_SLOWER = 1.001
"""How much slower a kernel becomes that another one is preferred to."""


def _of_key(cache: dryfit.TimingCache, key: Any) -> dict[Any, float]:
    """The entries of dryfit's cache for the layers of a key: kernel, and time in us."""
    found = {one: cache.query(one) for one in cache.query_keys() if _key_text(one.group) == str(key)}
    return {one: time for one, time in found.items() if time is not None}
