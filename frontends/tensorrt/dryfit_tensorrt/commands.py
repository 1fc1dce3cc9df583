"""`dryfit tensorrt` and `dryfit migrate`: what they do is in `running.py` and `migrate.py`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from dryfit.answers.conditions import FailCondition
from dryfit.cli.console import answer_options, show_answer
from dryfit.cli.fail_on import fail_on_option, print_failed
from dryfit.errors import UnknownNameError
from dryfit_tensorrt.migrate import SUBJECTS
from dryfit_tensorrt.settings import API_NAMES, DEFAULT_API, ApiLevel, Settings, api_level


class ApiVersion(click.ParamType):
    """`8.6`, `10.16`, `11` as a level."""

    name = "version"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> ApiLevel:
        """The level of a version's name."""
        if isinstance(value, ApiLevel):
            return value
        try:
            return api_level(str(value))
        except UnknownNameError as error:
            self.fail(str(error), param, ctx)


def settings_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of `Settings`."""
    options = (
        click.option(
            "--api",
            type=ApiVersion(),
            default=DEFAULT_API,
            show_default=True,
            metavar="VERSION",
            help=f"TensorRT version to simulate: {', '.join(API_NAMES)}.",
        ),
        click.option("--platform", metavar="NAME", help="Board to simulate, such as agx-orin-64 or orin-nx."),
        click.option(
            "--software",
            metavar="VERSION",
            help="Software version whose rules apply, such as 10.3 or jetpack-6.1; default: that of --api.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.group()
def tensorrt() -> None:
    """Run TensorRT programs without TensorRT: `import tensorrt` imports dryfit's module."""


@tensorrt.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@settings_options
@click.argument("program", nargs=-1, type=click.UNPROCESSED, required=True, metavar="PROGRAM [ARGS]...")
def run(program: tuple[str, ...], api: ApiLevel, platform: str | None, software: str | None) -> int:
    """Run a PROGRAM that imports TensorRT: a script, `-m module`, or a command such as polygraphy.

    Options come before the program; `--` separates them from a program that starts with a hyphen.

    In the program and its child processes, `import tensorrt` imports the module of the selected version, and the CUDA
    entry points for buffers (`cuda.bindings`, `cuda.cudart`, `pycuda`, Polygraphy's) use host memory.
    """
    from dryfit_tensorrt.running import run_program

    return run_program(program, checked_settings(api, platform, software))


@tensorrt.command()
@settings_options
@click.option("--off", is_flag=True, help="Print shell commands that undo it.")
def env(api: ApiLevel, platform: str | None, software: str | None, *, off: bool) -> None:
    """Print shell commands that make `import tensorrt` import dryfit's module.

    Use it as `eval "$(dryfit tensorrt env --api 10.16)"`, and `eval "$(dryfit tensorrt env --off)"` to undo it.
    """
    from dryfit_tensorrt.running import shell_lines

    for line in shell_lines(None if off else checked_settings(api, platform, software)):
        click.echo(line)


def checked_settings(api: ApiLevel, platform: str | None, software: str | None) -> Settings:
    """Return the settings, if dryfit has the board and the software version.

    Raises:
        ConfigError, UnknownNameError: it does not.
    """
    import dryfit

    if platform is not None:
        dryfit.describe_target("GPU", platform)
    if software is not None:
        dryfit.describe_target("DLA", platform, software)
    return Settings(api, platform, software)


@click.command()
@click.argument("script", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--from",
    "older",
    type=ApiVersion(),
    required=True,
    metavar="VERSION",
    help="Version that the script was written for.",
)
@click.option("--to", "newer", type=ApiVersion(), required=True, metavar="VERSION", help="Version to migrate to.")
@fail_on_option(SUBJECTS, "removed,changed")
@click.option("--verbose", is_flag=True, help="Also list uses that are guarded by a version check.")
@answer_options
def migrate(
    script: Path, older: ApiLevel, newer: ApiLevel, fail_on: tuple[FailCondition, ...], *, verbose: bool, as_json: bool
) -> int:
    """List each use of the TensorRT API in a SCRIPT that a newer version removed or changed, and its replacement.

    The script is only read, not run. The list also shows what dryfit can convert, such as the scales of a calibration
    cache to Q/DQ nodes.
    """
    from dryfit_tensorrt.migrate import migrate as answer_of

    answer = answer_of(script, older.name, newer.name, fail_on)
    show_answer(answer, as_json=as_json, verbose=verbose)
    return print_failed(answer.conditions)


COMMANDS: tuple[click.Command, ...] = (migrate, tensorrt)
"""What the hook adds to `dryfit`."""
