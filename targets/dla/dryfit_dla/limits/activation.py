"""Activation on the DLA."""

from __future__ import annotations

from dryfit.network.data_types import DataType
from dryfit.target.checks import at_least, between, each, equals, one_of, parameter
from dryfit.target.limits import rule, rules
from dryfit_dla import quantities
from dryfit_dla.limits.documents import HEADERS_7_1, INT8, LAYERS, REPORTS, RESHAPE
from dryfit_dla.limits.promotion import runs_in_fp16

_ACTIVATION = f"{LAYERS}: Activation layer"


ACTIVATION = rules(
    "activation",
    rule(
        "activation.type",
        parameter("activation_type", one_of("RELU", "SIGMOID", "TANH", "CLIP", "LEAKY_RELU")),
        source=_ACTIVATION,
        remedy="Write the function with these, or with elementwise layers",
    ),
    rule(
        "activation.type_8_1",
        parameter("activation_type", one_of("RELU", "SIGMOID", "TANH", "CLIP")),
        until="8.1",
        source=f"{HEADERS_7_1}, IActivationLayer; {REPORTS}: those of 7 and 8.0 refuse LEAKY_RELU",
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
        remedy="Shift with a scale layer before and after",
    ),
    rule(
        "activation.clip_upper",
        parameter("beta", between(1, 127)),
        when=parameter("activation_type", equals("CLIP")),
        source=f"{_ACTIVATION}: Clipped ReLU",
        remedy="Scale before and after, or use RELU where the bound is never reached",
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
