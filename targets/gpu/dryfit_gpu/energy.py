"""What a GPU is estimated to draw beside the DLAs of its board. Joules are not published, so all of it is relative.

Published is how many more images a second and watt the DLA makes than the GPU, each counted by its own power. With the
estimated times of both, what the GPU draws follows as so many times what one working core of the DLA draws: its
multipliers by their time at the published peak, its memory by its own; a launch counts as the memory's time. How the
numbers were found, and how far they are off figures that they were not found with: docs/reference/dla-cost-model.md.

Source: NVIDIA Deep-Learning-Accelerator-SW, README, DLA Performance per Watt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from dryfit.target.cost import Energy, StepCost

ERROR_FACTOR = 1.8
"""How far energies may be off, up or down: the largest error of a network that the powers were not fitted on."""
SOURCE = "NVIDIA Deep-Learning-Accelerator-SW, README, DLA Performance per Watt (INT8, JetPack 5.1.1)"


@attrs.frozen
class Powers:
    """What parts of a GPU draw at their published peak, in powers of one working core of the board's DLA.

    Attributes:
        multipliers: by the time that they take.
        memory: by the time that it takes, and that launches take.
        basis: what they follow from.
    """

    multipliers: float
    memory: float
    basis: str


_ROWS = "published Perf/W of ResNet-50 and SSD-ResNet-34"
_NX = (
    "published Perf/W of AGX Orin 64 GB at 15 W, which the DLA of Orin NX 16 GB is published to equal; that the GPUs "
    "compare as well is inferred"
)
POWERS: Mapping[tuple[str, str], Powers] = {
    ("agx-orin-64", "MAXN"): Powers(9.080, 18.01, _ROWS),
    ("agx-orin-64", "50W"): Powers(5.250, 15.77, _ROWS),
    ("agx-orin-64", "30W"): Powers(1.837, 14.17, _ROWS),
    ("agx-orin-64", "15W"): Powers(2.490, 20.70, _ROWS),
    ("orin-nx-16", "MAXN"): Powers(10.79, 15.44, _NX),
}
"""Platform and power mode to powers; `python benchmarks/dla_cost_fit.py` finds them again."""


def energy_of(steps: Sequence[StepCost], board: str, mode: str) -> Energy | None:
    """What the GPU draws in these steps; None where nothing of the board in this mode is published.

    Args:
        steps: with their times.
        board: name of the platform.
        mode: name of its power mode.
    """
    powers = POWERS.get((board, mode))
    if powers is None:
        return None
    multipliers = sum(step.compute_microseconds for step in steps)
    memory = sum(step.memory_microseconds + step.overhead_microseconds for step in steps)
    basis = (
        f"the GPU's multipliers draw {powers.multipliers:.3g} and its memory and launches {powers.memory:.3g} times "
        f"what a DLA core does; {powers.basis}"
    )
    amount = powers.multipliers * multipliers + powers.memory * memory
    return Energy.of_work(amount, basis, SOURCE, device="DLA", board=board, mode=mode, error_factor=ERROR_FACTOR)
