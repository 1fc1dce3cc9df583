"""Shapes on the command line: of several inputs, of inputs that carry dimensions, and where some are missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

from dryfit.engine.engine import Engine


def written(text: str, path: Path) -> Path:
    path.write_bytes(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {text}').SerializeToString())
    return path


@pytest.fixture
def two_inputs(tmp_path: Path) -> Path:
    text = "g (float[N,3] x, float[M,K] z) => (float[N,3] y, float[M,K] w) { y = Relu(x) w = Relu(z) }"
    return written(text, tmp_path / "two.onnx")


@pytest.fixture
def reshaping(tmp_path: Path) -> Path:
    text = "g (float[4,6] x, int64[2] size) => (float[A,B] y) { y = Reshape <allowzero = 1> (x, size) }"
    return written(text, tmp_path / "reshape.onnx")


@pytest.mark.parametrize("command", ["check", "build"])
def test_an_input_without_a_shape_is_named_with_the_option_that_gives_it_one(
    dryfit_command: Any, two_inputs: Path, tmp_path: Path, command: str
) -> None:
    output = ("-o", tmp_path / "two.engine") if command == "build" else ()
    ended = dryfit_command(command, two_inputs, *output, "--shape", "x=1x3:2x3:4x3")
    assert ended.code == 2
    assert "--shape z=1x1" in " ".join(ended.err.split())
    assert "--shape NAME=MIN:OPT:MAX" in " ".join(ended.err.split())
    assert "set_shape(" not in ended.err
    both = ("--shape", "x=1x3:2x3:4x3", "--shape", "z=2x5")
    assert dryfit_command(command, two_inputs, *output, *both).code == 0


def test_a_check_without_any_shape_leaves_all_open(dryfit_command: Any, two_inputs: Path) -> None:
    assert dryfit_command("check", two_inputs).code == 0
    assert dryfit_command("check", two_inputs, "--shape", "x=2x3").code == 0


def test_values_of_an_input_that_carries_dimensions_are_kept_in_the_engine(
    dryfit_command: Any, reshaping: Path, tmp_path: Path
) -> None:
    path = tmp_path / "reshape.engine"
    without = dryfit_command("build", reshaping, "-o", path)
    assert without.code == 2
    assert "--shape-values NAME=VALUES" in " ".join(without.err.split())
    assert dryfit_command("build", reshaping, "-o", path, "--shape-values", "size=2x-1:4x6:8x12").code == 0
    assert "values of size" in dryfit_command("inspect", path).out
    engine = Engine.load(path)
    assert engine.get_tensor_profile_values(0, "size") == [(2, -1), (4, 6), (8, 12)]
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    (y,) = engine.create_execution_context(1).run({"x": x, "size": np.array([8, 3])}).values()
    assert np.array_equal(y, x.reshape(8, 3))


def test_the_stages_of_a_build_are_written_where_the_option_says(
    dryfit_command: Any, two_inputs: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "stages"
    shapes = ("--shape", "x=1x3", "--shape", "z=2x5")
    command = ("build", two_inputs, "-o", tmp_path / "two.engine", *shapes)
    assert dryfit_command(*command).code == 0
    assert not folder.exists()
    assert dryfit_command(*command, "--dump-stages", folder).code == 0
    names = sorted(path.name for path in folder.iterdir())
    assert names[0] == "01-verify.txt"
    assert any("cut-and-try" in name for name in names)
    assert "activation" in (folder / names[1]).read_text(encoding="utf-8")


def test_what_the_gpu_refuses_says_how_the_host_may_run_it(dryfit_command: Any, tmp_path: Path) -> None:
    model = written("g (double[2,3] x) => (double[2,3] y) { y = Relu(x) }", tmp_path / "double.onnx")
    command = ("build", model, "-o", tmp_path / "double.engine")
    ended = dryfit_command(*command)
    assert ended.code == 2
    said = " ".join(ended.err.split())
    assert "--fallback CPU" in said
    assert "allow_fallback(" in said
    assert "GPU_FALLBACK" not in said
    assert dryfit_command(*command, "--fallback", "CPU").code == 0
