"""The record of every rule that dryfit cites: limits of devices, modes, copies, memory pools, the lint, methods.

What the rules are about differs, and with it what looks for breaches. What a user reads of them is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from dryfit.attrs_classes import frozen

FIDELITIES = ("documented", "inferred", "confirmed")
"""How sure a declaration is: a document says it; it follows from one, or from reports; somebody measured it."""


def _finds_nothing(*_: Any) -> tuple[()]:
    """The finder of a rule that the stage of a build which comes across it applies itself."""
    return ()


@frozen(eq=False)
class Rule:
    """One rule.

    Attributes:
        id: stable, such as `standalone.one_loadable`.
        text: the rule in one sentence without its full stop.
        source: document and section, or who measured it on what.
        remedy: what a user can do when it is broken.
        number: short names by which documents cite it, such as `SA-02`, with commas between them; "" for none.
        finder: finds what breaks the rule. What it takes and returns depends on what the rule is about; a rule that a
            stage of the build applies itself has none.
        severity: what it means when the rule is broken: `error`, and `violation` for limits: refused; `warning`: it
            costs accuracy or time; `note`: worth knowing.
        fidelity: one of `FIDELITIES`.

    Example:
        >>> rule = Rule("acme.tile", "A tile has at most 64 rows", "ACME manual, 3.2", "Split the image", "AC-01")
        >>> rule.told("it has 80 rows")
        'it has 80 rows [acme.tile; source: ACME manual, 3.2]'
    """

    id: str
    text: str
    source: str
    remedy: str = ""
    number: str = ""
    finder: Callable[..., Any] = attrs.field(default=_finds_nothing, repr=False)
    severity: str = "error"
    fidelity: str = "documented"

    def told(self, found: str, source: str = "") -> str:
        """What was found, with the rule's id and where it comes from.

        Args:
            found: in one sentence without its full stop.
            source: of what it was found for, where that says more than the rule's own.
        """
        return f"{found} [{self.id}; source: {source or self.source}]"
