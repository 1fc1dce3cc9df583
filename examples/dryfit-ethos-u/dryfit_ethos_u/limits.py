"""What the NPU runs: the constraints that Vela's report of supported operators lists, one rule each.

Vela reads TFLite, where axes are N, H, W, C. A layer of an imported TFLite model is asked for these by `image_axes`,
whatever order the network keeps its tensors in.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.tensor import Tensor
from dryfit.target.checks import at_most, between, check, each, one_of, parameter, quantity
from dryfit.target.limits import LimitTable, rule, rules
from dryfit.target.question import Finding, Question
from dryfit_ethos_u.layouts import axes_of_file, file_shape, tflite_operator
from dryfit_ethos_u.machines import VELA
from dryfit_ethos_u.operators import (
    QUANTIZED_OPERATOR,
    asked_inputs,
    asked_outputs,
    has_padding,
    is_depthwise,
    kind_of,
    parameters,
)

SMALL = ("u55", "u65")
"""The families that have one list of constraints in Vela's report."""
REPORT = f"{VELA}, --supported-ops-report"
ELSEWHERE = "Let the layer run on the CPU (--fallback CPU)"

_U55_OPERATORS = """ABS ADD ARG_MAX AVERAGE_POOL_2D BATCH_MATMUL CONCATENATION CONV_2D DEPTHWISE_CONV_2D ELU EXP
EXPAND_DIMS FULLY_CONNECTED GELU HARD_SWISH LEAKY_RELU LOG LOGISTIC MAXIMUM MAX_POOL_2D MEAN MINIMUM MIRROR_PAD MUL NEG
PACK PAD PADV2 PRELU QUANTIZE REDUCE_MAX REDUCE_MIN RELU RELU6 RELU_0_TO_1 RELU_N1_TO_1 RESHAPE RESIZE_BILINEAR
RESIZE_NEAREST_NEIGHBOR REVERSE_V2 RSQRT SLICE SOFTMAX SPLIT SPLIT_V SQUARED_DIFFERENCE SQUEEZE STRIDED_SLICE SUB SUM
TANH TILE TRANSPOSE TRANSPOSE_CONV UNIDIRECTIONAL_SEQUENCE_LSTM UNPACK"""
_U85_OPERATORS = f"""{_U55_OPERATORS} CAST DIV EQUAL GATHER GREATER GREATER_EQUAL LESS LESS_EQUAL LOGICAL_AND LOGICAL_NOT
LOGICAL_OR NOT_EQUAL REDUCE_ALL REDUCE_ANY SCATTER_ND SELECT SELECT_V2"""
OPERATORS = {**dict.fromkeys(SMALL, _U55_OPERATORS.split()), "u85": _U85_OPERATORS.split()}
"""Family to the TFLite operators of the report."""

_CODES = (DataType.INT8, DataType.UINT8, DataType.INT16)


def _of(kinds: str | Sequence[str], *entries: Any) -> list[Any]:
    """Rules of layer kinds, and of quantized operators that compute them: quantities are empty for all others."""
    names = [kinds] if isinstance(kinds, str) else list(kinds)
    return rules([*names, QUANTIZED_OPERATOR], *entries)


def _is(question: Question, *kinds: str) -> bool:
    return kind_of(question.layer) in kinds


def _image(question: Question) -> tuple[int, int, int, int]:
    """N, H, W and C of the first input; axes that it lacks are 1."""
    shape = file_shape(question)
    padded = (1,) * (4 - len(shape)) + shape
    return math.prod(padded[:-3]), *padded[-3:]  # type: ignore[return-value]


# All layers --------------------------------------------------------------------------------------------------------


@check("TFLite operator")
def operator_is_listed(question: Question) -> Finding | None:
    """The TFLite operator that the layer comes from must be listed."""
    name = tflite_operator(question.layer)
    known = OPERATORS[question.family]
    return None if name in (None, *known) else Finding(str(name), f"one of the {len(known)} operators of the report")


@check("shape")
def tensors_have_axes(question: Question) -> Finding | None:
    """Tensors must have at least one axis."""
    data = [question.spec(one) for one in question.outputs]
    return Finding("a scalar", "at least one axis") if any(not one.shape for one in data) else None


