"""The passes over quantizations and dequantizations, in their order."""

from __future__ import annotations

from dryfit.passes.pipeline import NetworkPass
from dryfit.passes.quantization import (
    cancel_quantizations,
    fold_quantized_weights,
    merge_quantizations,
    move_activations,
    move_dequantizes,
    move_quantizes,
)
from dryfit.passes.quantization.cancel_quantizations import CancelQuantizations
from dryfit.passes.quantization.fold_quantized_weights import FoldQuantizedWeights
from dryfit.passes.quantization.merge_quantizations import MergeQuantizations
from dryfit.passes.quantization.move_activations import MoveActivations
from dryfit.passes.quantization.move_dequantizes import MoveDequantizes
from dryfit.passes.quantization.move_quantizes import MoveQuantizes
from dryfit.passes.quantization.moving import Judge, any_device
from dryfit.quantization.rewrites import RewriteJournal


def quantization_passes(journal: RewriteJournal, judge: Judge = any_device) -> list[NetworkPass]:
    """The passes, each in time linear in the number of layers.

    What does the same is one before it moves. Dequantizations move first, so that quantizations meet them where they
    cancel. Weights are last: by then everything between them and the layer that takes them can be computed.

    Args:
        journal: is told of every step.
        judge: says which layers devices compute on codes.
    """
    return [
        NetworkPass(merge_quantizations.NAME, MergeQuantizations(journal)),
        NetworkPass(move_dequantizes.NAME, MoveDequantizes(journal, judge)),
        NetworkPass(move_activations.NAME, MoveActivations(journal)),
        NetworkPass(move_quantizes.NAME, MoveQuantizes(journal, judge)),
        NetworkPass(cancel_quantizations.NAME, CancelQuantizations(journal)),
        NetworkPass(fold_quantized_weights.NAME, FoldQuantizedWeights(journal)),
    ]
