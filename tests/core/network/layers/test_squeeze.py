"""Squeeze: shapes and refusals."""

from tests.core.network.layers.inferring import assert_refused, indices, known, shape_of, spec

from dryfit.network.layers.squeeze import Squeeze


def test_the_named_axes_are_gone():
    assert shape_of(Squeeze(), spec(1, 2, 1), known(0, -1)) == (2,)
    assert shape_of(Squeeze(), spec(-1, 2), known(0)) == (2,)
    assert shape_of(Squeeze(), spec(1, 2), known()) == (1, 2)


def test_what_does_not_fit_is_refused():
    assert_refused(Squeeze(), [spec(1, 2), known(1)], "extent 1", found="axes (1,) of (1, 2)")
    assert_refused(Squeeze(), [spec(1, 2), known(0, -2)], "different axes", found=(0, -2), allowed="-2 to 1, each once")
    assert_refused(Squeeze(), [spec(1, 2), known(2)], "different axes", found=(2,))
    assert_refused(Squeeze(), [spec(1, 2), indices(1)], "known at build time")
    assert_refused(Squeeze(), [spec(1, 2)], "Input 1 is not connected")
