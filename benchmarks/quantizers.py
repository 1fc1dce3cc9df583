"""dryfit's INT8 beside that of other quantizers: the same pictures, each network run by its quantizer's own runtime.

Usage: python benchmarks/quantizers.py [--models clothing ...] [--write]

All sides are judged against the answers of ONNX Runtime in FP32. No picture that is judged was calibrated or tuned
with. `--write` writes the table to docs/reference/int8-accuracy.md; it takes two hours or so.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import attrs
import numpy as np

import dryfit
from dryfit.quantization.cache_forms import read_ranges, set_ranges
from int8_accuracy import PAGE, Rows, agreement_text, chosen, decibels, right_text
from measuring.accuracy import (
    BUILDS,
    FLAGS,
    Answers,
    Build,
    calibrated,
    classes,
    measured,
    network_of,
    onnxruntime_answers,
    worst_sqnr,
)
from measuring.accuracy_cases import CASES, SHARED, AccuracyCase, Pictures
from measuring.other_quantizers import quantized_answers
from measuring.page import plain_table, table, write_section

COLUMNS = ("network", "quantized and run by", "right", "same class as FP32", "worst SQNR", "in floating point")
NETWORKS = ("mobilenetv2-fp32", "squeezenet1.1-fp32", "clothing_mobilenetv2", "yolox_nano", "yunet")
MOST_MACS = 0.1
MAX_MACS = {"mobilenetv2-fp32.onnx": 0.05}
"""The largest share of the multiply-accumulates that tuning may keep in FP16, where that is not `MOST_MACS`."""


def main() -> None:
    """Measure, print, and write if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=NETWORKS, help="parts of the names of those that are measured")
    parser.add_argument("--write", action="store_true", help="write the results to the page in docs")
    arguments = parser.parse_args()
    if arguments.write and arguments.models is not NETWORKS:
        parser.error("--write writes all networks: leave --models out")
    every: Rows = []
    for case in chosen(CASES, arguments.models):
        rows = rows_of(case)
        every += rows
        print(plain_table(COLUMNS, rows), flush=True)
    if arguments.write:
        write_section("quantizers", table(COLUMNS, every), PAGE)


def rows_of(case: AccuracyCase) -> Rows:
    """A network by all sides."""
    model = SHARED / "models" / case.file
    network = network_of(case, SHARED / "models")
    pictures = case.pictures(SHARED / "images", network.inputs[0])
    reference = onnxruntime_answers(model, pictures)
    rows: Rows = [(case.file, "FP32", right_text(reference, pictures), "", "", "")]
    for side, answers, kept in sides(case, network, pictures):
        if isinstance(answers, str):
            rows.append(("", side, answers, "", "", ""))
            continue
        same = float((classes(answers) == classes(reference)).mean()) if case.has_classes else None
        agreement = "no classes" if same is None else agreement_text(same)
        noise = decibels(worst_sqnr(reference, answers))
        rows.append(("", side, right_text(answers, pictures), agreement, noise, kept))
    return rows


def sides(case: AccuracyCase, network: dryfit.Network, pictures: Pictures) -> Iterator[tuple[str, Answers | str, str]]:
    """Who quantized the network, its answers or why there are none, and how much of it stays in floating point."""
    for build in ("INT8 GPU", "INT8 DLA"):
        cache = calibrated(network, pictures, ("entropy2",))["entropy2"]
        yield f"dryfit, {build}, entropy2", measured(network, BUILDS[build], pictures, cache).answers, ""
        device = BUILDS[build].device
        yield f"dryfit, {build}, tuned", *tuned(case, device, pictures)
    shape = network.inputs[0].shape
    for side, answers in quantized_answers(
        SHARED / "models" / case.file, pictures, shape, has_classes=case.has_classes
    ):
        yield side, answers, ""


def tuned(case: AccuracyCase, device: str, pictures: Pictures) -> tuple[Answers, str]:
    """What the plan of `dryfit.tune` answers, and the share of the multiply-accumulates that it keeps in FP16."""
    model = SHARED / "models" / case.file
    with TemporaryDirectory() as folder:
        samples = Path(folder, "samples.npy")
        np.save(samples, np.concatenate(pictures.calibration))
        answer = dryfit.tune(
            model, samples, folder, device=device, fallback="GPU", max_macs=MAX_MACS.get(case.file, MOST_MACS)
        )
        network = network_of(attrs.evolve(case, file="model.onnx"), Path(folder))
        set_ranges(network, read_ranges(Path(folder, "model.cache")), "cache")
    for layer in network.layers:
        if layer.name in answer.half_layers:
            layer.precision = dryfit.DataType.HALF
    build = Build(device, (FLAGS.INT8, FLAGS.FP16, FLAGS.PREFER_PRECISION_CONSTRAINTS))
    return measured(network, build, pictures).answers, f"{answer.half_macs:.1%}"


if __name__ == "__main__":
    main()
