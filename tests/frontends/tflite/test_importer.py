"""What a TFLite model becomes: names, layouts, types, the implied quantize method; and what is refused, and how."""

from __future__ import annotations

import contextlib
import io
import json
import sys

import numpy as np
import onnx
import pytest
from tests.frontends.tflite.whole_models import image_classification, keyword_spotting
from tests.tflite_models import TfliteModel

import dryfit
from dryfit.answers.asked import asked
from dryfit.cli.main import main
from dryfit.errors import ConfigError, ModelImportError
from dryfit.plugins.model_importers import importer_of, model_importers

pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed: pip install dryfit[dev]")
pytest.importorskip("dryfit_tflite.importer", reason="the bindings are not installed: dryfit[tflite]")


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    """A keyword spotting model as a file."""
    path = tmp_path_factory.mktemp("models") / "words.tflite"
    path.write_bytes(keyword_spotting()[0])
    return path


def network_of(model, outputs):
    """The network of a model."""
    return asked(model.to_bytes(outputs), None, {"device": "CPU"}).network


def refused(model, outputs):
    """The message with which a model is refused."""
    with pytest.raises(ModelImportError) as raised:
        dryfit.check(model.to_bytes(outputs))
    return str(raised.value)


def test_the_content_of_a_file_counts_before_its_suffix(tmp_path, words):
    disguised = tmp_path / "model.onnx"
    disguised.write_bytes(words.read_bytes())
    assert importer_of(disguised).name == importer_of(words).name == importer_of(words.read_bytes()).name == "tflite"
    assert importer_of(tmp_path / "missing.tflite").name == "tflite"
    assert importer_of(tmp_path / "missing.anything").name == "onnx"
    assert list(model_importers()) == ["onnx", "tflite"]


def test_layers_are_named_after_operators_and_tensors_as_in_the_file(words):
    network = asked(words, None, {"device": "CPU"}).network
    layer = network.layer("DEPTHWISE_CONV_2D_1")
    assert layer.onnx_nodes == ("1:DEPTHWISE_CONV_2D:layer_2",)
    assert layer.num_groups == 64
    assert network.find_tensor("layer_2").dtype is dryfit.DataType.INT8
    assert [(tensor.name, tensor.shape) for tensor in network.inputs] == [("input", (1, 49, 10, 1))]
    assert [(tensor.name, tensor.shape) for tensor in network.outputs] == [("layer_13", (1, 12))]


def test_images_are_transposed_once(words):
    network = asked(words, None, {"device": "CPU"}).network
    turned = [layer.name for layer in network.layers if layer.kind == "shuffle" and layer.first_transpose]
    assert turned == ["CONV_2D_0/shuffle", "RESHAPE_10/shuffle"]


def test_a_quantized_model_implies_the_arithmetic_of_litert_and_says_so(words):
    answer = dryfit.check(words)
    assert answer.device == "CPU"
    assert answer.assumed[0] == "--quantize-method tflite"
    assert {layer.device for layer in answer.layers} == {"CPU"}


@pytest.mark.parametrize("options", [{"device": "GPU"}, {"platform": "orin"}, {"quantize_method": "tflite-xnnpack"}])
def test_a_device_or_another_method_takes_the_place_of_the_implied_one(words, options):
    subject = asked(words, None, options)
    assert not any("quantize-method" in one for one in subject.assumed)
    assert subject.network.quantize_method == options.get("quantize_method", "")


def test_a_model_in_real_numbers_implies_no_method():
    model = TfliteModel()
    x, y = model.input("x", (1, 4)), model.tensor("y", (1, 4))
    model.operator("TANH", [x], [y])
    subject = asked(model.to_bytes([y]), None, {})
    assert subject.network.quantize_method == ""
    assert subject.assumed[0] == "--device GPU"


def test_weights_in_fp16_are_taken_as_fp32():
    model = TfliteModel()
    x = model.input("x", (2, 3))
    half = model.constant("half", np.asarray([[1, 2, 3], [0.5, 0.25, 0]], np.float16))
    w, y = model.tensor("w", (2, 3)), model.tensor("y", (2, 2))
    model.operator("DEQUANTIZE", [half], [w], "DequantizeOptions", version=3)
    model.operator("FULLY_CONNECTED", [x, w, None], [y], "FullyConnectedOptions")
    network = network_of(model, [y])
    assert [layer.kind for layer in network.layers] == ["shuffle", "constant", "fully_connected", "shuffle"]
    assert network.layer("FULLY_CONNECTED_1").get_input(1).spec.value.dtype == np.float32


