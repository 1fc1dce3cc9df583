"""What `check`, `build` and `inspect` tell of a placement, as plain data: the JSON that their `--json` prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from dryfit.cli.precision_options import PRECISION_FLAGS

if TYPE_CHECKING:
    from dryfit.builder.assessment import Assessment
    from dryfit.builder.placement.offloading import Offloading
    from dryfit.engine.plan import LayerPlacement, Plan, Reformat, Segment
    from dryfit.network.network import Network
    from dryfit.target.cost import CostEstimate
    from dryfit.target.verdict import Verdict, Violation

Report = dict[str, Any]


def placement_report(
    model: str,
    found: Assessment | Plan,
    settings: Mapping[str, Any],
    assumed: Sequence[str] | None = None,
    network: Network | None = None,
) -> Report:
    """The report of a network that was assessed, or of an engine's plan.

    Args:
        model: what the user calls it: the path of the file, or the engine's name.
        found: the decisions. Those of a plan were built, so that there are no refusals.
        settings: `BuilderConfig.settings()`, or those that the plan was built with.
        assumed: the defaults that were used, as options; None where the answer has none.
        network: the user's, so that remedies can name its dynamic inputs; None where they need not.
    """
    from dryfit.builder.explicit_quantization.operator_rules import operator_rules
    from dryfit.builder.placement.offloading import offloadings
    from dryfit.cli.operator_rules_report import operators_data
    from dryfit.engine.plan import Plan
    from dryfit.plugins import registry

    device = settings["default_device_type"]
    # An engine may be looked at where its device's package is not installed.
    target = registry.find_target(device)
    rules = operator_rules(found.network) if isinstance(found, Plan) else found.quantized_operators
    layers = [_layer(layer, found.verdicts.get(layer.layer, {})) for layer in found.layers]
    _name_shapes(layers, network)
    return {
        "model": model,
        "device": device,
        "platform": settings["platforms"].get(device, ""),
        "software": settings["software"].get(device, ""),
        "precisions": [flag.lower() for flag in settings["flags"] if flag in PRECISION_FLAGS.values()],
        "fallback": settings["fallback_device"],
        **({} if assumed is None else {"assumed": list(assumed)}),
        "simulated": "" if target is None else target.simulated,
        # An engine says what it was built with; an assessment was made by what is active now.
        "plugins": list(found.plugins) if isinstance(found, Plan) else registry.active_plugins(),
        "layers": layers,
        "segments": [_segment(segment) for segment in found.segments],
        "offloading": [_offloading(one) for one in offloadings(found.segments, found.rejected)],
        "reformats": [_reformat(reformat) for reformat in found.reformats],
        "quantized_operators": operators_data(rules),
        "warnings": list(found.warnings),
        "refusals": [] if isinstance(found, Plan) else [str(error) for error in found.errors],
        "summary": _summary(device, settings["device_types"], layers, found),
    }


def _layer(layer: LayerPlacement, verdicts: Mapping[str, Verdict]) -> dict[str, Any]:
    return {
        "name": layer.layer,
        "kind": layer.kind,
        "onnx_nodes": list(layer.onnx_nodes),
        "device": layer.device or None,
        "segment": layer.segment if layer.segment >= 0 else None,
        "precision": layer.precision.name,
        "cause": layer.cause,
        "verdicts": {asked: _verdict(verdict) for asked, verdict in verdicts.items()},
    }


def _name_shapes(layers: Sequence[dict[str, Any]], network: Network | None) -> None:
    """Say in the remedy for dynamic dimensions which options of the command line fix them."""
    from dryfit.builder.canonicalise import suggested_shape

    shapes = [suggested_shape(tensor) for tensor in (network.inputs if network else ()) if -1 in tensor.shape]
    violations = (
        one for layer in layers for verdict in layer["verdicts"].values() for one in verdict["violations"] if shapes
    )
    for one in violations:
        if one["rule"].endswith(".dynamic_dimensions"):
            one["remedy"] = f"{one['remedy']} (on the command line: {' '.join(shapes)})"


def _verdict(verdict: Verdict) -> dict[str, Any]:
    return {
        "supported": verdict.supported,
        "violations": [_violation(one) for one in verdict.violations],
        "warnings": [_violation(one) for one in verdict.warnings],
    }


def _violation(violation: Violation) -> dict[str, str]:
    return attrs.asdict(violation)


def _segment(segment: Segment) -> dict[str, Any]:
    return {
        "id": segment.index,
        "device": segment.device,
        "layers": list(segment.layers),
        "inputs": list(segment.inputs),
        "outputs": list(segment.outputs),
        "pools": dict(segment.pools),
        "cut_cause": segment.cut_cause,
        **({} if segment.estimate is None else {"estimate": _estimate(segment.estimate)}),
    }


def _estimate(estimate: CostEstimate) -> dict[str, Any]:
    return attrs.asdict(estimate, filter=attrs.filters.exclude("steps"))


def _offloading(offloading: Offloading) -> dict[str, Any]:
    """What became of the candidates of a device; JSON calls the shortages of a segment `short_of`."""
    return {
        "device": offloading.device,
        "candidates": offloading.candidates,
        "offloaded": offloading.offloaded,
        "pools": dict(offloading.pools),
        "rejected": [
            {
                "layers": list(one.layers),
                "cause": one.cause,
                "short_of": [attrs.asdict(shortage) for shortage in one.shortages],
                "fallback": one.fallback or None,
            }
            for one in offloading.rejected
        ],
    }


def _reformat(reformat: Reformat) -> dict[str, Any]:
    return {
        "tensor": reformat.tensor,
        "from": reformat.source,
        "to": reformat.destination,
        "bytes": reformat.size,
        "cause": reformat.cause,
        "rule": reformat.rule,
    }


def _precisions(layers: Sequence[dict[str, Any]], device: str) -> dict[str, int]:
    """Type to the number of layers that a device computes in it, the most frequent first."""
    return dict(Counter(layer["precision"] for layer in layers if layer["device"] == device).most_common())


def _summary(
    device: str, own_devices: Mapping[str, str], layers: Sequence[dict[str, Any]], found: Assessment | Plan
) -> dict[str, Any]:
    """Counts. A layer has fallen back when it is in a segment of another device than the one it was given."""
    placed = Counter(layer["device"] for layer in layers if layer["device"] is not None)
    wanted = [own_devices.get(layer["name"], device) for layer in layers]
    fallen = [
        layer
        for layer, to in zip(layers, wanted, strict=True)
        if layer["device"] not in (None, to) and layer["segment"] is not None
    ]
    return {
        "layers": len(layers),
        "layers_by_device": dict(sorted(placed.items())),
        "precisions_by_device": {device: _precisions(layers, device) for device in sorted(placed)},
        "fallback_layers": len(fallen),
        "unplaced_layers": sum(layer["device"] is None for layer in layers),
        "segments": len(found.segments),
        "segments_by_device": dict(sorted(Counter(segment.device for segment in found.segments).items())),
        "reformats": len(found.reformats),
        "reformat_bytes": sum(reformat.size for reformat in found.reformats),
        "warnings": sum(
            len(verdict["warnings"])
            for layer in layers
            for asked, verdict in layer["verdicts"].items()
            if asked == layer["device"]
        ),
    }
