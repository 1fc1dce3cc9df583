"""What entropy calibration costs: against plain FP32 inference of the same images, and against ONNX Runtime.

Usage: python benchmarks/calibration.py [--images 64] [--threads 1] [--rounds 3] [--sides plain dryfit onnxruntime]
                                        [--write]

onnx's bundled ResNet-50 with random weights and its normalizations folded, 124 tensors; images of noise with a falling
spectrum, prepared beforehand. Each side is a process of its own, and they take turns; told are the CPU seconds of the
whole process, imports, build and search included, its seconds on the clock, and its peak memory. dryfit is also run
with a quarter of the images: its memory must not grow with their number. Least of the rounds; ratios are medians of
the rounds' ratios. ONNX Runtime, which needs minutes and 111 MiB an image, is run once.

`--write` writes the results to docs/reference/benchmarks.md. A bar that is missed does not make the script fail.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs
import numpy as np

from measuring.calibration_models import calibration_model, pictures
from measuring.calibration_sides import SIDES
from measuring.machine import machine_text, versions_text
from measuring.page import plain_table, table, write_section

SECTION = "calibration"
MOST_TIMES_PLAIN, LEAST_TIMES_FASTER, MOST_MIB, MOST_GROWTH_MIB, MOST_SEARCH_MS = 1.3, 3.0, 600.0, 16.0, 5.0
"""The bars: CPU over plain inference's, ONNX Runtime's CPU over dryfit's, peak memory, its growth by more images, the
search of a tensor."""

COLUMNS = ("side", "images", "CPU", "clock", "peak memory")
FEW = "dryfit, fewer images"


@attrs.frozen
class Spent:
    """What a process took: seconds of all its threads on a processor, on the clock; ms of search a tensor; peak MiB."""

    cpu_seconds: float
    seconds: float
    search_ms: float
    peak_mib: float


def main() -> None:
    """Measure, print, and write if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=64)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=list(SIDES))
    parser.add_argument("--write", action="store_true", help="write the results to the page in docs")
    arguments = parser.parse_args()
    print(f"{machine_text()}; {versions_text()}")
    model = calibration_model()
    few = max(1, arguments.images // 4)
    with tempfile.TemporaryDirectory() as place:
        folders = {count: Path(place) / str(count) for count in (few, arguments.images)}
        for count, folder in folders.items():
            write_images(folder, count)
        runs = {side: (side, arguments.images) for side in arguments.sides}
        if "dryfit" in arguments.sides:
            runs[FEW] = ("dryfit", few)
        found: dict[str, list[Spent]] = {name: [] for name in runs}
        for turn in range(arguments.rounds + 1):
            for name, (side, count) in runs.items():
                if side == "onnxruntime" and turn != 1:
                    continue
                spent = measured(side, model, folders[count], arguments.threads)
                # The first turn compiles what is not kept yet.
                if turn:
                    found[name].append(spent)
                    print(f"{name}: {spent.cpu_seconds:.1f} s CPU, {spent.peak_mib:.0f} MiB", flush=True)
    rows = [row(name, runs[name][1], spents) for name, spents in found.items()]
    print("\n" + plain_table(COLUMNS, rows) + "\n".join(verdicts(found)))
    if arguments.write:
        head = f"Measured on {machine_text()}, {arguments.threads} threads, with {versions_text()}.\n\n"
        bars = "".join(f"* {line}\n" for line in verdicts(found))
        write_section(SECTION, head + table(COLUMNS, rows) + "\n" + bars)


def write_images(folder: Path, count: int) -> None:
    """A file for each image."""
    folder.mkdir(exist_ok=True)
    for index, image in enumerate(pictures(count)):
        np.save(folder / f"{index:04d}.npy", image)


def measured(side: str, model: Path, folder: Path, threads: int) -> Spent:
    """One run of a side.

    Raises:
        subprocess.CalledProcessError: the process fails.
    """
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "measuring.calibration_sides", side, str(model), str(folder), str(threads)]
    printed = subprocess.run(  # noqa: S603  this interpreter and this package
        command, cwd=Path(__file__).parent, stdout=subprocess.PIPE, text=True, check=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    search, peak = map(float, printed.stdout.split()[-2:])
    return Spent(cpu, time.perf_counter() - start, search, peak)


def row(name: str, count: int, spents: Sequence[Spent]) -> tuple[object, ...]:
    """A side's least figures as cells."""
    return (
        name,
        count,
        f"{min(one.cpu_seconds for one in spents):.1f} s",
        f"{min(one.seconds for one in spents):.1f} s",
        f"{max(one.peak_mib for one in spents):.0f} MiB",
    )


def verdicts(found: Mapping[str, Sequence[Spent]]) -> list[str]:
    """What was found of each bar for which there are figures."""
    lines = []
    if {"plain", "dryfit"} <= found.keys():
        times = _ratio(found["dryfit"], found["plain"])
        lines.append(
            _verdict(f"{times:.2f} times the CPU of plain inference", times <= MOST_TIMES_PLAIN, "at most 1.3")
        )
    if {"onnxruntime", "dryfit"} <= found.keys():
        times = _ratio(found["onnxruntime"], found["dryfit"])
        lines.append(
            _verdict(f"{times:.1f} times less CPU than ONNX Runtime", times >= LEAST_TIMES_FASTER, "at least 3")
        )
    if "dryfit" in found:
        search = min(one.search_ms for one in found["dryfit"])
        lines.append(_verdict(f"{search:.1f} ms of search a tensor", search <= MOST_SEARCH_MS, "at most 5 ms"))
        peak = max(one.peak_mib for one in found["dryfit"])
        growth = peak - max(one.peak_mib for one in found[FEW])
        lines.append(_verdict(f"{peak:.0f} MiB at the peak", peak <= MOST_MIB, "at most 600 MiB"))
        lines.append(
            _verdict(
                f"{growth:.0f} MiB more than with a quarter of the images", growth <= MOST_GROWTH_MIB, "at most 16"
            )
        )
    return lines


def _ratio(own: Sequence[Spent], other: Sequence[Spent]) -> float:
    return statistics.median(a.cpu_seconds / b.cpu_seconds for a, b in zip(own, other, strict=False))


def _verdict(text: str, is_met: bool, bar: str) -> str:
    return f"{text} ({bar}): {'met' if is_met else 'MISSED'}"


if __name__ == "__main__":
    main()
