"""Discovery of plugins: entry points are read at start and loaded at first use.

Groups are `dryfit.targets` (a `Target` record each) and `dryfit.layers` (a layer plugin each); the others of the
plugin interface are read here too, so that `active_plugins` names them.

A broken package never stops the others: what it raised is kept in `failures()`. The environment variable
`DRYFIT_DISABLE_PLUGINS` switches plugins off: names of entry points or of distributions, separated by commas, or `*`
for everything that does not come with dryfit itself.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any

import attrs

from dryfit.errors import PluginError, UnknownNameError

if TYPE_CHECKING:
    from dryfit.target.target import Target

TARGETS = "dryfit.targets"
LAYERS = "dryfit.layers"
GROUPS = (TARGETS, LAYERS, "dryfit.calibrators", "dryfit.quantize_methods", "dryfit.passes", "dryfit.importers")

PluginName = tuple[str, str, str]
"""(group, name of the entry point, distribution)."""

DISABLE_VARIABLE = "DRYFIT_DISABLE_PLUGINS"
OWN_DISTRIBUTION = "dryfit"


@attrs.frozen
class PluginFailure:
    """A plugin that could not be loaded.

    Attributes:
        group, name: the entry point.
        distribution, version: the package that brings it; "" where the entry point does not tell.
        message: the error in one line.
        traceback: the whole of it; "" where no exception was raised.
    """

    group: str
    name: str
    distribution: str
    version: str
    message: str
    traceback: str = ""


def _installed(group: str) -> Iterable[EntryPoint]:
    return entry_points(group=group)


class PluginRegistry:
    """All plugins that are installed.

    Args:
        read: entry-point group to entry points; the installed packages' by default.
        disabled: what `DRYFIT_DISABLE_PLUGINS` says.
    """

    def __init__(self, read: Callable[[str], Iterable[EntryPoint]] = _installed, disabled: str | None = None) -> None:
        words = os.environ.get(DISABLE_VARIABLE, "") if disabled is None else disabled
        self._disabled = {word.strip().lower() for word in words.split(",")} - {""}
        self._read = read
        self._entries: dict[str, Sequence[EntryPoint]] = {}
        self._failures: dict[PluginName, PluginFailure] = {}
        self._loaded: dict[PluginName, Any] = {}
        self._targets: dict[str, Target] | None = None
        self._claims: dict[str, list[str]] = {}

    def entries(self, group: str) -> Sequence[EntryPoint]:
        """The entry points of a group that are not switched off, sorted by name and distribution."""
        if group not in self._entries:
            found = {(entry.name, _distribution(entry)[0], entry.value): entry for entry in self._read(group)}
            self._entries[group] = [entry for _, entry in sorted(found.items()) if not self._is_disabled(entry)]
        return self._entries[group]

    def _is_disabled(self, entry: EntryPoint) -> bool:
        distribution = _distribution(entry)[0].lower()
        foreign = distribution != OWN_DISTRIBUTION
        return bool(self._disabled & {entry.name.lower(), distribution}) or ("*" in self._disabled and foreign)

    def load(self, entry: EntryPoint, prepare: Callable[[Any], Any] = lambda loaded: loaded) -> Any:
        """The object that an entry point names, loaded once; None where it fails, which is recorded.

        Args:
            entry: one of `entries`.
            prepare: makes of the loaded object what is kept; may raise.
        """
        key = _key(entry)
        if key not in self._loaded and key not in self._failures:
            try:
                self._loaded[key] = prepare(entry.load())
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001  a plugin may raise anything, even SystemExit
                self.fail(entry, f"{type(error).__name__}: {error}", traceback.format_exc())
        return None if key in self._failures else self._loaded[key]

    def fail(self, entry: EntryPoint, message: str, trace: str = "") -> None:
        """Record that a plugin cannot be used."""
        self._failures[_key(entry)] = PluginFailure(entry.group, entry.name, *_distribution(entry), message, trace)

    def targets(self) -> dict[str, Target]:
        """Device name to target, sorted by device. A device that two packages claim is left out and recorded."""
        if self._targets is None:
            claimed: dict[str, list[tuple[EntryPoint, Target]]] = {}
            for entry in self.entries(TARGETS):
                loaded = self.load(entry, _target)
                if loaded is None:
                    continue
                claimed.setdefault(loaded.device, []).append((entry, loaded))
            self._claims = {
                device: [_described(entry) for entry, _ in owners]
                for device, owners in claimed.items()
                if len(owners) > 1
            }
            for device, names in self._claims.items():
                for entry, _ in claimed[device]:
                    self.fail(entry, f"The device {device} is claimed by {' and '.join(names)}")
            self._targets = {
                device: owners[0][1] for device, owners in sorted(claimed.items()) if device not in self._claims
            }
        return self._targets

    def target(self, device: str) -> Target:
        """The target of a device, its name in any case.

        Raises:
            UnknownNameError: no installed package brings this device.
            PluginError: two packages do, or the one that does is broken.
        """
        found = self.targets()
        name = str(device).upper()
        if name in found:
            return found[name]
        if name in self._claims:
            raise PluginError(
                f"The device {name} is claimed by more than one package",
                found=", ".join(self._claims[name]),
                remedy=f"Uninstall one, or name it in the environment variable {DISABLE_VARIABLE}",
            )
        for failure in self.failures():
            if failure.group == TARGETS and failure.name.upper() == name:
                raise PluginError(
                    f"The plugin of the device {name} could not be loaded",
                    where=f"{failure.distribution} {failure.version}".strip() or None,
                    found=failure.message,
                    remedy="Its traceback is kept: see `dryfit.plugins.registry.failures()`",
                )
        raise UnknownNameError("device", str(device), found)

    def host(self) -> Target:
        """The CPU target, which emulates the others.

        Raises:
            PluginError: there is none.
        """
        for candidate in self.targets().values():
            if candidate.segment_rules.is_host:
                return candidate
        raise PluginError(
            "No installed target can run on this machine",
            found="; ".join(f"{one.name}: {one.message}" for one in self.failures()) or None,
            remedy=f"Reinstall dryfit, or take the CPU target out of {DISABLE_VARIABLE}",
        )

    def failure(self, entry: EntryPoint) -> PluginFailure:
        """Why an entry point could not be loaded; KeyError where it could."""
        return self._failures[_key(entry)]

    def failures(self) -> list[PluginFailure]:
        """Plugins that could not be loaded so far, in a fixed order."""
        return [failure for _, failure in sorted(self._failures.items())]

    def active(self) -> list[str]:
        """`name version (distribution)` of every plugin that is installed, not switched off and not known as broken."""
        self.targets()
        entries = [entry for group in GROUPS for entry in self.entries(group) if _key(entry) not in self._failures]
        return sorted({_described(entry) for entry in entries})


def _distribution(entry: EntryPoint) -> tuple[str, str]:
    return ("", "") if entry.dist is None else (entry.dist.name, entry.dist.version)


def _key(entry: EntryPoint) -> PluginName:
    return entry.group, entry.name, _distribution(entry)[0]


def _described(entry: EntryPoint) -> str:
    distribution, version = _distribution(entry)
    return f"{entry.name} {version} ({distribution})" if distribution else entry.name


def _target(loaded: Any) -> Target:
    """The target that an entry point names.

    Raises:
        PluginError: it names something else, or the record is not usable.
    """
    from dryfit.target.target import Target

    if not isinstance(loaded, Target):
        raise PluginError("The entry point names no target", found=type(loaded).__name__, allowed="a Target record")
    if not loaded.device or loaded.device != loaded.device.upper():
        raise PluginError("A device name is in upper case", found=repr(loaded.device))
    if not loaded.platforms:
        raise PluginError(f"The target {loaded.device} has no platform", allowed="at least one")
    return loaded


_registry: PluginRegistry | None = None


def installed() -> PluginRegistry:
    """The registry of the installed packages, made at first use."""
    global _registry  # noqa: PLW0603  one registry a process: entry points are read once
    if _registry is None:
        _registry = PluginRegistry()
    return _registry


def targets() -> dict[str, Target]:
    """Device name to target, sorted by device."""
    return installed().targets()


def target(device: str) -> Target:
    """The target of a device, its name in any case.

    Raises:
        UnknownNameError: no installed package brings this device.
        PluginError: two packages do, or the one that does is broken.
    """
    return installed().target(device)


def host() -> Target:
    """The CPU target, which emulates the others.

    Raises:
        PluginError: there is none.
    """
    return installed().host()


def failures() -> list[PluginFailure]:
    """Plugins that could not be loaded so far."""
    return installed().failures()


def active_plugins() -> list[str]:
    """`name version (distribution)` of every active plugin, sorted; engines and reports carry it."""
    return installed().active()
