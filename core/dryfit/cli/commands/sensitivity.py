"""`dryfit sensitivity`: which layers and tensors cost accuracy in INT8, and why."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dryfit.answers.options import Options
from dryfit.cli.console import answer_options, print_note, show_answer
from dryfit.cli.metric_options import jobs_options, metric_options, read_labels, state_options
from dryfit.cli.network_options import ModelCommand, network_options
from dryfit.cli.sample_options import data_option, limit_option, picture_options_of

if TYPE_CHECKING:
    from dryfit.quantization.picture_preparation import PicturePreparation


@click.command(cls=ModelCommand)
@click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@data_option
@limit_option
@metric_options
@state_options
@jobs_options
@click.option("--verbose", "-v", is_flag=True, help="Show all layers and tensors.")
@picture_options_of
@network_options
@answer_options
def sensitivity(
    model: Path,
    data: str | None,
    limit: int | None,
    metric: str,
    labels: Path | None,
    state: Path | None,
    resume: bool,
    threads: int | None,
    jobs: int,
    verbose: bool,
    preparation: PicturePreparation,
    options: Options,
    as_json: bool,
) -> None:
    """Show how much quantizing each single layer of an ONNX MODEL changes the outputs, and why.

    Each layer runs on --data in the device's integer arithmetic, and the layers after it in FP32. Without a calibration
    cache, the model is first calibrated with entropy2.
    """
    from dryfit.answers.sensitivity.sensitivity import sensitivity as answer_of
    from dryfit.cli.calibration_progress import Interruption, SampleProgress

    if data is None:
        raise click.UsageError("Missing option --data: layers are judged on samples")
    try:
        answer = answer_of(
            model,
            data,
            metric=metric,
            labels=read_labels(labels),
            preparation=preparation,
            limit=limit,
            state=state,
            resume=resume,
            threads=threads,
            jobs=jobs,
            progress=lambda total, done: SampleProgress(total, done, Interruption(), title="Measuring"),
            **options,
        )
    except KeyboardInterrupt as stopped:
        raise click.Abort from stopped
    for note in answer.notes:
        print_note(note)
    show_answer(answer, as_json=as_json, verbose=verbose)