@check("shape")
def dimensions_are_static(question: Question) -> Finding | None:
    """All dimensions must be static."""
    shapes = [question.spec(one).shape for one in (*question.inputs, *question.outputs)]
    dynamic = [shape for shape in shapes if any(extent < 0 for extent in shape)]
    return Finding(str(dynamic[0]), "static extents") if dynamic else None


@check("zero point")
def int32_has_no_zero_point(question: Question) -> Finding | None:
    """The zero point of an INT32 tensor must be 0."""
    grids = [one for one in (*asked_inputs(question), *asked_outputs(question)) if one.dtype is DataType.INT32]
    wrong = [one.zero_point for one in grids if one.zero_point is not None and np.any(one.zero_point)]
    return Finding(str(int(np.ravel(wrong[0])[0])), "0") if wrong else None


_QUANTIZE = "Quantize the model: TFLite with integers, or ONNX with Q/DQ nodes"
_ASKED_BY_STEP = "ethos_u_step"
"""Option of the questions about the other layers of a step, which do not ask again."""


def _real(layer: Layer) -> list[Tensor]:
    """The tensors of real numbers by which a layer belongs to a step: none of a constant, and no scale."""
    tensors = [*layer.connected_inputs, *layer.outputs]
    if layer.is_quantization:
        tensors = [layer.outputs[0] if layer.kind == "dequantize" else layer.connected_inputs[0]]
    return [one for one in tensors if one.dtype.is_floating_point and not one.is_constant]


def _step(layer: Layer) -> list[Layer]:
    """The layers that real numbers connect with a layer, from dequantize to quantize layers: one TFLite operator.

    What is dequantized may be read by several operators, so a step ends there.
    """
    found, waiting = {layer.name: layer}, [layer]
    while waiting:
        for tensor in _real(waiting.pop()):
            near = [tensor.producer, *(reader for reader, _ in tensor.consumers)]
            if tensor.producer is not None and tensor.producer.kind == "dequantize":
                continue
            new = [one for one in near if one is not None and one.name not in found]
            found.update((one.name, one) for one in new)
            waiting += new
    return list(found.values())


def _step_problem(question: Question, step: Sequence[Layer]) -> Finding | None:
    ends = [one for each in step for one in _real(each) if one.is_network_input or one.is_network_output]
    if ends:
        return Finding(f"{ends[0].name!r}, in real numbers", "quantized at its inputs and outputs", remedy=_QUANTIZE)
    options = {**question.options, _ASKED_BY_STEP: True}
    for other in step:
        if other is not question.layer:
            verdict = LIMITS.evaluate(attrs.evolve(question, layer=other, options=options))
            if not verdict:
                return Finding(f"{other.name!r}, refused by {verdict.violations[0].rule}", "whole on the NPU")
    return None


@check("operator")
def step_runs_here(question: Question) -> Finding | None:
    """All layers of an operator must run here: real numbers are never stored."""
    layer = question.layer
    if question.options.get(_ASKED_BY_STEP) or layer.kind == QUANTIZED_OPERATOR:
        return None
    if layer.kind != "dequantize":
        return _step_problem(question, _step(layer))
    if layer.outputs[0].is_network_output:
        return Finding(f"{layer.outputs[0].name!r}, in real numbers", "quantized at its inputs and outputs")
    if question.precision is DataType.INT32:  # a bias, which goes where the layer on narrow codes goes
        question = attrs.evolve(question, precision=DataType.INT8)
    problems = [_step_problem(question, _step(reader)) for reader, _ in layer.outputs[0].consumers]
    return None if None in problems else next(iter(problems), None)


_ALL = rules(
    (),
    rule("operator", operator_is_listed, source=f"{REPORT}: summary tables", remedy=ELSEWHERE),
    rule("shape", tensors_have_axes, source=f"{REPORT}: Tensors must have constant shape", remedy="Keep the axes"),
    rule(
        "dynamic_shape",
        dimensions_are_static,
        source=f"{REPORT}: generic constraints",
        remedy="Fix the shapes (--shape)",
    ),
    rule(
        "step",
        step_runs_here,
        source=f"{VELA}: an operator runs on the NPU or on the CPU as a whole",
        remedy="Change what refuses the other layer, or let the operator run on the CPU (--fallback CPU)",
    ),
    rule("zero_point", int32_has_no_zero_point, source=f"{REPORT}: generic constraints", remedy=ELSEWHERE),
)


