"""What an integer group does after its exact sums: read from the layers of the group, in the order of the arithmetic.

    sums         exact, INT32: products of INT8 values, plus a bias that is whole units of the products
    x = FP32(sums) * multiplier            one multiplier a channel: input scale * weight scale / unit, rounded once
    if real bias:    x = x + bias          one a channel: bias / unit, rounded once
    if rounds_sum:   x = round(limit(x, sum_limits)) * sum_multiplier
    if residual:     r = (FP32(residual) - residual_zero) * residual_multiplier
                     x = x + r, or x * r, max(x, r), min(x, r)
    x = limit(x, limits)                   an activation and INT8's own limits
    if rounds_last:  x = limit(round(x) * last_multiplier, last_limits)
    if is_quantized: the result is round(x) + zero_point, else x

Of quantized values with a zero point, sums are those of their distances from it: exact, too. The limits of a rounding
whose results have one are those of INT8 less the zero point.

Every step is one FP32 operation of IEEE 754, rounded to nearest even, none joined with the next. `round` gives whole
numbers by the device's rounding mode.

Source: S. Migacz, "8-bit Inference with TensorRT" (GTC 2017), workflow of an INT8 convolution: INT32 sums, FP32,
scale, bias in the output's scale, ReLU, round, saturate. ONNX Runtime's quantizer gives biases as INT32: these are in
the sums. Our choice: the scales meet in one multiplier a channel, as in the integer kernels of all devices that we
know; roundings between layers of the network are kept.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import attrs
import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.errors import BuildError
from dryfit.network.layer import Layer
from dryfit.quantization.rounding import Rounding, RoundingFunction, RoundingMode
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, HostLayout, kernel
from dryfit_cpu import codes
from dryfit_cpu.descriptors import RequantizationSteps, SampleSteps
from dryfit_cpu.kernels.epilogues import require_one_shape
from dryfit_cpu.kernels.integer_stages import (
    SERVED_TYPES,
    UNLIMITED,
    Quantized,
    RequantizationStage,
    StageGrid,
    quantized_source,
    stages_of,
)

if TYPE_CHECKING:
    from dryfit_cpu.kernels.integer_weights import IntegerWeights


@frozen(eq=False)
class StatedGroup(LayerGroup):
    """Dequantizations, a weighted sum and a quantization, which tell the geometry only.

    Attributes:
        weights: what it multiplies by, and the numbers that scale its sums.
        steps: what happens to the sums.
    """

    weights: IntegerWeights
    steps: GroupRequantization


_ROUNDING_CODES = {
    RoundingMode.HALF_TO_EVEN: codes.HALF_TO_EVEN,
    RoundingMode.HALF_AWAY_FROM_ZERO: codes.HALF_AWAY_FROM_ZERO,
    RoundingMode.HALF_UP: codes.HALF_UP,
}
_LOWEST, _HIGHEST = -128.0, 127.0


@attrs.frozen
class GroupRequantization:
    """The numbers of a requantization as native functions take them, in FP32.

    Attributes:
        unit: what the sums are scaled to: the scale of the first rounding, or 1 where none follows.
        rounds_sum: whether there is a rounding before the residual is added.
        sum_limits: limits of that rounding.
        sum_multiplier: its scale in units of the next one.
        operation: code of what combines the sum with the residual: SUM, PROD, MAX or MIN; FIRST where there is none.
        residual: name of the tensor that is added, or combined in another way; "" for none.
        residual_multiplier: its scale in units of the next rounding's, negative where it is subtracted; of a product
            the scale itself.
        residual_zero: its zero point.
        limits: before the main rounding, or of the real result.
        rounds_last: whether there is a rounding after that.
        last_multiplier: the main rounding's scale in units of the last one.
        last_limits: of the last rounding.
        zero_point: is added to INT8 results after the last rounding; its limits are that much lower.
        rounding: how whole numbers are found.
        is_quantized: whether the result is INT8; else it is real.
        scaling: code of how sums are scaled; by FP32 multipliers, unless a quantize method says otherwise.
    """

    unit: float = 1.0
    rounds_sum: bool = False
    sum_limits: tuple[float, float] = UNLIMITED
    sum_multiplier: float = 1.0
    operation: int = codes.FIRST
    residual: str = ""
    residual_multiplier: float = 0.0
    residual_zero: int = 0
    limits: tuple[float, float] = UNLIMITED
    rounds_last: bool = False
    last_multiplier: float = 1.0
    last_limits: tuple[float, float] = UNLIMITED
    zero_point: int = 0
    rounding: Rounding = RoundingMode.HALF_TO_EVEN
    is_quantized: bool = True
    scaling: int = codes.REAL_PRODUCTS

    @property
    def only_scales(self) -> bool:
        """Whether values are scaled, limited and rounded once, and nothing else."""
        return not (self.rounds_sum or self.residual or self.rounds_last)

    @property
    def rounding_code(self) -> int:
        """The code of the rounding mode; that of any mode where nothing is rounded."""
        is_rounded = self.rounds_sum or self.rounds_last or self.is_quantized
        return rounding_code(self.rounding) if is_rounded else codes.HALF_TO_EVEN

    @property
    def descriptor(self) -> RequantizationSteps:
        """What native functions are told about it."""
        return RequantizationSteps(
            self.rounding_code, int(self.rounds_sum), *self.sum_limits, self.sum_multiplier, self.operation,
            self.residual_multiplier, self.residual_zero, *self.limits, int(self.rounds_last), self.last_multiplier,
            *self.last_limits, self.zero_point,
        )  # fmt: skip

    def multiplier_of(self, scale: float) -> float:
        """By which values in units of a scale are multiplied: one number for both scales, rounded once in FP32."""
        return float(in_units(np.array([scale]), self.unit)[0])

    def sampled(self, source: StageGrid) -> SampleSteps:
        """What native functions are told that average or sample values of a grid, where it `only_scales`."""
        multiplier, (low, high) = self.multiplier_of(source.scale), self.limits
        return SampleSteps(source.zero_point, multiplier, low, high, self.zero_point, self.rounding_code)


def rounding_code(mode: Rounding) -> int:
    """The code of a rounding mode.

    Raises:
        BuildError: it is a device's own function, which native code does not have.
    """
    if isinstance(mode, RoundingFunction):
        raise BuildError(
            "Native kernels do not support custom rounding",
            where=f"rounding {mode.name!r}",
            remedy="Use one of the modes of RoundingMode, or declare a kernel with this rounding",
        )
    return _ROUNDING_CODES[mode]


def requantization_of(group: LayerGroup, rounding: Rounding = RoundingMode.HALF_TO_EVEN) -> GroupRequantization | None:
    """The requantization of a group on a device that rounds in this way; None where its epilogue is of another form."""
    if isinstance(group, StatedGroup):
        return group.steps
    stages = stages_of(group)
    if stages is None:
        return None
    combining = [index for index, stage in enumerate(stages) if stage.other is not None]
    main = combining[0] if combining else 0
    if len(combining) > 1 or main > 1 or len(stages) > main + 2:
        return None
    first, middle, last = stages[0], stages[main], stages[-1]
    rounds_last = len(stages) > main + 1
    other = middle.other
    return GroupRequantization(
        unit=_unit(first),
        rounds_sum=main == 1,
        sum_limits=_in_units(first),
        sum_multiplier=_ratio(first.next_scale, _unit(middle)) if main == 1 else 1.0,
        operation=codes.SUM if middle.operation == codes.SUB else middle.operation,
        residual=other.tensor.name if other is not None else "",
        residual_multiplier=_residual_multiplier(middle),
        residual_zero=other.zero_point if other is not None else 0,
        limits=_in_units(middle),
        rounds_last=rounds_last,
        last_multiplier=_ratio(middle.next_scale, _unit(last)) if rounds_last else 1.0,
        last_limits=_in_units(last),
        zero_point=last.grid.zero_point if last.grid is not None else 0,
        rounding=rounding,
        is_quantized=last.grid is not None,
    )


def _unit(stage: RequantizationStage) -> float:
    return stage.grid.scale if stage.grid is not None else 1.0


def _residual_multiplier(stage: RequantizationStage) -> float:
    if stage.other is None:
        return 0.0
    if stage.operation == codes.PROD:
        return _ratio(stage.other.scale, 1.0)
    return _ratio(stage.other.scale, _unit(stage)) * (-1.0 if stage.operation == codes.SUB else 1.0)


def takes_requantized(group: LayerGroup, layer: Layer) -> bool:
    """What `fuses` of an integer kernel is: the group with the layer has a requantization."""
    return requantization_of(LayerGroup((*group.layers, layer))) is not None


integer_kernel = functools.partial(kernel, data_types=SERVED_TYPES, fuses=takes_requantized, absorbs_dequantize=True)
"""The decorator of kernels that sum quantized values, and end by a requantization."""


def _takes_scaled(group: LayerGroup, layer: Layer) -> bool:
    steps = requantization_of(LayerGroup((*group.layers, layer)))
    return steps is not None and steps.only_scales


weighted_integer_kernel = functools.partial(integer_kernel, packs_constants=True, layout=HostLayout.CHANNELS_LAST)
"""The decorator of those with a window, whose packed weights stand for the constants that they are made of."""

scaling_kernel = functools.partial(integer_kernel, fuses=_takes_scaled)
"""The decorator of integer kernels that scale, limit and round once."""


def scaled_source(group: LayerGroup) -> Quantized | None:
    """The quantized tensor that a group reads; None where it does more to it than a kernel of this kind."""
    steps = requantization_of(group)
    return quantized_source(group.main.inputs[0], group) if steps is not None and steps.only_scales else None


def required_requantization(group: LayerGroup, rounding: Rounding = RoundingMode.HALF_TO_EVEN) -> GroupRequantization:
    """The requantization of a group that a kernel accepted.

    Raises:
        BuildError: it is of another form.
    """
    found = requantization_of(group, rounding)
    if found is None:
        raise BuildError(
            "The kernel cannot run this epilogue",
            where=f"layer {group.name!r}",
            remedy="Report it to the maintainers of the kernel: it accepted the group",
        )
    return found


def bound_requantization(binding: Binding) -> GroupRequantization:
    """The requantization of a group for the shapes and the device that it is bound to.

    Raises:
        BuildError: it is of another form.
        ExecutionError: a residual with a dynamic shape turns out to be larger than what it is added to.
    """
    require_one_shape(binding)
    return required_requantization(binding.group, binding.rounding)


def in_units(values: Array, unit: float) -> Array:
    """FP64 scales of sums as FP32 multipliers, or biases as FP32 addends: divided in FP64, rounded once."""
    return (values / np.float64(unit)).astype(np.float32)


def _ratio(scale: float | None, unit: float) -> float:
    return float(np.float32(np.float64(scale or 1.0) / np.float64(unit)))


def _in_units(stage: RequantizationStage) -> tuple[float, float]:
    """The limits of a stage in units of its scale, and of INT8."""
    low, high = stage.limits
    if stage.grid is None:
        return low, high
    lowest, highest = _LOWEST - stage.grid.zero_point, _HIGHEST - stage.grid.zero_point
    low, high = _ratio_of_limit(low, stage.grid.scale), _ratio_of_limit(high, stage.grid.scale)
    return min(max(lowest, low), highest), max(min(highest, high), lowest)


def _ratio_of_limit(limit: float, scale: float) -> float:
    with np.errstate(over="ignore"):  # a bound of FLT_MAX, which means none, becomes infinite
        return float(np.float32(np.float64(limit) / np.float64(scale)))
