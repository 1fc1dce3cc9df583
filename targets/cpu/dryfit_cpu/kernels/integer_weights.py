"""Constant weights of integer groups: what they are in the network, and how they are packed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import cast

import attrs
import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.convolution import Deconvolution
from dryfit.network.layers.matrix import MatrixMultiply, MatrixOperation
from dryfit.network.layers.quantization import Dequantize
from dryfit.network.packed_elements import is_stand_in, stand_in
from dryfit.network.tensor import Tensor
from dryfit.reference.quantization import spread
from dryfit.reference.registry import evaluate
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array
from dryfit_cpu.codes import FLOATS, PANEL_CHANNELS
from dryfit_cpu.kernels.constants import WeightedSum
from dryfit_cpu.kernels.integer_endings import MethodNumbers
from dryfit_cpu.kernels.integer_stages import Quantized, folded_layers, quantized_source
from dryfit_cpu.kernels.requantization import StatedGroup, in_units, required_requantization


def quantized_kernel(layer: Layer, group: LayerGroup) -> tuple[Array, Array] | None:
    """The kernel of a layer as `[K, inputs of a channel, ...]`, and its scales as FP64 `[K]` or `[1]`.

    It is INT8, or where it has zero points INT32: distances from these, between -255 and 255.

    None where it is no constant that the group dequantizes, or has more than one scale an output channel.
    """
    tensor = layer.inputs[1] if len(layer.inputs) > 1 else None
    dequantize = tensor.producer if tensor is not None else None
    if not isinstance(dequantize, Dequantize) or dequantize not in group.layers:
        return None
    values, scales, *zero_points = (cast("Tensor", one).spec.value for one in dequantize.inputs)
    if values is None or scales is None or values.dtype != DataType.INT8.numpy or dequantize.to_type not in FLOATS:
        return None
    if any(one is None for one in zero_points):
        return None
    values = _distances(dequantize, values, *zero_points)
    scales = scales.astype(np.float64)
    if scales.size > 1:
        scales = spread(dequantize, scales, values.shape, dequantize.axis, dequantize.block_shape)
    if isinstance(layer, Deconvolution):
        return _of_deconvolution(layer, values, scales)
    axis = 0
    if isinstance(layer, MatrixMultiply):
        axis = values.ndim - (1 if layer.op1 is MatrixOperation.NONE else 2)
        if math.prod(values.shape[:-2]) != 1:
            return None
    if scales.size > 1 and scales.size != scales.shape[axis]:
        return None
    if isinstance(layer, MatrixMultiply):
        matrix = values.reshape(values.shape[-2:])
        values = matrix.T if layer.op1 is MatrixOperation.NONE else matrix
    return values, scales.reshape(-1)


def _distances(dequantize: Dequantize, values: Array, zero_points: Array | None = None) -> Array:
    """INT8 weights less their zero points: as they are where there are none, else INT32.

    The type depends on the zero points alone: of an engine's weights there may be no more than the shape.
    """
    if zero_points is None or not zero_points.any():
        return values
    if is_stand_in(values):
        return stand_in(DataType.INT32, values.shape)
    zeros = zero_points.astype(np.int32)
    if zeros.size > 1:
        zeros = spread(dequantize, zeros, values.shape, dequantize.axis, dequantize.block_shape)
    return values.astype(np.int32) - zeros


def _of_deconvolution(layer: Deconvolution, values: Array, scales: Array) -> tuple[Array, Array] | None:
    """The kernel `[C, K / groups, ...]` and its scales by output channels."""
    inputs, outputs, *window = values.shape
    groups = layer.num_groups
    kernel = values.reshape(groups, inputs // groups, outputs, *window).swapaxes(1, 2)
    kernel = kernel.reshape(groups * outputs, inputs // groups, *window)
    if scales.size == 1:
        return kernel, scales.reshape(-1)
    if scales.size != scales.shape[0] * scales.shape[1]:
        return None
    by_input = np.broadcast_to(scales.reshape(scales.shape[:2]), (inputs, outputs))
    by_group = by_input.reshape(groups, inputs // groups, outputs)
    if (by_group != by_group[:, :1]).any():
        return None
    return kernel, by_group[:, 0].reshape(-1)


REAL_BIAS = "real_bias"
"""Name of packed weights that only a layer with a real bias has."""
UNIT = 4
"""Weights that are packed together; the runs of k are filled up with zeros to whole multiples."""
_LARGEST_SUM = 2**31 - 1
_LARGEST_EXACT = 2**24
"""FP32 holds every whole number up to this."""


@attrs.frozen(eq=False)
class IntegerWeights:
    """A weighted sum of quantized values.

    Attributes:
        source: the input.
        kernel: `[K, inputs of a channel, ...]`: INT8, or INT32 where the weights have zero points.
        scales: FP64 `[K]`: of the products, with what scales them afterwards.
        bias: INT32 `[K]`, in units of the products: part of the sums.
        real_bias: FP64 `[K]`, added after the scale; None for none.
        stated: the numbers of a quantize method, in the place of what scales and real bias give; None elsewhere.
    """

    source: Quantized
    kernel: Array
    scales: Array
    bias: Array
    real_bias: Array | None
    stated: MethodNumbers | None = None

    @property
    def has_zero_points(self) -> bool:
        """Whether weights are distances from zero points, which INT8 need not hold."""
        return bool(self.kernel.dtype != DataType.INT8.numpy)

    def multipliers(self, unit: float) -> Array:
        """FP32 `[K]`: of the sums."""
        return in_units(self.scales, unit) if self.stated is None else self.stated.multipliers

    def fixed_point(self) -> Mapping[str, Array]:
        """Name to `[K]`: what scales sums in the place of FP32 multipliers; none where these do."""
        return {} if self.stated is None else self.stated.fixed_point

    def starts(self, weight_sums: Array) -> Array:
        """INT32 `[K]`: what sums begin at, so that they are those of distances from the zero point.

        The weight sums, INT32 `[K]`, are over the weights that each sum goes over.
        """
        return self.bias - np.int32(self.source.zero_point) * weight_sums

    def bias_in(self, unit: float) -> Array | None:
        """FP32 `[K]`: what is added to scaled sums; None for nothing."""
        if self.stated is not None:
            return self.stated.real_bias
        return None if self.real_bias is None else in_units(self.real_bias, unit)


def integer_weights(group: LayerGroup) -> IntegerWeights | None:
    """The weights of a group's main layer; None where they or the input are not quantized, or sums may overflow."""
    if isinstance(group, StatedGroup):
        return group.weights
    layer = group.main
    source = quantized_source(layer.inputs[0], group)
    known = quantized_kernel(layer, group)
    if source is None or known is None:
        return None
    kernel, kernel_scales = known
    K = kernel.shape[0]
    scales = np.broadcast_to(kernel_scales * source.scale, K)
    bias = _bias(layer, group)
    if bias is None or bias.size not in (0, K) or not np.isfinite(bias).all():
        return None
    bias = bias if bias.size else np.zeros(K)
    units = _whole_units(bias, scales)
    whole, real = (np.zeros(K), bias) if units is None else (units, np.zeros(K))
    after, _ = folded_layers(group)
    if after is not None:
        scales, real = scales * after.factor, real * after.factor.astype(np.float64) + after.shift
    weights = IntegerWeights(source, kernel, scales, whole, real if real.any() else None)
    return attrs.evolve(weights, bias=whole.astype(np.int32)) if is_within_int32(weights) else None


