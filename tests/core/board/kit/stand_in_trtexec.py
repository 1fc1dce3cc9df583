"""trtexec of a stand-in board: `dryfit exec` with other rules and other times, and what no board writes left out.

As a program, `stand_in_trtexec.py EXTRA WORDS...` executes one command line. EXTRA are keyword arguments of
`dryfit.exec_trtexec` as JSON, and of the stand-in: `noise` and `noise_of`, deviation and seed of the times, and
`infers`, without which it builds and reports all except outputs, whose values take the longest.

`stand_in_trtexec.py --serve SOCKET` answers the command lines that programs in roots without dryfit send to a Unix
socket (`CLIENT`), each in a fork, so that dryfit is imported once for all builds of all boards. With `--warm`, it first
builds all probes, and the forks share what that loads.

Measured times are the estimates of the stand-in's own board, with noise. Nothing of this is a measurement.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

NOISE = 0.01
"""Standard deviation of a time, relative to it."""
_OWN = re.compile(r"cannot run on DLA|^  likewise|time of this host|GPU compute time is unstable")
"""Lines in which dryfit explains itself."""

CLIENT = """#!/usr/bin/python3
# trtexec: sends its command line to the board outside of this root, and shows what that prints.
import json, os, socket, sys
board = socket.socket(socket.AF_UNIX)
board.connect("/run/board")
board.sendall(json.dumps([{root!r}, os.getcwd(), {extra!r}, sys.argv[1:]]).encode() + b"\\n")
answer = b""
while True:
    part = board.recv(1 << 16)
    if not part:
        break
    answer += part
sys.stdout.buffer.write(answer[:-1])
sys.exit(answer[-1])
"""


def execute(arguments: Sequence[str], extra: Mapping[str, Any]) -> int:
    """Execute a command line in the current folder; return the exit code."""
    from dryfit.answers.network_cost import network_cost
    from dryfit.answers.trtexec import run as trtexec
    from dryfit.building import design_of_trial
    from dryfit.cli.commands.exec import _printer

    printed = _printer(to_stderr=False)
    settings = dict(extra)
    noise_of, deviation = settings.pop("noise_of", ""), settings.pop("noise", NOISE)
    infers = settings.pop("infers", True)
    costs: list[Any] = []
    infer: Callable[[Any, Any], None] = trtexec._Execution._infer

    def report(severity: str, text: str) -> None:
        if not _OWN.search(text):
            printed(severity, text)

    def watched(execution: Any, engine: Any) -> None:
        if infers:
            infer(execution, engine)
        else:
            execution._print_layers(engine, None)
        design = design_of_trial(execution.build.network, execution.build.config)
        costs.append((design.network, network_cost(design)))

    _show("&&&& RUNNING TensorRT.trtexec [dryfit] # trtexec", *arguments)
    failed = ""
    trtexec._Execution._infer = watched  # type: ignore[method-assign]
    try:
        trtexec.exec_trtexec(arguments, report=report, **settings)
    except Exception as error:  # noqa: BLE001  a failed build is an answer of a board
        failed = str(error)
        report("E", failed)
    finally:
        trtexec._Execution._infer = infer  # type: ignore[method-assign]
    draw = random.Random(f"{noise_of} {arguments[0] if arguments else ''}")  # noqa: S311  no secret
    for network, cost in costs:
        _write_times(arguments, network, cost, lambda: 1 + draw.gauss(0, deviation))
    _show("&&&&", "FAILED" if failed else "PASSED", "TensorRT.trtexec [dryfit] # trtexec")
    return 1 if failed else 0


def _show(*words: str) -> None:
    sys.stdout.write(" ".join(words) + "\n")
    sys.stdout.flush()


def _write_times(arguments: Sequence[str], network: Any, cost: Any, factor: Callable[[], float]) -> None:
    """Write the estimates of a board in the place of times of this host."""
    files = dict(word.split("=", 1) for word in arguments if "=" in word)
    runs, profile = files.get("--exportTimes"), files.get("--exportProfile")
    if runs:
        total = (cost.latency_microseconds or 0.0) / 1e3
        Path(runs).write_text(json.dumps([{"computeMs": total * factor()} for _ in range(20)]))
    if profile:
        rows: list[dict[str, Any]] = [{"count": 20}]
        for segment in cost.segments:
            if segment.device == "DLA":
                rows += _dla_rows(network, segment, cost.transfers, factor)
            elif segment.estimate is not None:
                rows += [_row(" + ".join(one.layers), one.microseconds, factor()) for one in segment.estimate.steps]
        Path(profile).write_text(json.dumps(rows))


HAND_OVER = 8.5
"""Time of a segment's own row in us, as NVIDIA/TensorRT issue 3143 shows it."""


