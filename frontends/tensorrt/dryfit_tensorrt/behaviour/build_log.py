"""What a build logs, in TensorRT's layout: the layers of each device, why others fell back, loadables, memory.

Lines after TensorRT's own that it does not print are dryfit's reasons.
"""

from __future__ import annotations

from typing import Any

from dryfit_tensorrt.behaviour.monitoring import report

_MIB = 1 << 20


def log_placement(owner: Any, plan: Any) -> None:
    """Log where the layers of an engine run, and what falls back, with the reasons.

    Args:
        owner: an object with a `_logger`.
        plan: plan of the engine.
    """
    devices = {placement.device for placement in plan.layers}
    if "DLA" in devices or any("DLA" in verdicts for verdicts in plan.verdicts.values()):
        _log_fallbacks(owner, plan)
    _log_lists(owner, plan)
    for device in ("DLA",):
        own = [segment for segment in plan.segments if segment.device == device]
        if own or plan.rejected:
            candidates = len(own) + len([one for one in plan.rejected if one.device == device])
            pools = {
                name: sum(segment.pools.get(name, 0) for segment in own) for segment in own for name in segment.pools
            }
            memory = ", ".join(f"{name} {size / _MIB:.2f} MiB" for name, size in pools.items()) or "none"
            report(owner, "INFO", f"[{device}] {len(own)} of {candidates} candidate subgraphs became loadables")
            report(owner, "INFO", f"[{device}] Memory required by the loadables: {memory} (estimated by dryfit)")
    total = {name: size for name, size in plan.pool_sizes.items() if not name.startswith("DLA/")}
    for name, size in sorted(total.items()):
        report(owner, "INFO", f"[MemUsageStats] {name}: {size} bytes (of the simulated device)")


def _log_fallbacks(owner: Any, plan: Any) -> None:
    for placement in plan.layers:
        verdict = plan.verdicts.get(placement.layer, {}).get("DLA")
        if placement.device == "DLA" or verdict is None or verdict.supported:
            continue
        report(
            owner,
            "WARNING",
            f"Layer '{placement.layer}' ({placement.kind.title()}): Unsupported on DLA. Switching this layer's device "
            f"type to {placement.device}.",
        )
        for violation in verdict.violations:
            report(owner, "WARNING", f"  reason: {violation}")
    for rejected in plan.rejected:
        report(owner, "WARNING", f"DLA subgraph {_foreign(rejected.layers)}: {rejected.cause}")


def _log_lists(owner: Any, plan: Any) -> None:
    on_dla = [segment for segment in plan.segments if segment.device == "DLA"]
    report(owner, "INFO", "---------- Layers Running on DLA ----------")
    for segment in on_dla:
        report(owner, "INFO", f"[DlaLayer] {_foreign(segment.layers)}")
    report(owner, "INFO", "---------- Layers Running on GPU ----------")
    kinds = {layer.layer: layer.kind for layer in plan.layers}
    for operation in plan.operations:
        if operation.device == "DLA":
            continue
        kind = kinds.get(operation.source_layers[0], "") if operation.source_layers else ""
        report(owner, "INFO", f"[GpuLayer] {kind.upper() or 'REFORMAT'}: {operation.name}")


def _foreign(layers: Any) -> str:
    return f"{{ForeignNode[{'...'.join(dict.fromkeys((layers[0], layers[-1])))}]}}"  # one layer has one name
