"""The passes over quantizations and dequantizations, in their order."""

from __future__ import annotations

from dryfit.passes.pipeline import NetworkPass
from dryfit.passes.quantization.cancel_quantizations import (
    CancelQuantizations,
    FoldQuantizedWeights,
    MergeQuantizations,
)
from dryfit.passes.quantization.move_dequantizes import MoveDequantizes
from dryfit.passes.quantization.move_quantizes import MoveActivations, MoveQuantizes
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
    passes = (
        MergeQuantizations(journal),
        MoveDequantizes(journal, judge),
        MoveActivations(journal),
        MoveQuantizes(journal, judge),
        CancelQuantizations(journal),
        FoldQuantizedWeights(journal),
    )
    return [NetworkPass(one.name, one) for one in passes]
