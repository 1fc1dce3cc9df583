"""The passes over quantizations and dequantizations, in their order."""

from __future__ import annotations

from dryfit.passes.pipeline import NetworkPass
from dryfit.passes.quantization.cancel_quantizations import (
    CANCEL,
    FOLD,
    MERGE,
    CancelQuantizations,
    FoldQuantizedWeights,
    MergeQuantizations,
)
from dryfit.passes.quantization.move_dequantizes import NAME as MOVE_DEQUANTIZES
from dryfit.passes.quantization.move_dequantizes import MoveDequantizes
from dryfit.passes.quantization.move_quantizes import MOVE_ACTIVATIONS, MOVE_QUANTIZES, MoveActivations, MoveQuantizes
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
        NetworkPass(MERGE, MergeQuantizations(journal)),
        NetworkPass(MOVE_DEQUANTIZES, MoveDequantizes(journal, judge)),
        NetworkPass(MOVE_ACTIVATIONS, MoveActivations(journal)),
        NetworkPass(MOVE_QUANTIZES, MoveQuantizes(journal, judge)),
        NetworkPass(CANCEL, CancelQuantizations(journal)),
        NetworkPass(FOLD, FoldQuantizedWeights(journal)),
    ]
