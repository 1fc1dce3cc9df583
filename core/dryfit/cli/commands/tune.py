"""`dryfit tune`: a plan that gives a network its accuracy back in INT8, and its files."""

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
@click.option(
    "--output", "-o", type=click.Path(file_okay=False, path_type=Path), metavar="FOLDER", help="Folder for the files."
)
@metric_options
@click.option("--max-loss", type=float, metavar="L", help="How far below its FP32 value the metric may be.")
@click.option("--target", type=float, metavar="VALUE", help="Minimum value of the metric, instead of --max-loss.")
@click.option(
    "--step",
    "steps",
    multiple=True,
    metavar="NAME",
    help="Try only these: equalization, centering, input-centering, scales, weight-rounding, bias-correction, "
    "mixed-precision, remainders, channel-splitting (default: all).",
)
@click.option(
    "--max-macs",
    type=click.FloatRange(0, 100),
    default=10.0,
    show_default=True,
    metavar="PERCENT",
    help="Maximum share of the multiply-accumulates in FP16.",
)
@click.option(
    "--max-added-macs",
    type=click.FloatRange(0),
    default=20.0,
    show_default=True,
    metavar="PERCENT",
    help="Maximum of multiply-accumulates that remainders or divided channels add.",
)
@click.option("--qdq", is_flag=True, help="Also write a model with Q/DQ nodes, for TensorRT 11.")
@state_options
@jobs_options
@picture_options_of
@network_options
@answer_options
def tune(
    model: Path,
    data: str | None,
    limit: int | None,
    output: Path | None,
    metric: str,
    labels: Path | None,
    max_loss: float | None,
    target: float | None,
    steps: tuple[str, ...],
    max_macs: float,
    max_added_macs: float,
    qdq: bool,
    state: Path | None,
    resume: bool,
    threads: int | None,
    jobs: int,
    preparation: PicturePreparation,
    options: Options,
    as_json: bool,
) -> None:
    """Plan how to recover the accuracy of an ONNX MODEL in INT8, from samples (--data).

    Steps are tried in order in the device's integer arithmetic, and kept if they raise the SQNR of held-out samples by
    more than chance: scaling and shifting channels in the model, ranges, rounding weights by their effect, biases,
    layers in FP16, storing what INT8 rounds off, and dividing channels into pieces of less range. Separate samples
    report the expected accuracy. The folder of --output receives an edited model, a calibration cache, and a list of
    layer precisions.
    """
    from dryfit.answers.tuning.tuning import STEPS
    from dryfit.answers.tuning.tuning import tune as answer_of
    from dryfit.cli.calibration_progress import Interruption, SampleProgress

    if data is None:
        raise click.UsageError("Missing option --data: steps are judged on samples")
    try:
        answer = answer_of(
            model,
            data,
            output,
            metric=metric,
            max_loss=max_loss,
            target=target,
            labels=read_labels(labels),
            steps=steps or STEPS,
            max_macs=max_macs / 100,
            max_added_macs=max_added_macs / 100,
            qdq=qdq,
            preparation=preparation,
            limit=limit,
            state=state,
            resume=resume,
            threads=threads,
            jobs=jobs,
            progress=lambda total, done: SampleProgress(total, done, Interruption(), title="Tuning"),
            **options,
        )
    except KeyboardInterrupt as stopped:
        raise click.Abort from stopped
    for note in answer.notes:
        print_note(note)
    show_answer(answer, as_json=as_json)
