"""Engines of real networks: built, saved, loaded, run, and compared with ONNX Runtime."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from tests.integration.engines_of_models import LARGEST_BATCH, build
from tests.integration.pictures import CASES, Case

from dryfit.builder.config.builder_config import BuilderFlag, DeviceType
from dryfit.engine.engine import Engine
from dryfit.engine.profiler import LayerTimes
from dryfit.engine.progress import run_many
from dryfit.errors import ExecutionError

onnxruntime = pytest.importorskip("onnxruntime", reason="ONNX Runtime is the oracle of these tests")


def case_named(file: str) -> Case:
    return next(case for case in CASES if case.file == file)


def onnx_runtime_outputs(model: Path, batches: list[np.ndarray]) -> list[dict[str, np.ndarray]]:
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    names, (x,) = [output.name for output in session.get_outputs()], session.get_inputs()
    return [dict(zip(names, session.run(None, {x.name: batch}), strict=True)) for batch in batches]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.file)
def test_a_saved_and_loaded_engine_agrees_with_onnx_runtime(case, shared_models, shared_images, tmp_path):
    model, batches = shared_models / case.file, case.batches(shared_images)
    build(model, largest_batch=max(map(len, batches))).save(tmp_path / "model.engine")
    engine = Engine.load(tmp_path / "model.engine")
    found = list(run_many(engine.create_execution_context(num_threads=2), batches))
    same = total = 0
    for outputs, expected in zip(found, onnx_runtime_outputs(model, batches), strict=True):
        assert outputs.keys() == expected.keys()
        for name, reference in expected.items():
            assert outputs[name].shape == reference.shape
            assert outputs[name].dtype == reference.dtype
            assert np.abs(outputs[name] - reference).max() <= case.tolerance * np.ptp(reference)
            if case.has_classes:
                classes = [array.reshape(len(array), -1).argmax(axis=1) for array in (outputs[name], reference)]
                same, total = same + int((classes[0] == classes[1]).sum()), total + len(classes[0])
    assert same == total
    alone = engine.create_execution_context(num_threads=1).run(batches[0])
    assert {name: array.tobytes() for name, array in alone.items()} == {
        name: array.tobytes() for name, array in found[0].items()
    }


def test_one_engine_takes_every_batch_of_its_profile(shared_models, shared_images):
    engine = build(shared_models / "mnist_lrn_fp32.onnx")
    (digits,) = case_named("mnist_lrn_fp32.onnx").batches(shared_images)[:1]
    assert engine.get_tensor_profile_shape("input", 0)[2] == (LARGEST_BATCH, 1, 28, 28)
    context = engine.create_execution_context()
    whole = context.run(digits)["logits"]
    for batch in (1, 7, 32, LARGEST_BATCH):
        np.testing.assert_allclose(context.run(digits[:batch])["logits"], whole[:batch], rtol=0, atol=1e-4)
    for batch in (0, LARGEST_BATCH + 1):
        with pytest.raises(ExecutionError, match=rf"found \({batch}, 1, 28, 28\); allowed: \(1 to 100, 1, 28, 28\)"):
            context.run(np.zeros((batch, 1, 28, 28), np.float32))


def test_contexts_in_several_threads_give_the_same_bits(shared_models, shared_images):
    engine = build(shared_models / "squeezenet1.1-fp32.onnx")
    batches = case_named("squeezenet1.1-fp32.onnx").batches(shared_images)[:4]
    expected = [
        next(iter(outputs.values())).tobytes() for outputs in run_many(engine.create_execution_context(1), batches)
    ]
    results: dict[int, list[bytes]] = {}

    def work(index: int) -> None:
        context = engine.create_execution_context(1 + index % 2)
        results[index] = [next(iter(outputs.values())).tobytes() for outputs in run_many(context, batches)]

    threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [results[index] for index in range(4)] == [expected] * 4


@pytest.mark.parametrize(
    "flags", [(), pytest.param((BuilderFlag.FP16,), marks=pytest.mark.nightly)], ids=["fp32", "fp16"]
)
def test_the_same_build_gives_the_same_bytes_in_every_process(digits_model, flags):
    script = f"""
import hashlib, sys
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from dryfit.builder.config.builder_config import BuilderFlag
from tests.integration.engines_of_models import build
print(hashlib.sha256(build(Path(sys.argv[1]), {tuple(map(int, flags))}).serialize()).hexdigest())
"""
    digests = {
        subprocess.run(
            [sys.executable, "-c", script, str(digits_model)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert digests == {hashlib.sha256(build(digits_model, flags).serialize()).hexdigest()}


def test_every_engine_layer_that_runs_is_profiled(shared_models, shared_images):
    engine = build(shared_models / "squeezenet1.1-fp32.onnx")
    context = engine.create_execution_context()
    context.profiler = times = LayerTimes()
    for _ in run_many(context, case_named("squeezenet1.1-fp32.onnx").batches(shared_images)[:3]):
        pass
    assert list(times.milliseconds) == [operation.name for operation in engine.plan.operations]
    assert {len(measured) for measured in times.milliseconds.values()} == {3}


def test_a_dla_engine_in_half_precision_keeps_the_answers(shared_models, shared_images, tmp_path):
    case = case_named("mnist-8.onnx")
    model, batches = shared_models / case.file, case.batches(shared_images)
    engine = build(model, (BuilderFlag.FP16, BuilderFlag.GPU_FALLBACK), DeviceType.DLA)
    engine.save(tmp_path / "dla.engine")
    context = Engine.load(tmp_path / "dla.engine").create_execution_context()
    assert {operation.device for operation in engine.plan.operations} >= {"DLA"}
    for outputs, expected in zip(run_many(context, batches), onnx_runtime_outputs(model, batches), strict=True):
        for name, reference in expected.items():
            assert outputs[name].argmax() == reference.argmax()
            assert np.abs(outputs[name].astype(np.float32) - reference).max() <= 1e-2 * np.ptp(reference)
