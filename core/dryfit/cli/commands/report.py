"""`dryfit report`: what decides whether a model can ship on a board, as one HTML file."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import click

from dryfit.atomic_file import refuse_to_overwrite
from dryfit.cli.console import json_option, print_line, show_answer
from dryfit.cli.network_options import variant_options


@click.command()
@click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="HTML file.")
@click.option(
    "--svg",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Also write each picture as an SVG file.",
)
@click.option("--no-edits", is_flag=True, help="Do not search for model edits, which takes most of the time.")
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@variant_options
@json_option
def report(
    model: Path,
    output: Path | None,
    svg: Path | None,
    no_edits: bool,
    force: bool,
    variants: dict[str, Any],
    options: dict[str, Any],
    as_json: bool,
) -> None:
    """Write a report about an ONNX MODEL as one HTML file: placement, reasons, cost, memory. Builds nothing.

    --platform, --software and --precision may be given several times: the report compares all combinations, and the
    other parts are about the first. The other options and their defaults are those of `dryfit check`.
    """
    from dryfit.reporting.report import report as answer_of

    if output is not None:
        refuse_to_overwrite(output, force=force)
    command = shlex.join(["dryfit", *sys.argv[1:]])
    answer = answer_of(model, edits=not no_edits, command=command, **variants, **options)
    if output is not None:
        answer.save(output)
    pictures = answer.save_pictures(svg) if svg is not None else []
    show_answer(answer, as_json=as_json)
    if not as_json:
        for path in (*([output] if output is not None else []), *pictures):
            print_line(f"Written: {path}")
