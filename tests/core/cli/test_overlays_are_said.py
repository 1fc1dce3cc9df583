"""Each command that takes an overlay says that it is applied, which one, and who made it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import attrs
import click
import numpy as np
import pytest
from click.testing import CliRunner

import dryfit
from dryfit.cli.main import dryfit as root
from dryfit.onnx.parser import network_from_onnx
from dryfit.target.overlays import Overlay, RuleChange

OVERLAY = Overlay(
    name="my-board",
    platform="orin-nx-16",
    software="10.3",
    author="Ada, Acme Robotics",
    rules={"dla.reduce.operation": RuleChange(limits={"values": ("MAX", "AVG")}, layers=1)},
)
LABEL = OVERLAY.label
MODEL, SHAPE = "{digits}", ["--shape", "image=1x1x8x8"]
ON_DLA = ["--device", "DLA", "--fallback", "GPU"]
ON_BOARD = ["--platform", "orin-nx-16", "--software", "10.3"]
SCALES = ["--ranges", "{data}/ranges.txt", "--samples", "0"]
GPU_FALLBACK = ["--allowGPUFallback", "--skipInference"]
STEP = ["--step", "equalization"]
CASES = {
    "annotate": [MODEL, *SHAPE, "-o", "{out}/annotated.onnx"],
    "board pack": [MODEL, *SHAPE, "-o", "{out}/kit.zip", "--platform", "orin-nx-16"],
    "board read": ["examples/board/results.zip", "--no-outputs"],
    "build": [MODEL, *SHAPE, "-o", "{out}/digits.engine"],
    "check": [MODEL, *SHAPE],
    "compare": [MODEL, *SHAPE, *ON_DLA, "--precision", "fp16", "--random", "1"],
    "compare --against": [MODEL, *SHAPE, "--against", "dla,cpu", "--precision", "fp16"],
    "compare --api": [MODEL, *SHAPE, *ON_DLA, "--precision", "fp16", "--random", "1", "--api", "10.16"],
    "estimate": [MODEL, *SHAPE],
    "exec": ["--onnx={digits}", "--shapes=image:1x1x8x8", "--fp16", "--useDLACore=0", *GPU_FALLBACK],
    "explain": [MODEL, *SHAPE],
    "explain one layer": [MODEL, *SHAPE, "softmax"],
    "explain --quantization": [MODEL, *SHAPE, "--quantization"],
    "explain --apply": [MODEL, *SHAPE, "--apply", "gemm-convolution", "-o", "{out}/edited.onnx"],
    "explain-log": ["examples/digits/board-log.txt", *ON_BOARD, "--model", MODEL, *SHAPE],
    "export loadables": [MODEL, *SHAPE, "-o", "{out}/loadables"],
    "export trtexec": [MODEL, *SHAPE],
    "place": [MODEL, *SHAPE],
    "report": [MODEL, *SHAPE, "-o", "{out}/report.html"],
    "run": [MODEL, *SHAPE, "--random", "1"],
    "sensitivity": [MODEL, *SHAPE, *ON_DLA, "--data", "{data}/samples", "--limit", "2"],
    "sparsity check": [MODEL, *SHAPE],
    "sparsity prune": [MODEL, *SHAPE, "-o", "{out}/pruned.onnx"],
    "targets show": ["DLA"],
    "translate": [MODEL, *SHAPE, "--to", "qdq", "-o", "{out}/qdq.onnx", *SCALES, *ON_DLA],
    "tune": [MODEL, *SHAPE, *ON_DLA, "--data", "{data}/samples", *STEP],
}
"""What is asked, by the command and what else distinguishes the question."""
WRITTEN = {"annotate": "annotated.onnx", "build": "digits.engine", "report": "report.html"}
"""Files that travel without the answer, and say it, too."""
OF_BOARD = {"board read": "10.16", "compare --api": "10.16"}
"""Questions about another version."""


def commands_with_overlays(command: click.Command, path: str = "") -> Iterator[str]:
    """The commands that have the option."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from commands_with_overlays(inner, f"{path} {name}".strip())
    elif any("--overlay" in one.opts for one in command.params):
        yield path


def test_each_command_with_the_option_is_asked_here() -> None:
    asked = {next((one for one in (" ".join(name.split()[:2]), name.split()[0]) if one in NAMED), "") for name in CASES}
    assert asked == NAMED


NAMED = set(commands_with_overlays(root))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, digits_model: Path) -> Path:
    """A folder with what the commands read."""
    folder = tmp_path_factory.mktemp("overlays")
    (folder / "samples").mkdir()
    for index in range(6):
        picture = np.random.default_rng(index).normal(size=(1, 8, 8)).astype(np.float32)
        np.save(folder / "samples" / f"{index}.npy", picture)
    network = network_from_onnx(digits_model)
    names = {one.name for layer in network.layers for one in (*layer.inputs, *layer.outputs) if one is not None}
    (folder / "ranges.txt").write_text("".join(f"{name}: 4.0\n" for name in sorted(names)))
    return folder


@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
@pytest.mark.parametrize("name", CASES)
def test_the_answer_names_the_overlay_its_author_and_its_board(
    name: str, as_json: bool, place: Path, digits_model: Path, tmp_path: Path
) -> None:
    label = attrs.evolve(OVERLAY, software=OF_BOARD.get(name, OVERLAY.software))
    dryfit.write_overlay(label, tmp_path / "my-board.toml")
    command = next(one for one in sorted(NAMED, key=len, reverse=True) if name.startswith(one))
    words = [one.format(digits=digits_model, out=tmp_path, data=place) for one in CASES[name]]
    ended = CliRunner(env={"COLUMNS": "400"}).invoke(
        root, [*command.split(), "--overlay", str(tmp_path / "my-board.toml"), *(["--json"] if as_json else []), *words]
    )
    assert ended.exit_code == 0, ended.output
    assert label.label in (json.dumps(json.loads(ended.stdout)) if as_json else ended.output)
    if name in WRITTEN:
        assert label.label.encode() in (tmp_path / WRITTEN[name]).read_bytes()
