"""`dryfit report`: the page and its pictures as files."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

pytest.importorskip("vl_convert", reason="needs vl-convert: pip install 'dryfit[report]'")


def test_the_command_writes_the_page_and_each_picture(dryfit_command: Any, digits_model: Any, tmp_path: Any) -> None:
    file, folder = tmp_path / "report.html", tmp_path / "pictures"
    options = ("--platform", "agx-orin-64", "--platform", "orin-nx-16", "--no-edits")
    done = dryfit_command("report", digits_model, *options, "-o", file, "--svg", folder)
    assert done.code == 0
    assert "agx-orin-64" in file.read_text(encoding="utf-8")
    pictures = sorted(folder.iterdir())
    assert pictures
    assert all(one.read_text(encoding="utf-8").startswith("<svg ") for one in pictures)
    assert dryfit_command("report", digits_model, "--no-edits", "-o", file).code == 2


def test_several_models_have_a_folder(dryfit_command: Any, digits_model: Any, tmp_path: Any) -> None:
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"no model")
    options = ("--platform", "agx-orin-64", "--shape", "image=1x1x8x8", "--no-edits")
    done = dryfit_command("report", digits_model, broken, *options, "-o", tmp_path / "site")
    assert done.code == 1
    assert "2 models: 1 can be built" in done.out
    assert dryfit_command("report", digits_model, broken).code == 2


def test_samples_and_sides_are_options(dryfit_command: Any, digits_model: Any, tmp_path: Any) -> None:
    np.save(tmp_path / "images.npy", np.random.default_rng(0).random((3, 1, 8, 8), np.float32))
    options = ("--platform", "agx-orin-64", "--shape", "image=1x1x8x8", "--no-edits", "--limit", "2")
    done = dryfit_command(
        "report", digits_model, *options, "--data", tmp_path / "images.npy", "--against", "cpu", "--json"
    )
    found = json.loads(done.out)["numerics"]
    assert found["calibration"]["samples"] == 2
    assert len(found["comparison"]["samples"]) == 2
    assert [one["name"] for one in found["comparison"]["sides"]] == ["fp32", "cpu"]


def test_a_report_that_cannot_be_written_is_an_error_with_its_place(
    dryfit_command: Any, digits_model: Any, tmp_path: Any
) -> None:
    (tmp_path / "file").write_text("")
    done = dryfit_command("report", digits_model, "--no-edits", "-o", tmp_path / "file" / "report.html")
    assert done.code == 2
    assert "The report cannot be written" in done.err
    assert "dryfit-tmp" not in done.err
