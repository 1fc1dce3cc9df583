"""Published command lines of trtexec run, with a small model in the place of theirs, and do what their sources say.

Files are looked for in the folder of the test, extents are at most 16, and times and numbers of runs are cut short.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnx
import pytest
from tests.core.board.models_of_lines import (
    LARGEST_EXTENT,
    PICTURE,
    fitted_facts,
    fitted_words,
    inputs_of,
    local,
    model_of,
    shapes_of,
)
from tests.core.board.test_public_trtexec_lines import REFUSED, TAKEN, name_of
from tests.core.board.trtexec_lines import Facts, PublicLine, Version

import dryfit
from dryfit.answers.run import load_engine
from dryfit.answers.trtexec.run import ExecTrtexecAnswer
from dryfit.board.trtexec_options import OPTION_ALIASES
from dryfit.board.versions import version_text
from dryfit.builder.config.enumerations import DeviceType
from dryfit.builder.config.trtexec_spellings import parse_io_formats
from dryfit.engine.engine import Engine
from dryfit.engine.plan import Plan, ProfileShapes
from dryfit.errors import DryfitError
from dryfit.network.data_types import DataType
from dryfit.network.tensor import Shape
from dryfit.onnx.importer import network_from_onnx
from dryfit.quantization.calibration_cache import CalibrationCache

RUNS = 2
"""Measured runs of each stream."""

AT_THEIR_SHAPES = [
    line
    for line in TAKEN
    if 0 < sum(math.prod(best) for _, best, _ in shapes_of(line.facts).values()) <= 1 << 22
    and max(max(largest) for _, _, largest in shapes_of(line.facts).values()) > LARGEST_EXTENT
]
"""Lines that a test can run with the extents that they have."""

PRINTED = {"profile": "=== Profile", "layers": "Layer Information", "output": "Output Tensors"}
TYPES = {"FP16": DataType.HALF, "INT8": DataType.INT8, "BF16": DataType.BF16}
WORDS = {"fp16": DataType.HALF, "fp32": DataType.FLOAT}


def prepared(line: PublicLine, folder: Path, most: int = LARGEST_EXTENT) -> list[str]:
    """Put the files of a line into the current folder; return its options."""
    facts, words = fitted_facts(line.facts, most), fitted_words(line, most)
    model = model_of(facts)
    for file in (*facts.writes, facts.saves, facts.loads, facts.timing_cache):
        (folder / local(file)).parent.mkdir(parents=True, exist_ok=True)
    for word in words:
        if word.startswith("--onnx="):
            write(folder / word.removeprefix("--onnx="), model.SerializeToString())
    if facts.loads:
        build_engine_for(line, model, run_shapes(facts), folder)
    if facts.calibration:
        names = [tensor.name for tensor in network_from_onnx(model).tensors]
        cache = CalibrationCache("TRT-8600-EntropyCalibration2", dict.fromkeys(names, 1 / 32))
        write(folder / local(facts.calibration), cache.to_bytes())
    for name, values in inputs_of(model, run_shapes(facts)):
        if name in facts.feeds:
            write(folder / local(facts.feeds[name]), values.tobytes())
    return words


def ran(line: PublicLine, folder: Path, most: int) -> ExecTrtexecAnswer:
    """Run a line in the current folder."""
    return dryfit.exec_trtexec(prepared(line, folder, most), api=version_text(line.version))


def write(path: Path, contents: bytes) -> None:
    """Write a file in a folder that may not exist."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(contents)


def build_engine_for(line: PublicLine, model: onnx.ModelProto, shapes: Mapping[str, Shape], folder: Path) -> None:
    """Save the engine, or the loadable, that a line loads."""
    write(folder / "model of the engine.onnx", model.SerializeToString())
    words = ["--onnx=model of the engine.onnx", f"--saveEngine={local(line.facts.loads)}", "--skipInference"]
    listed = ",".join(f"{name}:{'x'.join(map(str, shape))}" for name, shape in shapes.items())
    words += [f"--shapes={listed}"] if listed else []
    if line.facts.loads.endswith(".dla"):
        words += [
            "--useDLACore=0",
            "--buildDLAStandalone",
            "--inputIOFormats=fp16:chw16",
            "--outputIOFormats=fp16:chw16",
        ]
    dryfit.exec_trtexec(words, api=version_text(line.version))


