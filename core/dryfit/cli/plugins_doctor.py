"""`dryfit plugins doctor`: what is wrong with installed plugins, each tried in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import attrs
import click

from dryfit.cli.console import json_option, print_json, print_line
from dryfit.cli.failure_notes import SECONDS, failure_text, seconds_allowed
from dryfit.plugins import registry
from dryfit.plugins.discovery import CHOOSE_ONE, PluginOwner, switching_off
from dryfit.plugins.failures import PluginFailure
from dryfit.plugins.installed_plugins import InstalledPlugin, installed_plugins
from dryfit.plugins.loading import TIMEOUT_VARIABLE

MARK = "DRYFIT-EXAMINATION "
"""What the line begins with in which `dryfit.cli.plugins_examination` answers."""


@click.command()
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help=f"How long one plugin may take; {SECONDS:g} or the environment variable {TIMEOUT_VARIABLE} if left out.",
)
@json_option
@click.pass_context
def doctor(context: click.Context, timeout: float | None, as_json: bool) -> None:
    """Try every plugin that is not switched off, say what is wrong with it and what to do.

    Ends with 0 where all is well, and with 1 where something was found: a broken plugin, or a switch that names nothing
    that is installed.
    """
    seconds = seconds_allowed() if timeout is None else timeout
    installed = installed_plugins(registry)
    tried = [one for one in installed if one.state != "disabled"]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = [
            finding for findings in pool.map(lambda one: [*findings_of(one, seconds)], tried) for finding in findings
        ]
    idle = registry.switches.idle_words(one.owner for one in installed)
    if as_json:
        answer = {"plugins": [attrs.asdict(one) for one in tried], "findings": [attrs.asdict(one) for one in found]}
        print_json({**answer, "idle_switches": idle})
    else:
        _print(found, idle, len(tried), len(installed) - len(tried))
    context.exit(1 if found or idle else 0)


def findings_of(plugin: InstalledPlugin, seconds: float) -> Iterator[PluginFailure]:
    """Everything that is wrong with a plugin.

    Args:
        plugin: what is tried.
        seconds: how long its process may take.
    """
    owner = plugin.owner
    if plugin.state == "duplicate":
        yield PluginFailure.of(owner, plugin.reason, remedy=CHOOSE_ONE)
    if not plugin.version:
        yield PluginFailure.of(owner, "the metadata of its package has no version", remedy="Reinstall the package")
    yield from _examined(owner, seconds)


def _examined(owner: PluginOwner, seconds: float) -> list[PluginFailure]:
    """What a process of its own says of a plugin, or what became of that process."""
    # -P: what lies in the working directory must not be imported in place of what is installed.
    module = "dryfit.cli.plugins_examination"
    command = [sys.executable, "-P", "-m", module, owner.group, owner.name, owner.distribution]
    try:
        done = subprocess.run(  # noqa: S603  this interpreter and a module of ours
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        remedy = f"Tell its makers; {switching_off(owner)} switches it off, --timeout gives it more time"
        return [PluginFailure.of(owner, f"its import takes longer than {seconds:g} s", remedy=remedy)]
    answers = [line.removeprefix(MARK) for line in done.stdout.splitlines() if line.startswith(MARK)]
    if not answers:
        text = f"the interpreter ended with code {done.returncode} while it was tried"
        return [PluginFailure.of(owner, text, done.stderr)]
    return [PluginFailure(**one) for one in json.loads(answers[-1])]


def _print(found: list[PluginFailure], idle: Mapping[str, list[str]], tried: int, disabled: int) -> None:
    for finding in found:
        print_line(failure_text(finding))
    for variable, words in idle.items():
        named = ", ".join(words)
        print_line(f"{variable} names nothing that is installed: {named}. `dryfit plugins list` has the names")
    plugins: Any = {finding.owner for finding in found}
    wrong = f"something is wrong with {len(plugins)}" if found else "all is well"
    off = f"; {disabled} switched off" if disabled else ""
    print_line(f"{tried} plugins tried: {wrong}{off}")
