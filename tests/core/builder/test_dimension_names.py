"""Dimensions of one name, from the profile to the run."""

import numpy as np
import pytest

from dryfit.building import Builder
from dryfit.engine.engine import Engine
from dryfit.errors import ConfigError, ExecutionError
from dryfit.network.data_types import DataType


def engine_of(x_range=(1, 2, 4), y_range=(1, 2, 4)):
    """Two inputs that share a dimension's name but meet nowhere."""
    builder = Builder()
    network, config = builder.create_network(), builder.create_builder_config()
    profile = builder.create_optimization_profile()
    for name, extents, axis in (("x", x_range, 0), ("y", y_range, 1)):
        declared = (-1, 3) if axis == 0 else (3, -1)
        tensor = network.add_input(name, DataType.FLOAT, declared)
        tensor.set_dimension_name(axis, "N")
        network.mark_output(network.add_identity(tensor).get_output(0))
        profile.set_shape(name, *(tuple(n if d < 0 else d for d in declared) for n in extents))
    config.add_optimization_profile(profile)
    return builder.build_engine(network, config)


@pytest.fixture(scope="module")
def engine():
    return engine_of()


def test_equal_extents_run(engine):
    outputs = engine.create_execution_context(1).run(np.ones((4, 3), np.float32), np.ones((3, 4), np.float32))
    assert [array.shape for array in outputs.values()] == [(4, 3), (3, 4)]


@pytest.mark.parametrize("is_loaded", [False, True])
def test_other_extents_are_refused_and_both_inputs_are_named(engine, is_loaded):
    context = (Engine.load(engine.serialize()) if is_loaded else engine).create_execution_context(1)
    with pytest.raises(ExecutionError, match="The dimension 'N' must have one extent in all inputs") as caught:
        context.run(np.ones((4, 3), np.float32), np.ones((3, 2), np.float32))
    assert caught.value.where == "axis 1 of input 'y'"
    assert caught.value.found == 2
    assert caught.value.allowed == "4, as axis 0 of input 'x' has it"


def test_shapes_are_not_inferred_from_extents_that_differ(engine):
    context = engine.create_execution_context(1)
    context.set_input_shape("x", (4, 3))
    context.set_input_shape("y", (3, 2))
    with pytest.raises(ExecutionError, match="'N'"):
        context.get_tensor_shape(engine.get_tensor_name(2))


def test_a_profile_with_other_ranges_for_one_name_is_refused():
    with pytest.raises(ConfigError, match="dimension 'N' is 1:2:4 in input 'x' and 1:2:8 in input 'y'"):
        engine_of(y_range=(1, 2, 8))
