"""What the DLA's rules look at, beyond a layer's own parameters.

Axes: the last three of a tensor are C, H and W; everything before them is batch (TensorRT 10 developer guide, Working
with DLA: general restrictions, note on the batch size).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from dryfit.network.data_types import DataType
from dryfit.target.checks import Quantity, Read
from dryfit.target.limits import Question

if TYPE_CHECKING:
    from dryfit.network.tensor import Tensor

COMPARISONS = ("EQUAL", "GREATER", "LESS")


def activations(question: Question) -> list[Tensor]:
    """The tensors that flow through a layer: inputs and outputs, but not weights and dimensions that are inputs."""
    flowing = question.layer.flowing_inputs
    inputs = [tensor for index, tensor in enumerate(question.inputs) if index in flowing]
    if question.layer.kind == "matrix_multiply":
        inputs = [tensor for tensor in inputs if not question.is_constant(tensor)]
    return [*inputs, *question.outputs]


def input_shape(question: Question) -> tuple[int, ...]:
    """The shape of the first input."""
    return question.spec(question.inputs[0]).shape


def is_comparison(layer: Any) -> bool:
    """Whether a layer compares two tensors, so that its output is BOOL."""
    return layer is not None and layer.kind == "elementwise" and layer.op.name in COMPARISONS


def operand_type(question: Question, tensor: Tensor) -> DataType:
    """The type in which an operand reaches the DLA: its own where it is fixed, else the layer's precision."""
    dtype = question.spec(tensor).dtype
    if question.is_constant(tensor) or dtype is not DataType.FLOAT:
        return dtype
    return question.precision


def has_equal_values(question: Question, tensor: Tensor) -> bool:
    """Whether a constant holds one value, repeated."""
    value = question.spec(tensor).value
    return value is not None and value.size > 0 and bool((value == value.flat[0]).all())


def range_of(tensor: Tensor) -> float | None:
    """The larger absolute bound of a tensor's dynamic range; None if none is set."""
    return None if tensor.dynamic_range is None else max(abs(bound) for bound in tensor.dynamic_range)


def _per_tensor(
    name: str, values: Callable[[tuple[int, ...]], Iterable[int]], tensors: Callable[[Question], Sequence[Tensor]]
) -> Quantity:
    """Values of the shapes of a layer's tensors, shown with the tensors' names; dynamic extents are left out."""

    def read(question: Question) -> list[int]:
        return [value for tensor in tensors(question) for value in values(question.spec(tensor).shape)]

    def show(question: Question) -> str:
        shapes = {tensor.name: question.spec(tensor).shape for tensor in tensors(question)}
        shown = {shape: list(values(shape)) for shape in shapes.values()}
        return ", ".join(
            f"{shown[shape][0]} for {tensor!r} of shape {shape}" if len(shown[shape]) == 1 else f"{tensor!r}: {shape}"
            for tensor, shape in shapes.items()
        )

    return Quantity(name, read, show)


def _known(extents: Iterable[int]) -> list[int]:
    return [extent for extent in extents if extent >= 0]


batch = _per_tensor("batch", lambda shape: [math.prod(_known(shape[:-3]))], activations)
"""The product of all extents before the last three, of each tensor."""

extents = _per_tensor("extent of C, H and W", lambda shape: _known(shape[-3:]), activations)
"""The last three extents of each tensor."""

ranks = _per_tensor("rank", lambda shape: [len(shape)], activations)
"""The number of axes of each tensor."""

input_rank = _per_tensor("rank of the input", lambda shape: [len(shape)], lambda question: question.inputs[:1])
"""The number of axes of the first input."""

input_channels = _per_tensor("number of input channels", lambda shape: _known(shape[-3:-2]), lambda q: q.inputs[:1])
"""C of the first input."""

number_of_inputs = Quantity("number of inputs", lambda question: len(question.inputs))


def _spatial_axes(parameter: str) -> Read:
    return lambda question: len(getattr(question.layer, parameter))


kernel_axes = Quantity("number of spatial axes", _spatial_axes("kernel_size_nd"))
window_axes = Quantity("number of spatial axes", _spatial_axes("window_size_nd"))


def _paddings(question: Question) -> list[int]:
    layer: Any = question.layer
    spatial = input_shape(question)[2:]
    return [value for pair in layer.paddings(spatial) for value in pair]


paddings = Quantity("padding", _paddings)
"""Before and after each spatial axis, as the padding mode gives it for the input."""


def is_hwc4(tensor: Tensor) -> bool:
    """Whether an input or output of the network may have the format DLA_HWC4 and no other."""
    at_border = tensor.is_network_input or tensor.is_network_output
    return at_border and tensor.allowed_formats is not None and set(tensor.allowed_formats) == {"DLA_HWC4"}
