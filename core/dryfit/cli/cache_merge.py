"""`dryfit cache merge`: one file of several."""

from __future__ import annotations

from pathlib import Path

import click

from dryfit.cli.cache_files import INPUT_FILE, form_option, output_option, print_written, to_option, write_ranges
from dryfit.cli.console import json_option, print_json, print_note
from dryfit.short_text import count_text


@click.command()
@click.argument("files", nargs=-1, required=True, type=INPUT_FILE)
@output_option
@click.option(
    "--on-conflict",
    "rule",
    type=click.Choice(["refuse", "first", "last", "widest"]),
    default="refuse",
    show_default=True,
    help="Which of different scales of one tensor counts: none, that of the file named first or last, or the largest.",
)
@to_option("that of the first file if absent")
@form_option
@json_option
def merge(files: tuple[Path, ...], output: Path, rule: str, to: str | None, form: str | None, as_json: bool) -> None:
    """Write one calibration cache of several FILES, which may have different forms.

    The first line of the result is that of the first file, and tensors stand where they come first. A tensor with a
    scale in one file and none in another has that scale.
    """
    from dryfit.quantization.cache_comparison import ConflictRule
    from dryfit.quantization.cache_comparison import merge as merged_of
    from dryfit.quantization.cache_forms import read_ranges_file

    stored = [(str(file), read_ranges_file(file, form)) for file in files]
    found = merged_of(stored, ConflictRule(rule))
    written = write_ranges(output, found.stored, to or found.stored.form)
    headers = {one.header: name for name, one in stored if one.header}
    conflicts = [
        {"name": name, "scales": [{"file": stored[index][0], "scale": entry.scale} for index, entry in several]}
        for name, several in found.conflicts.items()
    ]
    if as_json:
        print_json({"files": [name for name, _ in stored], **written, "conflicts": conflicts})
        return
    print_written(written)
    if conflicts:
        print_note(f"{count_text(len(conflicts), 'tensor')} had different scales; the {rule} counts")
    if len(headers) > 1:
        print_note(f"The files have different first lines: {', '.join(headers)}; that of the first one is kept")
