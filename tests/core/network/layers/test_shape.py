"""Shape: known where the input is static."""

from tests.core.network.layers.inferring import assert_refused, spec

from dryfit.network.data_types import DataType
from dryfit.network.layers.shape import ShapeLayer


def test_it_is_known_where_the_input_is_static():
    (output,) = ShapeLayer().infer_outputs([spec(2, 3)])
    assert (output.shape, output.dtype) == ((2,), DataType.INT64)
    assert output.value.tolist() == [2, 3]
    (output,) = ShapeLayer().infer_outputs([spec(2, -1)])
    assert (output.shape, output.value) == ((2,), None)
    (output,) = ShapeLayer().infer_outputs([spec()])
    assert output.value.shape == (0,)


def test_it_needs_its_input():
    assert_refused(ShapeLayer(), [], "Input 0 is not connected")
