"""One set of defaults for check, build, explain and estimate, printed; and bad news in the first line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest
from tests.core.onnx.models import model

SHAPE = ("--shape", "image=1x1x8x8")
BOARD = ("--platform", "agx-orin-64")
COMMANDS = ("check", "build", "explain", "estimate")
CASES = [
    ((), ["--device GPU", "--precision fp32", "--fallback none"]),
    (BOARD, ["--device DLA", "--precision fp16", "--fallback GPU"]),
    (("--platform", "orin-nano"), ["--device GPU", "--precision fp32", "--fallback none"]),
    (("--device", "DLA"), ["--precision fp16", "--fallback GPU"]),
    (("--device", "DLA", "--fallback", "GPU", "--precision", "fp16"), []),
    (("--device", "CPU"), ["--precision fp32", "--fallback none"]),
]


def output(command: str, folder: Path) -> tuple[object, ...]:
    return ("-o", folder / "x.engine") if command == "build" else ()


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(("options", "defaults"), CASES)
def test_the_commands_share_their_defaults_and_print_them(
    dryfit_command: Any, digits_model: Path, tmp_path: Path, command: str, options: Any, defaults: list[str]
) -> None:
    asked = (command, digits_model, *output(command, tmp_path), *SHAPE, *options)
    assert dryfit_command(*asked, "--json").json["assumed"] == defaults
    line = f"Defaults: {' '.join(defaults)}"
    assert (line in dryfit_command(*asked).out.splitlines()) == bool(defaults)


def test_scales_make_int8_a_default_of_a_device_without_fp32(
    dryfit_command: Any, digits_model: Path, tmp_path: Path
) -> None:
    ranges = tmp_path / "x.ranges"
    ranges.write_text("image: 1.0\n", encoding="utf-8")
    answer = dryfit_command("check", digits_model, *SHAPE, *BOARD, "--ranges", ranges, "--json").json
    assert set(answer["precisions"]) == {"fp16", "int8"}


def test_a_network_that_cannot_be_built_says_so_in_the_first_line(dryfit_command: Any, digits_model: Path) -> None:
    asked = ("check", digits_model, *SHAPE, *BOARD, "--fallback", "none")
    for more in ((), ("--verbose",), ("--quiet",)):
        first = dryfit_command(*asked, *more).out.splitlines()[0]
        assert first == "Build would fail: 4 layers cannot run on DLA and fallback is disabled"
    assert not dryfit_command("check", digits_model, *SHAPE, *BOARD).out.startswith("Build would fail")


@pytest.mark.parametrize("command", ["check", "build"])
def test_a_device_that_runs_nothing_is_said_first(
    dryfit_command: Any, digits_model: Path, tmp_path: Path, command: str
) -> None:
    asked = (command, digits_model, *output(command, tmp_path), *SHAPE, "--device", "DLA", "--fallback", "GPU")
    ended = dryfit_command(*asked, "--precision", "fp32")
    assert ended.code == 0
    first = ended.out.splitlines()[0]
    assert first.startswith("Nothing runs on DLA: 14 layers fall back to GPU")
    assert "dla.precision" in first
    assert "Nothing runs on" not in dryfit_command(*asked).out


def test_one_layer_that_falls_back_is_said_in_the_singular(dryfit_command: Any, tmp_path: Path) -> None:
    path = tmp_path / "one.onnx"
    onnx.save(model("y = Relu(x)", inputs="float[1,4,8,8] x", outputs="float[1,4,8,8] y"), path)
    ended = dryfit_command("check", path, "--device", "DLA", "--precision", "fp32", "--fallback", "GPU")
    assert ended.out.startswith("Nothing runs on DLA: 1 layer falls back to GPU")


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("jetpack-6.1", "10.3"),
        ("JetPack 6.2", "10.3"),
        ("jetpack6", "10.3"),
        ("jetpack-5.1.2", "8.5.2"),
        ("TensorRT-8.6", "8.6"),
        ("trt10.3", "10.3"),
        ("drive-os-6.0.9.0", "8.6.12"),
    ],
)
def test_a_release_stands_for_its_tensorrt(dryfit_command: Any, digits_model: Path, name: str, version: str) -> None:
    answer = dryfit_command("check", digits_model, *SHAPE, *BOARD, "--software", name, "--json").json
    assert answer["software"] == version


@pytest.mark.parametrize("name", ["jetpack-9", "jetpacks-6", "ten", "", "10.x"])
def test_an_unknown_release_lists_those_that_there_are(dryfit_command: Any, digits_model: Path, name: str) -> None:
    ended = dryfit_command("check", digits_model, *SHAPE, *BOARD, "--software", name)
    assert ended.code == 2
    assert "jetpack-6.1" in ended.err


def test_a_name_of_several_boards_says_which_is_meant(dryfit_command: Any, digits_model: Path) -> None:
    for name in ("orin-nx", "Orin NX", "Jetson Orin NX"):
        ended = dryfit_command("check", digits_model, *SHAPE, "--platform", name, "--json")
        assert ended.json["platform"] == "orin-nx-16"
        assert "orin-nx-8 (1 DLA core)" in ended.err
    assert "Note" not in dryfit_command("check", digits_model, *SHAPE, "--platform", "orin-nx-16", "--json").err


@pytest.mark.parametrize("name", ["agx-thor", "thor", "Jetson AGX Thor"])
def test_that_thor_has_no_dla_is_an_answer(dryfit_command: Any, digits_model: Path, name: str) -> None:
    for device in ((), ("--device", "DLA")):
        ended = dryfit_command("check", digits_model, *SHAPE, *device, "--platform", name)
        assert ended.code == 2
        assert "Jetson AGX Thor has no DLA" in ended.err
