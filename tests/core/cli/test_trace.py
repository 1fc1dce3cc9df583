"""`--trace` of `dryfit estimate` and `dryfit run`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.core.answers.trace_events import read_trace


def test_the_commands_write_traces(dryfit_command: Any, digits_model: Path, tmp_path: Path) -> None:
    board = ("--platform", "agx-orin-64", "--shape", "image=1x1x8x8")
    for command in (("estimate", digits_model), ("run", digits_model, "--random", 1)):
        path = tmp_path / f"{command[0]}.json"
        ended = dryfit_command(*command, *board, "--trace", path, "--json")
        assert ended.json["trace"] == str(path)
        tracks, _ = read_trace(path)
        assert sum(map(len, tracks.values())) > 10
