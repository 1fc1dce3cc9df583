"""The inspector's text and JSON."""

from __future__ import annotations

import json

import attrs
import numpy as np
import pytest
from tests.core.engine.hand_built import plan_of
from tests.core.engine.small_networks import convolution_network

from dryfit.engine.engine import Engine
from dryfit.engine.inspector import LayerInformationFormat
from dryfit.errors import ExecutionError


@pytest.fixture
def engine():
    profile = {"x": ((1, 3, 8, 8), (2, 3, 8, 8), (4, 3, 8, 8))}
    plan = plan_of(convolution_network(), groups=[("conv", "relu")], profiles=[profile])
    operation = attrs.evolve(
        plan.operations[0], onnx_nodes=("Conv_0", "Relu_1"), weights={"w": np.zeros(7, np.float16)}
    )
    return Engine(attrs.evolve(plan, operations=[operation]))


def test_the_json_has_tensorrt_keys_and_our_own(engine):
    information = json.loads(engine.create_engine_inspector().get_engine_information("json"))
    assert information["Bindings"] == ["x", "y"]
    (layer,) = information["Layers"]
    assert layer == json.loads(engine.create_engine_inspector().get_layer_information(0, LayerInformationFormat.JSON))
    expected = {
        "Name": "conv + relu",
        "LayerType": "Convolution",
        "ParameterType": "CONVOLUTION",
        "Kernel": [3, 3],
        "OutMaps": 4,
        "Stride": [1, 1],
        "Dilation": [1, 1],
        "PrePadding": [1, 1],
        "PostPadding": [1, 1],
        "Groups": 1,
        "Fused": ["ACTIVATION"],
        "TacticName": "cpu.reference",
        "Metadata": "[ONNX Layer: Conv_0]\x1e[ONNX Layer: Relu_1]",
        "Device": "GPU",
        "Segment": 0,
        "Precision": "FLOAT",
        "MultiplyAccumulates": 4 * 8 * 8 * 3 * 9,
        "SourceLayers": ["conv", "relu"],
        "Weights": {"w": {"Type": "Half", "Count": 7}},
    }
    assert {key: layer[key] for key in expected} == expected
    assert [tensor["Name"] for tensor in layer["Inputs"]] == ["x"]
    assert layer["Inputs"][0]["Dimensions"] == [-1, 3, 8, 8]
    assert layer["Inputs"][0]["Format/Datatype"] == "Row major linear FP32"
    assert layer["Outputs"][0]["Name"] == "y"


def test_a_context_gives_the_dimensions_that_were_set(engine):
    inspector = engine.create_engine_inspector()
    inspector.execution_context = engine.create_execution_context(1)
    inspector.execution_context.set_input_shape("x", (3, 3, 8, 8))
    layer = json.loads(inspector.get_layer_information(0))
    assert layer["Inputs"][0]["Dimensions"] == [3, 3, 8, 8]
    assert layer["Outputs"][0]["Dimensions"] == [3, 4, 8, 8]


def test_a_layer_is_told_in_one_line(engine):
    inspector = engine.create_engine_inspector()
    line = (
        "[GPU] conv + relu: CONVOLUTION with ACTIVATION in FLOAT by cpu.reference: x [-1, 3, 8, 8] -> y [-1, 4, 8, 8]"
    )
    assert inspector.get_layer_information(0, "oneline") == line
    assert inspector.get_engine_information(LayerInformationFormat.ONELINE) == line


def test_what_does_not_exist_is_refused(engine):
    inspector = engine.create_engine_inspector()
    with pytest.raises(ExecutionError, match=r"The engine layer index is out of range.*found 1; allowed: 0 to 0"):
        inspector.get_layer_information(1)
    with pytest.raises(ExecutionError, match="found yaml; allowed: ONELINE, JSON"):
        inspector.get_engine_information("yaml")
