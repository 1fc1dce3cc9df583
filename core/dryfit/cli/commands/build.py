"""`dryfit build`: from a model to an engine file."""

from __future__ import annotations

from pathlib import Path

import click

from dryfit.answers.options import Options
from dryfit.cli.console import answer_options, output_option, print_note, show_answer
from dryfit.cli.kernel_options import kernel_options
from dryfit.cli.log import build_log
from dryfit.cli.network_options import ModelCommand, network_options
from dryfit.cli.sample_options import SampleOptions, sample_options


@click.command(cls=ModelCommand)
@click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@output_option("Engine file to write.", "--saveEngine", required=True)
@network_options
@kernel_options
@sample_options
@click.option("--refit", is_flag=True, help="Make the engine's weights refittable with `dryfit refit`.")
@click.option(
    "--stripped",
    "--stripWeights",
    "stripped",
    is_flag=True,
    help="Omit the weights; `dryfit refit` adds them: any weights with --refit, otherwise only those of MODEL.",
)
@click.option(
    "--dump-stages",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write the network after each build stage as a text file to DIR.",
)
@click.option("--verbose", is_flag=True, help="Show the placement, and log each build stage to stderr.")
@answer_options
def build(
    model: Path,
    output: Path,
    options: Options,
    samples: SampleOptions,
    kernels: tuple[tuple[str, str], ...],
    forbidden_kernels: tuple[str, ...],
    timing_cache: Path | None,
    refit: bool,
    stripped: bool,
    dump_stages: Path | None,
    verbose: bool,
    as_json: bool,
) -> None:
    """Build an engine file from an ONNX MODEL, or one loadable with `--engine-capability dla_standalone`.

    The defaults are those of `dryfit check`, and are printed. Engines and loadables are dryfit's own files and run on
    this machine; NVIDIA's tools cannot read them. Use `dryfit export trtexec` to build on the board.

    With --data, the engine then runs on samples, and layers whose results overflow FP16 are reported. This does not
    calibrate INT8 scales: see `dryfit calibrate`.
    """
    from dryfit.answers.build import build as answer_of
    from dryfit.engine.progress import TerminalProgress

    with build_log(verbose=verbose):
        with TerminalProgress() as progress:
            answer = answer_of(
                model,
                output,
                kernels=kernels,
                forbid_kernels=forbidden_kernels,
                timing_cache=timing_cache,
                data=samples.of if samples.data is not None else None,
                refit=refit,
                stripped=stripped,
                dump_stages=dump_stages,
                progress=progress,
                **options,
            )
        for note in answer.notes:
            print_note(note)
    show_answer(answer, as_json=as_json, verbose=verbose)
    for remark in [] if as_json else answer.remarks:
        print_note(remark)
