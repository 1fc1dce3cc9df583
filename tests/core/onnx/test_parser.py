"""The parser by TensorRT's names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from tests.core.onnx.models import model, numbers

import dryfit
from dryfit.network.network import Network
from dryfit.onnx.parser import OnnxParser, OnnxParserFlag
from dryfit.onnx.problems import ErrorCode


def good() -> onnx.ModelProto:
    return model("y = Relu(x)", inputs="float[2] x", outputs="float[2] y")


def bad() -> onnx.ModelProto:
    return model("a = Nonsense(x) y = Relu(a) z = Softmax<axis=5>(x)", inputs="float[2] x", outputs="float[2] y")


def test_a_model_is_parsed_into_the_network(tmp_path: Path) -> None:
    network = Network()
    parser = OnnxParser(network)
    assert parser.parse(good().SerializeToString())
    assert parser.num_errors == 0
    assert parser.get_layer_output_tensor("node_of_y", 0) is network.outputs[0]
    assert parser.get_layer_output_tensor("node_of_z", 0) is None
    (tmp_path / "m.onnx").write_bytes(good().SerializeToString())
    other = Network()
    assert OnnxParser(other, logger=None).parse_from_file(str(tmp_path / "m.onnx"))
    assert [layer.kind for layer in other] == ["activation"]


def test_every_reason_is_kept_with_its_node() -> None:
    parser = OnnxParser(Network())
    assert not parser.parse(bad().SerializeToString())
    assert parser.num_errors == 2
    first, second = parser.get_error(0), parser.get_error(1)
    assert (first.code(), first.node(), first.node_name()) == (ErrorCode.UNSUPPORTED_NODE, 0, "node_of_a")
    assert first.node_operator() == "Nonsense"
    assert "not supported" in first.desc()
    assert (second.code(), second.node(), second.node_operator()) == (ErrorCode.INVALID_VALUE, 2, "Softmax")
    assert str(second).startswith("[INVALID_VALUE] node 'node_of_z' (Softmax): The axis must be an axis of the input")
    parser.clear_errors()
    assert parser.num_errors == 0


def test_a_file_that_is_no_model_is_an_error_of_the_parser(tmp_path: Path) -> None:
    parser = OnnxParser(Network())
    assert not parser.parse(b"nothing")
    assert not parser.parse_from_file(str(tmp_path / "absent.onnx"))
    assert [parser.get_error(index).code() for index in range(2)] == [ErrorCode.MODEL_DESERIALIZE_FAILED] * 2


def test_the_path_says_where_external_data_lie(tmp_path: Path) -> None:
    weights = numbers(2)
    parsed = model("y = Add(x, w)", inputs="float[2] x", outputs="float[2] y", weights={"w": weights})
    onnx.external_data_helper.set_external_data(parsed.graph.initializer[0], "w.bin")
    parsed.graph.initializer[0].ClearField("raw_data")
    (tmp_path / "w.bin").write_bytes(weights.tobytes())
    data = parsed.SerializeToString()
    assert not OnnxParser(Network()).parse(data)
    network = Network()
    assert OnnxParser(network).parse(data, path=str(tmp_path / "model.onnx"))
    np.testing.assert_array_equal(network.layers[0].weights, weights)


def test_a_logger_hears_the_reasons() -> None:
    heard: list[str] = []

    class Logger:
        def log(self, severity: int, text: str) -> None:
            heard.append(f"{severity} {text}")

    OnnxParser(Network(), Logger()).parse(bad().SerializeToString())
    assert len(heard) == 2
    assert heard[0].startswith("1 [UNSUPPORTED_NODE] node 'node_of_a'")


def test_operators_are_known_by_name() -> None:
    parser = OnnxParser(Network())
    assert parser.supports_operator("Conv")
    assert parser.supports_operator("Det")
    assert parser.supports_operator("TRT_FP4DynamicQuantize")
    assert not parser.supports_operator("Nonsense")


def test_flags_are_kept() -> None:
    parser = OnnxParser(Network())
    assert parser.get_flag(OnnxParserFlag.NATIVE_INSTANCENORM)
    parser.set_flag(OnnxParserFlag.ADJUST_FOR_DLA)
    parser.clear_flag(OnnxParserFlag.NATIVE_INSTANCENORM)
    assert parser.flags == 1 << OnnxParserFlag.ADJUST_FOR_DLA


def test_the_front_door_has_the_importer() -> None:
    assert dryfit.OnnxParser is OnnxParser
    assert [layer.kind for layer in dryfit.network_from_onnx(good())] == ["activation"]
