"""What an engine leaves out because a kernel packed it is never read as a value."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import dryfit
from dryfit.engine.engine import Engine
from dryfit.errors import EngineFileError
from dryfit.network.layers.generators import Constant
from dryfit.network.network import Network
from dryfit.network.packed_elements import is_stand_in, stand_in
from dryfit.reference.executor import run_reference

SAMPLE = {"x": np.float32([[0.5]])}


def weights_by_themselves(dtype: type, *, is_quantized: bool) -> Network:
    """A product of dequantized weights and the same weights, and a sum with the input."""
    network = Network("gram")
    x = network.add_input("x", dryfit.DataType.FLOAT, (1, 1))
    codes = np.random.default_rng(0).integers(-7, 8, (32, 32)).astype(np.float32).astype(dtype)
    scale, step = (network.add_constant((), np.array(value, np.float32)).get_output(0) for value in (0.05, 0.25))
    constant = network.add_constant(codes.shape, codes)
    real = network.add_dequantize(constant.get_output(0), scale).get_output(0)
    none, transposed = dryfit.MatrixOperation.NONE, dryfit.MatrixOperation.TRANSPOSE
    value = network.add_matrix_multiply(real, none, real, transposed).get_output(0)
    if is_quantized:
        value = network.add_dequantize(network.add_quantize(value, step).get_output(0), step).get_output(0)
    network.mark_output(network.add_elementwise(value, x, dryfit.ElementWiseOperation.SUM).get_output(0))
    return network


@pytest.fixture(params=[(np.int8, True), (ml_dtypes.float8_e4m3fn, False), (ml_dtypes.int4, False)], ids=str)
def network(request: pytest.FixtureRequest) -> Network:
    dtype, is_quantized = request.param
    return weights_by_themselves(dtype, is_quantized=is_quantized)


def test_weights_that_are_multiplied_by_themselves_are_kept_as_values(network: Network) -> None:
    (expected,) = run_reference(network, SAMPLE).values()
    (actual,) = (
        dryfit.Builder().build_engine(network, dryfit.BuilderConfig()).create_execution_context().run(SAMPLE).values()
    )
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


def test_an_engine_that_leaves_out_a_constant_that_is_read_as_a_value_is_refused(network: Network) -> None:
    plan = dryfit.Builder().build_engine(network, dryfit.BuilderConfig()).plan
    codes = next(one for one in plan.network.layers if isinstance(one, Constant) and one.weights.size == 32 * 32)
    assert not is_stand_in(codes.weights)
    codes.weights = stand_in(codes.outputs[0].dtype, codes.outputs[0].shape)
    with pytest.raises(EngineFileError, match=r"only leave out parameters that its kernel packs.*constant"):
        Engine(plan).create_execution_context()
