"""What `dryfit estimate` tells, as plain data: the JSON that its `--json` prints."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from dryfit.answers.asked import load_network, require_shapes
from dryfit.answers.options import NetworkOptions
from dryfit.cli.network_config import create_config
from dryfit.estimate_text import time_text

if TYPE_CHECKING:
    from dryfit.answers.network_cost import NetworkCost, SegmentCost, TransferCost
    from dryfit.target.cost import CostEstimate, StepCost

Report = dict[str, Any]

NOTE = "Every time, throughput, energy and share here is an estimate by a formula; nothing was measured."


def estimate_report(model: Path, options: NetworkOptions, assumed: list[str]) -> Report:
    """The estimate of a model as its layers would be placed.

    Args:
        model: an ONNX file.
        options: what was asked.
        assumed: options that were taken because nothing was said.

    Raises:
        PlacementError: a layer can run nowhere.
        ConfigError: what was asked for does not fit together.
    """
    from dryfit.answers.network_cost import network_cost
    from dryfit.builder.refusals import require_places
    from dryfit.building import design_for_assessment

    network = load_network(model, options)
    require_shapes(network, options.shape)
    config = create_config(network, options)
    device = config.default_device_type
    # The board of the default is named, so that the other devices are taken to be on it.
    config.set_platform(device, config.platform(device).name)
    design = design_for_assessment(network, config)
    require_places(design, config)
    cost = network_cost(design)
    settings = config.settings(network)
    clocks = config.clocks(device)
    return {
        "model": str(model),
        "device": device,
        "platform": settings["platforms"].get(device, ""),
        "power_mode": None if clocks is None else clocks.name,
        "software": settings["software"].get(device, ""),
        "precisions": list(options.precision),
        "fallback": settings["fallback_device"],
        "assumed": assumed,
        "sparsity": options.sparsity,
        "sparse_layers": sorted(design.sparse_layers),
        "note": NOTE,
        "devices": sorted({one.device for one in cost.segments}),
        "batch": cost.batch,
        "layers": [_step(step, one) for one in cost.segments if one.estimate for step in one.estimate.steps],
        "segments": [_segment(one) for one in cost.segments],
        "transfers": [_transfer(one) for one in cost.transfers],
        "network": _network(cost, device),
    }


def _step(step: StepCost, segment: SegmentCost) -> dict[str, Any]:
    return {
        "segment": segment.index,
        "device": segment.device,
        "layers": list(step.layers),
        "macs": step.macs,
        "mac_cycles": step.cycles,
        "dram_bytes": step.bytes_moved,
        "compute_microseconds": step.compute_microseconds,
        "memory_microseconds": step.memory_microseconds,
        "overhead_microseconds": step.overhead_microseconds,
        "microseconds": step.microseconds,
        "bound": step.bound,
    }


def _segment(segment: SegmentCost) -> dict[str, Any]:
    found = segment.estimate
    return {
        "id": segment.index,
        "device": segment.device,
        "layers": len(segment.layers),
        "microseconds": None if found is None else found.microseconds,
        "dram_bytes": 0 if found is None else found.bytes_moved,
        "macs": 0 if found is None else found.macs,
        "energy": None if found is None or found.energy is None else attrs.asdict(found.energy),
        "basis": "the target estimates nothing" if found is None else found.basis,
        "source": "" if found is None else found.source,
        "fidelity": "inferred" if found is None else found.fidelity,
        "error_factor": None if found is None else found.error_factor,
        "is_lower_bound": found is not None and found.is_lower_bound,
        "text": "none" if found is None else _text(found),
    }


def _text(found: CostEstimate) -> str:
    return time_text(found.microseconds, found.error_factor, is_lower_bound=found.is_lower_bound)


def _transfer(transfer: TransferCost) -> dict[str, Any]:
    found = transfer.estimate
    return {
        "tensor": transfer.tensor,
        "from": transfer.source,
        "to": transfer.destination,
        "microseconds": None if found is None else found.microseconds,
        "energy": None if found is None or found.energy is None else attrs.asdict(found.energy),
        "basis": "no target estimates it" if found is None else found.basis,
        "source": "" if found is None else found.source,
        "error_factor": None if found is None else found.error_factor,
        "text": "none" if found is None else _text(found),
    }


def _network(cost: NetworkCost, device: str) -> dict[str, Any]:
    cores = max(cost.cores[device], 1)
    throughput = [
        {"cores": count, "images_per_second": cost.images_per_second(device, count)} for count in range(1, cores + 1)
    ]
    best = throughput[-1]["images_per_second"]
    return {
        "macs": cost.macs(),
        "macs_on_device": cost.macs(device),
        "latency_microseconds": cost.latency_microseconds,
        "latency_error_factor": cost.latency_error,
        "latency_text": time_text(
            cost.latency_microseconds, cost.latency_error, is_lower_bound=bool(cost.lower_bounds)
        ),
        "lower_bounds": list(cost.lower_bounds),
        "busy_microseconds": cost.busy_microseconds(device),
        "busy_error_factor": cost.busy_error(device),
        "throughput": throughput,
        "tops_used": None if best is None else 2 * cost.macs(device) / cost.batch * best / 1e12,
        "pipeline_images_per_second": cost.pipeline_images_per_second,
        "energy": None if cost.energy is None else {"amount": cost.energy[0], "unit": cost.energy[1]},
        "energy_error_factor": None if cost.energy is None else cost.energy_error,
        "without_time": list(cost.without_time),
    }
