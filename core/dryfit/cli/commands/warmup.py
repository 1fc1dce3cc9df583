"""`dryfit warmup`: compile this machine's kernels ahead of time."""

from __future__ import annotations

import click

from dryfit.cli.console import answer_options, show_answer


@click.command()
@click.option(
    "--tier",
    metavar="NAME",
    help="Compile for this instruction set tier, such as avx2, instead of the machine's best.",
)
@answer_options
def warmup(tier: str | None, as_json: bool) -> None:
    """Compile all kernels for this machine's processor and keep them.

    Otherwise a kernel is compiled at first use, by the first build or run after an installation. Use this when you
    create an image or set up a machine. Kernels that are already compiled are skipped.
    """
    from dryfit.answers.warmup import warmup as answer_of
    from dryfit.engine.progress import TerminalProgress

    with TerminalProgress() as progress:
        answer = answer_of(tier, progress=progress)
    show_answer(answer, as_json=as_json)
