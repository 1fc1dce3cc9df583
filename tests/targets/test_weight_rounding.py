"""How devices round the weights that the builder quantizes, by software version."""

from __future__ import annotations

import pytest

from dryfit.network.data_types import DataType
from dryfit.plugins import registry
from dryfit.quantization.rounding import RoundingMode
from dryfit.target.arithmetic import Arithmetic, weight_rounding

EVEN, UP, AWAY = RoundingMode.HALF_TO_EVEN, RoundingMode.HALF_UP, RoundingMode.HALF_AWAY_FROM_ZERO


@pytest.mark.parametrize(
    ("device", "software", "expected"),
    [
        ("GPU", (), UP),
        ("DLA", (8, 2), AWAY),
        ("DLA", (8, 6, 12), AWAY),
        ("DLA", (10, 3), AWAY),
        ("DLA", (10, 8), EVEN),
        ("DLA", (10, 16), EVEN),
        ("DLA", (), EVEN),
    ],
)
def test_weights_are_rounded_as_the_guide_of_the_version_says(device, software, expected):
    assert weight_rounding(registry.target(device).arithmetic, DataType.INT8, software) is expected


def test_weights_are_rounded_as_results_where_nothing_else_is_declared():
    record = Arithmetic(DataType.INT8, DataType.INT32, "group", EVEN, "inferred", "a test", {(1,): AWAY, (2,): EVEN})
    assert [record.weight_rounding_for(version) for version in ((1, 5), (2, 0), ())] == [AWAY, EVEN, EVEN]


def test_a_device_that_declares_no_int8_has_weights_rounded_to_even():
    assert weight_rounding({}, DataType.INT8, (10, 0)) is EVEN
