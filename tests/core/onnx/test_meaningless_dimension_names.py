"""Dimensions that an exporter called by a name that means nothing are independent of each other."""

import logging

import numpy as np
import onnx.parser
import pytest

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.building import Builder
from dryfit.errors import ConfigError
from dryfit.onnx.parser import network_from_onnx


def parsed(name, second=None):
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[A,3,B,B] x) => (float[A,3,B,B] y) { y = Relu(x) }'
    )
    for value in (*model.graph.input, *model.graph.output):
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            if dim.dim_param:
                dim.dim_param = name if axis == 0 or second is None else second
    return model


@pytest.mark.parametrize("name", ["?", "None", "-1", "*", "unk"])
def test_such_a_name_is_none_and_each_dimension_has_its_own_extent(name, caplog):
    with caplog.at_level(logging.WARNING, "dryfit"):
        network = network_from_onnx(parsed(name).SerializeToString())
    assert network.inputs[0].dimension_names == {}
    assert repr(name) in caplog.text
    assert "independent" in caplog.text
    config = BuilderConfig()
    profile = Builder().create_optimization_profile()
    profile.set_shape("x", (1, 3, 4, 6), (1, 3, 4, 6), (2, 3, 8, 6))
    config.add_optimization_profile(profile)
    engine = Builder().build_engine(network, config)
    (y,) = engine.create_execution_context(1).run({"x": np.full((2, 3, 4, 6), -1, np.float32)}).values()
    assert y.shape == (2, 3, 4, 6)


def test_other_names_stay(caplog):
    network = network_from_onnx(parsed("batch", "size").SerializeToString())
    assert network.inputs[0].dimension_names == {0: "batch", 2: "size", 3: "size"}
    assert not caplog.text


def test_two_extents_of_one_name_are_refused_with_the_option_of_the_command_line():
    network = network_from_onnx(parsed("batch", "size").SerializeToString())
    config = BuilderConfig()
    profile = Builder().create_optimization_profile()
    profile.set_shape("x", (1, 3, 4, 6), (1, 3, 4, 6), (2, 3, 8, 6))
    config.add_optimization_profile(profile)
    with pytest.raises(ConfigError, match="--shape") as caught:
        Builder().build_engine(network, config)
    assert "'size'" in str(caught.value)
