"""Activation, parametric ReLU and unary layers on the DLA.

That the slopes of a parametric ReLU have the input's rank is part of what the layer is.
"""

from __future__ import annotations

from dryfit.network.data_types import DataType
from dryfit.target.checks import at_least, between, check, each, equals, one_of, parameter, software_is_at_least
from dryfit.target.limits import Finding, Question, rule, rules
from dryfit_dla import quantities
from dryfit_dla.limits.documents import FALL_BACK, HEADERS, HEADERS_7_1, INT8, LAYERS, OPERATORS, REPORTS, RESHAPE
from dryfit_dla.limits.int8 import runs_in_fp16
from dryfit_dla.quantities import operand_type

_ACTIVATION = f"{LAYERS}: Activation layer"


ACTIVATION = rules(
    "activation",
    rule(
        "activation.type",
        parameter("activation_type", one_of("RELU", "SIGMOID", "TANH", "CLIP", "LEAKY_RELU")),
        source=_ACTIVATION,
        remedy="Rewrite the function with supported activations or elementwise layers",
    ),
    rule(
        "activation.type_8_1",
        parameter("activation_type", one_of("RELU", "SIGMOID", "TANH", "CLIP")),
        until="8.1",
        source=f"{HEADERS_7_1}, IActivationLayer; {REPORTS} of 7 and 8.0: LEAKY_RELU is refused",
        fidelity="inferred",
        remedy="Use software 8.2 or newer",
    ),
    rule(
        "activation.negative_slope",
        parameter("alpha", equals(0)),
        when=parameter("activation_type", equals("RELU")),
        source=_ACTIVATION,
        remedy="Use LEAKY_RELU",
    ),
    rule(
        "activation.clip_lower",
        parameter("alpha", equals(0)),
        when=parameter("activation_type", equals("CLIP")),
        source=f"{_ACTIVATION}: Clipped ReLU",
        remedy="Shift the range with scale layers before and after",
    ),
    rule(
        "activation.clip_upper",
        parameter("beta", between(1, 127)),
        when=parameter("activation_type", equals("CLIP")),
        source=f"{_ACTIVATION}: Clipped ReLU",
        remedy="Add scale layers before and after, or use RELU if the bound is never reached",
    ),
    rule("activation.rank", each(quantities.ranks, at_least(4)), source=_ACTIVATION, remedy=RESHAPE),
    rule(
        "activation.int8_promotion",
        runs_in_fp16,
        when=parameter("activation_type", one_of("SIGMOID", "TANH")),
        precisions=INT8,
        source=_ACTIVATION,
        severity="note",
        promotes_to=DataType.HALF,
    ),
)


_PARAMETRIC_RELU = f"{LAYERS}: Parametric ReLU layer"


@check("slopes")
def slopes_are_constant(question: Question) -> Finding | None:
    """The slopes must be a constant that is known at build time."""
    slopes = question.inputs[1]
    return None if question.is_constant(slopes) else Finding(f"computed: {slopes.name!r}", "a constant")


PARAMETRIC_RELU = rules(
    "parametric_relu",
    rule(
        "parametric_relu.software",
        software_is_at_least("8.4"),
        source=f"{HEADERS} of 8.4, IParametricReLULayer",
        remedy="Use software 8.4 or newer",
    ),
    rule("parametric_relu.slopes", slopes_are_constant, source=_PARAMETRIC_RELU, remedy=FALL_BACK),
    rule(
        "parametric_relu.rank",
        each(quantities.ranks, at_least(4)),
        source=f"{LAYERS}: Activation layer, two spatial dimensions only",
        fidelity="inferred",
        remedy=RESHAPE,
    ),
)


_UNARY = f"{LAYERS}: Unary layer"
_TRIGONOMETRIC = ("SIN", "COS", "ATAN")


@check("input type")
def input_is_int8(question: Question) -> Finding | None:
    """The input must be INT8."""
    dtype = operand_type(question, question.inputs[0])
    return None if dtype is DataType.INT8 else Finding(dtype.text, "INT8")


UNARY = rules(
    "unary",
    rule(
        "unary.operation",
        parameter("op", one_of("ABS", *_TRIGONOMETRIC)),
        source=_UNARY,
        remedy=(
            "Write a negation as a product with -1, and a logical NOT of 0 and 1 as 1 - x; let other operations run "
            "on a fallback device"
        ),
    ),
    rule(
        "unary.software",
        software_is_at_least("8.4"),
        source=f"{HEADERS} of 8.4, IUnaryLayer",
        remedy="Use software 8.4 or newer",
    ),
    rule(
        "unary.operation_xavier",
        parameter("op", one_of("ABS")),
        families="xavier",
        source=f"{OPERATORS}: the other operations need Orin",
        remedy="Choose an Orin platform, or let this layer run on a fallback device",
    ),
    rule(
        "unary.operation_8_6_11",
        parameter("op", one_of("ABS")),
        families="orin",
        until="8.6.11",
        source=f"{OPERATORS}: the other operations were added in TensorRT 8.6.12",
        remedy="Use software 8.6.12 or newer",
    ),
    rule(
        "unary.int8",
        input_is_int8,
        when=parameter("op", one_of(*_TRIGONOMETRIC)),
        source=_UNARY,
        remedy="Set the INT8 flag, and set the scales of the tensors",
    ),
    rule(
        "unary.rank",
        each(quantities.ranks, at_least(4)),
        source=f"{REPORTS}: lower-rank tensors are reshaped by a layer that the DLA does not support",
        fidelity="inferred",
        remedy=RESHAPE,
    ),
)
