"""Uses of operators for tests of definitions."""

from __future__ import annotations

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.quantized_operator import UNLIMITED
from dryfit.quantization.methods.call import Operand, OperatorCall


def operand(values, scale=1.0, zero_point=0):
    """Codes with a grid; with a scale of None, plain numbers."""
    if scale is None:
        return Operand(np.asarray(values))
    scales = np.asarray(scale, np.float32)
    return Operand(np.asarray(values), scales, np.broadcast_to(np.asarray(zero_point, np.int32), scales.shape))


def call_of_layer(layer, *operands, scale=1.0, zero_point=0, to_type=DataType.INT8, limits=UNLIMITED):
    """A use of a layer, its output on one grid."""
    return OperatorCall(layer, operands, np.float32(scale), zero_point, to_type, limits)


def random_codes(shape, dtype=np.int8, seed=0):
    """Codes of a type's whole range."""
    limits = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(limits.min, limits.max + 1, shape).astype(dtype)
