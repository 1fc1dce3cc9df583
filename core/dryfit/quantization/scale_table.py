"""The INT8 scales of a network's tensors: one table, in which each says where it comes from.

A scale is set by hand, found by calibration, shared with a tensor whose range must be the same, or follows from the
ranges of others; or it is missing, and then the table says which layers wait for it. None is made up.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import ClassVar

import attrs

from dryfit.attrs_classes import frozen
from dryfit.json_names import json_names
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor
from dryfit.quantization.calibrator import Solution
from dryfit.quantization.int8_steps import DynamicRange
from dryfit.quantization.network_ranges import Clipping, clipping_of
from dryfit.quantization.range_sharing import SharingGroup, coverings, sharing_groups


class RangeOrigin(enum.StrEnum):
    """Where a range comes from; the values are those of the JSON of `dryfit explain --quantization`."""

    BY_HAND = "by hand"
    """The user set it."""
    CALIBRATED = "calibrated"
    """A calibrator found it, now or when it wrote a cache."""
    SHARED = "shared"
    """It was found for another tensor of the same group, and takes the place of the tensor's own."""
    PROPAGATED = "propagated"
    """It follows from other tensors; the tensor has none of its own."""
    MISSING = "missing"
    """There is none."""


@attrs.frozen
class ScaleEntry:
    """One tensor of the table.

    Attributes:
        tensor: its name.
        dynamic_range: the range; None where it is missing.
        origin: where it comes from.
        sources: names of the tensors that it is taken from, for shared and propagated ones.
        rule: the kinds of layers by which it follows, for these.
        reason: why there is none.
        needed_by: names of the layers that read or write the tensor.
    """

    JSON_NAMES: ClassVar[Mapping[str, str]] = json_names(
        "tensor:name scale range origin sources rule words:reason needed_by"
    )

    tensor: str
    dynamic_range: DynamicRange | None
    origin: RangeOrigin
    sources: Sequence[str] = ()
    rule: str = ""
    reason: str = ""
    needed_by: Sequence[str] = ()

    @property
    def scale(self) -> float | None:
        """A binary32 number; null where it is missing."""
        return None if self.dynamic_range is None else self.dynamic_range.scale

    @property
    def range(self) -> tuple[float, float] | None:
        """The smallest and the largest value; null where it is missing."""
        found = self.dynamic_range
        return None if found is None else (found.minimum, found.maximum)

    @property
    def words(self) -> str:
        """Origin, sources and rule in words; why it is missing."""
        if self.origin in (RangeOrigin.SHARED, RangeOrigin.PROPAGATED):
            relation = "with" if self.origin is RangeOrigin.SHARED else "from"
            return f"{self.origin.value} {relation} {', '.join(map(repr, self.sources))} by {self.rule}"
        return f"{self.origin.value}: {self.reason}" if self.reason else self.origin.value


@frozen
class RangeConflict:
    """Two ranges that were stated for tensors which should have one.

    Attributes:
        tensor: name of the tensor whose range was set by hand, and stays.
        scale: its scale.
        other: name of the tensor that decides for the group.
        other_scale: that one's scale.
        rule: what joins them.
    """

    tensor: str
    scale: float
    other: str
    other_scale: float
    rule: str

    def __str__(self) -> str:
        return (
            f"tensor {self.tensor!r} has the scale {self.scale:.7g} by hand, and {self.other!r}, which shares its "
            f"range by {self.rule}, {self.other_scale:.7g}"
        )


@frozen
class ScaleTable:
    """The table.

    Attributes:
        ranged: tensor name to entry, in the order of the network, for the tensors that have a range.
        conflicts: ranges that contradict each other.
        unknown: names of ranges that no tensor of the network has.
        clipped: tensor name to how its calibrated range clips what was seen, where that is severe.
    """

    ranged: Mapping[str, ScaleEntry]
    _all_entries: Callable[[], Mapping[str, ScaleEntry]] = attrs.field(eq=False, repr=False)
    conflicts: Sequence[RangeConflict] = ()
    unknown: Sequence[str] = ()
    clipped: Mapping[str, Clipping] = attrs.field(factory=dict)

    @functools.cached_property
    def entries(self) -> Mapping[str, ScaleEntry]:
        """Tensor name to entry, in the order of the network, for every floating-point tensor but constants."""
        return self._all_entries()

    @property
    def missing(self) -> list[ScaleEntry]:
        """The tensors without a scale."""
        return [entry for entry in self.entries.values() if entry.origin is RangeOrigin.MISSING]

    def apply_to(self, network: Network) -> None:
        """Give the tensors of a network, which may be a copy with fewer of them, their ranges."""
        for name, entry in self.ranged.items():
            tensor = network.find_tensor(name)
            if tensor is not None and entry.dynamic_range is not None:
                tensor.dynamic_range = (entry.dynamic_range.minimum, entry.dynamic_range.maximum)


