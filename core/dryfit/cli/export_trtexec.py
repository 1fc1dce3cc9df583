"""`dryfit export trtexec`: what was decided here, as the board's own tools take it."""

from __future__ import annotations

from pathlib import Path

import click

from dryfit.answers.options import Options
from dryfit.cli.console import answer_options, output_option, print_note, show_answer
from dryfit.cli.network_options import ModelCommand, network_options


@click.command(cls=ModelCommand)
@click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--onnx",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="ONNX model that the engine file MODEL was built from.",
)
@output_option("Write the command line to a shell script instead of printing it.")
@click.option(
    "--script",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write a Python script for TensorRT's API (without --output: instead of a command line).",
)
@click.option(
    "--scales",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Calibration cache to write for the board (default: MODEL's name with .trtexec.cache, in this folder).",
)
@click.option(
    "--every-layer",
    is_flag=True,
    help="Write the device of every layer as placed here, not only of the layers with an explicit device.",
)
@click.option("--tensorrt", metavar="VERSION", help="TensorRT version on the board (default: --software).")
@click.option("--save-engine", "--saveEngine", "engine", metavar="FILE", help="Path of the engine on the board.")
@click.option(
    "--timing-cache-file", "--timingCacheFile", "timing_cache", metavar="FILE", help="Calibration cache on the board."
)
@click.option(
    "--trtexec", "program", default="trtexec", show_default=True, metavar="PATH", help="Path of trtexec on the board."
)
@network_options
@answer_options
def trtexec(
    model: Path,
    onnx: Path | None,
    output: Path | None,
    script: Path | None,
    scales: Path | None,
    every_layer: bool,
    tensorrt: str | None,
    engine: str | None,
    timing_cache: str | None,
    program: str,
    options: Options,
    as_json: bool,
) -> None:
    """Write a trtexec command line, or a Python script, that builds an ONNX MODEL with these options on the board.

    With --onnx, MODEL may be a dryfit engine file, which records its build settings. The output covers devices,
    precisions, formats, pools, shapes and scales. It is read back and verified before it is written. Nothing is built.
    """
    from dryfit.answers.export_trtexec import export_trtexec

    answer = export_trtexec(
        model,
        onnx=onnx,
        output=output,
        script=script,
        scales=scales,
        every_layer=every_layer,
        tensorrt=tensorrt,
        save_engine=engine,
        timing_cache_file=timing_cache,
        trtexec=program,
        **options,
    )
    for note in answer.option_notes:
        print_note(note)
    show_answer(answer, as_json=as_json)
    for remark in [] if as_json else answer.remarks:
        print_note(remark)