@check("type")
def is_not_32_bit(question: Question) -> Finding | None:
    """Feature maps must have 8 or 16 bits."""
    return None if _is_wide_operation(question) else Finding("INT32", "INT8, UINT8 or INT16")


def _is_wide_operation(question: Question) -> bool:
    """Whether the report has no constraint on 32 bits for the operator."""
    if _is(question, "top_k"):
        return True
    name = tflite_operator(question.layer)
    if name in ("SQUARED_DIFFERENCE", "MIRROR_PAD"):
        return name == "MIRROR_PAD"
    wide = {"elementwise": ("SUM", "SUB", "PROD"), "reduce": ("SUM",)}
    operation = getattr(getattr(parameters(question.layer), "op", None), "name", "")
    return operation in wide.get(kind_of(question.layer), ())


_NARROW = [
    "activation",
    "average_pool",
    "concatenation",
    "convolution",
    "deconvolution",
    "elementwise",
    "padding",
    "parametric_relu",
    "pooling",
    "reduce",
    "resize",
    "slice",
    "softmax",
    "unary",
]
_TYPES = _of(
    [kind for kind in _NARROW if kind != "average_pool"],
    rule(
        "types_32",
        is_not_32_bit,
        precisions=(DataType.INT32,),
        families=SMALL,
        source=f"{REPORT}: 32-bit feature-maps are not supported",
        remedy="Quantize to 8 or 16 bits",
    ),
)

# Layers with a window ----------------------------------------------------------------------------------------------


@quantity("stride")
def strides(question: Question) -> Sequence[int]:
    """Strides of a window whose steps the hardware makes itself; none where Vela cuts the layer into pieces."""
    layer = parameters(question.layer)
    if not _is(question, "convolution", "pooling"):
        return ()
    shape = asked_inputs(question)[0].shape
    if _is_depthwise(question, layer, shape):
        return tuple(layer.stride_nd)
    is_plain = set(layer.dilation_nd) <= {1} if hasattr(layer, "dilation_nd") else True
    if is_plain and not has_padding(layer, shape[2:]):
        return ()
    counts = [extent > 1 for extent in asked_outputs(question)[0].shape[2:]]
    return [step for step, is_taken in zip(layer.stride_nd, counts, strict=False) if is_taken]


def _is_depthwise(question: Question, layer: Any, shape: Sequence[int]) -> bool:
    name = tflite_operator(question.layer)
    if name is not None:
        return name == "DEPTHWISE_CONV_2D"
    return kind_of(question.layer) == "convolution" and is_depthwise(layer, shape[1])


@quantity("sum of absolute weights of an output channel")
def weight_sums(question: Question) -> Sequence[int]:
    """The sums, where the weights are known."""
    if not _is(question, "convolution", "deconvolution", "fully_connected", "matrix_multiply"):
        return ()
    inputs = asked_inputs(question)
    if len(inputs) < 2 or inputs[1].codes is None:
        return ()
    weights = inputs[1].codes.astype(np.int64) - (
        0 if inputs[1].zero_point is None else int(np.ravel(inputs[1].zero_point)[0])
    )
    axis = 1 if _is(question, "deconvolution") else 0
    if _is(question, "matrix_multiply"):
        axis = 1 if parameters(question.layer).op1.name == "NONE" else 0
    moved = np.moveaxis(np.abs(weights), axis, 0) if weights.ndim else weights.reshape(1, 1)
    return [int(moved.reshape(len(moved), -1).sum(1).max())]


@quantity("bias in units of the sums")
def biases(question: Question) -> Sequence[int]:
    """The largest bias of a layer with weights, where it is known."""
    if not _is(question, "convolution", "deconvolution", "fully_connected"):
        return ()
    inputs = asked_inputs(question)
    bias = inputs[2] if len(inputs) > 2 else None
    if bias is None or not bias.is_constant:
        return ()
    if bias.codes is not None:
        return [int(np.abs(bias.codes.astype(np.int64)).max(initial=0))]
    if inputs[0].scale is None or inputs[1].scale is None or bias.real is None:
        return ()
    unit = inputs[0].scale.astype(np.float64).ravel()[0] * inputs[1].scale.astype(np.float64).ravel()
    return [int(np.rint(np.abs(bias.real.astype(np.float64).ravel()) / unit).max(initial=0))]


