"""`dryfit explain-log`: text, JSON, standard input, options, and names that must not steer a terminal."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.core.cli.test_answer_schemas import check
from tests.core.cli.test_hostile_names import FORGED, steered

from dryfit.answers.explain_log import ExplainLogAnswer

LOG = Path(__file__).parents[3] / "examples" / "digits" / "board-log.txt"


def test_the_answer_fits_its_schema(dryfit_command: Any, digits_model: Path) -> None:
    check(dryfit_command("explain-log", LOG, "--json").json, ExplainLogAnswer.schema())
    check(dryfit_command("explain-log", LOG, "--model", digits_model, "--json").json, ExplainLogAnswer.schema())


def test_verbose_text_lists_the_layers_of_the_gpu(dryfit_command: Any) -> None:
    short, long = (dryfit_command("explain-log", LOG, *more).out for more in ((), ("--verbose",)))
    assert "Layers on the GPU" not in short
    assert "Layers on the GPU" in long


def test_standard_input_is_read(dryfit_command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(LOG.read_bytes())))
    answer = dryfit_command("explain-log", "-", "--json").json
    assert (answer["log"], len(answer["fallen"])) == ("<input>", 4)


def test_options_of_the_build_require_the_model(dryfit_command: Any) -> None:
    ended = dryfit_command("explain-log", LOG, "--platform", "orin")
    assert ended.code == 2
    assert "require --model (found --platform)" in ended.err


def test_an_unknown_encoding_and_a_missing_file_are_errors(dryfit_command: Any, tmp_path: Path) -> None:
    assert dryfit_command("explain-log", tmp_path / "none.txt").code == 2
    ended = dryfit_command("explain-log", LOG, "--encoding", "utf-99")
    assert (ended.code, "utf-99" in ended.err) == (2, True)


def test_an_empty_file_has_an_answer(dryfit_command: Any, tmp_path: Path) -> None:
    (tmp_path / "empty.txt").touch()
    ended = dryfit_command("explain-log", tmp_path / "empty.txt")
    assert ended.code == 0
    assert "0 lines" in ended.out


@pytest.mark.parametrize("more", [(), ("--verbose",)])
def test_hostile_names_steer_no_terminal(dryfit_command: Any, tmp_path: Path, more: tuple[str, ...]) -> None:
    lines = (
        f"[W] [TRT] Layer 'a{FORGED}b' (SLICE): Unsupported on DLA. Switching this layer's device type to GPU.",
        f"[W] [TRT] unknown {FORGED}",
        f"[I] [TRT] [GpuLayer] SLICE: c{FORGED}",
        f"&&&& RUNNING TensorRT.trtexec [TensorRT v8502] # trtexec --onnx={FORGED}",
    )
    path = tmp_path / "log.txt"
    path.write_bytes("\n".join(lines).replace("\nError: forged", " Error: forged").replace("\r", "").encode())
    ended = dryfit_command("explain-log", path, *more)
    assert ended.code == 0
    assert not steered(ended.out)


def test_the_log_of_dryfit_exec_is_read_as_that_of_a_board(
    dryfit_command: Any, digits_model: Path, tmp_path: Path
) -> None:
    line = (f"--onnx={digits_model}", "--useDLACore=0", "--allowGPUFallback", "--fp16", "--optShapes=image:1x1x8x8")
    built = dryfit_command("exec", "--platform", "orin-nx-16", *line, "--skipInference")
    log = tmp_path / "exec.log"
    log.write_text(built.out + built.err)
    answer = dryfit_command("explain-log", log, "--model", digits_model, "--shape", "image=1x1x8x8", "--json").json
    assert answer["build"]["platform"] == "orin-nx-16"
    shape = ("--shape", "image=1x1x8x8", "--platform", "orin-nx-16")
    placed = dryfit_command("check", digits_model, *shape, "--json").json["layers"]
    assert [one["name"] for one in answer["fallen"]] == [one["name"] for one in placed if one["device"] == "GPU"]


def test_a_file_that_is_no_log_is_called_so(dryfit_command: Any, digits_model: Path) -> None:
    assert "No line is known from a log of TensorRT" in dryfit_command("explain-log", digits_model).out
    assert "No line is known" not in dryfit_command("explain-log", LOG).out
