"""`dryfit cache convert`: a file in another form, or with another first line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import click

from dryfit.answers.options import ALGORITHMS
from dryfit.cli.cache_files import INPUT_FILE, form_option, output_option, print_written, to_option, write_ranges
from dryfit.cli.console import json_option, print_json, print_note

if TYPE_CHECKING:
    from dryfit.quantization.cache_header import CacheHeader

HEADED_FORMS = ("tensorrt", "json")
"""Forms that keep TensorRT's first line."""


@click.command()
@click.argument("file", type=INPUT_FILE)
@output_option
@to_option("that of FILE if absent")
@form_option
@click.option(
    "--tensorrt-version",
    metavar="VERSION",
    help="The version that the first line names, such as 8.6.1; before 5.1 the line is the algorithm's number.",
)
@click.option("--algorithm", type=click.Choice([*ALGORITHMS]), help="The algorithm that the first line names.")
@click.option("--cutoff", type=click.FloatRange(0, 1), help="The regression cutoff in a legacy first line.")
@click.option("--quantile", type=click.FloatRange(0, 1), help="The quantile in a legacy first line.")
@json_option
def convert(
    file: Path,
    output: Path,
    to: str | None,
    form: str | None,
    tensorrt_version: str | None,
    algorithm: str | None,
    cutoff: float | None,
    quantile: float | None,
    as_json: bool,
) -> None:
    """Write a calibration cache FILE in another form, or for another version of TensorRT.

    The scales stay the same, bit for bit; what a form has no place for, such as both ends of a range, is lost.
    """
    from dryfit.quantization.cache_forms import read_ranges_file
    from dryfit.quantization.cache_header import parse_version

    stored = read_ranges_file(file, form)
    version = None if tensorrt_version is None else parse_version(tensorrt_version)
    if any(one is not None for one in (version, algorithm, cutoff, quantile)):
        if (to or stored.form) not in HEADED_FORMS:
            raise click.UsageError(f"Only the forms {' and '.join(HEADED_FORMS)} have a first line to state this in")
        header = _header(stored.header, algorithm)
        if header.algorithm.name != ALGORITHMS["legacy"] and (cutoff is not None or quantile is not None):
            raise click.UsageError(
                f"--cutoff and --quantile are of the legacy algorithm, not of {header.algorithm.name}"
            )
        header = attrs.evolve(
            header,
            version=header.version if version is None else version,
            cutoff=header.cutoff if cutoff is None else cutoff,
            quantile=header.quantile if quantile is None else quantile,
        )
        stored = attrs.evolve(stored, header=header.text)
    written = write_ranges(output, stored, to or stored.form)
    if as_json:
        print_json({"file": str(file), **written, "header": stored.header or None})
        return
    print_written(written)
    if not stored.header and written["form"] == "tensorrt":
        print_note("The first line says entropy2, for FILE names no algorithm; --algorithm states another")


def _header(line: str, algorithm: str | None) -> CacheHeader:
    """The header to start from: that of the file, with the algorithm that was asked for.

    Raises:
        click.UsageError: the file's first line is not known, so that the algorithm has to be stated.
    """
    from dryfit.quantization.cache_header import NEWEST_VERSION, CacheHeader
    from dryfit.quantization.calibration_stream import CalibrationAlgoType

    found = CacheHeader.parse(line)
    if algorithm is None:
        if found is None:
            raise click.UsageError("The first line of FILE names no algorithm that is known: state it with --algorithm")
        return found
    version = NEWEST_VERSION if found is None or found.version is None else found.version
    chosen = CalibrationAlgoType[ALGORITHMS[algorithm]]
    if found is not None and found.algorithm is chosen:
        return found
    return CacheHeader(chosen, version)
