"""What `dryfit explain` tells of reformats: why each is there, and which format of an input or output removes it."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping
from typing import Any

from dryfit.answers.options import INPUT_FORMATS, OUTPUT_FORMATS
from dryfit.answers.reformat_removal import FormatTrial, Removals
from dryfit.answers.text import bytes_text
from dryfit.builder.config.trtexec_spellings import IoFormat, io_formats_text
from dryfit.builder.formats.forms import REFORMAT_RULES
from dryfit.cli.console import print_line, print_list
from dryfit.network.network import Network
from dryfit.short_text import count_text

Report = dict[str, Any]


def reformat_report(placement: Report, removals: Removals | None, network: Network, layers: Collection[str]) -> Report:
    """The reformats, each with its rule and what removes it, and all that formats of inputs and outputs can do.

    Args:
        placement: see `dryfit.cli.placement_report`.
        removals: what was tried; None where nothing was.
        network: the network.
        layers: names of the layers that are told of.
    """
    told = {
        tensor.name
        for layer in network.layers
        if layer.name in layers
        for tensor in (*layer.inputs, *layer.outputs)
        if tensor is not None
    }
    return {
        "reformats": [_reformat(one, removals) for one in placement["reformats"] if one["tensor"] in told],
        "io_formats": None if removals is None else _together(placement["summary"], removals, network),
    }


def _reformat(one: Report, removals: Removals | None) -> Report:
    rule = REFORMAT_RULES[one["rule"]]
    best = None if removals is None else removals.best(one["tensor"])
    return {**one, "remedy": rule.remedy, "source": rule.source, "removed_by": None if best is None else _trial(best)}


def _trial(trial: FormatTrial) -> Report:
    return {
        "io_format": str(trial.io_format),
        "reformats": trial.reformats,
        "reformat_bytes": trial.reformat_bytes,
        "moved_bytes": trial.moved_bytes,
    }


def _together(summary: Report, removals: Removals, network: Network) -> Report | None:
    together = removals.together
    if together is None:
        return None
    return {
        "apply": _options(removals.io_formats, network),
        "before": {key: summary[key] for key in ("reformats", "reformat_bytes")},
        "after": {"reformats": together.reformats, "reformat_bytes": together.reformat_bytes},
    }


def _options(chosen: Mapping[str, IoFormat], network: Network) -> str:
    """The options that set types and formats; none for a side of the network that stays as it is."""
    words = []
    for option, tensors in ((INPUT_FORMATS, network.inputs), (OUTPUT_FORMATS, network.outputs)):
        entries = [chosen[tensor.name] for tensor in tensors]
        if entries != [IoFormat.of(tensor) for tensor in tensors]:
            words += [option, io_formats_text(entries)]
    return shlex.join(words)


def print_reformats(report: Report) -> None:
    """The reformats for people.

    Args:
        report: see `dryfit.cli.explain_report`.
    """
    entries: list[tuple[str, str, str]] = []
    for one in report["reformats"]:
        is_told = any(one["rule"] in text for _, text, _ in entries)
        entries.append(
            (one["tensor"], f"{bytes_text(one['bytes'])}, {one['cause']} [{one['rule']}]", _removal(one, is_told))
        )
    print_list("Reformats: copies between types, formats or devices", entries)
    together = report["io_formats"]
    if together is not None and report["layer"] is None:
        before, after = together["before"], together["after"]
        print_line(
            f"With these formats of inputs and outputs: {before['reformats']} -> {after['reformats']} reformats, "
            f"{bytes_text(before['reformat_bytes'])} -> {bytes_text(after['reformat_bytes'])}: {together['apply']}"
        )
        print_line()


def _removal(one: Report, is_told: bool) -> str:
    """What would do without a reformat; nothing where that was told with another of the same rule."""
    found = one["removed_by"]
    if found is None:
        return "" if is_told else f"{one['remedy']}."
    return (
        f"Avoidable: with {found['io_format']} (verified) {count_text(found['reformats'], 'reformat')} "
        f"of {bytes_text(found['reformat_bytes'])} remain."
    )
