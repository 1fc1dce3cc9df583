"""Causes that no verdict tells: votes of plugins, claims to quantized groups, segments that moved as a whole."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from dryfit.errors import UnknownNameError
from dryfit.short_text import likeness, short_name, with_short_names

LISTED_NAMES = 4
"""How many layers are named where many have the same reason."""
KNOWN_NAMES = 20
"""How many layers are listed to who asks for one that does not exist."""
FIRST_ONLY = " (values of the first one; the others differ)"


def other_causes(causes: Mapping[str, str], *, is_full: bool = False) -> list[tuple[str, str, str]]:
    """(layers, cause, "") for each cause that is more than "the default device" and its like.

    Args:
        causes: layer name to cause, of the layers that the device asked for does not refuse: the verdicts of the
            others are told elsewhere.
        is_full: whether each layer has an entry of its own.
    """
    from dryfit.builder.decisions import SHAPE_COMPUTATION
    from dryfit.builder.placement.assign import DEFAULT_DEVICE, OWN_DEVICE

    entries = [
        (name, cause, "")
        for name, cause in causes.items()
        if cause not in (DEFAULT_DEVICE, OWN_DEVICE, SHAPE_COMPUTATION)
    ]
    return entries if is_full else grouped_entries(entries)


def grouped_entries(entries: Sequence[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """Entries of (name, text, remedy), where those that differ in names and numbers only are one, with all names."""
    groups: dict[tuple[str, str], list[tuple[str, str, str]]] = {}
    for entry in entries:
        groups.setdefault((likeness(entry[1]), likeness(entry[2])), []).append(entry)
    found = []
    for members in groups.values():
        _, text, remedy = members[0]
        differ = len({(one[1], one[2]) for one in members}) > 1
        text = f"{with_short_names(text)}{FIRST_ONLY if differ else ''}"
        found.append((listed_names([name for name, _, _ in members]), text, remedy))
    return found


def unknown_layer(name: str, known: Collection[str]) -> UnknownNameError:
    """The error about a layer that does not exist; of many names it has the closest only."""
    told = f"{len(known)} names, which `dryfit check --verbose` lists" if len(known) > KNOWN_NAMES else None
    return UnknownNameError("layer or ONNX node", name, known, told=told)


def listed_names(names: Sequence[str]) -> str:
    """The first names, shortened, and how many more there are."""
    shown = ", ".join(map(short_name, names[:LISTED_NAMES]))
    return shown if len(names) <= LISTED_NAMES else f"{shown} and {len(names) - LISTED_NAMES} more"
