"""Casts beside quantizations and dequantizations that are part of them: exporters of FP16 models write such casts.

A dequantization computes in FP32 and rounds once to its own type, as a cast of its result would; a quantization divides
in FP32 whatever type it reads, as it would after a cast to FP32.
"""

from __future__ import annotations

from collections.abc import Sequence

from dryfit.network.copying import note_origin
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.cast import Cast
from dryfit.network.layers.dequantize import Dequantize
from dryfit.network.layers.quantize import Quantize
from dryfit.network.tensor import TensorSpec
from dryfit.passes.quantization.moving import Movement, is_reading_data
from dryfit.quantization.rewrites import RewriteAction

_NARROW = (DataType.HALF, DataType.BF16)


def absorb_into_dequantize(cast: Layer, movement: Movement) -> bool:
    """Let a dequantization give the type to which a cast rounds its result; returns whether there is such a cast."""
    source = cast.inputs[0] if isinstance(cast, Cast) and not cast.output_types else None
    dequantize = None if source is None else source.producer
    if not isinstance(cast, Cast) or not isinstance(dequantize, Dequantize) or dequantize.inputs[0] is None:
        return False
    if dequantize.to_type is not DataType.FLOAT or cast.to_type not in _NARROW:
        return False
    output = cast.outputs[0]
    spec = TensorSpec(movement.specs[output].shape, cast.to_type)
    readers = list(output.consumers)
    after = movement.add_copy(dequantize, f"as {cast.name}", dequantize.inputs[0], spec)
    after.to_type = cast.to_type
    note_origin(after, cast)
    cast.set_input(0, None)
    movement.redirect(readers, output, after.outputs[0])
    movement.hand_name(output, after.outputs[0], f"{output.name} absorbed")
    reason = f"the product is rounded once, to {cast.to_type.name}"
    movement.record(dequantize, RewriteAction.MOVED, [cast.name], reason)
    movement.retire(cast)
    if movement.is_unread(dequantize.outputs[0]):
        movement.retire(dequantize, after)
    return True


def absorb_into_quantizes(cast: Layer, quantizes: Sequence[Quantize], movement: Movement) -> Sequence[Quantize]:
    """Let quantizations read what a cast to FP32 reads; returns those that do now, none where it is no such cast."""
    source = cast.inputs[0] if isinstance(cast, Cast) and not cast.output_types else None
    if source is None or movement.specs[source].dtype not in _NARROW:
        return ()
    if movement.specs[cast.outputs[0]].dtype is not DataType.FLOAT:
        return ()
    for quantize in quantizes:
        quantize.set_input(0, source)
        note_origin(quantize, cast)
        reason = f"every {movement.specs[source].dtype.name} number is one of FP32"
        movement.record(quantize, RewriteAction.MOVED, [cast.name], reason)
    movement.has_changed = True
    if movement.is_unread(cast.outputs[0]):
        cast.set_input(0, None)
        movement.retire(cast)
    return [one for one in quantizes if is_reading_data(one, source)]
