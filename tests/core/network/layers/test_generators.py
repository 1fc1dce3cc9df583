"""Shapes, types and checks of constants, fills and shapes."""

from __future__ import annotations

import ml_dtypes
import numpy as np
from tests.core.network.layers.inferring import assert_refused, indices, known, shape_of, spec

from dryfit.network.data_types import DataType
from dryfit.network.layers.generators import Constant, Fill, FillOperation, ShapeLayer
from dryfit.network.network import Network


def test_its_value_is_known_and_no_copy():
    weights = np.arange(6).astype(ml_dtypes.float8_e4m3fn)
    layer = Network().add_constant((2, 3), weights)
    output = layer.get_output(0).spec
    assert (output.shape, output.dtype) == ((2, 3), DataType.FP8)
    assert np.shares_memory(output.value, weights)


def test_a_scalar_is_an_array_without_axes():
    output = Network().add_constant((), np.float32(2)).get_output(0).spec
    assert (output.shape, output.dtype, float(output.value)) == ((), DataType.FLOAT, 2)


def test_what_does_not_fit_is_refused_for_constant():
    weights = np.zeros(6, np.float32)
    assert_refused(Constant(shape=(2, 2), weights=weights), [], "as many elements", found="(2, 2) for 6 weights")
    assert_refused(Constant(shape=(-2, -3), weights=weights), [], "as many elements")
    assert_refused(Constant(shape=(6,), weights=weights), [spec(1)], "A constant layer must not have inputs")


LINSPACE, UNIFORM = FillOperation.LINSPACE, FillOperation.RANDOM_UNIFORM


def test_the_shape_is_the_parameter_or_the_input():
    assert shape_of(Fill(shape=(2,), operation=LINSPACE)) == (2,)
    assert shape_of(Fill(operation=UNIFORM), known(2, 3)) == (2, 3)
    assert shape_of(Fill(operation=UNIFORM), indices(2)) == (-1, -1)
    assert shape_of(Fill(shape=(2, 3), operation=LINSPACE), None, None, spec(2)) == (2, 3)


def test_what_does_not_fit_is_refused_for_fill():
    assert_refused(Fill(shape=(-1,), operation=LINSPACE), [], "at least 0", found=(-1,))
    assert_refused(Fill(operation=LINSPACE), [known(-1)], "at least 0", found=(-1,))
    assert_refused(Fill(shape=(2,), operation=UNIFORM, to_type=DataType.INT32), [], "floating point", found="INT32")
    assert_refused(
        Fill(shape=(2,), operation=LINSPACE, to_type=DataType.BOOL),
        [],
        "The output type of LINSPACE must be numeric",
        found="BOOL",
    )
    assert_refused(Fill(shape=(2, 3), operation=LINSPACE), [], "beta as input 2", found="rank 2")
    assert_refused(Fill(shape=(2, 3), operation=LINSPACE), [None, None, spec(3)], "wrong shape", found=(3,))
    assert_refused(Fill(shape=(2,), operation=UNIFORM), [None, spec(2)], "wrong shape", allowed="a scalar")
    typed = spec(dtype=DataType.HALF)
    assert_refused(
        Fill(shape=(2,), operation=UNIFORM),
        [None, typed],
        "Input 1 (alpha) must have the type of the output",
        found="FP16",
    )


def test_the_builder_takes_tensorrts_arguments():
    network = Network()
    layer = network.add_fill((3,), LINSPACE, DataType.INT64)
    assert layer.is_alpha_beta_int64()
    assert (layer.alpha, layer.beta, layer.get_output(0).dtype) == (0, 1, DataType.INT64)
    assert not network.add_fill((3,), UNIFORM).is_alpha_beta_int64()


def test_shape_is_known_where_the_input_is_static():
    (output,) = ShapeLayer().infer_outputs([spec(2, 3)])
    assert (output.shape, output.dtype) == ((2,), DataType.INT64)
    assert output.value.tolist() == [2, 3]
    (output,) = ShapeLayer().infer_outputs([spec(2, -1)])
    assert (output.shape, output.value) == ((2,), None)
    (output,) = ShapeLayer().infer_outputs([spec()])
    assert output.value.shape == (0,)


def test_shape_needs_its_input():
    assert_refused(ShapeLayer(), [], "Input 0 is not connected")
