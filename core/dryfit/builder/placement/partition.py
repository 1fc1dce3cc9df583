"""Cutting a network into segments: maximal runs of layers on one device, each cut with its cause.

The algorithm stands in `graph_partition`; here are the rules of devices: one batch in a segment, shapes that a segment
compiler takes, pools that must suffice, and how many segments a device can load. A segment that breaks a rule moves to
the fallback device as a whole; one that is too large for its pools is first cut into segments that fit, where the
device's target does not say otherwise (`SegmentRules.cuts_to_fit`).

Source: TensorRT 10 developer guide, Working with DLA. That a DLA segment which does not fit its pools falls back as a
whole, and that segments are counted in topological order, is inferred from logs of the TensorRT builder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import attrs

from dryfit.attrs_classes import frozen
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.placement.assign import NOWHERE, Assignment, verdicts_of
from dryfit.builder.placement.cutter import Cutter, Edge, LayerRun, Segment, with_source
from dryfit.builder.placement.roles import LayerRole
from dryfit.builder.placement.target_variant import TargetVariant
from dryfit.engine.plan import PoolShortage, RejectedSegment
from dryfit.network.layer import Layer
from dryfit.network.network import Network
from dryfit.target.memory_pools import SEGMENT

PoolUse = Callable[["Partition"], Sequence[Mapping[str, int]]]
"""A cut -> for each of its segments bytes by pool that it needs."""
Fits = Callable[["Partition"], bool]
"""A cut -> whether each of its segments certainly fits its pools; False where that takes planning it."""
Parts = Callable[["Partition", int, Mapping[str, int]], Sequence[Sequence[Layer]]]
"""(cut, index of a segment, bytes by pool that it may need) -> its layers in parts that fit, in order of execution."""


@frozen
class Partition:
    """The network's layers, cut into segments.

    Attributes:
        runs: in execution order.
        segments: layer name to index of its run.
        moved: layer name to why it moved to the fallback device after it was placed.
        refused: causes of segments that had to move, though no device takes them.
        rejected: every segment that had to move, in the order in which it was found.
        cuts: one sentence for each segment that was cut to fit its pools.
    """

    runs: Sequence[LayerRun]
    segments: Mapping[str, int]
    moved: Mapping[str, str]
    refused: Sequence[str]
    rejected: Sequence[RejectedSegment] = ()
    cuts: Sequence[str] = ()

    def without(self, device: str) -> Partition:
        """The partition without the segments of a device, numbered anew."""
        numbers = [number for number, run in enumerate(self.runs) if run.device != device]
        renumbered = {old: new for new, old in enumerate(numbers)}
        segments = {layer: renumbered[number] for layer, number in self.segments.items() if number in renumbered}
        return attrs.evolve(self, runs=[self.runs[number] for number in numbers], segments=segments)


def partition_network(
    network: Network,
    assignment: Assignment,
    variants: Mapping[str, TargetVariant],
    fallback_device: str | None,
    pool_use: PoolUse,
    parts: Parts,
    fits: Fits = lambda cut: False,
) -> Partition:
    """Cut a placed network into segments.

    Args:
        network: shapes inferred, layers in topological order.
        assignment: the device of each layer.
        variants: device name to target, for every device in use and the fallback device.
        fallback_device: where segments go that break a rule; None: they are refused.
        pool_use: what the segments of a cut need; not asked where no limit says anything.
        parts: how a segment that needs more can be cut; one part where it cannot.
        fits: spares `pool_use` a cut that has too many segments, so that it is not the last.
    """
    layers = [layer for layer in network.layers if layer.name in assignment.devices]
    cutter = Cutter(layers, layer_edges(network, assignment), assignment, variants)
    refused: list[str] = []
    rejected: list[RejectedSegment] = []
    while True:
        segments = cutter.cut()
        tried = Partition(cutter.runs(segments), cutter.numbers(segments), dict(cutter.moved), [])
        causes, shortages = _beyond_compilers(cutter, segments), dict[int, list[PoolShortage]]()
        if not causes:
            too_many = _over_segment_limits(cutter, segments)
            is_spared = bool(too_many) and fits(tried)
            shortages = {} if is_spared else _shortages(cutter, segments, tried, pool_use)
            causes = {number: _too_large(cutter.variant(segments[number]), some) for number, some in shortages.items()}
            smaller = _smaller(cutter, segments, tried, shortages, parts)
            if smaller:
                cutter.split(segments, smaller, causes)
                continue
            causes = causes or too_many
        if not causes:
            break
        stuck = [number for number in causes if fallback_device in (None, cutter.variant(segments[number]).device)]
        is_end = fallback_device is None or bool(stuck)
        going = {number: cause for number, cause in causes.items() if number in stuck or not is_end}
        rejected += _rejected(cutter, segments, going, shortages, "" if is_end else fallback_device or "")
        if fallback_device is None or stuck:
            refused = [f"{cutter.describe(segments[number])}: {causes[number]}" for number in stuck]
            break
        cutter.move(segments, causes, fallback_device)
    return attrs.evolve(tried, refused=refused, rejected=rejected, cuts=cutter.cuts)


def _rejected(
    cutter: Cutter,
    segments: Sequence[Segment],
    causes: Mapping[int, str],
    shortages: Mapping[int, Sequence[PoolShortage]],
    fallback: str,
) -> list[RejectedSegment]:
    """The records of segments that cannot stay where they are."""
    return [
        RejectedSegment(
            device=cutter.variant(segments[number]).device,
            layers=[cutter.layers[layer].name for layer in segments[number]],
            cause=cause,
            shortages=shortages.get(number, ()),
            fallback=fallback,
        )
        for number, cause in causes.items()
    ]


def layer_edges(network: Network, assignment: Assignment) -> list[Edge]:
    """Pairs of numbers of layers: the first gives what the second needs, also by way of a shape computation."""
    number = {name: index for index, name in enumerate(assignment.devices)}
    sources: dict[str, tuple[int, ...]] = {}
    edges: list[Edge] = []
    for layer in network.layers:
        needs = {source for tensor in layer.inputs if tensor is not None for source in sources.get(tensor.name, ())}
        if layer.name in number:
            edges += [(source, number[layer.name]) for source in sorted(needs)]
            gives: tuple[int, ...] = (number[layer.name],)
        else:
            gives = tuple(sorted(needs)) if assignment.roles[layer.name] is LayerRole.SHAPE else ()
        sources.update((tensor.name, gives) for tensor in layer.outputs)
    return edges


def _beyond_compilers(cutter: Cutter, segments: Sequence[Segment]) -> dict[int, str]:
    """Segment to cause, for segments with dynamic shapes whose target's compiler takes none."""
    causes: dict[int, str] = {}
    for number, segment in enumerate(segments):
        target = cutter.variant(segment).target
        if target.compile_segment_at is None or target.segment_rules.compiles_dynamic_shapes:
            continue
        for layer in (cutter.layers[index] for index in segment):
            dynamic = next(
                (one for one in (*layer.inputs, *layer.outputs) if one is not None and not one.spec.is_static), None
            )
            if dynamic is not None:
                cause = f"its compiler does not support dynamic shapes: {dynamic.shape} of tensor {dynamic.name!r}"
                causes[number] = with_source(cause, target.segment_rules.source)
                break
    return causes


