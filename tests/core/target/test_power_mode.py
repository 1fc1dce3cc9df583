import pytest

from dryfit.errors import PluginError, UnknownNameError
from dryfit.target.power_mode import PowerMode
from dryfit.target.target import Platform

FAST, SLOW = PowerMode("MAXN", 2e9, 3e9), PowerMode("15W", 1e9, 2e9, aliases=["low"])
BOARD = Platform("board", "family", "Board", power_modes=[FAST, SLOW])


def test_the_first_power_mode_is_the_default():
    assert BOARD.power_mode(None) is FAST


@pytest.mark.parametrize("name", ["15W", "15w", "LOW"])
def test_a_power_mode_is_found_by_name_and_alias_in_any_case(name):
    assert BOARD.power_mode(name) is SLOW


def test_a_platform_may_state_none():
    assert Platform("bare", "family", "Bare").power_mode(None) is None


def test_an_unknown_power_mode_is_told_with_those_that_exist():
    with pytest.raises(UnknownNameError, match=r"power mode of board: '51W'.*15W, MAXN"):
        BOARD.power_mode("51W")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"clock_hz": 0}, "clock_hz=0"),
        ({"memory_clock_hz": -1.0}, "memory_clock_hz=-1.0"),
        ({"clock_hz": float("nan")}, "clock_hz=nan"),
        ({"fidelity": "certain"}, "certain"),
    ],
)
def test_what_no_power_mode_can_be_is_refused_with_the_value(change, message):
    with pytest.raises(PluginError) as caught:
        PowerMode(**{"name": "any", "clock_hz": 1.0, "memory_clock_hz": 1.0} | change)
    assert message in caught.value.found
