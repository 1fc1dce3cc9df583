"""Convolution, deconvolution and inner product: exact sums of products, then a requantization.

    sum  = sum of (x - zx) * (w - zw) + INT32 bias, as INT32 that wraps around; INT64 of INT16 x without such a bias
    code = clamp(requantize(sum) + zy)

What lies outside the input counts as its zero point: it adds nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import attrs
import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.convolution import Deconvolution, FullyConnected
from dryfit.network.layers.matrix import MatrixMultiply, MatrixOperation
from dryfit.network.tensor import Array
from dryfit.quantization.methods.call import OperatorCall
from dryfit.quantization.methods.conditions import has_wide_bias
from dryfit.quantization.methods.method import MethodRule
from dryfit.quantization.methods.requantization import (
    Multipliers,
    Requantization,
    activation_range,
    multipliers,
    requantize,
    wrapped,
)
from dryfit.quantization.rounding import RoundingMode
from dryfit.reference.registry import evaluate


def weighted(call: OperatorCall, rule: MethodRule) -> Array:
    """The output's codes; reads the rule's requantization and its options `limit_rounding` and of vector tails."""
    sums, bias = weighted_sums(call), real_bias(call)
    _, zero_point = call.output_grid
    codes = output_range(call, rule)

    def finish(record: Requantization) -> Array:
        return requantize(record, sums, weighted_multipliers(call, record), zero_point, codes, bias)

    return with_tail(rule, sums.shape, finish).astype(call.to_type.numpy)


def weighted_sums(call: OperatorCall) -> Array:
    """The sums with an integer bias, of the output's shape: int32, or int64 of INT16 data without an INT32 bias.

    Raises:
        NetworkError: there is no input, or there are no weights.
    """
    data = call.operand(0).distances.astype(np.float64)
    weights = kernel_distances(call).astype(np.float64)
    sums = evaluate(call.layer, [data, weights])[0].astype(np.int64)  # FP64 holds every such sum exactly
    bias = call.operands[2] if len(call.operands) > 2 else None
    if bias is not None and bias.dtype.is_integer:
        sums = sums + along_channels(call, bias.values.astype(np.int64))
    return sums if call.code_type is DataType.INT16 and has_wide_bias(call) else wrapped(sums).astype(np.int32)


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


# Codes of outputs -----------------------------------------------------------------------------------------------------


LIMIT_ROUNDING = "limit_rounding"
"""The option of a rule that says how the codes of limits are rounded: the name of a `RoundingMode`."""

LIMIT_ZERO_POINT_FIRST = "limit_zero_point_first"
"""The option that says whether the zero point is added to limits before they are rounded."""


def output_range(call: OperatorCall, rule: MethodRule) -> tuple[int, int]:
    """Lowest and highest code; limits are rounded as the options say: away from zero, then moved, without them.

    Raises:
        NetworkError: the output is real.
    """
    scale, zero_point = call.output_grid
    rounding = RoundingMode.parse(rule.options.get(LIMIT_ROUNDING, "half_away_from_zero"))
    is_first = bool(rule.options.get(LIMIT_ZERO_POINT_FIRST, False))
    return activation_range(call.limits, scale, zero_point, call.code_range, rounding, zero_point_first=is_first)


VECTOR_CHANNELS = "vector_channels"
"""Option: as many output channels are finished at once; those left over, with the option `TAIL_ROUNDING`."""
VECTOR_ELEMENTS = "vector_elements"
"""Option: as many elements of the whole output, channels last, are finished at once; the same of those left over."""
TAIL_ROUNDING = "tail_rounding"
"""Option: the name of the `RoundingMode` of what is left over."""


def with_tail(rule: MethodRule, shape: tuple[int, ...], finish: Callable[[Requantization], Array]) -> Array:
    """Codes by the rule's record, and by its tail rounding where a vector kernel leaves them over.

    Args:
        rule: without the option `tail_rounding`, nothing is left over.
        shape: of the output, `[N, K, *spatial]`.
        finish: codes of the whole output by a record.
    """
    codes = finish(rule.record)
    if TAIL_ROUNDING not in rule.options:
        return codes
    tail = attrs.evolve(rule.record, rounding=RoundingMode.parse(rule.options[TAIL_ROUNDING]))
    return np.where(is_in_vectors(rule, shape), codes, finish(tail))


def is_in_vectors(rule: MethodRule, shape: tuple[int, ...]) -> Array:
    """Which elements of an output `[N, K, *spatial]` are no tail: bool, of a shape that broadcasts."""
    if VECTOR_CHANNELS in rule.options:
        K, spatial = shape[1], len(shape) - 2
        whole = np.arange(K) < K - K % int(rule.options[VECTOR_CHANNELS])
        return whole.reshape(-1, *(1,) * spatial)
    size = math.prod(shape)
    whole = np.arange(size) < size - size % int(rule.options[VECTOR_ELEMENTS])
    if len(shape) < 3:
        return whole.reshape(shape)
    return np.moveaxis(whole.reshape(shape[0], *shape[2:], shape[1]), -1, 1)
