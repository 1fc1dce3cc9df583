"""`dryfit annotate`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx


def test_the_command_writes_a_copy_and_counts_its_nodes(
    dryfit_command: Any, digits_model: Path, tmp_path: Path
) -> None:
    path = tmp_path / "annotated.onnx"
    asked = ("annotate", digits_model, "-o", path, "--platform", "agx-orin-64", "--shape", "image=1x1x8x8")
    ended = dryfit_command(*asked)
    assert ended.code == 0
    assert "annotated for DLA" in ended.out
    assert "DLA: 9 nodes" in ended.out
    assert "nothing was measured" in ended.out
    assert any(entry.key == "dryfit.device" for node in onnx.load(path).graph.node for entry in node.metadata_props)
    assert dryfit_command(*asked).code == 2  # it exists now
    viewing = dryfit_command(*asked, "--force", "--colour", "domains", "--json").json
    assert (viewing["color"], viewing["can_run"]) == ("domains", False)
