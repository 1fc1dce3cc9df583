"""Plugins vote on the device of a layer that has none of its own, where fallback is allowed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dryfit.network.layer import Layer
from dryfit.plugins import facade
from dryfit.target.verdict import Verdict

if TYPE_CHECKING:
    from dryfit.plugins.contributions import PlacementVote
    from dryfit.plugins.facade import Owned

LISTED_LAYERS = 4
"""How many layers a warning names. Our choice: the rest is like them."""


class PlacementVotes:
    """Counts the votes on one layer after another, and remembers those without effect.

    Attributes:
        is_held: whether any plugin votes: where none does, no verdict need be made for it.
    """

    def __init__(self) -> None:
        self.is_held = facade.is_implemented("vote_on_placement")
        self._idle: dict[tuple[str, str, str], list[str]] = {}

    def elect(self, layer: Layer, verdicts: Mapping[str, Verdict]) -> tuple[str, str] | None:
        """The device with the largest sum of votes, and the votes in words; None where no vote decides anything.

        Args:
            layer: one without a device of its own.
            verdicts: of the default device and the fallback device, in this order. A layer that the default device
                cannot run is not voted on: it has one place to go.
        """
        cast = [vote for vote in facade.placement_votes(layer, verdicts) if self._counts(layer, vote, verdicts)]
        default, fallback = verdicts
        if not cast or not verdicts[default]:
            return None
        sums = {device: sum(one.value.weight for one in cast if _device(one.value) == device) for device in verdicts}
        wins = sums[fallback] > sums[default]
        elected, other = (fallback, default) if wins else (default, fallback)
        outcome = f"elected with {sums[elected]:g} to {sums[other]:g} votes" if sums[elected] > sums[other] else "a tie"
        return elected, f"{'the fallback' if wins else 'the default'} device, {outcome}: {'; '.join(map(_told, cast))}"

    @property
    def warnings(self) -> list[str]:
        """One sentence for all votes of a plugin that had no effect for one reason."""
        return [
            f"{plugin} voted for {device} without effect, since {why}: {_listed(layers)}"
            for (plugin, device, why), layers in self._idle.items()
        ]

    def _counts(self, layer: Layer, vote: Owned[PlacementVote], verdicts: Mapping[str, Verdict]) -> bool:
        why = _without_effect(vote.value, verdicts)
        if why:
            self._idle.setdefault((str(vote.plugin), _device(vote.value), why), []).append(layer.name)
        return not why


def _without_effect(vote: PlacementVote, verdicts: Mapping[str, Verdict]) -> str:
    """Why a vote counts for nothing; "" where it counts."""
    device = _device(vote)
    if device not in verdicts:
        return f"it is neither the default nor the fallback device ({', '.join(verdicts)})"
    if not isinstance(vote.weight, int | float) or not math.isfinite(vote.weight):
        return f"the weight {vote.weight!r} is no finite number"
    return "" if verdicts[device] else "it cannot run these layers"


def _device(vote: PlacementVote) -> str:
    return str(vote.device).upper()


def _told(vote: Owned[PlacementVote]) -> str:
    reason = " ".join(str(vote.value.reason).split())
    return f"{vote.plugin} for {_device(vote.value)} with weight {vote.value.weight:g}, {reason}"


def _listed(layers: Sequence[str]) -> str:
    shown = ", ".join(map(repr, layers[:LISTED_LAYERS]))
    return shown if len(layers) <= LISTED_LAYERS else f"{shown} and {len(layers) - LISTED_LAYERS} more"
