"""A cut of a network, planned as far as memory follows from it: types, formats, what runs as one, where tensors lie.

Which layers run as one decides what memory a segment needs, and whether that fits its pools decides how the network is
cut. So every cut that is tried is planned as a build plans it, by the same functions: an assessment, a refusal and an
engine tell one number. Only which of several kernels is the fastest is left open, as no byte depends on it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence

import attrs

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.fusion.fuse import fuse_layers, is_compiled
from dryfit.builder.fusion.layer_places import layer_places
from dryfit.builder.kernels.choice import KernelChoice
from dryfit.builder.lowering import lower_network
from dryfit.builder.placement.assign import NOWHERE, Assignment
from dryfit.builder.placement.moves import moved_assignment
from dryfit.builder.placement.partition import Partition, layer_edges
from dryfit.builder.placement.target_variant import TargetVariant
from dryfit.builder.precision.chosen import Precisions
from dryfit.builder.precision.requested import with_assumed_ranges
from dryfit.builder.segments.device_memory import segment_pool_bytes
from dryfit.builder.segments.fitting import parts_that_fit, units_in_order
from dryfit.builder.segments.pools import PoolNeeds, Specs
from dryfit.builder.tensor_formats.insertion import Formats, choose_formats
from dryfit.builder.tensor_formats.sides import caller_device
from dryfit.errors import DryfitError, UnknownNameError
from dryfit.network.layer import Layer
from dryfit.network.network import Network
from dryfit.plugins import registry

ActivationBytes = Sequence[Mapping[str, int]]
"""For each segment pool name to the bytes that its activations take; nothing of pools that hold none."""

ChoosePrecisions = Callable[[Assignment, Partition], Precisions]
"""The computation types of a network that was placed and cut."""


@attrs.frozen(eq=False)
class PlannedCut:
    """What follows from a cut.

    Attributes:
        partition: the cut.
        precisions: computation types.
        formats: formats and copies.
        activations: bytes in the segments' pools.
        error: why it cannot be said what runs as one, so that `activations` are reckoned as if no two layers did.
        joined: names of layers that run as one; a dequantization may be among several. Empty where that is not known.
    """

    partition: Partition
    precisions: Precisions
    formats: Formats
    activations: ActivationBytes
    error: DryfitError | None = None
    joined: Sequence[Sequence[str]] = ()


@attrs.define(eq=False, slots=False)
class CutPlanner:
    """Plans cuts of one network; the last one is kept, as the cut that is tried last is mostly the one that stays.

    Attributes:
        network: as it was placed.
        config: what it is built with.
        assignment: where its layers were put; some cuts move segments away from there.
        variants: device name to target, for all devices in use.
        specs: tensor name to spec at the shapes that the engine is optimised for.
        choose_precisions: chooses types.
        choice: of kernels, which measures nothing.
        are_formats_told: whether formats that do not exist are told of by a broken rule.
    """

    network: Network
    config: BuilderConfig
    assignment: Assignment
    variants: Mapping[str, TargetVariant]
    specs: Specs
    choose_precisions: ChoosePrecisions
    choice: KernelChoice
    are_formats_told: bool = False
    _last: PlannedCut | None = attrs.field(default=None, init=False)

    def plan(self, partition: Partition) -> PlannedCut:
        """What follows from a cut. Layers that have no place are reckoned as if the host ran them.

        Raises:
            NetworkError: layer plugins do not compute with any types that are permitted.
            UnknownNameError: a format that was asked for does not exist, and no broken rule tells so.
        """
        if self._last is None or not _is_same_cut(self._last.partition, partition):
            self._last = self._planned(partition)
        return self._last

    def needs(self, partition: Partition) -> Sequence[Mapping[str, int]]:
        """For each segment of a cut the bytes that it needs of each of its device's pools."""
        planned = self.plan(partition)
        return [
            PoolNeeds(self.variants[run.device], self.specs, planned.precisions).as_planned(run.layers, held)
            for run, held in zip(partition.runs, planned.activations, strict=True)
        ]

    def parts(self, partition: Partition, segment: int, limits: Mapping[str, int]) -> Sequence[Sequence[Layer]]:
        """The layers of a segment in parts that fit, each as long as it can be by the estimate of `PoolNeeds`.

        Args:
            partition: the cut.
            segment: index of its run.
            limits: pool name to bytes, of the pools that have to suffice.
        """
        run, planned = partition.runs[segment], self.plan(partition)
        needs = PoolNeeds(self.variants[run.device], self.specs, planned.precisions)
        units = units_in_order(run.layers, planned.joined, self._edges)
        if len(units) == 1:
            units = [[layer] for layer in run.layers]
        group = {layer.name: number for number, unit in enumerate(units) for layer in unit}

        def fits(layers: Sequence[Layer]) -> bool:
            needed = needs.of(layers, group)
            return all(needed.get(name, 0) <= limit for name, limit in limits.items())

        return parts_that_fit(units, fits)

    @functools.cached_property
    def _edges(self) -> Sequence[tuple[str, str]]:
        """Names of layers: the first gives what the second needs, also by way of a shape computation."""
        names = list(self.assignment.devices)
        return [(names[one], names[other]) for one, other in layer_edges(self.network, self.assignment)]

    def _planned(self, partition: Partition) -> PlannedCut:
        moved = moved_assignment(self.network, self.config, self.assignment, partition)
        devices = {layer.name: run.device for run in partition.runs for layer in run.layers}
        precisions = self.choose_precisions(attrs.evolve(moved, devices={**moved.devices, **devices}), partition)
        placed = _all_placed(partition)
        formats = self._formats(placed, precisions)
        if formats is None:
            return PlannedCut(partition, precisions, Formats({}, [], []), self._unjoined(placed, precisions))
        try:
            activations, joined = self._activations(placed, precisions, formats)
        except DryfitError as problem:  # what a build raises; it is told with the rest that stands against one
            return PlannedCut(partition, precisions, formats, self._unjoined(placed, precisions), problem)
        return PlannedCut(partition, precisions, formats, activations, joined=joined)

    def _formats(self, partition: Partition, precisions: Precisions) -> Formats | None:
        """The formats; None where some that were asked for do not exist, which is told otherwise."""
        try:
            return choose_formats(self.network, partition, precisions, self.variants, self.specs, self.config)
        except UnknownNameError:
            if not self.are_formats_told:
                raise
            return None

    def _unjoined(self, partition: Partition, precisions: Precisions) -> ActivationBytes:
        """Bytes as if no two layers ran as one."""
        return [PoolNeeds(self.variants[run.device], self.specs, precisions).of(run.layers) for run in partition.runs]

    def _activations(
        self, partition: Partition, precisions: Precisions, formats: Formats
    ) -> tuple[ActivationBytes, Sequence[Sequence[str]]]:
        """(bytes in the segments' pools, names of layers that run as one)."""
        if not any(_holds_activations(self.variants[run.device]) for run in partition.runs):
            return [{} for _ in partition.runs], []
        network = with_assumed_ranges(self.network) if self.config.assume_scales else self.network
        roles, caller = self.assignment.roles, caller_device(self.config, (run.device for run in partition.runs))
        lowered = lower_network(network, roles, partition, precisions)
        groups = fuse_layers(lowered.network, layer_places(roles, partition, precisions, caller, lowered), self.choice)
        held = segment_pool_bytes(lowered, groups, formats, self.variants, self.specs, len(partition.runs))
        found = segment_activations(partition, held, self.variants, self.specs, precisions)
        # A compiled segment is one group, and yet its compiler takes any part of it.
        own = [one.group for one in groups if not is_compiled(one.place)]
        return found, [[layer.name for layer in group.layers] for group in own if len(group.layers) > 1]


