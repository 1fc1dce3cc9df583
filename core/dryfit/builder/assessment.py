"""What a build would do, as it is told: the decisions of a design, and what a build would refuse of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.decisions import decisions_of
from dryfit.builder.design import Design
from dryfit.builder.explicit_quantization.operator_rules import OperatorRule, operator_rules
from dryfit.builder.precision.reason import PrecisionReason
from dryfit.builder.refusals import build_errors, refusals_of
from dryfit.engine.plan import Decisions, fields_of
from dryfit.errors import DryfitError
from dryfit.passes.quantized_operators.form_quantized_operators import LeftLayer
from dryfit.quantization.scale_table import ScaleTable


@attrs.frozen(kw_only=True)
class Assessment(Decisions):
    """The decisions about a network that was not built, and what a build would refuse.

    The pools of its segments are those of the engine that a build makes of them.

    Attributes:
        network: name of the network.
        refusals: what can run nowhere and copies that may not be made, each for itself, in words.
        platforms: device to platform, for the devices in use.
        software: device to software version.
        scales: the INT8 scales of the network's tensors.
        reasons: layer name to why it is computed in the type that it is computed in.
        memory_warnings: those of the warnings about segments that were cut to fit and limits that were lowered.
        quantized_operators: which layers quantize methods compute, and by which rules.
        left: layers that stay in real numbers though the network has a quantize method, with the reasons.
        errors: what a build raises for these decisions, in its words.
    """

    network: str
    refusals: Sequence[str]
    platforms: Mapping[str, str]
    software: Mapping[str, str]
    scales: ScaleTable
    reasons: Mapping[str, PrecisionReason]
    memory_warnings: Sequence[str] = ()
    quantized_operators: Sequence[OperatorRule] = ()
    left: Sequence[LeftLayer] = ()
    errors: Sequence[DryfitError] = attrs.field(default=(), eq=lambda errors: [*map(str, errors)])

    @property
    def can_be_built(self) -> bool:
        """Whether a build finds a place for every part of the network, and all else that it asks for."""
        return not self.errors


def assessment_of(design: Design, config: BuilderConfig) -> Assessment:
    """What is told of these decisions, which were made with this config."""
    variants = {variant.device: variant for variant in design.variants.values()}
    return Assessment(
        **fields_of(Decisions, decisions_of(design)),
        network=design.network.name,
        refusals=refusals_of(design),
        platforms={device: variant.platform.name for device, variant in variants.items()},
        software={device: variant.software_text for device, variant in variants.items()},
        scales=design.scales,
        reasons=design.precisions.reasons,
        memory_warnings=design.memory_warnings,
        quantized_operators=operator_rules(design.network),
        left=design.operators.left,
        errors=build_errors(design, config),
    )
