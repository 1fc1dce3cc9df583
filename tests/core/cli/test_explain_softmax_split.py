"""`dryfit explain` on a softmax that is too wide: it offers to split it, and then no layer leaves the DLA."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from tests.core.onnx.models import model, numbers, run_runtime

ORIN = ("--device", "dla", "--platform", "orin")
LAYOUTS = (((3, 1, 1100), 3), ((1, 2, 2000), 3), ((2, 3, 1100), 3), ((1100, 2, 1), 1), ((1100, 2, 8), 1),
           ((1, 1500, 5), 2), ((4, 8192, 1), 2))  # fmt: skip
"""(C, H and W, the axis of the softmax)."""


def written(folder: Path, extents: tuple[int, ...], axis: int) -> Path:
    """A model of two activations with a softmax between them, which a DLA would take but for the softmax."""
    shape = ",".join(map(str, extents))
    parsed = model(
        f"a = Relu(x) b = Softmax <axis = {axis}> (a) y = Sigmoid(b)",
        inputs=f"float[N,{shape}] x",
        outputs=f"float[N,{shape}] y",
    )
    parsed.graph.node[1].name = "softmax"
    path = folder / "model.onnx"
    path.write_bytes(parsed.SerializeToString())
    return path


def shape_of(extents: tuple[int, ...], batch: int = 1) -> tuple[str, str]:
    return "--shape", f"x={'x'.join(map(str, (batch, *extents)))}"


@pytest.mark.parametrize("software", ["8.5", "10.3"])
@pytest.mark.parametrize(("extents", "axis"), LAYOUTS, ids=str)
def test_no_layer_of_a_split_softmax_leaves_the_dla(
    dryfit_command: Any, tmp_path: Path, extents: tuple[int, ...], axis: int, software: str
) -> None:
    source, new = written(tmp_path, extents, axis), tmp_path / "new.onnx"
    options = (*ORIN, "--software", software, *shape_of(extents))
    answer = dryfit_command("explain", source, *options, "--json").json
    assert {cause["rule"] for cause in answer["causes"]} == {"dla.softmax.optimized_axis"}
    (edit,) = answer["edits"]
    assert edit["apply"] == "softmax-split"
    assert edit["nodes"] == ["softmax"]
    assert edit["after"]["refused_layers"] == 0
    assert edit["after"]["loadables"] == 1
    assert dryfit_command("explain", source, *options, "--apply", "softmax-split", "-o", new).code == 0
    after = dryfit_command("explain", new, *options, "--json").json
    assert after["summary"]["layers_leaving"] == 0
    for batch in (1, 3):
        feeds = {"x": 4 * numbers(batch, *extents, seed=batch)}
        np.testing.assert_allclose(run_runtime(onnx.load(new), feeds)[0], run_runtime(onnx.load(source), feeds)[0],
                                   rtol=1e-5)  # fmt: skip


def test_software_8_4_needs_no_shuffle_for_positions_along_the_channels(dryfit_command: Any, tmp_path: Path) -> None:
    source = written(tmp_path, (3, 1, 1100), 3)
    answer = dryfit_command("explain", source, *ORIN, "--software", "8.4", *shape_of((3, 1, 1100)), "--json").json
    (edit,) = answer["edits"]
    assert edit["apply"] == "softmax-split"
    assert edit["after"]["refused_layers"] == 0


def test_a_softmax_that_the_dla_takes_is_left_alone(dryfit_command: Any, tmp_path: Path) -> None:
    source = written(tmp_path, (3, 1, 1024), 3)
    answer = dryfit_command("explain", source, *ORIN, "--software", "10.3", *shape_of((3, 1, 1024)), "--json").json
    assert answer["summary"]["layers_leaving"] == 0
    assert not answer["edits"]
