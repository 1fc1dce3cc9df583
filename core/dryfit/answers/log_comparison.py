"""Compare the placement that a log shows with dryfit's for the same model and settings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dryfit.answers.asked import Model
from dryfit.answers.check import check
from dryfit.answers.defaults import with_overlay_board
from dryfit.answers.json_data import Count
from dryfit.answers.options import NetworkOptions
from dryfit.answers.placement import LayerAnswer
from dryfit.attrs_classes import frozen
from dryfit.board.logs.reading import BoardLog
from dryfit.board.logs.settings import LogSettings
from dryfit.errors import ConfigError, UnknownNameError
from dryfit.plugins import registry

if TYPE_CHECKING:
    from dryfit.answers.explain_log import LogLayer

DLA, GPU, NO_DEVICE = "DLA", "GPU", "none"
MESSAGE, LISTED, INSIDE = "message", "listed", "inside a segment"
"""How a log shows the device of a layer: a message about it, a list of layers, or a segment that contains it."""

ORIN_SINCE, XAVIER_UNTIL = (8, 4), (8, 6)
"""The first TensorRT for Orin, and the first that is not for Xavier. Source: JetPack release notes."""
DEFAULT_ORIN, DEFAULT_XAVIER = "agx-orin-64", "agx-xavier"

_ADDED = ("(Unnamed Layer", "shuffle_between_", "reshape_", "scale_", "Reformatting ", "copied_")
"""Beginnings of names of layers that TensorRT's parser or builder adds: no model has them."""

_SAME_WORDS = {
    "layerDeviceTypes": "layer_device_types",
    "layerPrecisions": "layer_precisions",
    "layerOutputTypes": "layer_output_types",
    "inputIOFormats": "input_io_formats",
    "outputIOFormats": "output_io_formats",
    "memPoolSize": "mem_pool_size",
    "sparsity": "sparsity",
}
"""Options of trtexec whose values dryfit takes as they are."""


@frozen
class LayerDifference:
    """A layer whose device in the log is not the one that dryfit expects.

    Attributes:
        layer: name of the layer in the log.
        log_device: device in the log; `none` if the build failed because of the layer.
        shown_by: how the log shows it: by a `message`, `listed`, or `inside a segment`.
        messages: ids of the log's messages about the layer.
        log_rules: rules that these messages report.
        dryfit_device: device on which dryfit places the layer; None for none.
        reasons: why dryfit places it there.
        dryfit_rules: rules of the DLA that the layer violates according to dryfit.
    """

    layer: str
    log_device: str
    shown_by: str
    messages: Sequence[str]
    log_rules: Sequence[str]
    dryfit_device: str | None
    reasons: Sequence[str]
    dryfit_rules: Sequence[str]


@frozen
class LogComparison:
    """The placement of a log compared with dryfit's.

    Attributes:
        model: path of the model, or name of the network.
        options: settings that were taken from the log, as command-line options.
        platform: platform of dryfit's placement.
        software: software version of dryfit's placement.
        overlays: active overlays, each with its author, its board and a digest.
        notes: settings that the log does not show or that dryfit has no rules for, and what was used instead.
        compared: number of layers of the model whose device the log shows.
        agreeing: number of these whose device is the same.
        same_rule: number of layers that fell back for a rule that dryfit finds violated too.
        rules_found: rules that dryfit finds violated by layers that fell back, by the layer's name in the log.
        differences: layers whose device differs.
        unmatched: layers of the log that the model does not have, other than those that TensorRT adds.
    """

    model: str
    options: Sequence[str]
    platform: str
    software: str
    overlays: Sequence[str]
    notes: Sequence[str]
    compared: Count
    agreeing: Count
    same_rule: Count
    rules_found: Mapping[str, Sequence[str]]
    differences: Sequence[LayerDifference]
    unmatched: Sequence[str]


