"""The decisions about a network, before any kernel is chosen: where each layer runs, in what type, and what is copied.

A build goes on from here; an assessment ends here. Nothing in this file loads a kernel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from dryfit.builder.canonicalise import canonicalise, optimum_shapes
from dryfit.builder.config.builder_config import BuilderConfig, BuilderFlag
from dryfit.builder.explicit_quantization.codes_on_devices import CodesOnDevices
from dryfit.builder.explicit_quantization.mode_rules import check_modes
from dryfit.builder.fusion.layer_roles import LayerRole
from dryfit.builder.placement.assign import NOWHERE, Assignment, ask, assign_devices
from dryfit.builder.placement.core_memory import core_memory_problems, within_cores
from dryfit.builder.placement.partition import Partition, partition_network
from dryfit.builder.placement.target_variant import TargetVariant
from dryfit.builder.precision.chosen import Precisions
from dryfit.builder.precision.layer_precisions import choose_precisions
from dryfit.builder.precision.scales import apply_scales, check_unscaled, int8_inputs, network_scales, wanted_types
from dryfit.builder.segments.pools import PoolNeeds, Specs
from dryfit.builder.segments.standalone import standalone_problems
from dryfit.builder.sparse_weights.detection import sparse_layers
from dryfit.builder.stage_texts import assignment_lines, partition_lines, scale_lines
from dryfit.builder.stages import Stages, logger
from dryfit.builder.tensor_formats.insertion import Formats, choose_formats
from dryfit.builder.tensor_formats.sides import caller_device
from dryfit.engine.plan import LayerPlacement
from dryfit.network.data_types import DataType
from dryfit.network.io_types import given_types, with_network_types
from dryfit.network.layer import Layer
from dryfit.network.network import Network
from dryfit.network.printing import network_text
from dryfit.network.tensor import Tensor
from dryfit.network.verify import check
from dryfit.passes.canonical import canonical_pipeline
from dryfit.passes.claim_quantized_groups import GroupClaims
from dryfit.passes.quantized_operators.chosen_methods import chosen_methods
from dryfit.passes.quantized_operators.form_quantized_operators import QuantizedOperators
from dryfit.plugins import registry
from dryfit.plugins.contributions import BuildObserver
from dryfit.quantization.rewrites import RewriteJournal
from dryfit.quantization.scale_table import ScaleTable
from dryfit.reference.inference import infer_specs
from dryfit.target.verdict import Verdict

NUM_STAGES = 7

SHAPE_COMPUTATION = "a shape computation"
"""Cause of a layer that the host computes before the run."""


@attrs.frozen(eq=False)
class Design:
    """The decisions.

    Attributes:
        network: a copy of the user's network after the passes.
        assignment: devices of layers, with causes and verdicts.
        partition: segments.
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
        memory_warnings: limits of memory pools that were lowered to what a core has, in sentences.
    """

    network: Network
    assignment: Assignment
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

    @property
    def warnings(self) -> Sequence[str]:
        """What the user should know of, such as layers that fell back."""
        return [
            *self.claims.warnings,
            *map(str, self.operators.left),
            *self.assignment.warnings,
            *self.precisions.warnings,
            *self.memory_warnings,
        ]

    def refused(self) -> Sequence[Verdict | str]:
        """What `refusals` says: verdicts of layers, and words on segments."""
        return [*self.assignment.refused, *self.partition.refused]

    def carries_data(self, tensor: Tensor) -> bool:
        """Whether a tensor is neither a constant nor the result of a shape computation."""
        producer = tensor.producer
        return producer is None or self.assignment.roles[producer.name] is LayerRole.WORK

    def layer_placements(self) -> list[LayerPlacement]:
        """Where each layer runs, in the order of the network; constants are nowhere."""
        host = registry.host().device
        return [
            LayerPlacement(
                layer=layer.name,
                kind=layer.kind,
                device=host if role is LayerRole.SHAPE else self.assignment.devices[layer.name],
                precision=self.precisions.layers.get(layer.name, layer.outputs[0].dtype),
                segment=self.partition.segments.get(layer.name, -1),
                cause=SHAPE_COMPUTATION if role is LayerRole.SHAPE else self._cause(layer),
                onnx_nodes=layer.onnx_nodes,
            )
            for layer in self.network.layers
            if (role := self.assignment.roles[layer.name]) is not LayerRole.CONSTANT
        ]

    def _cause(self, layer: Layer) -> str:
        """Why a layer is where it is and, where it took the place of a quantized group, why it is there at all."""
        taken = {**self.claims.causes, **self.operators.causes}.get(layer.name)
        return "; ".join(filter(None, (self.assignment.causes[layer.name], taken)))


def design_network(network: Network, config: BuilderConfig, stages: Stages) -> Design:
    """Decide.

    Raises:
        CalibrationError: the config's calibrator or its samples fail.
        NetworkError: the network is wrong; all problems are listed.
        ConfigError: config and network, or parts of the config, do not fit together.
        BuildError: a pass fails.
    """
    stages.run("verify", lambda: _check(network, config))
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
    scales = stages.run("find scales", lambda: network_scales(network, config), scale_lines)
    whole_inputs = int8_inputs(network, scales, config)
    apply_scales(scales, work, whole_inputs)
    given = {**given_types(network), **dict.fromkeys(whole_inputs, DataType.INT8)}
    wanted = wanted_types(network, work, config)
    assignment = stages.run(
        "place", lambda: assign_devices(work, config, own_devices, stages.observer), assignment_lines
    )
    check_unscaled(work, assignment)
    for warning in [*claims.warnings, *map(str, operators.left), *assignment.warnings]:
        logger.warning("%s", warning)
    specs = infer_specs(work, optimum_shapes(work, config))
    variants = _variants(config, assignment)
    precisions = choose_precisions(work, assignment, config, specs, given, wanted)
    partition = stages.run(
        "partition",
        lambda: partition_network(
            work,
            assignment,
            variants,
            config.fallback_device,
            lambda variant, layers: PoolNeeds(variant, specs, precisions).of(layers),
            config.get_memory_pool_limit,
        ),
        partition_lines,
    )
    if partition.moved:
        assignment = _after_moves(work, config, assignment, partition, stages.observer)
    assignment, partition = _without_stuck(assignment, partition)
    final_precisions = stages.run(
        "choose precisions",
        lambda: choose_precisions(work, assignment, config, specs, given, wanted, partition.segments),
        lambda chosen: [f"{layer}: {dtype.name}" for layer, dtype in chosen.layers.items()],
    )
    is_whole = not assignment.refused and not partition.refused
    partition = partition.without(NOWHERE)
    variants, memory_warnings = within_cores(
        partition.runs, variants, lambda variant: PoolNeeds(variant, specs, final_precisions)
    )
    for warning in memory_warnings:
        logger.warning("%s", warning)
    caller = caller_device(config, (run.device for run in partition.runs))
    # What crosses which border is not known while layers have no place.
    formats = stages.run(
        "choose formats",
        lambda: (
            choose_formats(work, partition, final_precisions, variants, specs, config)
            if is_whole
            else Formats({}, [], [])
        ),
        lambda chosen: [f"{one.tensor}: {one.source} -> {one.destination}, {one.cause}" for one in chosen.reformats],
    )
    refusals = [*map(str, assignment.refused), *partition.refused]
    design = Design(
        network=work,
        assignment=assignment,
        partition=partition,
        precisions=final_precisions,
        formats=formats,
        variants=variants,
        specs=specs,
        caller=caller,
        refusals=refusals,
        problems=(
            [
                *standalone_problems(partition.runs, formats.reformats, config),
                *core_memory_problems(
                    partition.runs, variants, lambda variant: PoolNeeds(variant, specs, final_precisions)
                ),
            ]
            if is_whole
            else []
        ),
        passes=pipeline.names,
        claims=claims,
        operators=operators,
        rewrites=rewrites,
        scales=scales,
        memory_warnings=memory_warnings,
    )
    return _with_sparse_layers(design) if config.get_flag(BuilderFlag.SPARSE_WEIGHTS) else design


def _with_sparse_layers(design: Design) -> Design:
    """The design with the layers of which a device skips zeros."""
    found = sparse_layers(design)
    logger.info("layers of which zeros of weights are skipped: %s", ", ".join(sorted(found)) or "none")
    return attrs.evolve(design, sparse_layers=found)


def _without_stuck(assignment: Assignment, partition: Partition) -> tuple[Assignment, Partition]:
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


def _check(network: Network, config: BuilderConfig) -> None:
    """Refuse a network that is wrong, or that does not go with the config."""
    check(network)
    chosen_methods(network)  # refuses names that nobody brings before anything is done
    check_modes(network, config)


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


def _after_moves(
    network: Network, config: BuilderConfig, assignment: Assignment, partition: Partition, observer: BuildObserver
) -> Assignment:
    """The assignment with the layers of segments that could not stay where they were put."""
    fallback = config.fallback_device or ""
    refused = list(assignment.refused)
    verdicts = {name: dict(of_layer) for name, of_layer in assignment.verdicts.items()}
    for layer in network.layers:
        if layer.name in partition.moved:
            verdict = ask(layer, fallback, config, is_own=False)
            verdicts[layer.name][fallback] = verdict
            observer.verdict_given(verdict)
            if not verdict:
                refused.append(verdict)
    warnings = [f"{cause}. It runs on {fallback}" for cause in dict.fromkeys(partition.moved.values())]
    for warning in warnings:
        logger.warning("%s", warning)
    return attrs.evolve(
        assignment,
        devices={**assignment.devices, **dict.fromkeys(partition.moved, fallback)},
        causes={**assignment.causes, **partition.moved},
        verdicts=verdicts,
        refused=refused,
        warnings=[*assignment.warnings, *warnings],
    )
