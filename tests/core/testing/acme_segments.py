"""A segment compiler, loader and exporter, sound, and with one fault each: the program is the network as JSON."""

import itertools
import json

import numpy as np

from dryfit.network.serialization import network_from_dict, network_to_dict
from dryfit.reference.executor import run_reference


def compile_segment(segment):
    """The network, and its arrays in hexadecimal digits."""
    network, arrays = network_to_dict(segment.network)
    plain = {name: [one.dtype.name, one.shape, one.tobytes().hex()] for name, one in arrays.items()}
    return json.dumps({"network": network, "arrays": plain}, sort_keys=True).encode()


def load_segment(program):
    """Reads what `compile_segment` wrote."""
    read = json.loads(program)
    arrays = {
        name: np.frombuffer(bytes.fromhex(digits), dtype).reshape(shape)
        for name, (dtype, shape, digits) in read["arrays"].items()
    }
    return Loaded(network_from_dict(read["network"], arrays))


class Loaded:
    """The reference runs the network."""

    def __init__(self, network, factor=1.0):
        self.network, self.factor = network, factor

    def bind(self, binding):
        """One plain function."""

        def run():
            for name, array in run_reference(self.network, binding.inputs).items():
                binding.outputs[name][...] = array * array.dtype.type(self.factor)

        return [run]


_COUNT = itertools.count()


def compile_anew(segment):
    """Another program each time."""
    return compile_segment(segment) + b" " * next(_COUNT)


def export_anew(segment):
    """Another file each time."""
    return segment.network.name.encode() + b" " * next(_COUNT)


def export_text(segment):
    """No bytes."""
    return segment.network.name


def load_anything(program):
    """Makes something of what is no program."""
    try:
        return load_segment(program)
    except ValueError:
        return Loaded(None)


def load_inexact(program):
    """Computes 3 % too much."""
    return Loaded(load_segment(program).network, 1.03)
