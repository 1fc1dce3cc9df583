"""Which kinds of layers commute with quantization and dequantization: one table, each kind once, with its reason.

A layer commutes with quantization where `Q(layer(x)) == layer(Q(x))`, and with dequantization where
`layer(DQ(x)) == DQ(layer(x))`, for one scale of all tensors. Q and DQ work on single elements, do not fall where their
input rises, and keep zero; what each row says follows from that.

Equal means equal as numbers. Two things are not numbers: a NaN, of which the quantization to an integer type makes the
lowest integer, so that it no longer wins a maximum that is taken afterwards; and the sign of a zero in FP8 and FP4.

Source: TensorRT 10 developer guide, "Working with Quantized Types": TensorRT Processing of Q/DQ Networks. The proofs
are ours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dryfit.attrs_classes import frozen
from dryfit.network.layer import Layer
from dryfit.network.layers.activation import Activation, ActivationType
from dryfit.network.layers.indexing import Scatter, ScatterReduction
from dryfit.network.layers.reduction import Reduce, ReduceOperation
from dryfit.network.layers.resize import InterpolationMode, Resize, ResizeCoordinateTransformation
from dryfit.network.layers.shape_inference import axes_in
from dryfit.network.layers.slice import SampleMode, Slice
from dryfit.network.layers.window_layer import Pooling, PoolingType
from dryfit.network.tensor import Tensor
from dryfit.passes.quantization import axis_paths
from dryfit.passes.quantization.axis_paths import AxisPath, Specs

Obstacle = Callable[[Any, Specs], str]
"""`(layer, specs) -> why this layer does not commute, though others of its kind do`; "" where it does."""


def _never_in_the_way(layer: Layer, specs: Specs) -> str:  # noqa: ARG001
    return ""


def _first(layer: Layer) -> Sequence[int]:  # noqa: ARG001
    return (0,)


def _none(layer: Layer) -> Sequence[int]:  # noqa: ARG001
    return ()


def _all(layer: Layer) -> Sequence[int]:
    return range(len(layer.inputs))


def _data_and_fill(layer: Slice) -> Sequence[int]:
    has_fill = layer.mode is SampleMode.FILL and layer.get_input(4) is not None
    return (0, 4) if has_fill else (0,)


@frozen(eq=False)
class Commutation:
    """What the table says of one kind of layer.

    Attributes:
        kind: of layers.
        when: which layers of the kind commute, in words; "" where none does.
        reason: the proof where they do; else what is in the way.
        is_quantizable: whether kernels compute it between the dequantizations before it and the quantization after
            it, so that these are at their goal there.
        requantizes: whether kernels compute it from one scale to another in one step, so that between Q and DQ of
            different scales nothing is gained by moving one of them.
        ends_groups: whether kernels compute it as the end of the layer before it, so that to move a quantization
            over it alone gains nothing.
        data: the inputs whose values the output has.
        obstacle: says of a layer what keeps it from commuting.
        path: where an axis goes that has a scale for each index.
    """

    kind: str
    when: str
    reason: str
    is_quantizable: bool = False
    requantizes: bool = False
    ends_groups: bool = False
    data: Callable[[Any], Sequence[int]] = _first
    obstacle: Obstacle = _never_in_the_way
    path: AxisPath = axis_paths.no_axis

    @property
    def commutes(self) -> bool:
        """Whether some layers of the kind do."""
        return bool(self.when)

    def data_inputs(self, layer: Layer) -> list[tuple[int, Tensor]]:
        """The inputs of a layer whose values its output has: (index, tensor)."""
        found = ((index, layer.get_input(index)) for index in self.data(layer))
        return [(index, tensor) for index, tensor in found if tensor is not None]


def _pooling(layer: Pooling, specs: Specs) -> str:  # noqa: ARG001
    if layer.pooling_type is not PoolingType.MAX:
        return "an average is rounded only after the sum, and may lie between codes"
    if layer.returns_indices:
        return "different values may have the same code, so the index of the maximum may change"
    if layer.may_hold_only_padding:
        return "a window that holds only padding gives minus infinity, which has no code"
    return ""


def _reduce(layer: Reduce, specs: Specs) -> str:
    if layer.op not in (ReduceOperation.MAX, ReduceOperation.MIN):
        return f"{layer.op.name} computes values that may lie between codes"
    source = layer.inputs[0]
    extents = () if source is None else specs[source].shape
    if any(extents[axis] < 1 for axis in axes_in(layer.axes)):
        return "an extent is unknown or 0, and over no elements the result is infinite, which has no code"
    return ""


def _activation(layer: Activation, specs: Specs) -> str:  # noqa: ARG001
    if layer.activation_type is ActivationType.RELU:
        return ""
    return f"{layer.activation_type.name} computes values that may lie between codes"


def _resize(layer: Resize, specs: Specs) -> str:  # noqa: ARG001
    if layer.resize_mode is not InterpolationMode.NEAREST:
        return f"{layer.resize_mode.name} interpolation computes values between those of the input"
    is_crop = layer.coordinate_transformation is ResizeCoordinateTransformation.TF_CROP_AND_RESIZE
    return "a crop inserts a floating-point value outside of the input" if is_crop else ""


def _scatter(layer: Scatter, specs: Specs) -> str:  # noqa: ARG001
    return "" if layer.reduction is ScatterReduction.NONE else "updates are combined with the existing values"


_SINGLE = "each element of the output is an element of the input, and Q and DQ work on single elements"
_WEIGHTED = "it sums products: codes of other scales, rounded once after the sum"
_COMPUTES = "it computes values that may lie between codes"
_DECOMPOSED = "a build decomposes it into layers of other kinds before anything moves"

COMMUTATIONS: dict[str, Commutation] = {
    row.kind: row
    for row in (
        # Values as they are, in another order, shape or choice.
        Commutation("identity", "always", "the output is the input", path=axis_paths.same_axis),
        Commutation("shuffle", "always", _SINGLE, path=axis_paths.through_shuffle),
        Commutation("squeeze", "always", _SINGLE, path=axis_paths.through_squeeze),
        Commutation("unsqueeze", "always", _SINGLE, path=axis_paths.through_unsqueeze),
        Commutation(
            "slice",
            "always",
            f"{_SINGLE}; what fills is an input like another, and 0 where there is none, which is code 0",
            data=_data_and_fill,
            path=axis_paths.through_slice,
        ),
        Commutation(
            "concatenation",
            "with one scale for all inputs",
            _SINGLE,
            is_quantizable=True,
            requantizes=True,
            data=_all,
            path=axis_paths.through_concatenation,
        ),
        Commutation("gather", "the data (input 0)", f"{_SINGLE}; indices are not quantized"),
        Commutation(
            "select",
            "with one scale for both values",
            f"{_SINGLE}; the condition is not quantized",
            data=lambda layer: (1, 2),
        ),
        Commutation(
            "scatter",
            "with one scale for data and updates, without reduction",
            f"{_SINGLE}; indices are not quantized",
            data=lambda layer: (0, 2),
            obstacle=_scatter,
        ),
        Commutation(
            "padding",
            "always",
            f"{_SINGLE}; what is added is 0, which is code 0 of every scale",
            path=axis_paths.through_padding,
        ),
        Commutation("resize", "NEAREST, without a crop", _SINGLE, is_quantizable=True, obstacle=_resize),
        Commutation("reverse_sequence", "the data (input 0)", f"{_SINGLE}; lengths are not quantized"),
        # Values that are compared.
        Commutation(
            "pooling",
            "MAX, no window of padding alone",
            "a <= b gives Q(a) <= Q(b) and DQ(a) <= DQ(b), so the maximum's code is the maximum of the codes; padding "
            "is minus infinity in floating point and the lowest code in codes, and beside an element neither wins",
            is_quantizable=True,
            requantizes=True,
            obstacle=_pooling,
            path=axis_paths.batch_or_channel,
        ),
        Commutation(
            "reduce",
            "MAX and MIN, over at least one element",
            "a <= b gives Q(a) <= Q(b) and DQ(a) <= DQ(b), so the maximum's code is the maximum of the codes",
            is_quantizable=True,
            requantizes=True,
            obstacle=_reduce,
        ),
        Commutation(
            "activation",
            "RELU",
            "it is the maximum with 0, 0 is code 0 of every scale, and Q and DQ keep the order",
            is_quantizable=True,
            requantizes=True,
            ends_groups=True,
            obstacle=_activation,
            path=axis_paths.same_axis,
        ),
        # Values that are computed, on codes too: at their goal beside Q and DQ.
        Commutation("convolution", "", _WEIGHTED, is_quantizable=True),
        Commutation("deconvolution", "", _WEIGHTED, is_quantizable=True),
        Commutation("fully_connected", "", _WEIGHTED, is_quantizable=True),
        Commutation("matrix_multiply", "", _WEIGHTED, is_quantizable=True),
        Commutation("einsum", "", _WEIGHTED, is_quantizable=True),
        Commutation(
            "elementwise",
            "",
            "sums and products are rounded after they are computed; MAX and MIN of one scale would commute, and gain "
            "nothing by it, since kernels compute them between Q and DQ",
            is_quantizable=True,
        ),
        Commutation("unary", "", _COMPUTES, is_quantizable=True),
        Commutation("scale", "", _COMPUTES, is_quantizable=True),
        Commutation(
            "parametric_relu", "", "negative values are multiplied, and rounded after that", is_quantizable=True
        ),
        Commutation("softmax", "", _COMPUTES, is_quantizable=True),
        Commutation(
            "plugin",
            "",
            "its layer plugin takes quantized tensors itself, or floating point",
            is_quantizable=True,
        ),
        # Values that are computed in real numbers.
        Commutation("normalization", "", _COMPUTES),
        Commutation("lrn", "", _COMPUTES),
        Commutation("vector_function", "", _COMPUTES),
        Commutation("cumulative", "", "sums of codes leave their range, and are rounded after each"),
        Commutation("grid_sample", "", "it interpolates between values"),
        Commutation(
            "cast",
            "",
            "it rounds; but from FP16 or BF16 to FP32 it is part of the Q after it, which divides in FP32, and from "
            "FP32 to them part of the DQ before it, which rounds its product once",
        ),
        Commutation("nms", "", "boxes and scores are compared, and different values may have the same code"),
        Commutation("top_k", "", "its indices follow the order of values, and different values may have the same code"),
        Commutation("non_zero", "", "values that are not 0 may have code 0"),
        Commutation("one_hot", "", "its output has two values only, so quantizing before it saves nothing"),
        Commutation("histogram", "", "calibration requires its floating-point input"),
        Commutation("attention", "", _DECOMPOSED, data=_all),
        Commutation("kv_cache_update", "", _DECOMPOSED, data=_all),
        Commutation("ragged_softmax", "", _DECOMPOSED, data=_all),
        Commutation("rotary_embedding", "", _DECOMPOSED, data=_all),
        Commutation("assertion", "", "its condition is BOOL"),
        Commutation("shape", "", "it reads no values", data=_none),
        Commutation("fill", "", "it reads no values", data=_none),
        Commutation("conditional", "", "which branch computes its output is known only at run time"),
        Commutation("loop", "", "its body computes in the types of the network"),
        Commutation("constant", "", "it reads no values; its quantization is computed while building", data=_none),
        Commutation("quantize", "", "it starts a new scale"),
        Commutation("dequantize", "", "it ends a scale; of the same scale, Q after DQ changes nothing and goes"),
        Commutation("quantized_operator", "", "it computes codes with its own scale, by its quantize method"),
        Commutation("dynamic_quantize", "", "it computes scales from floating-point values"),
    )
}
"""Layer kind to what is said of it."""


def commutation_of(layer: Layer) -> Commutation:
    """The row of a layer's kind."""
    return row_of(layer.kind)


def row_of(kind: str) -> Commutation:
    """The row of a kind; a kind without one is not moved over, and computed in real numbers, which is always right."""
    return COMMUTATIONS.get(kind) or Commutation(kind, "", "no rule is known for this layer kind", data=_all)
