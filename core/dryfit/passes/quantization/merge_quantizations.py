"""Quantizations of one tensor that do the same become one, and so do dequantizations."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from dryfit.network.layers.dequantize import Dequantize
from dryfit.network.layers.quantize import Quantize
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor
from dryfit.passes.quantization.moving import Movement, is_reading_data
from dryfit.passes.quantization.scale_numbers import compared_scales, numbers_of
from dryfit.quantization.rewrites import RewriteAction, RewriteJournal

NAME = "merge-quantizations"


class MergeQuantizations:
    """The pass. Outputs of the network keep their names: of two that are outputs, both stay.

    Args:
        journal: is told which layer stands for which.
    """

    def __init__(self, journal: RewriteJournal) -> None:
        self._journal = journal

    def __call__(self, network: Network) -> bool:
        """Merge what does the same; returns whether there was anything."""
        movement = Movement(NAME, network, self._journal)
        for tensor in movement.specs:
            readers = [one for one, _ in tensor.consumers if is_reading_data(one, tensor)]
            if len(readers) > 1:
                _merge(tensor, [one for one in readers if isinstance(one, (Quantize, Dequantize))], movement)
        return movement.finish()


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
