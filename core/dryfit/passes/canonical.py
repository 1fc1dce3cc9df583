"""The passes that every network goes through before it is placed on devices."""

from __future__ import annotations

from dryfit.passes.absorb_dimensions import absorb_dimensions
from dryfit.passes.fold_constants import fold_constants
from dryfit.passes.pipeline import Pipeline
from dryfit.passes.remove_dead_layers import remove_dead_layers
from dryfit.passes.remove_identities import remove_identities


def canonical_pipeline() -> Pipeline:
    """A new pipeline of the passes, to be extended and run."""
    return Pipeline([fold_constants, absorb_dimensions, remove_identities, remove_dead_layers])
