"""`dryfit exec`: a trtexec command line, executed here."""

from __future__ import annotations

import shlex
import time
from typing import TYPE_CHECKING

import click

from dryfit.cli.console import json_option
from dryfit.cli.network_options import overlay_option
from dryfit.short_text import printable

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PROGRAM = "TensorRT.trtexec"
"""The name in the lines that test scripts search for."""


@click.command(context_settings={"ignore_unknown_options": True})
@click.option(
    "--api", default="10.16", show_default=True, metavar="VERSION", help="TensorRT version: 8.6, 10.16, 11.1."
)
@click.option("--platform", metavar="NAME", help="Board to simulate, such as agx-orin-64 or orin-nx.")
@click.option(
    "--software",
    metavar="VERSION",
    help="Version whose rules apply to the DLA, such as 10.3 or jetpack-6.1 (default: --api).",
)
@overlay_option
@json_option
@click.argument("options", nargs=-1, type=click.UNPROCESSED, metavar="TRTEXEC-OPTIONS...")
def exec(  # noqa: A001  the name of the command
    options: tuple[str, ...],
    api: str,
    platform: str | None,
    software: str | None,
    overlays: tuple[Path, ...],
    as_json: bool,
) -> int:
    """Execute a trtexec command line here: `dryfit exec --onnx=model.onnx --fp16 --saveEngine=model.engine`.

    Every option of trtexec works, is ignored with a warning that says why, or is refused. The log and
    the exit codes (0 or 1) match trtexec's. Times are those of this machine; with --platform and --useDLACore,
    the estimate for the board is shown beside them. Without options, or with -h after `--`, all options are listed.
    """
    from dryfit.answers.trtexec.log import ERROR, INFO
    from dryfit.answers.trtexec.run import exec_trtexec
    from dryfit.engine.progress import TerminalProgress
    from dryfit.errors import DryfitError
    from dryfit.version import __version__

    def banner(state: str) -> None:
        click.echo(
            printable(f"&&&& {state} {PROGRAM} [dryfit {__version__}] # {shlex.join(['trtexec', *options])}"),
            err=as_json,
        )

    report = _printer(to_stderr=as_json)
    banner("RUNNING")
    try:
        with TerminalProgress() as progress:
            answer = exec_trtexec(
                options,
                api=api,
                platform=platform,
                software=software,
                overlays=overlays,
                report=report,
                progress=progress,
            )
    except (DryfitError, OSError, MemoryError) as error:
        report(ERROR, str(error) or type(error).__name__)
        banner("FAILED")
        return 1
    except KeyboardInterrupt:
        report(INFO, "Interrupted.")
        banner("FAILED")
        return 1
    banner("PASSED")
    if as_json:
        click.echo(answer.to_json())
    return 0


def _printer(*, to_stderr: bool) -> Callable[[str, str], None]:
    """Return what prints a line of the log: warnings and errors to stderr, as trtexec does."""

    def report(severity: str, text: str) -> None:
        stamp = f"{time.strftime('[%m/%d/%Y-%H:%M:%S]')} [{severity}] " if severity else ""
        for line in printable(text).split("\n"):
            click.echo(f"{stamp}{line}", err=to_stderr or severity in ("W", "E"))

    return report
