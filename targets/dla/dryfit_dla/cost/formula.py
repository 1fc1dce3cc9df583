"""The formula of the cost model: what one step of a segment takes.

A step is a convolution with all that runs behind its multipliers (bias, batch normalisation, activation, the sum with
a residual), or a single layer that multiplies nothing. Multipliers, memory and a fixed overhead are added: taking the
longest of them fits the published figures less well.

Source: the form of NVDLA's performance sheet (nvdla/hw): channels rounded up to what the hardware works on together,
times positions, by the rate. Roundings and the sum: found to fit Orin; see docs/reference/dla-cost-model.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from dryfit.attrs_classes import frozen
from dryfit.network.data_types import DataType
from dryfit.target.cost import StepCost
from dryfit.target.power_mode import PowerMode
from dryfit_dla.cost.parameters import ArrayRate, CostParameters


@frozen
class FeatureMap:
    """A tensor that a step reads or writes.

    Attributes:
        batch, channels, positions: N, C, and H * W.
        dtype: in which it is stored.
        is_image: whether it lies in DLA_HWC4.
    """

    batch: int
    channels: int
    positions: int
    dtype: DataType
    is_image: bool = False

    def size_bytes(self, rate: ArrayRate) -> int:
        """Bytes in memory, channels rounded up."""
        channels = pixel_channels(self.channels) if self.is_image else rounded_up(self.channels, rate.feature_block)
        return self.dtype.bytes_of(self.batch * channels * self.positions)


@frozen
class Kernels:
    """What a step multiplies with.

    Attributes:
        height, width: of the window.
        channels: of the whole input.
        maps: of the output.
        groups: into which channels and maps are divided.
        positions: at which each kernel is applied, over all of the batch.
        is_image: whether the input is an image: the hardware reads it one row of the window at a time.
        is_sparse: whether the zeros of 2:4 weights are skipped.
    """

    height: int
    width: int
    channels: int
    maps: int
    groups: int
    positions: int
    is_image: bool = False
    is_sparse: bool = False

    @property
    def macs(self) -> int:
        """Multiply-accumulates, without any rounding up."""
        return self.positions * self.height * self.width * (self.channels // self.groups) * self.maps

    def padded_macs(self, rate: ArrayRate) -> int:
        """Multiply-accumulates with padding: of a grouped convolution, each map takes its group's padded channels."""
        if self.is_image:
            row = pixel_channels(self.channels) * self.width
            channels_and_width = rounded_up(row, rate.channel_block if self.width > 3 else rate.channel_block // 2)
        else:
            channels_and_width = rounded_up(self.channels // self.groups, rate.channel_block) * self.width
        return self.positions * self.height * channels_and_width * rounded_up(self.maps, rate.map_block)

    def cycles(self, rate: ArrayRate, sparse_gain: float) -> float:
        """Cycles of the multipliers."""
        return self.padded_macs(rate) / rate.macs_per_cycle / (sparse_gain if self.is_sparse else 1.0)

    def size_bytes(self, rate: ArrayRate, dtype: DataType) -> int:
        """Bytes of the weights in memory."""
        block = rate.feature_block
        group = self.channels // self.groups
        channels = pixel_channels(self.channels) if self.is_image else rounded_up(group, block)
        return dtype.bytes_of(self.height * self.width * channels * rounded_up(self.maps, block))


@frozen
class CostStep:
    """What a device runs as one.

    Attributes:
        layers: names, in execution order.
        precision: in which it is computed.
        inputs: what it reads, residuals among them.
        outputs: what it writes.
        kernels: what it multiplies with; None where it multiplies nothing.
        constant_bytes: of constants other than kernels.
    """

    layers: Sequence[str]
    precision: DataType
    inputs: Sequence[FeatureMap]
    outputs: Sequence[FeatureMap]
    kernels: Kernels | None = None
    constant_bytes: int = 0


def step_cost(step: CostStep, parameters: CostParameters, mode: PowerMode) -> StepCost:
    """What the step takes on one core."""
    rate = parameters.rates[step.precision]
    cycles = 0.0 if step.kernels is None else step.kernels.cycles(rate, sparse_gain(step, parameters))
    moved = bytes_from_dram(step, parameters)
    bytes_per_second = parameters.bytes_per_second * mode.memory_clock_hz / parameters.memory_clock_hz
    return StepCost(
        layers=step.layers,
        compute_microseconds=cycles / mode.clock_hz * 1e6,
        memory_microseconds=moved / bytes_per_second * 1e6,
        overhead_microseconds=(parameters.step_seconds + parameters.step_cycles / mode.clock_hz) * 1e6,
        cycles=math.ceil(cycles),
        bytes_moved=moved,
        macs=0 if step.kernels is None else step.kernels.macs,
        padded_macs=0 if step.kernels is None else step.kernels.padded_macs(rate),
    )


def sparse_gain(step: CostStep, parameters: CostParameters) -> float:
    """How many times as fast the multipliers are if the step's weights are sparse, by what bounds it.

    They need weights and activations twice as fast. As long as one of the two stays on the chip while the other passes
    once, they get them; where neither stays, one is fetched again for each part of the other.
    """
    rate = parameters.rates[step.precision]
    weights = 0 if step.kernels is None else step.kernels.size_bytes(rate, step.precision)
    activations = max((one.size_bytes(rate) for one in step.inputs[:1]), default=0)
    is_kept = weights <= parameters.kept_weight_bytes or activations <= parameters.kept_bytes
    return parameters.sparse_gain if is_kept else parameters.refetching_sparse_gain


def bytes_from_dram(step: CostStep, parameters: CostParameters) -> int:
    """All weights, and of each tensor what the memory on the chip does not keep."""
    rate = parameters.rates[step.precision]
    sizes = (one.size_bytes(rate) for one in (*step.inputs, *step.outputs))
    weights = 0 if step.kernels is None else step.kernels.size_bytes(rate, step.precision)
    return step.constant_bytes + weights + sum(max(0, size - parameters.kept_bytes) for size in sizes)


def rounded_up(value: int, block: int) -> int:
    """The smallest multiple of the block that is no less."""
    return -(-value // block) * block


def pixel_channels(channels: int) -> int:
    """Channels that a pixel takes in DLA_HWC4."""
    return 1 if channels == 1 else 4