def _shortages(
    cutter: Cutter, segments: Sequence[Segment], tried: Partition, pool_use: PoolUse
) -> dict[int, list[PoolShortage]]:
    """Segment to the pools of which it needs more than there is. A cache never falls short."""
    limits = [strict_limits(cutter.variant(segment)) for segment in segments]
    if not any(limits):
        return {}
    found: dict[int, list[PoolShortage]] = {}
    for number, (of_segment, needs) in enumerate(zip(limits, pool_use(tried), strict=True)):
        for name, needed in needs.items():
            if name in of_segment and needed > of_segment[name]:
                found.setdefault(number, []).append(PoolShortage(name, needed, of_segment[name]))
    return found


def _smaller(
    cutter: Cutter,
    segments: Sequence[Segment],
    tried: Partition,
    shortages: Iterable[int],
    parts: Parts,
) -> dict[int, Sequence[Sequence[Layer]]]:
    """Segment to its parts, for segments that their pools are too small for and that can be cut."""
    found = {}
    for number in shortages:
        variant = cutter.variant(segments[number])
        if variant.target.segment_rules.cuts_to_fit and len(segments[number]) > 1:
            found[number] = parts(tried, number, strict_limits(variant))
    return {number: of_segment for number, of_segment in found.items() if len(of_segment) > 1}


