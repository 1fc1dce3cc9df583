"""Constant weights of integer groups: what they are in the network, and how they are packed."""

from __future__ import annotations

from typing import cast

import attrs
import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.dequantize import Dequantize
from dryfit.network.layers.matrix_multiply import MatrixMultiply, MatrixOperation
from dryfit.network.tensor import Tensor
from dryfit.reference.registry import evaluate
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array
from dryfit_cpu.codes import PANEL_CHANNELS
from dryfit_cpu.kernels.constants import WeightedSum
from dryfit_cpu.kernels.requantization import Quantized, in_units, quantized_source, required_requantization

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
        kernel: INT8, `[K, ...]`.
        scales: FP64 `[K]`: of the products.
        bias: INT32 `[K]`, in units of the products: part of the sums.
        real_bias: FP64 `[K]`, added after the scale; None for none. One of the two biases is zero.
    """

    source: Quantized
    kernel: Array
    scales: Array
    bias: Array
    real_bias: Array | None

    def multipliers(self, unit: float) -> Array:
        """FP32 `[K]`: of the sums."""
        return in_units(self.scales, unit)

    def bias_in(self, unit: float) -> Array | None:
        """FP32 `[K]`: what is added to scaled sums; None for nothing."""
        return None if self.real_bias is None else in_units(self.real_bias, unit)


def integer_weights(group: LayerGroup) -> IntegerWeights | None:
    """The weights of a group's main layer; None where they or the input are not quantized, or sums may overflow."""
    layer = group.main
    source = quantized_source(layer.inputs[0], group)
    axis, is_turned = 0, False
    if isinstance(layer, MatrixMultiply):
        is_turned = layer.op1 is MatrixOperation.NONE
        axis = -1 if is_turned else -2
    kernel = _constant(layer.inputs[1] if len(layer.inputs) > 1 else None, group, axis)
    if source is None or kernel is None:
        return None
    weights, weight_scales = kernel
    if isinstance(layer, MatrixMultiply):
        weights = weights.reshape(weights.shape[-2:])
    weights = weights.T if is_turned else weights
    K = weights.shape[0]
    scales = np.broadcast_to(weight_scales * source.scale, K)
    bias = layer.bias if isinstance(layer, WeightedSum) else None
    if len(layer.inputs) > 2 and layer.inputs[2] is not None:
        bias = _real_constant(layer.inputs[2], group)
        if bias is None:
            return None
    bias = np.zeros(K) if bias is None else bias.astype(np.float64).reshape(-1)
    if bias.shape != (K,) or not np.isfinite(bias).all():
        return None
    units = _whole_units(bias, scales)
    depth = weights.size // max(K, 1)
    if not (np.abs(0.0 if units is None else units) + depth * 2.0**14 <= _LARGEST_SUM).all():
        return None
    if units is None:
        return IntegerWeights(source, weights, scales, np.zeros(K, np.int32), bias)
    return IntegerWeights(source, weights, scales, units.astype(np.int32), None)


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


def _constant(tensor: Tensor | None, group: LayerGroup, axis: int) -> tuple[Array, Array] | None:
    """An INT8 constant that the group dequantizes by one scale, or one for each index of an axis."""
    layer = tensor.producer if tensor is not None else None
    if not isinstance(layer, Dequantize) or layer not in group.layers or len(layer.inputs) != 2 or layer.block_shape:
        return None
    values, scales = (cast("Tensor", one).spec.value for one in layer.inputs)
    if values is None or scales is None or values.dtype != DataType.INT8.numpy or layer.to_type is not DataType.FLOAT:
        return None
    if scales.size > 1 and (scales.ndim != 1 or layer.axis % values.ndim != axis % values.ndim):
        return None
    return values, scales.astype(np.float64).reshape(-1)


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
    filled = np.zeros((K, runs, -(-length // UNIT) * UNIT), np.int8)
    filled[..., :length] = weights
    return filled


def pack_integer_panels(group: LayerGroup, runs: Array, groups: int = 1) -> dict[str, Array]:
    """Weights as panels `[groups, panels, units, 32, 4]`, and what else a channel has as `[groups, panels * 32]`.

    That is the bias and the sum of the weights (INT32), the multiplier, and what is added to scaled sums, if there is
    such (FP32). All is filled up with zeros.

    Args:
        group: one that a kernel accepted, whose kernel the runs are.
        runs: what `packed_runs` gave.
        groups: of the convolution.
    """
    weights, unit = accepted_weights(group), required_requantization(group).unit
    K, bias = runs.shape[0], weights.bias_in(unit)
    per_group = K // groups
    panels = -(-per_group // PANEL_CHANNELS)
    padded = np.zeros((groups, panels * PANEL_CHANNELS, runs[0].size), np.int8)
    padded[:, :per_group] = runs.reshape(groups, per_group, -1)
    packed = padded.reshape(groups, panels, PANEL_CHANNELS, -1, UNIT).swapaxes(2, 3)

    def channels(values: Array) -> Array:
        filled = np.zeros((groups, panels * PANEL_CHANNELS), values.dtype)
        filled[:, :per_group] = values.reshape(groups, per_group)
        return filled

    return {
        "panels": np.ascontiguousarray(packed),
        "bias": channels(weights.bias),
        "weight_sums": channels(runs.reshape(K, -1).sum(axis=1, dtype=np.int32)),
        "multipliers": channels(weights.multipliers(unit)),
        **({REAL_BIAS: channels(bias)} if bias is not None else {}),
    }
