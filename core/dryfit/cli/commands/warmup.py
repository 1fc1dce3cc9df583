"""`dryfit warmup`: compile this machine's kernels ahead of time."""

from __future__ import annotations

import click

from dryfit.cli.console import json_option, show_answer


@click.command()
@click.option(
    "--tier",
    metavar="NAME",
    help="Compile for this instruction set tier, such as avx2, instead of the machine's best.",
)
@json_option
def warmup(tier: str | None, as_json: bool) -> None:
    """Compile all kernels for this machine's processor and keep them.

    Without it a kernel is compiled when it is first needed: by the first build or run after an installation. Use it
    when an image is made or a machine is set up. What is there already is not compiled again.
    """
    from dryfit.answers.warmup import warmup as answer_of
    from dryfit.engine.progress import TerminalProgress

    with TerminalProgress() as progress:
        answer = answer_of(tier, progress=progress)
    show_answer(answer, as_json=as_json)
