"""The plugins of this process: what every other part of dryfit asks for devices and for the state of plugins.

`registry` is the only one that a program needs: made here, it reads entry points when it is first asked, and loads each
at first use. A test puts another in its place for as long as it runs.
"""

from __future__ import annotations

import functools
import logging
import os
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING, Any

from dryfit.errors import PluginError, UnknownNameError, described_failure, place_of_failure, plugin_traceback
from dryfit.plugins.discovery import (
    CHOOSE_ONE,
    DISABLE_VARIABLE,
    GROUPS,
    TARGETS,
    PluginOwner,
    module_of,
    owner_of,
)
from dryfit.plugins.entry_points import UNIQUE_GROUPS, EntryPoints, plain_name
from dryfit.plugins.hook_modules import HookModules
from dryfit.plugins.target_record import usable_target

if TYPE_CHECKING:
    from dryfit.target.target import Target

logger = logging.getLogger("dryfit.plugins")


class PluginRegistry(EntryPoints):
    """All plugins that are installed: entry points, targets by device, modules of hooks.

    A device's entry point tells its name, so that a lookup imports one package only. A device that no entry point names
    may come from the hook `register_targets`; where both name it, the entry point's counts.
    """

    def _begin(self) -> None:
        super()._begin()
        self._targets: dict[str, Target] = {}
        self._host: Target | None = None
        self._named: dict[str, EntryPoint] | None = None
        self._from_hooks: dict[str, tuple[PluginOwner, Target]] | None = None

    def __reduce__(self) -> str:
        """Pickled by its name: another process has a registry of its own, and what is loaded here stays here."""
        return "registry"

    @functools.cached_property
    def hooks(self) -> HookModules:
        """The modules with hook implementations, loaded at first use."""
        return HookModules(self)

    def switch_off_foreign(self) -> None:
        """From now on this registry has only plugins that come with dryfit. What was loaded before is forgotten."""
        self.begin_again(disabled=f"*,{os.environ.get(DISABLE_VARIABLE, '')}")

    def active_plugins(self) -> list[str]:
        """`name version (distribution)` of every plugin that is installed, not switched off and not ambiguous; sorted.

        Engines and reports carry it. What has been loaded so far makes no difference: hook modules take part
        everywhere, so they are loaded for this and left out where they fail; whether any other plugin works shows when
        it is needed.
        """
        return sorted(map(str, self._unambiguous - set(self.hooks.failed)))

    @functools.cached_property
    def _unambiguous(self) -> frozenset[PluginOwner]:
        """The plugins that are not switched off and keep their names."""
        ambiguous = {owner for group in UNIQUE_GROUPS for owner in self.duplicates(group)}
        return frozenset(owner_of(entry) for group in GROUPS for entry in self.entries(group)) - ambiguous

    def device_names(self) -> list[str]:
        """Devices that one package names, sorted; whether their targets can be loaded is not tried."""
        named = {device for device, entry in self._target_entries().items() if device and module_of(entry.value)}
        return sorted({*named, *self._hooked()})

    def targets(self) -> dict[str, Target]:
        """Device to target, sorted; what is broken or claimed twice is left out and recorded.

        Loads all of them. A lookup by name is cheaper and safer: `target`.
        """
        self._record_duplicates()
        return {target.device: target for target in sorted(self.targets_in_turn(), key=lambda one: one.device)}

    def targets_in_turn(self) -> Iterator[Target]:
        """All targets, those of dryfit first, each loaded when it is reached: for searches that may end early."""
        for device in self._own_first(self._target_entries()):
            found = self.find_target(device)
            if found is not None:
                yield found
        for device in sorted(self._hooked()):
            yield self.target(device)

    def find_target(self, device: str) -> Target | None:
        """The target of a device; None where it is not installed or cannot be used."""
        try:
            return self.target(device)
        except (PluginError, UnknownNameError):
            return None

    def target(self, device: str) -> Target:
        """The target of a device, its name in any case. What its package left out is filled in from the host's.

        Raises:
            UnknownNameError: no installed package brings this device.
            PluginError: two packages do, or the one that does is broken or switched off.
        """
        if isinstance(device, str) and device in self._targets:
            return self._targets[device]
        name = plain_name(TARGETS, str(device))
        if name not in self._targets:
            # Of two threads that come here at once, one makes the target that both get.
            self._targets.setdefault(name, self._with_inheritance(self._record(name, str(device))))
        return self._targets[name]

    def target_owner(self, device: str) -> PluginOwner | None:
        """The plugin that brings a device; None where that is not known."""
        name = plain_name(TARGETS, device)
        entry = self._target_entries().get(name)
        return owner_of(entry) if entry is not None else self._hooked().get(name, (None, None))[0]

    def target_package(self, device: str) -> str:
        """`distribution version` of the package that brings a device; "" where that is not known."""
        owner = self.target_owner(device)
        return "" if owner is None else owner.package

    def fail_function(self, device: str, part: str, error: BaseException) -> None:
        """Record that a function of a target raised when it was asked; the command goes on without its answer.

        Args:
            device: the target's.
            part: which function, such as `estimate_cost`.
            error: what it raised.
        """
        owner, message = self.target_owner(device), described_failure(error)
        if owner is None:
            return
        known = len(self.failures())
        remedy = f"Report it to the maintainers of {owner.distribution or 'the package'}"
        place = place_of_failure(error)
        self.fail(owner, message, plugin_traceback(error), remedy=remedy, part=part, place=place)
        if len(self.failures()) > known:
            logger.warning("%s: %s of the target %s: %s", owner.package, part, device, message)

    def host(self) -> Target:
        """The CPU target, which emulates the others.

        Raises:
            PluginError: there is none.
        """
        if self._host is None:
            self._host = self._find_host()
        return self._host

    def _find_host(self) -> Target:
        """The first target that is the host's. Strangers are asked only where dryfit's own targets have none."""
        for device in self._own_first(self._target_entries()):
            found = self.load(self._target_entries()[device], _usable_as(device))
            if found is not None and found.segment_rules.is_host:
                return found  # type: ignore[no-any-return]
        raise PluginError(
            "No installed target runs on this machine",
            found="; ".join(f"{one.name}: {one.message}" for one in self.failures()) or None,
            remedy=f"Reinstall dryfit, or take the CPU target out of {DISABLE_VARIABLE}",
        )

    def _record(self, name: str, asked: str) -> Target:
        """The record as its package wrote it."""
        entry = self.entry(TARGETS, name)
        if entry is not None:
            what = f"The plugin of the device {name} could not be loaded"
            return self.require(entry, _usable_as(name), what)  # type: ignore[no-any-return]
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

    def _target_entries(self) -> dict[str, EntryPoint]:
        """Device to the entry point that has it."""
        if self._named is None:
            lost = self.duplicates(TARGETS)
            self._named = {
                device: entry
                for device, claimed in self.claims(TARGETS).items()
                for entry in claimed
                if owner_of(entry) not in lost
            }
        return self._named

    def _record_duplicates(self) -> None:
        """Name those that lose their device to another."""
        for owner, message in self.duplicates(TARGETS).items():
            self.fail(owner, f"The device {message}", remedy=CHOOSE_ONE)

    def _hooked(self) -> dict[str, tuple[PluginOwner, Target]]:
        """Device to target and owner, for the devices that only hooks bring."""
        if self._from_hooks is not None:
            return self._from_hooks
        found: dict[str, tuple[PluginOwner, Target]] = {}
        claimed: dict[str, list[tuple[PluginOwner, Target]]] = {}
        for owned in self.hooks.once("register_targets", usable_target):
            claimed.setdefault(owned.value.device, []).append((owned.owner, owned.value))
        named = self.claims(TARGETS)
        for device, owners in claimed.items():
            names = sorted({*(str(owner_of(one)) for one in named.get(device, ())), *(str(one) for one, _ in owners)})
            if device not in named and len(owners) == 1:
                found[device] = owners[0]
                continue
            for owner, _ in owners:
                text = f"The device {device} is claimed by {' and '.join(names)}"
                self.fail(owner, text, hook="register_targets")
        self._from_hooks = found
        return found

    def function_failure(self, device: str, part: str) -> str:
        """What a function of a device's target raised so far; "" where it raised nothing."""
        owner = self.target_owner(device)
        return next((one.message for one in self.failures() if (one.owner, one.part) == (owner, part)), "")

    def format_names(self) -> frozenset[str]:
        """Names of the formats that inputs or outputs of an installed device may have; loads all targets."""
        return frozenset(
            one.name
            for target in self.targets().values()
            for table in (target.input_formats, target.output_formats)
            for formats in table.values()
            for one in formats
        )


def _usable_as(device: str) -> Callable[[Any], Target]:
    return lambda loaded: usable_target(loaded, device)


registry = PluginRegistry()
"""The one of this process."""
