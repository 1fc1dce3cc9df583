"""Slice: shapes and refusals."""

import pytest
from tests.core.network.layers.inferring import assert_refused, indices, known, scalar, shape_of, spec

from dryfit.errors import UnfinishedLayerError
from dryfit.network.data_types import DataType
from dryfit.network.layers.slice import SampleMode, Slice
from dryfit.network.network import Network


def test_the_shape_is_as_asked_and_other_axes_are_whole():
    assert shape_of(Slice(start=(0, 1), shape=(1, 2), stride=(1, 1)), spec(-1, 3)) == (1, 2)
    assert shape_of(Slice(start=(1,), shape=(2,), stride=(1,), axes=(-1,)), spec(-1, 3)) == (-1, 2)


def test_bounds_that_are_inputs_win_and_may_be_unknown():
    layer = Slice(start=(0,), shape=(1,), stride=(1,))
    assert shape_of(layer, spec(5), known(1), known(3), known(1)) == (3,)
    assert shape_of(layer, spec(5), None, indices(1)) == (-1,)
    assert shape_of(Slice(), spec(5, 6), indices(1), known(3), known(1), None, known(1)) == (5, 3)
    assert shape_of(Slice(), spec(5, 6), indices(1), known(3), known(1), None, indices(1)) == (-1, -1)


@pytest.mark.parametrize(
    ("start", "shape", "stride", "found"),
    [(3, 3, 1, "elements 3 to 5"), (-1, 1, 1, "elements -1 to -1"), (1, 3, -1, "elements 1 to -1"), (5, 1, 0, None)],
)
def test_strict_bounds_are_kept_and_other_modes_go_past_them(start, shape, stride, found):
    layer = Slice(start=(start,), shape=(shape,), stride=(stride,))
    facts = {"found": found} if found else {}
    assert_refused(layer, [spec(5)], "The slice must stay inside axis 0 of the input", allowed="0 to 4", **facts)
    assert shape_of(Slice(start=(start,), shape=(0,), stride=(stride,)), spec(5)) == (0,)
    layer.mode = SampleMode.FILL
    assert shape_of(layer, spec(5)) == (shape,)


def test_what_does_not_fit_is_refused():
    good = {"start": (0,), "shape": (1,), "stride": (1,)}
    assert_refused(Slice(**good), [spec(2, 3)], "`start` must have one value per axis", found=(0,), allowed="2 values")
    assert_refused(Slice(**good, axes=(2,)), [spec(2, 3)], "The axes must be distinct axes of the tensor", found=(2,))
    assert_refused(
        Slice(**good, axes=(1, -1)), [spec(2, 3)], "The axes must be distinct axes of the tensor", found=(1, -1)
    )
    assert_refused(Slice(**good | {"shape": (-1,)}), [spec(3)], "`shape` must not have negative values", found=(-1,))
    assert_refused(
        Slice(**good),
        [spec(3), None, None, None, scalar(1)],
        "All inputs must have the same type",
        found="FP32 and INT64",
    )
    assert_refused(Slice(**good), [spec(3), None, None, None, spec(2)], "scalar", found=(2,))


def test_bounds_and_axes_may_be_set_after_the_layer_was_added():
    network = Network()
    layer = network.add_slice(network.add_input("x", DataType.FLOAT, (4, 5)), (), (), ())
    with pytest.raises(UnfinishedLayerError, match="Set `start`, or connect input 1"):
        layer.get_output(0).spec  # noqa: B018
    layer.axes, layer.start, layer.shape, layer.stride = (1,), (-2,), (3,), (1,)
    layer.mode = SampleMode.WRAP
    assert layer.get_output(0).shape == (4, 3)
