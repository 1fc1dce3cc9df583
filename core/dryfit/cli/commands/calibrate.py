"""`dryfit calibrate`: dynamic ranges of a model's tensors from samples, as a calibration cache."""

from __future__ import annotations

from pathlib import Path

import click

from dryfit.cli.calibrate_options import CalibrateOptions, calibrate_options
from dryfit.cli.console import print_note, show_answer


@click.command()
@click.argument("model", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@calibrate_options
def calibrate(model: Path | None, options: CalibrateOptions) -> None:
    """Find the dynamic ranges of an ONNX MODEL's tensors for INT8, and write them as a calibration cache.

    The model runs here on samples (--data), in FP32. The collected statistics can be saved (--state), solved again by
    another calibrator without running the model, and compared (--compare).
    """
    if options.compare:
        _compare(options)
        return
    if model is None:
        raise click.UsageError("Missing argument 'MODEL': give the model (optional only with --compare)")
    from dryfit.answers.calibrate import calibrate as answer_of
    from dryfit.cli.calibration_progress import Interruption, SampleProgress

    try:
        answer = answer_of(
            model,
            **options.keywords,
            calibrator=options.chosen_calibrator(),
            preparation=options.preparation,
            progress=lambda total, done: SampleProgress(total, done, Interruption()),
        )
    except KeyboardInterrupt as stopped:
        raise click.Abort from stopped
    show_answer(answer, as_json=options.as_json)
    if answer.run_text and not options.as_json:
        print_note(answer.run_text)
    if answer.is_covered:
        print_note(f"{options.output} already covers the model: nothing to do")


def _compare(options: CalibrateOptions) -> None:
    """What each calibrator that takes the same state makes of it."""
    from dryfit.answers.calibrate import compare_calibrators

    chosen = options.chosen_calibrator()
    if options.state is None:
        raise click.UsageError("--compare requires --state: the file that an earlier run wrote")
    answer = compare_calibrators(options.state, calibrator=chosen, skip_nonfinite=options.skip_nonfinite)
    show_answer(answer, as_json=options.as_json)
    if not options.as_json:
        print_note(
            "Each tensor by itself; `dryfit calibrate MODEL` also lists shared ranges and tensors that keep "
            "their largest magnitude."
        )
