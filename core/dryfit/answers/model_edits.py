"""Apply model edits, verify and measure them, and write the model: `dryfit.apply_edits`, `dryfit explain --apply`.

This module also places a model for an edit and computes the cost; `dryfit.explain` uses it to measure edits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Unpack

import attrs
from onnx import ModelProto

from dryfit.answers.asked import Asked, Model, asked, load_network, quiet_log
from dryfit.answers.builder_config import config_of
from dryfit.answers.json_data import hidden
from dryfit.answers.options import Options
from dryfit.answers.placement import LayerAnswer, Placement, placement_of
from dryfit.answers.placement_text import LISTED_NAMES, has_left
from dryfit.answers.text import Answer, Block, Line, bytes_text, overlay_lines
from dryfit.atomic_file import refuse_to_overwrite
from dryfit.attrs_classes import frozen
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.design import Design
from dryfit.building import design_of_trial
from dryfit.engine.progress import ProgressMonitor
from dryfit.errors import ConfigError
from dryfit.network.network import Network
from dryfit.onnx.edit_report import Cost, Measure
from dryfit.onnx.editing.edit import EditChoice, all_edits, require_places
from dryfit.onnx.editing.edit import apply_edits as edited_model
from dryfit.onnx.editing.equality import Proof, prove_equal
from dryfit.onnx.external_data import ExternalData
from dryfit.onnx.model_file import SharedModel, read_model, write_model
from dryfit.onnx.parser import network_from_onnx
from dryfit.passes.findings import LeftLayer
from dryfit.reference.inference import infer_specs

_FIGURES = {"refused_layers": "layers leave", "loadables": "loadables", "border_bytes": "at borders"}
"""What is compared of two placements, with its words."""


@frozen(eq=False)
class PlacedModel:
    """A model placed on its device.

    Attributes:
        placement: device of each layer, with the reasons.
        macs: multiply-accumulates by layer name.
        left: layers that stay in floating point although the network has a quantize method.
        design: decisions behind the placement.
    """

    placement: Placement
    macs: Mapping[str, int]
    left: Sequence[LeftLayer]
    design: Design

    @property
    def leaving(self) -> Sequence[LayerAnswer]:
        """The layers that the requested device rejects, or that moved away from it."""
        return [layer for layer in self.placement.layers if has_left(layer, self.placement.device)]

    @property
    def cost(self) -> Cost:
        """The cost of the placement."""
        summary = self.placement.summary
        return Cost(
            refused_layers=len(self.leaving),
            loadables=summary.segments_by_device.get(self.placement.device, 0),
            border_bytes=None if summary.unplaced_layers else summary.reformat_bytes,
            macs_off_device=sum(self.macs.get(layer.name, 0) for layer in self.leaving),
        )


def placed_as_asked(subject: Asked) -> PlacedModel:
    """Place the layers of a model. Raises what `dryfit.building.assess` raises."""
    network = subject.network
    settings = subject.config.settings(network)
    placement = placement_of(subject.name, subject.assessment, settings, subject.assumed, network)
    specs = infer_specs(network)
    macs = {layer.name: layer.multiply_accumulates(specs) for layer in network.layers}
    return PlacedModel(placement, macs, subject.assessment.left, subject.design)


def _cost(network: Network, config: BuilderConfig) -> Cost:
    """The cost of a network's placement."""
    return placed_as_asked(Asked("", network, config, None, decided={"design": design_of_trial(network, config)})).cost


def measure_of(
    subject: Asked, progress: ProgressMonitor | None = None, external: ExternalData | None = None
) -> Measure:
    """Return a function that places an edited model with the original settings and returns its cost.

    Args:
        subject: the original model.
        progress: monitor that receives the progress, and can cancel.
        external: where the edited models have their external data; None for the folder of the original model.
    """
    found = ExternalData(subject.folder) if external is None else external

    def measured(model: ModelProto) -> Cost:
        source = SharedModel(model, found)
        if subject.options is None:
            return _cost(network_from_onnx(source), subject.config)
        network = load_network(source, subject.options, subject.folder)
        config, _ = config_of(network, subject.options)
        config.progress_monitor = progress
        return _cost(network, config)

    return measured


def fixed_shapes(subject: Asked) -> dict[str, tuple[int, ...]]:
    """Return the shapes of inputs that have a single shape and no range, by input name."""
    said = {} if subject.options is None else subject.options.shape
    return {name: shapes[0] for name, shapes in said.items() if len(shapes) == 1}


# Applying edits -------------------------------------------------------------------------------------------------------


@frozen
class AppliedEdit:
    """A model edit that was applied.

    Attributes:
        id: edit id, as used by `--apply`.
        title: short description of the edit.
        nodes: ONNX nodes that the edit rewrote.
    """

    id: str
    title: str
    nodes: Sequence[str]


