"""A model with edits applied: proved, measured and written. `dryfit.apply_edits` and `dryfit explain --apply`.

How a model is placed for an edit, and what its placement costs, is here too: `dryfit.explain` measures edits with it.
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
from dryfit.answers.text import Answer, Block, Line, bytes_text
from dryfit.atomic_file import refuse_to_overwrite
from dryfit.builder.assessment import assessment_of
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.design import Design
from dryfit.building import design_for_assessment
from dryfit.engine.progress import ProgressMonitor
from dryfit.errors import ConfigError
from dryfit.network.network import Network
from dryfit.onnx.edit_report import Cost, Measure
from dryfit.onnx.editing.edit import EditChoice, all_edits, require_places
from dryfit.onnx.editing.edit import apply_edits as edited_model
from dryfit.onnx.editing.equality import Proof, prove_equal
from dryfit.onnx.model_file import read_model, write_model
from dryfit.onnx.parser import network_from_onnx
from dryfit.passes.findings import LeftLayer
from dryfit.reference.inference import infer_specs

_FIGURES = {"refused_layers": "layers leave", "loadables": "loadables", "border_bytes": "at borders"}
"""What is compared of two placements, with its words."""


@attrs.frozen(eq=False)
class PlacedModel:
    """A model on its device.

    Attributes:
        placement: where each layer runs, and why.
        macs: layer name to multiply-accumulates.
        left: layers that stay in floating point though the network has a quantize method.
        design: the decisions behind the placement.
    """

    placement: Placement
    macs: Mapping[str, int]
    left: Sequence[LeftLayer]
    design: Design

    @property
    def leaving(self) -> Sequence[LayerAnswer]:
        """The layers that the device that was asked for refuses, or that moved from it."""
        return [layer for layer in self.placement.layers if has_left(layer, self.placement.device)]

    @property
    def cost(self) -> Cost:
        """What the placement costs."""
        summary = self.placement.summary
        return Cost(
            refused_layers=len(self.leaving),
            loadables=summary.segments_by_device.get(self.placement.device, 0),
            border_bytes=None if summary.unplaced_layers else summary.reformat_bytes,
            macs_off_device=sum(self.macs.get(layer.name, 0) for layer in self.leaving),
        )


def placed(name: str, network: Network, config: BuilderConfig, assumed: Sequence[str] = ()) -> PlacedModel:
    """Where the layers of a network would run. Raises what `dryfit.building.assess` raises."""
    design = design_for_assessment(network, config)
    assessment = assessment_of(design, config)
    placement = placement_of(name, assessment, config.settings(network), assumed, network)
    specs = infer_specs(network)
    macs = {layer.name: layer.multiply_accumulates(specs) for layer in network.layers}
    return PlacedModel(placement, macs, assessment.left, design)


def measure_of(subject: Asked, progress: ProgressMonitor | None = None) -> Measure:
    """A function that places an edited model as the model was asked about, and returns what that costs."""

    def measured(model: ModelProto) -> Cost:
        if subject.options is None:
            return placed("", network_from_onnx(model, folder=subject.folder), subject.config).cost
        network = load_network(model, subject.options, subject.folder)
        config, _ = config_of(network, subject.options)
        config.progress_monitor = progress
        return placed("", network, config).cost

    return measured


def fixed_shapes(subject: Asked) -> dict[str, tuple[int, ...]]:
    """Input name to shape, for the inputs that got one shape and no range."""
    said = {} if subject.options is None else subject.options.shape
    return {name: shapes[0] for name, shapes in said.items() if len(shapes) == 1}


# Applying edits -------------------------------------------------------------------------------------------------------


@attrs.frozen
class AppliedEdit:
    """One edit that was applied.

    Attributes:
        id: id of the edit, as `--apply` takes it.
        title: what it does, in a few words.
        nodes: the ONNX nodes that it rewrote.
    """

    id: str
    title: str
    nodes: Sequence[str]


@attrs.frozen(repr=False)
class EditedModelAnswer(Answer):
    """A model with edits applied, which was proved to compute the same.

    Attributes:
        model: what the user calls the model that was edited.
        output: the file that was written; None for none.
        device: the device that the edits are for.
        edits: the edits that were applied, in order.
        proof: how the edited model was compared with the model as it was.
        before: what the placement of the model as it was costs.
        after: what that of the edited model costs.
        edited: the edited ONNX model.
        notes: remarks about options that were adjusted.

    Example:
        >>> answer = dryfit.apply_edits("digits.onnx", "gemm-convolution", device="DLA")
        >>> answer.before.refused_layers, answer.after.refused_layers
        (4, 3)
    """

    COMMAND: ClassVar[str] = "explain --apply"

    model: str
    output: str | None
    device: str
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
        """What `dryfit explain --apply` prints."""
        for edit in self.edits:
            yield Line(f"{edit.id}: {edit.title}, at {', '.join(edit.nodes)}")
        values = self.proof.values
        more = f" and {len(values) - LISTED_NAMES} more" if len(values) > LISTED_NAMES else ""
        yield Line(
            f"Verified equal on random inputs ({len(self.proof.seeds)} seeds): {', '.join(values[:LISTED_NAMES])}{more}"
            f" within {self.proof.tolerance:g} of their ranges"
        )
        if self.before.refused_layers:
            yield Line(f"On {self.device}: {change_text(self.before, self.after)}")
        if self.output is not None:
            yield Line(f"Written to {self.output}")

    def summary_line(self) -> str:
        """The answer in one line."""
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
    """Apply edits to an ONNX model, prove that it computes the same, measure what they save, and write it.

    Args:
        model: a path, an ONNX model, or a PyTorch module with `example_inputs`; it stays as it is.
        edits: ids of edits as `dryfit.explain` gives them, each everywhere or at one node: `"rank-four@pool5"`.
        output: the file to write; None for none.
        config: how it would be built; None where options say it.
        force: overwrite the output, also where it is the model itself.
        options: named as the options of `dryfit explain`, with the same defaults.

    Raises:
        ConfigError: no edit is named, the output exists, or the model is a network, which has no ONNX nodes to edit.
        UnknownNameError: there is no such edit or node.
        OnnxImportError: an edit finds no place, the edited model computes something else, or it cannot be written.

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
    if subject.source is None:
        raise ConfigError(
            "Edits require an ONNX model",
            where="model",
            found="a network without an ONNX model",
            remedy="Pass the path of the ONNX model, or an onnx.ModelProto",
        )
    folder = subject.folder or Path()
    with quiet_log():
        source, external = read_model(subject.source, subject.folder)
        measure = measure_of(subject)
        before = placed("", subject.network, subject.config).cost
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
    """What changes between two placements: `4 -> 3 layers leave, 2 loadables, 1.5 KiB -> 1.0 KiB at borders`."""
    return ", ".join(f"{text} {words}" for text, words in zip(changes(before, after), _FIGURES.values(), strict=True))


def changes(before: Cost, after: Cost) -> list[str]:
    """What becomes of the layers that leave, the loadables and the bytes at borders; one figure where it stays."""
    found = []
    for name in _FIGURES:
        old, new = (_figure(name, getattr(cost, name)) for cost in (before, after))
        found.append(old if old == new else f"{old} -> {new}")
    return found


def _figure(name: str, value: int | None) -> str:
    if value is None:
        return "unknown"
    return bytes_text(value) if name == "border_bytes" else str(value)
