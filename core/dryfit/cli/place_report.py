"""What `dryfit place` tells, as plain data: the JSON that its `--json` prints."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from dryfit.answers.asked import load_network, require_shapes
from dryfit.answers.options import NetworkOptions
from dryfit.cli.network_config import create_config

if TYPE_CHECKING:
    from dryfit.answers.network_cost import NetworkCost
    from dryfit.answers.placement_search.changes import Change
    from dryfit.answers.placement_search.proposal import PlacementOption, PlacementProposal
    from dryfit.builder.config.builder_config import BuilderConfig
    from dryfit.network.network import Network
    from dryfit.target.cost import CostEstimate, Energy

Report = dict[str, Any]

NOTE = "Every time, rate and energy here is an estimate by the targets' formulas; nothing was measured."
MODEL = (
    "Compared are whole segments as a build cuts them, each estimated as one, and each copy between devices. Searched "
    "was by costs of single layers (minimum cut) and of segments (small steps; on a chain dynamic programming)"
)


def proposal_of(
    model: Path, options: NetworkOptions, objective: str
) -> tuple[Network, BuilderConfig, PlacementProposal]:
    """The model's network, the config that the options describe, and the best placement for the objective.

    Raises:
        DryfitError: the model cannot be imported, the options do not fit it, or a target estimates no such thing.
    """
    from dryfit.answers.placement_search.objective import Objective
    from dryfit.answers.placement_search.proposal import propose_placement

    network = load_network(model, options)
    require_shapes(network, options.shape)
    config = create_config(network, options)
    device = config.default_device_type
    # The board of the default is named, so that the other devices are taken to be on it.
    config.set_platform(device, config.platform(device).name)
    return network, config, propose_placement(network, config, Objective(objective))


def place_report(
    model: str,
    options: NetworkOptions,
    assumed: list[str],
    network: Network,
    config: BuilderConfig,
    proposal: PlacementProposal,
    output: Path | None,
) -> Report:
    """The report.

    Args:
        model: what the user calls it.
        options: what was asked.
        assumed: options that were taken because nothing was said.
        network: of the model.
        config: what the options describe.
        proposal: the best placement; see `proposal_of`.
        output: the file that the placement is written to; None for none.
    """
    settings = config.settings(network)
    device = proposal.device
    clocks = config.clocks(device)
    return {
        "model": model,
        "device": device,
        "platform": settings["platforms"].get(device, ""),
        "power_mode": None if clocks is None else clocks.name,
        "software": settings["software"].get(device, ""),
        "precisions": list(options.precision),
        "fallback": proposal.fallback,
        "assumed": assumed,
        "note": NOTE,
        "objective": str(proposal.objective),
        "unit": proposal.unit,
        "compared_by": MODEL,
        "bases": _bases(proposal),
        "lower_bounds": _lower_bounds(proposal),
        "options": [_option(one, proposal) for one in proposal.options],
        "changes": [_change(one) for one in proposal.changes],
        "placement": dict(proposal.own_devices),
        "output": None if output is None else str(output),
    }


def _lower_bounds(proposal: PlacementProposal) -> dict[str, Any] | None:
    found = proposal.lower_bounds
    return None if found is None else {"devices": list(found.devices), "factor": found.factor}


def _option(option: PlacementOption, proposal: PlacementProposal) -> dict[str, Any]:
    cost, assessment = option.cost, option.assessment
    placed = [layer.device for layer in assessment.layers]
    ran = [segment.device for segment in assessment.segments]
    return {
        "title": option.title,
        "is_before": option is proposal.before,
        "is_chosen": option is proposal.after,
        "is_exact": option.is_exact,
        "value": option.value,
        "latency_microseconds": cost.latency_microseconds,
        "error_factor": cost.latency_error,
        "lower_bounds": list(cost.lower_bounds),
        "images_per_second": cost.pipeline_images_per_second,
        "energy": _energy(option.cost),
        "energy_error_factor": None if option.cost.energy is None else option.cost.energy_error,
        "layers_by_device": {device: placed.count(device) for device in sorted(set(placed))},
        "segments_by_device": {device: ran.count(device) for device in sorted(set(ran))},
        "macs_by_device": dict(sorted(option.macs.items())),
        "copies": len(cost.transfers),
    }


def _energy(cost: NetworkCost) -> dict[str, Any] | None:
    found = cost.energy
    return None if found is None else {"amount": found.amount, "unit": found.unit}


def _change(change: Change) -> dict[str, Any]:
    return {
        "layers": list(change.layers),
        "from": change.source,
        "to": change.destination,
        "reason": change.reason,
        "value_otherwise": change.value_otherwise,
    }


def _bases(proposal: PlacementProposal) -> list[dict[str, str]]:
    """How each device's figures were reckoned, each way once."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for option in proposal.options:
        told = [(one.device, one.estimate) for one in option.cost.segments]
        told += [("copies", one.estimate) for one in option.cost.transfers]
        for what, estimate in told:
            if estimate is not None:
                found.setdefault((what, estimate.basis), _basis(what, estimate, estimate.fidelity))
            if estimate is not None and estimate.energy is not None and option.cost.energy is not None:
                entry = _basis(f"energy of {what}", estimate.energy, estimate.fidelity)
                found.setdefault((entry["of"], entry["basis"]), entry)
    return list(found.values())


def _basis(what: str, told: CostEstimate | Energy, fidelity: str) -> dict[str, str]:
    return {"of": what, "basis": told.basis, "source": told.source, "fidelity": fidelity}
