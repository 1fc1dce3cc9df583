"""The outcome of each quantize and dequantize layer of the user's network, or why it remains a step of its own.

It combines three sources: the journal of the passes that moved, merged and folded layers; the fusion groups, which
require no kernel to be compiled or measured; and, for layers that remain, their neighbors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from dryfit.answers.traced_quantization import Obstacles, QuantizationOutcome, TracedQuantization
from dryfit.attrs_classes import frozen
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.config.quantization_mode import is_explicit
from dryfit.builder.design import Design
from dryfit.builder.fusion.fuse import choose_kernels
from dryfit.builder.fusion.groups import FusedGroup
from dryfit.builder.fusion.lowering import LoweredNetwork
from dryfit.builder.kernels.choice import optimum_specs
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.quantization import Dequantize, Quantize
from dryfit.network.network import Network
from dryfit.quantization.rewrites import Rewrite, RewriteAction
from dryfit.target.group import SegmentGroup

_TYPES = " x "
"""Between the types of two operands."""


@frozen
class QuantizationTrace:
    """The outcomes of all Q/DQ layers, and the amount of computation by type.

    Attributes:
        quantizations: Q/DQ layers in the order of the user's network.
        macs_by_type: multiply-accumulates by operand type; empty if there are no steps.
        computed_in: operand type by layer name, for layers whose step has quantized operands.
    """

    quantizations: Sequence[TracedQuantization]
    macs_by_type: Mapping[str, int]
    computed_in: Mapping[str, str] = attrs.field(factory=dict)

    @property
    def integer_share(self) -> float:
        """Share of multiply-accumulates whose operands are all integers; 0 if there are none."""
        total = sum(self.macs_by_type.values())
        whole = sum(
            count
            for name, count in self.macs_by_type.items()
            if all(DataType[one].is_integer for one in name.split(_TYPES))
        )
        return whole / total if total else 0.0


def trace_quantizations(network: Network, design: Design, config: BuilderConfig) -> QuantizationTrace:
    """Follow every quantize and dequantize layer of a network through the build decisions. Compiles nothing.

    Raises:
        BuildError: No kernel can run one of the layers.
    """
    if not is_explicit(network):
        return QuantizationTrace((), _macs_by_precision(design))
    groups: Sequence[FusedGroup] = ()
    lowered: LoweredNetwork | None = None
    if not design.refusals and not design.formats.problems:
        lowered = design.cut.lowered
        groups = choose_kernels(design.cut.groups, design.cut.choice)
    tracer = _Tracer(design, lowered, groups)
    quantizations = [tracer.trace(layer) for layer in network.layers if isinstance(layer, (Quantize, Dequantize))]
    macs = {} if lowered is None else _macs_by_type(lowered, groups, config)
    return QuantizationTrace(quantizations, macs, _computed_in(groups))


class _Tracer:
    """Traces Q/DQ layers one after another."""

    def __init__(self, design: Design, lowered: LoweredNetwork | None, groups: Sequence[FusedGroup]) -> None:
        self._design = design
        self._lowered = lowered
        self._obstacles = Obstacles(groups)
        self._groups: dict[str, list[FusedGroup]] = {}
        for fused in groups:
            for layer in fused.group.layers:
                self._groups.setdefault(layer.name, []).append(fused)
        self._versions: dict[str, list[Layer]] = {}
        for layer in (lowered or design).network.layers:
            if isinstance(layer, (Quantize, Dequantize)):
                self._versions.setdefault(design.canonical.found.rewrites.origin(layer.name), []).append(layer)

    def trace(self, layer: Quantize | Dequantize) -> TracedQuantization:
        """Return the outcome of the layer."""
        rewrites = tuple(self._design.canonical.found.rewrites.of(layer.name))
        versions = self._versions.get(layer.name, ())
        if not versions:
            gone = next((one for one in reversed(rewrites) if one.action in _GONE), None)
            if gone is not None:
                return TracedQuantization(layer, _GONE[gone.action], gone.over, "", gone.reason, rewrites)
            return self._without_version(layer, rewrites)
        if self._lowered is None:
            reason = "Layers of the network cannot be placed on any device"
            return TracedQuantization(layer, QuantizationOutcome.UNPLACED, reason=reason, rewrites=rewrites)
        return self._placed(layer, versions, rewrites)

    def _without_version(self, layer: Quantize | Dequantize, rewrites: tuple[Rewrite, ...]) -> TracedQuantization:
        for made, outcome in (
            (self._design.canonical.found.claims, QuantizationOutcome.CLAIMED),
            (self._design.canonical.found.operators, QuantizationOutcome.OPERATOR),
        ):
            taker = made.taken.get(layer.name)
            if taker is not None:
                return TracedQuantization(layer, outcome, (taker,), "inside", made.causes[taker], rewrites)
        reason = "Its result is not used"
        return TracedQuantization(layer, QuantizationOutcome.REMOVED, reason=reason, rewrites=rewrites)

    def _placed(
        self, layer: Quantize | Dequantize, versions: Sequence[Layer], rewrites: tuple[Rewrite, ...]
    ) -> TracedQuantization:
        shared: list[FusedGroup] = []
        parts: list[str] = []
        alone: list[Layer] = []
        for one in versions:
            for fused in self._groups.get(one.name, ()):
                part = _part(fused, one)
                if part:
                    shared.append(fused)
                    parts.append(part)
                else:
                    alone.append(one)
        steps = tuple(dict.fromkeys(fused.group.main.name for fused in shared))
        part = ", ".join(dict.fromkeys(parts))
        if not alone:
            reason = f"Part of {', '.join(map(repr, steps))}"
            return TracedQuantization(layer, QuantizationOutcome.FUSED, steps, part, reason, rewrites)
        outcome = QuantizationOutcome.PARTLY if shared else QuantizationOutcome.ALONE
        reasons = dict.fromkeys(self._obstacles.reason(one) for one in alone)
        return TracedQuantization(layer, outcome, steps, part, "; ".join(reasons), rewrites)


_GONE = {
    RewriteAction.FOLDED: QuantizationOutcome.FOLDED,
    RewriteAction.MERGED: QuantizationOutcome.MERGED,
    RewriteAction.CANCELLED: QuantizationOutcome.CANCELLED,
}
"""The actions after which a layer is gone."""


def _part(fused: FusedGroup, layer: Layer) -> str:
    """Return the role of a layer in a step; "" if the step only quantizes, dequantizes or both."""
    group = fused.group
    if isinstance(group, SegmentGroup):
        return "inside"
    if all(isinstance(one, (Quantize, Dequantize)) for one in group.layers):
        return ""
    if layer in group.prologue:
        return "input"
    if layer is group.layers[-1]:
        return "output"
    return "input" if isinstance(layer, Dequantize) and layer.inputs[0] in group.inputs else "inside"


def _macs_by_type(lowered: LoweredNetwork, groups: Sequence[FusedGroup], config: BuilderConfig) -> dict[str, int]:
    """Return multiply-accumulates by operand type, largest first."""
    specs: Mapping[str, Any] = optimum_specs(lowered.network, config)
    pairs = [(operand_type(fused, layer), layer) for fused in groups for layer in fused.group.layers]
    return _added_up((name, layer.multiply_accumulates(specs)) for name, layer in pairs)


def _computed_in(groups: Sequence[FusedGroup]) -> dict[str, str]:
    found = {}
    for fused in groups:
        main, layers = fused.group.main, fused.group.layers
        for layer in layers:
            own = quantized_type(fused, layer if isinstance(fused.group, SegmentGroup) else main)
            if own and not isinstance(layer, (Quantize, Dequantize)):
                found[layer.name] = own
    return found


def _macs_by_precision(design: Design) -> dict[str, int]:
    """Return multiply-accumulates by layer precision, for a network without explicit quantization."""
    layers = [layer for layer in design.network.layers if layer.name in design.precisions.layers]
    return _added_up(
        (design.precisions.layers[layer.name].name, layer.multiply_accumulates(design.specs)) for layer in layers
    )


def _added_up(pairs: Iterable[tuple[str, int]]) -> dict[str, int]:
    counts = Counter[str]()
    for name, count in pairs:
        counts[name] += count
    return {name: count for name, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])) if count}


def operand_type(fused: FusedGroup, layer: Layer) -> str:
    """Return the type that a layer multiplies in: that of its operands if all are quantized, else of its result."""
    return quantized_type(fused, layer) or layer.outputs[0].dtype.name


def quantized_type(fused: FusedGroup, layer: Layer) -> str:
    """Return the type or types of a layer's operands if its step dequantizes all of them; else ""."""
    inside = {one.name for one in fused.group.layers}
    operands = [tensor for tensor in layer.inputs[:2] if tensor is not None]
    sources = [
        tensor.producer.inputs[0]
        for tensor in operands
        if isinstance(tensor.producer, Dequantize) and tensor.producer.name in inside
    ]
    if not operands or len(sources) < len(operands) or getattr(layer, "kernel", None) is not None:
        return ""
    return _TYPES.join(sorted({source.dtype.name for source in sources if source is not None}))