@check("weights")
def weights_are_constant(question: Question) -> Finding | None:
    """The weights and the bias must be constant."""
    if not _is(question, "convolution", "deconvolution"):
        return None
    inputs = asked_inputs(question)[1:]
    return Finding("computed", "constants") if any(not one.is_constant for one in inputs) else None


@check("type of the weights")
def weights_have_8_bits(question: Question) -> Finding | None:
    """Weights must have 8 bits."""
    if not _is(question, "convolution", "deconvolution", "fully_connected"):
        return None
    inputs = asked_inputs(question)
    wide = [one.dtype for one in inputs[1:2] if one.dtype.bits != 8]
    return Finding(wide[0].name, "INT8 or UINT8") if wide else None


_WEIGHT_SUM = 127 * (1 << 16)
_WEIGHTED = _of(
    ("convolution", "deconvolution", "fully_connected", "matrix_multiply"),
    rule(
        "weights.sum",
        each(weight_sums, at_most(_WEIGHT_SUM)),
        families=SMALL,
        source=f"{REPORT}: The sum of absolute weights",
        remedy="Split the input channels, and add the results",
    ),
    rule(
        "weights.sum_u85",
        each(weight_sums, at_most(_WEIGHT_SUM)),
        families="u85",
        precisions=(DataType.INT8, DataType.UINT8),
        source=f"{REPORT}: The sum of absolute weights",
        remedy="Split the input channels, and add the results",
    ),
    rule(
        "bias.range",
        each(biases, at_most((1 << 40) - 2)),
        families=SMALL,
        source=f"{REPORT}: Int64 bias",
        remedy="Choose larger scales",
    ),
    rule(
        "bias.range_u85",
        each(biases, at_most((1 << 48) - 2)),
        families="u85",
        source=f"{REPORT}: Int64 bias",
        remedy="Choose larger scales",
    ),
    rule("weights.constant", weights_are_constant, source=f"{REPORT}: CONV_2D", remedy="Give constant weights"),
    rule("weights.type", weights_have_8_bits, source=f"{REPORT}: CONV_2D", remedy="Quantize the weights to 8 bits"),
)
_STRIDES = _of(
    ("convolution", "pooling"),
    rule(
        "window.stride",
        each(strides, between(1, 3)),
        families=SMALL,
        source=f"{REPORT}: Stride>3 is only supported IF (dilation = 1 AND padding = VALID); never for depthwise",
        remedy="Use a stride of at most 3, or pad with a layer of its own",
    ),
)


@quantity("window")
def average_windows(question: Question) -> Sequence[int]:
    """Extents of the window of an average over padding."""
    layer = parameters(question.layer)
    if not _is(question, "pooling") or layer.pooling_type.name != "AVERAGE":
        return ()
    return layer.window_size_nd if has_padding(layer, asked_inputs(question)[0].shape[2:]) else ()


@quantity("height of the window")
def window_heights(question: Question) -> Sequence[int]:
    """Height of the window of a pooling that does not average padding."""
    return () if not _is(question, "pooling") or average_windows(question) else parameters(question.layer).window[:1]


@quantity("elements of the window")
def window_sizes(question: Question) -> Sequence[int]:
    """Height times width of the same."""
    is_asked = _is(question, "pooling") and not average_windows(question)
    return [math.prod(parameters(question.layer).window)] if is_asked else ()


_POOLING = _of(
    "pooling",
    rule(
        "pooling.average_window",
        each(average_windows, at_most(8)),
        source=f"{REPORT}: AVERAGE_POOL_2D, padding other than VALID",
        remedy="Pad with a layer of its own, or average in two steps",
    ),
    rule("pooling.height", each(window_heights, at_most(256)), source=f"{REPORT}: MAX_POOL_2D", remedy=ELSEWHERE),
    rule("pooling.elements", each(window_sizes, at_most(1 << 16)), source=f"{REPORT}: MAX_POOL_2D", remedy=ELSEWHERE),
)


