"""Unsqueeze: shapes and refusals."""

from tests.core.network.layers.inferring import assert_refused, indices, known, shape_of, spec

from dryfit.network.layers.unsqueeze import Unsqueeze


def test_axes_are_those_of_the_output():
    assert shape_of(Unsqueeze(), spec(2, -1), known(0, -1)) == (1, 2, -1, 1)
    assert shape_of(Unsqueeze(), spec(2), known(2, 1)) == (2, 1, 1)
    assert shape_of(Unsqueeze(), spec(), known(0)) == (1,)


def test_what_does_not_fit_is_refused():
    assert_refused(Unsqueeze(), [spec(2), known(2)], "different axes", found=(2,), allowed="-2 to 1, each once")
    assert_refused(Unsqueeze(), [spec(2), known(0, 0)], "different axes", found=(0, 0))
    assert_refused(Unsqueeze(), [spec(2), indices(1)], "known at build time")
