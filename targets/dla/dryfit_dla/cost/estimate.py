"""Estimated latency and energy of the DLA; docs/reference/dla-cost-model.md documents the model. Nothing was measured.

Joules are not published, so energy is relative. The unit is the energy of one core in 1 us of its estimated work, so
a segment's energy equals its latency. The GPU's target estimates the GPU's energy in that unit; this module estimates
that of the copies at a segment's border. For boards without a published efficiency, no energy is reported.

Source of the energy: NVIDIA Deep-Learning-Accelerator-SW, README, DLA Performance per Watt.
"""

from __future__ import annotations

from collections.abc import Mapping

from dryfit.attrs_classes import frozen
from dryfit.target.cost import CostEstimate, CostQuestion, Energy, TransferQuestion, combined_error
from dryfit.target.power_mode import PowerMode
from dryfit_dla.cost.formula import step_cost
from dryfit_dla.cost.parameters import PARAMETERS, CostParameters
from dryfit_dla.cost.steps import steps_of

ERROR_FACTOR = 1.8
"""How far energies may be off, up or down: the largest error of a network that the GPU's powers were not fitted on."""
LAUNCH_SECONDS = 5e-6
"""Of the kernel that copies; as the GPU's own estimate has it."""


@frozen
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
"""Platform and power mode, where an efficiency is published or inferred, to the power of copies."""

SOURCE = "NVIDIA Deep-Learning-Accelerator-SW, README, DLA Performance per Watt: power of the accelerators only"
_BASIS = "the estimated latency; 1 unit is 1 us of one busy DLA core, as no watts are published"
_COPY_BASIS = (
    "the GPU's memory and kernel launch draw {power:.3g} times what a DLA core draws, for bytes read and written; "
    "the rest of the handover is assumed to draw nothing"
)


def segment_energy(board: str, mode: PowerMode | None, microseconds: float) -> Energy | None:
    """Energy of one core in a segment; None if no figure is published for the board in this mode.

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
    """Energy of the GPU in the copy of a tensor from or to the DLA; None as above.

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


FORMULA = "padded multiply-accumulates / rate + bytes / memory bandwidth + overhead per step"


def estimate_cost(question: CostQuestion) -> CostEstimate:
    """The estimated cost of a segment on one core while the board's other cores are busy, without border copies.

    If the platform has no core, or no clock is known, work is counted and no latency is reported.
    """
    parameters: CostParameters = question.parameters or PARAMETERS[question.platform.name]
    mode = question.power_mode or question.platform.power_mode(None)
    steps = steps_of(question, parameters)
    costs = [step_cost(step, parameters, mode or _ANY_CLOCK) for step in steps]
    microseconds = sum(cost.microseconds for cost in costs)
    return CostEstimate(
        microseconds=None if mode is None else microseconds,
        bytes_moved=sum(cost.bytes_moved for cost in costs),
        macs=sum(cost.macs for cost in costs),
        basis=f"{FORMULA}; {question.platform.title}{_in_mode(mode)}",
        source=parameters.source,
        energy=segment_energy(question.platform.name, mode, microseconds),
        steps=() if mode is None else costs,
        error_factor=combined_error(
            (cost.microseconds, parameters.error_factors[step.precision])
            for step, cost in zip(steps, costs, strict=True)
        ),
    )


def estimate_transfer(question: TransferQuestion) -> CostEstimate:
    """The estimated cost of moving a tensor between GPU and DLA: its reformatting copy, and half of a handover."""
    parameters: CostParameters = question.parameters or PARAMETERS[question.platform.name]
    mode = question.power_mode or question.platform.power_mode(None)
    return CostEstimate(
        microseconds=(parameters.copy_seconds + parameters.handover_seconds / 2) * 1e6,
        bytes_moved=2 * question.bytes_moved,
        macs=0,
        basis="one reformatting copy and half of a segment's handover, independent of the tensor's size",
        source=TRANSFER_SOURCE,
        energy=copy_energy(question.platform.name, mode, 2 * question.bytes_moved),
        error_factor=parameters.copy_error_factor,
    )


TRANSFER_SOURCE = (
    "published logs: 0.1 to 0.3 ms per copy and 1.5 ms per round trip on Orin NX (TensorRT 10.3); on AGX Orin the "
    "shortest copy and no handover, as the published latency of ResNet-50 with pooling on the GPU is 1.278 ms in all"
)
_ANY_CLOCK = PowerMode("any", 1e9, 1e9)


def _in_mode(mode: PowerMode | None) -> str:
    return "" if mode is None else f" in power mode {mode.name}"
