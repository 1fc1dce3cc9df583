"""What the layers of an integer group mean after its exact sums: stages, each from one rounding to the next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import attrs
import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.activation import Activation
from dryfit.network.layers.elementwise import Elementwise, ElementWiseOperation
from dryfit.network.layers.quantization import Dequantize, Quantize
from dryfit.network.tensor import Tensor
from dryfit.target.group import LayerGroup
from dryfit_cpu import codes
from dryfit_cpu.kernels.constants import Affine, affine_of
from dryfit_cpu.kernels.epilogues import activation_code
from dryfit_cpu.kernels.operands import input_of

SERVED_TYPES = codes.FLOATS | {DataType.INT8}
"""Types of what integer groups read and write: real operands and results are computed in FP32."""
UNLIMITED = (-np.inf, np.inf)
_COMBINATIONS = {
    ElementWiseOperation.SUM: codes.SUM,
    ElementWiseOperation.SUB: codes.SUB,
    ElementWiseOperation.PROD: codes.PROD,
    ElementWiseOperation.MAX: codes.MAX,
    ElementWiseOperation.MIN: codes.MIN,
}


@attrs.frozen
class StageGrid:
    """The real numbers that a quantized tensor can hold: `(q - zero_point) * scale`."""

    scale: float
    zero_point: int = 0


@attrs.frozen(eq=False)
class Quantized:
    """A quantized tensor and its grid; or a real one, whose scale is 1."""

    tensor: Tensor
    grid: StageGrid

    @property
    def scale(self) -> float:
        """The grid's."""
        return self.grid.scale

    @property
    def zero_point(self) -> int:
        """The grid's."""
        return self.grid.zero_point

    @property
    def is_real(self) -> bool:
        """Whether it holds real numbers."""
        return self.tensor.dtype is not DataType.INT8


@attrs.frozen(eq=False)
class RequantizationStage:
    """What happens from one rounding to the next, in real numbers.

    Attributes:
        operation: the code of what combines the value with the other operand.
        other: the other operand; None where there is none.
        limits: of an activation, after that.
        grid: of the quantize layer at the end; None where the numbers stay real.
        next_scale: by which the rounded numbers are dequantized again; None where the group ends.
    """

    operation: int = codes.FIRST
    other: Quantized | None = None
    limits: tuple[float, float] = UNLIMITED
    grid: StageGrid | None = None
    next_scale: float | None = None


def grid_of(layer: Layer) -> StageGrid | None:
    """The grid of a quantize or dequantize layer that has one for the whole of a signed 8-bit tensor; None for others.

    Scale and zero point are constants.
    """
    if not isinstance(layer, (Quantize, Dequantize)) or layer.block_shape:
        return None
    quantized = layer.outputs[0] if isinstance(layer, Quantize) else cast("Tensor", layer.inputs[0])
    real = cast("Tensor", layer.inputs[0]) if isinstance(layer, Quantize) else layer.outputs[0]
    values = [None if tensor is None else tensor.spec.value for tensor in layer.inputs[1:]]
    if quantized.dtype is not DataType.INT8 or real.dtype not in codes.FLOATS:
        return None
    if any(value is None or value.size != 1 for value in values):
        return None
    scale, zero_point = (*(float(cast("np.ndarray", value).reshape(-1)[0]) for value in values), 0.0)[:2]
    return StageGrid(scale, int(zero_point))


def quantized_source(tensor: Tensor | None, group: LayerGroup) -> Quantized | None:
    """What a dequantization inside the group gives this tensor from."""
    producer = tensor.producer if tensor is not None else None
    if not isinstance(producer, Dequantize) or producer not in group.layers:
        return None
    grid = grid_of(producer)
    return None if grid is None else Quantized(cast("Tensor", producer.inputs[0]), grid)


def folded_layers(group: LayerGroup) -> tuple[Affine | None, Sequence[Layer]]:
    """The layers right after a weighted sum that scale and shift its channels, in one, and which they are.

    They fold into the multipliers of the sums and what is added to these, as a batch normalization does.
    """
    found: list[Layer] = []
    total, main = None, group.main
    if not main.sums_products:
        return None, found
    value = main.outputs[0]
    axis = len(value.shape) - 1 if main.kind == "matrix_multiply" else _channel_axis(main)
    for layer in group.epilogue:
        following = affine_of(layer, value) if any(tensor is value for tensor in layer.inputs) else None
        if following is None or following.axis not in (None, axis):
            break
        total = following if total is None else total.then(following)
        if total is None:
            break
        found.append(layer)
        value = layer.outputs[0]
    return total, found


