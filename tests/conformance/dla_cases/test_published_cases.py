"""The verdict on each published case, and the rule that it names."""

from __future__ import annotations

import tempfile
from pathlib import Path

import onnx
import pytest
from tests.conformance.dla_cases import published_convolution_buffer, published_elements, published_windows
from tests.conformance.dla_cases.case import FP16, INT8, Case
from tests.conformance.dla_cases.onnx_models import convolution, model, node

from dryfit.builder.config.builder_config import BuilderConfig, BuilderFlag
from dryfit.building import assess
from dryfit.network.data_types import DataType
from dryfit.network.network import Network
from dryfit.onnx.parser import network_from_onnx
from dryfit.target.verdict import Verdict

CASES = [*published_elements.CASES, *published_windows.CASES, *published_convolution_buffer.CASES]


def load(proto: onnx.ModelProto) -> Network:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "case.onnx"
        onnx.save(proto, path)
        return network_from_onnx(path)


def dla_config(platform: str = "orin", software: str = "10.3", precision: str = FP16) -> BuilderConfig:
    config = BuilderConfig()
    config.default_device_type = "DLA"
    config.set_platform("DLA", platform)
    # Orin Nano has no DLA, and so no software to choose.
    config.set_software("DLA", software)
    if precision in (FP16, INT8):
        config.set_flag(BuilderFlag[precision])
    config.set_flag(BuilderFlag.GPU_FALLBACK)
    config.assume_scales = True
    return config


def verdicts(case: Case) -> dict[str, list[Verdict]]:
    """ONNX node to the verdicts on the layers that came from it; a constant is no layer to place."""
    network = load(case.build())
    config = dla_config(case.platform, case.software, case.precision)
    found: dict[str, list[Verdict]] = {}
    for layer in network:
        if layer.kind == (case.kind or layer.kind) and layer.kind != "constant":
            for name in layer.onnx_nodes:
                found.setdefault(name, []).append(config.can_run_on(layer, "DLA"))
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_published_case_has_its_verdict_and_names_its_rule(case: Case) -> None:
    found = verdicts(case)
    for name, rule in case.refused.items():
        assert rule in {violation.rule for verdict in found[name] for violation in verdict.violations}
    for name in case.runs:
        assert found[name], f"no layer came from {name}"
        assert all(found[name]), "; ".join(map(str, found[name]))
    assert case.refused or case.runs


def test_every_case_stands_once() -> None:
    names = [case.name for case in CASES]
    assert sorted(set(names)) == sorted(names)


def test_a_concatenation_of_one_input_is_refused() -> None:
    """Builds of YOLO for Xavier name it for each `route` of one layer. An import drops it, so it is built here."""
    network = Network("route")
    x = network.add_input("x", DataType.FLOAT, (1, 16, 32, 32))
    layer = network.add_concatenation([x])
    layer.axis = 1
    verdict = dla_config("xavier", "8.2").can_run_on(layer, "DLA")
    assert {violation.rule for violation in verdict.violations} == {"dla.concatenation.inputs"}


@pytest.mark.parametrize(("precision", "warns"), [(FP16, True), (INT8, False)])
def test_the_compiler_risk_of_a_wide_convolution_is_a_warning(precision: str, warns: bool) -> None:
    """A build of AGX Orin with TensorRT 8.5.2 failed in the compiler, after the validator (NVIDIA/TensorRT#3499).

    512 to 256 channels, 3x3, padded, on 80x160: the validator needs 16 of 16 banks in FP16, the estimate 20.
    """
    network = load(convolution(512, 256, 3, (80, 160), pads=1))
    verdict = dla_config(software="8.5", precision=precision).can_run_on(network[0], "DLA")
    assert verdict.supported
    assert ("dla.convolution.cbuf_estimate" in {warning.rule for warning in verdict.warnings}) == warns


def alternating(count: int) -> onnx.ModelProto:
    """`count` layers for the DLA, each followed by one that only a GPU has."""
    nodes = []
    for index in range(count):
        nodes.append(node("Relu", f"t{index}", f"relu{index}"))
        nodes.append(node("Elu", f"relu{index}", f"t{index + 1}"))
    return model(nodes, {"t0": (1, 8, 8, 8)})


@pytest.mark.parametrize(("software", "limit"), [("8.4", 8), ("8.5", 16), ("10.3", 16)])
def test_loadables_above_the_limit_move_to_the_gpu(software: str, limit: int) -> None:
    """Builders name the limit and the layer that they switch to the GPU: 8 up to TensorRT 8.4, 16 from 8.5."""
    assessment = assess(load(alternating(limit + 2)), dla_config(software=software))
    on_dla = [segment for segment in assessment.segments if segment.device == "DLA"]
    assert [segment.layers[0] for segment in on_dla] == [f"relu{index}" for index in range(limit)]
    assert any(f"relu{limit}" in warning and f"at most {limit}" in warning for warning in assessment.warnings)


@pytest.mark.parametrize(
    ("shape", "fits"), [((2, 4, 3, 8, 8), True), ((64, 64, 3, 8, 8), True), ((64, 65, 3, 8, 8), False)]
)
def test_every_axis_before_the_last_three_counts_as_batch(shape: tuple[int, ...], fits: bool) -> None:
    network = load(model([node("Relu", "x", "y")], {"x": shape}))
    rules = {violation.rule for violation in dla_config().can_run_on(network[0], "DLA").violations}
    assert ("dla.batch" not in rules) == fits


def test_a_network_of_which_nothing_fits_has_no_loadable() -> None:
    proto = model([node("Elu", "x", "a"), node("Exp", "a", "y")], {"x": (1, 8, 8, 8)})
    assessment = assess(load(proto), dla_config())
    assert {segment.device for segment in assessment.segments} == {"GPU"}
    assert len(assessment.warnings) == 2


def test_resnet_50_in_fp16_is_one_loadable_up_to_its_linear_layer() -> None:
    """A build of AGX Orin with TensorRT 8.5.2 (NVIDIA/TensorRT#3211)."""
    model_path = Path(onnx.__file__).parent / "backend/test/data/light/light_resnet50.onnx"
    assessment = assess(network_from_onnx(model_path), dla_config(software="8.5"))
    (loadable,) = [segment for segment in assessment.segments if segment.device == "DLA"]
    kinds = {layer.layer: layer.kind for layer in assessment.layers}
    assert [kinds[name] for name in loadable.layers].count("convolution") == 53
    assert kinds[loadable.layers[-1]] == "fully_connected"
    assert {kinds[layer.layer] for layer in assessment.layers if layer.device == "GPU"} == {"shuffle", "softmax"}
