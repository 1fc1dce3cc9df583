"""The decisions about a network, before any kernel is chosen: where each layer runs, in what type, and what is copied.

A build goes on from here; an assessment ends here. Nothing in this file loads a kernel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from dryfit.builder.canonicalise import CodesOnDevices, canonicalise, optimum_shapes
from dryfit.builder.config.builder_config import BuilderConfig, BuilderFlag
from dryfit.builder.config.mode_rules import check_modes
from dryfit.builder.config.standalone import standalone_problems
from dryfit.builder.cut_and_try import ActivationBytes, CutPlanner, PlannedCut
from dryfit.builder.formats.insertion import Formats
from dryfit.builder.formats.sides import caller_device
from dryfit.builder.kernels.choice import kernel_choice
from dryfit.builder.placement.assign import NOWHERE, Assignment, assign_devices
from dryfit.builder.placement.partition import Partition
from dryfit.builder.placement.roles import LayerRole
from dryfit.builder.placement.segments_together import core_memory_problems, within_cores
from dryfit.builder.placement.target_variant import TargetVariant
from dryfit.builder.precision.chosen import Precisions
from dryfit.builder.precision.layer_precisions import choose_precisions
from dryfit.builder.precision.scales import (
    FoundRanges,
    apply_scales,
    check_unscaled,
    int8_inputs,
    network_scales,
    scale_warnings,
    wanted_types,
)
from dryfit.builder.segments.pools import PoolNeeds, Specs
from dryfit.builder.sparse_weights import sparse_layers
from dryfit.builder.stage_texts import assignment_lines, scale_lines
from dryfit.builder.stages import Stages, logger
from dryfit.errors import ConfigError, DryfitError
from dryfit.network.data_types import DataType
from dryfit.network.io_types import given_types, with_network_types
from dryfit.network.network import Network
from dryfit.network.printing import network_text
from dryfit.network.tensor import Tensor
from dryfit.network.verify import check
from dryfit.passes.canonical import canonical_pipeline
from dryfit.passes.claim_quantized_groups import GroupClaims
from dryfit.passes.quantized_operators.chosen_methods import chosen_methods
from dryfit.passes.quantized_operators.form_quantized_operators import QuantizedOperators
from dryfit.plugins import registry
from dryfit.quantization.rewrites import RewriteJournal
from dryfit.quantization.scale_table import ScaleTable
from dryfit.reference.inference import infer_specs
from dryfit.target.verdict import Verdict

NUM_STAGES = 5


@attrs.frozen(eq=False)
class Design:
    """The decisions.

    Attributes:
        network: a copy of the user's network after the passes.
        assignment: devices of layers, with causes and verdicts.
        cut: the cut that fits, with the engine's network and its groups.
        partition: its segments that have a place.
        precisions: computation types.
        formats: formats and copies; empty where something was refused.
        variants: device name to target, for all devices in use.
        specs: tensor name to spec, at the optimum shapes of the first profile.
        caller: device on which the caller keeps inputs and outputs.
        refusals: layers and segments that can run nowhere, in words.
        problems: why the segments, each of which has its place, cannot be as they are together, in words.
        passes: names of the passes that the network went through, in order.
        claims: what became of its quantized groups.
        operators: which of its layers are computed by quantize methods, and which are not and why.
        rewrites: what became of its quantizations and dequantizations.
        scales: the INT8 scales of the user's tensors.
        sparse_layers: names of the layers of which a device skips zeros of weights; none without `SPARSE_WEIGHTS`.
        memory_warnings: segments that were cut to fit their pools, and limits of pools that were lowered to what a core
            has, in sentences.
        scale_warnings: what is probably wrong with the scales, in sentences.
        activations: bytes that activations take in the segments' pools, once layers that run as one are joined.
        error: what a build raises when it joins layers.
        broken: rules on standalone loadables that network and config break; a build raises them.
    """

    network: Network
    assignment: Assignment
    cut: PlannedCut
    partition: Partition
    precisions: Precisions
    formats: Formats
    variants: Mapping[str, TargetVariant]
    specs: Specs
    caller: str
    refusals: Sequence[str]
    problems: Sequence[str]
    passes: Sequence[str]
    claims: GroupClaims
    operators: QuantizedOperators
    rewrites: RewriteJournal
    scales: ScaleTable
    sparse_layers: frozenset[str] = frozenset()
    memory_warnings: Sequence[str] = ()
    scale_warnings: Sequence[str] = ()
    activations: ActivationBytes = ()
    error: DryfitError | None = None
    broken: Sequence[ConfigError] = ()

    @property
    def warnings(self) -> Sequence[str]:
        """What the user should know of, such as layers that fell back."""
        return [
            *self.claims.warnings,
            *map(str, self.operators.left),
            *self.assignment.warnings,
            *self.precisions.warnings,
            *self.memory_warnings,
            *self.scale_warnings,
        ]

    def refused(self) -> Sequence[Verdict | str]:
        """What `refusals` says: verdicts of layers, and words on segments."""
        return [*self.assignment.refused, *self.partition.refused]

    def pools(self, segment: int) -> dict[str, int]:
        """Bytes that a segment needs of each pool of its device."""
        run = self.partition.runs[segment]
        needs = PoolNeeds(self.variants[run.device], self.specs, self.precisions)
        return needs.as_planned(run.layers, self.activations[segment])

    def carries_data(self, tensor: Tensor) -> bool:
        """Whether a tensor is neither a constant nor the result of a shape computation."""
        producer = tensor.producer
        return producer is None or self.assignment.roles[producer.name] is LayerRole.WORK


def design_network(
    network: Network,
    config: BuilderConfig,
    stages: Stages,
    found: FoundRanges | None = None,
    *,
    joins_layers: bool = False,
) -> Design:
    """Decide.

    Args:
        network: the user's.
        config: what it is to be built with.
        stages: log and progress.
        found: what the config's calibrator found; None where it has none.
        joins_layers: whether layers are joined also where no limit of memory depends on it, as a build needs it.

    Raises:
        CalibrationError: the config has a calibrator, and what it finds was not given.
        NetworkError: the network is wrong; all problems are listed.
        ConfigError: config and network, or parts of the config, do not fit together.
        BuildError: a pass fails.
    """
    broken = stages.run("verify", lambda: verified(network, config))
    own_devices = config.explicit_device_types(network)
    claims = GroupClaims()
    rewrites = RewriteJournal()
    operators = QuantizedOperators(rewrites)
    pipeline = canonical_pipeline(claims, rewrites, CodesOnDevices(config, own_devices), operators)
    work = stages.run(
        "canonicalise",
        lambda: canonicalise(with_network_types(network), config, pipeline),
        lambda copy: [network_text(copy)],
    )
    copies = {layer.name: rewrites.origin(layer.name) for layer in work.layers}
    own_devices |= {name: own_devices[origin] for name, origin in copies.items() if origin in own_devices}
    scales = stages.run("find scales", lambda: network_scales(network, config, found), scale_lines)
    whole_inputs = int8_inputs(network, scales, config)
    doubts = scale_warnings(network, scales)
    apply_scales(scales, work, whole_inputs)
    given = {**given_types(network), **dict.fromkeys(whole_inputs, DataType.INT8)}
    wanted = wanted_types(network, work, config)
    assignment = stages.run(
        "place", lambda: assign_devices(work, config, own_devices, stages.observer), assignment_lines
    )
    check_unscaled(work, assignment)
    for warning in [*claims.warnings, *map(str, operators.left), *assignment.warnings, *doubts]:
        logger.warning("%s", warning)
    specs = infer_specs(work, optimum_shapes(work, config))
    variants = _variants(config, assignment)
    planner = CutPlanner(
        work,
        config,
        assignment,
        variants,
        specs,
        lambda placed, cut: choose_precisions(work, placed, config, specs, given, wanted, cut.segments),
        kernel_choice(config, network),
        are_formats_told=bool(broken),
    )

    def cut_and_try() -> tuple[Assignment, PlannedCut]:
        assignment, cut = planner.fitting_cut()
        if joins_layers and _is_whole(assignment, cut.partition) and cut.error is None:
            cut.join()
        return assignment, cut

    moved, cut = stages.run("cut and try", cut_and_try, lambda found: found[1].lines())
    assignment = _told_moves(moved, assignment, stages)
    is_whole = _is_whole(assignment, cut.partition)
    activations = [held for run, held in zip(cut.partition.runs, cut.activations, strict=True) if run.device != NOWHERE]
    partition = cut.partition.without(NOWHERE)

    def needs(variant: TargetVariant, segment: int) -> Mapping[str, int]:
        layers = partition.runs[segment].layers
        return PoolNeeds(variant, specs, cut.precisions).as_planned(layers, activations[segment])

    variants, lowered_limits = within_cores(partition.runs, variants, needs)
    memory_warnings = [*partition.cuts, *lowered_limits]
    for warning in memory_warnings:
        logger.warning("%s", warning)
    # What crosses which border is not known while layers have no place.
    formats = cut.formats if is_whole else Formats({}, [], [])
    problems = []
    if is_whole:
        problems += standalone_problems(partition.runs, formats.reformats, config)
        problems += core_memory_problems(partition.runs, variants, needs)
    design = Design(
        network=work,
        assignment=assignment,
        cut=cut,
        partition=partition,
        precisions=cut.precisions,
        formats=formats,
        variants=variants,
        specs=specs,
        caller=caller_device(config, (run.device for run in partition.runs)),
        refusals=[*map(str, assignment.refused), *partition.refused],
        problems=problems,
        passes=pipeline.names,
        claims=claims,
        operators=operators,
        rewrites=rewrites,
        scales=scales,
        memory_warnings=memory_warnings,
        scale_warnings=doubts,
        activations=activations,
        error=cut.error if is_whole else None,
        broken=broken,
    )
    return _with_sparse_layers(design) if config.get_flag(BuilderFlag.SPARSE_WEIGHTS) else design


def _is_whole(assignment: Assignment, partition: Partition) -> bool:
    """Whether everything has its place."""
    return not assignment.refused and not partition.refused


def _with_sparse_layers(design: Design) -> Design:
    """The design with the layers of which a device skips zeros."""
    found = sparse_layers(design)
    logger.info("layers of which zeros of weights are skipped: %s", ", ".join(sorted(found)) or "none")
    return attrs.evolve(design, sparse_layers=found)


def verified(network: Network, config: BuilderConfig) -> list[ConfigError]:
    """Refuse a network that is wrong, or does not go with the config; returns what is told beside the placement."""
    check(network)
    chosen_methods(network)  # refuses names that nobody brings before anything is done
    return check_modes(network, config)


def _variants(config: BuilderConfig, assignment: Assignment) -> dict[str, TargetVariant]:
    """Every device that layers run on or may move to, the default one and the host."""
    devices = [
        config.default_device_type,
        *([config.fallback_device] if config.fallback_device else []),
        *(device for device in assignment.devices.values() if device != NOWHERE),
        registry.host().device,
    ]
    variants = {device: TargetVariant.chosen(config, device) for device in dict.fromkeys(devices)}
    return {**variants, NOWHERE: variants[registry.host().device]}


def _told_moves(moved: Assignment, before: Assignment, stages: Stages) -> Assignment:
    """The assignment after moves, once observers and the log know of them."""
    for layer, verdicts in moved.verdicts.items():
        for device, verdict in verdicts.items():
            if device not in before.verdicts.get(layer, {}):
                stages.observer.verdict_given(verdict)
    for warning in moved.warnings[len(before.warnings) :]:
        logger.warning("%s", warning)
    return moved
