"""The schedule with more threads than this machine has, simulated: what a slow core, or one that is taken away, costs.

Usage: python benchmarks/schedule_simulation.py [--network mobilenetv2] [--precision fp32] [--threads 4 8 16] [--write]

The work of an engine is bound for so many threads, and each row of it is timed on one thread here (processor time, the
least of several). Then the dispatcher's rules (`native/dispatch.py`) are followed in simulated time: a thread takes the
chunks of its own share, one by one, then those that others have left; the next row begins when all chunks are done.
Chunks of a row are taken to be equally long, a claim to cost 0.1 us and the end of a row 0.3 us. What memory and shared
caches cost several threads is not in it: speedups are upper bounds, and what counts is how far each case is from its
ideal, the work divided by the speed of all cores together.

* *even*: all cores alike.
* *half*: one core at half the speed.
* *away*: one core is taken away in the middle of a run, for as long as the run would take.
* *fixed*: the *half* case without taking over what others have left, as a schedule with fixed shares would do.
"""

from __future__ import annotations

import argparse
import heapq
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import attrs

import dryfit
from dryfit_cpu.compiler.native import FUNCTION, NativeStep, Work
from measuring.machine import machine_text, versions_text
from measuring.models import FORMS, NETWORKS, Model, model
from measuring.page import plain_table, table, write_section
from measuring.runtimes import build_engine

COLUMNS = ("network", "threads", "1 thread", "even", "of ideal", "half", "of ideal", "away", "of ideal", "fixed")
CLAIM_SECONDS, ROW_SECONDS = 1e-7, 3e-7
"""An atomic operation on a line that another core wrote last, and two of them with the wait between; measured."""

Ends = Callable[[int, float, float], float]
"""(thread, start, seconds of work) to when it ends."""


@attrs.frozen
class Row:
    """Work that begins when the row before has ended: how many chunks, and seconds of all on one thread."""

    chunks: int
    seconds: float


def main() -> None:
    """Time the rows, simulate, print, and write if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", nargs="+", choices=NETWORKS, default=["resnet50", "mobilenetv2"])
    parser.add_argument("--precision", choices=FORMS, default="fp32")
    parser.add_argument("--threads", type=int, nargs="+", default=[4, 8, 16])
    parser.add_argument("--write", action="store_true", help="write the results to the page in docs")
    arguments = parser.parse_args()
    found = []
    for name in arguments.network:
        chosen = model(name, arguments.precision, 1)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "network.engine"
            build_engine(chosen.files[FORMS[arguments.precision][0]], path)
            for threads in arguments.threads:
                found.append(line(f"{name} {arguments.precision.upper()}", rows_of(path, chosen, threads), threads))
                print(plain_table(COLUMNS, found[-1:]).splitlines()[1], flush=True)
    print("\n" + plain_table(COLUMNS, found))
    if arguments.write:
        about = f"Rows timed on {machine_text()}, with {versions_text()}; the rest is simulated.\n\n"
        write_section("schedule", about + table(COLUMNS, found))


def rows_of(engine: Path, chosen: Model, threads: int) -> list[Row]:
    """The rows of a network that is bound for so many threads."""
    context = dryfit.Engine.load(engine).create_execution_context(num_threads=threads)
    context.run({chosen.input_name: chosen.image()})
    (bound,) = context._bindings.values()  # noqa: SLF001  what no user needs
    steps = [step for part in bound._parts for step in part.steps if isinstance(step, NativeStep)]  # noqa: SLF001
    return [Row(work.chunks, seconds_of(work)) for step in steps for work in step.work]


def seconds_of(work: Work) -> float:
    """The least processor time of all chunks on this thread."""
    call, address = FUNCTION(work.function), work.descriptor.ctypes.data
    times = []
    for _ in range(7):
        start = time.process_time()
        for chunk in range(work.chunks):
            call(address, chunk, work.chunks)
        times.append(time.process_time() - start)
    return min(times)


def line(name: str, rows: Sequence[Row], threads: int) -> tuple[object, ...]:
    """The cells of a network with so many threads."""
    alone = sum(row.seconds for row in rows)

    def slow(thread: int, start: float, seconds: float) -> float:
        return start + (2 * seconds if thread == 1 else seconds)

    even = simulated(rows, threads, lambda _, start, seconds: start + seconds)
    gone_from, gone_to = even / 2, 1.5 * even

    def away(thread: int, start: float, seconds: float) -> float:
        if thread != 1 or start + seconds <= gone_from or start >= gone_to:
            return start + seconds
        return gone_to + seconds - max(0.0, gone_from - start)

    half, taken = simulated(rows, threads, slow), simulated(rows, threads, away)
    fixed = simulated(rows, threads, slow, takes_over=False)
    ideal, ideal_half = alone / threads, alone / (threads - 0.5)
    ideal_away = ideal / 2 + (alone / 2) / (threads - 1)
    cells = [(even, ideal), (half, ideal_half), (taken, ideal_away)]
    compared = [cell for time_, best in cells for cell in (f"{1e3 * time_:.2f} ms", f"{time_ / best:.2f}")]
    return (name, threads, f"{1e3 * alone:.2f} ms", *compared, f"{1e3 * fixed:.2f} ms")


def simulated(rows: Sequence[Row], threads: int, ends: Ends, *, takes_over: bool = True) -> float:
    """When the last row ends.

    Args:
        rows: in order.
        threads: how many take part, from the beginning.
        ends: when a thread that starts some work has done it.
        takes_over: whether a thread goes on with chunks of other threads' shares.
    """
    now = 0.0
    for row in rows:
        shares = [
            -(-(thread + 1) * row.chunks // threads) - -(-thread * row.chunks // threads) for thread in range(threads)
        ]
        chunk_seconds, latest = row.seconds / row.chunks, now
        waiting = [(now, thread) for thread in range(threads)]
        while waiting:
            start, thread = heapq.heappop(waiting)
            owners = [(thread + turn) % threads for turn in range(threads if takes_over else 1)]
            owner = next((one for one in owners if shares[one]), None)
            if owner is None:
                continue
            shares[owner] -= 1
            end = ends(thread, start, chunk_seconds + CLAIM_SECONDS)
            latest = max(latest, end)
            heapq.heappush(waiting, (end, thread))
        now = latest + ROW_SECONDS
    return now


if __name__ == "__main__":
    main()
