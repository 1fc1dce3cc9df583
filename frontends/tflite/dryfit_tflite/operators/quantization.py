"""Quantize, dequantize and casts."""

from __future__ import annotations

import numpy as np

from dryfit.network.layers.quantization import Cast
from dryfit_tflite.operator_view import Operator
from dryfit_tflite.registry import operator


@operator("QUANTIZE")
def quantize(op: Operator) -> None:
    """Quantize; of codes it is a dequantize and a quantize, which change scale, zero point or type."""
    first = op.works_channels_first(0)
    op.give(op.real(0, first=first), first=first)


@operator("DEQUANTIZE")
def dequantize(op: Operator) -> None:
    """Dequantize; of FP16, a cast to FP32, done at once for weights."""
    value = op.value(0)
    if value.known is not None and value.known.dtype == np.float16:
        op.give_known(value.known.astype(np.float32))
        return
    first = op.works_channels_first(0)
    op.give(op.real(0, first=first), first=first)


@operator("CAST")
def cast(op: Operator) -> None:
    """Cast of the stored numbers."""
    first = op.works_channels_first(0)
    to_type = op.output().tensor.dtype
    if to_type is None:
        raise op.refusal("The type is not supported", found=op.output().tensor.type_name, remedy="Convert again")
    op.give_codes(op.add(Cast(to_type=to_type), op.codes(0, first=first)), first=first)