def compared_with_model(
    log: BoardLog, fallen: Sequence[LogLayer], model: Model, options: Mapping[str, Any]
) -> LogComparison:
    """Place a model with the settings of a log, and compare the devices of the layers.

    Args:
        log: the log.
        fallen: its layers that left the DLA.
        model: the model, as `check` takes it.
        options: options that override the log's.

    Raises:
        ConfigError: The settings conflict.
    """
    of_log, notes = _options_of(log, fallen, options)
    answer = check(model, **{**of_log, **options})
    shown = dict(shown_devices(log, fallen))
    nodes = layers_by_node(answer.layers)
    listed = lists_are_complete(log)
    differences, matched, compared = [], set[str](), 0
    by_name = {one.name: one for one in fallen}
    rules_found: dict[str, list[str]] = {}
    same_rule = 0
    for name, layers in nodes.items():
        device, how = shown.get(name) or ((DLA, INSIDE) if listed and name not in shown else ("", ""))
        if name in shown:
            matched.add(name)
        if not device:
            continue
        compared += 1
        one = by_name.get(name)
        found = list(dict.fromkeys(rule.rule for layer in layers for rule in layer.violations(DLA)))
        if one is not None:
            rules_found[name] = found
            same_rule += bool(set(found) & set(one.rules))
        if all((layer.device or NO_DEVICE) != device for layer in layers):
            differences.append(_difference(name, device, how, one, layers, found))
    return LogComparison(
        model=answer.model,
        options=_as_options(of_log),
        platform=answer.platform,
        software=answer.software,
        overlays=answer.overlays,
        notes=notes,
        compared=compared,
        agreeing=compared - len(differences),
        same_rule=same_rule,
        rules_found=rules_found,
        differences=differences,
        unmatched=[name for name in shown if name not in matched and not _is_added(name, nodes)],
    )


def _difference(
    name: str, device: str, how: str, fallen: LogLayer | None, layers: Sequence[LayerAnswer], found: Sequence[str]
) -> LayerDifference:
    first = layers[0]
    reasons = [str(one) for layer in layers for one in layer.violations(DLA)] if device == DLA else []
    return LayerDifference(
        layer=name,
        log_device=device,
        shown_by=how,
        messages=[] if fallen is None else fallen.messages,
        log_rules=[] if fallen is None else fallen.rules,
        dryfit_device=first.device,
        reasons=reasons or [first.cause],
        dryfit_rules=found,
    )


# Devices of a log -----------------------------------------------------------------------------------------------------


def shown_devices(log: BoardLog, fallen: Sequence[LogLayer]) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield the device of each layer that a log names, the surest last."""
    for layer in log.lists.gpu.values():
        yield from ((name, (GPU, LISTED)) for name in layer.layers)
    for segment in log.lists.segments.values():
        yield from ((name, (DLA, LISTED)) for name in segment.layers)
    for one in fallen:
        yield one.name, (NO_DEVICE if one.refused else GPU, MESSAGE)


def lists_are_complete(log: BoardLog) -> bool:
    """Whether both lists are there, with segments that show their ends only: other layers are inside a segment."""
    segments = log.lists.segments.values()
    both = {DLA, GPU} <= log.lists.headings or bool(log.lists.segments and log.lists.gpu)
    return both and not log.lists.dropped and any(not one.is_complete for one in segments)


def layers_by_node(layers: Iterable[LayerAnswer]) -> dict[str, list[LayerAnswer]]:
    """Return the layers that run on a device by the name that TensorRT's parser gives them."""
    found: dict[str, list[LayerAnswer]] = {}
    for layer in layers:
        if layer.kind != "constant" and not layer.is_host_work:
            found.setdefault(layer.onnx_nodes[0] if layer.onnx_nodes else layer.name, []).append(layer)
    return found


def own_layer(node: str, layers: Sequence[LayerAnswer]) -> LayerAnswer:
    """Return the layer of a node that TensorRT names as the node: the importer puts shuffles before and behind it."""
    others = [one for one in layers if one.kind != "shuffle"] or layers
    return next((one for one in others if one.name == node), others[0])


