"""What became of the quantizations and dequantizations of a network on their way to the engine.

The passes that rewrite Q/DQ write it down as they go. It says to a user where each of his Q/DQ went and what stopped
it, and to a refit which scales had to be equal for the engine to be right.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum

import attrs


class RewriteAction(Enum):
    """What a pass did to a quantize or dequantize layer; the values are the words of reports."""

    FOLDED = "folded"
    """It was applied to constants while building, and is gone."""
    MOVED = "moved"
    """It stands elsewhere: a quantization earlier, a dequantization later."""
    MERGED = "merged"
    """Another layer that does the same stands for it, and it is gone."""
    CANCELLED = "cancelled"
    """It and the layer of the other direction beside it change nothing, and the quantization is gone."""
    STOPPED = "stopped"
    """It stays where it is, though it could have gone on over the layer next to it."""


@attrs.frozen
class Rewrite:
    """One step of one quantize or dequantize layer.

    Attributes:
        pass_name: the pass that made it, such as `move-quantizes`.
        layer: the quantize or dequantize layer, under its name in the user's network (`RewriteJournal.origin`).
        action: what was done.
        over: the layers that it moved over, was merged into or met, in order, under the names of the user's network.
        reason: why, in one sentence without its full stop.
        compared_scales: the constants whose values had to be equal for the step to be right, by the names of their
            tensors; () where no values were compared. New values that break the equality break the engine.

    Example:
        >>> step = Rewrite("move-quantizes", "q", RewriteAction.MOVED, ("pool",), "max pooling picks values")
        >>> str(step)
        "'q' moved over 'pool': max pooling picks values"
    """

    pass_name: str
    layer: str
    action: RewriteAction
    over: tuple[str, ...]
    reason: str
    compared_scales: tuple[str, ...] = ()

    def __str__(self) -> str:
        names = ", ".join(repr(name) for name in self.over)
        met = f" {_WORDS[self.action]} {names}" if names else ""
        return f"{self.layer!r} {self.action.value}{met}: {self.reason}"


_WORDS = {
    RewriteAction.FOLDED: "into",
    RewriteAction.MOVED: "over",
    RewriteAction.MERGED: "into",
    RewriteAction.CANCELLED: "with",
    RewriteAction.STOPPED: "at",
}
"""What stands between an action and the names of the layers that were met."""


class RewriteJournal:
    """The steps of all passes, in the order in which they were made.

    A quantization that has moved over a concatenation stands before each of its inputs, and a dequantization before
    each of its readers: each of these is told of under the one name that the user gave.

    Example:
        >>> journal = RewriteJournal()
        >>> journal.add(Rewrite("move-quantizes", "q", RewriteAction.MOVED, ("pool",), "max pooling picks values"))
        >>> [step.over for step in journal.of("q")]
        [('pool',)]
    """

    def __init__(self, steps: Sequence[Rewrite] = ()) -> None:
        self._steps: list[Rewrite] = []
        self._of_layer: dict[str, list[Rewrite]] = {}
        self._origins: dict[str, str] = {}
        for step in steps:
            self.add(step)

    def add(self, step: Rewrite) -> None:
        """Write a step down."""
        self._steps.append(step)
        self._of_layer.setdefault(step.layer, []).append(step)

    def of(self, layer: str) -> Sequence[Rewrite]:
        """The steps of one quantize or dequantize layer, by its name in the user's network; () where it made none."""
        return tuple(self._of_layer.get(layer, ()))

    def note_copy(self, copy: str, layer: str) -> None:
        """Remember that a new layer does what another one did, which may be a copy itself.

        Args:
            copy: name of the new layer.
            layer: name of the one that it was made from.
        """
        self._origins[copy] = self.origin(layer)

    def origin(self, layer: str) -> str:
        """The name in the user's network of the layer that this one was made from; its own name where it is no copy."""
        return self._origins.get(layer, layer)

    def __iter__(self) -> Iterator[Rewrite]:
        return iter(self._steps)

    def __len__(self) -> int:
        return len(self._steps)
