"""What the NPU runs: the constraints that Vela's report of supported operators lists, one rule each.

Vela reads TFLite, where axes are N, H, W, C: `image` and `axes_of_file` give them, whatever order the network keeps its
tensors in. A check of layer kinds gets the layer with the parameters, and says nothing of other kinds.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.tensor import Tensor
from dryfit.target.checks import Quantity, at_most, check, each, one_of, parameter
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
ELSEWHERE = "Let the operator run on the CPU (--fallback CPU)"

_U55_OPERATORS = """ABS ADD ARG_MAX AVERAGE_POOL_2D BATCH_MATMUL CONCATENATION CONV_2D DEPTHWISE_CONV_2D ELU EXP
EXPAND_DIMS FULLY_CONNECTED GELU HARD_SWISH LEAKY_RELU LOG LOGISTIC MAXIMUM MAX_POOL_2D MEAN MINIMUM MIRROR_PAD MUL NEG
PACK PAD PADV2 PRELU QUANTIZE REDUCE_MAX REDUCE_MIN RELU RELU6 RELU_0_TO_1 RELU_N1_TO_1 RESHAPE RESIZE_BILINEAR
RESIZE_NEAREST_NEIGHBOR REVERSE_V2 RSQRT SLICE SOFTMAX SPLIT SPLIT_V SQUARED_DIFFERENCE SQUEEZE STRIDED_SLICE SUB SUM
TANH TILE TRANSPOSE TRANSPOSE_CONV UNIDIRECTIONAL_SEQUENCE_LSTM UNPACK"""
_U85_OPERATORS = f"""{_U55_OPERATORS} CAST DIV EQUAL GATHER GREATER GREATER_EQUAL LESS LESS_EQUAL LOGICAL_AND
LOGICAL_NOT LOGICAL_OR NOT_EQUAL REDUCE_ALL REDUCE_ANY SCATTER_ND SELECT SELECT_V2"""
OPERATORS = {"u55": _U55_OPERATORS.split(), "u65": _U55_OPERATORS.split(), "u85": _U85_OPERATORS.split()}
"""Family to the TFLite operators of the report."""

Made = Callable[[Question, Any], Any]


def check_of(kinds: str, name: str) -> Callable[[Made], Any]:
    """Return a decorator for a check of layer kinds: `(question, layer with the parameters) -> Finding | None`."""

    def decorated(made: Made) -> Any:
        @functools.wraps(made)
        def asked(question: Question) -> Finding | None:
            is_asked = kind_of(question.layer) in kinds.split()
            return made(question, parameters(question.layer)) if is_asked else None

        return check(name)(asked)

    return decorated


def values_of(kinds: str, name: str) -> Callable[[Made], Quantity]:
    """Return a decorator for the values of layer kinds that a constraint is on; of other kinds there are none."""

    def decorated(made: Made) -> Quantity:
        def read(question: Question) -> Sequence[int]:
            is_asked = kind_of(question.layer) in kinds.split()
            return made(question, parameters(question.layer)) if is_asked else ()

        return Quantity(name, read)

    return decorated


def limit(kinds: str, id: str, test: Any, where: str, remedy: str = ELSEWHERE, **scope: Any) -> Any:
    """Return a rule of layer kinds, and of quantized operators that compute them; `where` is a part of the report."""
    names = [*kinds.split(), *([QUANTIZED_OPERATOR] if kinds else [])]
    return rules(names, rule(id, test, source=f"{REPORT}: {where}", remedy=remedy, **scope))[0]


def image(question: Question) -> tuple[int, ...]:
    """N, H, W and C of the first input; axes that it lacks are 1."""
    padded = (1, 1, 1, *file_shape(question))
    return math.prod(padded[:-3]), *padded[-3:]


# All layers, and the operators that they are parts of -----------------------------------------------------------------


@check("TFLite operator")
def operator_is_listed(question: Question) -> Finding | None:
    """The TFLite operator that the layer comes from must be listed."""
    name, known = tflite_operator(question.layer), OPERATORS[question.family]
    if name is None and kind_of(question.layer) not in KINDS:
        name = kind_of(question.layer)
    return None if name in (None, *known) else Finding(str(name), f"one of the {len(known)} operators of the report")


@check("shape")
def shapes_are_known(question: Question) -> Finding | None:
    """Tensors must have at least one axis, and static extents."""
    results = [question.spec(one).shape for one in question.outputs]
    shapes = [*results, *(question.spec(one).shape for one in question.inputs)]
    wrong = [shape for shape in shapes if min(shape, default=0) < 0] or [shape for shape in results if not shape]
    return Finding(str(wrong[0]), "static, with at least one axis") if wrong else None


@check("zero point")
def int32_has_no_zero_point(question: Question) -> Finding | None:
    """The zero point of an INT32 tensor must be 0."""
    grids = [*asked_inputs(question), *asked_outputs(question)]
    zeros = [one.zero_point for one in grids if one.dtype is DataType.INT32 and one.zero_point is not None]
    return Finding("another", "0") if any(np.any(one) for one in zeros) else None


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
            if tensor.producer is not None and tensor.producer.kind == "dequantize":
                continue
            near = [tensor.producer, *(reader for reader, _ in tensor.consumers)]
            new = [one for one in near if one is not None and one.name not in found]
            found.update((one.name, one) for one in new)
            waiting += new
    return list(found.values())


def _in_real_numbers(tensors: Sequence[Tensor]) -> Finding | None:
    real = ", ".join(repr(one.name) for one in tensors[:1])
    return (
        Finding(f"{real}, in real numbers", "quantized at its inputs and outputs", remedy=_QUANTIZE) if real else None
    )


def _step_problem(question: Question, step: Sequence[Layer]) -> Finding | None:
    ends = [one for each in step for one in _real(each) if one.is_network_input or one.is_network_output]
    if ends:
        return _in_real_numbers(ends)
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
    if question.options.get(_ASKED_BY_STEP):
        return None
    if layer.kind == QUANTIZED_OPERATOR:
        return _in_real_numbers(_real(layer))
    if layer.kind != "dequantize":
        return _step_problem(question, _step(layer))
    if layer.outputs[0].is_network_output:
        return _in_real_numbers(layer.outputs)
    if question.precision is DataType.INT32:  # a bias, which goes where the layer on narrow codes goes
        question = attrs.evolve(question, precision=DataType.INT8)
    problems = [_step_problem(question, _step(reader)) for reader, _ in layer.outputs[0].consumers]
    return None if None in problems else next(iter(problems), None)


@check("type")
def requantization_is_narrow(question: Question) -> Finding | None:
    """Codes that only change their scale must have at most 16 bits."""
    layer = question.layer
    types = [question.spec(one).dtype for one in (*question.inputs[:1], *question.outputs)]
    others = [reader for reader, _ in layer.outputs[0].consumers] if layer.kind == "dequantize" else _step(layer)
    is_alone = DataType.INT32 in types and all(other.is_quantization for other in others)
    return Finding("INT32", "8 or 16 bits") if is_alone and not question.is_constant(question.inputs[0]) else None


_WIDE = {"elementwise": ("SUM", "SUB", "PROD"), "reduce": ("SUM",)}
"""Layer kind to operations whose operators have no constraint on 32 bits in the report."""


@check("type")
def is_not_32_bit(question: Question) -> Finding | None:
    """Feature maps must have 8 or 16 bits."""
    name, kind = tflite_operator(question.layer), kind_of(question.layer)
    operation = getattr(getattr(parameters(question.layer), "op", None), "name", "")
    is_wide = name == "MIRROR_PAD" or (name != "SQUARED_DIFFERENCE" and operation in _WIDE.get(kind, ()))
    return None if is_wide else Finding("INT32", "INT8, UINT8 or INT16")


# Layers with weights or a window --------------------------------------------------------------------------------------


def _is_depthwise(question: Question, layer: Any) -> bool:
    name = tflite_operator(question.layer)
    if name is not None:
        return name == "DEPTHWISE_CONV_2D"
    return layer.kind == "convolution" and is_depthwise(layer, asked_inputs(question)[0].shape[1])


@values_of("convolution pooling", "stride")
def strides(question: Question, layer: Any) -> Sequence[int]:
    """Strides of a window whose steps the hardware makes itself; none where Vela cuts the layer into pieces."""
    if _is_depthwise(question, layer):
        return tuple(layer.stride_nd)
    if set(layer.dilation_nd) <= {1} and not has_padding(layer, asked_inputs(question)[0].shape[2:]):
        return ()
    counts = [extent > 1 for extent in asked_outputs(question)[0].shape[2:]]
    return [step for step, is_taken in zip(layer.stride_nd, counts, strict=False) if is_taken]


_WEIGHTED = "convolution deconvolution fully_connected"


@values_of(f"{_WEIGHTED} matrix_multiply", "sum of absolute weights of an output channel")
def weight_sums(question: Question, layer: Any) -> Sequence[int]:
    """The largest sum, where the weights are known."""
    inputs = asked_inputs(question)
    if len(inputs) < 2 or inputs[1].codes is None:
        return ()
    zero = 0 if inputs[1].zero_point is None else int(np.ravel(inputs[1].zero_point)[0])
    axis = int(layer.kind == "deconvolution" or (layer.kind == "matrix_multiply" and layer.op1.name == "NONE"))
    weights = np.moveaxis(np.abs(np.atleast_2d(inputs[1].codes).astype(np.int64) - zero), axis, 0)
    return [int(weights.reshape(len(weights), -1).sum(1).max())]


@values_of(_WEIGHTED, "bias in units of the sums")
def biases(question: Question, layer: Any) -> Sequence[int]:
    """The largest bias, where it is known."""
    del layer
    data, weights, bias = (*asked_inputs(question), None, None)[:3]
    if bias is None or not bias.is_constant or weights is None:
        return ()
    if bias.codes is not None:
        return [int(np.abs(bias.codes.astype(np.int64)).max(initial=0))]
    if data is None or data.scale is None or weights.scale is None or bias.real is None:
        return ()
    unit = data.scale.astype(np.float64).ravel()[0] * weights.scale.astype(np.float64).ravel()
    return [int(np.rint(np.abs(bias.real.astype(np.float64).ravel()) / unit).max(initial=0))]


@check_of("convolution deconvolution", "weights")
def weights_are_constant(question: Question, layer: Any) -> Finding | None:
    """The weights and the bias must be constant."""
    del layer
    return None if all(one.is_constant for one in asked_inputs(question)[1:]) else Finding("computed", "constants")


@check_of(_WEIGHTED, "type of the weights")
def weights_have_8_bits(question: Question, layer: Any) -> Finding | None:
    """Weights must have 8 bits."""
    del layer
    wide = [one.dtype for one in asked_inputs(question)[1:2] if one.dtype.bits != 8]
    return Finding(wide[0].name, "INT8 or UINT8") if wide else None


def _averages_padding(question: Question, layer: Any) -> bool:
    return layer.pooling_type.name == "AVERAGE" and has_padding(layer, asked_inputs(question)[0].shape[2:])


@values_of("pooling", "window")
def average_windows(question: Question, layer: Any) -> Sequence[int]:
    """Extents of the window of an average over padding."""
    return layer.window_size_nd if _averages_padding(question, layer) else ()


@values_of("pooling", "height of the window")
def window_heights(question: Question, layer: Any) -> Sequence[int]:
    """Height of the window of a pooling that does not average padding."""
    return () if _averages_padding(question, layer) else layer.window[:1]


@values_of("pooling", "elements of the window")
def window_sizes(question: Question, layer: Any) -> Sequence[int]:
    """Height times width of the same."""
    return () if _averages_padding(question, layer) else [math.prod(layer.window)]


@check_of("deconvolution", "stride")
def deconvolution_strides(question: Question, layer: Any) -> Finding | None:
    """Strides must be 1x1 or 2x2, or 2 along the width alone where input and kernel have height 1, and vice versa."""
    pairs = zip(asked_inputs(question)[0].shape[2:], layer.kernel_size_nd, strict=False)
    flat, stride = [extent == 1 == size for extent, size in pairs], tuple(layer.stride_nd)
    holds = stride in ((1, 1), (2, 2)) or (stride == (1, 2) and flat[0]) or (stride == (2, 1) and flat[1])
    return None if holds else Finding("x".join(map(str, stride)), "1x1 or 2x2")


# Layers without weights -----------------------------------------------------------------------------------------------


@check_of("elementwise", "quantization")
def grids_are_equal(question: Question, layer: Any) -> Finding | None:
    """Inputs and output of a minimum or maximum must have one scale and zero point."""
    (result,) = asked_outputs(question)
    is_asked = layer.op.name in ("MAX", "MIN")
    holds = not is_asked or all(one.has_grid_of(result) for one in asked_inputs(question))
    return None if holds else Finding("different ones", "one scale and one zero point")


_OPERATIONS = {"elementwise": ["SUM", "SUB", "PROD", "MAX", "MIN"]}
_OPERATIONS["unary"] = ["ABS", "EXP", "LOG", "NEG", "RECIP", "SQRT"]
_MORE = {
    "elementwise": ["DIV", "EQUAL", "GREATER", "LESS", "AND", "OR", "GREATER_EQUAL", "LESS_EQUAL"],
    "unary": ["NOT"],
}
"""Operations that the U85 adds."""


@check_of("elementwise unary", "operation")
def operation_is_supported(question: Question, layer: Any) -> Finding | None:
    """The operation must be one that the elementwise engine or a table of 256 codes computes."""
    known = [*_OPERATIONS[layer.kind], *(_MORE[layer.kind] if question.family == "u85" else ())]
    return None if layer.op.name in known else Finding(layer.op.name, ", ".join(known))


_INT8, _UINT8, _INT16 = DataType.INT8, DataType.UINT8, DataType.INT16
_TABLE_TYPES = {"ELU": (_INT8,), "GELU": (_INT8, _UINT8), "HARD_SWISH": (_INT8, _UINT8)}
_TABLE_TYPES |= {"LOG": (_INT8, _INT16), "RSQRT": (_INT8, _INT16)}
"""TFLite operator to the types of its constraint in the report; HARD_SWISH: Vela's check of TFLite's semantics."""


@check_of("activation elementwise unary", "type")
def table_type_is_supported(question: Question, layer: Any) -> Finding | None:
    """The types of ELU, GELU, HARD_SWISH, LOG and RSQRT must be those of the report."""
    named = getattr(getattr(layer, "activation_type", None), "name", "").split("_")[0]
    types = _TABLE_TYPES.get(tflite_operator(question.layer) or named)
    is_known = types is None or question.precision in types
    return None if is_known else Finding(question.precision.name, ", ".join(one.name for one in types or ()))


def _reduced(question: Question, layer: Any) -> list[int]:
    """The axes of N, H, W, C that a mean reduces; [] of other reductions."""
    rank = len(asked_inputs(question)[0].shape)
    axes = axes_of_file(question, [axis for axis in range(rank) if layer.axes >> axis & 1])
    return [axis + 4 - rank for axis in axes if axis + 4 >= rank] if layer.op.name == "AVG" else []


@values_of("reduce", "extent of a reduced axis")
def mean_extents(question: Question, layer: Any) -> Sequence[int]:
    """Extents of the axes that a mean reduces."""
    return [image(question)[axis] for axis in _reduced(question, layer)]


@values_of("reduce", "batch")
def mean_batches(question: Question, layer: Any) -> Sequence[int]:
    """Batch of a mean."""
    return [image(question)[0]] if layer.op.name == "AVG" else ()


@check_of("reduce", "reduced axes")
def mean_depth_is_supported(question: Question, layer: Any) -> Finding | None:
    """A mean over channels must have one row, one column or one channel."""
    holds = 3 not in _reduced(question, layer) or 1 in image(question)[1:]
    return None if holds else Finding(str(image(question)), "H, W or C of 1")


@check_of("reduce", "reduced elements")
def mean_count_is_supported(question: Question, layer: Any) -> Finding | None:
    """A mean must be over at most 2^24 INT8, 2^23 UINT8 or 2^16 INT16 elements, and of no other type."""
    if layer.op.name != "AVG":
        return None
    most = {_INT8: 1 << 24, _UINT8: 1 << 23, _INT16: 1 << 16}.get(question.precision, 0)
    count = math.prod(image(question)[axis] for axis in _reduced(question, layer))
    return Finding(f"{count} of {question.precision.name}", f"at most {most}") if count > most else None


@values_of("softmax", "height times width")
def softmax_positions(question: Question, layer: Any) -> Sequence[int]:
    """Rows that a softmax normalizes."""
    del layer
    return [math.prod(file_shape(question)[:-1][-2:])]


@values_of("top_k", "channels")
def maximum_channels(question: Question, layer: Any) -> Sequence[int]:
    """Channels among which an index is looked for."""
    del layer
    return [file_shape(question)[-1]]


@check_of("top_k", "axis")
def maximum_is_over_channels(question: Question, layer: Any) -> Finding | None:
    """The index of a maximum must be looked for among the channels, and be all that is read."""
    (axis,) = axes_of_file(question, [layer.axis])
    holds = axis == len(file_shape(question)) - 1 and layer.k == 1
    return None if holds else Finding(f"axis {axis}, k={layer.k}", "the last axis, k=1")


@check_of("matrix_multiply", "type")
def product_is_int8(question: Question, layer: Any) -> Finding | None:
    """The product of two computed tensors must be INT8."""
    del layer
    holds = question.precision is _INT8 or any(one.is_constant for one in asked_inputs(question))
    return None if holds else Finding(question.precision.name, "INT8")


def _factors(question: Question, layer: Any) -> tuple[list[float], Sequence[int], Sequence[int]]:
    """(growth of height and width, old extents, new extents) of a resize; none of a tensor without these axes."""
    old, new = file_shape(question)[-3:-1], file_shape(question, of_output=True)[-3:-1]
    less = int(layer.coordinate_transformation.name == "ALIGN_CORNERS")
    pairs = [(out - less, extent - less) for out, extent in zip(new, old, strict=False)]
    return [out / extent if extent else math.inf for out, extent in pairs], old, new


@check_of("resize", "scale factor")
def factors_are_supported(question: Question, layer: Any) -> Finding | None:
    """An image must grow by 2, 4 or 8 along both axes (half-pixel centers, bilinear: by 2), or keep its size."""
    factors, old, new = _factors(question, layer)
    if len(factors) < 2 or old in ((1, 1), new):
        return None
    has_centers = "HALF_PIXEL" in layer.coordinate_transformation.name and layer.resize_mode.name == "LINEAR"
    allowed = (2,) if has_centers else (2, 4, 8)
    if factors[0] == factors[1]:
        holds = factors[0] in allowed
    else:
        lines = zip(new, old, reversed(factors), strict=True)
        holds = not has_centers and any(out == extent == 1 and other in allowed for out, extent, other in lines)
    return None if holds else Finding("x".join(f"{one:g}" for one in factors), " or ".join(map(str, allowed)))


@check_of("resize", "scale factor")
def factors_are_powers_of_two(question: Question, layer: Any) -> Finding | None:
    """A bilinear factor must be a power of two, and any factor at most 1024 (2048 with aligned corners)."""
    factors = [one for one in _factors(question, layer)[0] if math.isfinite(one)]
    most = 2048 if layer.coordinate_transformation.name == "ALIGN_CORNERS" else 1024
    is_linear = layer.resize_mode.name == "LINEAR"
    wrong = [one for one in factors if one > most or (is_linear and (one < 1 or math.log2(one) % 1))]
    return Finding(f"{wrong[0]:g}", f"a power of two, at most {most}") if wrong else None


@check_of("slice", "stride")
def slice_strides_are_supported(question: Question, layer: Any) -> Finding | None:
    """A slice must have strides other than 1 along H and W only."""
    axes = axes_of_file(question, [axis for axis, step in enumerate(layer.stride) if step != 1])
    wrong = [axis for axis in axes if axis + 4 - len(layer.stride) not in (1, 2)]
    return Finding(f"axis {wrong[0]}", "height or width") if wrong else None


@check_of("shuffle", "shape")
def transpose_is_supported(question: Question, layer: Any) -> Finding | None:
    """The axes of a transpose must be within the reach of the NPU's counters."""
    order, shape = tuple(layer.first_transpose), asked_inputs(question)[0].shape
    if tflite_operator(question.layer) != "TRANSPOSE" or order == tuple(range(len(order))):
        return None
    reason = _transpose_problem(shape, order, is_wide=question.precision.bits == 32)
    return Finding(f"{order} of {shape}", reason) if reason else None


