"""trtexec's options: each is accepted in its spelling, or has a hint; and the page of docs says which."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
from docs.pages.trtexec_options import trtexec_page

from dryfit.board.trtexec_options import OPTION_ALIASES, TRTEXEC_OPTIONS
from dryfit.cli.main import dryfit
from dryfit.cli.trtexec_names import COUNTERPARTS


def spellings(command: str) -> set[str]:
    found: Any = dryfit
    for word in command.split():
        found = found.get_command(click.Context(found), word)
    return {name for option in found.params for name in (*option.opts, *option.secondary_opts)}


def test_every_counterpart_is_one_of_an_option_of_trtexec() -> None:
    assert COUNTERPARTS.keys() <= TRTEXEC_OPTIONS.keys() | OPTION_ALIASES.keys()


@pytest.mark.parametrize("name", ["--tuneBuildRoutes", "--vc"])
def test_an_option_without_a_counterpart_names_the_command_that_takes_it(
    dryfit_command: Any, digits_model: Path, name: str
) -> None:
    assert "`dryfit exec` takes trtexec's command lines" in dryfit_command("build", digits_model, name).err


@pytest.mark.parametrize("name", COUNTERPARTS)
def test_what_the_table_says_of_an_option_holds(name: str) -> None:
    found = COUNTERPARTS[name]
    assert found.is_accepted or found.advice
    for command in found.commands.split(", "):
        if command not in ("", "every command"):
            known = spellings(command)
            assert (name in known) == found.is_accepted or name == "--device"
            if found.option.startswith("--"):
                assert found.option.split()[0] in known or command == "export trtexec"


@pytest.mark.parametrize("name", [name for name in COUNTERPARTS if name not in spellings("build")])
def test_an_option_that_build_does_not_have_is_answered_with_a_hint(
    dryfit_command: Any, digits_model: Path, name: str
) -> None:
    ended = dryfit_command("build", digits_model, f"{name}=1")
    assert ended.code == 2
    assert f"{name!r}, an option of trtexec" in ended.err
    assert COUNTERPARTS[name].advice in ended.err
    assert "Did you mean" not in ended.err


def test_an_option_of_nobody_has_the_usual_guess(dryfit_command: Any, digits_model: Path) -> None:
    assert "--fallback" in dryfit_command("build", digits_model, "--fallbac=1").err


def test_the_command_that_a_user_of_trtexec_tries_names_ours(dryfit_command: Any) -> None:
    ended = dryfit_command("trtexec", "--onnx=model.onnx")
    assert ended.code == 2
    assert "dryfit exec OPTIONS" in ended.err
    assert "dryfit export trtexec" in ended.err


def test_trtexecs_line_says_what_ours_says(dryfit_command: Any, digits_model: Path, tmp_path: Path) -> None:
    cache = tmp_path / "calib.cache"
    cache.write_text("TRT-8600-EntropyCalibration2\nimage: 3c010a14\n", encoding="utf-8")
    theirs = (
        *("--useDLACore=0", "--allowGPUFallback", "--fp16", "--int8", f"--calib={cache}", "--noTF32"),
        *("--shapes=image:2x1x8x8", "--layerPrecisions=conv1:fp16", "--layerDeviceTypes=conv2:GPU"),
        *("--precisionConstraints=prefer", "--memPoolSize=dlaSRAM:1"),
    )
    ours = (
        *("--device", "DLA", "--fallback", "GPU", "--precision", "fp16,int8", "--calibration-cache", cache),
        *("--shape", "image=2x1x8x8", "--layer-precisions", "conv1:fp16", "--layer-device-types", "conv2:GPU"),
        *("--precision-constraints", "prefer", "--mem-pool-size", "dlaSRAM:1"),
    )
    first, second = (dryfit_command("check", digits_model, *words, "--json").json for words in (theirs, ours))
    assert first == second
    assert next(one for one in first["layers"] if one["name"] == "conv2")["device"] == "GPU"


def test_best_is_every_type_of_the_device(dryfit_command: Any, digits_model: Path) -> None:
    asked = (digits_model, "--device", "DLA", "--shape", "image=1x1x8x8", "--json")
    assert set(dryfit_command("check", *asked, "--best").json["precisions"]) == {"fp16", "int8"}
    assert dryfit_command("check", *asked, "--bf16").json["precisions"] == ["bf16"]


def test_the_page_has_a_row_for_each_option() -> None:
    page = trtexec_page()
    assert all(f"| `{name}` |" in page for name in COUNTERPARTS)
