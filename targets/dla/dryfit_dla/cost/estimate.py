"""What the DLA is estimated to take; docs/reference/dla-cost-model.md has the model. Nothing was measured here."""

from __future__ import annotations

from dryfit.target.cost import CostEstimate, CostQuestion, TransferQuestion, combined_error
from dryfit.target.power_mode import PowerMode
from dryfit_dla.cost.energy import copy_energy, segment_energy
from dryfit_dla.cost.formula import step_cost
from dryfit_dla.cost.parameters import PARAMETERS
from dryfit_dla.cost.steps import steps_of

FORMULA = "padded multiply-accumulates by their rate, plus bytes by the memory's, plus an overhead for each step"


def estimate_cost(question: CostQuestion) -> CostEstimate:
    """The estimate of a segment on one core, while the board's other cores work as well; copies at its border apart.

    Where no core exists on the platform, or no clock was given, work is counted and no time is told.
    """
    parameters = PARAMETERS[question.platform.name]
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
    """The estimate of a tensor's way between GPU and DLA: its reformatting copy, and its half of a hand-over."""
    parameters = PARAMETERS[question.platform.name]
    mode = question.power_mode or question.platform.power_mode(None)
    return CostEstimate(
        microseconds=(parameters.copy_seconds + parameters.handover_seconds / 2) * 1e6,
        bytes_moved=2 * question.bytes_moved,
        macs=0,
        basis="a reformatting copy and half of the hand-over of a segment, whatever the size of the tensor",
        source=TRANSFER_SOURCE,
        energy=copy_energy(question.platform.name, mode, 2 * question.bytes_moved),
        error_factor=parameters.copy_error_factor,
    )


TRANSFER_SOURCE = (
    "published logs: 0.1 to 0.3 ms a copy and 1.5 ms a round trip on Orin NX (TensorRT 10.3); on AGX Orin the shortest "
    "copy and no hand-over, as ResNet-50 with its pooling on the GPU is published to take 1.278 ms in all"
)
_ANY_CLOCK = PowerMode("any", 1e9, 1e9)


def _in_mode(mode: PowerMode | None) -> str:
    return "" if mode is None else f" in power mode {mode.name}"
