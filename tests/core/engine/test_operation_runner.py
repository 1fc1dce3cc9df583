"""An engine run one operation at a time gives what it gives as a whole."""

from __future__ import annotations

import numpy as np
import pytest

from dryfit.builder.config.enumerations import BuilderFlag
from dryfit.building import Builder
from dryfit.engine.engine import Engine
from dryfit.engine.operation_runner import OperationRunner
from dryfit.errors import ExecutionError
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.network import Network


def engine_of(network, *flags) -> Engine:
    builder = Builder()
    config = builder.create_builder_config()
    config.builder_optimization_level = 0
    for flag in flags:
        config.set_flag(flag)
    return builder.build_engine(network, config)


def quantized_network() -> Network:
    rng = np.random.default_rng(0)
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (1, 8, 6, 6))
    kernel = rng.standard_normal((16, 8, 3, 3)).astype(np.float32)
    y = network.add_activation(network.add_convolution_nd(x, 16, (3, 3), kernel).get_output(0), ActivationType.RELU)
    z = network.add_softmax(y.get_output(0))
    network.mark_output(z.get_output(0))
    for tensor in network.tensors:
        tensor.set_dynamic_range(-8.0, 8.0)
    return network


def whole_run(runner, feeds):
    arrays = {**runner.known, **feeds}
    for one in runner.operations:
        arrays |= runner.run(one, arrays)
    return arrays


def test_the_outputs_have_the_bits_of_a_context():
    engine = engine_of(quantized_network(), BuilderFlag.INT8, BuilderFlag.FP16)
    feeds = {"x": np.random.default_rng(1).standard_normal((1, 8, 6, 6)).astype(np.float32)}
    arrays = whole_run(OperationRunner(engine.plan, {"x": (1, 8, 6, 6)}, 1), feeds)
    for name, expected in engine.create_execution_context(1).run(feeds).items():
        assert arrays[name].tobytes() == expected.tobytes()
    assert {tensor.name for one in engine.plan.operations for tensor in _outputs(engine, one)} <= arrays.keys()


def _outputs(engine, operation):
    return engine.plan.network.layer(operation.layers[-1]).outputs


def test_an_operation_may_be_asked_again_with_other_inputs():
    engine = engine_of(quantized_network(), BuilderFlag.INT8)
    runner = OperationRunner(engine.plan, {"x": (1, 8, 6, 6)})
    feeds = {"x": np.ones((1, 8, 6, 6), np.float32)}
    first = runner.run(runner.operations[0], feeds)
    other = runner.run(runner.operations[0], {"x": -feeds["x"]})
    again = runner.run(runner.operations[0], feeds)
    (name,) = first
    assert first[name].tobytes() == again[name].tobytes() != other[name].tobytes()


def test_shapes_that_follow_from_the_data_are_found_in_the_run():
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (2, 3))
    places = network.add_non_zero(x).get_output(0)
    network.mark_output(places)
    engine = engine_of(network)
    feeds = {"x": np.array([[0, 1, 0], [2, 0, 3]], np.float32)}
    arrays = whole_run(OperationRunner(engine.plan, {"x": (2, 3)}), feeds)
    np.testing.assert_array_equal(arrays[places.name], [[0, 1, 1], [1, 0, 2]])


def test_a_missing_input_is_named():
    engine = engine_of(quantized_network())
    runner = OperationRunner(engine.plan, {"x": (1, 8, 6, 6)})
    with pytest.raises(ExecutionError, match=r"An input of the operation is missing.*x"):
        runner.run(runner.operations[0], {})


def test_an_input_of_another_type_is_refused():
    engine = engine_of(quantized_network())
    runner = OperationRunner(engine.plan, {"x": (1, 8, 6, 6)})
    with pytest.raises(ExecutionError, match="float64"):
        runner.run(runner.operations[0], {"x": np.ones((1, 8, 6, 6))})


def test_a_stripped_engine_is_refused():
    engine = engine_of(quantized_network(), BuilderFlag.STRIP_PLAN)
    with pytest.raises(ExecutionError, match="The engine has no weights"):
        OperationRunner(engine.plan, {"x": (1, 8, 6, 6)})
