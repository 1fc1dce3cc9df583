"""Explain why layers leave a device, and which model edits avoid it: `dryfit.explain` and `dryfit explain`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Unpack

import attrs

from dryfit.answers.arithmetic import LayerArithmetic, arithmetic_of
from dryfit.answers.asked import Asked, Model, asked, quiet_log
from dryfit.answers.explain_text import explanation_blocks, explanation_line
from dryfit.answers.explained_layers import (
    ExplainedLayer,
    ExplainSummary,
    FailedRule,
    explained_layer,
    failed_rules,
    summary_of,
)
from dryfit.answers.json_data import Count, hidden
from dryfit.answers.model_edits import PlacedModel, fixed_shapes, measure_of, placed_as_asked
from dryfit.answers.network_cost import EstimatedPart
from dryfit.answers.options import Options
from dryfit.answers.placement import LayerAnswer, Placement, PlacementHeading, unknown_layer
from dryfit.answers.reformat_removal import (
    ExplainedReformat,
    IoFormats,
    Removals,
    explained_reformats,
    find_removals,
    io_formats_together,
)
from dryfit.answers.text import Answer, Block
from dryfit.attrs_classes import frozen
from dryfit.builder.assessment import OperatorRule
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.engine.progress import ProgressMonitor
from dryfit.json_names import json_names
from dryfit.onnx.edit_report import EditReport, Proposal, propose_edits
from dryfit.onnx.model_file import shared_model
from dryfit.passes.findings import LeftLayer
from dryfit.target.limits import shared_answers


@frozen
class EstimatedSegment(EstimatedPart):
    """The estimated cost of one run of a segment.

    Attributes:
        segment: index of the segment.
        device: device that runs the segment.
    """

    JSON_NAMES: ClassVar[Mapping[str, str]] = json_names(
        "segment device microseconds dram_bytes:bytes_moved macs basis source fidelity energy is_lower_bound "
        "error_factor is_nominal"
    )

    segment: Count
    device: str

    @property
    def is_nominal(self) -> bool:
        """Whether the estimate uses the figures of a stand-in for the requested machine."""
        return self.estimate is not None and self.estimate.is_nominal


@frozen
class UnmeasuredEdit:
    """A model edit that could not be measured.

    Attributes:
        id: edit id, as used by `--apply`.
        reason: why the edit could not be measured.
    """

    id: str
    reason: str


@frozen(repr=False)
class ExplainAnswer(PlacementHeading, Answer):
    """Why layers leave a device, what that costs, and which model edits would keep them on it.

    Attributes:
        simulated: which aspects of the device are simulated.
        plugins: active plugins, each as `name version (distribution)`; sorted.
        assumed: defaults that were applied, as command-line options.
        layer: requested layer; None for all.
        layers: layers in network order.
        causes: violated rules, the one that affects the most multiply-accumulates first.
        estimates: estimated cost of each segment, for devices whose targets provide estimates; never measured.
        arithmetic: arithmetic of each device, by computation type of its layers.
        quantized_operators: layers that a quantize method computes in integers, with the rule of the method.
        left: layers that stay in floating point although the network has a quantize method.
        reformats: copies between types, formats or devices, at the explained layers.
        io_formats: combined effect of all I/O formats that remove a reformat; None if there are none, or the search was
            off.
        dynamic_inputs: inputs with dynamic extents.
        summary: totals of the network.
        edits: suggested model edits, each measured alone, largest saving first.
        together: combined effect of all suggested edits; None with fewer than two.
        unmeasured_edits: edits that could not be measured.
        notes: remarks on options that were adjusted.

    Example:
        >>> answer = dryfit.explain("digits.onnx", device="DLA")
        >>> [(cause.rule, cause.layers) for cause in answer.causes if "elu2" in cause.layers]
        [('dla.activation.type', ['elu2'])]
    """

    COMMAND: ClassVar[str] = "explain"

    simulated: str
    plugins: Sequence[str]
    assumed: Sequence[str]
    layer: str | None
    layers: Sequence[ExplainedLayer]
    causes: Sequence[FailedRule]
    estimates: Sequence[EstimatedSegment]
    arithmetic: Sequence[LayerArithmetic]
    quantized_operators: Sequence[OperatorRule]
    left: Sequence[LeftLayer]
    reformats: Sequence[ExplainedReformat]
    io_formats: IoFormats | None
    dynamic_inputs: Sequence[str]
    summary: ExplainSummary
    edits: Sequence[Proposal]
    together: Proposal | None
    unmeasured_edits: Sequence[UnmeasuredEdit]
    notes: Sequence[str] = hidden(())

    def blocks(self, *, verbose: bool = False) -> Iterator[Block]:  # noqa: ARG002  there is no more to show
        """Return the lines and tables that `dryfit explain` prints."""
        return explanation_blocks(self)

    def summary_line(self) -> str:
        """Return a one-line summary of the answer."""
        return explanation_line(self)


def explain(
    model: Model,
    layer: str | None = None,
    config: BuilderConfig | None = None,
    *,
    edits: bool = True,
    progress: ProgressMonitor | None = None,
    **options: Unpack[Options],
) -> ExplainAnswer:
    """Explain why layers, or one layer, cannot run on a device, and which model edits would help.

    Each edit, and each input or output format that avoids a reformat, is measured by applying it to the model in
    memory. Edits rewrite ONNX nodes, so they are not available for a `dryfit.Network`; everything else is.

    Args:
        model: a path, an ONNX model, a network, or a PyTorch module with `example_inputs`.
        layer: name of a layer or of an ONNX node; None for all layers.
        config: build settings; None to use the options.
        edits: whether to search for edits, and for input and output formats.
        progress: monitor that receives the progress of the placement and of each trial, and can cancel.
        options: keyword arguments named like the options of `dryfit explain`, with the same defaults.

    Raises:
        UnknownNameError: A layer, device, platform or option value does not exist.
        ConfigError: The options, the config and the model conflict. A build that would fail does not raise.
        NetworkError: The network is invalid; the message lists all problems.
        OnnxImportError: The model is corrupt or has unsupported operators.
        ExecutionError: `progress` cancelled the work.

    Example:
        >>> answer = dryfit.explain("digits.onnx", "elu2", device="DLA")
        >>> answer.layers[0].violations[0].actual
        'ELU'
    """
    subject = asked(model, config, options, needs_shapes=False, shares=True)
    with quiet_log(), _watched(subject.config, progress), shared_answers():
        found = placed_as_asked(subject)
        chosen = _chosen(found.placement, layer)
        names = {one.name for one in chosen}
        leaving = [one for one in found.leaving if one.name in names]
        causes = failed_rules(found, leaving)
        removals = find_removals(subject.network, subject.config, found.design) if edits else None
        nodes = None if layer is None else {node for one in chosen for node in one.onnx_nodes}
        proposed = _edits(subject, found, causes, nodes, progress) if edits else None
    return _answer(subject, found, layer, chosen, leaving, causes, removals, proposed)


def _answer(
    subject: Asked,
    found: PlacedModel,
    layer: str | None,
    chosen: Sequence[LayerAnswer],
    leaving: Sequence[LayerAnswer],
    causes: Sequence[FailedRule],
    removals: Removals | None,
    proposed: EditReport | None,
) -> ExplainAnswer:
    placement, network = found.placement, subject.network
    names = {one.name for one in chosen}
    return ExplainAnswer(
        **{field.name: getattr(placement, field.name) for field in attrs.fields(PlacementHeading)},
        simulated=placement.simulated,
        plugins=placement.plugins,
        assumed=placement.assumed,
        layer=layer,
        layers=[explained_layer(found, one) for one in chosen],
        causes=causes,
        estimates=[
            EstimatedSegment(one.index, one.device, estimate=one.estimate)
            for one in placement.segments
            if one.estimate is not None
        ],
        arithmetic=arithmetic_of(chosen, subject.config.settings(network)),
        quantized_operators=[one for one in placement.quantized_operators if one.layer in names],
        left=[one for one in found.left if one.layer in names],
        reformats=explained_reformats(placement.reformats, network, names, removals),
        io_formats=io_formats_together(placement.reformats, network, removals),
        dynamic_inputs=[tensor.name for tensor in network.inputs if -1 in tensor.shape],
        summary=summary_of(found, leaving, len(chosen)),
        edits=[] if proposed is None else proposed.proposals,
        together=None if proposed is None else proposed.together,
        unmeasured_edits=[]
        if proposed is None
        else [UnmeasuredEdit(choice, why) for choice, why in proposed.unmeasured.items()],
        notes=subject.notes,
    )


@contextlib.contextmanager
def _watched(config: BuilderConfig, progress: ProgressMonitor | None) -> Iterator[None]:
    """Attach a monitor to a config temporarily; its own monitor is restored afterwards."""
    own = config.progress_monitor
    config.progress_monitor = own if progress is None else progress
    try:
        yield
    finally:
        config.progress_monitor = own


def _edits(
    subject: Asked,
    found: PlacedModel,
    causes: Sequence[FailedRule],
    nodes: set[str] | None,
    progress: ProgressMonitor | None,
) -> EditReport | None:
    """Return the suggested edits; None without an ONNX model, whose nodes the edits rewrite."""
    if subject.onnx_source is None:
        return None
    shared = shared_model(subject.onnx_source, subject.folder)
    return propose_edits(
        shared.model,
        shared.external,
        measure_of(subject, progress, shared.external),
        [cause.rule for cause in causes],
        fixed_shapes(subject),
        nodes,
        cost=found.cost,
        progress=progress,
    )


def _chosen(placement: Placement, name: str | None) -> Sequence[LayerAnswer]:
    """Return the layers with this name or ONNX node name; all layers if none is given."""
    layers = placement.layers
    if name is None:
        return layers
    found = [one for one in layers if one.name == name] or [one for one in layers if name in one.onnx_nodes]
    if not found:
        raise unknown_layer(name, {one.name for one in layers} | {node for one in layers for node in one.onnx_nodes})
    return found