def _dla_rows(network: Any, segment: Any, transfers: Any, factor: Callable[[], float]) -> list[dict[str, Any]]:
    """The rows of a segment and its copies, in the order and with the names of TensorRT.

    The DLA runs beside the row of its segment; the first copy back waits for it.
    """
    inside = [layer for layer in network.layers if layer.name in set(segment.layers)]
    read = {tensor.name for layer in inside for tensor in layer.inputs if tensor is not None}
    made = {tensor.name for layer in inside for tensor in layer.outputs}
    come = [one for one in transfers if one.destination == "DLA" and one.tensor in read - made]
    leave = [one for one in transfers if one.sender == "DLA" and one.tensor in made]
    name = "{ForeignNode[" + "...".join(dict.fromkeys([segment.layers[0], segment.layers[-1]])) + "]}"
    rows = [_row(f"{one.tensor} to nvm", one.microseconds or 0.0, factor()) for one in come]
    time = (segment.microseconds or 0.0) * factor()
    rows.append(_row(name, min(HAND_OVER, time) if leave else time, 1.0))
    for index, one in enumerate(leave):
        wait = max(time - HAND_OVER, 0.0) if index == 0 else 0.0
        rows.append(_row(f"{one.tensor} from nvm", wait + (one.microseconds or 0.0) * factor(), 1.0))
    return [*rows, *(_row(f"{one.tensor} copy finish", 2.0, factor()) for one in (*come, *leave))]


def _row(name: str, microseconds: float, factor: float) -> dict[str, Any]:
    return {"name": name, "averageMs": microseconds / 1e3 * factor}


# The server -----------------------------------------------------------------------------------------------------------


def serve(path: str, *, is_warm: bool) -> None:
    """Answer command lines at a Unix socket until the process is ended."""
    import dryfit.answers.trtexec.run  # noqa: F401  before the forks

    if is_warm:
        with tempfile.TemporaryDirectory() as folder:
            _build_before_forks(Path(folder))
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the system buries the children
    os.chdir(Path(path).parent)  # an address has at most 108 bytes
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(Path(path).name)
        listening.listen()
        _show("ready")
        while True:
            connection, _ = listening.accept()
            if os.fork() == 0:
                listening.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                os._exit(_answer(connection))
            connection.close()


def _build_before_forks(folder: Path) -> None:
    """Build all candidates of probes once: what that imports and loads, the forks share."""
    import onnx

    from dryfit.answers.asked import quiet_log
    from dryfit.answers.trtexec.run import exec_trtexec
    from dryfit.board.kit.probes import candidates, network_of

    path = folder / "all.onnx"
    onnx.save(network_of([one for one in candidates() if not one.is_alone and one.name != "pool_dilation_2"]), path)
    words = ["--fp16", "--useDLACore=0", "--allowGPUFallback", "--skipInference", "--profilingVerbosity=detailed"]
    with quiet_log():
        exec_trtexec([f"--onnx={path}", *words, f"--exportLayerInfo={folder / 'layers.json'}"], platform="orin-nx-16")


def _answer(connection: socket.socket) -> int:
    """Execute the command line that a client sends, in its folder."""
    code = 1
    with connection:
        os.dup2(connection.fileno(), 1)
        os.dup2(connection.fileno(), 2)
        try:
            root, folder, extra, arguments = json.loads(connection.makefile("rb").readline())
            os.chdir(root + folder)
            code = execute(arguments, json.loads(extra))
        except BaseException as error:  # noqa: BLE001  the client must see why
            _show(f"[E] {error!r}")
        sys.stdout.flush()
        os.write(1, bytes([code]))
    return code


if __name__ == "__main__":
    if sys.argv[1] == "--serve":
        serve(sys.argv[2], is_warm=sys.argv[3:] == ["--warm"])
    sys.exit(execute(sys.argv[2:], json.loads(sys.argv[1])))
