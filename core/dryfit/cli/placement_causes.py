"""Causes that no verdict tells: votes of plugins, claims to quantized groups, segments that moved as a whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

LISTED_NAMES = 4
"""How many layers are named where many have the same reason."""


def other_causes(causes: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """(layers, cause, "") for each cause that is more than "the default device" and its like.

    Args:
        causes: layer name to cause, of the layers that the device asked for does not refuse: the verdicts of the
            others are told elsewhere.
    """
    from dryfit.builder.design import SHAPE_COMPUTATION
    from dryfit.builder.placement.assign import DEFAULT_DEVICE, OWN_DEVICE

    layers: dict[str, list[str]] = {}
    for name, cause in causes.items():
        if cause not in (DEFAULT_DEVICE, OWN_DEVICE, SHAPE_COMPUTATION):
            layers.setdefault(cause, []).append(name)
    return [(listed_names(names), cause, "") for cause, names in layers.items()]


def listed_names(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    shown = ", ".join(names[:LISTED_NAMES])
    return shown if len(names) <= LISTED_NAMES else f"{shown} and {len(names) - LISTED_NAMES} more"
