"""What a build would do, without building: placement, verdicts, segments and reformats.

Compiles no kernel and packs no weights, so that it is quick enough to be asked again and again while a network is
changed. Where a device limits the memory of its segments, kernels are asked which layers they run as one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import attrs

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.design import NUM_STAGES, Design, design_network
from dryfit.builder.explicit_quantization.operator_rules import OperatorRule, operator_rules
from dryfit.builder.observation import build_observer
from dryfit.builder.placement.target_variant import TargetVariant
from dryfit.builder.precision.reason import PrecisionReason
from dryfit.builder.refit.preparation import check_refit_flags
from dryfit.builder.refusals import build_errors, refusals_of
from dryfit.builder.segments.cost import segment_estimate
from dryfit.builder.stages import Stages
from dryfit.engine.plan import LayerPlacement, Reformat, RejectedSegment, Segment
from dryfit.errors import DryfitError
from dryfit.network.layer import Layer
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor
from dryfit.passes.quantized_operators.form_quantized_operators import LeftLayer
from dryfit.quantization.scale_table import ScaleTable
from dryfit.target.cost import CostEstimate
from dryfit.target.verdict import Verdict


@attrs.frozen
class Assessment:
    """The answer.

    Attributes:
        network: name of the network.
        layers: where each layer runs, in the order of the network; device "" where it was refused. Constants belong
            to the layers that use them, and are not listed.
        verdicts: layer name to device to verdict, for the devices that were asked.
        segments: in execution order. Their pools are those of the engine that a build makes of them.
        reformats: the copies between types, formats or devices; none where something was refused.
        warnings: one sentence a layer or segment that fell back, and wishes that were not granted.
        refusals: what can run nowhere and copies that may not be made, each for itself, in words.
        platforms: device to platform, for the devices in use.
        software: device to software version.
        scales: the INT8 scales of the network's tensors.
        reasons: layer name to why it is computed in the type that it is computed in.
        rejected: segments that could not be on their device.
        memory_warnings: those of the warnings about segments that were cut to fit and limits that were lowered.
        quantized_operators: which layers quantize methods compute, and by which rules.
        left: layers that stay in real numbers though the network has a quantize method, with the reasons.
        errors: what a build raises for these decisions, in its words.
    """

    network: str
    layers: Sequence[LayerPlacement]
    verdicts: Mapping[str, Mapping[str, Verdict]]
    segments: Sequence[Segment]
    reformats: Sequence[Reformat]
    warnings: Sequence[str]
    refusals: Sequence[str]
    platforms: Mapping[str, str]
    software: Mapping[str, str]
    scales: ScaleTable
    reasons: Mapping[str, PrecisionReason]
    rejected: Sequence[RejectedSegment] = ()
    memory_warnings: Sequence[str] = ()
    quantized_operators: Sequence[OperatorRule] = ()
    left: Sequence[LeftLayer] = ()
    errors: Sequence[DryfitError] = attrs.field(default=(), eq=lambda errors: [*map(str, errors)])

    @property
    def can_be_built(self) -> bool:
        """Whether a build finds a place for every part of the network, and all else that it asks for."""
        return not self.errors


def assess(network: Network, config: BuilderConfig) -> Assessment:
    """What a build of the network with this config would do.

    Dynamic dimensions without a profile are reckoned as 1 in sizes, and as dynamic by the rules of devices.

    Raises:
        NetworkError: the network is wrong; all problems are listed.
        ConfigError: config and network, or parts of the config, do not fit together. What only keeps them from being a
            standalone loadable stands in `errors` instead, beside the placement.
        BuildError: a pass fails, or the config's progress monitor cancelled.

    Example:
        >>> assessment = assess(network, config)
        >>> [layer.layer for layer in assessment.layers if layer.device == "GPU"]
        ['prob']
    """
    return assessment_of(design_for_assessment(network, config), config)


def design_for_assessment(network: Network, config: BuilderConfig) -> Design:
    """The decisions that an assessment tells of. Raises what `assess` raises."""
    check_refit_flags(config, network)
    observer = build_observer(network, config)
    try:
        with Stages(f"Assessing {network.name}", NUM_STAGES, config.progress_monitor, observer=observer) as stages:
            return design_network(network, config, stages)
    finally:
        observer.build_finished(None)


def assessment_of(design: Design, config: BuilderConfig) -> Assessment:
    """What is told of these decisions, which were made with this config."""
    variants = {variant.device: variant for variant in design.variants.values()}
    return Assessment(
        network=design.network.name,
        layers=design.layer_placements(),
        verdicts=design.assignment.verdicts,
        segments=segment_records(design),
        reformats=design.formats.reformats,
        warnings=design.warnings,
        refusals=refusals_of(design),
        platforms={device: variant.platform.name for device, variant in variants.items()},
        software={device: variant.software_text for device, variant in variants.items()},
        scales=design.scales,
        reasons=design.precisions.reasons,
        rejected=design.partition.rejected,
        memory_warnings=design.memory_warnings,
        quantized_operators=operator_rules(design.network),
        left=design.operators.left,
        errors=build_errors(design, config),
    )


def segment_records(design: Design) -> list[Segment]:
    """The segments as plans and assessments show them."""
    border = {tensor.name for tensor in design.network.outputs}
    records = []
    for index, run in enumerate(design.partition.runs):
        members = {layer.name for layer in run.layers}
        variant = design.variants[run.device]
        records.append(
            Segment(
                index=index,
                device=run.device,
                layers=[layer.name for layer in run.layers],
                inputs=_unique(
                    tensor
                    for layer in run.layers
                    for tensor in layer.inputs
                    if tensor is not None and design.carries_data(tensor) and not _is_from(tensor, members)
                ),
                outputs=_unique(
                    tensor
                    for layer in run.layers
                    for tensor in layer.outputs
                    if tensor.name in border or any(reader.name not in members for reader, _ in tensor.consumers)
                ),
                pools=design.pools(index),
                cut_cause=run.cut_cause,
                estimate=_kept_estimate(design, variant, run.layers),
            )
        )
    return records


def _kept_estimate(design: Design, variant: TargetVariant, layers: Sequence[Layer]) -> CostEstimate | None:
    """A segment's estimate without its steps, which `network_cost` tells; none where it depends on this machine."""
    if variant.target.segment_rules.is_host:
        return None
    found = segment_estimate(variant, layers, design.specs, design.precisions, design.sparse_layers)
    return None if found is None or found.is_nominal else attrs.evolve(found, steps=())


def _is_from(tensor: Tensor, members: set[str]) -> bool:
    return tensor.producer is not None and tensor.producer.name in members


def _unique(tensors: Iterable[Tensor]) -> list[str]:
    return list(dict.fromkeys(tensor.name for tensor in tensors))
