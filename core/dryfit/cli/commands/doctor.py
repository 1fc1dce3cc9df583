"""`dryfit doctor`: whether dryfit is installed well, in a screen."""

from __future__ import annotations

import click

from dryfit.cli.console import answer_options, show_answer


@click.command()
@answer_options
@click.pass_context
def doctor(context: click.Context, as_json: bool) -> None:
    """Check the installation: versions, processor, cache folder and plugins.

    Exits with 1 if something is wrong. `dryfit plugins doctor` tests each plugin in a separate process.
    """
    from dryfit.answers import installation

    answer = installation.doctor()
    show_answer(answer, as_json=as_json)
    context.exit(1 if answer.problems else 0)
