"""How the commands of `dryfit cache` name files and their forms, and how they write one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dryfit.cli.console import print_line, print_note
from dryfit.short_text import count_text

if TYPE_CHECKING:
    from dryfit.quantization.stored_ranges import StoredRange, StoredRanges

FORM_NAMES = ("tensorrt", "ranges", "onnxruntime-json", "onnxruntime-flatbuffers", "onnxruntime-text", "json")
"""The names of `dryfit.quantization.cache_forms.FORMS`, so that `--help` need not import them."""

INPUT_FILE = click.Path(dir_okay=False, path_type=Path)

form_option: Callable[[Any], Any] = click.option(
    "--form", type=click.Choice(FORM_NAMES), help="The form of what is read, where the contents do not tell."
)
output_option: Callable[[Any], Any] = click.option(
    "--output",
    "-o",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Where the result is written.",
)


def to_option(default: str) -> Callable[[Any], Any]:
    """The option that names the form of what is written; `default` says what counts without it."""
    return click.option("--to", type=click.Choice(FORM_NAMES), help=f"The form of what is written; {default}.")


def write_ranges(place: Path, stored: StoredRanges, form: str) -> dict[str, Any]:
    """Write a file; returns what there is to tell of it.

    Raises:
        CalibrationError: a name does not fit the form, or the file cannot be written.
    """
    from dryfit.quantization.cache_forms import write_ranges_file

    left_out = write_ranges_file(place, stored, form)
    written = len(stored.entries) - len(left_out)
    return {"output": str(place), "form": form, "tensors": written, "left_out": left_out}


def print_written(written: dict[str, Any]) -> None:
    """The same for people."""
    print_line(f"{written['output']}: {count_text(written['tensors'], 'tensor')}, form {written['form']}")
    if written["left_out"]:
        names = ", ".join(map(repr, written["left_out"]))
        print_note(f"{len(written['left_out'])} without a scale are left out, for the form has none: {names}")


def entry_answer(entry: StoredRange) -> dict[str, Any]:
    """One tensor of a sound file, as data."""
    found = entry.dynamic_range
    return {
        "name": entry.name,
        "scale": None if found is None else found.scale,
        "range": None if found is None else [found.minimum, found.maximum],
        "origin": entry.origin.value,
        "place": entry.place,
        "details": dict(entry.details),
        "statistics": dict(entry.statistics),
    }
