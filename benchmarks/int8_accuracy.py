"""How right the shared networks are in INT8: against their own FP32 answers, and against labels where there are any.

Usage: python benchmarks/int8_accuracy.py [--models clothing ...] [--write]

Each network is calibrated once; all calibrators find their scales from what was gathered. No picture that is judged was
calibrated with. FP32 answers are those of the FP32 engine, which tests hold against ONNX Runtime. `--write` writes the
tables to docs/reference/int8-accuracy.md. Times play no part: every run gives the same numbers.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import attrs

from measuring.accuracy import BUILDS, Answers, classes, measured, network_of, onnxruntime_answers, sqnr
from measuring.accuracy_cases import CASES, EXPLICIT_CASES, SHARED, AccuracyCase, Pictures, photo_paths
from measuring.accuracy_comparison import CALIBRATORS, ENOUGH, Comparison, compare
from measuring.detections import DETECTORS
from measuring.page import plain_table, table, write_section
from measuring.rounded_tensors import rounded_tensors

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "int8-accuracy.md"
NUM_COSTLY = 5
"""How many of the tensors that cost most are named."""

Rows = list[tuple[object, ...]]


def main() -> None:
    """Measure, print, and write if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=[""], help="parts of the names of those that are measured")
    parser.add_argument("--write", action="store_true", help="write the results to the page in docs")
    arguments = parser.parse_args()
    if arguments.write and arguments.models != [""]:
        parser.error("--write writes all networks: leave --models out")
    found: dict[str, Rows] = {name: [] for name in SECTIONS}
    for case in chosen(CASES, arguments.models):
        comparison = compare(case)
        for name, (columns, rows_of) in SECTIONS.items():
            rows = rows_of(comparison)
            found[name] += rows
            if rows:
                print(plain_table(columns, rows), flush=True)
    explicit = [row for case in chosen(EXPLICIT_CASES, arguments.models) for row in explicit_rows(case)]
    if explicit:
        print(plain_table(EXPLICIT_COLUMNS, explicit))
    if arguments.write:
        for name, (columns, _) in SECTIONS.items():
            write_section(name, table(columns, found[name]), PAGE)
        write_section("explicit", table(EXPLICIT_COLUMNS, explicit), PAGE)


def chosen(cases: tuple[AccuracyCase, ...], parts: list[str]) -> list[AccuracyCase]:
    """Those whose name has one of the parts."""
    return [case for case in cases if any(part in case.file for part in parts)]


# The tables of networks without scales of their own -------------------------------------------------------------------


def accuracy_rows(found: Comparison) -> Rows:
    """What each engine of a network gets right."""
    rows: Rows = []
    for name, engine in found.engines.items():
        narrow = ", ".join(f"{count} on {device}" for device, count in engine.int8_layers.items())
        same, noise = "", ""
        if name != "FP32":
            same = agreement_text(found.agreement(engine)) if found.case.has_classes else "no classes"
            noise = decibels(found.worst_noise(engine))
        head = ("", "") if rows else (found.case.file, sum(map(len, found.pictures.judged)))
        right = right_text(engine.answers, found.pictures)
        rows.append((*head, name, f"{narrow or 0} of {engine.layers}", right, same, noise))
    return rows


def calibrator_rows(found: Comparison) -> Rows:
    """What each calibrator makes of a network: SQNR, and how many classes stay the same."""
    rows: Rows = []
    for build in dict.fromkeys(build for build, _ in found.others):
        engines = [found.others[build, calibrator] for calibrator in CALIBRATORS]
        cells = [decibels(found.worst_noise(engine)) for engine in engines]
        if found.case.has_classes:
            cells = [f"{cell}, {found.agreement(engine):.1%}" for cell, engine in zip(cells, engines, strict=True)]
        rows.append(("" if rows else found.case.file, build, *cells))
    return rows


