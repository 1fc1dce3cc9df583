"""What a DLA is estimated to draw beside the GPU of its board. Joules are not published, so all of it is relative.

The unit is what one core draws in a microsecond of its estimated work, so that a segment's energy is its time. What the
GPU draws in that unit, its own target tells; what it draws in the copies at a segment's border stands here. For boards
of which no efficiency is published no energy is told.

Source: NVIDIA Deep-Learning-Accelerator-SW, README, DLA Performance per Watt; see docs/reference/dla-cost-model.md.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from dryfit.target.cost import Energy
from dryfit.target.power_mode import PowerMode

ERROR_FACTOR = 1.8
"""How far energies may be off, up or down: the largest error of a network that the GPU's powers were not fitted on."""
LAUNCH_SECONDS = 5e-6
"""Of the kernel that copies; as the GPU's own estimate has it."""


@attrs.frozen
class CopyPower:
    """What the GPU draws while it copies.

    Attributes:
        power: of its memory, in powers of one working core of the DLA; as the GPU's own estimate has it.
        memory_bytes: that the board's memory moves at most for each cycle of its clock.
    """

    power: float
    memory_bytes: int


COPY_POWERS: Mapping[tuple[str, str], CopyPower] = {
    ("agx-orin-64", "MAXN"): CopyPower(18.01, 64),
    ("agx-orin-64", "50W"): CopyPower(15.77, 64),
    ("agx-orin-64", "30W"): CopyPower(14.17, 64),
    ("agx-orin-64", "15W"): CopyPower(20.70, 64),
    ("orin-nx-16", "MAXN"): CopyPower(15.44, 32),
}
"""Platform and power mode, of all of which an efficiency is published or inferred, to what copies draw."""

SOURCE = "NVIDIA Deep-Learning-Accelerator-SW, README, DLA Performance per Watt: power of the accelerators only"
_BASIS = "the estimated time: a microsecond of one DLA core is the unit, as no watts are published"
_COPY_BASIS = (
    "the GPU's memory and launch draw {power:.3g} times what a DLA core does, for the bytes there and back; nothing "
    "for the rest of the hand-over, which is our assumption"
)


def segment_energy(board: str, mode: PowerMode | None, microseconds: float) -> Energy | None:
    """What one core draws in a segment; None where no figure of the board in this mode is published.

    Args:
        board: name of the platform.
        mode: its power mode.
        microseconds: the segment's estimated time.
    """
    if mode is None or (board, mode.name) not in COPY_POWERS:
        return None
    return Energy.of_work(
        microseconds, _BASIS, SOURCE, device="DLA", board=board, mode=mode.name, error_factor=ERROR_FACTOR
    )


def copy_energy(board: str, mode: PowerMode | None, bytes_moved: int) -> Energy | None:
    """What the GPU draws in the copy of a tensor from or to the DLA; None as above.

    Args:
        board: name of the platform.
        mode: its power mode.
        bytes_moved: read and written.
    """
    found = None if mode is None else COPY_POWERS.get((board, mode.name))
    if mode is None or found is None:
        return None
    microseconds = 1e6 * (LAUNCH_SECONDS + bytes_moved / (found.memory_bytes * mode.memory_clock_hz))
    basis = _COPY_BASIS.format(power=found.power)
    return Energy.of_work(
        found.power * microseconds, basis, SOURCE, device="DLA", board=board, mode=mode.name, error_factor=ERROR_FACTOR
    )
