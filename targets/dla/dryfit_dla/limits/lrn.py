"""Local response normalization on the DLA. It is always across channels here, as the DLA has it."""

from __future__ import annotations

from dryfit.network.data_types import DataType
from dryfit.target.checks import each, equals, one_of, parameter
from dryfit.target.limits import rule, rules
from dryfit_dla import quantities
from dryfit_dla.limits.documents import FALL_BACK, INT8, LAYERS, RESHAPE
from dryfit_dla.limits.promotion import runs_in_fp16

_LRN = f"{LAYERS}: LRN (Local Response Normalization) layer"

LRN = rules(
    "lrn",
    rule("lrn.window", parameter("window_size", one_of(3, 5, 7, 9)), source=_LRN, remedy=FALL_BACK),
    rule(
        "lrn.rank",
        each(quantities.ranks, equals(4)),
        source=f"{_LRN}: across the channels of images",
        fidelity="inferred",
        remedy=RESHAPE,
    ),
    rule(
        "lrn.int8_promotion",
        runs_in_fp16,
        precisions=INT8,
        source=_LRN,
        severity="note",
        promotes_to=DataType.HALF,
    ),
)
