"""The example of a quantized layer plugin runs as its script says; its own tests run beside the built wheel."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

from dryfit.network import plugin_table


def test_the_neighbours_of_the_example_plugin_fuse_as_the_chapter_draws_it(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = repository / "examples/quantized-plugin"
    monkeypatch.setattr(plugin_table, "_REGISTERED", {})
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    runpy.run_path(str(folder / "chapter_graph.py"))["main"]()
    told = capsys.readouterr().out.splitlines()
    fused = "[Q1] [DQ1 Conv1 Q2] [Swish] [DQ2 Conv2]"
    assert told[:2] == [f"INT8, absorbed by the builder: {fused}", f"INT8, absorbed by hand: {fused}"]
    assert all("[Swish]" in line for line in told[3:5])
    assert [line for line in told if "same bits" in line] == [told[2], told[5]]
