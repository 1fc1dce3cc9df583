"""Estimated latency of a GPU, a roofline of published peaks that real kernels do not reach, and its energy.

Each step takes as long as its multiply-accumulates at the board's peak or its bytes at the memory's peak, whichever is
longer, and a launch. Nothing is fitted: we have no published figure of a network that runs on a GPU of these boards
alone. It is a lower bound, and marked as such (`is_lower_bound`): a placement by cost then reports how much slower the
GPU may be before the proposal loses its advantage. An overlay may have rates that were fitted to times of a board
(`dryfit board learn`): with them, the same formula is an estimate with the error of that fit.

Joules are not published, so energy is relative to that of the board's DLA. The published figure is the ratio of images
per second and watt of the DLA to those of the GPU, each by its own power. With the estimated latencies of both,
the GPU's power follows as a multiple of one busy DLA core: its multipliers by their time at the published peak,
its memory by its own; a launch counts as the memory's time. For the fit, and the error on figures
that were not fitted, see docs/reference/dla-cost-model.md.

Source of the energy: NVIDIA Deep-Learning-Accelerator-SW, README, DLA Performance per Watt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import attrs

from dryfit.attrs_classes import frozen
from dryfit.network.data_types import DataType
from dryfit.target.cost import CostEstimate, CostQuestion, Energy, StepCost, combined_error
from dryfit.target.power_mode import PowerMode
from dryfit.target.roofline import Roofline

ENERGY_ERROR_FACTOR = 1.8
"""How far energies may be off, up or down: the largest error of a network that the powers were not fitted on."""
ENERGY_SOURCE = "NVIDIA Deep-Learning-Accelerator-SW, README, DLA Performance per Watt (INT8, JetPack 5.1.1)"


@frozen
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
FITTED_BASIS = (
    "the slower of multiply-accumulates and bytes at rates fitted to times of a board, plus a launch per step"
)
SOURCE = "published peaks of the board and its power modes; the launch overhead is our choice; not fitted"


_TYPES = (DataType.INT8, DataType.HALF, DataType.FLOAT)


@frozen
class CostParameters:
    """The parameters of one GPU: its published peaks, per cycle of its clocks, unless an overlay has others.

    Attributes:
        macs_per_cycle: computation type to dense multiply-accumulates of the whole GPU per cycle of its clock.
        memory_bytes: that its memory moves per cycle of the memory's clock.
        launch_seconds: of a kernel.
        error_factors: computation type to how far a time may be off, up or down; 0 if unknown, as at published peaks,
            where the time is a lower bound.
        source: where the parameters are from.
    """

    LEARNABLE: ClassVar[Sequence[str]] = (
        "macs_per_cycle.INT8",
        "macs_per_cycle.FP16",
        "macs_per_cycle.FP32",
        "memory_bytes",
        "launch_seconds",
    )
    """The numbers that the times of a board can determine, by their names in overlays."""

    macs_per_cycle: Mapping[DataType, float]
    memory_bytes: float
    launch_seconds: float = LAUNCH_SECONDS
    error_factors: Mapping[DataType, float] = attrs.field(factory=lambda: dict.fromkeys(_TYPES, 0.0))
    source: str = SOURCE

    @classmethod
    def of_peaks(cls, int8_macs: int, float_macs: int, memory_bytes: int) -> CostParameters:
        """Return the parameters of a GPU whose tensor cores do half as many multiply-accumulates in FP16 as in INT8."""
        rates = {DataType.INT8: int8_macs, DataType.HALF: int8_macs / 2, DataType.FLOAT: float_macs}
        return cls({dtype: float(rate) for dtype, rate in rates.items()}, float(memory_bytes))

    def macs(self, precision: DataType) -> float:
        """Multiply-accumulates per cycle; BF16 is as fast as FP16, and other types are as fast as FP32."""
        return self.macs_per_cycle[_rate_type(precision)]

    def error_factor(self, precision: DataType) -> float | None:
        """How far a time may be off; None if unknown."""
        return self.error_factors[_rate_type(precision)] or None


def _rate_type(precision: DataType) -> DataType:
    if precision is DataType.BF16:
        return DataType.HALF
    return precision if precision in _TYPES else DataType.FLOAT


PARAMETERS: Mapping[str, CostParameters] = {
    "agx-orin-64": CostParameters.of_peaks(64 * 512, 2048, 64),
    "agx-orin-32": CostParameters.of_peaks(56 * 512, 1792, 64),
    "orin-nx-16": CostParameters.of_peaks(32 * 512, 1024, 32),
    "orin-nx-8": CostParameters.of_peaks(32 * 512, 1024, 32),
    "orin-nano": CostParameters.of_peaks(32 * 512, 1024, 32),
    "agx-xavier": CostParameters.of_peaks(64 * 128, 512, 64),
    "xavier-nx": CostParameters.of_peaks(48 * 128, 384, 32),
}
"""Platform to its parameters."""

STAND_IN = PowerMode(
    "T4", 1.59e9, 5.0e9, "data sheet of NVIDIA T4: 130 INT8 TOPS, 65 FP16 and 8.1 FP32 TFLOPS, 320 GB/s"
)
STAND_IN_PARAMETERS = CostParameters.of_peaks(40 * 1024, 2560, 64)
STAND_IN_TITLE = "no board given, so NVIDIA T4 is assumed (our choice); set one with --platform"
"""Stand-in for a GPU about which nothing is known: a common one whose peaks are published."""


def estimate_cost(question: CostQuestion) -> CostEstimate | None:
    """The estimated cost of a segment. A GPU without a board is estimated as `STAND_IN`, if that is of use.

    At published peaks, the time is a lower bound. With parameters that an overlay has from a board, it is an estimate
    with the overlay's error. The energy is always that of the work at published peaks, to which the powers are fitted.
    """
    mode = question.power_mode or question.platform.power_mode(None) or STAND_IN
    board = question.platform.name
    if board not in PARAMETERS:
        if not question.allows_nominal:
            return None
        source = f"{STAND_IN.source}; the launch overhead is our choice; not fitted"
        found = _roofline(STAND_IN_PARAMETERS, mode, question, f"{BASIS}; {STAND_IN_TITLE}", source)
        return attrs.evolve(found, is_nominal=True)
    title = f"{question.platform.title} in power mode {mode.name}"
    peaks = PARAMETERS[board]
    at_peaks = _roofline(peaks, mode, question, f"{BASIS}; {title}", SOURCE)
    energy = energy_of(at_peaks.steps, board, mode.name)
    parameters: CostParameters = question.parameters or peaks
    if parameters == peaks:
        return attrs.evolve(at_peaks, energy=energy)
    found = _roofline(parameters, mode, question, f"{FITTED_BASIS}; {title}", parameters.source)
    types = {layer.name: question.precision(layer) for layer in question.layers}
    errors = [(step.microseconds, parameters.error_factor(types[step.layers[0]])) for step in found.steps]
    return attrs.evolve(found, energy=energy, is_lower_bound=False, error_factor=combined_error(errors))


def _roofline(
    parameters: CostParameters, mode: PowerMode, question: CostQuestion, basis: str, source: str
) -> CostEstimate:
    rate = parameters.memory_bytes * mode.memory_clock_hz
    return Roofline(parameters.macs, mode.clock_hz, rate, parameters.launch_seconds, source=source, basis=basis)(
        question
    )