def segment_activations(
    partition: Partition,
    planned: ActivationBytes,
    variants: Mapping[str, TargetVariant],
    specs: Specs,
    precisions: Precisions,
) -> ActivationBytes:
    """Bytes of activations as they were laid out; an upper bound where the device compiles, whose program knows them.

    Args:
        partition: the segments.
        planned: for each segment pool name to the bytes that were laid out.
        variants: device name to target.
        specs: tensor name to spec.
        precisions: computation types.
    """
    return [
        held
        if variants[run.device].target.compile_segment_at is None
        else PoolNeeds(variants[run.device], specs, precisions).of(run.layers)
        for run, held in zip(partition.runs, planned, strict=True)
    ]


def _holds_activations(variant: TargetVariant) -> bool:
    """Whether a limit on each segment's activations says something on a device."""
    return any(pool.per == "segment" and pool.holds == "activations" for pool in variant.target.memory_pools)


def _all_placed(partition: Partition) -> Partition:
    """The cut with what has no place on the host."""
    host = registry.host().device
    runs = [attrs.evolve(run, device=host) if run.device == NOWHERE else run for run in partition.runs]
    return attrs.evolve(partition, runs=runs)


def _is_same_cut(one: Partition, other: Partition) -> bool:
    """Whether two cuts put the same layers into the same segments."""
    return one.segments == other.segments and [run.device for run in one.runs] == [run.device for run in other.runs]
