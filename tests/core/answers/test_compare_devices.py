"""One model on several devices: operators, rules and estimates side by side."""

from __future__ import annotations

import pytest

import dryfit
from dryfit.errors import ConfigError, UnknownNameError


@pytest.fixture(scope="module")
def network() -> dryfit.Network:
    """A pooling, an ELU, which the DLA lacks, and a ReLU."""
    made = dryfit.Network("three")
    x = made.add_input("x", dryfit.DataType.FLOAT, (1, 4, 8, 8))
    pooled = made.add_pooling_nd(x, dryfit.PoolingType.MAX, (2, 2))
    pooled.name, pooled.stride_nd = "pool", (2, 2)
    for name, kind in (("elu", dryfit.ActivationType.ELU), ("relu", dryfit.ActivationType.RELU)):
        pooled = made.add_activation(pooled.get_output(0), kind)
        pooled.name = name
    made.mark_output(pooled.get_output(0))
    return made


def test_each_device_says_what_it_makes_of_each_operator(network):
    answer = dryfit.compare_devices(network, ["dla", "cpu"], precision="fp16")
    assert [one.operator for one in answer.operators] == ["pool", "elu", "relu"]
    assert [one.differs for one in answer.operators] == [False, True, False]
    elu = answer.operators[1]
    assert elu.rules == {"dla": ["dla.activation.type"], "cpu": []}
    assert "found ELU" in elu.messages["dla"][0]
    assert [(one.name, one.device, one.operators, one.fallback) for one in answer.sides] == [
        ("dla", "DLA", 2, "CPU"),
        ("cpu", "CPU", 3, None),
    ]
    assert all(one.can_be_built and one.latency_microseconds > 0 and one.basis for one in answer.sides)
    assert answer.summary_line() == "2 of 3 on dla, 3 of 3 on cpu"


def test_a_side_may_name_a_platform_or_a_version(network):
    answer = dryfit.compare_devices(network, ["dla@xavier", "dla@8.6"], precision="fp16")
    assert answer.sides[0].platform == "agx-xavier"
    assert answer.sides[1].software == "8.6"
    with pytest.raises(UnknownNameError, match="platform"):
        dryfit.compare_devices(network, ["dla@mars"], precision="fp16")


def test_sides_are_given_once_and_without_a_device_beside_them(network):
    with pytest.raises(ConfigError, match="listed once"):
        dryfit.compare_devices(network, ["cpu", "CPU"])
    with pytest.raises(ConfigError, match="must be part of a compared side"):
        dryfit.compare_devices(network, ["cpu"], device="DLA")
