"""What a build would do, as it is told: the decisions of a design, and what a build would refuse of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import attrs

from dryfit.attrs_classes import frozen
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.decisions import decisions_of
from dryfit.builder.design import Design
from dryfit.builder.placement.roles import LayerRole
from dryfit.builder.precision.chosen import PrecisionReason
from dryfit.builder.refusals import build_errors, refusals_of
from dryfit.engine.plan import Decisions, RejectedSegment, Segment
from dryfit.engine.records import fields_of
from dryfit.errors import DryfitError
from dryfit.network.layers.quantized_operator import QuantizedOperator
from dryfit.network.network import Network
from dryfit.network.tensor import Shape, Tensor
from dryfit.passes.findings import LeftLayer
from dryfit.passes.quantized_operators.operator_of_group import rule_of
from dryfit.plugins.quantize_methods import quantize_method
from dryfit.quantization.methods.operators import operator_of
from dryfit.quantization.scale_table import ScaleTable


class LayerEdge(NamedTuple):
    """A tensor on its way from one layer to another.

    Attributes:
        tensor: name of the tensor.
        source: layer that writes it; None for an input of the network.
        destination: layer that reads it; None for an output of the network.
        shape: shape at the optimum of the first profile.
    """

    tensor: str
    source: str | None
    destination: str | None
    shape: Shape


@frozen(kw_only=True)
class Assessment(Decisions):
    """The decisions about a network that was not built, and what a build would refuse.

    The pools of its segments are those of the engine that a build makes of them.

    Attributes:
        network: name of the network.
        refusals: what unplaced and copies that may not be made, each for itself, in words.
        platforms: device to platform, for the devices in use.
        software: device to software version.
        scales: the INT8 scales of the network's tensors.
        reasons: layer name to why it is computed in the type that it is computed in.
        memory_warnings: those of the warnings about segments that were cut to fit and limits that were lowered.
        quantized_operators: which layers quantize methods compute, and by which rules.
        left: layers that stay in floating point though the network has a quantize method, with the reasons.
        errors: what a build raises for these decisions, in its words.
        edges: tensors between the layers, in the order of their readers. Constants are left out.
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
    edges: Sequence[LayerEdge] = ()

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
        scales=design.network_scales.table,
        reasons=design.precisions.reasons,
        memory_warnings=design.memory_warnings,
        quantized_operators=operator_rules(design.network),
        left=design.canonical.found.operators.left,
        errors=build_errors(design, config),
        edges=_edges(design),
    )


def _edges(design: Design) -> list[LayerEdge]:
    network, roles, specs = design.network, design.assignment.roles, design.specs
    layers = [layer for layer in network.layers if roles[layer.name] is not LayerRole.CONSTANT]
    writers: dict[str, str | None] = {tensor.name: None for tensor in network.inputs}
    writers |= {tensor.name: layer.name for layer in layers for tensor in layer.outputs}
    readers: list[tuple[str | None, Sequence[Tensor | None]]] = [(layer.name, layer.inputs) for layer in layers]
    return [
        LayerEdge(tensor.name, writers[tensor.name], reader, (specs.get(tensor.name) or tensor.spec).shape)
        for reader, tensors in [*readers, (None, network.outputs)]
        for tensor in dict.fromkeys(tensors)
        if tensor is not None and tensor.name in writers
    ]


@frozen
class OperatorRule:
    """A quantized operator and the rule of its arithmetic.

    Attributes:
        layer: name of the operator's layer, which is that of the user's layer that it represents.
        method: the quantize method.
        operator: name in `dryfit.quantization.methods.operators.OPERATORS`.
        formula: of the rule, in one line; "" where the method is not installed any more.
        fidelity: `documented`, `inferred` or `confirmed`; "" as above.
        source: what says or confirms it; "" as above.
    """

    layer: str
    method: str
    operator: str
    formula: str = ""
    fidelity: str = ""
    source: str = ""


def operator_rules(network: Network) -> Sequence[OperatorRule]:
    """The rules of a network's quantized operators, in its order.

    Args:
        network: as it is built, or of an engine, whose methods may be installed or not.
    """
    return [_rule(layer) for layer in network.layers if isinstance(layer, QuantizedOperator)]


def _rule(layer: QuantizedOperator) -> OperatorRule:
    specs = [None if tensor is None else tensor.spec for tensor in layer.inputs]
    try:
        rule = rule_of(layer, specs, quantize_method(layer.method))
    except DryfitError:
        return OperatorRule(layer.name, layer.method, operator_of(layer.real_layer()) or layer.computes)
    return OperatorRule(layer.name, layer.method, rule.operator, rule.formula, rule.fidelity, rule.source)


@frozen
class Offloading:
    """What became of the candidates of one device.

    Attributes:
        device: it.
        candidates: how many segments were to be its.
        offloaded: how many are.
        pools: memory pool to the bytes that these need in all.
        rejected: the others.
    """

    device: str
    candidates: int
    offloaded: int
    pools: Mapping[str, int]
    rejected: Sequence[RejectedSegment]

    def __str__(self) -> str:
        pools = ", ".join(f"{size} bytes of {pool}" for pool, size in self.pools.items())
        return f"{self.device} segments: {self.offloaded} of {self.candidates} accepted; total memory: {pools}"


def offloadings(segments: Sequence[Segment], rejected: Sequence[RejectedSegment]) -> list[Offloading]:
    """One record for each device that has memory pools for its segments, or lost one of them."""
    devices = [one.device for one in segments if one.pools] + [one.device for one in rejected]
    return [_of_device(device, segments, rejected) for device in dict.fromkeys(devices)]


def _of_device(device: str, segments: Sequence[Segment], rejected: Sequence[RejectedSegment]) -> Offloading:
    own = [one for one in segments if one.device == device]
    lost = [one for one in rejected if one.device == device]
    pools: dict[str, int] = {}
    for one in own:
        for pool, size in one.pools.items():
            pools[pool] = pools.get(pool, 0) + size
    return Offloading(device, len(own) + len(lost), len(own), pools, lost)
