"""Kits on boards that are drawn at random, each in a root of its own without dryfit and without a network.

The kit's own scripts run there with the system's shell and Python; the trtexec of the root asks a process outside,
which executes the command line with the drawn overlay (`stand_in_trtexec`). What `dryfit.board_learn` finds in the
results is compared with what was drawn. Nothing of this is a measurement.
"""

from __future__ import annotations

import os
import shutil
import sys
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import attrs
import onnx
import pytest
from tests.core.board import stand_in_boards as boards
from tests.core.board.kit.stand_in_board import BoardServer, RootBoard, require_roots

import dryfit
from dryfit.answers.board.learn import BoardLearnAnswer
from dryfit.target.overlays import Overlay

BOARDS = int(os.environ.get("DRYFIT_STAND_IN_BOARDS", "50"))
LEAST_FOUND, LARGEST_ERROR = 0.95, 0.10
SIZES = [(channels, side, *rest) for channels, side, *rest in boards.SIZES if channels * side * side <= 1 << 18]
"""Networks of these sizes are measured. Larger inputs take the kit's Python most of the time of a board."""
PROBES, COSTS, GPU_COSTS = "probes.zip", "costs.zip", "gpu-costs.zip"


@pytest.fixture
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BoardServer]:
    """A server; a warm one for tests that ask for it."""
    require_roots()
    started = BoardServer.start(tmp_path, is_warm=bool(getattr(request, "param", False)))
    yield started
    started.stop()


def pack_kits(folder: Path) -> list[Path]:
    """The kits of each board: all probes with networks of many sizes in FP16, these in INT8, and these on the GPU."""
    models = [folder / f"chain-{index}.onnx" for index in range(len(SIZES))]
    for path, size in zip(models, SIZES, strict=True):
        onnx.save(boards.chain_model(*size), path)
    kits = [folder / PROBES, folder / COSTS, folder / GPU_COSTS]
    dryfit.board_pack(models, output=kits[0], probes="all", platform=boards.PLATFORM, precision="fp16")
    dryfit.board_pack(models, output=kits[1], platform=boards.PLATFORM, precision=("fp16", "int8"))
    on_gpu = "*:GPU,conv0:DLA"
    dryfit.board_pack(models, output=kits[2], platform=boards.PLATFORM, precision="fp16", layer_device_types=on_gpu)
    for kit in kits:
        without_pauses(kit)
    return kits


def without_pauses(kit: Path) -> None:
    """Leave out how long a board is measured: the times of a stand-in need not settle."""
    with zipfile.ZipFile(kit) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(kit, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in contents.items():
            is_manifest = name.endswith("/kit.json")
            archive.writestr(name, data.replace(b'"5"', b'"0"').replace(b'"500"', b'"0"') if is_manifest else data)


def results_of(kit: Path, board: Overlay, folder: Path, server: BoardServer) -> Path:
    """The results of a kit in a root of its own."""
    folder.mkdir(parents=True)
    dryfit.write_overlay(attrs.evolve(board, software=""), folder / "board.toml")
    extra = {
        "platform": boards.PLATFORM,
        "overlays": str(folder / "board.toml"),
        "noise": boards.NOISE,
        "noise_of": board.name,
        "infers": False,
    }
    made = RootBoard.make(folder / "root", kit, server, extra)
    ended = made.run("sh", "run.sh")
    assert (ended.returncode, ended.stderr) in [(0, ""), (1, "")], ended.stdout  # 1: a build that fails is a result too
    shutil.copy(made.kit / "results.zip", folder / "results.zip")
    shutil.rmtree(made.root)
    return folder / "results.zip"


def learnt(board: Overlay, kits: list[Path], folder: Path, server: BoardServer) -> BoardLearnAnswer:
    """What is learnt of the results of both kits on a board."""
    return dryfit.board_learn([results_of(kit, board, folder / kit.stem, server) for kit in kits], kit=kits)


@pytest.mark.nightly
def test_a_root_has_no_dryfit_and_no_network_and_the_kit_runs_in_it(server: BoardServer, tmp_path: Path) -> None:
    model, kit = tmp_path / "small.onnx", tmp_path / "kit.zip"
    onnx.save(boards.chain_model(8, 8, 1, 3), model)
    dryfit.board_pack(model, output=kit, platform=boards.PLATFORM)
    made = RootBoard.make(tmp_path / "root", kit, server, {"platform": boards.PLATFORM})
    ended = made.run("/usr/bin/python3", "-c", "import dryfit")
    assert "No module named 'dryfit'" in ended.stderr
    code = "import socket; print([name for _, name in socket.if_nameindex()])"
    assert made.run("/usr/bin/python3", "-c", code).stdout == "['lo']\n"
    ended = made.run("sh", "run.sh")
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stdout
    answer = dryfit.board_read(made.kit / "results.zip", kit=kit, outputs=False)
    assert ([one.state for one in answer.builds], answer.differing) == (["done"], [])


@pytest.mark.nightly
@pytest.mark.parametrize("server", [pytest.param(True, id="warm")], indirect=True)
def test_kits_on_fifty_boards_find_what_differs(server: BoardServer, tmp_path: Path) -> None:
    kits = pack_kits(tmp_path)
    drawn = [boards.drawn_board(seed, ["fp16"]) for seed in range(BOARDS)]

    def trip(board: Overlay) -> BoardLearnAnswer:
        return learnt(board, kits, tmp_path / board.name, server)

    with ThreadPoolExecutor(os.process_cpu_count() if hasattr(os, "process_cpu_count") else os.cpu_count()) as pool:
        answers = list(pool.map(trip, drawn))
    changed, found, wrong = 0, 0, list[str]()
    errors: dict[str, list[float]] = {"DLA": [], "GPU": []}
    for board, answer in zip(drawn, answers, strict=True):
        named = {one.rule for one in answer.rules}
        changed += len(board.rules)
        found += len(named & board.rules.keys())
        wrong += [f"{board.name}: {rule}" for rule in named - board.rules.keys()]
        for cost in answer.costs:
            errors[cost.device].append(cost.error_held_out)
    # For who runs it with -s; the rest of this file is what must hold.
    sys.stdout.write(f"{found} of {changed} changed rules found, {len(wrong)} unchanged ones named, {errors}\n")
    assert (wrong, changed >= 3 * BOARDS) == ([], True)
    assert found >= LEAST_FOUND * changed
    for of_device in errors.values():
        assert (len(of_device), max(of_device) <= LARGEST_ERROR) == (BOARDS, True)
