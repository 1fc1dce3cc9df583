"""Real quantized networks say the same in both forms: no code differs where every rounding is kept."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import attrs
import numpy as np
import onnx
import pytest

from dryfit.builder.config.builder_config import BuilderConfig, BuilderFlag
from dryfit.builder.design import NUM_STAGES, design_network
from dryfit.builder.stages import Stages
from dryfit.building import Builder
from dryfit.calibration.calibrate import calibrate
from dryfit.errors import OnnxImportError
from dryfit.network.network import Network
from dryfit.onnx.importer import network_from_onnx
from dryfit.onnx.model_file import read_model
from dryfit.onnx.translation.agreement import Agreement, compare_engines, tensor_values
from dryfit.onnx.translation.carried_scales import UnequalScales
from dryfit.onnx.translation.explicit_model import ExplicitModel, explicit_model
from dryfit.onnx.translation.implicit_model import ImplicitModel, ImplicitPolicy, implicit_model
from dryfit.quantization.scale_table import RangeOrigin

EXACT = ImplicitPolicy(UnequalScales.KEEP, rounds_all=True)


def engine_config(*, int8: bool) -> BuilderConfig:
    """On the GPU, kernels not measured."""
    config = BuilderConfig()
    config.builder_optimization_level = 0
    if int8:
        config.set_flag(BuilderFlag.INT8)
    return config


def agreement(translated: ImplicitModel, explicit: Network, *, inputs: float) -> Agreement:
    """How well the engines agree on one random picture with values from 0 to `inputs`."""
    for tensor in explicit.inputs:
        tensor.shape = tuple(max(1, extent) for extent in tensor.shape)
    engines = (
        Builder().build_engine(translated.network, engine_config(int8=True)),
        Builder().build_engine(explicit, engine_config(int8=False)),
    )
    random = np.random.default_rng(0)
    feeds = {t.name: (random.random(t.shape) * inputs).astype(np.float32) for t in explicit.inputs}
    return compare_engines(*engines, translated.compared, [feeds])


def translated_with(path: Path, policy: ImplicitPolicy) -> tuple[ImplicitModel, Network]:
    model, external = read_model(path)
    explicit = network_from_onnx(model)
    shapes = {tensor.name: [max(1, extent) for extent in tensor.shape] for tensor in explicit.inputs}
    return implicit_model(model, external, policy, shapes), explicit


@pytest.mark.parametrize(
    ("name", "inputs"),
    [("mnist_resnet_qat_qdq", 1.0), ("squeezenet1.1-int8-qdq-sym", 255.0)],
)
def test_a_quantized_network_keeps_every_code(shared_models: Path, name: str, inputs: float) -> None:
    translated, explicit = translated_with(shared_models / f"{name}.onnx", EXACT)
    assert all(one.changed_codes == 0 for one in translated.plain.requantized)
    found = agreement(translated, explicit, inputs=inputs)
    assert found.codes > 10_000
    assert found.different == 0
    (output,) = [one for one in found.tensors if one.is_output]
    # The translated output stays real: it differs by the rounding that the Q/DQ model does, or that its layers lost.
    assert output.decibels is None or output.decibels > 20


def test_concatenations_of_unequal_scales_are_told_and_get_the_largest(shared_models: Path) -> None:
    translated, _ = translated_with(shared_models / "squeezenet1.1-int8-qdq-sym.onnx", ImplicitPolicy())
    shared = [one for one in translated.carried.entries.values() if one.origin is RangeOrigin.SHARED]
    assert len(shared) == len(translated.carried.conflicts) == 8
    assert all(one.stated is not None and one.scale is not None and one.stated < one.scale for one in shared)
    with pytest.raises(Exception, match="fire2/expand1x1_2"):
        translated_with(
            shared_models / "squeezenet1.1-int8-qdq-sym.onnx",
            attrs.evolve(ImplicitPolicy(), unequal=UnequalScales.REFUSE),
        )


def test_an_asymmetric_network_is_refused_with_the_number_of_nodes_with_a_zero_point(shared_models: Path) -> None:
    model, external = read_model(shared_models / "mobilenetv2-int8-qdq-asym-tflite.onnx")
    with pytest.raises(OnnxImportError, match="node 'input_dequant', tensor 'input': the zero point is 127") as refused:
        implicit_model(model, external)
    assert "and 130 more" in str(refused.value)


def layer_by_layer(
    explicit: ExplicitModel, sample: Mapping[str, np.ndarray], codes: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Codes as ONNX Runtime computes them, each layer from codes that are given, so that nothing adds up."""
    onnxruntime = pytest.importorskip("onnxruntime", reason="ONNX Runtime is the oracle of this test")
    model = onnx.ModelProto()
    model.CopyFrom(explicit.model)
    feeds = dict(sample)
    for tensor, value in explicit.quantized.items():
        model.graph.output.append(onnx.helper.make_tensor_value_info(value, onnx.TensorProto.INT8, None))
        if tensor in codes:
            given = onnx.helper.make_tensor_value_info(f"{tensor} given", onnx.TensorProto.INT8, codes[tensor].shape)
            model.graph.input.append(given)
            feeds[given.name] = codes[tensor]
            for node in model.graph.node:
                if node.op_type == "DequantizeLinear" and node.input[0] == value:
                    node.input[0] = given.name
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    values = list(explicit.quantized.values())
    return dict(zip(explicit.quantized, session.run(values, feeds), strict=True))


def test_a_calibrated_network_as_q_dq_is_one_code_from_onnx_runtime_in_each_layer(shared_models: Path) -> None:
    model, external = read_model(shared_models / "resnet20_cifar10.onnx")
    network = network_from_onnx(model)
    network.inputs[0].shape = (1, 3, 32, 32)
    random = np.random.default_rng(0)
    samples = [{"input": random.standard_normal((1, 3, 32, 32)).astype(np.float32)} for _ in range(3)]
    for name, solution in calibrate(network, "minmax", samples).items():
        tensor = network.find_tensor(name)
        if tensor is not None and solution.dynamic_range is not None:
            tensor.dynamic_range = (solution.dynamic_range.minimum, solution.dynamic_range.maximum)
    config = engine_config(int8=True)
    with Stages("Designing", NUM_STAGES) as stages:
        design = design_network(network, config, stages)
    explicit = explicit_model(model, external, design)
    values = tensor_values(Builder().build_engine(network, config), samples[0])
    codes = {name: values[name] for name in explicit.quantized if name in values and values[name].dtype == np.int8}
    found = layer_by_layer(explicit, samples[0], codes)
    assert len(codes) >= 20
    differing = 0
    for name, expected in codes.items():
        if name in {tensor.name for tensor in network.inputs}:
            continue
        steps = np.abs(found[name].astype(int) - expected.astype(int))
        assert steps.max() <= 1, name
        differing += int(np.count_nonzero(steps))
    assert differing <= sum(one.size for one in codes.values()) // 200
