"""Write what became of each node into a copy of an ONNX model, for viewers: `dryfit.annotate`, `dryfit annotate`."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Unpack

import attrs
from onnx import ModelProto

from dryfit.answers.asked import Asked, Model, asked, quiet_log
from dryfit.answers.defaults import with_scales
from dryfit.answers.network_cost import NetworkCost, network_cost
from dryfit.answers.node_facts import AnnotatedNode, node_facts
from dryfit.answers.options import NetworkOptions, Options, option_name
from dryfit.answers.placement import PlacementHeading
from dryfit.answers.placement_text import defaults_line
from dryfit.answers.text import Answer, Block, Entries, Line
from dryfit.atomic_file import refuse_to_overwrite
from dryfit.attrs_classes import frozen
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.design import Design
from dryfit.errors import ConfigError, UnknownNameError
from dryfit.estimate_text import time_text
from dryfit.json_names import json_names
from dryfit.onnx.annotations import PREFIX, NodeMarks, annotate_model
from dryfit.onnx.model_file import read_model, write_model
from dryfit.short_text import count_text
from dryfit.version import __version__

NOTE = "Estimates are made by the targets' formulas; nothing was measured. Scales are those of the simulated build."
FOR_VIEWING = "For viewing only: the file does not run, because its operators or domains represent devices"


@frozen(repr=False, kw_only=True, eq=False)
class AnnotateAnswer(PlacementHeading, Answer):
    """A copy of a model whose nodes say what became of them.

    Attributes:
        output: file that was written; None for none.
        color: how nodes of different devices are told apart: `none`, `names`, `domains` or `operators`.
        can_run: whether the annotated model runs, with the results of the original.
        assumed: defaults that were applied, as command-line options.
        facts: what is written about the model, by key.
        nodes: nodes in the order of the model, each with what is written about it.
        note: states what is estimated.
        annotated_model: the annotated model.
        notes: remarks on options that were adjusted.

    Example:
        >>> answer = dryfit.annotate("digits.onnx", "annotated.onnx", platform="agx-orin-64")
        >>> [(node.name, node.device) for node in answer.nodes if node.device == "GPU"][:2]
        [('elu2', 'GPU'), ('average', 'GPU')]
    """

    COMMAND: ClassVar[str] = "annotate"
    JSON_NAMES: ClassVar[Mapping[str, str]] = json_names(
        "model output device platform software precisions fallback overlays assumed color can_run facts nodes note"
    )

    output: Path | None
    color: NodeMarks
    can_run: bool
    assumed: Sequence[str]
    facts: Mapping[str, str]
    nodes: Sequence[AnnotatedNode]
    note: str = NOTE
    annotated_model: ModelProto
    notes: Sequence[str] = ()

    def node(self, name: str) -> AnnotatedNode:
        """Return a node by name.

        Raises:
            UnknownNameError: The node does not exist; the message names the closest one.
        """
        found = next((one for one in self.nodes if one.name == name), None)
        if found is None:
            raise UnknownNameError("ONNX node", name, [one.name for one in self.nodes])
        return found

    def blocks(self, *, verbose: bool = False) -> Iterator[Block]:  # noqa: ARG002  there is no more to show
        """Return the lines that `dryfit annotate` prints."""
        yield Line(self.summary_line())
        yield from defaults_line(self.assumed, self.overlays)
        placed = Counter(one.device for one in self.nodes if one.device is not None)
        fates = Counter(one.became for one in self.nodes if one.device is None)
        rows = [(device, count_text(count, "node"), "") for device, count in sorted(placed.items())]
        rows += [(fate.value, count_text(count, "node"), "") for fate, count in sorted(fates.items())]
        yield Entries("Nodes", rows)
        yield Line(f"Each node has its facts in metadata_props, with keys that begin with {PREFIX!r}. {self.note}")
        if not self.can_run:
            yield Line(f"{FOR_VIEWING}.")

    def summary_line(self) -> str:
        """Return a one-line summary of the answer."""
        return f"{self.output or self.model}: {count_text(len(self.nodes), 'node')} annotated for {self.device}"


def annotate(
    model: Model,
    output: str | os.PathLike[str] | None = None,
    config: BuilderConfig | None = None,
    *,
    color: str | NodeMarks = NodeMarks.NONE,
    force: bool = False,
    **options: Unpack[Options],
) -> AnnotateAnswer:
    """Write device, segment, precision, format, scale and estimate of each node into the metadata of a model's copy.

    Viewers such as Netron show them. Operators, attributes and weights stay as they are; the IR version becomes 10 if
    it is older. External data are not read: a copy in the folder of the model refers to the same files.

    Args:
        model: a path, an ONNX model, or a PyTorch module with `example_inputs`; it is not modified.
        output: path of the annotated copy; None to write no file, see `AnnotateAnswer.annotated_model`.
        config: build settings; None to use the options. The config is not modified.
        color: how nodes of different devices are told apart besides metadata: `none`; `names`, which puts device and
            segment in front of the names; `domains`, which makes Netron show the nodes of the default device in gray;
            or `operators`, which gives each device a color of its own. With the last two the copy does not run.
        force: whether to overwrite the output.
        options: keyword arguments named like the options of `dryfit annotate`, with the same defaults.

    Raises:
        ConfigError: The output exists or is the model itself, the model is a network, or the options, the config and
            the model conflict.
        NetworkError: The network is invalid; the message lists all problems.
        OnnxImportError: The model is corrupt, has unsupported operators, or is too large for one file.
        UnknownNameError: A device, platform or option value does not exist.

    Example:
        >>> answer = dryfit.annotate("digits.onnx", platform="agx-orin-64")
        >>> answer.node("conv1").device, answer.node("conv1").precision
        ('DLA', 'FP16')
    """
    if color not in list(NodeMarks):
        raise UnknownNameError("color", str(color), map(str, NodeMarks), where="--color")
    path = None if output is None else Path(output)
    if path is not None:
        _require_free(model, path, force=force)
    subject = asked(model, config, options, defaults=with_scales, needs_shapes=False).on_named_board()
    source = subject.require_onnx("Annotating")
    with quiet_log():
        cost = _cost(subject, subject.design)
    copy, external = read_model(source, subject.folder)
    # The caller's message stays as it is; what was read from a file is ours, and its weights need no second copy.
    if copy is source:
        copy = ModelProto()
        copy.CopyFrom(source)
    marks = NodeMarks(color)
    described = list(node_facts(copy.graph, subject.design, cost))
    heading = _heading(subject)
    facts = _facts(subject, heading, cost, marks)
    annotate_model(copy, [(node, one.notes) for node, one in described], facts, marks, heading.device)
    if path is not None:
        write_model(copy, path, external, subject.folder or path.parent)
    return AnnotateAnswer(
        **attrs.asdict(heading, recurse=False),
        output=path,
        color=marks,
        can_run=marks.can_run,
        assumed=list(subject.assumed),
        facts={f"{PREFIX}{key}": text for key, text in facts.items()},
        nodes=[one for _, one in described],
        annotated_model=copy,
        notes=subject.notes,
    )


def _require_free(model: Model, output: Path, *, force: bool) -> None:
    if isinstance(model, str | os.PathLike) and output.exists() and output.samefile(model):
        raise ConfigError(
            "The output must not be the model itself",
            where=f"--output {output}",
            remedy="Choose another name for the copy",
        )
    refuse_to_overwrite(output, force=force)


def _cost(subject: Asked, design: Design) -> NetworkCost | None:
    """Return the estimates; None if a layer has no place, or an extent on which they depend is unknown."""
    stated = subject.options.shape if subject.options is not None else {}
    profiles = subject.config.num_optimization_profiles if subject.options is None else 0
    is_open = any(-1 in tensor.shape and tensor.name not in stated for tensor in subject.network.inputs)
    return network_cost(design) if design.is_whole and (profiles or not is_open) else None


def _heading(subject: Asked) -> PlacementHeading:
    settings = subject.config.settings(subject.network)
    device = settings["default_device_type"]
    return PlacementHeading(
        model=subject.name,
        device=device,
        platform=settings["platforms"].get(device, ""),
        software=settings["software"].get(device, ""),
        precisions=subject.precisions,
        fallback=settings["fallback_device"],
        overlays=list(settings.get("overlays", ())),
    )


def _facts(subject: Asked, heading: PlacementHeading, cost: NetworkCost | None, marks: NodeMarks) -> dict[str, str]:
    clocks = subject.config.clocks(heading.device)
    texts = {
        "version": __version__,
        "model": Path(heading.model).name,
        "device": heading.device,
        "platform": heading.platform,
        "power_mode": "" if clocks is None else clocks.name,
        "software": heading.software,
        "precisions": ", ".join(heading.precisions),
        "fallback": heading.fallback or "none",
        "overlays": "; ".join(heading.overlays),
        "options": _options_text(subject.options),
        "estimate": _estimate_text(cost),
        "note": NOTE,
        "color": "" if marks is NodeMarks.NONE else marks.value,
        "use": "" if marks.can_run else FOR_VIEWING,
    }
    return {key: text for key, text in texts.items() if text}


def _estimate_text(cost: NetworkCost | None) -> str:
    if cost is None:
        return "none: a layer has no device, or an input has an unknown extent"
    text = time_text(cost.latency_microseconds, cost.latency_error, is_lower_bound=bool(cost.lower_bounds))
    return f"latency {text} at batch {cost.batch}, with segments and copies run sequentially"


def _options_text(options: NetworkOptions | None) -> str:
    """Return the options with their defaults filled in, as on the command line; values of mappings are not repeated."""
    if options is None:
        return "those of a BuilderConfig"
    plain = NetworkOptions()
    words = []
    for field in attrs.fields(NetworkOptions):
        value = getattr(options, field.name)
        if value == getattr(plain, field.name):
            continue
        name = option_name(field.name)
        match value:
            case True:
                words.append(name)
            case Path():
                words.append(f"{name} {value.name}")
            case str() | int():
                words.append(f"{name} {value}")
            case tuple() if all(isinstance(one, str) for one in value):
                words.append(f"{name} {','.join(value)}")
            case _:
                words.append(f"{name} ...")
    return " ".join(words)
