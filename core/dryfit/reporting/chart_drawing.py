"""Draws charts in a process of its own, beside the questions that a report asks.

vl-convert holds Python's lock while it starts and draws, which takes seconds for a report: a thread would stop the
rest. The process reads a Vega-Lite specification from each line, and writes an SVG for it.
"""

from __future__ import annotations

import atexit
import functools
import importlib.util
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from concurrent.futures import Future
from pathlib import Path

from dryfit.errors import DryfitError

KEPT_CHARTS = 64
"""Charts that are not drawn again: more than a report has."""


@functools.lru_cache(KEPT_CHARTS)
def drawing(specification: str) -> Future[str]:
    """Return a chart that is being drawn, or was drawn for the same specification.

    Args:
        specification: Vega-Lite specification, as JSON in one line.
    """
    return start_drawing().draw(specification)


@functools.cache
def start_drawing() -> ChartDrawer:
    """Start what draws charts, once: it takes most of a second, in which facts can be gathered."""
    return ChartDrawer()


def is_installed() -> bool:
    """Return whether vl-convert, which draws charts, is installed."""
    return importlib.util.find_spec("vl_convert") is not None


class ChartDrawer:
    """Draws one chart after another. It ends with this process."""

    def __init__(self) -> None:
        self._process = _started() if is_installed() and _can_start_processes() else None
        atexit.register(self.end)
        self._waiting: queue.SimpleQueue[tuple[str, Future[str]]] = queue.SimpleQueue()
        threading.Thread(target=self._draw_all, name="charts", daemon=True).start()

    @property
    def process_id(self) -> int | None:
        """Id of the process; None if charts are drawn in this one."""
        return None if self._process is None else self._process.pid

    def end(self) -> None:
        """End the process; charts that wait fail."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def draw(self, specification: str) -> Future[str]:
        """Draw a chart after those that wait."""
        found: Future[str] = Future()
        self._waiting.put((specification, found))
        return found

    def _draw_all(self) -> None:
        while True:
            specification, found = self._waiting.get()
            try:
                found.set_result(self._drawn(specification))
            except Exception as error:  # noqa: BLE001  whoever asks for the chart gets it
                found.set_exception(error)

    def _drawn(self, specification: str) -> str:
        """The SVG of a chart.

        Raises:
            ValueError: The specification is wrong.
            DryfitError: The process ended.
        """
        if self._process is None:
            return drawn(specification)
        given, taken = self._process.stdin, self._process.stdout
        assert given is not None and taken is not None  # noqa: S101, PT018  both are pipes
        line = ""
        try:
            print(specification, file=given, flush=True)
            line = taken.readline()
        except OSError:  # the process has closed its side
            pass
        if not line:
            raise DryfitError(
                "The process that draws charts ended unexpectedly",
                found=f"exit code {self._process.wait()}",
                remedy="Its last messages are above; check the installation of vl-convert",
            )
        answer = json.loads(line)
        if "error" in answer:
            raise ValueError(answer["error"])
        svg: str = answer["svg"]
        return svg


def _started() -> subprocess.Popen[str]:
    # -P: what lies in the working directory must not be imported in place of what is installed.
    command = [sys.executable, "-P", "-m", "dryfit.reporting.chart_drawing"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.Popen(  # noqa: S603  this interpreter and this module
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="ascii"
    )


def _can_start_processes() -> bool:
    """Whether this interpreter can be started again: an application that embeds Python names itself as such."""
    return not getattr(sys, "frozen", False) and Path(sys.executable or "").name.lower().startswith(("python", "pypy"))


def _forget() -> None:
    """Leave the process and the thread to the parent of a fork."""
    start_drawing.cache_clear()
    drawing.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


# The process ----------------------------------------------------------------------------------------------------------


def drawn(specification: str) -> str:
    """Return the SVG of a chart.

    Raises:
        ValueError: The specification is wrong.
    """
    import vl_convert

    svg: str = vl_convert.vegalite_to_svg(json.loads(specification))
    return svg


def main() -> None:
    """Draw what each line asks for, until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends this process
    drawn('{"data": {"values": []}, "mark": "bar"}')  # starts JavaScript
    for line in sys.stdin:
        try:
            answer = {"svg": drawn(line)}
        except ValueError as error:
            answer = {"error": str(error)}
        print(json.dumps(answer), flush=True)  # noqa: T201  read by the parent


if __name__ == "__main__":
    main()
