"""What `dryfit tune` brings to the shared networks: one run each, judged by pictures that it did not get.

Usage: python benchmarks/tuning.py --plans FOLDER [--models mobilenet ...] [--devices GPU DLA] [--write]

A plan that the folder has is judged again and not made again, and a run that was stopped goes on where it was.
`--write` writes the tables to docs/reference/int8-accuracy.md, from saved and new plans; without saved ones it takes
an hour of CPU time or so. Several runs may share a folder, each for its own devices.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from int8_accuracy import PAGE, Rows, agreement_text, decibels, right_text
from measuring.accuracy import BUILDS, Answers, calibrated, classes, measured, network_of, sqnr, worst_sqnr
from measuring.accuracy_cases import SHARED, Pictures
from measuring.page import plain_table, table, write_section
from measuring.tuned import DEVICES, SETTINGS, Setting, plan_of

COLUMNS = ("network", "options", "device", "pictures", "before", "after", "MACs in FP16", "steps taken")


def main() -> None:
    """Tune, judge, print, and write if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plans", type=Path, required=True, help="folder of the plans")
    parser.add_argument("--models", nargs="+", default=[""], help="parts of the names of those that are tuned")
    parser.add_argument("--devices", nargs="+", default=DEVICES, choices=DEVICES)
    parser.add_argument("--write", action="store_true", help="write the results to the page in docs")
    arguments = parser.parse_args()
    if arguments.write and (arguments.models != [""] or arguments.devices is not DEVICES):
        parser.error("--write writes all networks and devices: leave --models and --devices out")
    rows: Rows = []
    outputs: Rows = []
    for setting in SETTINGS:
        if any(part in setting.file for part in arguments.models):
            found, cells = rows_of(setting, arguments.devices, arguments.plans)
            rows += found
            print(plain_table(COLUMNS, rows), flush=True)
            if len(cells) > 1:
                heads = [(setting.file, options_text(setting)), *[("", "")] * (len(cells) - 1)]
                outputs += [
                    (*head, f"`{name}`", *each) for head, (name, each) in zip(heads, cells.items(), strict=True)
                ]
    kinds = (f"{device} {when}" for device in arguments.devices for when in ("before", "after"))
    output_columns = ("network", "options", "output", *kinds)
    print(plain_table(output_columns, outputs), flush=True)
    if arguments.write:
        write_section("tuned", table(COLUMNS, rows), PAGE)
        write_section("tuned-outputs", table(output_columns, outputs), PAGE)


def rows_of(setting: Setting, devices: Sequence[str], folder: Path) -> tuple[Rows, dict[str, list[str]]]:
    """A network on each device; and the SQNR of each output, on each device before and after."""
    network = network_of(setting.case, SHARED / "models")
    pictures = setting.case.pictures(SHARED / "images", network.inputs[0])
    reference = measured(network, BUILDS["FP32"], pictures).answers
    cache = calibrated(network, pictures, ("entropy2",))["entropy2"]
    rows: Rows = []
    outputs: dict[str, list[str]] = {name: [] for name in reference}
    for device in devices:
        plan = plan_of(setting, device, pictures, folder)
        before = measured(network, BUILDS[f"INT8 {device}"], pictures, cache).answers
        print(f"{setting.file}, {device}: {plan.cpu_seconds} s of CPU time", flush=True)
        head = ("", "") if rows else (setting.file, options_text(setting))
        outcomes = (outcome(one, reference, pictures, setting) for one in (before, plan.answers))
        taken = ", ".join(one["step"] for one in plan.found["steps"][1:] if one["is_taken"]) or "none"
        rows.append((*head, device, len(pictures.judged), *outcomes, f"{plan.found['half_macs']:.1%}", taken))
        for name, cells in outputs.items():
            cells += [decibels(sqnr(reference[name], answers[name])) for answers in (before, plan.answers)]
    return rows, outputs


def options_text(setting: Setting) -> str:
    """The options of a network's tuning."""
    return f"`{setting.line}`" if setting.line else "defaults"


def outcome(answers: Answers, reference: Answers, pictures: Pictures, setting: Setting) -> str:
    """The worst SQNR, the pictures of the same class as in FP32, and those that are right."""
    text = decibels(worst_sqnr(reference, answers))
    if setting.case.has_classes:
        same = classes(answers) == classes(reference)
        text += f", {int(same.sum())} the same class ({agreement_text(float(same.mean()))})"
    right = right_text(answers, pictures)
    return f"{text}, {right} right" if right else text


if __name__ == "__main__":
    main()
