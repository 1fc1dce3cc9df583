"""The placement of layers with its reasons: the answer of `check`, shared with answers about built networks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import attrs

from dryfit.answers.json_data import Count
from dryfit.answers.options import PRECISION_FLAGS
from dryfit.attrs_classes import frozen
from dryfit.builder.assessment import Assessment, Offloading, OperatorRule, offloadings, operator_rules
from dryfit.builder.config.optimization_profile import suggested_shape
from dryfit.engine.plan import LayerPlacement, Plan, Reformat, Segment
from dryfit.errors import DryfitError, UnknownNameError
from dryfit.network.network import Network
from dryfit.plugins import registry
from dryfit.target.verdict import Verdict, Violation


@frozen
class PlacedLayer:
    """The placement of one layer.

    Attributes:
        name: name of the layer in the network.
        kind: kind of the layer.
        onnx_nodes: names of the ONNX nodes that the layer was imported from.
        device: device that runs the layer; None for an unplaced layer.
        segment: index of the layer's segment; None for layers that are unplaced or on the host.
        precision: computation type of the layer.
        cause: why the layer runs on this device.
    """

    name: str
    kind: str
    onnx_nodes: Sequence[str]
    device: str | None
    segment: int | None
    precision: str
    cause: str


@attrs.frozen
class LayerAnswer(PlacedLayer):
    """The placement of one layer, with the rules that it violates.

    Attributes:
        verdicts: verdict of each checked device, by device name.
    """

    verdicts: Mapping[str, Verdict]

    def violations(self, device: str) -> Sequence[Violation]:
        """Return the rules of a device that the layer violates; empty if the device was not checked."""
        return self.verdicts[device].violations if device in self.verdicts else ()

    @property
    def is_host_work(self) -> bool:
        """Whether the layer is a shape computation, which the host performs before the run."""
        return self.device is not None and self.segment is None


@frozen
class PlacementSummary:
    """Counts over a placement.

    Attributes:
        layers: number of layers.
        layers_by_device: number of layers by device.
        precisions_by_device: number of layers by computation type, for each device.
        fallback_layers: number of layers that do not run on their assigned device.
        unplaced_layers: number of layers that no allowed device can run.
        segments: number of segments.
        segments_by_device: number of segments by device.
        reformats: number of copies between types, formats or devices.
        reformat_bytes: number of bytes that the reformats write.
        warnings: number of warnings about layers on the device that runs them.
    """

    layers: Count
    layers_by_device: Mapping[str, Count]
    precisions_by_device: Mapping[str, Mapping[str, Count]]
    fallback_layers: Count
    unplaced_layers: Count
    segments: Count
    segments_by_device: Mapping[str, Count]
    reformats: Count
    reformat_bytes: Count
    warnings: Count


@frozen(repr=False)
class PlacementHeading:
    """The model and settings of a placement.

    Attributes:
        model: path of the model file, or name of the network or engine.
        device: default device of the layers.
        platform: name of the platform.
        software: software version whose rules apply; empty if the device has a single rule set.
        precisions: allowed computation types besides FP32.
        fallback: device for layers that the default device rejects; None if fallback is disabled.
        overlays: active overlays, each with its board and a digest; what boards showed corrects rules and estimates.
    """

    model: str
    device: str
    platform: str
    software: str
    precisions: Sequence[str]
    fallback: str | None
    overlays: Sequence[str]


@frozen(repr=False)
class Placement(PlacementHeading):
    """The placement of an assessed network or of an engine's plan.

    Attributes:
        assumed: defaults that were applied, as command-line options.
        simulated: which aspects of the device are simulated.
        plugins: active plugins, each as `name version (distribution)`; sorted.
        layers: layers in network order.
        segments: segments in execution order.
        offloading: use of segment memory pools, by device that has them.
        reformats: copies between types, formats or devices.
        quantized_operators: layers that a quantize method computes in integers, with the rule of the method.
        warnings: one sentence for each layer or segment that fell back, and for each request that was not granted.
        refusals: errors that a build would raise; empty if the build would succeed.
        summary: totals of the placement.
        errors: the exceptions behind `refusals`.
        own_devices: device by layer name, for layers with a device of their own.
    """

    assumed: Sequence[str]
    simulated: str
    plugins: Sequence[str]
    layers: Sequence[LayerAnswer]
    segments: Sequence[Segment]
    offloading: Sequence[Offloading]
    reformats: Sequence[Reformat]
    quantized_operators: Sequence[OperatorRule]
    warnings: Sequence[str]
    refusals: Sequence[str]
    summary: PlacementSummary
    _errors: Sequence[DryfitError] = attrs.field(default=(), eq=False)
    _own_devices: Mapping[str, str] = attrs.field(factory=dict)

    @property
    def errors(self) -> Sequence[DryfitError]:
        """Exceptions that a build would raise."""
        return self._errors

    @property
    def own_devices(self) -> Mapping[str, str]:
        """Device by layer name, for layers with a device of their own."""
        return self._own_devices

    @property
    def placement_fields(self) -> dict[str, Any]:
        """The fields of the placement as keyword arguments, for an answer that extends it."""
        return {field.name.lstrip("_"): getattr(self, field.name) for field in attrs.fields(Placement)}

    def layer(self, name: str) -> LayerAnswer:
        """Return a layer by name.

        Raises:
            UnknownNameError: The layer does not exist; the message names the closest one.
        """
        found = next((one for one in self.layers if one.name == name), None)
        if found is None:
            raise unknown_layer(name, [one.name for one in self.layers])
        return found


def placement_of(
    model: str,
    found: Assessment | Plan,
    settings: Mapping[str, Any],
    assumed: Sequence[str] = (),
    network: Network | None = None,
) -> Placement:
    """Return the placement of an assessed network or of an engine's plan.

    Args:
        model: path or name of the model.
        found: decisions about the network. Those of a plan were built and have no refusals.
        settings: `BuilderConfig.settings()`, or the settings that the plan was built with.
        assumed: defaults that were applied, as options.
        network: the user's network, so that remedies can name its dynamic inputs; None to omit these names.
    """
    device = settings["default_device_type"]
    # An engine may be looked at where its device's package is not installed.
    target = registry.find_target(device)
    errors = () if isinstance(found, Plan) else found.errors
    rules = operator_rules(found.network) if isinstance(found, Plan) else found.quantized_operators
    layers = _layers(found, network)
    own_devices: Mapping[str, str] = settings["device_types"]
    return Placement(
        model=model,
        device=device,
        platform=settings["platforms"].get(device, ""),
        software=settings["software"].get(device, ""),
        precisions=[flag.lower() for flag in settings["flags"] if flag in PRECISION_FLAGS.values()],
        fallback=settings["fallback_device"],
        overlays=list(settings.get("overlays", ())),
        assumed=list(assumed),
        simulated="" if target is None else target.simulated,
        # An engine says what it was built with; an assessment was made by what is active now.
        plugins=list(found.plugins) if isinstance(found, Plan) else registry.active_plugins(),
        layers=layers,
        segments=found.segments,
        offloading=offloadings(found.segments, found.rejected),
        reformats=found.reformats,
        quantized_operators=list(rules),
        warnings=list(found.warnings),
        refusals=[str(error) for error in errors],
        summary=_summary(device, own_devices, layers, found),
        errors=errors,
        own_devices=own_devices,
    )


def _layers(found: Assessment | Plan, network: Network | None) -> list[LayerAnswer]:
    shapes = [suggested_shape(tensor) for tensor in (network.inputs if network else ()) if -1 in tensor.shape]

    def layer(one: LayerPlacement) -> LayerAnswer:
        verdicts = found.verdicts.get(one.layer, {})
        if shapes:
            verdicts = {device: _with_shapes(verdict, shapes) for device, verdict in verdicts.items()}
        return LayerAnswer(
            name=one.layer,
            kind=one.kind,
            onnx_nodes=one.onnx_nodes,
            device=one.device or None,
            segment=one.segment if one.segment >= 0 else None,
            precision=one.precision.name,
            cause=one.cause,
            verdicts=verdicts,
        )

    return [layer(one) for one in found.layers]


def _with_shapes(verdict: Verdict, shapes: Sequence[str]) -> Verdict:
    """Return the verdict with a remedy for dynamic dimensions that names the required command-line options."""
    if not any(one.rule.endswith(".dynamic_dimensions") for one in verdict.violations):
        return verdict
    options = f" (on the command line: {' '.join(shapes)})"
    return attrs.evolve(
        verdict,
        violations=[
            attrs.evolve(one, remedy=one.remedy + options) if one.rule.endswith(".dynamic_dimensions") else one
            for one in verdict.violations
        ],
    )


def _summary(
    device: str, own_devices: Mapping[str, str], layers: Sequence[LayerAnswer], found: Assessment | Plan
) -> PlacementSummary:
    """Return the counts. A layer has fallen back if it runs in a segment of another device than its assigned one."""
    placed = Counter(layer.device for layer in layers if layer.device is not None)
    precisions = {one: Counter(layer.precision for layer in layers if layer.device == one) for one in sorted(placed)}
    return PlacementSummary(
        layers=len(layers),
        layers_by_device=dict(sorted(placed.items())),
        precisions_by_device={one: dict(counts.most_common()) for one, counts in precisions.items()},
        fallback_layers=sum(
            not layer.is_host_work and layer.device not in (None, own_devices.get(layer.name, device))
            for layer in layers
        ),
        unplaced_layers=sum(layer.device is None for layer in layers),
        segments=len(found.segments),
        segments_by_device=dict(sorted(Counter(segment.device for segment in found.segments).items())),
        reformats=len(found.reformats),
        reformat_bytes=sum(reformat.size for reformat in found.reformats),
        warnings=sum(
            len(verdict.warnings) for layer in layers for one, verdict in layer.verdicts.items() if one == layer.device
        ),
    )


KNOWN_NAMES = 20
"""Layers that are listed to who asks for one that does not exist."""


def unknown_layer(name: str, known: Collection[str]) -> UnknownNameError:
    """Return the error for an unknown layer; with many names, it lists only the closest ones."""
    told = f"{len(known)} names, which `dryfit check --verbose` lists" if len(known) > KNOWN_NAMES else None
    return UnknownNameError("layer or ONNX node", name, known, told=told)
