"""Sizes that no machine has: an error that says so, before memory is committed, and no fault of ours."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

resource = pytest.importorskip("resource")

ADDRESS_SPACE = 4_000_000_000


def save(path: Path, shape: list[int], *nodes: onnx.NodeProto, **constants: Any) -> Path:
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.array(value, np.int64), name) for name, value in constants.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def limited(*arguments: object) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own that may have 4 GB of addresses."""
    return subprocess.run(
        [sys.executable, "-c", "from dryfit.cli.main import main; main()", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE)),
    )


@pytest.mark.parametrize("extent", [2**31 - 1, 2**31, 2**40, 2**62])
def test_random_inputs_that_no_machine_holds_are_refused(dryfit_command: Any, tmp_path: Path, extent: int) -> None:
    model = save(tmp_path / "m.onnx", [1, 3, extent, 8], helper.make_node("Relu", ["x"], ["y"]))
    assert dryfit_command("build", model, "--output", tmp_path / "m.engine").code == 0
    ended = dryfit_command("run", tmp_path / "m.engine", "--random", 1)
    assert ended.code == 2
    assert "Not enough memory" in ended.err
    assert f"{3 * extent * 8 * 8}" in ended.err


def test_an_input_file_whose_header_promises_too_much_is_refused(
    dryfit_command: Any, digits_model: Path, tmp_path: Path
) -> None:
    assert (
        dryfit_command("build", digits_model, "--shape", "image=1x1x8x8", "--output", tmp_path / "m.engine").code == 0
    )
    np.save(tmp_path / "a.npy", np.zeros((1, 1, 8, 8)))
    data = (tmp_path / "a.npy").read_bytes()
    (tmp_path / "a.npy").write_bytes(data.replace(b"(1, 1, 8, 8), }       ", b"(1,1,99999999,99999),}"))
    for arguments in (
        ("run", tmp_path / "m.engine", "--input", tmp_path / "a.npy"),
        ("calibrate", digits_model, "--shape", "image=1x1x8x8", "--data", tmp_path / "a.npy", "-o", tmp_path / "c"),
    ):
        ended = dryfit_command(*arguments)
        assert ended.code == 2
        assert "the header states shape (1, 1, 99999999, 99999)" in ended.err


@pytest.mark.parametrize("count", [2**31 - 1, 2**31])
def test_a_constant_that_memory_cannot_hold_is_no_fault_of_ours(tmp_path: Path, count: int) -> None:
    nodes = helper.make_node("ConstantOfShape", ["s"], ["a"]), helper.make_node("Add", ["x", "a"], ["y"])
    model = save(tmp_path / "m.onnx", [1], *nodes, s=[count])
    ended = limited("build", model, "--output", tmp_path / "m.engine")
    assert ended.returncode == 2
    assert "Error: Not enough memory (found: Unable to allocate" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["m.onnx"]


@pytest.mark.parametrize("operator", ["EyeLike", "Trilu"])
def test_a_matrix_that_no_constant_should_be_is_refused(dryfit_command: Any, tmp_path: Path, operator: str) -> None:
    model = save(tmp_path / "m.onnx", [100_000, 100_000], helper.make_node(operator, ["x"], ["y"]))
    ended = dryfit_command("check", model)
    assert ended.code == 2
    assert "too large for a constant (found (100000, 100000)" in ended.err


def test_a_timing_cache_of_brackets_is_refused(dryfit_command: Any, digits_model: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("[" * 100_000)
    options = ("--shape", "image=1x1x8x8", "--timing-cache", tmp_path / "cache", "--output", tmp_path / "m.engine")
    ended = dryfit_command("build", digits_model, *options)
    assert ended.code == 2
    assert "line 1: The line is not a timing cache entry" in ended.err
    (tmp_path / "rules.json").write_text("[" * 100_000)
    ended = dryfit_command("check", digits_model, "--shape", "image=1x1x8x8", "--placement", tmp_path / "rules.json")
    assert ended.code == 2
    assert "rules.json: The placement file cannot be read" in ended.err
