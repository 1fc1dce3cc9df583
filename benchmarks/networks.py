"""Whole networks through the engine: dryfit against ONNX Runtime and OpenVINO, interleaved in one process.

Usage: python benchmarks/networks.py [--networks resnet50 ...] [--precisions fp32 int8] [--threads 1 2]
                                     [--batches 1 8 32] [--seconds 6] [--cpu-time] [--layers] [--write]

dryfit runs an engine that was saved and loaded again; all sides get numpy arrays and give numpy arrays. Each peer runs
the form of the model that it is fastest with: for INT8 with signed or with unsigned activations, with Q and DQ around
every node or around what runs as one layer, or as quantized operators. dryfit runs the form that devices ask for:
signed activations, rounded once a layer (`measuring/tensorrt_form.py`). What is printed: the least time of each side,
its multiply-accumulates over that time as a share of this machine's peak (`measuring/peak.py`), the median over the
turns of the peer's time divided by dryfit's (above 1 dryfit is faster) with its quartiles, the bar for it, and peak
memory.

`--write` writes the results to docs/reference/benchmarks.md. A bar that is missed does not make the script fail.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from measuring.bars import BARS, ONNXRUNTIME, Comparison, Memory
from measuring.machine import machine_text, versions_text
from measuring.models import FORMS, NETWORKS, SHARED, Array, Model, is_there, model
from measuring.page import plain_table, table, write_section
from measuring.peak import share_of_peak
from measuring.peak_memory import DRYFIT, peak_mib
from measuring.ratios import best_of_three, median_ratio, rounds_within, spread, take_turns, timed
from measuring.runtimes import PEERS, Run, build_engine, dryfit_run

COLUMNS = (
    "network",
    "precision",
    "batch",
    "threads",
    "dryfit",
    "of peak",
    "peer",
    "its time",
    "ratio",
    "quartiles",
    "bar",
    "",
)
MEMORY_COLUMNS = ("network", "precision", "dryfit", "ONNX Runtime", "")
PRECISION_TOLERANCE = {"fp32": 1e-3, "int8": None}
"""Largest difference to ONNX Runtime, relative to the largest output; quantized forms differ by design."""


def main() -> None:
    """Measure, print, and write if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=list(NETWORKS))
    parser.add_argument("--precisions", nargs="+", choices=FORMS, help="those that a bar is set for where left out")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--seconds", type=float, default=6.0, help="about how long each comparison may take")
    parser.add_argument("--cpu-time", action="store_true", help="processor time instead of the clock, with one thread")
    parser.add_argument("--layers", action="store_true", help="print the host's time of each engine layer")
    parser.add_argument("--write", action="store_true", help="write the results to the page in docs")
    arguments = parser.parse_args()
    if arguments.cpu_time and (arguments.threads != [1] or arguments.write):
        parser.error("--cpu-time is for --threads 1, and is not written to the page: bars are of the clock")
    clock = time.process_time if arguments.cpu_time else time.perf_counter
    print(f"{machine_text()}; {versions_text()}")
    comparisons: list[Comparison] = []
    memories: list[Memory] = []
    with tempfile.TemporaryDirectory() as folder:
        precisions = arguments.precisions or FORMS
        for name, precision, batch in itertools.product(arguments.networks, precisions, arguments.batches):
            if arguments.precisions is None and (name, precision) not in BARS:
                continue
            if not is_there(name):
                print(f"{name} is left out: {NETWORKS[name].name} is not in {SHARED}")
                continue
            chosen, engine = model(name, precision, batch), Path(folder) / f"{name}-{precision}-{batch}.engine"
            build_engine(chosen.files[FORMS[precision][0]], engine)
            for threads in arguments.threads:
                for found in compare(chosen, engine, batch, threads, arguments.seconds, clock):
                    comparisons.append(found)
                    print(plain_table(COLUMNS, [row(found)]).splitlines()[1], flush=True)
            if arguments.layers:
                print_layers(chosen, engine)
            if batch == 1:
                memories.append(measure_memory(chosen, engine))
    print("\n" + plain_table(COLUMNS, list(map(row, comparisons))))
    if memories:
        print("Peak memory\n" + plain_table(MEMORY_COLUMNS, list(map(memory_row, memories))))
    if arguments.write:
        write_section("networks", section(comparisons, memories))


def compare(
    chosen: Model, engine: Path, batch: int, threads: int, budget: float, clock: Callable[[], float]
) -> Iterator[Comparison]:
    """Time dryfit and each peer's best form in turns.

    Raises:
        ValueError: dryfit's result is not that of ONNX Runtime.
    """
    image = chosen.image()
    sides = {DRYFIT: dryfit_run(engine, chosen.input_name, image, threads)}
    require_equal(chosen, sides[DRYFIT](), image)
    forms: dict[str, str] = {}
    for peer in PEERS:
        try:
            form, sides[peer] = fastest_form(chosen, peer, image, threads)
        except ImportError:
            print(f"{peer} is not installed, and is left out")
            continue
        forms[peer] = form
    measures = {side: timed(run, clock) for side, run in sides.items()}
    start = time.perf_counter()
    take_turns(measures, 1)
    seconds = take_turns(measures, rounds_within(time.perf_counter() - start, budget))
    share = share_of_peak(chosen.macs(), min(seconds[DRYFIT]), chosen.precision, threads)
    for peer, form in forms.items():
        own, other = seconds[DRYFIT], seconds[peer]
        yield Comparison(
            network=chosen.name,
            precision=chosen.precision,
            batch=batch,
            threads=threads,
            peer=peer,
            form="" if form == chosen.precision else form,
            own_ms=1e3 * min(own),
            peak_share=share,
            peer_ms=1e3 * min(other),
            ratio=median_ratio(own, other),
            low=spread(own, other)[0],
            high=spread(own, other)[1],
        )