def is_within_int32(weights: IntegerWeights) -> bool:
    """Whether no sum can be larger than INT32 holds."""
    inputs = weights.kernel.size // max(len(weights.kernel), 1)
    # By the worst input, not by the one that was measured: then it holds for every input, and sums need no saturation.
    largest_weight = 255.0 if weights.has_zero_points else 128.0
    largest_products = inputs * (128.0 + abs(weights.source.zero_point)) * largest_weight
    return bool((np.abs(weights.bias.astype(np.float64)) + largest_products <= _LARGEST_SUM).all())


def _bias(layer: Layer, group: LayerGroup) -> Array | None:
    """The bias in FP64, empty where there is none; None where it is not known."""
    bias = layer.bias if isinstance(layer, WeightedSum) else None
    if len(layer.inputs) > 2 and layer.inputs[2] is not None:
        bias = _real_constant(layer.inputs[2], group)
        if bias is None:
            return None
    return np.zeros(0) if bias is None else bias.astype(np.float64).reshape(-1)


def _whole_units(bias: Array, scales: Array) -> Array | None:
    """A bias in units of the products, where it is whole ones of them, as a dequantized INT32 bias is; else None.

    An ONNX model's INT32 bias is dequantized when it is read: then it is the FP32 product of whole numbers and of the
    scale that ONNX Runtime's quantizer gives them, the FP32 product of the scales of input and weights. Biases of other
    origin are not, unless they mean the same. Above 2**24, where FP32 has whole numbers only, all would be.
    """
    units = np.rint(bias / scales)
    is_whole = (units * scales.astype(np.float32).astype(np.float64)).astype(np.float32) == bias
    return units if (is_whole & (np.abs(units) < _LARGEST_EXACT)).all() else None


def accepted_weights(group: LayerGroup) -> IntegerWeights:
    """The weights of a group that a kernel accepted, which has them."""
    return cast("IntegerWeights", integer_weights(group))


def _real_constant(tensor: Tensor | None, group: LayerGroup) -> Array | None:
    """The value of a constant, or of one that the group dequantizes."""
    if tensor is None or tensor.spec.value is not None:
        return tensor.spec.value if tensor is not None else None
    layer = tensor.producer
    if not isinstance(layer, Dequantize) or layer not in group.layers:
        return None
    values = [None if one is None else one.spec.value for one in layer.inputs]
    return evaluate(layer, values)[0] if all(value is not None for value in values) else None