def scale_table(
    network: Network, solutions: Mapping[str, Solution] | None = None, *, shares_ranges: bool = True
) -> ScaleTable:
    """The scales of a network from the ranges that its tensors have, and from what a calibrator found.

    A range that was set by hand wins. Where ranges are shared, a calibrated tensor takes the widest range of those that
    decide for its group. A tensor without a range gets one that follows exactly from others; a network output never
    does, so that what its author left in real numbers stays there.

    Args:
        network: with the ranges that were set by hand.
        solutions: what calibration found, by tensor.
        shares_ranges: whether groups share one range; otherwise only what is missing is taken from others.
    """
    found = solutions or {}
    tensors = {tensor.name: tensor for tensor in _quantizable(network)}
    filler = _Filler(tensors, found)
    if filler.knows_any:
        filler.propagate(network)
        for group in sharing_groups(network):
            filler.share(group, replaces_own=shares_ranges)
    ranged = filler.ranged
    unknown = [name for name in found if network.find_tensor(name) is None]
    clippings = {name: clipping_of(found[name].details) for name in ranged if name in found}
    clipped = {
        name: one
        for name, one in clippings.items()
        if one is not None and ranged[name].origin in (RangeOrigin.CALIBRATED, RangeOrigin.SHARED)
    }
    return ScaleTable(ranged, filler.entries, filler.conflicts, unknown, clipped)


def _quantizable(network: Network) -> Iterator[Tensor]:
    """The floating-point tensors that are no constants, in the order of the network."""
    for tensor in network.tensors:
        if tensor.dtype.is_quantized or (tensor.dtype.is_floating_point and not tensor.is_constant):
            yield tensor


class _Filler:
    """Finds the entries of one network."""

    def __init__(self, tensors: Mapping[str, Tensor], solutions: Mapping[str, Solution]) -> None:
        self._tensors = tensors
        self._solutions = solutions
        self.conflicts: list[RangeConflict] = []
        self._entries: dict[str, ScaleEntry] = {}
        for name, tensor in tensors.items():
            solution = solutions.get(name)
            if tensor.dynamic_range is not None:
                self._entries[name] = ScaleEntry(name, DynamicRange(*tensor.dynamic_range), RangeOrigin.BY_HAND)
            elif solution is not None and solution.dynamic_range is not None:
                self._entries[name] = ScaleEntry(name, solution.dynamic_range, RangeOrigin.CALIBRATED)

    @property
    def knows_any(self) -> bool:
        """Whether a range is known that others may follow from."""
        return bool(self._entries)

    def propagate(self, network: Network) -> None:
        """Fill in what follows exactly from ranges that are known, in the order of the network."""
        for one in coverings(network):
            known = [self._entries[name] for name in one.covered if name in self._entries]
            is_open = one.covering not in self._entries and self._may_follow(one.covering)
            if one.is_exact and is_open and known and len(known) == len(one.covered):
                ranges = [entry.dynamic_range for entry in known if entry.dynamic_range is not None]
                union = DynamicRange(min(each.minimum for each in ranges), max(each.maximum for each in ranges))
                self._take(one.covering, union, RangeOrigin.PROPAGATED, one.covered, one.rule)

    def share(self, group: SharingGroup, *, replaces_own: bool) -> None:
        """Hand the widest range of the tensors that decide for a group on to the others."""
        entries = {name: self._entries[name].dynamic_range for name in group.deciding if name in self._entries}
        ranges = {name: one for name, one in entries.items() if one is not None}
        if not ranges:
            return
        decisive, shared = max(ranges.items(), key=lambda one: one[1].threshold)
        for name in group.tensors:
            own = self._entries.get(name)
            if name == decisive or (own is None and not self._may_follow(name)):
                continue
            if own is None or own.dynamic_range is None:
                self._take(name, shared, RangeOrigin.PROPAGATED, [decisive], group.rule)
            elif own.dynamic_range.scale != shared.scale:
                if own.origin is RangeOrigin.BY_HAND:
                    self.conflicts.append(
                        RangeConflict(name, own.dynamic_range.scale, decisive, shared.scale, group.rule)
                    )
                elif replaces_own:
                    self._take(name, shared, RangeOrigin.SHARED, [decisive], group.rule)

    @property
    def ranged(self) -> dict[str, ScaleEntry]:
        """The entries of the tensors that have a range, in the order of the network."""
        return {name: self._entries[name] for name in self._tensors if name in self._entries}

    def entries(self) -> dict[str, ScaleEntry]:
        """The entries of all tensors, with the layers that wait for each."""
        return {name: self._entry(tensor) for name, tensor in self._tensors.items()}

    def _entry(self, tensor: Tensor) -> ScaleEntry:
        producer = tensor.producer
        names = [] if producer is None else [producer.name]
        names += dict.fromkeys([layer.name for layer, _ in tensor.consumers])
        known = self._entries.get(tensor.name)
        if known is not None:
            return attrs.evolve(known, needed_by=names)
        solution = self._solutions.get(tensor.name)
        reason = (solution.reason if solution is not None else "") or "no range was set or calibrated"
        return ScaleEntry(tensor.name, None, RangeOrigin.MISSING, reason=reason, needed_by=names)

    def _may_follow(self, name: str) -> bool:
        """Whether a tensor may get a range that nobody stated for it."""
        return name in self._tensors and not self._tensors[name].is_network_output

    def _take(
        self, name: str, dynamic_range: DynamicRange, origin: RangeOrigin, sources: Sequence[str], rule: str
    ) -> None:
        self._entries[name] = ScaleEntry(name, dynamic_range, origin, sources, rule)
