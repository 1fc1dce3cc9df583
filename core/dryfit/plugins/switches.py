"""Which installed plugins the user has switched off.

Two environment variables hold names of entry points or of distributions, separated by commas:

* `DRYFIT_DISABLE_PLUGINS` switches these off; `*` stands for everything that does not come with dryfit.
* `DRYFIT_LOAD_PLUGINS`, where it is set, leaves only these of what does not come with dryfit; empty, none.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

import attrs

from dryfit.plugins.discovery import PluginOwner, normalised

DISABLE_VARIABLE = "DRYFIT_DISABLE_PLUGINS"
LOAD_VARIABLE = "DRYFIT_LOAD_PLUGINS"

CHOOSE_ONE = f"Uninstall one, or name its package in the environment variable {DISABLE_VARIABLE}"
"""What to do where two packages bring one name."""


def switching_off(owner: PluginOwner) -> str:
    """The setting that switches a plugin off, and none of dryfit's own that has the same name."""
    by_package = owner.distribution and owner.is_foreign
    return f"{DISABLE_VARIABLE}={owner.distribution if by_package else owner.name}"


@attrs.frozen
class PluginSwitches:
    """What the two variables say.

    Attributes:
        disabled: words of `DRYFIT_DISABLE_PLUGINS`.
        selected: words of `DRYFIT_LOAD_PLUGINS`; None where it is not set.
    """

    disabled: frozenset[str] = attrs.field(default=frozenset())
    selected: frozenset[str] | None = None

    @classmethod
    def from_texts(cls, disabled: str | None = None, selected: str | None = None) -> PluginSwitches:
        """Switches from the variables' texts; None for a text takes the environment's."""
        disabled = os.environ.get(DISABLE_VARIABLE, "") if disabled is None else disabled
        selected = os.environ.get(LOAD_VARIABLE) if selected is None else selected
        return cls(_words(disabled), None if selected is None else _words(selected))

    def reason(self, owner: PluginOwner) -> str:
        """By what a plugin is switched off; "" where it is on."""
        names = {normalised(owner.name), normalised(owner.distribution)}
        off = sorted(names & self.disabled)
        if off:
            return f"{DISABLE_VARIABLE}={off[0]}"
        if not owner.is_foreign:
            return ""
        if "*" in self.disabled:
            return f"--no-plugins or {DISABLE_VARIABLE}=*"
        if self.selected is not None and not names & self.selected:
            return f"{LOAD_VARIABLE}={','.join(sorted(self.selected))}"
        return ""

    def idle_words(self, owners: Iterable[PluginOwner]) -> dict[str, list[str]]:
        """For each variable its words that name none of these plugins and packages: most likely misspelled."""
        known = {normalised(name) for owner in owners for name in (owner.name, owner.distribution)} | {"*"}
        words = {DISABLE_VARIABLE: self.disabled, LOAD_VARIABLE: self.selected or frozenset()}
        return {variable: sorted(said - known) for variable, said in words.items() if said - known}


def _words(text: str) -> frozenset[str]:
    return frozenset(normalised(word.strip()) for word in text.split(",")) - {""}
