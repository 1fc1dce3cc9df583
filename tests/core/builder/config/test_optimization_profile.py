import pytest

from dryfit.builder.config.optimization_profile import OptimizationProfile
from dryfit.errors import ConfigError
from dryfit.network.data_types import DataType
from dryfit.network.network import Network


def profile(**shapes):
    made = OptimizationProfile()
    for name, triple in shapes.items():
        made.set_shape(name, *triple)
    return made


def test_shapes_are_given_back_as_they_were_stated():
    made = profile(x=((1, 3), (2, 3), (4, 3)))
    assert made.get_shape("x") == [(1, 3), (2, 3), (4, 3)]
    assert made.get_shape("y") == []
    made.set_shape_input("n", [0, -1], [1, 1], [2, 2])
    assert made.get_shape_input("n") == [(0, -1), (1, 1), (2, 2)]
    assert made.get_shape_input("x") == []


def test_a_profile_is_true_once_it_states_something():
    assert not OptimizationProfile()
    assert profile(x=((1,), (1,), (1,)))


@pytest.mark.parametrize(
    "triple",
    [
        ((2, 3), (1, 3), (4, 3)),
        ((1, 3), (5, 3), (4, 3)),
        ((1, 3), (1, 3, 3), (4, 3)),
        ((-1, 3), (1, 3), (4, 3)),
    ],
)
def test_shapes_out_of_order_of_other_ranks_or_negative_are_refused(triple):
    with pytest.raises(ConfigError, match="minimum <= optimum <= maximum") as error:
        profile(x=triple)
    assert error.value.where == "input 'x'"
    assert str(triple[1]) in error.value.found


def test_fixed_shapes_are_those_with_one_extent_throughout():
    made = profile(a=((1, 3), (1, 3), (1, 3)), b=((1, 3), (2, 3), (2, 3)))
    assert made.fixed_shapes == {"a": (1, 3)}
    assert not made.is_fixed
    assert profile(a=((1, 3), (1, 3), (1, 3))).is_fixed


def network():
    made = Network("net")
    made.add_input("x", DataType.FLOAT, (-1, 3))
    made.add_input("y", DataType.FLOAT, (2, 3))
    return made


def test_a_profile_that_fits_passes():
    profile(x=((1, 3), (2, 3), (4, 3))).check(network())


def test_everything_that_does_not_fit_is_told_at_once():
    with pytest.raises(ConfigError, match="must match the network") as error:
        profile(z=((1,), (1,), (1,)), y=((2, 3), (2, 3), (2, 4))).check(network())
    assert "no input 'z'" in error.value.found
    assert "input 'x' is dynamic, (-1, 3), and needs shapes" in error.value.found
    assert "input 'y' is declared as (2, 3), but the profile has (2, 4)" in error.value.found


def test_a_shape_of_another_rank_does_not_fit():
    with pytest.raises(ConfigError, match="but the profile has"):
        profile(x=((1, 3, 1), (1, 3, 1), (1, 3, 1))).check(network())
