import numpy as np
import pytest

from dryfit.errors import PluginError
from dryfit.target.cost import CostEstimate, Energy, StepCost

FACTS = {"microseconds": 12.5, "bytes_moved": 4096, "macs": 1000, "basis": "bytes by bandwidth", "source": "manual, 3"}


def test_an_estimate_says_that_it_is_inferred_where_nothing_else_is_said():
    assert CostEstimate(**FACTS).fidelity == "inferred"


def test_a_time_need_not_be_estimated():
    assert CostEstimate(**{**FACTS, "microseconds": None}).microseconds is None


def test_counts_of_numpy_are_plain_numbers_afterwards():
    found = CostEstimate(np.float32(2), np.int64(3), np.uint8(4), "a rate", "manual")
    assert [type(one) for one in (found.microseconds, found.bytes_moved, found.macs)] == [float, int, int]


def test_a_count_that_is_no_whole_number_is_refused():
    with pytest.raises(TypeError):
        CostEstimate(**FACTS | {"macs": 1.5})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"microseconds": -1.0}, "-1.0 microseconds"),
        ({"microseconds": float("nan")}, "nan microseconds"),
        ({"microseconds": float("inf")}, "inf microseconds"),
        ({"bytes_moved": -1}, "-1 bytes"),
        ({"macs": -1}, "-1 multiply-accumulates"),
        ({"basis": ""}, "no basis"),
        ({"fidelity": "certain"}, "certain"),
    ],
)
def test_what_no_estimate_can_be_is_refused_with_the_value(change, message):
    with pytest.raises(PluginError) as caught:
        CostEstimate(**FACTS | change)
    assert message in caught.value.found


@pytest.mark.parametrize(
    ("change", "message"),
    [({"amount": -1}, "-1.0 joules"), ({"amount": float("nan")}, "nan joules"), ({"basis": ""}, "no basis")],
)
def test_what_no_energy_can_be_is_refused_with_the_value(change, message):
    with pytest.raises(PluginError) as caught:
        Energy(**{"amount": 1.0, "basis": "stated", "source": "Acme manual"} | change)
    assert message in caught.value.found


def test_the_energy_of_a_device_s_work_is_told_in_that_work_and_in_no_joules():
    found = Energy.of_work(3, "stated", "Acme manual", device="ACME", board="one", mode="MAXN")
    assert (found.amount, found.unit) == (3.0, "ACME us of one in MAXN")


def step(compute, memory, overhead, *, overlaps=False):
    return StepCost(["one"], compute, memory, overhead, cycles=1, bytes_moved=2, macs=3, overlaps=overlaps)


@pytest.mark.parametrize(
    ("times", "bound"),
    [
        ((3, 2, 1), "compute"),
        ((2, 3, 1), "memory"),
        ((1, 2, 3), "overhead"),
        ((2, 2, 2), "compute"),
        ((0, 1, 1), "memory"),
    ],
)
def test_a_step_is_bound_by_what_takes_most_of_its_time(times, bound):
    assert step(*times).bound == bound


def test_arithmetic_and_memory_are_added_unless_they_overlap():
    assert step(3, 2, 1).microseconds == 6
    assert step(3, 2, 1, overlaps=True).microseconds == 4


@pytest.mark.parametrize("times", [(-1, 0, 0), (0, float("nan"), 0), (0, 0, float("inf"))])
def test_a_step_takes_no_time_that_no_step_can_take(times):
    with pytest.raises(PluginError):
        step(*times)


def test_an_estimate_says_nothing_of_energy_and_steps_where_nothing_is_known():
    found = CostEstimate(**FACTS)
    assert (found.energy, found.steps) == (None, ())