def _channel_axis(layer: Layer) -> int:
    return len(layer.outputs[0].shape) - 3 if layer.kind == "fully_connected" else 1


def stages_of(group: LayerGroup) -> Sequence[RequantizationStage] | None:
    """The stages of a group after its main layer, or from it where it is one of them; None where they are others."""
    if isinstance(group.layers[-1], Dequantize):
        return None
    stages = [RequantizationStage()]
    _, folded = folded_layers(group)
    steps = [layer for layer in group.epilogue if not isinstance(layer, Dequantize)][len(folded) :]
    value = folded[-1].outputs[0] if folded else group.main.outputs[0]
    if isinstance(group.main, (Activation, Elementwise, Quantize)):
        steps, value = [group.main, *steps], input_of(group)
    for layer in steps:
        if stages[-1].grid is not None:
            again = _dequantized(value, group)
            if again is None or again[1].zero_point != stages[-1].grid.zero_point:
                return None
            stages[-1] = attrs.evolve(stages[-1], next_scale=again[1].scale)
            value = again[0]
            stages.append(RequantizationStage())
        stage = _extended(stages[-1], layer, value, group)
        if stage is None:
            return None
        stages[-1], value = stage, layer.outputs[0]
    return stages


def _dequantized(value: Tensor, group: LayerGroup) -> tuple[Tensor, StageGrid] | None:
    """The dequantization of a tensor in the group: what it gives, and its grid."""
    for layer in group.epilogue:
        if isinstance(layer, Dequantize) and layer.inputs[0] is value:
            grid = grid_of(layer)
            return None if grid is None else (layer.outputs[0], grid)
    return None


def _extended(stage: RequantizationStage, layer: Layer, value: Tensor, group: LayerGroup) -> RequantizationStage | None:
    """A stage with one more layer, which takes `value`; None where it does not fit.

    What a real number was added to after a weighted sum stays real: the quantization of the result is another group's.

    Source: TensorRT, Working with Quantized Types, Q/DQ Layer-Placement Recommendations: the precision of the other
    operand of an element-wise addition determines the precision of the fusion's output.
    """
    if not any(tensor is value for tensor in layer.inputs):
        return None
    if isinstance(layer, Quantize):
        grid = grid_of(layer)
        is_real = stage.other is not None and stage.other.is_real and group.main.sums_products
        return None if grid is None or is_real else attrs.evolve(stage, grid=grid)
    if isinstance(layer, Elementwise):
        is_first = stage.other is None and stage.limits == UNLIMITED
        combined = _combination(layer, value, group) if is_first else None
        return None if combined is None else attrs.evolve(stage, operation=combined[0], other=combined[1])
    code = activation_code(layer)
    if code is None or code[0] not in (codes.RELU, codes.CLIP) or stage.limits != UNLIMITED:
        return None
    return attrs.evolve(stage, limits=(0.0, np.inf) if code[0] == codes.RELU else code[1:])


def _combination(layer: Elementwise, value: Tensor, group: LayerGroup) -> tuple[int, Quantized] | None:
    """The code of an operation on two tensors, and the operand that is not `value`.

    Of a group that begins with the operation either operand may be repeated along axes, and known numbers that differ
    along one axis make it a function of one tensor, for which there is a table; else the other operand has the shape of
    what it is combined with.
    """
    code = _COMBINATIONS.get(layer.op)
    if code is None or (code == codes.SUB and layer.inputs[0] is not value):
        return None
    others = [tensor for tensor in layer.inputs if tensor is not value]
    other = _operand(others[0], group) if len(others) == 1 else None
    if other is None or (layer is not group.main and other.tensor.shape != value.shape):
        return None
    if layer is group.main and other.tensor.spec.value is not None and sum(n > 1 for n in other.tensor.shape) < 2:
        return None
    return code, other


def _operand(tensor: Tensor | None, group: LayerGroup) -> Quantized | None:
    """The other operand: a quantized tensor, or one of real numbers from outside the group."""
    quantized = quantized_source(tensor, group)
    if quantized is not None or tensor is None or tensor.dtype not in codes.FLOATS:
        return quantized
    return None if tensor.producer in group.layers else Quantized(tensor, StageGrid(1.0))
