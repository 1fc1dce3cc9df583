"""Explain the quantization of a model: `dryfit.explain_quantization` and `dryfit explain --quantization`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, ClassVar, Unpack

import attrs

from dryfit.answers.asked import Defaults, Model, asked, quiet_log
from dryfit.answers.defaults import with_defaults
from dryfit.answers.json_data import Count, hidden
from dryfit.answers.options import NetworkOptions, Options
from dryfit.answers.placement import PlacementHeading, placement_of, unknown_layer
from dryfit.answers.placement_text import heading
from dryfit.answers.quantization_text import quantization_blocks, summary_text
from dryfit.answers.quantization_trace import QuantizationTrace, trace_quantizations
from dryfit.answers.text import Answer, Block
from dryfit.answers.traced_quantization import TracedQuantization
from dryfit.attrs_classes import frozen
from dryfit.builder.assessment import Assessment
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.config.quantization_mode import is_explicit
from dryfit.builder.precision.chosen import PrecisionCause
from dryfit.engine.plan import LayerPlacement
from dryfit.network.network import Network
from dryfit.quantization.scale_table import RangeConflict, ScaleEntry


@frozen
class LayerPrecision:
    """The precision of a layer, and the reason for it.

    Attributes:
        name: name of the layer in the network.
        kind: kind of the layer.
        onnx_nodes: names of the ONNX nodes that the layer was imported from.
        device: device that runs the layer; None for an unplaced layer.
        precision: computation type of the layer; the type of its operands if Q/DQ layers are fused into its step.
        cause: what determined the precision; None for an unplaced layer and for a shape computation.
        reason: reason for the precision, as a sentence.
        missing_scales: tensors of the layer without a scale, if a missing scale is the cause.
    """

    name: str
    kind: str
    onnx_nodes: Sequence[str]
    device: str | None
    precision: str
    cause: PrecisionCause | None
    reason: str
    missing_scales: Sequence[str]


@frozen
class QuantizationSummary:
    """Counts over the explained layers; multiply-accumulates are those of the whole network.

    Attributes:
        layers: number of layers, not counting Q/DQ.
        fallback_layers: number of layers, including Q/DQ, that do not run on their assigned device.
        layers_by_precision: number of layers by precision.
        quantizations: number of quantize and dequantize layers.
        quantizations_by_outcome: number of Q/DQ layers by outcome.
        tensors: number of listed tensors.
        tensors_by_origin: number of tensors by origin of their scale.
        macs: multiply-accumulates per run.
        macs_by_type: multiply-accumulates by operand type.
        macs_integer_share: share of multiply-accumulates whose operands are all integers.
    """

    layers: Count
    fallback_layers: Count
    layers_by_precision: Mapping[str, Count]
    quantizations: Count
    quantizations_by_outcome: Mapping[str, Count]
    tensors: Count
    tensors_by_origin: Mapping[str, Count]
    macs: Count
    macs_by_type: Mapping[str, Count]
    macs_integer_share: Annotated[float, ("minimum", 0)]


@frozen(repr=False)
class QuantizationAnswer(PlacementHeading, Answer):
    """The precision of each layer with its reason, the scale of each tensor, and the outcome of each Q/DQ layer.

    Attributes:
        simulated: which aspects of the device are simulated.
        plugins: active plugins, each as `name version (distribution)`; sorted.
        assumed: defaults that were applied, as command-line options.
        layer: requested layer; None for all.
        layers: layers in network order; constants are listed with their readers, Q/DQ layers in `quantizations`.
        quantizations: quantize and dequantize layers, in model order.
        tensors: floating-point tensors that are not constants, in network order; empty if Q/DQ layers hold the scales.
        conflicts: conflicting ranges.
        unknown: names with a scale that do not match any tensor of the network.
        warnings: one sentence for each layer or segment that fell back, and for each request that was not granted.
        summary: totals of the network.
        notes: remarks on options that were adjusted.

    Example:
        >>> answer = dryfit.explain_quantization("digits.onnx")
        >>> answer.summary.tensors_by_origin
        {'missing': 15}
    """

    COMMAND: ClassVar[str] = "explain --quantization"

    simulated: str
    plugins: Sequence[str]
    assumed: Sequence[str]
    layer: str | None
    layers: Sequence[LayerPrecision]
    quantizations: Sequence[TracedQuantization]
    tensors: Sequence[ScaleEntry]
    conflicts: Sequence[RangeConflict]
    unknown: Sequence[str]
    warnings: Sequence[str]
    summary: QuantizationSummary
    notes: Sequence[str] = hidden(())

    def blocks(self, *, verbose: bool = False) -> Iterator[Block]:  # noqa: ARG002  there is no more to show
        """Return the lines and tables that `dryfit explain --quantization` prints."""
        return quantization_blocks(self)

    def summary_line(self) -> str:
        """Return a one-line summary of the answer."""
        return f"{heading(self)}: {summary_text(self.summary)}"


def explain_quantization(
    model: Model, layer: str | None = None, config: BuilderConfig | None = None, **options: Unpack[Options]
) -> QuantizationAnswer:
    """Explain the precision of each layer, the scale of each tensor, and the outcome of each Q/DQ layer.

    Args:
        model: a path, an ONNX model, a network, or a PyTorch module with `example_inputs`.
        layer: name of a layer or of an ONNX node; None for all. Tensors and Q/DQ layers are limited to these layers.
        config: build settings; None to use the options.
        options: keyword arguments named like the options of `dryfit explain`, with the same defaults, except the
            precision: it defaults to INT8 for a model without Q/DQ, and a model with Q/DQ needs none.

    Raises:
        UnknownNameError: A layer, device, platform or option value does not exist.
        ConfigError: The options, the config and the model conflict.
        NetworkError: The network is invalid; the message lists all problems.
        OnnxImportError: The model is corrupt or has unsupported operators.
        BuildError: No kernel can run one of the layers.

    Example:
        >>> answer = dryfit.explain_quantization("digits.onnx", "conv1")
        >>> answer.layers[0].reason
        "No scale for 'image'"
    """
    subject = asked(model, config, options, defaults_of=_defaults, needs_shapes=False, shares=True)
    network, chosen, design, assessment = subject.network, subject.config, subject.design, subject.assessment
    with quiet_log():
        trace = trace_quantizations(network, design, chosen)
        placement = placement_of(subject.name, assessment, chosen.settings(network), subject.assumed)
    layers, quantizations = _chosen(assessment, trace, layer)
    names = {one.layer for one in layers}
    is_stated = is_explicit(network)
    tensors = [
        entry
        for entry in assessment.scales.entries.values()
        if not is_stated and (layer is None or names.intersection(entry.needed_by))
    ]
    precisions = [_layer(one, assessment, trace.computed_in.get(one.layer)) for one in layers]
    return QuantizationAnswer(
        **{field.name: getattr(placement, field.name) for field in attrs.fields(PlacementHeading)},
        simulated=placement.simulated,
        plugins=placement.plugins,
        assumed=placement.assumed,
        layer=layer,
        layers=precisions,
        quantizations=quantizations,
        tensors=tensors,
        conflicts=assessment.scales.conflicts,
        unknown=assessment.scales.unknown,
        warnings=assessment.warnings,
        summary=QuantizationSummary(
            layers=len(layers),
            fallback_layers=placement.summary.fallback_layers,
            layers_by_precision=_counted(one.precision for one in precisions),
            quantizations=len(quantizations),
            quantizations_by_outcome=_counted(one.outcome.value for one in quantizations),
            tensors=len(tensors),
            tensors_by_origin=_counted(entry.origin.value for entry in tensors),
            macs=sum(trace.macs_by_type.values()),
            macs_by_type=dict(trace.macs_by_type),
            macs_integer_share=trace.integer_share,
        ),
        notes=subject.notes,
    )


def _defaults(network: Network) -> Defaults:
    """Return INT8 as the default for a network without Q/DQ; Q/DQ layers determine the precision by themselves."""
    precision = None if is_explicit(network) else "int8"

    def filled(options: NetworkOptions) -> tuple[NetworkOptions, list[str]]:
        return with_defaults(options, precision)

    return filled


def _counted(words: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(words).items()))


def _chosen(
    assessment: Assessment, trace: QuantizationTrace, name: str | None
) -> tuple[list[LayerPlacement], list[TracedQuantization]]:
    """Return the layers with this name or ONNX node name, and the Q/DQ layers of their steps; all if none is given."""
    quantizations = list(trace.quantizations)
    traced = {one.name for one in quantizations}
    layers = [one for one in assessment.layers if one.layer not in traced]
    if name is None:
        return layers, quantizations
    found = [one for one in layers if one.layer == name] or [one for one in layers if name in one.onnx_nodes]
    names = {one.layer for one in found}
    beside = [
        one
        for one in quantizations
        if one.name == name or name in one.onnx_nodes or names.intersection((one.name, *one.steps))
    ]
    if not found and not beside:
        known = {one.layer for one in layers} | {node for one in layers for node in one.onnx_nodes} | traced
        raise unknown_layer(name, known)
    return found, beside


def _layer(layer: LayerPlacement, assessment: Assessment, operands: str | None) -> LayerPrecision:
    """Return a layer with its precision, which is that of its operands if they are quantized."""
    reason = assessment.reasons.get(layer.layer)
    text = layer.cause if reason is None else reason.text
    return LayerPrecision(
        name=layer.layer,
        kind=layer.kind,
        onnx_nodes=list(layer.onnx_nodes),
        device=layer.device or None,
        precision=operands or layer.precision.name,
        cause=None if reason is None else reason.cause,
        reason=f"Its step reads {operands}, as the Q/DQ around it say" if operands else text,
        missing_scales=[] if reason is None else list(reason.tensors),
    )
