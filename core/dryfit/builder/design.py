"""The decisions about a network, before any kernel is chosen: where each layer runs, in what type, and what is copied.

A build goes on from here; an assessment ends here. Nothing in this file loads a kernel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from dryfit.attrs_classes import frozen
from dryfit.builder.canonicalise import CanonicalNetwork, canonicalise, verified
from dryfit.builder.config.builder_config import BuilderConfig, BuilderFlag
from dryfit.builder.cut_and_try import ActivationBytes, CutPlanner, PlannedCut
from dryfit.builder.formats.choice import NO_FORMATS, Formats
from dryfit.builder.placement.assign import NOWHERE, Assignment, assign_devices
from dryfit.builder.placement.partition import Partition
from dryfit.builder.placement.segments_together import core_memory_problems, standalone_problems, within_cores
from dryfit.builder.placement.target_variant import Specs, TargetVariant
from dryfit.builder.precision.chosen import Precisions
from dryfit.builder.precision.scales import FoundRanges, NetworkScales, check_unscaled, scaled
from dryfit.builder.sparse_weights import sparse_layers
from dryfit.builder.stages import Stages, logger
from dryfit.errors import ConfigError, DryfitError
from dryfit.network.network import Network

NUM_STAGES = 5


@frozen(eq=False)
class Design:
    """The decisions.

    Attributes:
        canonical: the network after the passes, and what became of its layers.
        assignment: devices of layers, with causes and verdicts.
        cut: the cut that fits, with the engine's network and its groups.
        partition: its segments that have a place.
        formats: formats and copies; empty where something was refused.
        variants: device name to target, for all devices in use.
        problems: why the segments, though each has its place, cannot be combined, in words.
        network_scales: the INT8 scales, and the types on the caller's side.
        memory_warnings: segments that were cut to fit their pools, and limits of pools that were lowered to what a core
            has, in sentences.
        activations: bytes that activations take in the segments' pools, once layers that run as one are joined.
        broken: rules on standalone loadables that network and config break; a build raises them.
        sparse_layers: names of the layers whose zero weights a device skips; none without `SPARSE_WEIGHTS`.
    """

    canonical: CanonicalNetwork
    assignment: Assignment
    cut: PlannedCut
    partition: Partition
    formats: Formats
    variants: Mapping[str, TargetVariant]
    problems: Sequence[str]
    network_scales: NetworkScales
    memory_warnings: Sequence[str] = ()
    activations: ActivationBytes = ()
    broken: Sequence[ConfigError] = ()
    sparse_layers: frozenset[str] = frozenset()

    @property
    def network(self) -> Network:
        """A copy of the user's network after the passes."""
        return self.canonical.network

    @property
    def precisions(self) -> Precisions:
        """Computation types."""
        return self.cut.precisions

    @property
    def specs(self) -> Specs:
        """Tensor name to spec, at the optimum shapes of the first profile."""
        return self.cut.specs

    @property
    def is_whole(self) -> bool:
        """Whether everything has its place."""
        return _is_whole(self.assignment, self.partition)

    @property
    def error(self) -> DryfitError | None:
        """What a build raises when it joins layers."""
        return self.cut.error if self.is_whole else None

    @property
    def refusals(self) -> Sequence[str]:
        """Layers and segments that unplaced, in words."""
        return [*map(str, self.assignment.refused), *self.partition.refused]

    @property
    def warnings(self) -> Sequence[str]:
        """What the user should know of, such as layers that fell back."""
        return [
            *self.canonical.warnings,
            *self.assignment.warnings,
            *self.precisions.warnings,
            *self.memory_warnings,
            *self.network_scales.warnings,
        ]

    def pools(self, segment: int) -> dict[str, int]:
        """Bytes that a segment needs of each pool of its device."""
        run = self.partition.runs[segment]
        return self.cut.needs_of(self.variants[run.device], run.layers, self.activations[segment])


