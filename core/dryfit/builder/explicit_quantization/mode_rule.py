"""The record of a rule on a network and its config together."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.network.network import Network
from dryfit.target.stated_rule import StatedRule


@attrs.frozen
class ModeRule(StatedRule):
    """One rule.

    Attributes:
        find: what breaks it in a network and its config, in words; nothing where it holds.
    """

    find: Callable[[Network, BuilderConfig], Sequence[str]] = attrs.field(kw_only=True)

    @property
    def subject(self) -> str:
        """What it speaks of: the id without the mode."""
        return self.id.partition(".")[2]
