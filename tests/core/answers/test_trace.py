"""Traces of estimates and of runs: what is on which track, how it nests, and that a trace costs nothing when off."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.core.answers.trace_events import read_trace

import dryfit
from dryfit.answers.run import run
from dryfit.answers.trace import Slice, Trace
from dryfit.engine.profiler import LayerSpans
from dryfit.errors import ConfigError

ORIN: Any = {"platform": "agx-orin-64", "shape": {"image": (1, 1, 8, 8)}}


def test_an_estimate_is_drawn_in_the_order_of_its_dependencies(digits_model: Path, tmp_path: Path) -> None:
    path = tmp_path / "estimate.json"
    answer = dryfit.estimate(digits_model, trace=path, **ORIN)
    tracks, facts = read_trace(path)
    assert answer.trace == str(path)
    assert "Estimated, not measured" in facts["times"]
    assert list(tracks) == ["GPU", "DLA", "copies"] or list(tracks) == ["DLA", "GPU", "copies"]
    segments = [one for track in tracks.values() for one in track if one["cat"] == "segment"]
    steps = [one for track in tracks.values() for one in track if one["cat"] == "step"]
    assert len(segments) == len(answer.segments)
    assert len(steps) == len(answer.layers)
    assert len(tracks["copies"]) == len(answer.transfers)
    assert all(one["depth"] == (one["cat"] == "step") for track in tracks.values() for one in track)
    assert {tuple(one["args"]["layers"]) for one in steps} == {tuple(one.layers) for one in answer.layers}
    # One thing at a time: together they take the estimated latency.
    outer = sorted((*segments, *tracks["copies"]), key=lambda one: (one["ts"], one["dur"]))
    assert all(before["ts"] + before["dur"] <= after["ts"] for before, after in itertools.pairwise(outer))
    assert answer.network.latency_microseconds is not None
    assert math.isclose(outer[-1]["ts"] + outer[-1]["dur"], answer.network.latency_microseconds, abs_tol=0.1)
    assert [one["args"]["segment"] for one in sorted(segments, key=lambda one: one["ts"])] == list(range(len(segments)))
    for step in steps:
        assert step["args"]["precision"] in ("FP16", "FP32")
        assert "LINEAR" in step["args"]["format"] or "CHW" in step["args"]["format"]
        assert step["args"]["dram_bytes"] >= 0
    for copy in tracks["copies"]:
        assert copy["args"]["bytes"] > 0
        assert copy["args"]["from"].split()[0] != copy["args"]["to"].split()[0]


def test_a_copy_comes_before_the_segment_that_reads_it(digits_model: Path, tmp_path: Path) -> None:
    dryfit.estimate(digits_model, trace=tmp_path / "estimate.json", **ORIN)
    tracks, _ = read_trace(tmp_path / "estimate.json")
    (first,) = [one for one in tracks["DLA"] if one["name"] == "segment 0"]
    into = next(one for one in tracks["copies"] if one["name"] == "image: GPU to DLA")
    assert into["ts"] + into["dur"] <= first["ts"]


def test_the_trace_of_an_estimate_is_always_the_same(digits_model: Path, tmp_path: Path) -> None:
    for name in ("first.json", "second.json"):
        dryfit.estimate(digits_model, trace=tmp_path / name, **ORIN)
    assert (tmp_path / "first.json").read_bytes() == (tmp_path / "second.json").read_bytes()


def test_runs_are_drawn_with_their_segments_layers_and_copies(digits_model: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    answer = run(digits_model, random=1, repeat=3, trace=path, precision="fp16", **ORIN)
    tracks, facts = read_trace(path)
    assert answer.trace == str(path)
    assert answer.host_milliseconds_by_layer is None  # nobody asked for the table
    assert "Measured on this host" in facts["times"]
    assert [one["name"] for one in tracks["runs"]] == ["run 0", "run 1", "run 2"]
    engine = _engine(digits_model)
    layers = [one for track in tracks.values() for one in track if one["cat"] in ("layer", "copy")]
    profile = run(digits_model, random=1, profile=True, precision="fp16", **ORIN).host_milliseconds_by_layer
    assert profile is not None
    assert len(layers) == 3 * len(profile)
    segments = [one for track in tracks.values() for one in track if one["cat"] == "segment"]
    assert len(segments) == 3 * len(engine.plan.segments)
    for one in layers:
        assert one["args"]["bytes_written"] > 0
        assert one["args"]["precision"]
        assert one["depth"] == (one["cat"] == "layer")
    copies = tracks["copies and reformats"]
    assert copies
    assert {one["cat"] for one in copies} == {"copy"}
    for outer in tracks["runs"]:
        end = outer["ts"] + outer["dur"]
        inside = [one for one in layers if outer["ts"] <= one["ts"] and one["ts"] + one["dur"] <= end]
        assert len(inside) == len(profile)


def test_a_profile_and_a_trace_can_be_taken_together(digits_model: Path, tmp_path: Path) -> None:
    answer = run(digits_model, random=1, trace=tmp_path / "run.json", profile=True, **ORIN)
    assert answer.host_milliseconds_by_layer
    assert "ui.perfetto.dev" in str(answer)


def test_runs_of_one_segment_stay_apart(tmp_path: Path) -> None:
    network = dryfit.Network()
    x = network.add_input("x", dryfit.DataType.FLOAT, (1, 8))
    network.mark_output(network.add_activation(x, dryfit.ActivationType.RELU).get_output(0))
    run(network, {"x": np.ones((1, 8), np.float32)}, repeat=2, trace=tmp_path / "run.json")
    tracks, _ = read_trace(tmp_path / "run.json")
    assert [one["name"] for one in tracks["GPU"] if one["cat"] == "segment"] == ["segment 0", "segment 0"]


def test_without_a_trace_no_span_is_kept(digits_model: Path) -> None:
    engine = _engine(digits_model)
    context = engine.create_execution_context()
    spans = context.profiler = LayerSpans()
    image = np.ones((1, 1, 8, 8), np.float32)
    context.run(image)
    kept = len(spans.spans)
    assert kept == len(spans.milliseconds)
    assert all(one.begin <= one.end for one in spans.spans)
    context.profiler = None
    context.run(image)
    assert len(spans.spans) == kept


def test_a_long_name_is_cut_and_kept_among_the_arguments() -> None:
    trace = Trace("made", {})
    trace.add(Slice("DLA", "x" * 500, "step", 0, 10))
    event = trace.to_dict()["traceEvents"][-1]
    assert len(event["name"]) == 200
    assert event["args"]["name"] == "x" * 500


def test_a_trace_that_cannot_be_written_is_an_error(digits_model: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="The trace cannot be written"):
        dryfit.estimate(digits_model, trace=tmp_path / "missing" / "trace.json", **ORIN)


def _engine(model: Path) -> dryfit.Engine:
    from dryfit.answers.asked import asked

    subject = asked(model, None, {**ORIN, "precision": "fp16"})
    return dryfit.Builder().build_engine(subject.network, subject.config)
