"""Many contexts of one engine, as a server has them: runs a second, latency and memory beside those of one context.

Usage: python benchmarks/contexts.py [--network mobilenetv2] [--precision fp32] [--contexts 1 8] [--threads 2]
                                     [--seconds 2] [--rounds 5] [--write]

Each context has a caller, a Python thread that runs it again and again; all share the engine's weights and the helper
threads of the process. ONNX Runtime has one session with as many callers. The counts take turns. Told are the median
over the turns of the runs a second, the processor's time for a run, and the median and the 99th percentile of how long
a run took its caller: with eight callers on two processors, a run waits for the others. Peak memory is that of a
process of its own. The bar: as many runs a second by eight contexts as by one.

`--write` writes the results to docs/reference/benchmarks.md. A bar that is missed does not make the script fail.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import attrs

import dryfit
from dryfit.engine.profiler import percentile
from measuring.bars import ONNXRUNTIME
from measuring.machine import machine_text, versions_text
from measuring.models import FORMS, NETWORKS, Model, model
from measuring.page import plain_table, table, write_section
from measuring.peak_memory import DRYFIT, own_peak_mib
from measuring.ratios import latency_text
from measuring.runtimes import Run, build_engine, onnxruntime_run

COLUMNS = ("side", "contexts", "threads", "runs a second", "CPU a run", "p50", "p99", "peak memory")
LEAST_THROUGHPUT = 1.0


@attrs.frozen
class Turn:
    """What callers did together.

    Attributes:
        seconds: by the clock, until the last run ended.
        cpu_seconds: of all threads.
        latencies: seconds of each run.
    """

    seconds: float
    cpu_seconds: float
    latencies: Sequence[float]

    @property
    def runs_a_second(self) -> float:
        """How many runs ended in a second."""
        return len(self.latencies) / self.seconds


def main() -> None:
    """Measure, print, and write if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", choices=NETWORKS, default="mobilenetv2")
    parser.add_argument("--precision", choices=FORMS, default="fp32")
    parser.add_argument("--contexts", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--threads", type=int, default=2, help="of each context")
    parser.add_argument("--seconds", type=float, default=2.0, help="of a turn")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="write the results to the page in docs")
    parser.add_argument("--peak", nargs=2, metavar=("ENGINE", "CONTEXTS"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    chosen = model(arguments.network, arguments.precision, 1)
    if arguments.peak is not None:
        print_peak(Path(arguments.peak[0]), int(arguments.peak[1]), chosen, arguments.threads)
        return
    print(f"{machine_text()}; {versions_text()}")
    with tempfile.TemporaryDirectory() as folder:
        path, found = Path(folder) / "network.engine", dict[tuple[str, int], list[Turn]]()
        build_engine(chosen.files[FORMS[arguments.precision][0]], path)
        sides = {(DRYFIT, count): context_runs(path, chosen, count, arguments.threads) for count in arguments.contexts}
        session = onnxruntime_run(
            chosen.files[FORMS[arguments.precision][0]], chosen.input_name, chosen.image(), arguments.threads
        )
        sides |= {(ONNXRUNTIME, count): [session] * count for count in arguments.contexts}
        for _ in range(arguments.rounds):
            for side, runs in sides.items():
                found.setdefault(side, []).append(take_turn(runs, arguments.seconds))
        peaks = {
            (DRYFIT, count): peak_mib(path, count, arguments.network, arguments.precision, arguments.threads)
            for count in arguments.contexts
        }
    rows = [row(*side, arguments.threads, turns, peaks.get(side)) for side, turns in found.items()]
    verdict = throughput_verdict(found)
    print("\n" + plain_table(COLUMNS, rows) + verdict)
    if arguments.write:
        about = f"{arguments.network} {arguments.precision.upper()} on {machine_text()}, with {versions_text()}"
        write_section("contexts", f"Measured with {about}.\n\n" + table(COLUMNS, rows) + f"\n{verdict}\n")


def context_runs(engine: Path, chosen: Model, count: int, threads: int) -> list[Run]:
    """A run of each of so many contexts of one engine."""
    loaded = dryfit.Engine.load(engine)
    feeds = {chosen.input_name: chosen.image()}

    def run_of(context: dryfit.ExecutionContext) -> Run:
        return lambda: next(iter(context.run(feeds).values()))

    return [run_of(loaded.create_execution_context(num_threads=threads)) for _ in range(count)]


def take_turn(runs: Sequence[Callable[[], object]], seconds: float) -> Turn:
    """Run all again and again for so long, each in a thread of its own; each runs once before."""
    for run in runs:
        run()
    latencies: list[list[float]] = [[] for _ in runs]
    start, cpu_start = time.perf_counter(), time.process_time()

    def call(run: Callable[[], object], into: list[float]) -> None:
        now = time.perf_counter()
        while now - start < seconds:
            run()
            before, now = now, time.perf_counter()
            into.append(now - before)

    callers = [threading.Thread(target=call, args=one) for one in zip(runs, latencies, strict=True)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    return Turn(
        time.perf_counter() - start, time.process_time() - cpu_start, [one for mine in latencies for one in mine]
    )


def peak_mib(engine: Path, count: int, network: str, precision: str, threads: int) -> float:
    """MiB that a process with so many contexts needs, after each has run twice.

    Raises:
        subprocess.CalledProcessError: the process fails.
    """
    command = [sys.executable, __file__, "--peak", str(engine), str(count), "--network", network]
    command += ["--precision", precision, "--threads", str(threads)]
    found = subprocess.run(command, cwd=Path(__file__).parent, stdout=subprocess.PIPE, text=True, check=True)  # noqa: S603
    return float(found.stdout)


def print_peak(engine: Path, count: int, chosen: Model, threads: int) -> None:
    """Load, run each context, and print MiB."""
    for run in context_runs(engine, chosen, count, threads):
        run()
        run()
    print(own_peak_mib())


def row(side: str, count: int, threads: int, turns: Sequence[Turn], peak: float | None) -> tuple[object, ...]:
    """A side's medians as cells."""
    latencies = [one for turn in turns for one in turn.latencies]
    return (
        side,
        count,
        threads,
        f"{statistics.median(turn.runs_a_second for turn in turns):.1f}",
        f"{1e3 * statistics.median(turn.cpu_seconds / len(turn.latencies) for turn in turns):.2f} ms",
        latency_text(percentile(latencies, 50)),
        latency_text(percentile(latencies, 99)),
        "" if peak is None else f"{peak:.0f} MiB",
    )


def throughput_verdict(found: dict[tuple[str, int], list[Turn]]) -> str:
    """Runs a second of the most contexts over those of one, and whether the bar is met."""
    counts = sorted(count for side, count in found if side == DRYFIT)
    if len(counts) < 2:
        return ""
    pairs = zip(found[DRYFIT, counts[-1]], found[DRYFIT, counts[0]], strict=True)
    ratio = statistics.median(many.runs_a_second / one.runs_a_second for many, one in pairs)
    word = "met" if ratio >= LEAST_THROUGHPUT else "MISSED"
    return f"{counts[-1]} contexts: {ratio:.2f} times the runs a second of {counts[0]} (at least 1): {word}"


if __name__ == "__main__":
    main()
