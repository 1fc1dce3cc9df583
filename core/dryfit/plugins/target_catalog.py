"""Devices by name: which package brings each, and its target record, loaded when the device is asked for."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING, Any

from dryfit.errors import PluginError, UnknownNameError, described_failure, place_of_failure, plugin_traceback
from dryfit.plugins.discovery import TARGETS, PluginOwner, module_of, owner_of
from dryfit.plugins.plugin_registry import PluginRegistry, plain_name
from dryfit.plugins.switches import CHOOSE_ONE, DISABLE_VARIABLE
from dryfit.plugins.target_record import usable_target

if TYPE_CHECKING:
    from dryfit.target.target import Target

logger = logging.getLogger("dryfit.plugins")


class TargetCatalog:
    """The targets of a registry.

    A device's entry point tells its name, so that a lookup imports one package only. A device that no entry point names
    may come from the hook `register_targets`; where both name it, the entry point's counts.
    """

    def __init__(self, plugins: PluginRegistry) -> None:
        self._plugins = plugins
        self._complete: dict[str, Target] = {}
        self._host: Target | None = None
        self._named: dict[str, EntryPoint] | None = None
        self._from_hooks: dict[str, tuple[PluginOwner, Target]] | None = None

    def device_names(self) -> list[str]:
        """Devices that one package names, sorted; whether their targets can be loaded is not tried."""
        named = {device for device, entry in self._entries().items() if device and module_of(entry.value)}
        return sorted({*named, *self._hooked()})

    def targets(self) -> dict[str, Target]:
        """Device to target, sorted; what is broken or claimed twice is left out and recorded."""
        self._record_duplicates()
        return {target.device: target for target in sorted(self.in_turn(), key=lambda one: one.device)}

    def in_turn(self) -> Iterator[Target]:
        """All targets, those of dryfit first, each loaded when it is reached."""
        for device in self._own_first(self._entries()):
            found = self.find(device)
            if found is not None:
                yield found
        for device in sorted(self._hooked()):
            yield self.target(device)

    def find(self, device: str) -> Target | None:
        """The target of a device; None where it is not installed or cannot be used."""
        try:
            return self.target(device)
        except (PluginError, UnknownNameError):
            return None

    def target(self, device: str) -> Target:
        """See `dryfit.plugins.registry.target`."""
        name = plain_name(TARGETS, str(device))
        if name not in self._complete:
            # Of two threads that come here at once, one makes the target that both get.
            self._complete.setdefault(name, self._with_inheritance(self._record(name, str(device))))
        return self._complete[name]

    def owner(self, device: str) -> PluginOwner | None:
        """The plugin that brings a device; None where that is not known."""
        name = plain_name(TARGETS, device)
        entry = self._entries().get(name)
        return owner_of(entry) if entry is not None else self._hooked().get(name, (None, None))[0]

    def package(self, device: str) -> str:
        """`distribution version` of the package that brings a device; "" where that is not known."""
        owner = self.owner(device)
        return "" if owner is None else owner.package

    def fail_function(self, device: str, part: str, error: BaseException) -> None:
        """Record that a function of a target raised when it was asked; the command goes on without its answer.

        Args:
            device: the target's.
            part: which function, such as `estimate_cost`.
            error: what it raised.
        """
        owner, message = self.owner(device), described_failure(error)
        if owner is None:
            return
        known = len(self._plugins.failures())
        remedy = f"Report it to the makers of {owner.distribution or 'the package'}"
        place = place_of_failure(error)
        self._plugins.fail(owner, message, plugin_traceback(error), remedy=remedy, part=part, place=place)
        if len(self._plugins.failures()) > known:
            logging.getLogger("dryfit.plugins").warning(
                "%s: %s of the target %s: %s", owner.package, part, device, message
            )

    def host(self) -> Target:
        """See `dryfit.plugins.registry.host`."""
        if self._host is None:
            self._host = self._find_host()
        return self._host

    def _find_host(self) -> Target:
        """The first target that is the host's. Strangers are asked only where dryfit's own targets have none."""
        for device in self._own_first(self._entries()):
            found = self._plugins.load(self._entries()[device], _usable_as(device))
            if found is not None and found.segment_rules.is_host:
                return found  # type: ignore[no-any-return]
        raise PluginError(
            "No installed target can run on this machine",
            found="; ".join(f"{one.name}: {one.message}" for one in self._plugins.failures()) or None,
            remedy=f"Reinstall dryfit, or take the CPU target out of {DISABLE_VARIABLE}",
        )

    def _record(self, name: str, asked: str) -> Target:
        """The record as its package wrote it."""
        entry = self._plugins.entry(TARGETS, name)
        if entry is not None:
            what = f"The plugin of the device {name} could not be loaded"
            return self._plugins.require(entry, _usable_as(name), what)  # type: ignore[no-any-return]
        if name not in self._hooked():
            raise UnknownNameError("device", asked, self.device_names())
        return self._hooked()[name][1]

    def _with_inheritance(self, record: Target) -> Target:
        from dryfit.target.target import inherited

        return record if record.segment_rules.is_host else inherited(record, self.host())

    @staticmethod
    def _own_first(entries: dict[str, EntryPoint]) -> list[str]:
        """Devices by name, those of dryfit first."""
        return sorted(entries, key=lambda device: (owner_of(entries[device]).is_foreign, device))

    def _entries(self) -> dict[str, EntryPoint]:
        """Device to the entry point that has it."""
        if self._named is None:
            lost = self._plugins.duplicates(TARGETS)
            self._named = {
                device: entry
                for device, claimed in self._plugins.claims(TARGETS).items()
                for entry in claimed
                if owner_of(entry) not in lost
            }
        return self._named

    def _record_duplicates(self) -> None:
        """Name those that lose their device to another."""
        for owner, message in self._plugins.duplicates(TARGETS).items():
            self._plugins.fail(owner, f"The device {message}", remedy=CHOOSE_ONE)

    def _hooked(self) -> dict[str, tuple[PluginOwner, Target]]:
        """Device to target and owner, for the devices that only hooks bring."""
        if self._from_hooks is not None:
            return self._from_hooks
        from dryfit.plugins.facade import registered_targets

        found: dict[str, tuple[PluginOwner, Target]] = {}
        claimed: dict[str, list[tuple[PluginOwner, Target]]] = {}
        for owned in registered_targets(self._plugins):
            claimed.setdefault(owned.value.device, []).append((owned.owner, owned.value))
        named = self._plugins.claims(TARGETS)
        for device, owners in claimed.items():
            names = sorted({*(str(owner_of(one)) for one in named.get(device, ())), *(str(one) for one, _ in owners)})
            if device not in named and len(owners) == 1:
                found[device] = owners[0]
                continue
            for owner, _ in owners:
                text = f"The device {device} is claimed by {' and '.join(names)}"
                self._plugins.fail(owner, text, hook="register_targets")
        self._from_hooks = found
        return found


def _usable_as(device: str) -> Callable[[Any], Target]:
    return lambda loaded: usable_target(loaded, device)
