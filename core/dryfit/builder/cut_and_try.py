"""Cut and try: a network is cut into segments, types are assigned, layers joined and memory laid out, until it fits.

Which layers run as one decides what memory a segment needs, and whether that fits its pools decides how the network is
cut. So every cut that is tried is planned as a build plans it, by the same functions, and the build goes on from the
cut that fits: an assessment, a refusal and an engine report one number. Only which of several kernels is the fastest
is left open, as no byte depends on it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence

import attrs

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.config.optimization_profile import optimum_shapes
from dryfit.builder.formats.choice import NO_FORMATS, Formats, choose_formats
from dryfit.builder.formats.sides import Sides, caller_device
from dryfit.builder.fusion.fuse import fuse_layers, is_compiled
from dryfit.builder.fusion.groups import JoinedGroup, LayerPlace, layer_places
from dryfit.builder.fusion.lowering import LoweredNetwork, lower_network
from dryfit.builder.kernels.choice import KernelChoice, kernel_choice
from dryfit.builder.placement.assign import NOWHERE, Assignment
from dryfit.builder.placement.partition import (
    Partition,
    layer_edges,
    moved_assignment,
    partition_network,
    strict_limits,
    without_stuck,
)
from dryfit.builder.placement.target_variant import Specs, TargetVariant, variants_of
from dryfit.builder.precision.chosen import Precisions
from dryfit.builder.precision.int8_choice import RealTypes
from dryfit.builder.precision.layer_precisions import choose_precisions
from dryfit.builder.precision.scales import NetworkScales
from dryfit.builder.segments.device_memory import MemoryContents, memory_contents, segment_pool_bytes
from dryfit.builder.segments.pools import PoolNeeds, parts_that_fit, units_in_order
from dryfit.errors import DryfitError, UnknownNameError
from dryfit.network.layer import Layer
from dryfit.network.network import Network
from dryfit.network.printing import network_text
from dryfit.plugins import registry
from dryfit.reference.inference import infer_specs

ActivationBytes = Sequence[Mapping[str, int]]
"""For each segment pool name to the bytes that its activations take; nothing of pools that hold none."""


@attrs.define(eq=False, slots=False)
class PlannedCut:
    """A cut, and what follows from it.

    The engine's network, its groups and what they store are found when a limit of memory or the build asks for them,
    and then once.

    Attributes:
        partition: the cut.
        precisions: computation types.
        formats: formats and copies.
        activations: bytes in the segments' pools.
        error: why fusions are not known, so that `activations` are calculated as if no two layers were fused.
    """

    partition: Partition
    precisions: Precisions
    formats: Formats
    _planner: CutPlanner = attrs.field(repr=False)
    activations: ActivationBytes = ()
    error: DryfitError | None = None

    @property
    def choice(self) -> KernelChoice:
        """What gave the groups their candidates."""
        return self._planner.choice

    @property
    def variants(self) -> Mapping[str, TargetVariant]:
        """Device name to target."""
        return self._planner.variants

    @property
    def specs(self) -> Specs:
        """Tensor name to spec at the shapes that the engine is optimised for."""
        return self._planner.specs

    @property
    def caller(self) -> str:
        """The device on which the caller keeps inputs and outputs."""
        return caller_device(self._planner.config, (run.device for run in self.partition.runs if run.device != NOWHERE))

    def needs_of(self, variant: TargetVariant, layers: Sequence[Layer], held: Mapping[str, int]) -> dict[str, int]:
        """Bytes that a segment needs of each pool of its device.

        Args:
            variant: the device, with the limits that count.
            layers: of the segment.
            held: pool name to the bytes that its activations take.
        """
        return PoolNeeds(variant, self._planner.specs, self.precisions).as_planned(layers, held)

    @functools.cached_property
    def lowered(self) -> LoweredNetwork:
        """The engine's network: each tensor in the type in which it is computed.

        Raises:
            NetworkError: a layer does not take the types that were chosen.
        """
        return lower_network(
            self._planner.network, self._planner.assignment.roles, _all_placed(self.partition), self.precisions
        )

    @functools.cached_property
    def places(self) -> Mapping[str, LayerPlace]:
        """Where each layer of the engine's network runs."""
        placed = _all_placed(self.partition)
        caller = caller_device(self._planner.config, (run.device for run in placed.runs))
        return layer_places(self._planner.assignment.roles, placed, self.precisions, caller, self.lowered)

    @functools.cached_property
    def groups(self) -> Sequence[JoinedGroup]:
        """What of the engine's network runs as one, in execution order; by which kernel is still open.

        Raises:
            BuildError: no kernel runs a layer.
        """
        return fuse_layers(self.lowered.network, self.places, self._planner.choice)

    @functools.cached_property
    def contents(self) -> MemoryContents:
        """What has to lie in the devices' memory."""
        return memory_contents(self.lowered, self.groups, self.formats, self._planner.variants, self._planner.specs)

    def join(self) -> None:
        """Find out now what runs as one; `error` says why where it cannot be said."""
        try:
            _ = self.groups
        except DryfitError as problem:
            self.error = problem

    @property
    def units(self) -> Sequence[Sequence[str]]:
        """Names of layers that run as one; a dequantization may be among several. Empty where that is not known."""
        if "groups" not in vars(self):
            return []
        # A compiled segment is one group, and yet its compiler takes any part of it.
        own = [one.group.layers for one in self.groups if not is_compiled(one.place)]
        return [[layer.name for layer in layers] for layers in own if len(layers) > 1]

    def lines(self) -> Iterator[str]:
        """What a dump says of it."""
        for index, run in enumerate(self.partition.runs):
            yield f"segment {index} on {run.device}" + (f", cut because {run.cut_cause}" if run.cut_cause else "")
            for layer in run.layers:
                yield f"  {layer.name} ({layer.kind}): {self.precisions.layers[layer.name].name}"
        for one in self.formats.reformats:
            yield f"{one.tensor}: {one.source} -> {one.destination}, {one.cause}"
        if "groups" in vars(self):
            yield from (f"as one: {one.group.name}" for one in self.groups)
            yield network_text(self.lowered.network)


