"""What a segment is estimated to cost, as its target reckons it."""

from __future__ import annotations

from collections.abc import Sequence

from dryfit.builder.segment_pools import Specs
from dryfit.builder.target_variant import TargetVariant
from dryfit.errors import DryfitError, PluginError
from dryfit.network.layer import Layer
from dryfit.target.cost import CostEstimate


def segment_estimate(variant: TargetVariant, layers: Sequence[Layer], specs: Specs) -> CostEstimate | None:
    """The target's estimate; None where it estimates nothing.

    Args:
        variant: the device.
        layers: of one segment, in execution order.
        specs: tensor name to spec, at the shapes that the engine is optimised for.

    Raises:
        PluginError: the target's cost function failed, or gave no estimate.
    """
    estimate_cost = variant.target.estimate_cost
    if estimate_cost is None:
        return None
    where = f"target {variant.device}, {variant.target.estimate_cost_at}"
    try:
        found = estimate_cost(layers, specs, variant.platform, variant.software)
    except DryfitError:
        raise
    except Exception as error:  # the function is a stranger's
        raise PluginError(
            "The target's cost function failed",
            where=where,
            found=f"{type(error).__name__}: {error}",
            remedy="`dryfit plugins doctor` names the package that brings the target",
        ) from error
    if not isinstance(found, CostEstimate):
        raise PluginError(
            "A target's cost function gives an estimate",
            where=where,
            found=type(found).__name__,
            allowed="dryfit.target.cost.CostEstimate",
        )
    return found
