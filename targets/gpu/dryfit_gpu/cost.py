"""Estimated latency of a GPU, a roofline of published peaks that real kernels do not reach, and its energy.

Each step takes as long as its multiply-accumulates at the board's peak or its bytes at the memory's peak, whichever is
longer, and a launch. Nothing is fitted: we have no published figure of a network that runs on a GPU of these boards
alone. It is a lower bound, and marked as such (`is_lower_bound`): a placement by cost then reports how much slower the
GPU may be before the proposal loses its advantage.

Joules are not published, so energy is relative to that of the board's DLA. The published figure is the ratio of images
per second and watt of the DLA to those of the GPU, each by its own power. With the estimated latencies of both,
the GPU's power follows as a multiple of one busy DLA core: its multipliers by their time at the published peak,
its memory by its own; a launch counts as the memory's time. For the fit, and the error on figures
that were not fitted, see docs/reference/dla-cost-model.md.

Source of the energy: NVIDIA Deep-Learning-Accelerator-SW, README, DLA Performance per Watt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from dryfit.network.data_types import DataType
from dryfit.target.cost import CostEstimate, CostQuestion, Energy, StepCost
from dryfit.target.power_mode import PowerMode
from dryfit.target.roofline import Roofline

ENERGY_ERROR_FACTOR = 1.8
"""How far energies may be off, up or down: the largest error of a network that the powers were not fitted on."""
ENERGY_SOURCE = "NVIDIA Deep-Learning-Accelerator-SW, README, DLA Performance per Watt (INT8, JetPack 5.1.1)"


@attrs.frozen
class Powers:
    """Power of the parts of a GPU at their published peak, relative to one busy core of the board's DLA.

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
    "published Perf/W of AGX Orin 64 GB at 15 W, whose published DLA throughput equals that of Orin NX 16 GB; the "
    "same ratio is inferred for the GPUs"
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
    """Energy of the GPU in these steps; None if nothing is published for the board in this mode.

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
        f"the GPU's multipliers draw {powers.multipliers:.3g} times, its memory and launches {powers.memory:.3g} times "
        f"the power of a DLA core; {powers.basis}"
    )
    amount = powers.multipliers * multipliers + powers.memory * memory
    return Energy.of_work(
        amount, basis, ENERGY_SOURCE, device="DLA", board=board, mode=mode, error_factor=ENERGY_ERROR_FACTOR
    )


LAUNCH_SECONDS = 5e-6
"""Of a kernel: our choice, in the range that launches are known to take."""

BASIS = "roofline: the slower of multiply-accumulates and bytes at the board's published peaks, plus a launch per step"
SOURCE = "published peaks of the board and its power modes; the launch overhead is our choice; not fitted"


@attrs.frozen
class Peak:
    """Peak throughput of a GPU, per cycle of its clocks.

    Attributes:
        int8_macs: dense, by the tensor cores; of FP16 and BF16 half as many.
        float_macs: by the plain cores.
        memory_bytes: of the memory's clock.
    """

    int8_macs: int
    float_macs: int
    memory_bytes: int

    def macs(self, precision: DataType) -> float:
        """Multiply-accumulates per cycle."""
        if precision is DataType.INT8:
            return self.int8_macs
        return self.int8_macs / 2 if precision in (DataType.HALF, DataType.BF16) else self.float_macs


PEAKS: Mapping[str, Peak] = {
    "agx-orin-64": Peak(64 * 512, 2048, 64),
    "agx-orin-32": Peak(56 * 512, 1792, 64),
    "orin-nx-16": Peak(32 * 512, 1024, 32),
    "orin-nx-8": Peak(32 * 512, 1024, 32),
    "orin-nano": Peak(32 * 512, 1024, 32),
    "agx-xavier": Peak(64 * 128, 512, 64),
    "xavier-nx": Peak(48 * 128, 384, 32),
}
"""Platform to peak."""

STAND_IN = PowerMode(
    "T4", 1.59e9, 5.0e9, "data sheet of NVIDIA T4: 130 INT8 TOPS, 65 FP16 and 8.1 FP32 TFLOPS, 320 GB/s"
)
STAND_IN_PEAK = Peak(40 * 1024, 2560, 64)
STAND_IN_TITLE = "no board given, so NVIDIA T4 is assumed (our choice); set one with --platform"
"""Stand-in for a GPU about which nothing is known: a common one whose peaks are published."""


def estimate_cost(question: CostQuestion) -> CostEstimate | None:
    """The estimated cost of a segment. A GPU without a board is estimated as `STAND_IN`, if that is of use."""
    mode = question.power_mode or question.platform.power_mode(None) or STAND_IN
    is_board = question.platform.name in PEAKS
    if not is_board and not question.allows_nominal:
        return None
    peak = PEAKS[question.platform.name] if is_board else STAND_IN_PEAK
    title = f"{question.platform.title} in power mode {mode.name}" if is_board else STAND_IN_TITLE
    found = Roofline(
        peak.macs,
        mode.clock_hz,
        peak.memory_bytes * mode.memory_clock_hz,
        LAUNCH_SECONDS,
        source=SOURCE if is_board else f"{STAND_IN.source}; the launch overhead is our choice; not fitted",
        basis=f"{BASIS}; {title}",
        is_nominal=not is_board,
    )(question)
    return attrs.evolve(found, energy=energy_of(found.steps, question.platform.name, mode.name))