def fastest_form(chosen: Model, peer: str, image: Array, threads: int) -> tuple[str, Run]:
    """The form of a model that a peer is fastest with, and a run of it. What a peer cannot load is not its best.

    Raises:
        ImportError: the peer is not installed.
        RuntimeError: it can load none of the forms.
    """
    runs: dict[str, Run] = {}
    for form, path in chosen.files.items():
        try:
            runs[form] = PEERS[peer](path, chosen.input_name, image, threads)
        except ImportError:
            raise
        except Exception as error:  # noqa: BLE001  each runtime has exceptions of its own
            print(f"{peer} cannot load {chosen.name} as {form}: {str(error).splitlines()[0]}")
    if not runs:
        raise RuntimeError(f"{peer} can load no form of {chosen.name}")
    if len(runs) == 1:
        return next(iter(runs.items()))
    seconds = {form: min(best_of_three(timed(run)) for _ in range(2)) for form, run in runs.items()}
    best = min(seconds, key=lambda form: seconds[form])
    return best, runs[best]


def require_equal(chosen: Model, result: Array, image: Array) -> None:
    """Refuse to compare the speed of what computes something else.

    Raises:
        ValueError: a difference to ONNX Runtime on the same model is too large.
    """
    tolerance = PRECISION_TOLERANCE[chosen.precision]
    expected = PEERS[ONNXRUNTIME](chosen.files[FORMS[chosen.precision][0]], chosen.input_name, image, 1)()
    difference = float(np.abs(result.ravel() - expected.ravel()).max() / np.abs(expected).max())
    if not np.isfinite(difference) or (tolerance is not None and difference > tolerance):
        raise ValueError(f"{chosen.name} {chosen.precision}: dryfit and ONNX Runtime differ by {difference:.2g}")


def measure_memory(chosen: Model, engine: Path) -> Memory:
    """Peak memory of dryfit and of ONNX Runtime's best form, the one that takes least, each in a process of its own."""
    own = peak_mib(DRYFIT, engine, chosen.input_name, chosen.shape)
    peers = [peak_mib(ONNXRUNTIME, path, chosen.input_name, chosen.shape) for path in chosen.files.values()]
    return Memory(chosen.name, chosen.precision, own, min(peers))


def print_layers(chosen: Model, engine: Path) -> None:
    """The least time of each engine layer in ten runs, with one thread."""
    import dryfit

    least: dict[str, float] = {}

    class Least(dryfit.Profiler):
        """Keeps the least."""

        def report_layer_time(self, layer_name: str, ms: float) -> None:
            least[layer_name] = min(ms, least.get(layer_name, ms))

    context = dryfit.Engine.load(engine).create_execution_context(num_threads=1)
    context.profiler = Least()
    for _ in range(10):
        context.run({chosen.input_name: chosen.image()})
    for name, ms in least.items():
        print(f"  {1e3 * ms:8.0f} us  {name}")


# The tables -----------------------------------------------------------------------------------------------------------


def row(found: Comparison) -> tuple[object, ...]:
    """A comparison as cells."""
    return (
        found.network,
        found.precision.upper(),
        found.batch,
        found.threads,
        f"{found.own_ms:.2f} ms",
        found.peak_share,
        f"{found.peer} {found.form}".strip(),
        f"{found.peer_ms:.2f} ms",
        f"{found.ratio:.2f}",
        f"{found.low:.2f} to {found.high:.2f}",
        "" if found.bar is None else f">= {found.bar:g}",
        found.verdict,
    )


def memory_row(found: Memory) -> tuple[object, ...]:
    """A network's memory as cells."""
    own, peer = f"{found.own_mib:.0f} MiB", f"{found.peer_mib:.0f} MiB"
    return (found.network, found.precision.upper(), own, peer, found.verdict)


def section(comparisons: list[Comparison], memories: list[Memory]) -> str:
    """The section of the page."""
    judged = [one for one in comparisons if one.bar is not None]
    met = sum(one.verdict == "met" for one in judged)
    return (
        f"Measured on {machine_text()}, with {versions_text()}. {met} of {len(judged)} bars are met.\n\n"
        + table(COLUMNS, list(map(row, comparisons)))
        + "\nA question mark: the quartiles lie on both sides of the bar, so measure again on a quieter machine.\n"
        + "\nPeak memory of a process that loads the model and runs it ten times with one thread. The bar is what\n"
        + "ONNX Runtime takes:\n\n"
        + table(MEMORY_COLUMNS, list(map(memory_row, memories)))
    )


if __name__ == "__main__":
    main()
