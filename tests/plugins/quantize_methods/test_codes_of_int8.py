"""Caffe2's rules for INT8: the codes of the same numbers in UINT8, 128 lower."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

from dryfit.network.data_types import DataType
from dryfit.plugins.quantize_methods import quantize_method
from dryfit.testing.operator_cases.case_table import trial_cases

CAFFE2 = quantize_method("caffe2")
OPERATORS = sorted({rule.operator for rule in CAFFE2.rules})


def lower(array):
    """UINT8 codes as the INT8 ones 128 lower; other numbers as they are."""
    return array if array is None or array.dtype != np.uint8 else (array ^ np.uint8(128)).view(np.int8)


def of_int8(case):
    """The case of the same numbers in INT8."""
    layer = case.layer
    *zero_points, output = (
        None if zero_point is None else np.asarray(zero_point - 128, np.int32)
        for zero_point in (*layer.zero_points, layer.output_zero_point)
    )
    to_type = DataType.INT8 if layer.to_type is DataType.UINT8 else layer.to_type
    moved = attrs.evolve(layer, zero_points=tuple(zero_points), output_zero_point=output, to_type=to_type)
    return attrs.evolve(case, layer=moved, inputs=tuple(map(lower, case.inputs)))


@pytest.mark.parametrize("operator", OPERATORS)
def test_int8_codes_are_those_of_the_same_numbers_in_uint8(operator):
    cases = [case for case in trial_cases(operator, "caffe2", count=2, seed=7) if takes(case)]
    assert cases
    for case in cases:
        other = of_int8(case)
        (expected,), (found,) = (CAFFE2.evaluate(one.layer, one.inputs) for one in (case, other))
        assert found.dtype == other.layer.to_type.numpy
        np.testing.assert_array_equal(found, lower(expected))
        assert CAFFE2.rule_for(other.call).fidelity == "inferred"


def takes(case):
    """Whether a case is one of the rules'."""
    return any(
        rule.serves(case.call) and all(one.holds(case.call) for one in rule.requirements) for rule in CAFFE2.rules
    )
