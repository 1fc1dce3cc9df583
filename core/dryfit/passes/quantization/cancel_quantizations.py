"""A quantization right after a dequantization goes where it gives back the codes that were dequantized.

That it does is not taken from equal scales alone: it is tried for every code of the type, by the numpy references, so
that scales at which products overflow, or vanish in FP16, are kept.
"""

from __future__ import annotations

import functools

import numpy as np

from dryfit.network.copying import note_origin
from dryfit.network.data_types import DataType
from dryfit.network.layers.dequantize import Dequantize
from dryfit.network.layers.quantize import Quantize
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor
from dryfit.passes.quantization.moving import Movement
from dryfit.passes.quantization.scale_numbers import Array, Numbers, compared_scales, constant_value, numbers_of
from dryfit.quantization.rewrites import RewriteAction, RewriteJournal
from dryfit.reference.registry import evaluate

NAME = "cancel-quantizations"
_MOST_BITS = 8
"""Of a type whose codes are all tried."""


class CancelQuantizations:
    """The pass. A dequantization that nobody reads afterwards goes too.

    Args:
        journal: is told of the pairs.
    """

    def __init__(self, journal: RewriteJournal) -> None:
        self._journal = journal

    def __call__(self, network: Network) -> bool:
        """Take out what changes nothing; returns whether there was anything."""
        movement = Movement(NAME, network, self._journal)
        for layer in list(network.layers):
            source = layer.inputs[0] if isinstance(layer, Quantize) else None
            producer = source.producer if source is not None else None
            if isinstance(layer, Quantize) and isinstance(producer, Dequantize):
                _cancel(producer, layer, movement)
        return movement.finish()


def _cancel(dequantize: Dequantize, quantize: Quantize, movement: Movement) -> None:
    codes, again = dequantize.inputs[0], quantize.outputs[0]
    first, second = (numbers_of(one, movement.specs) for one in (dequantize, quantize))
    if codes is None or first.dtype is not second.dtype:
        return
    stop = ""
    if first != second:
        stop = f"{second.words} differs from the {first.words} of {movement.origin(dequantize)!r}"
    elif again in movement.outputs and (codes.producer is None or codes in movement.outputs):
        stop = f"{codes.name!r} and {again.name!r} are both known outside of the network"
    elif not gives_back_codes(dequantize, quantize, first):
        stop = f"{second.words} does not give back every code of {dequantize.to_type.name} numbers"
    if stop:
        movement.record(quantize, RewriteAction.STOPPED, [dequantize.name], stop)
        return
    _bypass(codes, again, quantize, movement)
    reason = f"by this scale every code of {first.dtype.name} comes back as it was"
    compared = compared_scales(dequantize, quantize)
    movement.record(quantize, RewriteAction.CANCELLED, [movement.origin(dequantize)], reason, compared)
    if movement.is_unread(dequantize.outputs[0]):
        movement.record(dequantize, RewriteAction.CANCELLED, [movement.origin(quantize)], reason, compared)
        movement.retire(dequantize)


def _bypass(codes: Tensor, again: Tensor, quantize: Quantize, movement: Movement) -> None:
    """Let the codes take the place of those that come back, under their name where that is an output's."""
    is_output, name = again in movement.outputs, again.name
    movement.redirect(again.consumers, again, codes)
    quantize.set_input(0, None)
    if is_output:
        movement.network.rename_tensor(again, movement.network.free_tensor_name(f"{name} again"))
        movement.network.rename_tensor(codes, name)
    if codes.producer is not None and codes.producer.kind != "constant":
        note_origin(codes.producer, quantize)
    movement.retire(quantize)


def gives_back_codes(dequantize: Dequantize, quantize: Quantize, numbers: Numbers) -> bool:
    """Whether quantization undoes a dequantization by the same numbers, for every code of the type."""
    scale, zero = constant_value(dequantize.inputs[1]), constant_value(dequantize.get_input(2))
    has_zero_points = numbers.zero_point is not None and (zero is None or zero.size != 1)
    if scale is None or numbers.dtype.bits > _MOST_BITS or has_zero_points:
        return False
    distinct = np.unique(scale.astype(np.float64)).tobytes()
    offset = 0 if numbers.zero_point is None or zero is None else int(zero.astype(np.int64).item())
    return _gives_back(numbers.dtype, dequantize.to_type, distinct, offset, saturates=quantize.saturate)


@functools.lru_cache(maxsize=4096)
def _gives_back(dtype: DataType, real: DataType, scales: bytes, offset: int, *, saturates: bool) -> bool:
    codes = all_codes(dtype)
    zero = [np.array(offset, np.int32).astype(dtype.numpy)] if offset else []
    for value in np.frombuffer(scales, np.float64):
        # A scale of FP16 or BF16 is an FP32 number too, and that is what is computed with.
        scale = np.array(value, np.float64 if real is DataType.DOUBLE else np.float32)
        (numbers,) = evaluate(Dequantize(to_type=real), [codes, scale, *zero])
        (again,) = evaluate(Quantize(to_type=dtype, saturate=saturates), [numbers, scale, *zero])
        if again.tobytes() != codes.tobytes():
            return False
    return True


def all_codes(dtype: DataType) -> Array:
    """Every value of a type of at most 8 bits, once; of FP8 without its NaNs, whose signs mean nothing."""
    bits = np.arange(2**dtype.bits, dtype=np.uint8)
    if dtype.is_integer and dtype.bits < _MOST_BITS:
        low = -(2 ** (dtype.bits - 1)) if dtype.numpy_name.startswith("int") else 0
        return (bits.astype(np.int8) + np.int8(low)).astype(dtype.numpy)
    codes: Array = bits.view(dtype.numpy)
    return codes if dtype.is_integer else codes[~np.isnan(codes.astype(np.float32))]
