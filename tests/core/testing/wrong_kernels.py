"""Kernels with one fault each. What is not the fault is right: the reference computes it."""

import ctypes
import itertools

import numpy as np
from numpy.lib.stride_tricks import as_strided
from tests.core.testing.acme_npu import LINES, is_relu

from dryfit.network.data_types import DataType
from dryfit.target.kernels import Kernel, kernel
from dryfit_cpu.kernels.reference import evaluate_layers

_TYPES = ["FLOAT", "HALF"]
_RELU = {"kinds": "activation", "data_types": _TYPES, "accepts": is_relu}


def _beside(array, elements):
    """So many elements from where an array begins, as if it were dense."""
    return as_strided(array, (elements,), (array.itemsize,))


@kernel("acme.edge", **_RELU)
def wrong_at_the_edge(binding):
    """The last column is that of the input."""
    (x,), (y,) = binding.inputs, binding.outputs

    def run():
        np.maximum(x, 0, out=y)
        y[..., -1] = x[..., -1]

    return run


@kernel("acme.writes_input", **_RELU)
def writes_its_input(binding):
    """Works in place, then copies."""
    (x,), (y,) = binding.inputs, binding.outputs

    def run():
        np.maximum(x, 0, out=x)
        y[...] = x

    return run


@kernel("acme.dense_only", **_RELU)
def ignores_strides(binding):
    """Writes one element after the other, wherever the output's lie."""
    (x,), (y,) = binding.inputs, binding.outputs

    def run():
        _beside(y, y.size)[:] = np.maximum(x, 0).ravel()

    return run


@kernel("acme.one_too_many", **_RELU)
def writes_beyond_the_output(binding):
    """Clears one element behind a dense output."""
    (x,), (y,) = binding.inputs, binding.outputs

    def run():
        np.maximum(x, 0, out=y)
        if y.flags.c_contiguous:
            _beside(y, y.size + 1)[-1] = 0

    return run


@kernel("acme.large_scratch", workspace_bytes=64, **_RELU)
def writes_beyond_the_workspace(binding):
    """Asks for 64 bytes and takes 65."""
    (x,), (y,), scratch = binding.inputs, binding.outputs, binding.workspace

    def run():
        _beside(scratch, 65)[:] = 0
        np.maximum(x, 0, out=y)

    return run


@kernel("acme.restless", **_RELU)
def differs_each_time(binding):
    """Within the tolerance, but never the same."""
    (x,), (y,), runs = binding.inputs, binding.outputs, itertools.count()

    def run():
        np.maximum(x, 0, out=y)
        y[y > 0] *= 1 + 2e-6 * next(runs) if y.dtype == np.float32 else 1 + 1e-3 * next(runs)

    return run


@kernel("acme.by_threads", **_RELU)
def differs_by_threads(binding):
    """Within the tolerance, but other bits for another number of threads."""
    (x,), (y,), threads = binding.inputs, binding.outputs, binding.num_threads

    def run():
        np.maximum(x, 0, out=y)
        y[y > 0] *= 1 + 2e-6 * (threads - 1) if y.dtype == np.float32 else 1 + 1e-3 * (threads - 1)

    return run


@kernel("acme.reads_beside", **_RELU)
def reads_beside_its_input(binding):
    """Reads a dense input, whatever the strides are."""
    (x,), (y,) = binding.inputs, binding.outputs

    def run():
        y[...] = np.maximum(_beside(x, x.size).reshape(x.shape), 0)

    return run


@kernel("acme.forgets", kinds="elementwise", data_types=_TYPES, fuses=["activation"])
def forgets_the_fused_layer(binding):
    """Computes the main layer alone. The rest is not rounded away: the group's output is the main layer's."""
    main, last = binding.group.main, binding.group.outputs[0].name
    x, y = (binding.arrays[tensor.name] for tensor in main.inputs)
    functions = {"SUM": np.add, "PROD": np.multiply, "MAX": np.maximum, "MIN": np.minimum, "SUB": np.subtract}
    return lambda: functions[main.op.name](x, y, out=binding.arrays[last])


@kernel("acme.on_fire", **_RELU)
def cannot_be_bound(binding):
    """Raises."""
    raise RuntimeError(f"the board is on fire at {binding.group.name}")


_PACKED = itertools.count()


@kernel("acme.packs_anew", pack=lambda group: {"n": np.full(1, next(_PACKED), np.int32)}, **_RELU)
def packs_something_else_each_time(binding):
    """Computes right."""
    return evaluate_layers.bind(binding)


@kernel("acme.packs_a_list", pack=lambda group: {"n": [1, 2]}, **_RELU)
def packs_a_list(binding):
    """Computes right."""
    return evaluate_layers.bind(binding)


@kernel("acme.packs_hashes", pack=lambda group: {"n": np.full(1, hash("acme"), np.int64)}, **_RELU)
def packs_what_differs_between_processes(binding):
    """Computes right."""
    return evaluate_layers.bind(binding)


HASHING = (packs_what_differs_between_processes,)
NAMELESS = Kernel("relu", {"activation"}, {DataType.FLOAT}, evaluate_layers.bind, accepts=is_relu)
OF_THE_HOST = Kernel("cpu.pointwise", {"activation"}, {DataType.FLOAT}, evaluate_layers.bind, accepts=is_relu)
OF_NO_KIND = Kernel("acme.relu", {"activaton"}, {DataType.FLOAT}, evaluate_layers.bind, accepts=is_relu)
OF_NO_TYPE = Kernel("acme.relu", {"activation"}, [], evaluate_layers.bind, accepts=is_relu)


def _in_lines(name, run):
    """A ReLU that works on arrays in the format LINES, and does something else beside."""

    @kernel(name, formats={"input": LINES, "output": LINES}, **{**_RELU, "data_types": "HALF"})
    def bind(binding):
        (x,), (y,) = binding.inputs, binding.outputs

        def compute():
            np.maximum(x, 0, out=y)
            run(x, y)

        return compute

    return bind


def _write_at(array, index):
    ctypes.c_int16.from_address(array.ctypes.data + 2 * index).value = 0


def _clear_behind(x, y):
    for index in range(3):
        _write_at(y, y.size + index)


packed_sound = _in_lines("acme.packed_relu", lambda x, y: None)
packed_behind = _in_lines("acme.packed_behind", _clear_behind)
packed_before = _in_lines("acme.packed_before", lambda x, y: _write_at(y, -1))
packed_input = _in_lines("acme.packed_input", lambda x, y: x.fill(0))
packed_far = _in_lines("acme.packed_far", lambda x, y: _write_at(y, y.size + 100_000))


def _reads_a_network_input(group, specs):
    return is_relu(group, specs) and group.inputs[0].producer is None


@kernel("acme.first_only", **{**_RELU, "accepts": _reads_a_network_input})
def serves_no_layer_of_an_engine(binding):
    """Computes right, where nothing stands before it: no copy from FP32 to FP16 either."""
    return evaluate_layers.bind(binding)


OF_ANOTHER_PRECISION = Kernel("acme.relu8", {"activation"}, {DataType.INT8}, evaluate_layers.bind, accepts=is_relu)