@check("stride")
def deconvolution_strides(question: Question) -> Finding | None:
    """Strides must be 1x1 or 2x2, or 2 along the width alone where input and kernel have height 1, and vice versa."""
    if not _is(question, "deconvolution"):
        return None
    layer, spatial = parameters(question.layer), asked_inputs(question)[0].shape[2:]
    flat = [extent == 1 == size for extent, size in zip(spatial, layer.kernel_size_nd, strict=False)]
    stride = tuple(layer.stride_nd)
    holds = stride in ((1, 1), (2, 2)) or (stride == (1, 2) and flat[0]) or (stride == (2, 1) and flat[1])
    return None if holds else Finding("x".join(map(str, stride)), "1x1 or 2x2")


_DECONVOLUTION = _of(
    "deconvolution",
    rule(
        "deconvolution.stride",
        deconvolution_strides,
        families=SMALL,
        source=f"{REPORT}: TRANSPOSE_CONV",
        remedy="Resize, then convolve",
    ),
)

# Layers without weights --------------------------------------------------------------------------------------------


@check("quantization")
def grids_are_equal(question: Question) -> Finding | None:
    """Inputs and output of a minimum or maximum must have one scale and zero point."""
    if not _is(question, "elementwise") or parameters(question.layer).op.name not in ("MAX", "MIN"):
        return None
    (result,) = asked_outputs(question)
    holds = all(one.has_grid_of(result) for one in asked_inputs(question))
    return None if holds else Finding("different ones", "one scale and one zero point")


_OPERATIONS = {
    "elementwise": ["SUM", "SUB", "PROD", "MAX", "MIN"],
    "unary": ["ABS", "EXP", "LOG", "NEG", "RECIP", "SQRT"],
}
_MORE = {
    "elementwise": ["DIV", "EQUAL", "GREATER", "LESS", "AND", "OR", "GREATER_EQUAL", "LESS_EQUAL"],
    "unary": ["NOT"],
}


@check("operation")
def operation_is_supported(question: Question) -> Finding | None:
    """The operation must be one that the elementwise engine or a table of 256 codes computes."""
    kind = kind_of(question.layer)
    if kind not in _OPERATIONS:
        return None
    known = [*_OPERATIONS[kind], *(_MORE[kind] if question.family == "u85" else ())]
    found = parameters(question.layer).op.name
    return None if found in known else Finding(found, ", ".join(known))


_TABLE_TYPES = {
    "ELU": (DataType.INT8,),
    "GELU": (DataType.INT8, DataType.UINT8),
    "LOG": (DataType.INT8, DataType.INT16),
    "RSQRT": (DataType.INT8, DataType.INT16),
    "HARD_SWISH": (DataType.INT8, DataType.UINT8),
}
"""TFLite operator to the types of its constraint in the report; HARD_SWISH: Vela's check of TFLite's semantics."""


@check("type")
def table_type_is_supported(question: Question) -> Finding | None:
    """The types of ELU, GELU, LOG, RSQRT and HARD_SWISH must be those of the report."""
    layer = parameters(question.layer)
    name = tflite_operator(question.layer) or getattr(getattr(layer, "activation_type", None), "name", "").split("_")[0]
    types = _TABLE_TYPES.get(name)
    if types is None or question.precision in types:
        return None
    return Finding(question.precision.name, ", ".join(one.name for one in types))


_ELEMENTS = _of(
    ("activation", "elementwise", "unary"),
    rule("elementwise.grids", grids_are_equal, source=f"{REPORT}: MAXIMUM", remedy="Requantize the inputs first"),
    rule("elementwise.operation", operation_is_supported, source=f"{REPORT}: summary tables", remedy=ELSEWHERE),
    rule("table.types", table_type_is_supported, source=f"{REPORT}: ELU, GELU, LOG, RSQRT", remedy=ELSEWHERE),
)


def _reduced(question: Question) -> list[int]:
    """The reduced axes of N, H, W, C; [] of other layers."""
    if not _is(question, "reduce"):
        return []
    mask, rank = parameters(question.layer).axes, len(asked_inputs(question)[0].shape)
    axes = axes_of_file(question, [axis for axis in range(rank) if mask >> axis & 1])
    return [axis + 4 - rank for axis in axes]