def packed_runs(weights: Array) -> Array:
    """Runs of weights `[K, runs, length]`, their lengths filled up with zeros to whole units."""
    K, runs, length = weights.shape
    # Whole words of four: a run of 21 bytes, as the first layer of most networks has, reads 24, of which three meet
    # zeros. That wastes 14 % of it, and spares every other layer a tail.
    filled = np.zeros((K, runs, -(-length // UNIT) * UNIT), weights.dtype)
    filled[..., :length] = weights
    return filled


REPEATED = "repeated"
"""Name of a packed table that only weights with zero points have: how many units a piece of k has, and the pieces that
are multiplied once more."""
_LONGEST_PIECE, _PIECE_COST = 16, 0.5
"""Units; and those that could be multiplied in the time that it takes to turn to the next piece. A register block of 14
pixels takes 28 products for a unit, and about ten cycles to turn: our estimate."""


def in_bytes(runs: Array, pixel_units: int) -> tuple[Array, Array]:
    """Distances from zero points `[K, runs, length]` as INT8, and the table of the pieces of k that come again.

    A machine multiplies by bytes, and a distance may need nine bits. Most do not: where zero points are near the middle
    of the codes only the outermost are too large. So each piece of k comes first with what bytes hold, and those with a
    weight that is larger come again at the end of k with the rest: `x * 200` is `x * 127 + x * 73`. Machines that
    multiply pairs of 16 bits join them again when an engine is loaded.

    Args:
        runs: filled up to whole units.
        pixel_units: units that lie together on every machine.

    Returns:
        INT8 `[K, pieces, values]` and INT32 `[1 + repeated pieces]`.
    """
    is_large = ((runs < -128) | (runs > 127)).any(axis=0).reshape(-1, UNIT).any(axis=1)

    def cost(units: int) -> float:
        pieces = is_large.reshape(-1, units).any(axis=1)
        return (pieces.size + int(pieces.sum())) * (units + _PIECE_COST)

    piece = min((size for size in range(1, _LONGEST_PIECE + 1) if pixel_units % size == 0), key=cost)
    left = runs.reshape(len(runs), -1, piece * UNIT)
    places, parts, repeated = np.arange(left.shape[1]), list[Array](), [np.array([piece])]
    while places.size:
        part = np.clip(left, -128, 127)
        parts.append(part.astype(np.int8))
        left = left - part
        is_left = left.any(axis=(0, 2))
        left, places = left[:, is_left], places[is_left]
        repeated.append(places)
    return np.concatenate(parts, axis=1), np.concatenate(repeated).astype(np.int32)


def pack_integer_panels(
    group: LayerGroup, runs: Array, groups: int = 1, part: str = "", together: int = UNIT
) -> dict[str, Array]:
    """Weights as panels `[groups, panels, units, 32, 4]`, and what else a channel has as `[groups, panels * 32]`.

    That is what sums begin at and the sum of the weights (INT32), the multiplier, and what is added to scaled sums, if
    there is such (FP32). All is filled up with zeros.

    The runs are what `packed_runs` gave, with so many weights of an output channel together. Where a layer has several,
    `part` ends the names of what belongs to these alone.
    """
    weights, unit = accepted_weights(group), required_requantization(group).unit
    K, bias = runs.shape[0], weights.bias_in(unit)
    per_group = K // groups
    panels = -(-per_group // PANEL_CHANNELS)
    padded = np.zeros((groups, panels * PANEL_CHANNELS, runs[0].size), np.int8)
    padded[:, :per_group] = runs.reshape(groups, per_group, -1)
    # `[panel][k / 4][channel][4]`: four weights of a channel lie together, as the instruction that adds four products
    # takes them, and 16 channels of them fill a register.
    packed = padded.reshape(groups, panels, PANEL_CHANNELS, -1, together).swapaxes(2, 3)

    def channels(values: Array) -> Array:
        filled = np.zeros((groups, panels * PANEL_CHANNELS), values.dtype)
        filled[:, :per_group] = values.reshape(groups, per_group)
        return filled

    # Kept beside the weights and not taken off the bias: whether activations are read 128 above their values depends on
    # the machine that runs the engine, not on the one that builds it.
    sums = runs.reshape(K, -1).sum(axis=1, dtype=np.int32)
    return {
        f"panels{part}": np.ascontiguousarray(packed),
        f"bias{part}": channels(weights.starts(sums)),
        f"weight_sums{part}": channels(sums),
        "multipliers": channels(weights.multipliers(unit)),
        **{name: channels(values) for name, values in weights.fixed_point().items()},
        **({REAL_BIAS: channels(bias)} if bias is not None else {}),
    }
