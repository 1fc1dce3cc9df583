"""What the lint finds in real Q/DQ models, and where their Q/DQ go."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from dryfit.answers.quantization_trace import trace_quantizations
from dryfit.answers.traced_quantization import QuantizationOutcome
from dryfit.building import Builder, design_for_assessment
from dryfit.onnx.importer import network_from_onnx
from dryfit.quantization.lint import lint_network

FINDINGS = {
    "mnist_resnet_qat_qdq.onnx": {},
    "squeezenet1.1-int8-qdq-sym.onnx": {"qdq.output.activation": 26, "qdq.scales.concatenation": 8},
    "clothing_mobilenetv2_int8-qdq-sym.onnx": {
        "qdq.output.activation": 35,
        "qdq.output.sum": 10,
        "qdq.output.unread": 1,
    },
    "mobilenetv2-int8-qdq-asym-tflite.onnx": {
        "qdq.type.zero_point": 70,
        "qdq.type.foreign": 2,
        "qdq.output.sum": 10,
    },
    "mnist-8.onnx": {},
}
"""Model to how much each rule finds. The first was trained with Q/DQ as TensorRT's documentation places them; the next
two are ONNX Runtime's, which also quantizes what each convolution gives, before its ReLU and before sums; the fourth is
TFLite's, with zero points and UINT8 at its border; the last has no Q/DQ."""


@pytest.mark.parametrize("name", FINDINGS)
def test_the_lint_finds_how_a_model_was_quantized(shared_models: Path, name: str) -> None:
    network = network_from_onnx(shared_models / name)
    assert Counter(one.rule for one in lint_network(network)) == FINDINGS[name]


@pytest.mark.parametrize("name", [one for one in FINDINGS if one.endswith(("sym.onnx", "qat_qdq.onnx"))])
def test_in_a_symmetric_model_all_is_multiplied_in_integers_and_little_is_left_alone(
    shared_models: Path, name: str
) -> None:
    network = network_from_onnx(shared_models / name)
    config = Builder().create_builder_config()
    trace = trace_quantizations(network, design_for_assessment(network, config), config)
    kinds = Counter(layer.kind for layer in network.layers)
    assert len(trace.quantizations) == kinds["quantize"] + kinds["dequantize"]
    assert list(trace.macs_by_type) == ["INT8"]
    alone = [one for one in trace.quantizations if one.outcome is QuantizationOutcome.ALONE]
    # What the caller gives and gets, and a softmax at the end.
    assert 1 <= len(alone) <= 4
    assert all(one.reason for one in alone)
    assert any(one.reason.startswith("The caller gives") for one in alone)
    assert all(one.outcome is not QuantizationOutcome.REMOVED for one in trace.quantizations)
