"""`dryfit cache`: files of INT8 scales and ranges, of TensorRT's form and others, looked at, checked and rewritten."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dryfit.answers.conditions import CACHE_DIFF_SUBJECTS, CACHE_SUBJECTS, FailCondition
from dryfit.answers.options import ALGORITHMS
from dryfit.cli.console import answer_options, output_option, print_note, show_answer
from dryfit.cli.fail_on import fail_on_option, print_failed
from dryfit.cli.lazy_group import LazyGroup
from dryfit.cli.network_options import NamedShapes, flat_shapes, shape_option

if TYPE_CHECKING:
    from dryfit.answers.written_caches import WrittenCache

COMMANDS = {
    "check": "dryfit.cli.commands.cache:check",
    "convert": "dryfit.cli.commands.cache:convert",
    "diff": "dryfit.cli.commands.cache:diff",
    "merge": "dryfit.cli.commands.cache:merge",
    "show": "dryfit.cli.commands.cache:show_file",
}
"""Name to place of every command."""

FORM_NAMES = ("tensorrt", "ranges", "onnxruntime-json", "onnxruntime-flatbuffers", "onnxruntime-text", "json")
"""The names of `dryfit.quantization.cache_forms.FORMS`, so that `--help` need not import them."""

INPUT_FILE = click.Path(dir_okay=False, path_type=Path)

form_option: Callable[[Any], Any] = click.option(
    "--form", type=click.Choice(FORM_NAMES), help="Form of the input, if it cannot be detected."
)
written_option = output_option("File to write.", required=True)


def to_option(default: str) -> Callable[[Any], Any]:
    """The option that names the form of what is written; `default` says what counts without it."""
    return click.option("--to", type=click.Choice(FORM_NAMES), help=f"Form of the output (default: {default}).")


@click.group(cls=LazyGroup, places=COMMANDS)
def cache() -> None:
    """Calibration caches: TensorRT's, ONNX Runtime's, range files, and dryfit's own. No model runs."""


@click.command("show")
@click.argument("file", type=INPUT_FILE)
@form_option
@click.option("--state", type=INPUT_FILE, metavar="FILE", help="State of the calibration: also show its histograms.")
@answer_options
def show_file(file: Path, form: str | None, state: Path | None, as_json: bool) -> None:
    """Show the scale, range and origin of each tensor in a calibration cache FILE, and the algorithm."""
    from dryfit.answers.caches import show_cache

    show_answer(show_cache(file, form=form, state=state), as_json=as_json)


@click.command()
@click.argument("first", type=INPUT_FILE)
@click.argument("second", type=INPUT_FILE)
@fail_on_option(CACHE_DIFF_SUBJECTS, "ratio>1.01,removed")
@form_option
@answer_options
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
    from dryfit.answers.caches import diff_caches

    answer = diff_caches(first, second, fail_on=fail_on, form=form)
    show_answer(answer, as_json=as_json)
    context.exit(print_failed(answer.conditions))


@click.command()
@click.argument("file", type=INPUT_FILE)
@click.argument("model", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@fail_on_option(CACHE_SUBJECTS, "damaged,missing>2")
@form_option
@shape_option
@answer_options
@click.pass_context
def check(
    context: click.Context,
    file: Path,
    model: Path | None,
    fail_on: tuple[FailCondition, ...],
    form: str | None,
    shape: tuple[NamedShapes, ...],
    as_json: bool,
) -> None:
    """Check a calibration cache FILE, and whether it matches an ONNX MODEL. Shows all findings at once."""
    from dryfit.answers.caches import check_cache

    answer = check_cache(file, model, fail_on=fail_on, form=form, shape=flat_shapes(shape))
    show_answer(answer, as_json=as_json)
    context.exit(print_failed(answer.conditions))


@click.command()
@click.argument("files", nargs=-1, required=True, type=INPUT_FILE)
@written_option
@click.option(
    "--on-conflict",
    "rule",
    type=click.Choice(["refuse", "first", "last", "widest"]),
    default="refuse",
    show_default=True,
    help="Scale to use where files disagree: none (an error), first or last file, or the largest.",
)
@to_option("that of the first file if absent")
@form_option
@answer_options
def merge(files: tuple[Path, ...], output: Path, rule: str, to: str | None, form: str | None, as_json: bool) -> None:
    """Write one calibration cache of several FILES, which may have different forms.

    The result has the first line of the first file, and tensors in order of first occurrence. If only one file has a
    scale for a tensor, that scale is used.
    """
    from dryfit.answers.written_caches import merge_caches

    _print_written(merge_caches(files, output, on_conflict=rule, to=to, form=form), as_json=as_json)


@click.command()
@click.argument("file", type=INPUT_FILE)
@written_option
@to_option("that of FILE if absent")
@form_option
@click.option(
    "--tensorrt-version",
    metavar="VERSION",
    help="Version in the first line, such as 8.6.1; before 5.1 the line is the algorithm's number.",
)
@click.option("--algorithm", type=click.Choice([*ALGORITHMS]), help="Algorithm in the first line.")
@click.option("--cutoff", type=click.FloatRange(0, 1), help="The regression cutoff in a legacy first line.")
@click.option("--quantile", type=click.FloatRange(0, 1), help="The quantile in a legacy first line.")
@answer_options
def convert(file: Path, output: Path, as_json: bool, **stated: Any) -> None:
    """Convert a calibration cache FILE to another form, or to another TensorRT version.

    Scales are preserved bit for bit; anything that the form cannot store, such as both ends of a range, is lost.
    """
    from dryfit.answers.written_caches import convert_cache

    _print_written(convert_cache(file, output, **stated), as_json=as_json)


def _print_written(answer: WrittenCache, *, as_json: bool) -> None:
    show_answer(answer, as_json=as_json)
    for note in [] if as_json else answer.notes:
        print_note(note)
