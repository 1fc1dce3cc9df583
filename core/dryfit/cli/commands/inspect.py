"""`dryfit inspect`: what an engine file has inside."""

from __future__ import annotations

from pathlib import Path

import click

from dryfit.cli.console import answer_options, show_answer


@click.command()
@click.argument("engine_file", metavar="ENGINE", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--verbose", is_flag=True, help="Also show every engine layer, why segments begin, and reformats.")
@answer_options
def inspect(engine_file: Path, verbose: bool, as_json: bool) -> None:
    """Show the contents of an ENGINE file: inputs, outputs, segments, reformats, memory, layers."""
    from dryfit.answers.inspect_engine import inspect_engine

    show_answer(inspect_engine(engine_file), as_json=as_json, verbose=verbose)
