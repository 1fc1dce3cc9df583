"""Networks whose inputs carry dimensions, from the profile to the run."""

import numpy as np
import pytest

from dryfit.building import Builder
from dryfit.engine.engine import Engine
from dryfit.errors import ConfigError, ExecutionError
from dryfit.network.data_types import DataType
from dryfit.network.tensor import TensorLocation


def reshape_network(builder):
    """x[4, 6] reshaped to what `sizes` says."""
    network = builder.create_network()
    x, sizes = network.add_input("x", DataType.FLOAT, (4, 6)), network.add_input("sizes", DataType.INT64, (2,))
    shuffle = network.add_shuffle(x)
    shuffle.set_input(1, sizes)
    network.mark_output(shuffle.get_output(0))
    return network


def built(*profiles):
    builder = Builder()
    config = builder.create_builder_config()
    for values in profiles:
        profile = builder.create_optimization_profile()
        profile.set_shape("x", (4, 6), (4, 6), (4, 6))
        if values:
            profile.set_shape_input("sizes", *values)
        config.add_optimization_profile(profile)
    return builder.build_engine(reshape_network(builder), config)


RANGE = ((2, 3), (4, 6), (8, 12))
X = np.arange(24, dtype=np.float32).reshape(4, 6)


@pytest.fixture(scope="module")
def engine():
    return built(RANGE, ((24, 1), (24, 1), (24, 1)))


@pytest.mark.parametrize("sizes", [(8, 3), (4, 6), (2, 12)])
def test_values_within_the_range_run(engine, sizes):
    (y,) = engine.create_execution_context(1).run({"x": X, "sizes": np.array(sizes)}).values()
    assert np.array_equal(y, X.reshape(sizes))


@pytest.mark.parametrize("sizes", [(1, 24), (24, 1), (12, 2), (-1, 6)])
def test_values_outside_the_range_are_refused_with_the_range(engine, sizes):
    with pytest.raises(ExecutionError, match=r"allowed: \(2 to 8, 3 to 12\)") as caught:
        engine.create_execution_context(1).run({"x": X, "sizes": np.array(sizes)})
    assert caught.value.where == "input 'sizes'"
    assert caught.value.found == sizes
    assert "set_shape_input" in caught.value.remedy


def test_the_range_is_that_of_the_active_profile(engine):
    context = engine.create_execution_context(1)
    context.set_optimization_profile(1)
    (y,) = context.run({"x": X, "sizes": np.array([24, 1])}).values()
    assert y.shape == (24, 1)
    with pytest.raises(ExecutionError, match=r"allowed: \(24, 1\)"):
        context.run({"x": X, "sizes": np.array([4, 6])})


def test_an_engine_file_keeps_the_range(engine):
    again = Engine.load(engine.serialize())
    assert again.get_tensor_profile_values(0, "sizes") == list(RANGE)
    assert again.get_tensor_profile_values(1, "x") == []
    assert again.is_shape_inference_io("sizes")
    assert again.get_tensor_location("sizes") is TensorLocation.HOST
    assert again.get_tensor_location("x") is TensorLocation.DEVICE
    with pytest.raises(ExecutionError, match=r"2 to 8"):
        again.create_execution_context(1).run({"x": X, "sizes": np.array([1, 24])})


@pytest.mark.parametrize("profiles", [(), (None,), (RANGE, None)])
def test_a_build_without_values_says_what_to_call(profiles):
    with pytest.raises(ConfigError, match="set_shape_input") as caught:
        built(*profiles)
    assert "'sizes' INT64 (2,)" in caught.value.found


def test_values_that_do_not_fit_the_input_are_refused():
    with pytest.raises(ConfigError, match=r"'sizes' has the shape \(2,\), but the profile has 3 values"):
        built(((1, 1, 1),) * 3)
    builder = Builder()
    profile = builder.create_optimization_profile()
    profile.set_shape_input("x", (1,), (1,), (1,))
    with pytest.raises(ConfigError, match="input 'x' is FP32"):
        profile.check(reshape_network(builder))


def test_a_profile_keeps_the_empty_axes_of_an_input():
    builder = Builder()
    network = builder.create_network()
    x, sizes = network.add_input("x", DataType.FLOAT, (2, 0, 3)), network.add_input("sizes", DataType.INT64, (3,))
    shuffle = network.add_shuffle(x)
    shuffle.set_input(1, sizes)
    shuffle.zero_is_placeholder = False
    network.mark_output(shuffle.get_output(0))
    config = builder.create_builder_config()
    profile = builder.create_optimization_profile()
    profile.set_shape("x", (2, 0, 3), (2, 0, 3), (2, 0, 3))
    profile.set_shape_input("sizes", (1, 0, 1), (2, 0, 3), (4, 0, 4))
    config.add_optimization_profile(profile)
    engine = builder.build_engine(network, config)
    x_values, sizes_values = np.zeros((2, 0, 3), np.float32), np.array([4, 0, 2])
    (y,) = engine.create_execution_context(1).run({"x": x_values, "sizes": sizes_values}).values()
    assert y.shape == (4, 0, 2)
