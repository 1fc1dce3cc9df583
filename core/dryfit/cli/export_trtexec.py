"""`dryfit export trtexec`: what was decided here, as the board's own tools take it."""

from __future__ import annotations

from pathlib import Path

import click

from dryfit.answers.options import NetworkOptions, Options
from dryfit.cli.console import json_option, print_json, print_line, print_note
from dryfit.cli.network_options import network_options
from dryfit.short_text import printable


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
    from dryfit.board.board_build import BoardFiles
    from dryfit.cli.export_board import Exports
    from dryfit.cli.export_source import board_version, exported_config

    said = NetworkOptions.said(options)
    network, config, notes = exported_config(model, onnx, said, every_layer=every_layer)
    if said.use_dla_core is not None:
        config.DLA_core = said.use_dla_core  # of an engine's config as well
    source = model if onnx is None else onnx
    where = Path(f"{source.stem}.trtexec.cache") if scales is None else scales
    files = BoardFiles(str(source), engine or f"{source.stem}.engine", str(where), timing_cache or "")
    exports = Exports.of(
        network,
        config,
        board_version(config, tensorrt),
        files,
        with_line=script is None or output is not None,
        with_script=script is not None,
    )
    notes += exports.notes
    written = exports.write(program, output=output, script=script)
    if as_json:
        print_json({"model": str(model), **exports.as_json(program), "files": written, "notes": notes})
        return
    is_printed = exports.line is not None and output is None
    if exports.line is not None and is_printed:
        line = exports.line.shell_text(program)
        print_line(line)
        if printable(line) != line:
            notes.append("control characters in names are shown as escapes; --output writes them as they are")
    for file in written:  # beside the line, so that a shell can take what stands on stdout
        (print_note if is_printed else print_line)(f"{file['file']}: {file['use']}")
    for note in notes:
        print_note(f"Note: {note}.")
