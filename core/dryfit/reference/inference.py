"""Shapes, types and known values of every tensor for concrete input shapes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from dryfit.errors import DryfitError, ExecutionError
from dryfit.network.layer import Layer
from dryfit.network.layers.generators import Fill, FillOperation
from dryfit.network.network import Network
from dryfit.network.tensor import Shape, TensorSpec, fits_declared
from dryfit.reference.registry import evaluate

FOLDED_ELEMENTS = 4096
"""A layer whose inputs are all known is evaluated when its outputs are at most this large. Our choice: shape
computations are far smaller, and weights far larger."""


def infer_specs(network: Network, input_shapes: Mapping[str, Shape] | None = None) -> dict[str, TensorSpec]:
    """Name to spec of every tensor, for these input shapes (or the network's own).

    Layers whose inputs are all known, and shape layers of static tensors, are evaluated: so a reshape whose target is
    computed from the batch has a static output. An extent stays -1 where it depends on the data, or on the extent of
    an input that stays dynamic.

    Raises:
        ExecutionError: an input shape does not fit the network's input, or names none.
        NetworkError: a layer's parameters do not fit these shapes.
    """
    network.refresh_shapes()
    specs = {}
    for name, shape in checked_input_shapes(network, input_shapes or {}).items():
        own = network.tensor(name).spec
        specs[name] = own if own.shape == shape and own.value is None else TensorSpec(shape, own.dtype)
    for layer in network.layers:
        inputs = [None if tensor is None else specs[tensor.name] for tensor in layer.ordering_inputs]
        if _is_inferred(layer, inputs):
            specs.update((tensor.name, tensor.spec) for tensor in layer.outputs)
            continue
        for tensor, spec in zip(layer.outputs, infer_with_values(layer, inputs), strict=True):
            specs[tensor.name] = spec
    return specs


def _is_inferred(layer: Layer, inputs: Sequence[TensorSpec | None]) -> bool:
    """Whether the network inferred a layer's outputs from these very inputs, and knows as much of them as it can.

    That is so where an input is not known before a run, or all outputs are known, as those of constants are.
    """
    is_open = len(layer.outputs) > 0 and all(tensor.spec.value is not None for tensor in layer.outputs)
    for tensor, spec in zip(layer.ordering_inputs, inputs, strict=True):
        if tensor is not None and spec is not None:
            if tensor.spec is not spec:
                return False
            is_open = is_open or spec.value is None
    return is_open


def checked_input_shapes(network: Network, input_shapes: Mapping[str, Shape]) -> dict[str, Shape]:
    """The shape of every input: the one given, or else its own.

    Raises:
        ExecutionError: a shape does not fit the input, or there is no such input.
    """
    names = [tensor.name for tensor in network.inputs]
    unknown = [name for name in input_shapes if name not in names]
    if unknown:
        raise ExecutionError(
            "Unknown input",
            found=", ".join(map(repr, unknown)),
            allowed=", ".join(map(repr, names)),
            remedy="Use one of these names",
        )
    shapes = {}
    for tensor in network.inputs:
        declared = shapes[tensor.name] = tensor.shape
        if tensor.name not in input_shapes:
            continue
        shape = tuple(map(int, input_shapes[tensor.name]))
        if not fits_declared(shape, declared) or min(shape, default=0) < -1:
            raise ExecutionError(
                "The shape must match the input",
                where=f"input {tensor.name!r}",
                found=shape,
                allowed=declared,
                remedy="Pass a matching shape",
            )
        shapes[tensor.name] = shape
    return shapes


def infer_with_values(
    layer: Layer, inputs: Sequence[TensorSpec | None], largest_elements: int = FOLDED_ELEMENTS
) -> list[TensorSpec]:
    """The specs of a layer's outputs, with their values where all inputs are known and the outputs are small.

    Plugins, layers with bodies and random numbers are not evaluated, nor is what fails: that belongs to run time. A
    loop may run for any time, and one that runs for a known and small number of iterations is unrolled by a pass.

    Raises:
        NetworkError: the layer's parameters do not fit its inputs.
    """
    specs = list(layer.infer_outputs(inputs))
    for given in inputs:  # most layers end here
        if given is not None and given.value is None:
            return specs
    if all(spec.value is not None for spec in specs) or layer.kind == "plugin" or layer.bodies:
        return specs
    if isinstance(layer, Fill) and layer.operation is not FillOperation.LINSPACE:
        return specs
    if any(spec.is_static and math.prod(spec.shape) > largest_elements for spec in specs):
        return specs
    try:
        values = evaluate(layer, [None if spec is None else spec.value for spec in inputs])
    except DryfitError:
        return specs
    return [TensorSpec(value.shape, spec.dtype, value) for value, spec in zip(values, specs, strict=True)]