def design_network(
    network: Network,
    config: BuilderConfig,
    stages: Stages,
    found: FoundRanges | None = None,
    *,
    joins_layers: bool = False,
    bounds_memory: bool = False,
) -> Design:
    """Decide.

    Args:
        network: the user's.
        config: what it is to be built with.
        stages: log and progress.
        found: what the config's calibrator found; None where it has none.
        joins_layers: whether layers are joined also where no limit of memory depends on it, as a build needs it.
        bounds_memory: whether activations of segments that certainly fit are given as an upper bound and not laid out.

    Raises:
        CalibrationError: the config has a calibrator, and what it finds was not given.
        NetworkError: the network is wrong; all problems are listed.
        ConfigError: config and network, or parts of the config, do not fit together.
        BuildError: a pass fails.
    """
    broken = stages.run("verify", lambda: verified(network, config))
    canonical = stages.run("canonicalise", lambda: canonicalise(network, config), CanonicalNetwork.lines)
    work = canonical.network
    scales = stages.run("find scales", lambda: scaled(network, work, config, found), NetworkScales.lines)
    placed = stages.run(
        "place",
        lambda: assign_devices(work, config, canonical.own_devices, stages.observer),
        Assignment.lines,
    )
    check_unscaled(work, placed)
    for warning in [*canonical.warnings, *placed.warnings, *scales.warnings]:
        logger.warning("%s", warning)
    planner = CutPlanner(
        network, work, config, placed, scales, are_formats_told=bool(broken), bounds_memory=bounds_memory
    )

    def cut_and_try() -> tuple[Assignment, PlannedCut]:
        moved, cut = planner.fitting_cut()
        if joins_layers and _is_whole(moved, cut.partition) and cut.error is None:
            cut.join()
        return moved, cut

    moved, cut = stages.run("cut and try", cut_and_try, lambda result: result[1].lines())
    design = _design(canonical, _told_moves(moved, placed, stages), cut, scales, config, broken)
    if not config.get_flag(BuilderFlag.SPARSE_WEIGHTS):
        return design
    sparse = sparse_layers(design)
    logger.info("layers whose zero weights are skipped: %s", ", ".join(sorted(sparse)) or "none")
    return attrs.evolve(design, sparse_layers=sparse)


def _design(
    canonical: CanonicalNetwork,
    assignment: Assignment,
    cut: PlannedCut,
    scales: NetworkScales,
    config: BuilderConfig,
    broken: Sequence[ConfigError],
) -> Design:
    """The cut that fits without what has no place, within the memory of the devices' cores."""
    runs = zip(cut.partition.runs, cut.activations, strict=True)
    activations = [held for run, held in runs if run.device != NOWHERE]
    partition = cut.partition.without(NOWHERE)

    def needs(variant: TargetVariant, segment: int) -> Mapping[str, int]:
        return cut.needs_of(variant, partition.runs[segment].layers, activations[segment])

    variants, lowered_limits = within_cores(partition.runs, cut.variants, needs)
    memory_warnings = [*partition.cuts, *lowered_limits]
    for warning in memory_warnings:
        logger.warning("%s", warning)
    # What crosses which border is not known while layers have no place.
    is_whole = _is_whole(assignment, partition)
    formats = cut.formats if is_whole else NO_FORMATS
    problems: list[str] = []
    if is_whole:
        problems += standalone_problems(partition.runs, formats.reformats, config)
        problems += core_memory_problems(partition.runs, variants, needs)
    return Design(
        canonical=canonical,
        assignment=assignment,
        cut=cut,
        partition=partition,
        formats=formats,
        variants=variants,
        problems=problems,
        network_scales=scales,
        memory_warnings=memory_warnings,
        activations=activations,
        broken=broken,
    )


def _is_whole(assignment: Assignment, partition: Partition) -> bool:
    """Whether everything has its place."""
    return not assignment.refused and not partition.refused


def _told_moves(moved: Assignment, before: Assignment, stages: Stages) -> Assignment:
    """The assignment after moves, once observers and the log know of them."""
    for layer, verdicts in moved.verdicts.items():
        for device, verdict in verdicts.items():
            if device not in before.verdicts.get(layer, {}):
                stages.observer.verdict_given(verdict)
    for warning in moved.warnings[len(before.warnings) :]:
        logger.warning("%s", warning)
    return moved
