"""NVIDIA's engine explorer reads the log and the files of an inference."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dryfit.answers.asked import asked
from dryfit.answers.trtexec.exports import layer_information_json, profile_json, times_json, write_export
from dryfit.answers.trtexec.inference import EngineRunner, InferenceSettings, InferenceTimes, measure
from dryfit.answers.trtexec.performance import BoardEstimate, performance_lines
from dryfit.builder.config.enumerations import ProfilingVerbosity
from dryfit.building import Builder
from dryfit.engine.engine import Engine

SETTINGS = InferenceSettings(iterations=8, warm_up_ms=0, duration_s=0, profile=True, separate_profile_run=True)


@pytest.fixture
def explorer(shared: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    pandas = pytest.importorskip("pandas")
    if int(pandas.__version__.partition(".")[0]) >= 3:
        pytest.skip("the engine explorer needs pandas 2")
    folder = shared / "clients" / "trex"
    if not folder.is_dir():
        pytest.skip("needs the engine explorer in ../shared")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.syspath_prepend(str(folder / "utils"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # the folder is only read
    monkeypatch.setitem(sys.modules, "tensorrt", importlib.import_module("dryfit_tensorrt.trt10"))
    yield folder
    for name in ("parse_trtexec_log", "trex.archiving"):
        sys.modules.pop(name, None)


@pytest.fixture
def measured(digits_model: Path) -> tuple[Engine, InferenceTimes]:
    subject = asked(digits_model, None, {"shape": {"image": (1, 1, 8, 8)}})
    subject.config.profiling_verbosity = ProfilingVerbosity.DETAILED
    engine = Builder().build_engine(subject.network, subject.config)
    inputs = {"image": np.zeros((1, 1, 8, 8), np.float32)}
    return engine, measure(EngineRunner(engine, num_threads=1), inputs, SETTINGS)


@pytest.mark.shared
def test_the_explorer_reads_the_performance_summary(explorer: Path, measured: Any, tmp_path: Path) -> None:
    estimate = BoardEstimate("agx-orin-64", "~690 us (within a factor of 3.6)")
    lines = performance_lines(measured[1], SETTINGS, host="x86-64, 2 CPUs", estimate=estimate)
    log = tmp_path / "profile.log"
    log.write_text("".join(f"[11/23/2026-10:00:00] [{one.severity}] {one.text}\n" for one in lines))
    parser = importlib.import_module("parse_trtexec_log")
    summary = parser.parse_profiling_log(str(log), None)["performance_summary"]
    times = [one.latency_ms for one in measured[1].measured]
    assert summary["Throughput"] > 0
    assert summary["Latency"][:3] == pytest.approx([min(times), max(times), np.mean(times)], rel=1e-4)
    assert len(summary["Latency"]) == 4 + len(SETTINGS.percentiles)
    assert summary["Total GPU Compute Time"] == pytest.approx(
        sum(one.compute_ms for one in measured[1].measured) / 1e3, rel=1e-4
    )
    assert {"Enqueue Time", "H2D Latency", "GPU Compute Time", "D2H Latency", "Total Host Walltime"} <= set(summary)


@pytest.mark.shared
def test_the_explorer_makes_its_tables_of_the_files(explorer: Path, measured: Any, tmp_path: Path) -> None:
    engine, times = measured
    write_export(tmp_path / "times.json", times_json(times), "--exportTimes")
    write_export(tmp_path / "profile.json", profile_json(times.layers), "--exportProfile")
    write_export(tmp_path / "graph.json", [layer_information_json(engine)], "--exportLayerInfo")
    parser = importlib.import_module("trex.parser")
    assert parser.read_timing_file(str(tmp_path / "times.json")) == pytest.approx(
        [one.latency_ms for one in times.measured], abs=1e-5
    )
    plan_class = importlib.import_module("trex.engine_plan").EnginePlan
    plan = plan_class(str(tmp_path / "graph.json"), str(tmp_path / "profile.json"))
    assert len(plan.df) == engine.num_layers
    assert plan.total_runtime == pytest.approx(sum(map(np.mean, times.layers.milliseconds.values())), rel=1e-3)
    assert plan.df["latency.pct_time"].sum() == pytest.approx(100, abs=0.5)
