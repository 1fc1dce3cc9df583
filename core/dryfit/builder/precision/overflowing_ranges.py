"""Tensors that are stored in FP16 although calibration found values that FP16 does not hold."""

from __future__ import annotations

from dryfit.engine.stored_tensors import stored_tensors
from dryfit.network.data_types import DataType
from dryfit.network.network import Network

LARGEST_FP16 = 65504.0
"""The largest finite number of FP16."""
_LISTED = 3
"""So many tensors are named; the others are counted."""


def overflow_warnings(network: Network, lowered: Network) -> list[str]:
    """A warning that names the first of these tensors, in the order of execution; none where there are none.

    Args:
        network: that is built, with the ranges of its tensors.
        lowered: the engine's.
    """
    declared = {tensor.name: tensor.dtype for tensor in network.tensors}
    found = dict[str, float]()
    for stored in stored_tensors(lowered, declared).values():
        given = network.tensor(stored.of).dynamic_range
        if stored.dtype is DataType.HALF and given is not None:
            largest = max(map(abs, given))
            if largest > LARGEST_FP16:
                found[stored.of] = largest
    if not found:
        return []
    named = [f"{name!r} ({largest:.6g})" for name, largest in list(found.items())[:_LISTED]]
    more = f" and {len(found) - _LISTED} more" if len(found) > _LISTED else ""
    text = f"FP16 overflow: tensors stored in FP16 have ranges beyond {LARGEST_FP16:g}: {', '.join(named)}{more}"
    return [f"{text}. Compute their layers in FP32, or scale their inputs or weights down"]
