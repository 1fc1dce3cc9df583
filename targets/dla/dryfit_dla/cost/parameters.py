"""The numbers of the cost model, by board. `docs/reference/dla-cost-model.md` shows them with the formula.

Four numbers are fitted, on the published rows of two networks and on nothing else: `python benchmarks/dla_cost_fit.py`
repeats the fit. They hold for INT8 on Orin. All else is a published figure, or what was inferred from one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import attrs

from dryfit.attrs_classes import frozen
from dryfit.network.data_types import DataType
from dryfit_dla.sparsity import LARGEST_WEIGHTS

FITTED_ON = (
    "ResNet-50 and SSD-ResNet-34 on Jetson AGX Orin 64 GB, JetPack 5.1.1 (NVIDIA Deep-Learning-Accelerator-SW, README)"
)


@frozen
class ArrayRate:
    """How the multipliers work on one data type.

    Attributes:
        macs_per_cycle: of one core.
        channel_block: input channels that are worked on together; fewer cost as much.
        map_block: output maps that are worked on together.
        feature_block: channels that a tensor in memory is rounded up to.
        fidelity: `documented` or `inferred`.
        source: of the rate.
    """

    macs_per_cycle: int
    channel_block: int
    map_block: int
    feature_block: int
    fidelity: str
    source: str


@frozen
class CostParameters:
    """The parameters of one board.

    Attributes:
        rates: computation type to the multipliers' rate.
        bytes_per_second: that one core moves from and to DRAM while all cores work, at `memory_clock_hz`.
        memory_clock_hz: at which that rate was found.
        kept_bytes: of each tensor that a step leaves in, or finds in, the memory on the chip.
        step_seconds: that each step takes, whatever the clock.
        step_cycles: that each step takes in addition.
        sparse_gain: how many times as fast the multipliers are with sparse weights at their published peak.
        refetching_sparse_gain: how many times as fast where neither the weights nor the input of the step stay on the
            chip, so that one of them is fetched again and again for the other.
        kept_weight_bytes: the largest weights that stay on the chip while the input passes.
        copy_seconds: of a tensor's reformatting copy between the GPU and the DLA.
        handover_seconds: of handing a segment to the DLA and back, without the copies.
        error_factors: computation type to how far the time of a network may be off, up or down.
        copy_error_factor: how far that of a copy may be.
        source: where the parameters are from.
    """

    LEARNABLE: ClassVar[Sequence[str]] = (
        "rates.INT8.macs_per_cycle",
        "rates.FP16.macs_per_cycle",
        "bytes_per_second",
        "step_seconds",
        "step_cycles",
        "refetching_sparse_gain",
        "copy_seconds",
        "handover_seconds",
    )
    """The numbers that the latencies of a board can determine, by their names in overlays."""

    rates: Mapping[DataType, ArrayRate]
    bytes_per_second: float
    memory_clock_hz: float
    kept_bytes: int
    step_seconds: float
    step_cycles: float
    sparse_gain: float
    refetching_sparse_gain: float
    kept_weight_bytes: int
    copy_seconds: float
    handover_seconds: float
    error_factors: Mapping[DataType, float]
    copy_error_factor: float
    source: str


_ORDER_OF_MAGNITUDE = 10.0
_MIB = 1 << 20
_ORIN_RATES = {
    DataType.INT8: ArrayRate(8192, 64, 64, 32, "documented", "105 sparse TOPS / (2 cores x 2 for sparsity x 1.6 GHz)"),
    DataType.HALF: ArrayRate(
        162, 32, 16, 16, "inferred", "the only published FP16 latency: ResNet-50 at batch 1, 17.73 ms (TensorRT 10.3)"
    ),
}
_XAVIER_RATES = {
    DataType.INT8: ArrayRate(2048, 64, 32, 32, "documented", "11.4 INT8 TOPS / (2 cores x 1.395 GHz)"),
    DataType.HALF: ArrayRate(1024, 64, 16, 16, "documented", "half the INT8 rate"),
}
_AGX_ORIN = CostParameters(
    rates=_ORIN_RATES,
    bytes_per_second=54.62e9,
    memory_clock_hz=3.2e9,
    kept_bytes=_MIB,
    step_seconds=7.501e-6,
    step_cycles=7389.0,
    sparse_gain=2.0,
    refetching_sparse_gain=1.381,
    kept_weight_bytes=LARGEST_WEIGHTS,
    copy_seconds=0.1e-3,
    handover_seconds=0.0,
    # The largest error of a published figure is 11 %, and of one that was left out of the fit 15 %. FP16 rests on one.
    error_factors={DataType.INT8: 1.15, DataType.HALF: _ORDER_OF_MAGNITUDE},
    copy_error_factor=3.0,  # 0.1 to 0.3 ms are published of another board
    source=f"fitted to the published figures of {FITTED_ON}",
)
_ORIN_NX = attrs.evolve(
    _AGX_ORIN,
    bytes_per_second=_AGX_ORIN.bytes_per_second * 2133 / 3200,
    copy_seconds=0.2e-3,
    handover_seconds=1.1e-3,
    # No throughput of the board is published: its clocks and memory are inferred from AGX Orin's. Our choice.
    error_factors={DataType.INT8: 1.25, DataType.HALF: _ORDER_OF_MAGNITUDE},
    copy_error_factor=1.5,
    source=f"{_AGX_ORIN.source}; memory bandwidth of AGX Orin in its 15 W mode, whose published throughput "
    "Orin NX equals",
)
_XAVIER = attrs.evolve(
    _ORIN_NX,
    rates=_XAVIER_RATES,
    bytes_per_second=22.5e9,
    memory_clock_hz=2.133e9,
    sparse_gain=1.0,
    refetching_sparse_gain=1.0,
    error_factors={DataType.INT8: 2.0, DataType.HALF: 2.0},  # the overhead of a step is Orin's. Our choice
    source="rates from published peaks, 20 to 25 GB/s per core; overhead per step as fitted on Orin, as no "
    "figures are published",
)

PARAMETERS: Mapping[str, CostParameters] = {
    "agx-orin-64": _AGX_ORIN,
    "agx-orin-32": attrs.evolve(_AGX_ORIN, error_factors=_ORIN_NX.error_factors),
    "orin-nx-16": _ORIN_NX,
    "orin-nx-8": _ORIN_NX,
    "orin-nano": _ORIN_NX,
    "agx-xavier": _XAVIER,
    "xavier-nx": attrs.evolve(_XAVIER, memory_clock_hz=1.6e9),
}
"""Platform to its parameters."""

FITTED = ("bytes_per_second", "step_seconds", "step_cycles", "refetching_sparse_gain")
"""Fields that the fit finds; in this order."""
