"""Every shared model imports, builds, runs, and agrees with ONNX Runtime on the shared pictures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import onnx
import pytest
from tests.integration.pictures import CASES, NARROW_CASES, Case

from dryfit.building import Builder
from dryfit.engine.engine import Engine
from dryfit.network.network import Network
from dryfit.onnx.importer import network_from_onnx
from dryfit.reference.registry import evaluate

onnxruntime = pytest.importorskip("onnxruntime", reason="ONNX Runtime is the oracle of these tests")

Run = Callable[[Mapping[str, np.ndarray]], dict[str, np.ndarray]]


def built(network: Network, batches: list[np.ndarray]) -> Run:
    """The network as an engine for the default device, saved and loaded again."""
    builder = Builder()
    config = builder.create_builder_config()
    config.allow_fallback("CPU")  # for what no GPU has: UINT8 with zero points
    (image,) = network.inputs
    if -1 in image.shape:
        profile = builder.create_optimization_profile()
        shapes = sorted(batch.shape for batch in batches)
        profile.set_shape(image.name, shapes[0], shapes[-1], shapes[-1])
        config.add_optimization_profile(profile)
    return Engine.load(builder.build_serialized_network(network, config)).create_execution_context().run


def run_unoptimised(model: str | bytes, batches: list[np.ndarray]) -> list[list[np.ndarray]]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    # Fused quantized operators of the runtime round in other places than the operators that the model has.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return [session.run(None, {name: batch}) for batch in batches]


def compare(case: Case, path: Path, pictures: Path) -> None:
    network = network_from_onnx(path)
    batches = case.batches(pictures)
    run = built(network, batches)
    same = total = 0
    references = run_unoptimised(str(path), batches)
    # Over all pictures: how far a quantized probability strays does not depend on how sure the network is of this one.
    spans = [max(float(one.max()) - float(one.min()) for one in outputs) for outputs in zip(*references, strict=True)]
    for batch, expected in zip(batches, references, strict=True):
        outputs = run({network.inputs[0].name: batch})
        for tensor, reference, span in zip(network.outputs, expected, spans, strict=True):
            output = outputs[tensor.name]
            assert output.shape == reference.shape
            assert output.dtype == reference.dtype
            wide, reference_wide = output.astype(np.float64), reference.astype(np.float64)
            assert np.abs(wide - reference_wide).max() <= case.tolerance * span
            if case.has_classes:
                best = wide.reshape(wide.shape[0], -1).argmax(axis=1)
                same += int((best == reference_wide.reshape(wide.shape[0], -1).argmax(axis=1)).sum())
                total += len(best)
    assert same >= case.agreement * total


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.file)
def test_a_float_model_agrees_with_onnx_runtime(case: Case, shared_models: Path, shared_images: Path) -> None:
    compare(case, shared_models / case.file, shared_images)


@pytest.mark.parametrize("case", NARROW_CASES, ids=lambda case: case.file)
def test_a_narrow_or_quantized_model_agrees_with_onnx_runtime(
    case: Case, shared_models: Path, shared_images: Path
) -> None:
    compare(case, shared_models / case.file, shared_images)


@pytest.mark.parametrize("case", NARROW_CASES[1:], ids=lambda case: case.file)
def test_each_layer_of_a_quantized_model_agrees_when_its_inputs_do(
    case: Case, shared_models: Path, shared_images: Path
) -> None:
    model = onnx.load(shared_models / case.file)
    network = network_from_onnx(model)
    batch = case.batches(shared_images)[0]
    known = {info.name: info for info in onnx.shape_inference.infer_shapes(model).graph.value_info}
    names = [name for node in model.graph.node for name in node.output if name in known]
    model.graph.output.extend(known[name] for name in names)
    expected = dict(zip(names, run_unoptimised(model.SerializeToString(), [batch])[0][-len(names) :], strict=True))
    values = {network.inputs[0].name: batch}
    compared = 0
    for layer in network.layers:
        inputs = [tensor and expected.get(tensor.name, values[tensor.name]) for tensor in layer.inputs]
        for tensor, output in zip(layer.outputs, evaluate(layer, inputs), strict=True):
            values[tensor.name] = output
            if tensor.name in expected:
                compared += 1
                error = np.abs(output.astype(np.float64) - expected[tensor.name].astype(np.float64)).max()
                # An exact tie between two codes is the only place where the order of a sum may show.
                allowed = 1 if tensor.dtype.is_integer else 1e-4 * np.abs(expected[tensor.name]).max()
                assert error <= allowed, f"layer {layer.name!r}"
    assert compared > len(network.layers) // 3


def test_no_shared_model_is_left_out(shared_models: Path) -> None:
    assert {path.name for path in shared_models.glob("*.onnx")} == {case.file for case in (*CASES, *NARROW_CASES)}
