"""Whole networks by a quantize method, against ONNX Runtime: its own integer operators code for code."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import onnx
import pytest
from tests.integration.pictures import PHOTOS

import dryfit
from dryfit.network.layers.quantized_operator import QuantizedOperator
from dryfit.onnx.node_meaning import integer_operator

ort = pytest.importorskip("onnxruntime")
quantization = pytest.importorskip("onnxruntime.quantization")

MODELS = {
    "clothing_mobilenetv2_fp32": {"QLinearConv", "QLinearAdd", "QLinearGlobalAveragePool", "QGemm"},
    "mnist-8": {"QLinearConv", "QLinearAdd", "QLinearMatMul"},
    "mnist_lrn_fp32": {"QLinearConv", "QLinearAveragePool", "QLinearSoftmax", "QGemm"},
    "squeezenet1.1-fp32": {"QLinearConv", "QLinearConcat", "QLinearGlobalAveragePool", "QLinearSoftmax"},
}
"""Shared models to the operators on integers that ONNX Runtime's quantizer makes of them."""


class Samples(quantization.CalibrationDataReader):
    """Two random inputs to calibrate with."""

    def __init__(self, name: str, shape: tuple[int, ...]) -> None:
        self._samples = iter([{name: _values(shape, seed)} for seed in range(2)])

    def get_next(self):
        return next(self._samples, None)


def _values(shape: tuple[int, ...], seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def _session(model: onnx.ModelProto | Path, *, is_exact: bool = True):
    options = ort.SessionOptions()
    if is_exact:
        # Else pairs of products saturate in 16 bits on processors without VNNI.
        options.add_session_config_entry("session.x64quantprecision", "1")
    options.log_severity_level = 3
    source = str(model) if isinstance(model, Path) else model.SerializeToString()
    return ort.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def _fixed_shape(value) -> tuple[int, ...]:
    return tuple(extent if isinstance(extent, int) else 1 for extent in value.shape)


@pytest.mark.parametrize(
    ("name", "per_channel"),
    [
        pytest.param("clothing_mobilenetv2_fp32", False, marks=pytest.mark.nightly),
        ("mnist-8", False),
        ("mnist-8", True),
        ("mnist_lrn_fp32", True),
        ("squeezenet1.1-fp32", True),
    ],
)
def test_networks_of_qlinear_operators_give_the_codes_of_onnxruntime(
    shared_models: Path, tmp_path: Path, name: str, per_channel: bool
) -> None:
    source = shared_models / f"{name}.onnx"
    given = _session(source).get_inputs()[0]
    shape = _fixed_shape(given)
    quantization.quantize_static(
        source,
        tmp_path / "quantized.onnx",
        Samples(given.name, shape),
        quant_format=quantization.QuantFormat.QOperator,
        per_channel=per_channel,
        activation_type=quantization.QuantType.QUInt8,
        weight_type=quantization.QuantType.QInt8,
    )
    model = onnx.load(tmp_path / "quantized.onnx")
    integer_nodes = [node for node in model.graph.node if integer_operator(node.op_type, node.domain)]
    assert {node.op_type for node in integer_nodes} == MODELS[name]

    network = dryfit.network_from_onnx(model, quantize_method="onnx")
    for tensor in network.inputs:
        tensor.shape = shape
    ends = [node.output[0] for node in integer_nodes]
    for end in ends:
        network.mark_output(network.tensor(end))
    stated = {value.name for value in model.graph.output}
    model.graph.output.extend(
        onnx.helper.make_tensor_value_info(end, onnx.TensorProto.UINT8, None) for end in ends if end not in stated
    )
    config = dryfit.BuilderConfig()
    config.default_device_type = "CPU"
    engine = dryfit.Builder().build_engine(network, config)
    formed = {layer.name for layer in engine.plan.network.layers if isinstance(layer, QuantizedOperator)}
    assert len(formed) >= len(integer_nodes)

    session, context = _session(model), engine.create_execution_context()
    for seed in range(7, 9):
        feeds = {given.name: _values(shape, seed)}
        expected = dict(zip([one.name for one in session.get_outputs()], session.run(None, feeds), strict=True))
        found = context.run(feeds)
        differing = {end: int(np.sum(expected[end] != found[end])) for end in ends}
        assert differing == dict.fromkeys(ends, 0)


@pytest.mark.parametrize("method", ["tflite", "onnx"])
def test_an_asymmetric_network_finds_the_same_pictures_by_a_method_as_onnxruntime(
    shared_models: Path, shared_images: Path, caplog: pytest.LogCaptureFixture, method: str
) -> None:
    from PIL import Image

    path = shared_models / "mobilenetv2-int8-qdq-asym-tflite.onnx"
    config = dryfit.BuilderConfig()
    config.default_device_type = "CPU"
    with caplog.at_level(logging.WARNING):
        engine = dryfit.Builder().build_engine(dryfit.network_from_onnx(path, quantize_method=method), config)
    assert not caplog.records  # nothing stays in real numbers
    kinds = {layer.kind for layer in engine.plan.network.layers}
    assert kinds == {"constant", "quantized_operator", "shuffle"}
    # ONNX Runtime 1.31 cannot load this model in its exact mode.
    session, context = _session(path, is_exact=False), engine.create_execution_context()
    for photo in PHOTOS:
        picture = (
            Image.open(shared_images / "photos" / photo).convert("RGB").resize((224, 224), Image.Resampling.BILINEAR)
        )
        feeds = {"input": np.asarray(picture, np.uint8)[None]}
        (expected,), found = session.run(None, feeds), context.run(feeds)["Identity"]
        # ONNX Runtime leaves sums and depthwise convolutions of this model in FP32.
        assert found.argmax() == expected.argmax()
        assert np.abs(found.astype(int) - expected.astype(int)).max() <= 24


def test_of_a_qdq_network_that_onnxruntime_fuses_the_onnx_method_gives_the_same_scores(
    shared_models: Path,
) -> None:
    path = shared_models / "squeezenet1.1-int8-qdq-sym.onnx"
    config = dryfit.BuilderConfig()
    config.default_device_type = "CPU"
    engine = dryfit.Builder().build_engine(dryfit.network_from_onnx(path, quantize_method="onnx"), config)
    feeds = {"data_0": _values((1, 3, 224, 224), 3) * 50}
    expected = _session(path).run(None, feeds)[0]
    found = engine.create_execution_context().run(feeds)["softmaxout_1"]
    assert expected.argmax() == found.argmax()
    # Those of its convolutions that it leaves in FP32 may part from integers by a code.
    assert np.sum(expected != found) <= 5
