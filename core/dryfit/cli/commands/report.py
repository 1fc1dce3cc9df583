"""`dryfit report`: what decides whether models can ship on a board, as one HTML file or a folder of them."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dryfit.atomic_file import refuse_to_overwrite
from dryfit.cli.compare_options import SideList
from dryfit.cli.console import answer_options, output_option, print_line, show_answer
from dryfit.cli.network_options import ModelCommand, variant_options
from dryfit.cli.sample_options import data_option, limit_option, picture_options_of

if TYPE_CHECKING:
    from dryfit.quantization.picture_preparation import PicturePreparation


@click.command(cls=ModelCommand)
@click.argument(
    "models", metavar="MODEL...", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@output_option("HTML file; a folder for several models.", holds="PATH")
@click.option(
    "--svg",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Also write each picture of one model as an SVG file.",
)
@click.option("--no-edits", is_flag=True, help="Do not search for model edits, which takes most of the time.")
@click.option(
    "--anonymous", is_flag=True, help="Replace the names of layers and tensors by numbers; omit the command line."
)
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Processes for several models.")
@data_option
@limit_option
@picture_options_of
@click.option(
    "--against",
    type=SideList(),
    default=(),
    metavar="LIST",
    help="Also compare the arithmetic with a device such as gpu, or one with a version such as dla@8.6 (default with "
    "--data: fp32, the fallback, and the other --software). Inputs are random without --data.",
)
@click.option(
    "--engine",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="Compare the arithmetic of this engine instead of one that is built from MODEL.",
)
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@variant_options
@answer_options
def report(
    models: tuple[Path, ...],
    output: Path | None,
    svg: Path | None,
    no_edits: bool,
    anonymous: bool,
    jobs: int,
    data: str | None,
    limit: int | None,
    preparation: PicturePreparation,
    against: tuple[str, ...],
    engine: str | None,
    force: bool,
    variants: dict[str, Any],
    options: dict[str, Any],
    as_json: bool,
) -> None:
    """Write a report about an ONNX MODEL as one HTML file: placement, reasons, cost, memory. Builds nothing.

    --platform, --software and --precision may be repeated: the report compares all combinations, and its other parts
    cover the first. All other options and defaults are those of `dryfit check`.

    With --data, the model is calibrated on these samples and runs here, and the report covers INT8 and arithmetic.

    With several models, --output is a folder with a page per model and an index that sorts, filters and shows what
    changed since the last run. The exit code is 1 if a page cannot be written.
    """
    asked = {
        "edits": not no_edits,
        "anonymous": anonymous,
        "data": data,
        "limit": limit,
        "preparation": preparation,
        "against": against,
        "engine": engine,
        "command": shlex.join(["dryfit", *sys.argv[1:]]),
        **variants,
        **options,
    }
    if len(models) > 1 or (output is not None and output.is_dir()):
        _several(models, output, jobs, svg, asked, as_json=as_json)
        return
    from dryfit.reporting.chart_drawing import start_drawing

    start_drawing()  # beside the imports of what follows
    from dryfit.engine.progress import TerminalProgress
    from dryfit.reporting.report import report as answer_of

    if output is not None:
        refuse_to_overwrite(output, force=force)
    with TerminalProgress() as progress:
        answer = answer_of(models[0], progress=progress, **asked)
    if output is not None:
        answer.save(output)
    pictures = answer.save_pictures(svg) if svg is not None else []
    show_answer(answer, as_json=as_json)
    if not as_json:
        for path in (*([output] if output is not None else []), *pictures):
            print_line(f"Written: {path}")


def _several(
    models: tuple[Path, ...], output: Path | None, jobs: int, svg: Path | None, asked: dict[str, Any], *, as_json: bool
) -> None:
    from dryfit.engine.progress import TerminalProgress
    from dryfit.reporting.fleet import report_all

    if output is None or svg is not None:
        raise click.UsageError("Several models need --output FOLDER and cannot be combined with --svg")
    with TerminalProgress() as progress:
        answer = report_all(models, output, jobs=jobs, progress=progress, **asked)
    show_answer(answer, as_json=as_json)
    click.get_current_context().exit(1 if answer.failed else 0)