def run_shapes(facts: Facts) -> dict[str, Shape]:
    """The shape of each input in the run."""
    shapes = {name: triple[1] for name, triple in shapes_of(facts).items()}
    given = {name: tuple(int(one) for one in text.split("x")) for name, text in facts.runs_at.items()}
    return {**shapes, **given}


def check_plan(plan: Plan, facts: Facts) -> None:
    """Compare what was built with what the line requests."""
    profile = {name: triple for name, triple in shapes_of(facts).items() if triple[0] != triple[-1]}
    on_dla = [segment for segment in plan.segments if segment.device == DeviceType.DLA]
    assert bool(on_dla) == (facts.core >= 0 and not profile)  # a DLA has no dynamic shapes
    if facts.core >= 0 and not facts.falls_back:
        assert {operation.device for operation in plan.operations} == {DeviceType.DLA}
    if not facts.loadable:  # a loadable does not record them
        check_settings(plan.settings, facts)
    allowed = {TYPES[name] for name in facts.types if name in TYPES}
    allowed |= {DataType.HALF} if facts.core >= 0 and not allowed else set()
    found = {operation.precision for operation in plan.operations}
    assert found <= allowed | {DataType.FLOAT, DataType.INT32, DataType.INT64}, found
    assert found & allowed or not allowed
    assert list(plan.profiles) == ([ProfileShapes(profile)] if profile else [])
    for layer in plan.layers:
        for listed in (facts.layer_types, facts.layer_outputs):
            words = [word for name, word in listed.items() if name.replace("*", "0") in layer.onnx_nodes]
            assert all(layer.precision is WORDS[word] for word in words)


def check_settings(settings: Mapping[str, Any], facts: Facts) -> None:
    """Compare the config that an engine was built with, as it recorded it, with what the line requests."""
    assert set(settings["flags"]) >= facts.flags | ({"TF32"} if facts.tf32 else set())
    assert facts.tf32 or "TF32" not in settings["flags"]
    assert set(settings["flags"]) >= facts.types
    assert settings["DLA_core"] == facts.core
    assert settings["builder_optimization_level"] == facts.level
    assert settings["profiling_verbosity"].lower() == facts.verbosity
    assert dict(settings["memory_pool_limits"]) == dict(facts.pools)


def check_borders(engine: Engine, facts: Facts) -> None:
    """Compare types and formats of inputs and outputs with those that the line requests."""
    network = engine.plan.network
    for text, tensors in ((facts.inputs, network.inputs), (facts.outputs, network.outputs)):
        entries = parse_io_formats(text, "") if text else []
        for index, tensor in enumerate(tensors if entries else ()):
            entry = entries[index % len(entries)]
            assert engine.get_tensor_dtype(tensor.name) is entry.dtype
            assert engine.get_tensor_format(tensor.name) in entry.formats


def check_times(folder: Path, line: PublicLine) -> None:
    """Look into the files of times that a line writes: one record for each run, and a count before the layers."""
    for word in fitted_words(line):
        option, _, file = word.partition("=")
        if option == "--exportTimes":
            records = json.loads((folder / file).read_text())
            assert len(records) == RUNS * line.facts.inference.get("streams", 1)
            assert records[0].keys() >= {"startComputeMs", "endComputeMs", "computeMs", "latencyMs"}
        elif option == "--exportProfile":
            count, *layers = json.loads((folder / file).read_text())
            assert count["count"] >= RUNS
            assert all(layer.keys() >= {"name", "timeMs", "averageMs", "medianMs", "percentage"} for layer in layers)
        elif option == "--exportLayerInfo":
            assert json.loads((folder / file).read_text()).keys() >= {"Layers", "Bindings"}
        elif option == "--exportOutput":
            assert json.loads((folder / file).read_text())[0].keys() >= {"name", "dimensions", "values"}


