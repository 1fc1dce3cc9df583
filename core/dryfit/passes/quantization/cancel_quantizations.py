"""Quantizations and dequantizations that are merged, cancelled, or computed once, before the engine runs.

Those of one tensor that do the same become one. A quantization right after a dequantization goes where it gives back
the codes that were dequantized. That it does is not taken from equal scales alone: it is tried for every code of the
type, by the numpy references, so that scales at which products overflow, or vanish in FP16, are kept.

Weights that are quantized while the engine runs become constants of the narrow type, quantized once, here. What a
device computes on quantized weights it computes on these, and the engine holds a quarter of the bytes, or an eighth.
The reference's quantize layer is the arithmetic: a division in FP32, rounding to nearest even, saturation.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Sequence

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layer_copies import note_origin
from dryfit.network.layers.quantization import Dequantize, Quantize
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor
from dryfit.passes.findings import PassFindings
from dryfit.passes.quantization.moving import Movement, QuantizationPass, is_reading_data
from dryfit.passes.quantization.scale_numbers import (
    Array,
    QuantizationNumbers,
    compared_scales,
    constant_value,
    numbers_of,
)
from dryfit.passes.simplify import fold_layers
from dryfit.quantization.rewrites import Rewrite, RewriteAction, RewriteJournal
from dryfit.reference.registry import evaluate


class MergeQuantizations(QuantizationPass):
    """The pass. Outputs of the network keep their names: of two that are outputs, both stay."""

    name = "merge-quantizations"

    def sweep(self, movement: Movement) -> None:
        """Merge what does the same."""
        for tensor in movement.specs:
            readers = [one for one, _ in tensor.consumers if is_reading_data(one, tensor)]
            if len(readers) > 1:
                _merge(tensor, [one for one in readers if isinstance(one, (Quantize, Dequantize))], movement)


def _merge(tensor: Tensor, readers: Sequence[Quantize | Dequantize], movement: Movement) -> None:
    """Let the first of those that do the same stand for them all; one that gives an output of the network first."""
    ordered = sorted(readers, key=lambda one: one.outputs[0] not in movement.outputs)
    found: dict[Hashable, Quantize | Dequantize] = {}
    for layer in ordered:
        saturates = layer.saturate if isinstance(layer, Quantize) else True
        first = found.setdefault((numbers_of(layer, movement.specs), layer.to_type, saturates), layer)
        if first is layer or layer.outputs[0] in movement.outputs:
            continue
        what = "quantizes" if isinstance(layer, Quantize) else "dequantizes"
        reason = f"it {what} {tensor.name!r} by an equal scale"
        movement.record(layer, RewriteAction.MERGED, [movement.origin(first)], reason, compared_scales(first, layer))
        first.onnx_nodes = tuple(dict.fromkeys((*first.onnx_nodes, *layer.onnx_nodes)))
        movement.redirect(layer.outputs[0].consumers, layer.outputs[0], first.outputs[0])
        movement.retire(layer)


_MOST_BITS = 8
"""Of a type whose codes are all tried."""


class CancelQuantizations(QuantizationPass):
    """The pass. A dequantization that nobody reads afterwards goes too."""

    name = "cancel-quantizations"

    def sweep(self, movement: Movement) -> None:
        """Take out what changes nothing."""
        for layer in list(movement.network.layers):
            source = layer.inputs[0] if isinstance(layer, Quantize) else None
            producer = source.producer if source is not None else None
            if isinstance(layer, Quantize) and isinstance(producer, Dequantize):
                _cancel(producer, layer, movement)


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


def gives_back_codes(dequantize: Dequantize, quantize: Quantize, numbers: QuantizationNumbers) -> bool:
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


_KEPT = frozenset({"constant", "dequantize", "dynamic_quantize", "plugin"})
"""Kinds that are not folded: dequantized weights would be real numbers again."""


class FoldQuantizedWeights:
    """The pass. What moved in between, such as a transpose of quantized weights, is computed too."""

    name = "fold-quantized-weights"
    plugin = ""

    def run(self, network: Network, before: PassFindings) -> PassFindings:
        """Quantize weights; returns which were."""
        journal = RewriteJournal(before=before.rewrites)
        sources = {
            layer.name: (source.name, layer.outputs[0].dtype)
            for layer in network.layers
            if layer.kind == "quantize" and (source := layer.inputs[0]) is not None
        }
        folded = fold_layers(network, _KEPT)
        for layer in folded:
            if layer.name in sources:
                weights, dtype = sources[layer.name]
                reason = f"{weights!r} is constant and is kept in {dtype.name}"
                step = Rewrite(self.name, journal.origin(layer.name), RewriteAction.FOLDED, (weights,), reason)
                journal.add(step)
        return PassFindings(bool(folded), rewrites=journal)
