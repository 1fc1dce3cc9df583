"""Which plugins are installed, and what is wrong with them? `dryfit plugins list` and `dryfit plugins doctor`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

import attrs

from dryfit.answers.text import Answer, Block, Line, Table
from dryfit.plugins import registry
from dryfit.plugins.discovery import CHOOSE_ONE, PluginOwner, switching_off
from dryfit.plugins.failures import PluginFailure
from dryfit.plugins.installed_plugins import InstalledPlugin, installed_plugins

MARK = "DRYFIT-EXAMINATION "
"""What the line begins with in which `dryfit.answers.plugin_examination` answers."""


@attrs.frozen(repr=False)
class PluginsAnswer(Answer):
    """The plugins of installed packages.

    Attributes:
        plugins: sorted by package, group and name.
    """

    COMMAND: ClassVar[str] = "plugins list"

    plugins: Sequence[InstalledPlugin]

    def summary_line(self) -> str:
        """The answer in one line."""
        return f"{len(self.plugins)} plugins"

    def blocks(self, *, verbose: bool = False) -> Iterator[Block]:  # noqa: ARG002  there is no more to show
        """What `dryfit plugins list` prints."""
        rows = [
            (
                f"{one.distribution} {one.version}",
                one.group,
                one.name,
                one.registers,
                f"{one.state} {one.reason}".strip(),
            )
            for one in self.plugins
        ]
        yield Table("", ["package", "group", "name", "registers", "state"], rows)
        yield Line("Plugins are checked at first use, and by `dryfit plugins doctor`.")


@attrs.frozen(repr=False)
class PluginsDoctorAnswer(Answer):
    """What is wrong with plugins that were tried.

    Attributes:
        plugins: those that were tried: all that are not switched off.
        findings: what is wrong; empty where all is well.
        idle_switches: for each environment variable that switches plugins its words that name nothing that is
            installed.
    """

    COMMAND: ClassVar[str] = "plugins doctor"

    plugins: Sequence[InstalledPlugin]
    findings: Sequence[PluginFailure]
    idle_switches: Mapping[str, Sequence[str]]
    _disabled: int

    @property
    def has_failed(self) -> bool:
        """Whether something is wrong."""
        return bool(self.findings or self.idle_switches)

    def summary_line(self) -> str:
        """The answer in one line."""
        broken = len({one.owner for one in self.findings})
        wrong = f"problems found in {broken}" if broken else "all is well"
        off = f"; {self._disabled} switched off" if self._disabled else ""
        return f"{len(self.plugins)} plugins checked: {wrong}{off}"

    def blocks(self, *, verbose: bool = False) -> Iterator[Block]:  # noqa: ARG002  there is no more to show
        """What `dryfit plugins doctor` prints."""
        yield from (Line(failure_text(one)) for one in self.findings)
        for variable, words in self.idle_switches.items():
            named = ", ".join(words)
            yield Line(
                f"{variable} names plugins that are not installed: {named}. `dryfit plugins list` lists the names"
            )
        yield Line(self.summary_line())


def failure_text(failure: PluginFailure) -> str:
    """What failed, where in the plugin's files, what can be done, and the traceback, in lines."""
    lines = [str(failure), *([f"    at {failure.place}"] if failure.place else []), f"    {failure.remedy}"]
    if failure.traceback:
        lines.append(textwrap.indent(failure.traceback.rstrip(), "    | "))
    return "\n".join(lines)


def plugins() -> PluginsAnswer:
    """Every installed plugin with its package and its state. Nothing is imported."""
    return PluginsAnswer(installed_plugins(registry))


def examine_plugins(seconds: float, commands: Collection[str] = ()) -> PluginsDoctorAnswer:
    """Try every plugin that is not switched off, each in a process of its own.

    Args:
        seconds: how long one plugin may take.
        commands: names of the command line's own commands, which a package's command must not have.
    """
    installed = installed_plugins(registry)
    tried = [one for one in installed if one.state != "disabled"]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        findings = [
            finding
            for found in pool.map(lambda one: [*_findings_of(one, seconds, commands)], tried)
            for finding in found
        ]
    idle = registry.switches.idle_words(one.owner for one in installed)
    return PluginsDoctorAnswer(tried, findings, idle, len(installed) - len(tried))


def _findings_of(plugin: InstalledPlugin, seconds: float, commands: Collection[str]) -> Iterator[PluginFailure]:
    """Everything that is wrong with a plugin."""
    owner = plugin.owner
    if plugin.state == "duplicate":
        yield PluginFailure.of(owner, plugin.reason, remedy=CHOOSE_ONE)
    if not plugin.version:
        yield PluginFailure.of(owner, "the metadata of its package has no version", remedy="Reinstall the package")
    yield from _examined(owner, seconds, commands)


def _examined(owner: PluginOwner, seconds: float, commands: Collection[str]) -> list[PluginFailure]:
    """What a process of its own says of a plugin, or what became of that process."""
    # -P: what lies in the working directory must not be imported in place of what is installed.
    module = "dryfit.answers.plugin_examination"
    command = [sys.executable, "-P", "-m", module, owner.group, owner.name, owner.distribution, *commands]
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
        remedy = f"Report it to its maintainers; {switching_off(owner)} switches it off, --timeout gives it more time"
        return [PluginFailure.of(owner, f"its import takes longer than {seconds:g} s", remedy=remedy)]
    answers = [line.removeprefix(MARK) for line in done.stdout.splitlines() if line.startswith(MARK)]
    if not answers:
        text = f"the interpreter exited with code {done.returncode} while importing it"
        return [PluginFailure.of(owner, text, done.stderr)]
    return [PluginFailure(**one) for one in json.loads(answers[-1])]
