"""The kernels that run what others do not: each layer by its numpy reference, and layer plugins as they are.

The reference is also what the faster kernels are compared with. Plugins are configured when memory and shapes are
known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np

from dryfit.errors import ExecutionError
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.plugin import Plugin
from dryfit.reference.plugin import ConfiguredPlugin
from dryfit.reference.registry import evaluate, reference_of
from dryfit.target.kernels import Array, Binding, EveryKind, Specs, kernel

_WIDENED = (DataType.HALF, DataType.BF16)


def _value(binding: Binding, values: dict[str, Array], name: str) -> Array:
    """An inner value, a bound array or a constant; in a group of several layers narrow floats are widened to FP32."""
    if name in values:
        return values[name]
    array = binding.arrays.get(name)
    if array is None:
        array = binding.specs[name].value
    if array is None:
        raise ExecutionError(
            "The tensor has no array",
            where=f"layer {binding.group.name!r}, tensor {name!r}",
            remedy="Build the engine again; if that does not help, report a bug",
        )
    if len(binding.group.layers) > 1 and DataType.from_numpy(array.dtype) in _WIDENED:
        return array.astype(np.float32)
    return array


def _with_rounded_kernel(layer: Layer, inputs: list[Array | None], specs: Specs) -> list[Array | None]:
    """The inputs with the layer's kernel, rounded to the type that its input has outside this group.

    A reference rounds a kernel to the type of the input that it sees, which is wider here.
    """
    kernel = getattr(layer, "kernel", None)
    if kernel is None or layer.inputs[0] is None or (len(inputs) > 1 and inputs[1] is not None):
        return inputs
    dtype = specs[layer.inputs[0].name].dtype
    if dtype not in _WIDENED:
        return inputs
    rounded = np.asarray(kernel).astype(dtype.numpy).astype(np.float32)
    return [inputs[0], rounded, *inputs[2:]]


@kernel(
    "cpu.reference",
    kinds=EveryKind(),
    data_types=DataType,
    priority=-1000,
)
def evaluate_layers(binding: Binding) -> Callable[[], None]:
    """A function that evaluates the group's layers one after the other.

    Inside a group of several layers FP16 and BF16 values are kept in FP32; each output is rounded once, to nearest
    even, when it is written.
    """
    if len(binding.group.layers) == 1:
        return _one_layer(binding)

    def run() -> None:
        values: dict[str, Array] = {}
        for layer in binding.group.layers:
            inputs = [None if tensor is None else _value(binding, values, tensor.name) for tensor in layer.inputs]
            inputs = _with_rounded_kernel(layer, inputs, binding.specs)
            for tensor, value in zip(layer.outputs, evaluate(layer, inputs), strict=True):
                values[tensor.name] = value
                if tensor.name in binding.arrays:
                    np.copyto(binding.arrays[tensor.name], value, casting="unsafe")

    return run


def _one_layer(binding: Binding) -> Callable[[], None]:
    """A function that evaluates the only layer of a group.

    All that does not change from run to run is looked up before: small networks have many small layers, and this takes
    as long as what most of them compute.
    """
    layer = binding.group.main
    function = reference_of(layer)
    inputs = [None if tensor is None else _value(binding, {}, tensor.name) for tensor in layer.inputs]
    outputs = [binding.arrays.get(tensor.name) for tensor in layer.outputs]

    def run() -> None:
        with np.errstate(all="ignore"):
            values = function(layer, inputs)
        for array, value in zip(outputs, values, strict=True):
            if array is not None:
                np.copyto(array, value, casting="unsafe")

    return run


@kernel("cpu.plugin", kinds=("plugin",), data_types=DataType)
def run_plugin(binding: Binding) -> Callable[[], None]:
    """A function that runs the group's layer plugin, configured for the shapes of the binding."""
    layer = cast("Plugin", binding.group.main)
    tensors = [None if tensor is None else tensor.name for tensor in layer.inputs]
    configured = ConfiguredPlugin(layer, [None if name is None else binding.specs[name] for name in tensors])
    inputs = [None if name is None else _array(binding, name) for name in tensors]
    outputs = [binding.arrays[tensor.name] for tensor in layer.outputs]

    def run() -> None:
        for output, result in zip(outputs, configured.run(inputs), strict=True):
            np.copyto(output, result)

    return run


def _array(binding: Binding, name: str) -> Array | None:
    """A bound array, or the contents of a constant."""
    return binding.arrays.get(name, binding.specs[name].value)