@pytest.mark.parametrize("line", TAKEN, ids=name_of)
def test_a_line_does_what_its_source_says(line: PublicLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    check_line(line, tmp_path, LARGEST_EXTENT)


@pytest.mark.nightly
@pytest.mark.parametrize("line", AT_THEIR_SHAPES, ids=name_of)
def test_a_line_does_what_its_source_says_at_its_own_shapes(
    line: PublicLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    check_line(line, tmp_path, 1 << 20)


def check_line(line: PublicLine, tmp_path: Path, most: int) -> None:
    """Run a line and compare what it does with its facts."""
    facts = fitted_facts(line.facts, most)
    if facts.fails:
        with pytest.raises(DryfitError, match=facts.fails):
            ran(line, tmp_path, most)
        return
    answer = ran(line, tmp_path, most)
    text = "\n".join(line for _, line in answer.lines)
    assert answer.is_loadable == facts.loadable
    assert answer.queries == (
        0 if facts.skips_inference or facts.loadable else RUNS * facts.inference.get("streams", 1)
    )
    assert sorted(answer.files) == sorted(local(file) for file in facts.writes)
    for file in facts.writes:
        json.loads((tmp_path / local(file)).read_text())
    for file in filter(None, (facts.saves, facts.timing_cache)):
        assert (tmp_path / local(file)).stat().st_size
    if facts.saves:
        engine = load_engine(tmp_path / local(facts.saves))
        check_plan(engine.plan, facts)
        check_borders(engine, facts)
    check_times(tmp_path, line)
    if answer.queries:
        shapes = run_shapes(facts) or dict.fromkeys(facts.feeds or ["input"], PICTURE)
        for index, shape in enumerate(shapes.values()):
            output = answer.outputs[f"output_{index}"]
            assert output.shape[:1] + output.shape[2:] == shape[:1] + shape[2:]
    assert ("verbose" in facts.prints) == any(severity == "V" for severity, _ in answer.lines) or facts.loads
    for word in facts.prints - {"verbose"}:
        assert PRINTED[word] in text
    for name, file in facts.feeds.items():
        assert f"Using values loaded from {local(file)} for input {name}" in text
    warnings = [warning for severity, warning in answer.lines if severity == "W"]
    for option in facts.no_effect:
        name = OPTION_ALIASES.get(option, option)
        assert any(warning.startswith(f"{name} has no effect: ") for warning in warnings)
    for part in facts.warns:
        assert any(part in warning for warning in warnings)


@pytest.mark.parametrize(
    ("line", "version", "names"),
    REFUSED,
    ids=[f"{name_of(line)}-{version_text(version)}" for line, version, _ in REFUSED],
)
def test_a_line_that_is_refused_fails_as_trtexec_does(
    dryfit_command: Any,
    line: PublicLine,
    version: Version,
    names: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = dryfit_command("exec", "--api", version_text(version), *prepared(line, tmp_path))
    assert ended.code == 1
    assert ended.out.splitlines()[0].startswith("&&&& RUNNING TensorRT.trtexec [")
    assert ended.out.splitlines()[-1].startswith("&&&& FAILED TensorRT.trtexec [")
    errors = [error for error in ended.err.splitlines() if "] [E] " in error]
    assert re.search(f"(?i){names}", "".join(errors))


@pytest.mark.parametrize("line", TAKEN[::12], ids=name_of)
def test_a_line_that_is_taken_passes_as_in_trtexec(
    dryfit_command: Any, line: PublicLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = dryfit_command("exec", "--api", version_text(line.version), *prepared(line, tmp_path))
    assert ended.code == 0
    assert ended.out.splitlines()[-1].startswith("&&&& PASSED TensorRT.trtexec [")
