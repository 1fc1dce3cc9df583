"""Edits applied for `dryfit explain --apply`: proved, measured and written; and how an edited model is measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
from onnx import ModelProto

from dryfit.answers.asked import load_network
from dryfit.answers.json_data import plain
from dryfit.answers.options import NetworkOptions
from dryfit.answers.placement import placement_of
from dryfit.builder.assessment import assessment_of
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.design import Design
from dryfit.building import design_for_assessment
from dryfit.cli.network_config import create_config
from dryfit.engine.progress import ProgressMonitor
from dryfit.errors import ConfigError
from dryfit.network.network import Network
from dryfit.onnx.edit_report import Cost
from dryfit.onnx.editing.edit import EditChoice, all_edits, apply_edits, require_places
from dryfit.onnx.editing.equality import SEEDS, prove_equal
from dryfit.onnx.model_file import ModelSource, read_model, write_model
from dryfit.passes.quantized_operators.form_quantized_operators import LeftLayer
from dryfit.reference.inference import infer_specs


@attrs.frozen
class Placed:
    """A model on a device.

    Attributes:
        report: a `Placement` as plain data.
        macs: layer name to multiply-accumulates.
        network: what was placed.
        config: with what.
        left: layers that stay in real numbers though the network has a quantize method.
        design: the decisions that the report tells of.
    """

    report: dict[str, Any]
    macs: Mapping[str, int]
    network: Network
    config: BuilderConfig
    left: Sequence[LeftLayer] = ()
    design: Design | None = None

    @property
    def leaving(self) -> list[dict[str, Any]]:
        """The layers that the device that was asked for refuses, or that moved from it."""
        device = self.report["device"]
        return [
            layer
            for layer in self.report["layers"]
            if layer["device"] is None
            or not layer["verdicts"].get(device, {"supported": True})["supported"]
            or (layer["device"] != device and layer["segment"] is not None and device in layer["verdicts"])
        ]

    @property
    def cost(self) -> Cost:
        """What the placement costs."""
        summary = self.report["summary"]
        return Cost(
            refused_layers=len(self.leaving),
            loadables=summary["segments_by_device"].get(self.report["device"], 0),
            border_bytes=None if summary["unplaced_layers"] else summary["reformat_bytes"],
            macs_off_device=sum(self.macs.get(layer["name"], 0) for layer in self.leaving),
        )


def place(
    name: str, source: ModelSource, options: NetworkOptions, folder: Path, progress: ProgressMonitor | None = None
) -> Placed:
    """Where the layers of a model would run.

    Args:
        name: what the user calls the model.
        source: the model.
        options: what was asked.
        folder: where its external data lie.
        progress: is told of the stages; None for nobody.

    Raises:
        DryfitError: the model cannot be imported, or the options do not fit it.
    """
    network = load_network(source, options, folder)
    config = create_config(network, options)
    config.progress_monitor = progress
    design = design_for_assessment(network, config)
    assessment = assessment_of(design, config)
    report = plain(placement_of(name, assessment, config.settings(network), network=network))
    specs = infer_specs(network)
    macs = {layer.name: layer.multiply_accumulates(specs) for layer in network.layers}
    return Placed(report, macs, network, config, assessment.left, design)


def measured(model: ModelProto, options: NetworkOptions, folder: Path, progress: ProgressMonitor | None = None) -> Cost:
    """What the placement of a model costs; the arguments are those of `place`."""
    return place("", model, options, folder, progress).cost


def fixed_shapes(options: NetworkOptions) -> dict[str, tuple[int, ...]]:
    """Input name to shape, for the inputs that got one shape and no range."""
    return {name: shapes[0] for name, shapes in options.shape.items() if len(shapes) == 1}


def apply_report(model_path: Path, options: NetworkOptions, edits: str, output: Path) -> dict[str, Any]:
    """Apply, prove, measure and write.

    Raises:
        ConfigError: no edit is named.
        UnknownNameError: there is no such edit or node.
        OnnxImportError: an edit finds no place, the edited model computes something else, or cannot be written.
    """
    choices = [EditChoice.parsed(text) for text in edits.split(",") if text.strip()]
    if not choices:
        raise ConfigError(
            "The option names no edit", where="--apply", found=repr(edits), allowed=", ".join(all_edits())
        )
    model, external = read_model(model_path)
    folder = model_path.parent
    before = measured(model, options, folder)
    edited = apply_edits(model, external, choices, fixed_shapes(options))
    require_places(edited)
    best_shapes = {name: shapes[len(shapes) // 2] for name, shapes in options.shape.items()}
    proof = prove_equal(model, edited.model, folder, best_shapes)
    after = measured(edited.model, options, folder)
    write_model(edited.model, output, external, folder)
    return {
        "model": str(model_path),
        "output": str(output),
        "device": options.default_device.upper(),
        "edits": [
            {"id": choice.text, "title": choice.edit.title, "nodes": list(places)}
            for choice, places in zip(choices, edited.places, strict=True)
        ],
        "proof": {
            "seeds": list(SEEDS),
            "values": list(proof.values),
            "largest_difference": proof.largest_difference,
            "tolerance": proof.tolerance,
        },
        "before": cost_data(before),
        "after": cost_data(after),
    }


def cost_data(cost: Cost) -> dict[str, int | None]:
    """A cost as plain data."""
    return attrs.asdict(cost)
