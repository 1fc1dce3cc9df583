"""What became of the quantizations and dequantizations of a network on their way to the engine.

The passes that rewrite Q/DQ write it down as they go. It says to a user where each of their Q/DQ went and what stopped
it, and to a refit which scales had to be equal for the engine to be right.

Scales count as equal while a network is rewritten if their values are, or if they were before. A refit repeats the
rewrites of a build with other scales. Two that were equal by chance may now differ, and two that differed may be equal:
so that neither makes another engine, they are compared as they were when it was built. Where a rewrite relied on equal
scales, the refit sees to it that they still are.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from enum import StrEnum
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.json_names import json_names
from dryfit.network.layers.generators import Constant
from dryfit.network.network import Network


class RewriteAction(StrEnum):
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


@frozen
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

    JSON_NAMES: ClassVar[Mapping[str, str]] = json_names("pass_name:pass action over reason compared_scales")

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

    Args:
        steps: to begin with.
        before: the journal of earlier passes, whose copies of layers keep their origins.

    Example:
        >>> journal = RewriteJournal()
        >>> journal.add(Rewrite("move-quantizes", "q", RewriteAction.MOVED, ("pool",), "max pooling picks values"))
        >>> [step.over for step in journal.of("q")]
        [('pool',)]
    """

    def __init__(self, steps: Iterable[Rewrite] = (), before: RewriteJournal | None = None) -> None:
        self._steps: list[Rewrite] = []
        self._of_layer: dict[str, list[Rewrite]] = {}
        self._origins: dict[str, str] = {} if before is None else dict(before.origins)
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
        """Remember that a new layer does what another one did, which may be a copy itself."""
        self._origins[copy] = self.origin(layer)

    @property
    def origins(self) -> Mapping[str, str]:
        """Name of each copy to the name in the user's network of the layer that it was made from."""
        return MappingProxyType(self._origins)

    def origin(self, layer: str) -> str:
        """The name in the user's network of the layer that this one was made from; its own name where it is no copy."""
        return self._origins.get(layer, layer)

    def then(self, later: RewriteJournal) -> RewriteJournal:
        """The steps of this journal and those of a later one."""
        joined = RewriteJournal((*self, *later), self)
        joined._origins.update(later.origins)
        return joined

    def __iter__(self) -> Iterator[Rewrite]:
        return iter(self._steps)

    def __len__(self) -> int:
        return len(self._steps)


_held: ContextVar[Mapping[str, str]] = ContextVar("scales that are held", default=MappingProxyType({}))


def equal_scales(network: Network) -> list[tuple[str, ...]]:
    """Groups of constant scales that have equal values, by the names of their tensors.

    Args:
        network: the user's. A scale that no other one is equal to is in no group.
    """
    groups: dict[bytes, list[str]] = defaultdict(list)
    for name, constant in _scales(network).items():
        groups[np.ascontiguousarray(constant.weights, np.float64).tobytes()].append(name)
    return [tuple(names) for names in groups.values() if len(names) > 1]


@contextlib.contextmanager
def holding(network: Network, groups: Sequence[Sequence[str]]) -> Iterator[None]:
    """Inside, two constant scales of a network are equal if one of these groups has both, whatever their values are."""
    first = {name: group[0] for group in groups for name in group}
    token = _held.set({name: first.get(name, name) for name in _scales(network)})
    try:
        yield
    finally:
        _held.reset(token)


def held_identity(tensor_name: str) -> str | None:
    """What tells a scale from others where scales are held; None where values do, as in a build."""
    return _held.get().get(tensor_name)


def _scales(network: Network) -> dict[str, Constant]:
    """The constants that are scales of quantize and dequantize layers, by the names of their tensors."""
    found = {}
    for layer in network.layers:
        scale = layer.get_input(1) if layer.kind in ("quantize", "dequantize") else None
        if scale is not None and isinstance(scale.producer, Constant):
            found[scale.name] = scale.producer
    return found