def strict_limits(variant: TargetVariant) -> dict[str, int]:
    """Pool name to limit, of the pools of which a segment may need no more."""
    pools = [pool.name for pool in variant.target.memory_pools if pool.per == "segment" and pool.holds != "cache"]
    return {name: limit for name in pools if (limit := variant.pool_limits.get(name)) is not None}


def _too_large(variant: TargetVariant, shortages: Sequence[PoolShortage]) -> str:
    """Why a segment does not fit its pools, each by name."""
    sources = {pool.name: pool.source for pool in variant.target.memory_pools}
    words = [f"{one.needed} bytes of {one.pool}, whose limit is {one.limit} bytes" for one in shortages]
    told = SEGMENT.told(f"it needs {' and '.join(words)}", sources[shortages[0].pool])
    holds = {pool.name: pool.holds for pool in variant.target.memory_pools}
    if variant.target.segment_rules.cuts_to_fit and any(holds[one.pool] == "activations" for one in shortages):
        told += (
            '. A target whose device keeps only part of a tensor there at a time declares the pool with holds="cache"'
        )
    return told


def _over_segment_limits(cutter: Cutter, segments: Sequence[Segment]) -> dict[int, str]:
    """Segment to cause, for segments beyond the number that their device can load, counted in execution order."""
    causes: dict[int, str] = {}
    counts: dict[str, int] = {}
    for number, segment in enumerate(segments):
        variant = cutter.variant(segment)
        rules = variant.target.segment_rules
        limit = rules.segment_limit(variant.software)
        count = counts[variant.device] = counts.get(variant.device, 0) + 1
        if limit is not None and count > limit:
            causes[number] = with_source(
                f"it is segment {count} of {variant.device}, which loads at most {limit} with software "
                f"{variant.software_text}",
                rules.source,
            )
    return causes


def moved_assignment(
    network: Network, config: BuilderConfig, assignment: Assignment, partition: Partition
) -> Assignment:
    """The assignment with the layers of segments that could not stay where they were put.

    Args:
        network: as it was placed.
        config: its fallback device is asked about these layers.
        assignment: from before the cut.
        partition: the cut.
    """
    if not partition.moved:
        return assignment
    fallback = config.fallback_device or ""
    refused = list(assignment.refused)
    verdicts = {name: dict(of_layer) for name, of_layer in assignment.verdicts.items()}
    verdict_on = verdicts_of(fallback, config, {})
    for layer in network.layers:
        if layer.name in partition.moved:
            verdict = verdicts[layer.name][fallback] = verdict_on(layer)
            if not verdict:
                refused.append(verdict)
    warnings = [f"{cause}. It runs on {fallback}" for cause in dict.fromkeys(partition.moved.values())]
    return attrs.evolve(
        assignment,
        devices={**assignment.devices, **dict.fromkeys(partition.moved, fallback)},
        causes={**assignment.causes, **partition.moved},
        verdicts=verdicts,
        refused=refused,
        warnings=[*assignment.warnings, *warnings],
    )


def without_stuck(assignment: Assignment, partition: Partition) -> tuple[Assignment, Partition]:
    """Both with the layers of segments that had to move and had nowhere to go: these are nowhere, as refused ones."""
    causes = {layer: lost.cause for lost in partition.rejected if not lost.fallback for layer in lost.layers}
    if not causes:
        return assignment, partition
    runs = [
        attrs.evolve(run, device=NOWHERE) if any(layer.name in causes for layer in run.layers) else run
        for run in partition.runs
    ]
    devices = {**assignment.devices, **dict.fromkeys(causes, NOWHERE)}
    causes = {**assignment.causes, **causes}
    return attrs.evolve(assignment, devices=devices, causes=causes), attrs.evolve(partition, runs=runs)