def _is_mean(question: Question) -> bool:
    return _is(question, "reduce") and parameters(question.layer).op.name == "AVG"


@quantity("extent of a reduced axis")
def mean_extents(question: Question) -> Sequence[int]:
    """Extents of the axes that a mean reduces."""
    return [_image(question)[axis] for axis in _reduced(question) if axis >= 0] if _is_mean(question) else ()


@quantity("batch")
def mean_batches(question: Question) -> Sequence[int]:
    """Batch of a mean."""
    return [_image(question)[0]] if _is_mean(question) else ()


@check("reduced axes")
def mean_depth_is_supported(question: Question) -> Finding | None:
    """A mean over channels must have one row, one column or one channel."""
    if not _is_mean(question) or 3 not in _reduced(question):
        return None
    shape = _image(question)
    return None if 1 in shape[1:] else Finding(str(shape), "H, W or C of 1")


@check("reduced elements")
def mean_count_is_supported(question: Question) -> Finding | None:
    """A mean must be over at most 2^24 INT8, 2^23 UINT8 or 2^16 INT16 elements."""
    if not _is_mean(question):
        return None
    most = {DataType.INT8: 1 << 24, DataType.UINT8: 1 << 23}.get(question.precision, 1 << 16)
    count = math.prod(mean_extents(question))
    return Finding(str(count), f"at most {most}") if count > most else None


_REDUCE = _of(
    "reduce",
    rule("mean.axis", each(mean_extents, at_most(4095)), source=f"{REPORT}: MEAN", remedy="Average in two steps"),
    rule("mean.batch", each(mean_batches, at_most(1)), source=f"{REPORT}: MEAN", remedy="Use one image at a time"),
    rule("mean.depth", mean_depth_is_supported, source=f"{REPORT}: MEAN", remedy="Use a 1x1 convolution"),
    rule("mean.elements", mean_count_is_supported, source=f"{REPORT}: MEAN", remedy="Average in two steps"),
)


@quantity("height times width")
def softmax_positions(question: Question) -> Sequence[int]:
    """Rows that a softmax normalizes."""
    if not _is(question, "softmax"):
        return ()
    shape = file_shape(question)
    return [math.prod(shape[:-1][-2:]) if len(shape) > 2 else math.prod(shape[:-1])]


@quantity("channels")
def maximum_channels(question: Question) -> Sequence[int]:
    """Channels among which an index is looked for."""
    return [file_shape(question)[-1]] if _is(question, "top_k") else ()


@check("axis")
def maximum_is_over_channels(question: Question) -> Finding | None:
    """The index of a maximum must be looked for among the channels, and be all that is read."""
    if not _is(question, "top_k"):
        return None
    layer, rank = parameters(question.layer), len(asked_inputs(question)[0].shape)
    (axis,) = axes_of_file(question, [layer.axis])
    return None if axis == rank - 1 and layer.k == 1 else Finding(f"axis {axis}, k={layer.k}", "the last axis, k=1")


_SELECT = _of(
    ("softmax", "top_k"),
    rule("softmax.positions", each(softmax_positions, at_most(65535)), source=f"{REPORT}: SOFTMAX", remedy=ELSEWHERE),
    rule(
        "maximum.channels",
        each(maximum_channels, at_most(127)),
        families=SMALL,
        source=f"{REPORT}: ARG_MAX",
        remedy=ELSEWHERE,
    ),
    rule(
        "maximum.axis", maximum_is_over_channels, families=SMALL, source=f"{REPORT}: ARG_MAX", remedy="Transpose before"
    ),
)


@check("type")
def product_is_int8(question: Question) -> Finding | None:
    """The product of two computed tensors must be INT8."""
    if not _is(question, "matrix_multiply") or any(one.is_constant for one in asked_inputs(question)):
        return None
    return None if question.precision is DataType.INT8 else Finding(question.precision.name, "INT8")


_PRODUCT = _of(
    "matrix_multiply",
    rule("product.type", product_is_int8, families=SMALL, source=f"{REPORT}: BATCH_MATMUL", remedy=ELSEWHERE),
)


