"""A rule that is stated in words and looked at by the code of a stage: what is raised under a stable id is a record."""

from __future__ import annotations

import attrs


@attrs.frozen
class StatedRule:
    """One rule.

    Attributes:
        id: stable, such as `standalone.one_loadable`.
        text: the rule in one sentence without its full stop.
        source: document and section.
        remedy: what the user can do.
        number: short names by which documents cite it, such as `SA-02`, with commas between them; "" for none.
    """

    id: str
    text: str
    source: str
    remedy: str
    number: str = ""

    def told(self, found: str, source: str = "") -> str:
        """What was found, with the rule's id and where it comes from.

        Args:
            found: in one sentence without its full stop.
            source: of what it was found for, where that says more than the rule's own.
        """
        return f"{found} [{self.id}; source: {source or self.source}]"
