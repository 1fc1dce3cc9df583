"""List and check installed plugins: `dryfit plugins list` and `dryfit plugins doctor`."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import ClassVar

import attrs

from dryfit.answers.text import Answer, Block, Line, Table
from dryfit.attrs_classes import frozen
from dryfit.plugins import registry
from dryfit.plugins.discovery import CHOOSE_ONE, PluginOwner
from dryfit.plugins.failures import PluginFailure
from dryfit.plugins.installed_plugins import InstalledPlugin, installed_plugins


@frozen(repr=False)
class PluginsAnswer(Answer):
    """The plugins of installed packages.

    Attributes:
        plugins: plugins, sorted by package, group and name.
    """

    COMMAND: ClassVar[str] = "plugins list"

    plugins: Sequence[InstalledPlugin]

    def summary_line(self) -> str:
        """Return a one-line summary of the answer."""
        return f"{len(self.plugins)} plugins"

    def blocks(self, *, verbose: bool = False) -> Iterator[Block]:  # noqa: ARG002  there is no more to show
        """Return the lines and tables that `dryfit plugins list` prints."""
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


@frozen(repr=False)
class PluginsDoctorAnswer(Answer):
    """The problems of the examined plugins.

    Attributes:
        plugins: examined plugins: all that are not disabled.
        findings: problems found; empty if there are none.
        idle_switches: words of the environment variables for plugins that match no installed plugin, by variable.
    """

    COMMAND: ClassVar[str] = "plugins doctor"

    plugins: Sequence[InstalledPlugin]
    findings: Sequence[PluginFailure]
    idle_switches: Mapping[str, Sequence[str]]
    _disabled: int

    @property
    def has_failed(self) -> bool:
        """Whether at least one problem was found."""
        return bool(self.findings or self.idle_switches)

    def summary_line(self) -> str:
        """Return a one-line summary of the answer."""
        broken = len({one.owner for one in self.findings})
        wrong = f"problems found in {broken}" if broken else "all is well"
        off = f"; {self._disabled} switched off" if self._disabled else ""
        return f"{len(self.plugins)} plugins checked: {wrong}{off}"

    def blocks(self, *, verbose: bool = False) -> Iterator[Block]:  # noqa: ARG002  there is no more to show
        """Return the lines and tables that `dryfit plugins doctor` prints."""
        yield from (Line(failure_text(one)) for one in self.findings)
        for variable, words in self.idle_switches.items():
            named = ", ".join(words)
            yield Line(
                f"{variable} names plugins that are not installed: {named}. `dryfit plugins list` lists the names"
            )
        yield Line(self.summary_line())


def failure_text(failure: PluginFailure) -> str:
    """Return the failure, its location in the plugin's files, a remedy, and the traceback, as lines."""
    lines = [str(failure), *([f"    at {failure.place}"] if failure.place else []), f"    {failure.remedy}"]
    if failure.traceback:
        lines.append(textwrap.indent(failure.traceback.rstrip(), "    | "))
    return "\n".join(lines)


def plugins() -> PluginsAnswer:
    """List every installed plugin with its package and state. Imports nothing."""
    return PluginsAnswer(installed_plugins(registry))


def examine_plugins(seconds: float, commands: Collection[str] = ()) -> PluginsDoctorAnswer:
    """Examine every plugin that is not disabled, each in its own process.

    Args:
        seconds: CPU time that a plugin may take, in seconds.
        commands: names of dryfit's own commands, which a plugin command must not reuse.
    """
    installed = installed_plugins(registry)
    tried = [one for one in installed if one.state != "disabled"]
    examined = _examined([one.owner for one in tried], seconds, commands)
    findings = [
        finding for one, found in zip(tried, examined, strict=True) for finding in (*_stated_problems(one), *found)
    ]
    idle = registry.switches.idle_words(one.owner for one in installed)
    return PluginsDoctorAnswer(tried, findings, idle, len(installed) - len(tried))


def _stated_problems(plugin: InstalledPlugin) -> Iterator[PluginFailure]:
    """Return the problems of what a plugin's package states about it."""
    if plugin.state == "duplicate":
        yield PluginFailure.of(plugin.owner, plugin.reason, remedy=CHOOSE_ONE)
    if not plugin.version:
        text = "the metadata of its package has no version"
        yield PluginFailure.of(plugin.owner, text, remedy="Reinstall the package")


def _examined(
    owners: Sequence[PluginOwner], seconds: float, commands: Collection[str]
) -> Iterator[Sequence[PluginFailure]]:
    """Return the problems of each plugin, examined from a process that has imported no plugin."""
    asked = {"owners": [attrs.asdict(one) for one in owners], "seconds": seconds, "commands": [*commands]}
    # -P: what lies in the working directory must not be imported in place of what is installed.
    done = subprocess.run(
        [sys.executable, "-P", "-m", "dryfit.answers.plugin_examination"],
        input=json.dumps(asked),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    for found in json.loads(done.stdout):
        yield [PluginFailure(**one) for one in found]