@check("scale factor")
def factors_are_supported(question: Question) -> Finding | None:
    """An image must grow by 2, 4 or 8 along both axes (half-pixel centers, bilinear: by 2), or keep its size."""
    if not _is(question, "resize") or len(file_shape(question)) < 3:
        return None
    layer = parameters(question.layer)
    (_, height, width, _), result = _image(question), file_shape(question, of_output=True)
    new = result[-3:-1]
    if (height, width) in ((1, 1), new):
        return None
    is_aligned = layer.coordinate_transformation.name == "ALIGN_CORNERS"
    less = int(is_aligned)
    pairs = [(out - less, extent - less) for out, extent in zip(new, (height, width), strict=True)]
    factors = [out / extent if extent else math.inf for out, extent in pairs]
    has_centers = "HALF_PIXEL" in layer.coordinate_transformation.name and layer.resize_mode.name == "LINEAR"
    allowed = (2,) if has_centers else (2, 4, 8)
    if factors[0] == factors[1]:
        holds = factors[0] in allowed
    else:
        holds = not has_centers and any(
            out == 1 and extent == 1 and other in allowed
            for out, extent, other in zip(new, (height, width), reversed(factors), strict=True)
        )
    return None if holds else Finding("x".join(f"{one:g}" for one in factors), " or ".join(map(str, allowed)))


@check("scale factor")
def factors_are_powers_of_two(question: Question) -> Finding | None:
    """A bilinear factor must be a power of two, and any factor at most 1024 (2048 with aligned corners)."""
    if not _is(question, "resize") or len(file_shape(question)) < 3:
        return None
    layer = parameters(question.layer)
    less = int(layer.coordinate_transformation.name == "ALIGN_CORNERS")
    old, new = _image(question)[1:3], file_shape(question, of_output=True)[-3:-1]
    factors = [(out - less) / (extent - less) for out, extent in zip(new, old, strict=True) if extent > less]
    most = 2048 if less else 1024
    wrong = [
        one for one in factors if one > most or (layer.resize_mode.name == "LINEAR" and (one < 1 or math.log2(one) % 1))
    ]
    return Finding(f"{wrong[0]:g}", f"a power of two, at most {most}") if wrong else None


_RESIZE = _of(
    "resize",
    rule(
        "resize.factor",
        factors_are_supported,
        families=SMALL,
        source=f"{REPORT}: RESIZE_BILINEAR",
        remedy="Resize in steps of 2",
    ),
    rule(
        "resize.factor_u85",
        factors_are_powers_of_two,
        families="u85",
        source=f"{REPORT}: RESIZE_BILINEAR",
        remedy="Resize in steps of 2",
    ),
)


@check("stride")
def slice_strides_are_supported(question: Question) -> Finding | None:
    """A slice must have strides other than 1 along H and W only."""
    if not _is(question, "slice"):
        return None
    stride = parameters(question.layer).stride
    rank = len(stride)
    stepped = axes_of_file(question, [axis for axis, step in enumerate(stride) if step != 1])
    wrong = [axis for axis in stepped if axis + 4 - rank not in (1, 2)]
    return Finding(f"axis {wrong[0]}", "height or width") if wrong else None


@check("shape")
def transpose_is_supported(question: Question) -> Finding | None:
    """The axes of a transpose must be within the reach of the NPU's counters."""
    if not _is(question, "shuffle") or tflite_operator(question.layer) not in (None, "TRANSPOSE"):
        return None
    layer = parameters(question.layer)
    order = tuple(layer.first_transpose)
    if order in ((), tuple(range(len(order)))) or tflite_operator(question.layer) is None:
        return None
    shape = asked_inputs(question)[0].shape
    reason = _transpose_problem(shape, order, is_wide=question.precision.bits == 32)
    return Finding(f"{order} of {shape}", reason) if reason else None


