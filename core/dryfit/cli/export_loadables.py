"""`dryfit export loadables`: one file for each segment of a model that its device's own runtime would load."""

from __future__ import annotations

import logging
from pathlib import Path

import click

from dryfit.answers.options import Options
from dryfit.cli.console import answer_options, output_option, print_note, show_answer
from dryfit.cli.log import log_to_stderr
from dryfit.cli.network_options import ModelCommand, network_options


@click.command(cls=ModelCommand)
@click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@output_option("Folder for the loadables; created if missing.", required=True, holds="DIR")
@click.option("--force", is_flag=True, help="Replace existing loadables of this model in the folder.")
@network_options
@answer_options
def loadables(model: Path, output: Path, force: bool, options: Options, as_json: bool) -> None:
    """Write the loadables of an ONNX MODEL, one file per segment of a device that supports them.

    DLA loadables use dryfit's own format and run here by emulation; boards cannot load them.
    """
    from dryfit.answers.export_loadables import export_loadables

    with log_to_stderr(logging.WARNING):
        answer = export_loadables(model, output, force=force, **options)
    for note in answer.notes:
        print_note(note)
    show_answer(answer, as_json=as_json)
    for remark in [] if as_json else answer.remarks:
        print_note(remark)
