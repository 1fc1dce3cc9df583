"""`dryfit run`: run an engine, a loadable or a model on this machine's CPU."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dryfit.answers.options import Options
from dryfit.cli.console import answer_options, print_note, show_answer, threads_option
from dryfit.cli.log import build_log
from dryfit.cli.network_options import ModelCommand, network_options
from dryfit.cli.sample_options import data_option, limit_option, picture_options_of

if TYPE_CHECKING:
    from dryfit.quantization.picture_preparation import PicturePreparation

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(cls=ModelCommand)
@click.argument("model", required=False, type=FILE)
@click.option("--loadEngine", "load_engine", type=FILE, metavar="FILE", help="Alias of MODEL, as in trtexec.")
@click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="NAME=FILE",
    help="An input from .npy or an image, or all inputs from .npz; NAME= is optional for a single input.",
)
@data_option
@limit_option
@click.option("--random", "seed", type=int, metavar="SEED", help="Use random inputs instead of files.")
@picture_options_of
@click.option("--labels", type=FILE, metavar="FILE", help="Class labels, one per line; shows the top five.")
@click.option("--batches", is_flag=True, help="Split the inputs into batches of the engine's size.")
@click.option(
    "--output-dir",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write outputs as .npy files to DIR.",
)
@threads_option
@click.option("--repeat", type=click.IntRange(min=1), default=1, metavar="N", help="Repeat the run N times.")
@click.option(
    "--profile",
    "--dumpProfile",
    "profile",
    is_flag=True,
    help="Show the host latency of each engine layer, slowest first.",
)
@click.option(
    "--trace",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write when each layer ran on this machine to FILE, as Chrome trace events, which Perfetto opens.",
)
@network_options
@answer_options
def run(
    model: Path | None,
    load_engine: Path | None,
    inputs: tuple[str, ...],
    data: str | None,
    limit: int | None,
    seed: int | None,
    preparation: PicturePreparation,
    labels: Path | None,
    batches: bool,
    output_dir: Path | None,
    threads: int | None,
    repeat: int,
    profile: bool,
    trace: Path | None,
    options: Options,
    as_json: bool,
) -> None:
    """Run an engine, a loadable or an ONNX MODEL on this machine. Times are this machine's, not the device's.

    An ONNX MODEL is built for this run, with the options and defaults of `dryfit build`. Images are prepared as in
    `dryfit calibrate`; for images, or with --labels, the five most likely classes are shown.
    """
    from dryfit.answers.run import run as answer_of
    from dryfit.engine.progress import TerminalProgress

    if (model is None) == (load_engine is None):
        raise click.UsageError("Pass an engine, a loadable or an ONNX model: `dryfit run MODEL`")
    if sum((bool(inputs), data is not None, seed is not None)) != 1:
        raise click.UsageError("Pass one of --input, --data and --random")
    with build_log():
        with TerminalProgress() as progress:
            answer = answer_of(
                model or load_engine,
                inputs,
                data=data,
                limit=limit,
                random=seed,
                preparation=preparation,
                labels=labels,
                batches=batches,
                output_dir=output_dir,
                threads=threads,
                repeat=repeat,
                profile=profile,
                trace=trace,
                progress=progress,
                **options,
            )
        for note in answer.notes:
            print_note(note)
    show_answer(answer, as_json=as_json)
