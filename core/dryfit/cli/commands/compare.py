"""`dryfit compare`: an engine's arithmetic beside that of other devices, tensor by tensor."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from dryfit.answers.options import Options
from dryfit.cli.compare_options import CompareOptions, compare_options
from dryfit.cli.console import print_note, show_answer
from dryfit.cli.log import log_to_stderr
from dryfit.cli.network_options import ModelCommand, network_options

if TYPE_CHECKING:
    from dryfit.answers.compare_devices import CompareDevicesAnswer
    from dryfit.answers.compare_methods import CompareMethodsAnswer
    from dryfit.answers.compare_versions import CompareVersionsAnswer
    from dryfit.answers.comparison.answer import CompareAnswer


@click.command(cls=ModelCommand)
@click.argument("model", metavar="MODEL|ENGINE", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--verbose", is_flag=True, help="Also show where each tensor first differs.")
@network_options
@compare_options
def compare(model: Path, verbose: bool, options: Options, comparing: CompareOptions) -> int:
    """Compare the results of a MODEL on a device with a reference, layer by layer, and show where they diverge.

    MODEL is an ONNX model, which is built with the given options, or an engine file. The references use the model's
    weights if the engine was built with --refit, and otherwise the weights that it stores. Each layer's error is split
    into what the layer adds itself, given the reference's inputs, and what it inherits.

    Without samples, compare where the devices of --against run the operators of MODEL, and the estimated cost.

    With --methods, compare the codes of a quantized MODEL under several quantize methods on this machine. With --api,
    place, build and run MODEL as several TensorRT versions do.
    """
    context = click.get_current_context()
    given = [name for name in ("methods", "api") if getattr(comparing, name)]
    names_sides = context.get_parameter_source("against") is not ParameterSource.DEFAULT
    if names_sides:
        given.append("against")
    if len(given) > 1:
        raise click.UsageError(
            "Pass only one of --against, --methods and --api; the first entry of a list is the reference"
        )
    if not comparing.has_samples and not (names_sides and set(comparing.against) - {"fp32"}):
        raise click.UsageError("Pass one of --data, --input and --random, or devices to compare with --against")
    with log_to_stderr(logging.ERROR):
        answer = _answer(model, options, comparing)
    for note in answer.notes:
        print_note(note)
    show_answer(answer, as_json=comparing.as_json, verbose=verbose)
    return int(any(one.failed for one in getattr(answer, "conditions", ())))


def _answer(
    model: Path, options: Options, comparing: CompareOptions
) -> CompareAnswer | CompareDevicesAnswer | CompareMethodsAnswer | CompareVersionsAnswer:
    from dryfit.answers.compare import compare as compared
    from dryfit.answers.compare_devices import compare_devices
    from dryfit.answers.compare_methods import compare_methods
    from dryfit.answers.compare_versions import compare_versions
    from dryfit.engine.progress import TerminalProgress

    if not comparing.has_samples:
        if comparing.fail_below is not None or comparing.tolerance:
            raise click.UsageError("--fail-below and --tolerance require samples (--data, --input or --random)")
        return compare_devices(model, comparing.against, **options)
    asked = comparing.keywords
    if comparing.api:
        if comparing.fail_below is not None or comparing.tolerance:
            raise click.UsageError("--fail-below and --tolerance do not apply to --api")
        return compare_versions(model, comparing.api, data=comparing.samples, threads=comparing.threads, **options)
    if comparing.methods:
        return compare_methods(model, comparing.methods, **asked, **options)
    with TerminalProgress() as progress:
        return compared(model, against=comparing.against, progress=progress, **asked, **options)
