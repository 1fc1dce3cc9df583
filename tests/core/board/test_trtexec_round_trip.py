"""What is written for trtexec is read again as the same build; random builds, odd names, and a real shell."""

from __future__ import annotations

import subprocess
from pathlib import Path

import attrs
import pytest
from hypothesis import given
from tests.core.board.boards import NAMES, expressible_builds, network_of, small_network

from dryfit.board.board_build import BoardBuild, BoardFiles
from dryfit.board.from_config import board_build
from dryfit.board.trtexec_arguments import arguments_of
from dryfit.board.trtexec_line import trtexec_line
from dryfit.board.trtexec_meaning import as_trtexec_builds
from dryfit.board.trtexec_parser import parse_trtexec
from dryfit.builder.config.builder_config import BuilderConfig

FILES = BoardFiles("my model.onnx", "it's.engine", "a scale.cache", "t.cache")


@given(expressible_builds())
def test_a_build_that_trtexec_can_be_told_is_read_back_as_it_was_meant(build: BoardBuild) -> None:
    network = network_of(build)
    files = attrs.evolve(FILES, calibration_cache="" if build.scales is None else FILES.calibration_cache)
    line = trtexec_line(build, files, network)
    read = parse_trtexec(arguments_of(line.shell_text()), network, build.software, lambda _: build.scales or {})
    assert read == (as_trtexec_builds(build)[0], files)


@given(expressible_builds())
def test_a_config_made_from_a_build_says_the_same_build(build: BoardBuild) -> None:
    network = network_of(build)
    meant, _ = as_trtexec_builds(build)
    config = BuilderConfig()
    config.set_platform("DLA", "agx-orin-64" if build.software >= (8, 4) else "agx-xavier")
    assert board_build(network, meant.apply_to(network, config), build.software).build == meant


@given(expressible_builds())
def test_nothing_is_changed_twice(build: BoardBuild) -> None:
    once, _ = as_trtexec_builds(build)
    assert as_trtexec_builds(once) == (once, [])


def test_a_shell_gives_trtexec_the_words_that_were_meant(tmp_path: Path) -> None:
    show = tmp_path / "show them"
    show.write_text('#!/bin/sh\nfor word in "$@"; do printf \'%s\\0\' "$word"; done\n', encoding="utf-8")
    show.chmod(0o755)
    build = BoardBuild((10, 3), devices=dict.fromkeys(NAMES, "GPU"))
    line = trtexec_line(build, FILES, small_network())
    done = subprocess.run(["sh", "-c", line.shell_text(str(show))], capture_output=True, check=True)  # noqa: S607
    assert done.stdout.decode().split("\0")[:-1] == list(line.arguments)
    assert list(line.arguments) == arguments_of(line.shell_text())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("trtexec --onnx='a b.onnx' --fp16", ["--onnx=a b.onnx", "--fp16"]),
        ("trtexec \\\n  --onnx=a.onnx \\\n  --fp16", ["--onnx=a.onnx", "--fp16"]),
        ("trtexec --shapes=\\'Input:0\\':1x3", ["--shapes='Input:0':1x3"]),
        ("trtexec '--calib=a\\\nb'", ["--calib=a\\\nb"]),
        ('trtexec "--calib=it\'s" \\\n --fp16', ["--calib=it's", "--fp16"]),
    ],
)
def test_words_are_those_of_a_shell(text: str, words: list[str]) -> None:
    assert arguments_of(text) == words
