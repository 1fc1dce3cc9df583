"""Where layers are after segments had to move: on the fallback device, or nowhere."""

from __future__ import annotations

import attrs

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.placement.assign import NOWHERE, Assignment, verdicts_of
from dryfit.builder.placement.partition import Partition
from dryfit.network.network import Network


def moved_assignment(
    network: Network, config: BuilderConfig, assignment: Assignment, partition: Partition
) -> Assignment:
    """The assignment with the layers of segments that could not stay where they were put.

    Args:
        network: as it was placed.
        config: its fallback device is asked about these layers.
        assignment: from before the cut.
        partition: the cut.
    """
    if not partition.moved:
        return assignment
    fallback = config.fallback_device or ""
    refused = list(assignment.refused)
    verdicts = {name: dict(of_layer) for name, of_layer in assignment.verdicts.items()}
    verdict_on = verdicts_of(fallback, config, {})
    for layer in network.layers:
        if layer.name in partition.moved:
            verdict = verdicts[layer.name][fallback] = verdict_on(layer)
            if not verdict:
                refused.append(verdict)
    warnings = [f"{cause}. It runs on {fallback}" for cause in dict.fromkeys(partition.moved.values())]
    return attrs.evolve(
        assignment,
        devices={**assignment.devices, **dict.fromkeys(partition.moved, fallback)},
        causes={**assignment.causes, **partition.moved},
        verdicts=verdicts,
        refused=refused,
        warnings=[*assignment.warnings, *warnings],
    )


def without_stuck(assignment: Assignment, partition: Partition) -> tuple[Assignment, Partition]:
    """Both with the layers of segments that had to move and had nowhere to go: these are nowhere, as refused ones."""
    causes = {layer: lost.cause for lost in partition.rejected if not lost.fallback for layer in lost.layers}
    if not causes:
        return assignment, partition
    runs = [
        attrs.evolve(run, device=NOWHERE) if any(layer.name in causes for layer in run.layers) else run
        for run in partition.runs
    ]
    devices = {**assignment.devices, **dict.fromkeys(causes, NOWHERE)}
    causes = {**assignment.causes, **causes}
    return attrs.evolve(assignment, devices=devices, causes=causes), attrs.evolve(partition, runs=runs)
