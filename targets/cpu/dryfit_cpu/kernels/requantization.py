"""What an integer group does after its exact sums: read from the layers of the group, in the order of the arithmetic.

The arithmetic itself, in numpy, is `integer_definition.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import attrs
import numpy as np

from dryfit.errors import BuildError
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.activation import Activation
from dryfit.network.layers.dequantize import Dequantize
from dryfit.network.layers.elementwise import Elementwise, ElementWiseOperation
from dryfit.network.layers.quantize import Quantize
from dryfit.network.tensor import Tensor
from dryfit.quantization.rounding import RoundingMode
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding
from dryfit_cpu import codes
from dryfit_cpu.kernels.epilogues import activation_code, require_one_shape

_ROUNDING_CODES = {
    RoundingMode.HALF_TO_EVEN: codes.HALF_TO_EVEN,
    RoundingMode.HALF_AWAY_FROM_ZERO: codes.HALF_AWAY_FROM_ZERO,
    RoundingMode.HALF_UP: codes.HALF_UP,
}
_LOWEST, _HIGHEST = -128.0, 127.0
_UNLIMITED = (-np.inf, np.inf)


@attrs.frozen(eq=False)
class Quantized:
    """A quantized tensor and its scale; or a real one, whose scale is 1."""

    tensor: Tensor
    scale: float


@attrs.frozen(eq=False)
class Stage:
    """What happens from one rounding to the next, in real numbers.

    Attributes:
        residual: is added.
        limits: of an activation, after the sum.
        scale: of the quantize layer at the end; None where the numbers stay real.
        next_scale: by which the rounded numbers are dequantized again; None where the group ends.
    """

    residual: Quantized | None = None
    limits: tuple[float, float] = _UNLIMITED
    scale: float | None = None
    next_scale: float | None = None


@attrs.frozen
class Requantization:
    """The numbers of a requantization as native functions and `integer_definition.py` take them, in FP32.

    Attributes:
        unit: what the sums are scaled to: the scale of the first rounding, or 1 where none follows.
        rounds_sum: whether there is a rounding before the residual is added.
        sum_limits: limits of that rounding.
        sum_multiplier: its scale in units of the next one.
        residual: name of the tensor that is added; "" for none.
        residual_multiplier: its scale in units of the next rounding's.
        limits: before the main rounding, or of the real result.
        rounds_last: whether there is a rounding after that.
        last_multiplier: the main rounding's scale in units of the last one.
        last_limits: of the last rounding.
        rounding: how whole numbers are found.
        is_quantized: whether the result is INT8; else it is real.
    """

    unit: float
    rounds_sum: bool
    sum_limits: tuple[float, float]
    sum_multiplier: float
    residual: str
    residual_multiplier: float
    limits: tuple[float, float]
    rounds_last: bool
    last_multiplier: float
    last_limits: tuple[float, float]
    rounding: RoundingMode
    is_quantized: bool

    def fields(self) -> dict[str, float]:
        """The fields by which native functions know it."""
        return {
            "rounding": rounding_code(self.rounding),
            "rounds_sum": int(self.rounds_sum),
            "sum_low": self.sum_limits[0],
            "sum_high": self.sum_limits[1],
            "sum_multiplier": self.sum_multiplier,
            "residual_multiplier": self.residual_multiplier,
            "low": self.limits[0],
            "high": self.limits[1],
            "rounds_last": int(self.rounds_last),
            "last_multiplier": self.last_multiplier,
            "last_low": self.last_limits[0],
            "last_high": self.last_limits[1],
        }


def rounding_code(mode: RoundingMode) -> int:
    """The code of a rounding mode."""
    return _ROUNDING_CODES[mode]


def tensor_scale(layer: Layer) -> float | None:
    """The constant scale of a quantize or dequantize layer for the whole of a signed 8-bit tensor; None for others."""
    if not isinstance(layer, (Quantize, Dequantize)) or len(layer.inputs) != 2 or layer.block_shape:
        return None
    data, scale = (cast("Tensor", tensor) for tensor in layer.inputs)
    quantized = layer.outputs[0] if isinstance(layer, Quantize) else data
    real = data if isinstance(layer, Quantize) else layer.outputs[0]
    value = scale.spec.value
    if quantized.dtype is not DataType.INT8 or real.dtype is not DataType.FLOAT or value is None or value.size != 1:
        return None
    return float(value.reshape(-1)[0])


def quantized_source(tensor: Tensor | None, group: LayerGroup) -> Quantized | None:
    """What a dequantization inside the group gives this tensor from."""
    producer = tensor.producer if tensor is not None else None
    if not isinstance(producer, Dequantize) or producer not in group.layers:
        return None
    scale = tensor_scale(producer)
    return None if scale is None else Quantized(cast("Tensor", producer.inputs[0]), scale)


def stages_of(group: LayerGroup) -> Sequence[Stage] | None:
    """The stages of a group after its main layer, or from it where it is one of them; None where they are others."""
    if isinstance(group.layers[-1], Dequantize):
        return None
    stages = [Stage()]
    steps = [layer for layer in group.epilogue if not isinstance(layer, Dequantize)]
    value = group.main.outputs[0]
    if isinstance(group.main, (Activation, Elementwise, Quantize)):
        steps, value = [group.main, *steps], cast("Tensor", group.main.inputs[0])
    for layer in steps:
        if stages[-1].scale is not None:
            again = _dequantized(value, group)
            if again is None:
                return None
            stages[-1] = attrs.evolve(stages[-1], next_scale=again[1])
            value = again[0]
            stages.append(Stage())
        stage = _extended(stages[-1], layer, value, group)
        if stage is None:
            return None
        stages[-1], value = stage, layer.outputs[0]
    return stages


def _dequantized(value: Tensor, group: LayerGroup) -> tuple[Tensor, float] | None:
    """The dequantization of a tensor in the group: what it gives, and its scale."""
    for layer in group.epilogue:
        if isinstance(layer, Dequantize) and layer.inputs[0] is value:
            scale = tensor_scale(layer)
            return None if scale is None else (layer.outputs[0], scale)
    return None


def _extended(stage: Stage, layer: Layer, value: Tensor, group: LayerGroup) -> Stage | None:
    """A stage with one more layer, which takes `value`; None where it does not fit."""
    if not any(tensor is value for tensor in layer.inputs):
        return None
    if isinstance(layer, Quantize):
        scale = tensor_scale(layer)
        return None if scale is None else attrs.evolve(stage, scale=scale)
    if isinstance(layer, Elementwise) and layer.op is ElementWiseOperation.SUM:
        others = [_addend(tensor, group) for tensor in layer.inputs if tensor is not value]
        fits = len(others) == 1 and others[0] is not None and others[0].tensor.shape == value.shape
        is_first = stage.residual is None and stage.limits == _UNLIMITED
        return attrs.evolve(stage, residual=others[0]) if fits and is_first else None
    code = activation_code(layer)
    if code is None or code[0] not in (codes.RELU, codes.CLIP) or stage.limits != _UNLIMITED:
        return None
    return attrs.evolve(stage, limits=(0.0, np.inf) if code[0] == codes.RELU else code[1:])


def _addend(tensor: Tensor | None, group: LayerGroup) -> Quantized | None:
    """What is added: a quantized tensor, or one of real numbers from outside the group."""
    quantized = quantized_source(tensor, group)
    if quantized is not None or tensor is None or tensor.dtype is not DataType.FLOAT:
        return quantized
    return None if tensor.producer in group.layers else Quantized(tensor, 1.0)


def requantization_of(group: LayerGroup, rounding: RoundingMode = RoundingMode.HALF_TO_EVEN) -> Requantization | None:
    """The requantization of a group on a device that rounds in this way; None where its epilogue is of another form."""
    stages = stages_of(group)
    if stages is None:
        return None
    with_residual = [index for index, stage in enumerate(stages) if stage.residual is not None]
    main = with_residual[0] if with_residual else 0
    if len(with_residual) > 1 or main > 1 or len(stages) > main + 2:
        return None
    first, middle, last = stages[0], stages[main], stages[-1]
    rounds_last = len(stages) > main + 1
    middle_unit = middle.scale if middle.scale is not None else 1.0
    residual = middle.residual
    return Requantization(
        unit=first.scale if first.scale is not None else 1.0,
        rounds_sum=main == 1,
        sum_limits=_in_units(first),
        sum_multiplier=_ratio(first.next_scale, middle_unit) if main == 1 else 1.0,
        residual=residual.tensor.name if residual is not None else "",
        residual_multiplier=_ratio(residual.scale, middle_unit) if residual is not None else 0.0,
        limits=_in_units(middle),
        rounds_last=rounds_last,
        last_multiplier=_ratio(middle.next_scale, last.scale or 1.0) if rounds_last else 1.0,
        last_limits=_in_units(last),
        rounding=rounding,
        is_quantized=last.scale is not None,
    )


def takes_requantized(group: LayerGroup, layer: Layer) -> bool:
    """What `fuses` of an integer kernel is: the group with the layer has a requantization."""
    return requantization_of(LayerGroup((*group.layers, layer))) is not None


def required_requantization(group: LayerGroup, rounding: RoundingMode = RoundingMode.HALF_TO_EVEN) -> Requantization:
    """The requantization of a group that a kernel accepted.

    Raises:
        BuildError: it is of another form.
    """
    found = requantization_of(group, rounding)
    if found is None:
        raise BuildError("The kernel cannot run this epilogue", where=f"layer {group.name!r}")
    return found


def bound_requantization(binding: Binding) -> Requantization:
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


def _in_units(stage: Stage) -> tuple[float, float]:
    """The limits of a stage in units of its scale, and of INT8."""
    low, high = stage.limits
    if stage.scale is None:
        return low, high
    return max(_LOWEST, _ratio_of_limit(low, stage.scale)), min(_HIGHEST, _ratio_of_limit(high, stage.scale))


def _ratio_of_limit(limit: float, scale: float) -> float:
    return float(np.float32(np.float64(limit) / np.float64(scale)))
