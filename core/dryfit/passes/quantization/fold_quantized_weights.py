"""Weights that are quantized while the engine runs become constants of the narrow type, quantized once, here.

What a device computes on quantized weights it computes on these, and the engine holds a quarter of the bytes, or an
eighth. The reference's quantize layer is the arithmetic: a division in FP32, rounding to nearest even, saturation.
"""

from __future__ import annotations

from dryfit.network.network import Network
from dryfit.passes.fold_constants import fold_layers
from dryfit.quantization.rewrites import Rewrite, RewriteAction, RewriteJournal

NAME = "fold-quantized-weights"

_KEPT = frozenset({"constant", "dequantize", "dynamic_quantize", "plugin"})
"""Kinds that are not folded: dequantized weights would be real numbers again."""


class FoldQuantizedWeights:
    """The pass. What moved in between, such as a transpose of quantized weights, is computed too.

    Args:
        journal: is told of each quantization.
    """

    def __init__(self, journal: RewriteJournal) -> None:
        self._journal = journal

    def __call__(self, network: Network) -> bool:
        """Quantize weights; returns whether there were any."""
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
                name = self._journal.origin(layer.name)
                self._journal.add(Rewrite(NAME, name, RewriteAction.FOLDED, (weights,), reason))
        return bool(folded)
