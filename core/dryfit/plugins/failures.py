"""What could not be used of a plugin, and how the user is told."""

from __future__ import annotations

from dryfit.attrs_classes import frozen
from dryfit.errors import PluginError
from dryfit.plugins.discovery import PluginOwner, switching_off

DOCTOR = "dryfit plugins doctor"


@frozen
class PluginFailure:
    """A plugin, or one hook or function of it, that could not be used.

    Attributes:
        group, name: the entry point.
        distribution, version: the package that provides it; "" where the entry point does not tell.
        message: the error in one line.
        traceback: the whole of it; "" where no exception was raised.
        hook: the hook whose call failed; "" where the plugin itself did.
        remedy: what can be done.
        part: the part of a target that failed when it was asked, such as `estimate_cost`; "" where nothing of the kind
            did.
        place: `file:line` of the plugin's own code that raised or declares what is wrong; "" where that is not known.
    """

    group: str
    name: str
    distribution: str
    version: str
    message: str
    traceback: str = ""
    hook: str = ""
    remedy: str = ""
    part: str = ""
    place: str = ""

    @classmethod
    def of(
        cls,
        owner: PluginOwner,
        message: str,
        traceback: str = "",
        hook: str = "",
        remedy: str = "",
        part: str = "",
        place: str = "",
    ) -> PluginFailure:
        """What failed of an owner's plugin. Of a message with several lines the first is kept."""
        line = (message.strip().splitlines() or [""])[0]
        remedy = remedy or (
            f"Upgrade or reinstall {owner.distribution or 'its package'}, or report it to its maintainers; "
            f"{switching_off(owner)} switches it off meanwhile"
        )
        return cls(
            owner.group, owner.name, owner.distribution, owner.version, line, traceback, hook, remedy, part, place
        )

    @property
    def owner(self) -> PluginOwner:
        """The plugin."""
        return PluginOwner(self.distribution, self.version, self.group, self.name)

    def __str__(self) -> str:
        """One line: the plugin, what failed, why."""
        where = f"hook {self.hook}: " if self.hook else f"{self.part}: " if self.part else ""
        return f"{self.owner} in {self.group}: {where}{self.message}"

    def error(self, what: str) -> PluginError:
        """The exception for a user who asked for this plugin.

        Args:
            what: what could not be done, as a sentence without its full stop.
        """
        return PluginError(
            what,
            where=self.owner.package or f"entry point {self.name!r} in {self.group}",
            found=self.message,
            remedy=f"`{DOCTOR}` shows the whole traceback and what to do",
        )
