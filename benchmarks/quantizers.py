"""dryfit's INT8 beside that of other quantizers: the same pictures, each network run by its quantizer's own runtime.

Usage: python benchmarks/quantizers.py --plans FOLDER [--models clothing ...] [--dryfit-only] [--write]

All sides are judged against the answers of ONNX Runtime in FP32. No picture that is judged was calibrated or tuned
with. *Tuned* is the first plan of benchmarks/tuning.py for the network, from the same folder. `--write` writes the
table to docs/reference/int8-accuracy.md; it takes two hours or so. With `--dryfit-only`, the other quantizers are not
run: their rows stay as the page has them.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import dryfit
from dryfit.quantization.cache_forms import read_ranges, set_ranges
from int8_accuracy import PAGE, Rows, agreement_text, chosen, decibels, right_text
from measuring.accuracy import (
    BUILDS,
    Answers,
    calibrated,
    classes,
    measured,
    network_of,
    onnxruntime_answers,
    worst_sqnr,
)
from measuring.accuracy_cases import CASES, SHARED, AccuracyCase, Pictures
from measuring.other_quantizers import quantized_answers
from measuring.page import plain_table, section_rows, table, write_section
from measuring.tuned import DEVICES, SETTINGS, plan_of

COLUMNS = ("network", "quantized and run by", "right", "same class as FP32", "worst SQNR", "in floating point")
FP32, DRYFIT = "FP32", "dryfit, "
"""The side that all are judged against, and how those of dryfit begin."""
NETWORKS = ("mobilenetv2-fp32", "squeezenet1.1-fp32", "clothing_mobilenetv2", "yolox_nano", "yunet")


def main() -> None:
    """Measure, print, and write if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plans", type=Path, required=True, help="folder of the plans of `dryfit tune`")
    parser.add_argument("--models", nargs="+", default=NETWORKS, help="parts of the names of those that are measured")
    parser.add_argument("--dryfit-only", action="store_true", help="keep the page's rows of the other quantizers")
    parser.add_argument("--write", action="store_true", help="write the results to the page in docs")
    arguments = parser.parse_args()
    if arguments.write and arguments.models is not NETWORKS:
        parser.error("--write writes all networks: leave --models out")
    kept = others_of(section_rows("quantizers", PAGE)) if arguments.dryfit_only else {}
    every: Rows = []
    for case in chosen(CASES, arguments.models):
        rows = rows_of(case, arguments.plans, kept.get(case.file))
        every += rows
        print(plain_table(COLUMNS, rows), flush=True)
    if arguments.write:
        write_section("quantizers", table(COLUMNS, every), PAGE)


def others_of(rows: Sequence[tuple[str, ...]]) -> dict[str, Rows]:
    """The rows of the other quantizers, by network."""
    found: dict[str, Rows] = {}
    network = ""
    for row in rows:
        network = row[0] or network
        if row[1] != FP32 and not row[1].startswith(DRYFIT):
            found.setdefault(network, []).append(row)
    return found


def rows_of(case: AccuracyCase, plans: Path, others: Rows | None) -> Rows:
    """A network by all sides; with the rows of the other quantizers where they are known."""
    model = SHARED / "models" / case.file
    network = network_of(case, SHARED / "models")
    pictures = case.pictures(SHARED / "images", network.inputs[0])
    reference = onnxruntime_answers(model, pictures)
    rows: Rows = [(case.file, FP32, right_text(reference, pictures), "", "", "")]
    every: Iterable[Side] = dryfit_sides(case, network, pictures, plans)
    if others is None:
        every = chain(every, other_sides(case, network, pictures))
    for side, answers, kept in every:
        if isinstance(answers, str):
            rows.append(("", side, answers, "", "", ""))
            continue
        same = float((classes(answers) == classes(reference)).mean()) if case.has_classes else None
        agreement = "no classes" if same is None else agreement_text(same)
        noise = decibels(worst_sqnr(reference, answers))
        rows.append(("", side, right_text(answers, pictures), agreement, noise, kept))
    return rows + (others or [])


Side = tuple[str, Answers | str, str]
"""Who quantized the network, its answers or why there are none, and how much of it stays in floating point."""


def dryfit_sides(case: AccuracyCase, network: dryfit.Network, pictures: Pictures, plans: Path) -> Iterator[Side]:
    """The network by dryfit, on each device."""
    cache = calibrated(network, pictures, ("entropy2",))["entropy2"]
    setting = next(one for one in SETTINGS if one.file == case.file)
    for device in DEVICES:
        build = f"INT8 {device}"
        yield f"{DRYFIT}{build}, entropy2", measured(network, BUILDS[build], pictures, cache).answers, ""
        yield f"{DRYFIT}{build}, auto", judged_by_outputs(case, device, pictures), ""
        plan = plan_of(setting, device, pictures, plans)
        yield f"{DRYFIT}{build}, tuned", plan.answers, f"{plan.found['half_macs']:.1%}"


def judged_by_outputs(case: AccuracyCase, device: str, pictures: Pictures) -> Answers:
    """The answers of the network with the ranges of the calibrator `auto`."""
    with TemporaryDirectory() as folder:
        samples, cache = Path(folder, "samples.npy"), Path(folder, "auto.cache")
        np.save(samples, np.concatenate(pictures.calibration))
        dryfit.calibrate(SHARED / "models" / case.file, samples, calibrator="auto", device=device, output=cache)
        network = network_of(case, SHARED / "models")
        set_ranges(network, read_ranges(cache), "cache")
    return measured(network, BUILDS[f"INT8 {device}"], pictures).answers


def other_sides(case: AccuracyCase, network: dryfit.Network, pictures: Pictures) -> Iterator[Side]:
    """The network by the other quantizers."""
    shape = network.inputs[0].shape
    for side, answers in quantized_answers(
        SHARED / "models" / case.file, pictures, shape, has_classes=case.has_classes
    ):
        yield side, answers, ""


if __name__ == "__main__":
    main()
