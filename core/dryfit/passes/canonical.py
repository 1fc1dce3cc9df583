"""The passes that every network goes through before it is placed on devices."""

from __future__ import annotations

from dryfit.passes.absorb_dimensions import absorb_dimensions
from dryfit.passes.claim_quantized_groups import GroupClaims
from dryfit.passes.contributed import insert_contributed
from dryfit.passes.fold_constants import fold_constants
from dryfit.passes.pipeline import NetworkPass, Pipeline
from dryfit.passes.remove_dead_layers import remove_dead_layers
from dryfit.passes.remove_identities import remove_identities
from dryfit.plugins import facade


def own_passes(claims: GroupClaims | None = None) -> list[NetworkPass]:
    """The passes of dryfit itself, in order. Their names are part of the plugin interface.

    Args:
        claims: is told of the quantized groups that plugins claim.
    """
    claim_quantized_groups = NetworkPass("claim-quantized-groups", GroupClaims() if claims is None else claims)
    return [fold_constants, absorb_dimensions, remove_identities, claim_quantized_groups, remove_dead_layers]


def canonical_pipeline(claims: GroupClaims | None = None) -> Pipeline:
    """A new pipeline of `own_passes` and those of installed plugins, to be extended and run.

    Args:
        claims: is told of the quantized groups that plugins claim.
    """
    pipeline = Pipeline(own_passes(claims))
    insert_contributed(pipeline, facade.contributed_passes())
    return pipeline