def output_rows(found: Comparison) -> Rows:
    """SQNR of every output of a network that loses."""
    rows: Rows = []
    for output in found.reference.answers if found.is_lossy else ():
        noises = (decibels(found.noise(engine, output)) for engine in found.narrow.values())
        rows.append(("" if rows else found.case.file, f"`{output}`", *noises))
    return rows


def detection_rows(found: Comparison) -> Rows:
    """What a detector sees best in each photo."""
    rows: Rows = []
    best = DETECTORS.get(found.case.file)
    for index, photo in enumerate(photo_paths(SHARED / "images")[1] if best is not None else ()):
        seen = (best(engine.answers, index) for engine in found.engines.values())
        rows.append(("" if rows else found.case.file, photo.name, *(f"{what} {score:.3f}" for what, score in seen)))
    return rows


def tensor_rows(found: Comparison) -> Rows:
    """The tensors of a network that loses whose rounding costs most."""
    rows: Rows = []
    if found.is_lossy:
        names = found.engines["INT8 GPU"].int8_tensors
        costs = rounded_tensors(found.network, found.pictures, found.cache, names)
        for one in sorted(costs, key=lambda one: one.sqnr)[:NUM_COSTLY]:
            cells = (f"`{one.tensor}`", f"{one.threshold:.4g}", f"`{one.output}`", decibels(one.sqnr))
            rows.append(("" if rows else found.case.file, *cells))
    return rows


SECTIONS: dict[str, tuple[tuple[str, ...], Callable[[Comparison], Rows]]] = {
    "accuracy": (("network", "pictures", "in", "INT8 layers", "right", "same class as FP32", "SQNR"), accuracy_rows),
    "calibrators": (("network", "in", *CALIBRATORS), calibrator_rows),
    "outputs": (("network", "output", *(name for name in BUILDS if name != "FP32")), output_rows),
    "detections": (("network", "photo", *BUILDS), detection_rows),
    "tensors": (("network", "tensor rounded", "holds up to", "output that suffers", "its SQNR"), tensor_rows),
}
"""Name of a section of the page to the columns of its table, and what makes the rows of a network."""


# The table of networks that another tool quantized --------------------------------------------------------------------

EXPLICIT_COLUMNS = ("network", "run by", "right", "same class as FP32", "SQNR")


def explicit_rows(case: AccuracyCase) -> Rows:
    """A network by dryfit and by ONNX Runtime, against the FP32 network that it was made from."""
    network = network_of(case, SHARED / "models")
    pictures = case.pictures(SHARED / "images", network.inputs[0])
    origin = network_of(attrs.evolve(case, file=case.origin), SHARED / "models")
    reference = measured(origin, BUILDS["FP32"], pictures).answers
    sides = {
        "dryfit, INT8 GPU": measured(network, BUILDS["INT8 GPU"], pictures).answers,
        "ONNX Runtime": onnxruntime_answers(SHARED / "models" / case.file, pictures),
    }
    rows: Rows = []
    for side, answers in sides.items():
        same = float((classes(answers) == classes(reference)).mean())
        noise = sqnr(*(next(iter(one.values())) for one in (reference, answers)))
        head = "" if rows else case.file
        rows.append((head, side, right_text(answers, pictures), agreement_text(same), decibels(noise)))
    return rows


# Cells ----------------------------------------------------------------------------------------------------------------


def right_text(answers: Answers, pictures: Pictures) -> str:
    """How many classes are right; "" where nobody says which are."""
    labels = pictures.labels
    return "" if labels is None else f"{int((classes(answers) == labels).sum())} of {len(labels)}"


def agreement_text(part: float) -> str:
    """A part in percent, in bold where it is too small."""
    return f"{part:.1%}" if part >= ENOUGH else f"**{part:.1%}**"


def decibels(value: float) -> str:
    """An SQNR; infinite where nothing differs."""
    return f"{value:.1f} dB" if value < float("inf") else "equal"


if __name__ == "__main__":
    main()