@frozen(repr=False)
class EditedModelAnswer(Answer):
    """An edited model that was verified to compute the same results.

    Attributes:
        model: path or name of the original model.
        output: file that was written; None for none.
        device: device that the edits target.
        overlays: active overlays, each with its author, its board and a digest.
        edits: edits that were applied, in order.
        proof: comparison of the edited model with the original.
        before: cost of the original model's placement.
        after: cost of the edited model's placement.
        edited: the edited ONNX model.
        notes: remarks on options that were adjusted.

    Example:
        >>> answer = dryfit.apply_edits("digits.onnx", "gemm-convolution", device="DLA")
        >>> answer.before.refused_layers, answer.after.refused_layers
        (4, 3)
    """

    COMMAND: ClassVar[str] = "explain --apply"

    model: str
    output: str | None
    device: str
    overlays: Sequence[str]
    edits: Sequence[AppliedEdit]
    proof: Proof
    before: Cost
    after: Cost
    _edited: ModelProto = attrs.field(eq=False)
    notes: Sequence[str] = hidden(())

    @property
    def edited(self) -> ModelProto:
        """The edited ONNX model."""
        return self._edited

    def blocks(self, *, verbose: bool = False) -> Iterator[Block]:  # noqa: ARG002  there is no more to show
        """Return the lines and tables that `dryfit explain --apply` prints."""
        yield from overlay_lines(self.overlays)
        for edit in self.edits:
            yield Line(f"{edit.id}: {edit.title}, at {', '.join(edit.nodes)}")
        values = self.proof.values
        more = f" and {len(values) - LISTED_NAMES} more" if len(values) > LISTED_NAMES else ""
        yield Line(
            f"Verified equal on random inputs ({len(self.proof.seeds)} seeds): {', '.join(values[:LISTED_NAMES])}{more}"
            f" within {self.proof.tolerance:.2g} of their ranges"
        )
        if self.before.refused_layers:
            yield Line(f"On {self.device}: {change_text(self.before, self.after)}")
        if self.output is not None:
            yield Line(f"Written to {self.output}")

    def summary_line(self) -> str:
        """Return a one-line summary of the answer."""
        return f"{self.model} with {', '.join(edit.id for edit in self.edits)}: {change_text(self.before, self.after)}"


def apply_edits(
    model: Model,
    edits: str | Sequence[str],
    output: str | Path | None = None,
    config: BuilderConfig | None = None,
    *,
    force: bool = False,
    **options: Unpack[Options],
) -> EditedModelAnswer:
    """Apply edits to an ONNX model, verify that it computes the same, measure the savings, and write it.

    Args:
        model: a path, an ONNX model, or a PyTorch module with `example_inputs`; it is not modified.
        edits: edit ids from `dryfit.explain`, each applied everywhere or at one node: `"rank-four@pool5"`.
        output: path of the file to write; None for none.
        config: build settings; None to use the options.
        force: whether to overwrite the output, even if it is the model itself.
        options: keyword arguments named like the options of `dryfit explain`, with the same defaults.

    Raises:
        ConfigError: No edit is given, the output exists, or the model is a network, which has no ONNX nodes to edit.
        UnknownNameError: An edit or node does not exist.
        OnnxImportError: An edit does not apply, the edited model computes other results, or it cannot be written.

    Example:
        >>> answer = dryfit.apply_edits("digits.onnx", "gemm-convolution", device="DLA")
        >>> answer.edits[0].nodes
        ['classifier']
    """
    texts = [edits] if isinstance(edits, str) else edits
    choices = [EditChoice.parsed(one) for text in texts for one in text.split(",") if one.strip()]
    if not choices:
        raise ConfigError(
            "The option must name an edit",
            where="--apply",
            found=repr(edits),
            allowed=", ".join(all_edits()),
            remedy="Name one or more of these edits, or leave the option out",
        )
    if output is not None:
        refuse_to_overwrite(Path(output), force=force)
    subject = asked(model, config, options, needs_shapes=False)
    original = subject.require_onnx("An edit")
    folder = subject.folder or Path()
    with quiet_log():
        source, external = read_model(original, subject.folder)
        measure = measure_of(subject)
        before = placed_as_asked(subject).cost
        edited = edited_model(source, external, choices, fixed_shapes(subject))
        require_places(edited)
        shapes = {} if subject.options is None else subject.options.shape
        best_shapes = {name: one[len(one) // 2] for name, one in shapes.items()}
        proof = prove_equal(source, edited.model, subject.folder, best_shapes)
        after = measure(edited.model)
    if output is not None:
        write_model(edited.model, Path(output), external, folder)
    return EditedModelAnswer(
        model=subject.name,
        output=None if output is None else str(output),
        device=subject.config.default_device_type,
        overlays=subject.config.overlay_labels,
        edits=[
            AppliedEdit(choice.text, choice.edit.title, list(places))
            for choice, places in zip(choices, edited.places, strict=True)
        ],
        proof=proof,
        before=before,
        after=after,
        edited=edited.model,
        notes=subject.notes,
    )


def change_text(before: Cost, after: Cost) -> str:
    """Return the change between two placements: `4 -> 3 layers leave, 2 loadables, 1.5 KiB -> 1.0 KiB at borders`."""
    return ", ".join(f"{text} {words}" for text, words in zip(changes(before, after), _FIGURES.values(), strict=True))


def changes(before: Cost, after: Cost) -> list[str]:
    """Return the change in leaving layers, loadables and border bytes; a single value if unchanged."""
    found = []
    for name in _FIGURES:
        old, new = (_figure(name, getattr(cost, name)) for cost in (before, after))
        found.append(old if old == new else f"{old} -> {new}")
    return found


def _figure(name: str, value: int | None) -> str:
    if value is None:
        return "unknown"
    return bytes_text(value) if name == "border_bytes" else str(value)