def _is_added(name: str, nodes: Mapping[str, object]) -> bool:
    """Whether TensorRT adds a layer of this name: for a constant, for a copy or next to a layer of the model."""
    return name.startswith(_ADDED) or name.endswith("_output_0") or any(name == f"{one} copy" for one in nodes)


# Settings of a log ----------------------------------------------------------------------------------------------------


def _options_of(
    log: BoardLog, fallen: Sequence[LogLayer], given: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """Return the settings of a log as options, and remarks on what it does not show."""
    settings, notes = log.settings, list[str]()
    if not (fallen or log.lists.segments or settings.is_standalone or settings.dla_core is not None):
        return {"device": GPU}, [
            "The log does not show that the build uses the DLA: all layers are expected on the GPU"
        ]
    is_allowed = settings.fallback is not False and not any(one.refused for one in fallen)
    found: dict[str, Any] = {"device": DLA, "fallback": GPU if is_allowed else "none"}
    if settings.dla_core is not None:
        found["use_dla_core"] = settings.dla_core
    if settings.is_standalone:
        found["standalone"] = True
        del found["fallback"]
    found |= _precisions(settings, given, notes)
    found |= {option: settings.values[word] for word, option in _SAME_WORDS.items() if settings.values.get(word)}
    constraints = settings.values.get("precisionConstraints", "")
    if constraints in ("obey", "prefer"):
        found["precision_constraints"] = constraints
    shapes = settings.values.get("shapes") or settings.values.get("optShapes")
    if shapes:
        found["shape"] = shapes
    found |= _platform(settings, given, notes)
    return {name: value for name, value in found.items() if name not in given}, notes


def _precisions(settings: LogSettings, given: Mapping[str, Any], notes: list[str]) -> dict[str, Any]:
    if settings.strongly_typed:
        return {"strongly_typed": True}
    if settings.precisions is None and "precision" not in given:
        notes.append("The log does not show the precisions: FP16 is assumed (--precision)")
    words = settings.precisions or ("fp16",)
    found: dict[str, Any] = {"precision": words}
    has_scales = {"calibration_cache", "ranges", "assume_scales"} & given.keys()
    if "int8" in words and not has_scales:
        found["assume_scales"] = True
        notes.append(
            "Every tensor is assumed to have an INT8 scale; pass the calibration cache of the build to change "
            "that (--calibration-cache)"
        )
    return found


def _platform(settings: LogSettings, given: Mapping[str, Any], notes: list[str]) -> dict[str, Any]:
    """Return the platform and the software version, as far as dryfit has rules for them."""
    version = tuple(int(part) for part in settings.version.split(".") if part.isdecimal())
    shown, _ = with_overlay_board(NetworkOptions.said({"overlays": given.get("overlays", ())}))
    platform = given.get("platform") or settings.platform or shown.platform
    if platform is None:
        platform = DEFAULT_XAVIER if version and version < ORIN_SINCE else DEFAULT_ORIN
        notes.append(f"The log does not show the board: {platform} is assumed (--platform)")
    found: dict[str, Any] = {"platform": platform}
    if "software" in given:
        return found
    if not version and shown.software:
        return {**found, "software": shown.software}
    if not version:
        notes.append("The log does not show TensorRT's version: the newest one for the board is assumed (--software)")
        return found
    target = registry.target(DLA)
    try:
        target.software(settings.version, target.platform(platform))
    except (ConfigError, UnknownNameError) as error:
        notes.append(
            f"There are no rules for TensorRT {settings.version} on {platform}: the newest rules for it are "
            f"used ({error.message if isinstance(error, ConfigError) else error})"
        )
        return found
    return {**found, "software": settings.version}


def _as_options(options: Mapping[str, Any]) -> list[str]:
    """Return options as the words of a command line."""
    words = []
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        if value is True:
            words.append(option)
        else:
            words += [option, ",".join(value) if isinstance(value, tuple) else str(value)]
    return words
