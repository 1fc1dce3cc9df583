"""Fill: shapes and refusals."""

from tests.core.network.layers.inferring import assert_refused, indices, known, shape_of, spec

from dryfit.network.data_types import DataType
from dryfit.network.layers.fill import Fill, FillOperation
from dryfit.network.network import Network

LINSPACE, UNIFORM = FillOperation.LINSPACE, FillOperation.RANDOM_UNIFORM


def test_the_shape_is_the_parameter_or_the_input():
    assert shape_of(Fill(shape=(2,), operation=LINSPACE)) == (2,)
    assert shape_of(Fill(operation=UNIFORM), known(2, 3)) == (2, 3)
    assert shape_of(Fill(operation=UNIFORM), indices(2)) == (-1, -1)
    assert shape_of(Fill(shape=(2, 3), operation=LINSPACE), None, None, spec(2)) == (2, 3)


def test_what_does_not_fit_is_refused():
    assert_refused(Fill(shape=(-1,), operation=LINSPACE), [], "at least 0", found=(-1,))
    assert_refused(Fill(operation=LINSPACE), [known(-1)], "at least 0", found=(-1,))
    assert_refused(Fill(shape=(2,), operation=UNIFORM, to_type=DataType.INT32), [], "floating point", found="INT32")
    assert_refused(Fill(shape=(2,), operation=LINSPACE, to_type=DataType.BOOL), [], "numbers", found="BOOL")
    assert_refused(Fill(shape=(2, 3), operation=LINSPACE), [], "beta as input 2", found="rank 2")
    assert_refused(Fill(shape=(2, 3), operation=LINSPACE), [None, None, spec(3)], "wrong shape", found=(3,))
    assert_refused(Fill(shape=(2,), operation=UNIFORM), [None, spec(2)], "wrong shape", allowed="a scalar")
    typed = spec(dtype=DataType.HALF)
    assert_refused(Fill(shape=(2,), operation=UNIFORM), [None, typed], "has the output's type", found="HALF")


def test_the_builder_takes_tensorrts_arguments():
    network = Network()
    layer = network.add_fill((3,), LINSPACE, DataType.INT64)
    assert layer.is_alpha_beta_int64()
    assert (layer.alpha, layer.beta, layer.get_output(0).dtype) == (0, 1, DataType.INT64)
    assert not network.add_fill((3,), UNIFORM).is_alpha_beta_int64()
