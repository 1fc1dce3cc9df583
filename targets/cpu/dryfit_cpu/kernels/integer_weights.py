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
from dryfit_cpu.kernels.requantization import Quantized, quantized_source

UNIT = 4
"""Weights that are packed together; the runs of k are filled up with zeros to whole multiples."""
_LARGEST_SUM = 2**31 - 1


@attrs.frozen(eq=False)
class IntegerWeights:
    """A weighted sum of quantized values.

    Attributes:
        source: the input.
        kernel: INT8, `[K, ...]`.
        scales: FP64 `[K]`: of the products.
        bias: INT32 `[K]`, in units of the products.
    """

    source: Quantized
    kernel: Array
    scales: Array
    bias: Array


def integer_weights(group: LayerGroup) -> IntegerWeights | None:
    """The weights of a group's main layer; None where they or the input are not quantized, or sums may overflow.

    A real bias is rounded to whole units of the products, whose scale is far finer than that of the result.
    """
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
    units = np.zeros(K) if bias is None else np.rint(bias.astype(np.float64).reshape(-1) / scales)
    depth = weights.size // max(K, 1)
    if units.shape != (K,) or not (np.abs(units) + depth * 2.0**14 <= _LARGEST_SUM).all():
        return None
    return IntegerWeights(source, weights, scales, units.astype(np.int32))


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


def pack_integer_panels(runs: Array, bias: Array, multipliers: Array, groups: int) -> dict[str, Array]:
    """Weights as panels `[groups, panels, units, 32, 4]`, and what else a channel has as `[groups, panels * 32]`.

    That is the bias and the sum of the weights (INT32), and the multiplier (FP32). All is filled up with zeros.
    """
    K = runs.shape[0]
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
        "bias": channels(bias),
        "weight_sums": channels(runs.reshape(K, -1).sum(axis=1, dtype=np.int32)),
        "multipliers": channels(multipliers),
    }
