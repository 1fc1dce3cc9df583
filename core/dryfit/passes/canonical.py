"""The passes that every network goes through before it is placed on devices."""

from __future__ import annotations

from dryfit.passes.absorb_dimensions import absorb_dimensions
from dryfit.passes.claim_quantized_groups import GroupClaims
from dryfit.passes.contributed import insert_contributed
from dryfit.passes.fold_constants import fold_constants
from dryfit.passes.pipeline import NetworkPass, Pipeline
from dryfit.passes.quantization.moving import Judge, any_device
from dryfit.passes.quantization.optimizer import quantization_passes
from dryfit.passes.remove_dead_layers import remove_dead_layers
from dryfit.passes.remove_identities import remove_identities
from dryfit.plugins import facade
from dryfit.quantization.rewrites import RewriteJournal


def own_passes(
    claims: GroupClaims | None = None, journal: RewriteJournal | None = None, judge: Judge = any_device
) -> list[NetworkPass]:
    """The passes of dryfit itself, in order. Their names are part of the plugin interface.

    Args:
        claims: is told of the quantized groups that plugins claim.
        journal: is told of what becomes of quantizations and dequantizations.
        judge: says which layers devices compute on quantized codes.
    """
    claim_quantized_groups = NetworkPass("claim-quantized-groups", GroupClaims() if claims is None else claims)
    optimizer = quantization_passes(RewriteJournal() if journal is None else journal, judge)
    return [
        fold_constants,
        absorb_dimensions,
        remove_identities,
        *optimizer,
        claim_quantized_groups,
        remove_dead_layers,
    ]


def canonical_pipeline(
    claims: GroupClaims | None = None, journal: RewriteJournal | None = None, judge: Judge = any_device
) -> Pipeline:
    """A new pipeline of `own_passes` and those of installed plugins, to be extended and run.

    Args:
        claims: is told of the quantized groups that plugins claim.
        journal: is told of what becomes of quantizations and dequantizations.
        judge: says which layers devices compute on quantized codes.
    """
    pipeline = Pipeline(own_passes(claims, journal, judge))
    insert_contributed(pipeline, facade.contributed_passes())
    return pipeline