def _transpose_problem(shape: Sequence[int], order: tuple[int, ...], *, is_wide: bool) -> str:
    """Why Vela does not transpose; "" where it does."""
    most, rank = 1 << 16, len(shape)
    if is_wide:
        added = max(4 - rank, 0)
        batch, height, width, channels = ((1,) * added + tuple(shape))[:4]
        named = (*range(added), *(one + added for one in order))
        narrow = batch == 1 and height <= most and width <= most and channels <= 1 << 14
        inner = batch * height <= most and width <= most and channels <= most
        holds = {(0, 2, 1, 3): narrow, (0, 1, 3, 2): inner}.get(named, False)
        return "" if holds else "NWHC or NHCW within 16 bits per axis for 32-bit codes"
    if rank >= 3 and math.prod(shape[:-3]) == 1 and order[: rank - 3] == tuple(range(rank - 3)):
        return "" if max(shape[-3:]) <= most else "H, W and C of at most 65536"
    others = [math.prod(shape) // (shape[a] * shape[b]) for a in range(rank) for b in range(a)]
    return "" if all(one <= most for one in others) else "at most 65536 for the product of all axes but two"


@check_of("cast", "types")
def is_cast_of_an_index(question: Question, layer: Any) -> Finding | None:
    """A cast must be the end of ARG_MAX, whose indices may have 64 bits."""
    del layer
    types = [question.spec(one).dtype.text for one in (*question.inputs[:1], *question.outputs)]
    is_index = tflite_operator(question.layer) == "ARG_MAX"
    return None if is_index else Finding(" to ".join(types), "an index of ARG_MAX")


METHOD = Quantity("quantize method", lambda question: str(getattr(question.layer, "method", "")))
_SUM, _8_BITS = 127 * (1 << 16), (_INT8, _UINT8)
_NARROW = (
    "activation concatenation convolution deconvolution elementwise padding parametric_relu pooling reduce resize "
    "slice softmax unary"
)

RULES = [
    limit("", "operator", operator_is_listed, "summary tables"),
    limit("", "shape", shapes_are_known, "generic constraints", "Keep the axes, and fix the shapes (--shape)"),
    limit("", "step", step_runs_here, "an operator is scheduled as a whole", f"Change the other layer; {ELSEWHERE}"),
    limit("", "zero_point", int32_has_no_zero_point, "generic constraints"),
    limit(
        _NARROW, "types_32", is_not_32_bit, "32-bit", "Quantize to 8 bits", families=SMALL, precisions=[DataType.INT32]
    ),
    limit("convolution pooling", "window.stride", each(strides, at_most(3)), "CONV_2D", families=SMALL),
    limit(f"{_WEIGHTED} matrix_multiply", "weights.sum", each(weight_sums, at_most(_SUM)), "CONV_2D", families=SMALL),
    limit(
        _WEIGHTED, "weights.sum_u85", each(weight_sums, at_most(_SUM)), "CONV_2D", families="u85", precisions=_8_BITS
    ),
    limit(_WEIGHTED, "bias.range", each(biases, at_most((1 << 40) - 2)), "Int64 bias", families=SMALL),
    limit(_WEIGHTED, "bias.range_u85", each(biases, at_most((1 << 48) - 2)), "Int64 bias", families="u85"),
    limit("convolution deconvolution", "weights.constant", weights_are_constant, "CONV_2D", "Give constant weights"),
    limit(_WEIGHTED, "weights.type", weights_have_8_bits, "CONV_2D", "Quantize the weights to 8 bits"),
    limit("pooling", "pooling.average_window", each(average_windows, at_most(8)), "AVERAGE_POOL_2D", "Pad before"),
    limit("pooling", "pooling.height", each(window_heights, at_most(256)), "MAX_POOL_2D"),
    limit("pooling", "pooling.elements", each(window_sizes, at_most(1 << 16)), "MAX_POOL_2D"),
    limit("deconvolution", "deconvolution.stride", deconvolution_strides, "TRANSPOSE_CONV", families=SMALL),
    limit("elementwise", "elementwise.grids", grids_are_equal, "MAXIMUM", "Requantize the inputs first"),
    limit("elementwise unary", "elementwise.operation", operation_is_supported, "summary tables"),
    limit("activation elementwise unary", "table.types", table_type_is_supported, "ELU, GELU, LOG, RSQRT"),
    limit("reduce", "mean.axis", each(mean_extents, at_most(4095)), "MEAN", "Average in two steps"),
    limit("reduce", "mean.batch", each(mean_batches, at_most(1)), "MEAN", "Use one image at a time"),
    limit("reduce", "mean.depth", mean_depth_is_supported, "MEAN", "Use a 1x1 convolution"),
    limit("reduce", "mean.elements", mean_count_is_supported, "MEAN", "Average in two steps"),
    limit("softmax", "softmax.positions", each(softmax_positions, at_most(65535)), "SOFTMAX"),
    limit("top_k", "maximum.channels", each(maximum_channels, at_most(127)), "ARG_MAX", families=SMALL),
    limit("top_k", "maximum.axis", maximum_is_over_channels, "ARG_MAX", "Transpose before", families=SMALL),
    limit("matrix_multiply", "product.type", product_is_int8, "BATCH_MATMUL", families=SMALL),
    limit("resize", "resize.factor", factors_are_supported, "RESIZE_BILINEAR", "Resize by 2", families=SMALL),
    limit("resize", "resize.factor_u85", factors_are_powers_of_two, "RESIZE_BILINEAR", families="u85"),
    limit("slice", "slice.stride", slice_strides_are_supported, "STRIDED_SLICE"),
    limit("shuffle", "transpose.shape", transpose_is_supported, "TRANSPOSE", families=SMALL),
    limit("cast", "cast.index", is_cast_of_an_index, "ARG_MAX", families=SMALL),
    limit("quantize dequantize", "requantize.types", requantization_is_narrow, "QUANTIZE", families=SMALL),
    limit(QUANTIZED_OPERATOR, "arithmetic", parameter(METHOD, one_of("tflite")), "results are TFLite's", "Use tflite"),
]

KINDS = frozenset(
    f"{_NARROW} {_WEIGHTED} cast dequantize identity matrix_multiply quantize quantized_operator shuffle squeeze top_k "
    "unsqueeze".split()
)
"""The layer kinds that the operators of the report become; a quantized operator computes one of them."""

LIMITS = LimitTable(
    "ETHOS_U",
    RULES,
    supported_kinds=KINDS,
    source=f"{REPORT}: summary tables",
    precisions_source=f"{REPORT}: generic constraints",
)
