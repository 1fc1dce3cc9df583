"""Non-zero: shapes and refusals."""

from tests.core.network.layers.inferring import assert_refused, shape_of, spec

from dryfit.network.data_types import DataType
from dryfit.network.layers.non_zero import NonZero
from dryfit.network.network import Network


def test_the_number_of_indices_depends_on_the_data():
    assert shape_of(NonZero(), spec(2, 3)) == (2, -1)
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (2,))
    assert network.add_non_zero(x).get_output(0).dtype is DataType.INT32
    assert network.add_non_zero(x, DataType.INT64).get_output(0).dtype is DataType.INT64


def test_indices_of_another_type_are_refused():
    assert_refused(NonZero(indices_type=DataType.INT8), [spec(2)], "INT32 or INT64", found="INT8")
