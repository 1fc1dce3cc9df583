"""`dryfit cache diff`: how the scales of two files differ."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import attrs
import click

from dryfit.answers.conditions import FailCondition, counted_outcomes
from dryfit.answers.text import scale_text
from dryfit.cli.cache_files import INPUT_FILE, form_option
from dryfit.cli.console import json_option, print_json, print_line, print_list, print_table
from dryfit.cli.fail_on import fail_on_option, print_failed

SUBJECTS = {
    "ratio": "the largest ratio of two scales of one tensor, such as ratio>1.01",
    "changed": "tensors whose scales differ",
    "added": "tensors that only SECOND has",
    "removed": "tensors that only FIRST has",
}


@click.command()
@click.argument("first", type=INPUT_FILE)
@click.argument("second", type=INPUT_FILE)
@fail_on_option(SUBJECTS, "ratio>1.01,removed")
@form_option
@json_option
@click.pass_context
def diff(
    context: click.Context,
    first: Path,
    second: Path,
    fail_on: tuple[FailCondition, ...],
    form: str | None,
    as_json: bool,
) -> None:
    """Show how the scales of two calibration caches differ, the largest ratio first. Their forms may differ."""
    from dryfit.quantization.cache_comparison import compare
    from dryfit.quantization.cache_forms import read_ranges_file

    found = compare(read_ranges_file(first, form), read_ranges_file(second, form))
    values = {
        "ratio": found.largest_ratio,
        "changed": len(found.changed),
        "added": len(found.added),
        "removed": len(found.removed),
    }
    results = counted_outcomes(fail_on, values)
    if as_json:
        changed = [
            {
                "name": one.tensor,
                "first": one.first or None,
                "second": one.second or None,
                "ratio": one.ratio if math.isfinite(one.ratio) else None,
            }
            for one in found.changed
        ]
        answer: dict[str, Any] = {"first": str(first), "second": str(second), "changed": changed, "equal": found.equal}
        answer |= {"added": list(found.added), "removed": list(found.removed)}
        print_json({**answer, "conditions": [attrs.asdict(result) for result in results]})
    else:
        rows = [
            (one.tensor, scale_text(one.first), scale_text(one.second), _ratio_text(one.ratio)) for one in found.changed
        ]
        if rows:
            print_table("", ["tensor", str(first), str(second), "ratio"], rows)
        for file, names in ((first, found.removed), (second, found.added)):
            print_list(f"Only in {file}", [(name, "no scale to compare with", "") for name in names])
        counts = [(len(found.changed), "changed"), (found.equal, "equal")]
        counts += [(len(found.removed), "removed"), (len(found.added), "added")]
        print_line(", ".join(f"{count} {word}" for count, word in counts))
    context.exit(print_failed(results))


def _ratio_text(ratio: float) -> str:
    return f"{ratio:.6g}" if math.isfinite(ratio) else "none"
