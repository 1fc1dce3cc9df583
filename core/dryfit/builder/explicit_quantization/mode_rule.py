"""The record of a rule on a network and its config together."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.network.network import Network


@attrs.frozen
class ModeRule:
    """One rule.

    Attributes:
        id: stable.
        text: the rule in one sentence.
        find: what breaks it in a network and its config, in words; nothing where it holds.
        source: document and section.
        remedy: what the user can do.
    """

    id: str
    text: str
    find: Callable[[Network, BuilderConfig], Sequence[str]]
    source: str
    remedy: str

    @property
    def subject(self) -> str:
        """What it speaks of: the id without the mode."""
        return self.id.partition(".")[2]
