"""In which order a network keeps the axes of a tensor that a TFLite file has as N, H, W, C.

dryfit's layers have channels first. The importer of TFLite models keeps a tensor as it was made and transposes it where
a layer needs it otherwise; constraints of Vela are on the axes of the file.
"""

from __future__ import annotations

from collections.abc import Sequence

from dryfit.network.layer import Layer
from dryfit.network.tensor import Tensor
from dryfit.target.question import Question
from dryfit_ethos_u.operators import kind_of, parameters

FIRST, LAST = (0, 3, 1, 2), (0, 2, 3, 1)
"""Order of the axes of a transpose to channels first, and back."""
_CHANNELS_FIRST = ("convolution", "deconvolution", "pooling")


def tflite_operator(layer: Layer) -> str | None:
    """Return the name of the TFLite operator that a layer comes from; None for layers of other models."""
    if "[TFLite Operator:" not in layer.metadata:
        return None
    name = layer.onnx_nodes[0].split(":")[1] if layer.onnx_nodes else "OUTPUT"
    return None if name == "OUTPUT" else name


def is_channels_last(question: Question, tensor: Tensor) -> bool:
    """Return whether a tensor keeps its channels as its last axis."""
    if tflite_operator(question.layer) is None:
        return False
    rank = len(tensor.shape)
    one: Tensor | None = tensor
    while one is not None and len(one.shape) == rank == 4 and one.producer is not None:
        layer = one.producer
        if kind_of(layer) in _CHANNELS_FIRST:
            return False
        order = tuple(parameters(layer).first_transpose) if layer.kind == "shuffle" else ()
        if order in (FIRST, LAST) and tflite_operator(layer) != "TRANSPOSE":
            return order == LAST
        one = next((each for each in layer.inputs if each is not None and not each.is_constant), None)
    return True


def axes_of_file(question: Question, axes: Sequence[int]) -> list[int]:
    """Return axes of the first input as axes of N, H, W, C."""
    tensor = question.inputs[0]
    rank = len(question.spec(tensor).shape)
    if is_channels_last(question, tensor) or rank < 3:
        return list(axes)
    moved = {rank - 3: rank - 1, rank - 2: rank - 3, rank - 1: rank - 2}
    return [moved.get(axis, axis) for axis in axes]


def file_shape(question: Question, *, of_output: bool = False) -> tuple[int, ...]:
    """Return the extents of the first input, or output, with channels last."""
    tensor = question.inputs[0]
    shape = tuple(question.spec(question.outputs[0] if of_output else tensor).shape)
    if is_channels_last(question, tensor) or len(shape) < 3:
        return shape
    return (*shape[:-3], *shape[-2:], shape[-3])
