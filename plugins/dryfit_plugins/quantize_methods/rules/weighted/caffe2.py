"""Caffe2's Int8 operators on QNNPACK: UINT8 with one scale a tensor."""

from __future__ import annotations

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.quantization.methods.call import OperatorCall
from dryfit.quantization.methods.conditions import INTEGER_BIAS, both, float_multipliers, has_one_matrix, has_one_type
from dryfit.quantization.methods.definitions.real_numbers import in_real_numbers
from dryfit.quantization.methods.definitions.weighted import weighted
from dryfit.quantization.methods.method import MethodRule, Requirement
from dryfit_plugins.quantize_methods.rules.weighted.records import FF2, REAL_FLOAT, formula_of

_CAFFE2 = "Caffe2 in torch 1.10.2 (QNNPACK)"
_UINT8 = frozenset({DataType.UINT8})
_COUNTS = {
    "convolution": "Int8Conv and Int8ConvRelu: 76,800 with ties and 365,456 others, depthwise 76,800 and 183,296, "
    "groups 180,568",
    "deconvolution": "Int8ConvTranspose: 76,800 with ties, 34,649 others",
    "inner_product": "Int8FC: 76,800 with ties, 20,590 others",
}


def _has_multiplier_below_one(call: OperatorCall) -> bool:
    found = float_multipliers(call)
    return bool(np.all((found >= 2.0**-32) & (found < 1)))


_BELOW_ONE = Requirement(text="the multiplier is below 1, and 2**-32 or more", holds=_has_multiplier_below_one)

CAFFE2 = (
    *(
        MethodRule(
            operator=operator,
            definition=weighted,
            requantization=FF2,
            types=_UINT8,
            per_channel=False,
            case=both(has_one_type, has_one_matrix),
            case_text="weights and output of UINT8",
            requirements=(INTEGER_BIAS, _BELOW_ONE),
            formula=formula_of(FF2),
            fidelity="confirmed",
            source=f"{_CAFFE2}, {counts}; 0 differ",
        )
        for operator, counts in _COUNTS.items()
    ),
    MethodRule(
        operator="requantize",
        definition=in_real_numbers,
        requantization=REAL_FLOAT,
        types=_UINT8,
        case=has_one_type,
        case_text="to UINT8",
        formula="clamp(round_half_to_even(f32(f32(sx * (x - zx)) / sy)) + zy)",
        fidelity="confirmed",
        source=f"{_CAFFE2}, Int8Dequantize and Int8Quantize, one after the other: 409,600 each; 0 differ",
    ),
)
