"""What `dryfit calibrate` answers, as data, and on a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dryfit.cli.console import print_line, print_list, print_note, print_table
from dryfit.short_text import count_text

if TYPE_CHECKING:
    from dryfit.cli.calibrate_options import CalibrateOptions
    from dryfit.quantization.calibration_state import CalibrationState
    from dryfit.quantization.calibrator import Calibrator, Solution


def answer(
    model: Path,
    options: CalibrateOptions,
    chosen: Calibrator,
    state: CalibrationState,
    solutions: Mapping[str, Solution],
    run: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """The answer of one command; see `calibrate_schema`."""
    return {
        "model": str(model),
        "calibrator": chosen.name,
        "options": {**chosen.option_defaults, **chosen.options},
        "samples": len(state.samples),
        "run": None if run is None else dict(run),
        "tensors": [_tensor(name, one, state) for name, one in solutions.items()],
        "cache": None if options.output is None else str(options.output),
        "state": None if options.state is None else str(options.state),
    }


def _tensor(name: str, solution: Solution, state: CalibrationState) -> dict[str, Any]:
    found, collector = solution.dynamic_range, state.collectors.get(name)
    return {
        "name": name,
        "threshold": None if found is None else found.threshold,
        "scale": None if found is None else found.scale,
        "largest": getattr(collector, "magnitude", None),
        "skipped": 0 if collector is None else collector.skipped,
        "reason": solution.reason,
        "details": dict(solution.details),
    }


def print_answer(found: Mapping[str, Any]) -> None:
    """The answer in short: how many scales, what has none, what was not left to the calibrator, and where it went."""
    from dryfit.quantization.clipping import clipping_of
    from dryfit.quantization.network_ranges import FULL_RANGE, SHARED_WITH

    tensors = found["tensors"]
    scaled = [one for one in tensors if one["scale"] is not None]
    counts = f"{count_text(len(scaled), 'scale')} from {count_text(found['samples'], 'sample')}"
    print_line(f"{found['model']}: {counts} by {found['calibrator']}")
    for key, text in ((SHARED_WITH, "share the range of another tensor"), (FULL_RANGE, "keep their largest magnitude")):
        names = [one["name"] for one in tensors if key in one["details"]]
        if names:
            print_line(f"{len(names)} {text}: {_some(names)}")
    clipped = [(one["name"], str(how), "") for one in tensors if (how := clipping_of(one["details"])) is not None]
    print_list(f"Narrow ranges: {found['calibrator']} clips large values of these tensors", clipped)
    skipped = sum(one["skipped"] for one in tensors)
    if skipped:
        print_line(f"{skipped} values that are not finite were left out")
    print_list("Without a scale", [(one["name"], one["reason"], "") for one in tensors if one["scale"] is None])
    for key, what in (("cache", "Calibration cache"), ("state", "State")):
        if found[key] is not None:
            print_line(f"{what}: {found[key]}")
    run = found["run"]
    if run is not None and run["images"]:
        print_note(f"{run['images']} images in {run['seconds']:.1f} s, {run['images_per_second']:.1f} images/s")


def print_comparison(solutions: Mapping[str, Mapping[str, Solution]]) -> None:
    """A row a tensor, a column a calibrator."""
    names = list(solutions)
    rows = []
    for tensor in next(iter(solutions.values())):
        ranges = [solutions[name][tensor].dynamic_range for name in names]
        rows.append((tensor, *(None if one is None else f"{one.threshold:.6g}" for one in ranges)))
    print_table("Thresholds", ["tensor", *names], rows)


def _some(names: list[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
