"""`dryfit export trtexec`: what was decided here, as the board's own tools take it."""

from __future__ import annotations

from pathlib import Path

import click

from dryfit.answers.options import Options
from dryfit.cli.console import json_option, print_note, show_answer
from dryfit.cli.network_options import network_options


@click.command()
@click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--onnx",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The ONNX model that MODEL, an engine file, was built from.",
)
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the command line to a shell script instead of printing it.",
)
@click.option(
    "--script",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write a Python script for TensorRT's API, instead of a command line where there is no --output.",
)
@click.option(
    "--scales",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Where the scales of the board's INT8 are written; by default MODEL's name with .trtexec.cache, here.",
)
@click.option(
    "--every-layer",
    is_flag=True,
    help="State the device of every layer as it is placed here, not of those alone that were given one.",
)
@click.option("--tensorrt", metavar="VERSION", help="TensorRT's version on the board; --software where that is given.")
@click.option("--save-engine", "--saveEngine", "engine", metavar="FILE", help="Where the board saves what it builds.")
@click.option("--timing-cache-file", "--timingCacheFile", "timing_cache", metavar="FILE", help="The board's own.")
@click.option(
    "--trtexec", "program", default="trtexec", show_default=True, metavar="PATH", help="Path of trtexec on the board."
)
@network_options
@json_option
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
    """Write trtexec's command line, or a Python script, for an ONNX MODEL with the config that the options describe.

    MODEL may be an engine file of dryfit's with --onnx: it says itself what it was built with.
    Devices, precisions, formats, pools, shapes and scales are told. What was written is read back and compared before
    it is given out. Nothing is built.
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