def _transpose_problem(shape: Sequence[int], order: tuple[int, ...], *, is_wide: bool) -> str:
    """Why Vela does not transpose; "" where it does."""
    most, rank = 1 << 16, len(shape)
    moved = [axis for axis, source in enumerate(order) if axis != source]
    if not moved:
        return ""
    if is_wide:
        if rank > 4:
            return "at most 4 axes of 32 bits"
        image, name = ((1,) * (4 - rank) + tuple(shape)), (*range(4 - rank), *(one + 4 - rank for one in order))
        batch, height, width, channels = image
        holds = {
            (0, 2, 1, 3): batch == 1 and height <= most and width <= most and channels <= 1 << 14,
            (0, 1, 3, 2): batch * height <= most and width <= most and channels <= most,
        }
        return "" if holds.get(name, False) else "NWHC or NHCW within 16 bits per axis for 32-bit codes"
    inner = tuple(shape[-3:])
    if rank >= 3 and math.prod(shape[:-3]) == 1 and all(order[axis] == axis for axis in range(rank - 3)):
        return "" if max(inner) <= most else "H, W and C of at most 65536"
    sums = [math.prod(shape) // (shape[a] * shape[b]) for a in range(rank) for b in range(a)]
    return "" if all(one <= most for one in sums) else "at most 65536 for the product of all axes but two"


_MOVES = [
    *_of(
        "slice", rule("slice.stride", slice_strides_are_supported, source=f"{REPORT}: STRIDED_SLICE", remedy=ELSEWHERE)
    ),
    *_of(
        "shuffle",
        rule(
            "transpose.shape", transpose_is_supported, families=SMALL, source=f"{REPORT}: TRANSPOSE", remedy=ELSEWHERE
        ),
    ),
]

# Quantization ------------------------------------------------------------------------------------------------------


@check("type")
def requantization_is_narrow(question: Question) -> Finding | None:
    """Codes that only change their scale must have at most 16 bits."""
    layer = question.layer
    types = [question.spec(one).dtype for one in (*question.inputs[:1], *question.outputs)]
    wide = [one for one in types if one is DataType.INT32]
    others = [reader for reader, _ in layer.outputs[0].consumers] if layer.kind == "dequantize" else _step(layer)
    is_alone = all(other.kind in ("quantize", "dequantize") for other in others)
    return (
        Finding("INT32", "8 or 16 bits") if wide and is_alone and not question.is_constant(question.inputs[0]) else None
    )


_QUANTIZATION = rules(
    ("quantize", "dequantize"),
    rule(
        "quantization.types", requantization_is_narrow, families=SMALL, source=f"{REPORT}: QUANTIZE", remedy=ELSEWHERE
    ),
)


@quantity("quantize method")
def method(question: Question) -> str:
    """Name of the arithmetic of a quantized operator."""
    return str(getattr(question.layer, "method", ""))


@check("types")
def is_cast_of_an_index(question: Question) -> Finding | None:
    """A cast must be the end of ARG_MAX, whose indices may have 64 bits."""
    if tflite_operator(question.layer) == "ARG_MAX":
        return None
    types = [question.spec(one).dtype.text for one in (*question.inputs[:1], *question.outputs)]
    return Finding(" to ".join(types), "an index of ARG_MAX")


_CAST = rules("cast", rule("cast", is_cast_of_an_index, families=SMALL, source=f"{REPORT}: ARG_MAX", remedy=ELSEWHERE))
_METHOD = rules(
    QUANTIZED_OPERATOR,
    rule(
        "arithmetic",
        parameter(method, one_of("tflite")),
        source=f"{VELA}: results are those of TFLite's reference kernels",
        remedy="Use --quantize-method tflite, or none",
    ),
)

LIMITS = LimitTable(
    "ETHOS_U",
    [
        *_ALL,
        *_TYPES,
        *_WEIGHTED,
        *_STRIDES,
        *_POOLING,
        *_DECONVOLUTION,
        *_ELEMENTS,
        *_REDUCE,
        *_SELECT,
        *_PRODUCT,
        *_RESIZE,
        *_MOVES,
        *_QUANTIZATION,
        *_CAST,
        *_METHOD,
    ],
    supported_kinds=frozenset(
        [
            "activation",
            "cast",
            "concatenation",
            "convolution",
            "deconvolution",
            "dequantize",
            "elementwise",
            "fully_connected",
            "identity",
            "matrix_multiply",
            "padding",
            "parametric_relu",
            "pooling",
            "quantize",
            "quantized_operator",
            "reduce",
            "resize",
            "shuffle",
            "slice",
            "softmax",
            "squeeze",
            "top_k",
            "unary",
            "unsqueeze",
        ]
    ),
    source=f"{REPORT}: summary tables",
    precisions_source=f"{REPORT}: generic constraints",
)