def test_codes_of_16_bits_are_imported_with_their_scales():
    model = TfliteModel()
    x = model.input("x", (1, 4, 4, 2), "int16", scale=0.001)
    w = model.constant("w", np.ones((3, 1, 1, 2), np.int8), scale=np.full(3, 0.1, np.float32), axis=0)
    b = model.constant("b", np.asarray([100, 200, 300], np.int64), scale=np.full(3, 0.0001, np.float32), axis=0)
    y = model.tensor("y", (1, 4, 4, 3), "int16", scale=0.002)
    fields = {"strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1}
    model.operator("CONV_2D", [x, w, b], [y], "Conv2DOptions", **fields)
    network = network_of(model, [y])
    assert network.layer("CONV_2D_0").get_input(2).spec.value.tolist() == pytest.approx([0.01, 0.02, 0.03])
    assert network.outputs[0].dtype is dryfit.DataType.INT16


def test_all_reasons_are_told_at_once():
    model = TfliteModel()
    x, y, z = model.input("x", (1, 4)), model.tensor("y", (1, 4)), model.tensor("z", (1, 4))
    model.operator("CUSTOM", [x], [y], custom="TFLite_Detection_PostProcess")
    model.operator("RFFT2D", [y], [z])
    text = refused(model, [z])
    assert "The model cannot be imported, for 2 reasons" in text
    assert "operator 0 (TFLite_Detection_PostProcess): Custom operators are not supported" in text
    assert "operator 1 (RFFT2D): The operator is not supported" in text


def test_several_subgraphs_are_refused_by_name():
    model = TfliteModel()
    x, y = model.input("x", (1, 4)), model.tensor("y", (1, 4))
    model.operator("TANH", [x], [y])
    model.graph.name = "main"
    body = model.schema.SubGraphT()
    body.name = "while_body"
    body.tensors, body.operators, body.inputs, body.outputs = [], [], [], []
    model.model.subgraphs.append(body)
    assert "several subgraphs are not supported (found 2 subgraphs: 'main', 'while_body'; allowed: one" in refused(
        model, [y]
    )


def test_variable_tensors_are_refused_by_name():
    model = TfliteModel()
    x, y = model.input("x", (1, 4)), model.tensor("y", (1, 4))
    state = model.tensor("state", (1, 4))
    model.graph.tensors[state].isVariable = True
    model.operator("ADD", [x, state], [y], "AddOptions")
    text = refused(model, [y])
    assert (
        "Variable tensors, which keep their values from run to run, are not supported (found tensor 2 'state')" in text
    )


def test_an_output_of_another_shape_than_stated_is_refused():
    model = TfliteModel()
    x, y = model.input("x", (1, 4)), model.tensor("y", (1, 5))
    model.operator("TANH", [x], [y])
    assert "another shape than the file states (found (1, 4) for tensor 1 'y' of (1, 5))" in refused(model, [y])


def test_an_operator_on_something_that_nothing_computes_is_refused():
    model = TfliteModel()
    x, y = model.tensor("x", (1, 4)), model.tensor("y", (1, 4))
    model.operator("TANH", [x], [y])
    assert "neither an input of the model, a constant, nor the output of an operator" in refused(model, [y])


def test_missing_bindings_say_what_to_install(words, monkeypatch):
    monkeypatch.setitem(sys.modules, "tflite", None)
    with pytest.raises(ModelImportError, match=r'TFLite models require.*pip install "dryfit\[tflite\]"'):
        dryfit.check(words)


@pytest.mark.parametrize(
    ("question", "message"),
    [
        (lambda path, to: dryfit.apply_edits(path, "clip-bounds", to), "An edit requires an ONNX model"),
        (
            lambda path, to: dryfit.translate(path, to, to="implicit"),
            "Only ONNX models can be translated",
        ),
        (dryfit.prune, "Pruning requires an ONNX model"),
        (dryfit.annotate, "Annotating requires an ONNX model"),
        (
            lambda path, _: dryfit.export_trtexec(path, platform="orin"),
            "A board with TensorRT requires an ONNX model",
        ),
    ],
)
def test_what_rewrites_onnx_models_refuses_others(words, tmp_path, question, message):
    with pytest.raises(ConfigError, match=f"{message}.*found a TFLite model"):
        question(words, tmp_path / "new.onnx")


def invoked(*arguments):
    """The output of a command."""
    with contextlib.redirect_stdout(io.StringIO()) as output, pytest.raises(SystemExit) as end:
        main([str(one) for one in arguments])
    assert not end.value.code, output.getvalue()
    return output.getvalue()


def test_commands_take_tflite_models(words, tmp_path):
    answer = json.loads(invoked("check", words, "--json"))
    assert answer["layers"][1]["onnx_nodes"] == ["0:CONV_2D:layer_1"]
    assert "CONV_2D_0" in invoked("explain", words, "--device", "GPU", "CONV_2D_0")
    engine = tmp_path / "words.engine"
    invoked("build", words, "--output", engine)
    values = np.random.default_rng(1).integers(-128, 128, (1, 49, 10, 1)).astype(np.int8)
    np.save(tmp_path / "input.npy", values)
    invoked("run", engine, "--input", tmp_path / "input.npy")
    assert "--quantize-method tflite" in invoked("run", words, "--input", tmp_path / "input.npy")
    invoked("qdq", "lint", words)
    invoked("compare", words, "--methods", "tflite,tflite-xnnpack", "--random", 2)


def test_a_network_of_a_model_is_no_onnx_model(words):
    network = asked(words, None, {}).network
    assert not isinstance(network, onnx.ModelProto)
    assert dryfit.check(network, device="CPU").layers
    assert asked(image_classification()[0], None, {}).format == "tflite"