@attrs.define(eq=False, slots=False)
class CutPlanner:
    """Plans cuts of one network until one fits. The last one is kept: it is mostly the one that stays.

    Attributes:
        original: the user's network, whose layers the config names.
        network: as it was placed.
        config: what it is built with.
        assignment: where its layers were put; some cuts move segments away from there.
        scales: of its tensors, with the types on the caller's side.
        are_formats_told: whether formats that do not exist are reported as a violated rule.
        bounds_memory: whether activations of segments that certainly fit are given as an upper bound and not laid out.
    """

    original: Network
    network: Network
    config: BuilderConfig
    assignment: Assignment
    scales: NetworkScales
    are_formats_told: bool = False
    bounds_memory: bool = False
    _last: PlannedCut | None = attrs.field(default=None, init=False)

    @functools.cached_property
    def choice(self) -> KernelChoice:
        """Which kernels may run the layers."""
        return kernel_choice(self.config, self.original)

    @functools.cached_property
    def variants(self) -> Mapping[str, TargetVariant]:
        """Device name to target: every device that layers run on or may move to, and the host's for `NOWHERE`."""
        found = variants_of(self.config, (one for one in self.assignment.devices.values() if one != NOWHERE))
        return {**found, NOWHERE: found[registry.host().device]}

    @functools.cached_property
    def real_types(self) -> RealTypes:
        """The types of layers that are not computed in INT8, which are the same in every cut."""
        return RealTypes(self.config)

    @functools.cached_property
    def specs(self) -> Specs:
        """Tensor name to spec at the shapes that the engine is optimised for."""
        return infer_specs(self.network, optimum_shapes(self.network, self.config))

    def fitting_cut(self) -> tuple[Assignment, PlannedCut]:
        """(where layers are after segments had to move, the cut in which each segment fits or has nowhere to go).

        Raises:
            NetworkError, UnknownNameError: as `plan`.
        """
        partition = partition_network(
            self.network,
            self.assignment,
            self.variants,
            self.config.fallback_device,
            self.needs,
            self.parts,
            self.certainly_fits,
        )
        moved = moved_assignment(self.network, self.config, self.assignment, partition)
        assignment, partition = without_stuck(moved, partition)
        planned = self.plan(partition)
        planned.partition = partition
        return assignment, planned

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
            planned.needs_of(self.variants[run.device], run.layers, held)
            for run, held in zip(partition.runs, planned.activations, strict=True)
        ]

    def certainly_fits(self, partition: Partition) -> bool:
        """Whether the segments of a cut fit their pools whatever is joined and wherever it lies.

        Reckoned as if every tensor of a segment were there all the time in every type.
        """
        return self._fitting_bounds(partition, self._precisions(partition)) is not None

    def _fitting_bounds(self, partition: Partition, precisions: Precisions) -> ActivationBytes | None:
        """Bytes as if every tensor of a segment were there all the time in every type; None where that does not fit."""
        bounds = [
            PoolNeeds(self.variants[run.device], self.specs, precisions).at_most(run.layers) for run in partition.runs
        ]
        for run, most in zip(partition.runs, bounds, strict=True):
            limits = strict_limits(self.variants[run.device])
            if any(most.get(name, 0) > limit for name, limit in limits.items()):
                return None
        return bounds

    def parts(self, partition: Partition, segment: int, limits: Mapping[str, int]) -> Sequence[Sequence[Layer]]:
        """The layers of a segment in parts that fit, each as long as it can be by the estimate of `PoolNeeds`.

        Args:
            partition: the cut.
            segment: index of its run.
            limits: pool name to bytes, of the pools that have to suffice.
        """
        run, planned = partition.runs[segment], self.plan(partition)
        needs = PoolNeeds(self.variants[run.device], self.specs, planned.precisions)
        units = units_in_order(run.layers, planned.units, self._edges)
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
        precisions = self._precisions(partition)
        placed = _all_placed(partition)
        formats = self._formats(placed, precisions)
        cut = PlannedCut(partition, precisions, formats or NO_FORMATS, self)
        if formats is None:
            cut.activations = self._unjoined(placed, precisions)
        elif self.bounds_memory and (bounds := self._fitting_bounds(placed, precisions)) is not None:
            cut.activations = bounds
        elif any(_holds_activations(self.variants[run.device]) for run in placed.runs):
            try:
                held = segment_pool_bytes(cut.contents, len(placed.runs))
            except DryfitError as problem:  # what a build raises; it is told with the rest that stands against one
                cut.activations, cut.error = self._unjoined(placed, precisions), problem
            else:
                cut.activations = segment_activations(placed, held, self.variants, self.specs, precisions)
        else:
            cut.activations = [{} for _ in placed.runs]
        return cut

    def _precisions(self, partition: Partition) -> Precisions:
        moved = moved_assignment(self.network, self.config, self.assignment, partition)
        devices = {layer.name: run.device for run in partition.runs for layer in run.layers}
        return choose_precisions(
            self.network,
            attrs.evolve(moved, devices={**moved.devices, **devices}),
            self.config,
            self.specs,
            self.scales.given_types,
            self.scales.wanted_types,
            partition.segments,
            self.real_types,
        )

    def _formats(self, partition: Partition, precisions: Precisions) -> Formats | None:
        """The formats; None where some that were asked for do not exist, which is told otherwise."""
        try:
            sides = Sides(partition, precisions, self.variants, self.specs, self.config)
            return choose_formats(self.network, sides)
        except UnknownNameError:
            if not self.are_formats_told:
                raise
            return None

    def _unjoined(self, partition: Partition, precisions: Precisions) -> ActivationBytes:
        """Bytes as if no two layers ran as one."""
        return [PoolNeeds(self.variants[run.device], self.specs, precisions).of(run.layers) for run in partition.runs]


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
