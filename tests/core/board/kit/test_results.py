"""Results from a board are read without trust: damaged and hostile archives are refused with where and what."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from dryfit.answers.board.evidence import form_of
from dryfit.board.kit import archive
from dryfit.board.kit.manifest import FORMAT, KitBuild, KitLine, KitManifest, manifest_of, sha256
from dryfit.board.results import BoardResults
from dryfit.errors import ConfigError

BUILD = KitBuild(
    id="probe-1",
    title="a layer",
    purpose="probe",
    model="models/probe-1.onnx",
    model_sha256=sha256(b"model"),
    options={"precision": ["fp16"]},
    lines=[KitLine([8, 4], None, ["--onnx=models/probe-1.onnx"])],
    inputs=[],
    layers=1,
    estimated_microseconds=None,
)
MANIFEST = KitManifest(
    format=FORMAT,
    version=1,
    dryfit="0.1.0",
    platform="orin-nx-16",
    is_anonymous=False,
    measured_seconds=5.0,
    seconds_per_layer=0.3,
    contents=["a log"],
    options=[],
    builds=[BUILD],
)
BOARD = {
    "model": "NVIDIA Orin NX Developer Kit",
    "release": "# R35 (release), REVISION: 4.1",
    "kernel": "5.10.120-tegra",
    "tensorrt": "8.5.2",
    "python_tensorrt": "",
    "power_mode": "MODE_15W",
    "power_limits": {"DLA0_CORE": 614400000},
    "clocks": {},
    "memory_bytes": 1 << 34,
}
STATE = {"state": "done", "exit_code": 0, "seconds": 12.5, "arguments": ["--fp16"], "note": ""}


def written(path: Path, files: Mapping[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, data in files.items():
            opened.writestr(name, data)
    return path


def results(path: Path, **build_files: Any) -> Path:
    """Results whose build has these files: bytes, or what becomes JSON."""
    files = {"kit.json": MANIFEST.to_json(), "board.json": json.dumps(BOARD).encode()}
    for name, data in {"state": STATE, **build_files}.items():
        suffix = "txt" if name == "log" else "json"
        text = data if isinstance(data, bytes) else json.dumps(data).encode()
        files[f"builds/probe-1/{name}.{suffix}"] = text
    return written(path / "results.zip", files)


def test_results_are_read_as_they_were_written(tmp_path: Path) -> None:
    path = results(
        tmp_path,
        log=b"[W] [TRT] a line\n",
        layers={"Layers": [{"Name": "a", "LayerType": "DLA", "Inputs": [{"Name": "x", "Format/Datatype": "f"}]}]},
        profile=[{"count": 3}, {"name": "a", "averageMs": 0.5, "medianMs": 0.25}],
        times=[{"computeMs": value} for value in (1.0, 2.0, 3.0)],
        output=[{"name": "y", "dimensions": "1x2", "values": [1.0, 2.0]}],
        verdicts=[{"layer": "a", "type": "CONVOLUTION", "on_dla": True}],
    )
    with BoardResults.open(path) as opened:
        assert opened.manifest == manifest_of(MANIFEST.to_json(), "kit.json")
        assert opened.board.power_limits == {"DLA0_CORE": 614400000}
        (build,) = opened.manifest.builds
        assert [line.text for line in opened.log(build)] == ["[W] [TRT] a line"]
        (layer,) = opened.layers(build)
        assert (layer.name, layer.type, layer.inputs[0].form, layer.outputs) == ("a", "DLA", "f", [])
        assert [one.microseconds for one in opened.profile(build)] == [250.0]
        runs = opened.runs(build)
        assert runs is not None
        assert (runs.count, runs.median, runs.low, runs.high) == (3, 2000.0, 1000.0, 3000.0)
        assert opened.outputs(build) == {"y": ((1, 2), [1.0, 2.0])}
        assert opened.verdicts(build)[0].on_dla
        assert opened.state(build).seconds == 12.5
        assert opened.archive.model(build) is None
    assert len(opened.digest) == 64


def test_a_build_that_was_not_reached_is_missing(tmp_path: Path) -> None:
    path = written(tmp_path / "r.zip", {"kit.json": MANIFEST.to_json(), "board.json": json.dumps(BOARD).encode()})
    with BoardResults.open(path) as opened:
        (build,) = opened.manifest.builds
        assert opened.state(build).state == "missing"
        assert (opened.runs(build), list(opened.layers(build)), list(opened.log(build))) == (None, [], [])


def test_numbers_that_are_no_json_are_read_as_trtexec_writes_them(tmp_path: Path) -> None:
    text = b'[{ "name" : "nan_out", "dimensions" : "3", "values" : [ nan, -inf, -nan ] }]'
    with BoardResults.open(results(tmp_path, output=text)) as opened:
        ((name, (shape, values)),) = opened.outputs(opened.manifest.builds[0]).items()
    assert (name, shape) == ("nan_out", (3,))
    assert [str(one) for one in values] == ["nan", "-inf", "nan"]


DAMAGED = {
    "profile": ([{"name": "a", "averageMs": -1}], "profile.json: .*time -1"),
    "times": ([{"computeMs": "soon"}], "times.json: .*time soon"),
    "layers": ({"Layers": {}}, "layers.json: .*not a list"),
    "output": ([{"name": "y", "dimensions": "axb", "values": []}], "output.json"),
    "state": ({**STATE, "state": "well"}, "state.json: .*state 'well'"),
    "verdicts": ([{"layer": "a"}], "verdicts.json: .*without on_dla, type"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file_is_refused_with_its_name(name: str, tmp_path: Path) -> None:
    data, message = DAMAGED[name]
    with BoardResults.open(results(tmp_path, **{name: data})) as opened:
        read = getattr(opened, {"times": "runs", "output": "outputs"}.get(name, name))
        with pytest.raises(ConfigError, match=f"builds/probe-1/{message}"):
            read(opened.manifest.builds[0])


@pytest.mark.parametrize("data", [b"{", b"\xff\xfe", b"[" * 100_000])
def test_json_that_is_none_is_refused(data: bytes, tmp_path: Path) -> None:
    with (
        BoardResults.open(results(tmp_path, profile=data)) as opened,
        pytest.raises(ConfigError, match=r"profile.json: The file is damaged"),
    ):
        opened.profile(opened.manifest.builds[0])


def test_a_file_that_is_no_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "r.zip").write_bytes(b"no archive")
    with pytest.raises(ConfigError, match="no zip archive"):
        BoardResults.open(tmp_path / "r.zip")
    with pytest.raises(ConfigError, match=r"kit.json: The file is damaged.*no such file"):
        BoardResults.open(written(tmp_path / "empty.zip", {}))


def test_a_truncated_archive_is_refused(tmp_path: Path) -> None:
    path = results(tmp_path)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(ConfigError, match="no zip archive"):
        BoardResults.open(path)


def test_changed_bytes_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "results.zip"
    with zipfile.ZipFile(path, "w") as opened:  # stored, so that a changed byte is one of the contents
        opened.writestr("kit.json", MANIFEST.to_json())
    data = path.read_bytes()
    path.write_bytes(data.replace(b"orin-nx-16", b"orin-nx-61", 1))
    with pytest.raises(ConfigError, match=r"kit.json: The file is damaged.*CRC"):
        BoardResults.open(path)


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    path = results(tmp_path)
    with zipfile.ZipFile(path, "a") as opened, pytest.warns(UserWarning, match="Duplicate name"):
        opened.writestr("board.json", b"{}")
    with pytest.raises(ConfigError, match=r"two files 'board.json'"):
        BoardResults.open(path)


def test_sizes_are_limited_whatever_the_archive_states(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = results(tmp_path, profile=b" " * (1 << 20))
    with BoardResults.open(path) as opened:
        with pytest.raises(ConfigError, match="1048576 bytes; at most 1000 are allowed"):
            opened.archive.contents("builds/probe-1/profile.json", 1000)
        stream = archive._Limited(opened.archive._zip.open("builds/probe-1/profile.json"), 1000, "here")
        with pytest.raises(ConfigError, match=r"here: .*more bytes than allowed"):
            stream.read(4096)
    monkeypatch.setattr(archive, "MOST_FILES", 2)
    with pytest.raises(ConfigError, match="4 files; at most 2 are allowed"):
        BoardResults.open(path)


def test_names_that_point_elsewhere_are_never_opened(tmp_path: Path) -> None:
    path = results(tmp_path)
    with zipfile.ZipFile(path, "a") as opened:
        opened.writestr("../../evil.sh", b"#!/bin/sh")
        opened.writestr("/etc/passwd", b"root")
    with BoardResults.open(path) as read:
        assert read.state(read.manifest.builds[0]).state == "done"
    assert not (tmp_path.parent.parent / "evil.sh").exists()


def test_a_model_with_other_contents_is_refused(tmp_path: Path) -> None:
    path = results(tmp_path)
    with zipfile.ZipFile(path, "a") as opened:
        opened.writestr("models/probe-1.onnx", b"another model")
    with BoardResults.open(path) as read, pytest.raises(ConfigError, match=r"other contents than kit.json states"):
        read.archive.model(read.manifest.builds[0])


HOSTILE = {
    "format": ("other", "format 'other' instead of"),
    "version": (2, "The kit has another version"),
    "builds": ([{"id": "a"}], "without"),
    "platform": (7, "str expected, int found"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_manifest_is_refused(name: str) -> None:
    value, message = HOSTILE[name]
    data = {**json.loads(MANIFEST.to_json()), name: value}
    with pytest.raises(ConfigError, match=message):
        manifest_of(json.dumps(data).encode(), "kit.json")


@pytest.mark.parametrize(
    ("field", "value"), [("id", "../up"), ("id", "A"), ("model", "models/../../x"), ("model", "/x"), ("purpose", "fun")]
)
def test_names_of_a_manifest_stay_inside_the_kit(field: str, value: str) -> None:
    data = json.loads(MANIFEST.to_json())
    data["builds"][0][field] = value
    with pytest.raises(ConfigError, match="name "):
        manifest_of(json.dumps(data).encode(), "kit.json")


@pytest.mark.parametrize(
    "options",
    [
        {"placement": "evil.py"},
        {"ranges": "/etc/passwd"},
        {"calibration_cache": "../secret"},
        {"layer_precisions": "@/etc/passwd"},
        {"layer_device_types": ["a"]},
        {"precision": {"fp16": 1}},
    ],
)
def test_options_of_a_manifest_name_no_file_and_no_program(options: Any) -> None:
    data = json.loads(MANIFEST.to_json())
    data["builds"][0]["options"] = options
    with pytest.raises(ConfigError, match="option "):
        manifest_of(json.dumps(data).encode(), "kit.json")


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("Row major linear FP32", "FP32 LINEAR"),
        ("Row-major linear FP16 format", "FP16 LINEAR"),
        ("Channel major FP16 format where channel % 8 == 0", "FP16 HWC8"),
        ("Sixteen wide channel vectorized row major FP16 format", "FP16 CHW16"),
        ("Thirty-two wide channel vectorized row major Int8 format", "INT8 CHW32"),
        ("Four wide channel vectorized row major Int8 format", "INT8 CHW4"),
        ("Row major INT8 format where column stride % 64 == 0", "INT8 DLA_LINEAR"),
        ("Channel major FP16 format where channel == 4 and column stride % 32 == 0", "FP16 DLA_HWC4"),
        ("N/A due to dynamic shapes", ""),
    ],
)
def test_forms_of_the_inspector_are_named_as_here(text: str, form: str) -> None:
    assert form_of(text) == form
