"""What NVIDIA's tutorial for the DLA of an AGX Orin logs for its models has to come out here: the same DLA nodes.

Source: NVIDIA-AI-IOT/jetson_dla_tutorial, README, steps 3, 5 and 9: TensorRT 8.4, `--int8 --useDLACore=0
--allowGPUFallback --shapes=input:32x3x32x32`, without calibration.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import onnx
import pytest
from tests.conformance.dla_cases.tutorial_models import (
    batch_normalization,
    folded,
    group_normalization,
    tutorial_model,
)

from dryfit.builder.config.builder_config import BuilderConfig, BuilderFlag
from dryfit.builder.config.optimization_profile import OptimizationProfile
from dryfit.building import assess
from dryfit.onnx.parser import network_from_onnx

SHAPE = (32, 3, 32, 32)
BEFORE_THE_AVERAGE = 5
"""DLA nodes of the model with group normalization that the log lists, all of them before the average."""


class Placed(NamedTuple):
    """First and last ONNX node of each DLA segment, and the kinds of the layers that run on the GPU, each once."""

    dla_nodes: list[tuple[str, str]]
    gpu_kinds: set[str]


def place(model: onnx.ModelProto, path: Path, *, has_profile: bool = False) -> Placed:
    onnx.save(model, path)
    network = network_from_onnx(path)
    config = BuilderConfig()
    config.default_device_type = "DLA"
    config.set_platform("DLA", "orin")
    config.set_software("DLA", "8.4")
    config.set_flag(BuilderFlag.INT8)
    config.set_flag(BuilderFlag.GPU_FALLBACK)
    config.assume_scales = True
    if has_profile:
        profile = OptimizationProfile()
        profile.set_shape("input", SHAPE, SHAPE, SHAPE)
        config.add_optimization_profile(profile)
    else:
        network.inputs[0].shape = SHAPE
    assessment = assess(network, config)
    nodes = {layer.layer: layer.onnx_nodes for layer in assessment.layers}
    return Placed(
        [
            (nodes[segment.layers[0]][0], nodes[segment.layers[-1]][0])
            for segment in assessment.segments
            if segment.device == "DLA"
        ],
        {layer.kind for layer in assessment.layers if layer.device == "GPU" and layer.segment >= 0},
    )


def test_group_normalization_cuts_the_convolutions_into_five_dla_nodes(tmp_path: Path) -> None:
    placed = place(tutorial_model(group_normalization), tmp_path / "model.onnx")
    assert placed.dla_nodes[:BEFORE_THE_AVERAGE] == [
        ("Conv_0", "Conv_0"),
        ("Relu_10", "Conv_11"),
        ("Relu_21", "Conv_22"),
        ("Relu_32", "Conv_33"),
        ("Relu_43", "Relu_43"),
    ]
    # The log has no node for the linear layer of this model, though it has one for the same layer behind the same
    # average in the model with batch normalization. No rule can tell them apart: here it is on the DLA in both.
    assert [first for first, _ in placed.dla_nodes[BEFORE_THE_AVERAGE:]] == ["Gemm_51"]
    assert placed.gpu_kinds == {"shuffle", "normalization", "elementwise", "reduce"}


@pytest.mark.parametrize("normalization", [folded, batch_normalization])
def test_batch_normalization_leaves_one_dla_node_up_to_the_average_and_one_for_the_linear_layer(
    tmp_path: Path, normalization: object
) -> None:
    placed = place(tutorial_model(normalization), tmp_path / "model.onnx")  # type: ignore[arg-type]
    nodes = {folded: [("Conv_0", "Relu_7"), ("Gemm_15", "Gemm_15")]}
    expected = nodes.get(normalization, [("Conv_0", "Relu_11"), ("Gemm_19", "Gemm_19")])  # type: ignore[arg-type]
    assert placed.dla_nodes == expected
    # The average is a reduction, and the shuffle takes the two axes away that the linear layer's output has on a DLA.
    assert placed.gpu_kinds == {"reduce", "shuffle"}


def test_an_average_pool_instead_of_the_global_one_leaves_a_single_dla_node(tmp_path: Path) -> None:
    placed = place(tutorial_model(folded, pool="AveragePool"), tmp_path / "model.onnx")
    assert placed.dla_nodes == [("Conv_0", "Gemm_15")]
    assert placed.gpu_kinds == {"shuffle"}


@pytest.mark.parametrize("opset", [17, 18])
@pytest.mark.parametrize("normalization", [group_normalization, batch_normalization, folded])
def test_newer_opsets_and_a_profile_are_placed_alike(tmp_path: Path, normalization: object, opset: int) -> None:
    older = place(tutorial_model(normalization), tmp_path / "older.onnx")  # type: ignore[arg-type]
    newer = place(
        tutorial_model(normalization, opset=opset),  # type: ignore[arg-type]
        tmp_path / "newer.onnx",
        has_profile=True,
    )
    assert newer.dla_nodes[:-1] == older.dla_nodes[:-1]
    assert len(newer.dla_nodes) == len(older.dla_nodes)
    assert newer.gpu_kinds == older.gpu_kinds
