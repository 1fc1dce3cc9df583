"""Optimal devices for a chain of layers, by dynamic programming: exact, with costs of whole segments.

Along the chain, each placement of the layers so far is a label: the consumed amounts that the objective counts, and the
number of open segments on devices with a segment limit. A label that is worse than another one in every respect is
dropped, because any continuation also works for the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs

from dryfit.attrs_classes import frozen

LABELS = 1024
"""Labels that are kept of one layer and device. Our choice: latency and energy need no more than there are segments,
and throughput, which has one amount a device, a few hundred. Where there are more, the answer is called no proof."""

Amounts = tuple[float, ...]
"""What an objective counts: one number, or for throughput one a device. The largest of them is the value."""


@frozen(eq=False)
class Chain:
    """A chain of layers.

    Attributes:
        options: allowed devices of each layer.
        segment: function of (device, first layer, last layer) that returns their amounts as one segment; None if they
            cannot be one.
        step: function of (layer, device before, device) that returns the amounts of the tensors that the layer reads;
            None before the first layer and after the last.
        joins: function that returns whether a layer can share a segment with the layer before it on a device.
        limits: largest number of segments by device, if limited.
        counted: device whose segments should be few: of two equal placements, the one with fewer wins.
        amounts: number of values in `Amounts`.
    """

    options: Sequence[Sequence[str]]
    segment: Callable[[str, int, int], Amounts | None]
    step: Callable[[int, str | None, str | None], Amounts]
    joins: Callable[[int, str], bool]
    limits: Mapping[str, int]
    counted: str
    amounts: int = 1


@frozen
class ChainPlacement:
    """The best placement of a chain.

    Attributes:
        devices: device of each layer.
        amounts: amounts of the placement.
        is_exact: whether no label was dropped to save memory.
    """

    devices: tuple[str, ...]
    amounts: Amounts
    is_exact: bool


@frozen
class _Label:
    amounts: Amounts
    counts: tuple[int, ...]
    device: str | None
    first: int
    before: _Label | None

    @property
    def rank(self) -> tuple[float, ...]:
        return max(self.amounts), *self.counts, *self.amounts

    def beats(self, other: _Label) -> bool:
        """Return whether the label is at least as good in every respect."""
        mine, others = (*self.amounts, *self.counts), (*other.amounts, *other.counts)
        return all(one <= two for one, two in zip(mine, others, strict=True))


def best_on_chain(chain: Chain, bound: float = float("inf")) -> ChainPlacement | None:
    """Return the placement of least value; on a tie, the one with the fewest segments on the counted device.

    Args:
        chain: chain to place.
        bound: value that is already reached: labels above it are dropped.

    Returns:
        The placement; None if no placement is within the limits and the bound.
    """
    return _Walk(chain, bound).best()


class _Walk:
    """Extends labels along the chain."""

    def __init__(self, chain: Chain, bound: float) -> None:
        self._chain = chain
        self._bound = bound
        self._counted = list(dict.fromkeys([chain.counted, *chain.limits]))
        start = _Label((0.0,) * chain.amounts, (0,) * len(self._counted), None, 0, None)
        self._labels: list[dict[str | None, list[_Label]]] = [{None: [start]}]
        self._is_exact = True

    def best(self) -> ChainPlacement | None:
        count = len(self._chain.options)
        for end in range(1, count + 1):
            self._labels.append({device: self._ending(device, end) for device in self._chain.options[end - 1]})
        ended = [
            attrs.evolve(label, amounts=_sum(label.amounts, self._chain.step(count, device, None)))
            for device, labels in self._labels[count].items()
            for label in labels
        ]
        allowed = [label for label in ended if max(label.amounts) <= self._bound]
        if not allowed:
            return None
        best = min(allowed, key=lambda label: label.rank)
        return ChainPlacement(self._devices(best, count), best.amounts, self._is_exact)

    def _ending(self, device: str, end: int) -> list[_Label]:
        """Return the labels of the layers before `end` whose last segment is on the device."""
        chain, found = self._chain, list[_Label]()
        inside: Amounts = (0.0,) * chain.amounts
        for first in range(end - 1, -1, -1):
            if device not in chain.options[first]:
                break
            can_join = first > 0 and chain.joins(first, device)
            for before, labels in self._labels[first].items():
                if before != device or not can_join:
                    entered = self._longer(labels, device, first, _sum(inside, chain.step(first, before, device)))
                    # A segment is asked about only where something can come of it: estimates take most of the time.
                    taken = chain.segment(device, first, end - 1) if entered else None
                    found += [] if taken is None else self._within(entered, taken)
            if not can_join:
                break
            inside = _sum(inside, chain.step(first, device, device))
        return self._undominated(found)

    def _longer(self, labels: Sequence[_Label], device: str, first: int, spent: Amounts) -> list[_Label]:
        """Return the labels extended by a segment that starts here, within the limits and the bound."""
        opened = [int(one == device) for one in self._counted]
        limits = [self._chain.limits.get(one) for one in self._counted]
        longer = []
        for label in labels:
            counts = tuple(count + more for count, more in zip(label.counts, opened, strict=True))
            if all(limit is None or count <= limit for count, limit in zip(counts, limits, strict=True)):
                longer.append(_Label(label.amounts, counts, device, first, label))
        return self._within(longer, spent)

    def _within(self, labels: Sequence[_Label], spent: Amounts) -> list[_Label]:
        """Return the labels after adding amounts, without those above the bound."""
        spending = (attrs.evolve(label, amounts=_sum(label.amounts, spent)) for label in labels)
        return [label for label in spending if max(label.amounts) <= self._bound]

    def _undominated(self, labels: list[_Label]) -> list[_Label]:
        kept: list[_Label] = []
        for label in sorted(labels, key=lambda one: one.rank):
            if not any(other.beats(label) for other in kept):
                if len(kept) == LABELS:
                    self._is_exact = False
                    break
                kept.append(label)
        return kept

    def _devices(self, label: _Label, count: int) -> tuple[str, ...]:
        devices: list[str] = []
        end, at = count, label
        while at.before is not None and at.device is not None:
            devices[:0] = [at.device] * (end - at.first)
            end, at = at.first, at.before
        return tuple(devices)


def _sum(one: Amounts, other: Amounts) -> Amounts:
    return tuple(first + second for first, second in zip(one, other, strict=True))
