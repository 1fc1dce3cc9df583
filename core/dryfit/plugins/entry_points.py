"""The entry points of installed packages, by group and name: loaded at first use, and what fails is kept.

What is looked up by name loads only what has this name. A broken package never stops the others.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from importlib.metadata import EntryPoint
from typing import Any

from dryfit.errors import PluginError, place_of_failure, plugin_traceback
from dryfit.plugins import loading
from dryfit.plugins.discovery import (
    CALIBRATORS,
    CHOOSE_ONE,
    GROUPS,
    IMPORTERS,
    METRICS,
    QUANTIZE_METHODS,
    TARGETS,
    PluginOwner,
    PluginSwitches,
    by_name,
    installed_entry_points,
    owner_of,
)
from dryfit.plugins.failures import DOCTOR, PluginFailure

UNIQUE_GROUPS = (TARGETS, CALIBRATORS, IMPORTERS, QUANTIZE_METHODS, METRICS)
"""Groups in which a name stands for one thing. Layer plugins and operators have versions beside their names."""


class EntryPoints:
    """The entry points of the installed packages, and what was loaded of them.

    Args:
        read: gives the entry points of all groups, and is called once; the installed packages' by default.
        disabled: what `DRYFIT_DISABLE_PLUGINS` says; the environment's by default.
        selected: what `DRYFIT_LOAD_PLUGINS` says; the environment's by default.
    """

    def __init__(
        self,
        read: Callable[[], Iterable[EntryPoint]] = installed_entry_points,
        disabled: str | None = None,
        selected: str | None = None,
    ) -> None:
        self.begin_again(read, disabled, selected)

    def begin_again(
        self,
        read: Callable[[], Iterable[EntryPoint]] = installed_entry_points,
        disabled: str | None = None,
        selected: str | None = None,
    ) -> None:
        """Forget all that was read and loaded. From now on this registry has the plugins of these arguments."""
        vars(self).clear()
        self._read = read
        self._texts = disabled, selected
        self._begin()

    def _begin(self) -> None:
        self._failures: dict[tuple[PluginOwner, str], PluginFailure] = {}
        self._loaded: dict[PluginOwner, Any] = {}
        self.answers: dict[Hashable, Any] = {}
        """What was found out once and stays true until the registry begins again."""

    @functools.cached_property
    def switches(self) -> PluginSwitches:
        """What is switched off; the environment is read when this is first asked."""
        return PluginSwitches.from_texts(*self._texts)

    @functools.cached_property
    def _entries(self) -> Mapping[str, Sequence[EntryPoint]]:
        """Group to its entry points: a package is read once, whatever is asked of it."""
        found: dict[str, list[EntryPoint]] = {}
        for entry in by_name(self._read()):
            found.setdefault(entry.group, []).append(entry)
        return found

    def all_entries(self, group: str) -> Sequence[EntryPoint]:
        """The entry points of a group, those that are switched off too, sorted by name and distribution."""
        return self._entries.get(group, ())

    @functools.cached_property
    def _claims(self) -> Mapping[str, Mapping[str, Sequence[EntryPoint]]]:
        """Group to `claims`. Each build asks for those of all groups."""
        found: dict[str, dict[str, list[EntryPoint]]] = {}
        for group in self._entries:
            for entry in self.entries(group):
                found.setdefault(group, {}).setdefault(plain_name(group, entry.name), []).append(entry)
        return {group: dict(sorted(named.items())) for group, named in found.items()}

    def entries(self, group: str) -> Sequence[EntryPoint]:
        """The entry points of a group that are not switched off, sorted by name and distribution."""
        return [entry for entry in self.all_entries(group) if not self.switches.reason(owner_of(entry))]

    def claims(self, group: str) -> Mapping[str, Sequence[EntryPoint]]:
        """Name, as `plain_name` writes it, to the entry points that claim it; both sorted."""
        return self._claims.get(group, {})

    def entry(self, group: str, name: str) -> EntryPoint | None:
        """The entry point that has a name in its group; None where no package brings it.

        A name that dryfit itself has stays dryfit's: nobody takes `GPU` from it by being installed.

        Raises:
            PluginError: more than one package brings it, or the one that does is switched off.
        """
        plain = plain_name(group, name)
        claimed = self.claims(group).get(plain, [])
        own = [entry for entry in claimed if not owner_of(entry).is_foreign]
        if len(own) == 1:
            return own[0]
        if len(claimed) > 1:
            raise PluginError(
                f"The name {plain} in {group} is registered by more than one package",
                found=", ".join(str(owner_of(entry)) for entry in claimed),
                remedy=CHOOSE_ONE,
            )
        if claimed:
            return claimed[0]
        for entry in self.all_entries(group):
            if plain_name(group, entry.name) == plain:
                owner = owner_of(entry)
                raise PluginError(
                    f"The plugin {owner} is disabled",
                    where=f"{plain} in {group}",
                    found=self.switches.reason(owner),
                    remedy="Run again without this, or use another name",
                )
        return None

    def duplicates(self, group: str) -> dict[PluginOwner, str]:
        """The plugins of a group that lose their name to another one, and what to tell of each; nothing is loaded."""
        found: dict[PluginOwner, str] = {}
        for name, claimed in self.claims(group).items() if group in UNIQUE_GROUPS else ():
            owners = [owner_of(entry) for entry in claimed]
            own = [owner for owner in owners if not owner.is_foreign]
            losers = [owner for owner in owners if owner.is_foreign] if len(own) == 1 else owners
            if len(owners) > 1:
                text = f"{name} is claimed by {' and '.join(map(str, owners))}"
                found.update(dict.fromkeys(losers, f"{text}; dryfit's own is used" if len(own) == 1 else text))
        return found

    def unusable(self, distribution: str) -> list[str]:
        """What of a package is switched off, or has failed so far: each with its reason and what to do."""
        owners = {owner_of(entry) for group in GROUPS for entry in self.all_entries(group)}
        off = [
            f"{owner} is disabled by {self.switches.reason(owner)}: run again without this"
            for owner in sorted(owners)
            if owner.distribution == distribution and self.switches.reason(owner)
        ]
        failed = [f"{one}: see `{DOCTOR}`" for one in self.failures() if one.distribution == distribution]
        return off + failed

    def load(self, entry: EntryPoint, prepare: Callable[[Any], Any] = lambda loaded: loaded) -> Any:
        """The object that an entry point names, loaded once; None where it fails, which is recorded.

        Args:
            entry: one of `entries`.
            prepare: makes of the loaded object what is kept; may raise.

        Raises:
            KeyboardInterrupt: the user stopped the program meanwhile.
        """
        owner = owner_of(entry)
        if owner not in self._loaded and (owner, "") not in self._failures:
            try:
                self._loaded.setdefault(owner, loading.load(entry, prepare))
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001  a plugin may raise anything, even SystemExit
                message, remedy = loading.explained(entry, error)
                self.fail(owner, message, plugin_traceback(error), remedy=remedy, place=place_of_failure(error))
        return None if (owner, "") in self._failures else self._loaded[owner]

    def load_all(self, group: str, prepare: Callable[[EntryPoint], Callable[[Any], Any]]) -> dict[str, Any]:
        """Name to what it stands for, sorted; what fails or lost its name is recorded and left out.

        Args:
            group: one in which a name stands for one thing.
            prepare: gives the function that makes of a loaded object what is kept.
        """
        lost, found = self.duplicates(group), {}
        for entry in self.entries(group):
            if owner_of(entry) in lost:
                self.fail(entry, lost[owner_of(entry)], remedy=CHOOSE_ONE)
                continue
            loaded = self.load(entry, prepare(entry))
            if loaded is not None:
                found[entry.name] = loaded
        return found

    def require(self, entry: EntryPoint, prepare: Callable[[Any], Any], what: str) -> Any:
        """The object that an entry point names, for a user who asked for it.

        Args:
            entry: one of `entries`.
            prepare: see `load`.
            what: what could not be done where it is broken, as a sentence without its full stop.

        Raises:
            PluginError: it is broken; names distribution, version and the error.
        """
        loaded = self.load(entry, prepare)
        if loaded is None:
            raise self.failure(entry).error(what)
        return loaded

    def fail(
        self,
        plugin: EntryPoint | PluginOwner,
        message: str,
        trace: str = "",
        hook: str = "",
        remedy: str = "",
        part: str = "",
        place: str = "",
    ) -> None:
        """Record that a plugin, or one hook or function of it, cannot be used. The first failure of each is kept."""
        owner = plugin if isinstance(plugin, PluginOwner) else owner_of(plugin)
        failure = PluginFailure.of(owner, message, trace, hook, remedy, part, place)
        self._failures.setdefault((owner, hook or part), failure)

    def failure(self, plugin: EntryPoint | PluginOwner) -> PluginFailure:
        """Why a plugin could not be loaded; KeyError where it could."""
        return self._failures[plugin if isinstance(plugin, PluginOwner) else owner_of(plugin), ""]

    def failures(self) -> list[PluginFailure]:
        """What could not be used so far, in a fixed order."""
        return [failure for _, failure in sorted(self._failures.items(), key=lambda item: item[0])]

    def is_loaded(self, owner: PluginOwner) -> bool:
        """Whether a plugin was loaded already, and could be."""
        return owner in self._loaded and (owner, "") not in self._failures


def plain_name(group: str, name: str) -> str:
    """A name as it is compared in its group.

    Devices are in upper case with `_` for `-`; names of other groups that are looked up are in lower case; those of
    layers and operators are kept, as ONNX keeps them.
    """
    if group == TARGETS:
        return name.replace("-", "_").upper()
    return name.lower() if group in UNIQUE_GROUPS else name
