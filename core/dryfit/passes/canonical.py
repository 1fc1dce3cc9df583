"""The passes that every network goes through before it is placed on devices."""

from __future__ import annotations

from dryfit.passes.absorb_dimensions import absorb_dimensions
from dryfit.passes.cast_identities import cast_identities
from dryfit.passes.claim_quantized_groups import GroupClaims
from dryfit.passes.contributed import insert_contributed
from dryfit.passes.fold_constants import fold_constants
from dryfit.passes.pipeline import NetworkPass, Pipeline
from dryfit.passes.quantization.moving import Judge, any_device
from dryfit.passes.quantization.optimizer import quantization_passes
from dryfit.passes.quantized_operators.form_quantized_operators import NAME as FORM_OPERATORS
from dryfit.passes.quantized_operators.form_quantized_operators import QuantizedOperators
from dryfit.passes.remove_dead_layers import remove_dead_layers
from dryfit.passes.remove_identities import remove_identities
from dryfit.plugins import facade
from dryfit.quantization.rewrites import RewriteJournal


def own_passes(
    claims: GroupClaims | None = None,
    journal: RewriteJournal | None = None,
    judge: Judge = any_device,
    operators: QuantizedOperators | None = None,
) -> list[NetworkPass]:
    """The passes of dryfit itself, in order. Their names are part of the plugin interface.

    Args:
        claims: is told of the quantized groups that plugins claim.
        journal: is told of what becomes of quantizations and dequantizations.
        judge: says which layers devices compute on quantized codes.
        operators: is told which layers their quantize methods compute.
    """
    claim_quantized_groups = NetworkPass("claim-quantized-groups", GroupClaims() if claims is None else claims)
    form_quantized_operators = NetworkPass(FORM_OPERATORS, QuantizedOperators() if operators is None else operators)
    optimizer = quantization_passes(RewriteJournal() if journal is None else journal, judge)
    return [
        form_quantized_operators,
        fold_constants,
        absorb_dimensions,
        cast_identities,
        remove_identities,
        *optimizer,
        claim_quantized_groups,
        remove_dead_layers,
    ]


def canonical_pipeline(
    claims: GroupClaims | None = None,
    journal: RewriteJournal | None = None,
    judge: Judge = any_device,
    operators: QuantizedOperators | None = None,
) -> Pipeline:
    """A new pipeline of `own_passes` and those of installed plugins, to be extended and run.

    Args:
        claims: is told of the quantized groups that plugins claim.
        journal: is told of what becomes of quantizations and dequantizations.
        judge: says which layers devices compute on quantized codes.
        operators: is told which layers their quantize methods compute.
    """
    pipeline = Pipeline(own_passes(claims, journal, judge, operators))
    insert_contributed(pipeline, facade.contributed_passes())
    return pipeline
