"""Convolution, deconvolution and inner product: exact sums of products, then a requantization.

    sum  = sum of (x - zx) * (w - zw) + INT32 bias, as INT32 that wraps around
    code = clamp(requantize(sum) + zy)

What lies outside the input counts as its zero point: it adds nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dryfit.network.layers.convolution import Deconvolution, FullyConnected
from dryfit.network.layers.matrix import MatrixMultiply, MatrixOperation
from dryfit.quantization.methods.call import OperatorCall
from dryfit.quantization.methods.definitions.output_codes import output_range, with_tail
from dryfit.quantization.methods.fixed_point import wrapped
from dryfit.quantization.methods.method import MethodRule
from dryfit.quantization.methods.requantization import Multipliers, Requantization, multipliers, requantize
from dryfit.reference.registry import evaluate

Array = np.ndarray[Any, Any]


def weighted(call: OperatorCall, rule: MethodRule) -> Array:
    """The output's codes; reads the rule's requantization and its options `limit_rounding` and of vector tails."""
    sums, bias = weighted_sums(call), real_bias(call)
    _, zero_point = call.output_grid
    codes = output_range(call, rule)

    def finish(record: Requantization) -> Array:
        return requantize(record, sums, weighted_multipliers(call, record), zero_point, codes, bias)

    return with_tail(rule, sums.shape, finish).astype(call.to_type.numpy)


def weighted_sums(call: OperatorCall) -> Array:
    """The sums as int32, an INT32 bias among them, of the output's shape.

    Raises:
        NetworkError: there is no input, or there are no weights.
    """
    data = call.operand(0).distances.astype(np.float64)
    weights = kernel_distances(call).astype(np.float64)
    sums = evaluate(call.layer, [data, weights])[0].astype(np.int64)  # FP64 holds every such sum exactly
    bias = call.operands[2] if len(call.operands) > 2 else None
    if bias is not None and bias.dtype.is_integer:
        sums = sums + along_channels(call, bias.values.astype(np.int64))
    return wrapped(sums).astype(np.int32)


def kernel_distances(call: OperatorCall) -> Array:
    """`q - zero_point` of the weights as int32, in their shape."""
    operand = call.operand(1)
    if operand.zero_point is None or operand.zero_point.ndim == 0:
        return operand.distances
    zero_points, values = operand.zero_point, operand.values
    if isinstance(call.layer, MatrixMultiply):
        zero_points = zero_points if call.layer.op1 is MatrixOperation.NONE else zero_points[:, None]
    elif isinstance(call.layer, Deconvolution):  # [C, K / groups, *window]: a group's channels are C / groups rows
        groups = call.layer.num_groups
        rows = np.repeat(zero_points.reshape(groups, -1), values.shape[0] // groups, axis=0)
        zero_points = rows.reshape(*rows.shape, *(1,) * (values.ndim - 2))
    else:
        zero_points = zero_points.reshape(-1, *(1,) * (values.ndim - 1))
    return values.astype(np.int32) - zero_points.astype(np.int32)


def weighted_multipliers(call: OperatorCall, record: Requantization) -> Multipliers:
    """The multipliers in the record's encoding, of a shape that broadcasts to the output."""
    weights = np.asarray(call.operand(1).scale, np.float32)
    scales = weights if weights.ndim == 0 else along_channels(call, weights)
    return multipliers(record, call.operand(0).one_scale, scales, call.output_grid[0])


def real_bias(call: OperatorCall) -> Array | None:
    """A bias of real numbers in units of the output's scale, FP32, that broadcasts to the output; None without one."""
    bias = call.operands[2] if len(call.operands) > 2 else None
    if bias is None or bias.dtype.is_integer:
        return None
    return along_channels(call, bias.values.astype(np.float32) / call.output_grid[0])


def along_channels(call: OperatorCall, values: Array) -> Array:
    """Values `[K]` in a shape that broadcasts to the output: `[N, K, *spatial]`, or `[..., K]` of a matrix product."""
    if isinstance(call.layer, MatrixMultiply):
        return values.reshape(-1)
    spatial = 2 if isinstance(call.layer, FullyConnected) else call.operand(0).values.ndim - 2
    return values.reshape(-1, *(1,) * spatial)
