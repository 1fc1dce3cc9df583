"""Proposed placements as text, and as files for `--placement`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from dryfit.answers.placement_text import defaults_line, listed_names
from dryfit.answers.text import Block, Entries, Line, Table, device_text
from dryfit.atomic_file import write_atomically
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.config.layer_rules import PlacementRules
from dryfit.errors import ConfigError, DryfitError
from dryfit.estimate_text import rate_text, time_text, two_digits, with_error
from dryfit.network.network import Network
from dryfit.short_text import count_text

if TYPE_CHECKING:
    from dryfit.answers.place import ComparedPlacement, PlaceAnswer
    from dryfit.answers.placement_search.changes import Change


def proposal_blocks(answer: PlaceAnswer) -> Iterator[Block]:
    """Return the comparison, the changes with their reasons, and the values before and after."""
    before, after = answer.before, answer.after
    yield Line(outcome_text(answer))
    yield Line(proposal_heading(answer))
    yield Line(answer.note)
    yield from defaults_line(answer.assumed, answer.overlays)
    yield Line()
    rows = [
        (
            "*" if one.is_chosen else "",
            _value(one, answer.unit),
            _counts(one.segments_by_device),
            "yes" if one.is_exact else "",
            one.title,
        )
        for one in answer.options
    ]
    columns = ["", "time" if answer.unit == "microseconds" else answer.unit, "segments", "exact", "placement"]
    yield Table(f"Placements compared for {answer.objective}", columns, rows)
    yield Entries("Changes, with reasons", [_change(one) for one in answer.changes])
    if after is not before:
        yield Table("Estimates before and after", ["", "before", "after"], list(_compared(before, after)))
    yield Entries("Basis", [(one.of, f"{one.basis} ({one.fidelity})", one.source) for one in answer.bases])
    if answer.lower_bounds is not None:
        yield Line(_bounded(answer, is_changed=after is not before))
    yield Line(f"{answer.compared_by}.")
    yield Line(_conclusion(answer))


def outcome_text(answer: PlaceAnswer) -> str:
    """Return the gain of the proposal, and what runs where."""
    before, after = answer.before, answer.after
    if after is before:
        return f"No change: {_counts(before.layers_by_device)} ({_value(before, answer.unit)})"
    return (
        f"Proposed: {_counts(after.layers_by_device)} ({_value(after, answer.unit)} instead of "
        f"{_value(before, answer.unit)})"
    )


def proposal_heading(answer: PlaceAnswer) -> str:
    """Return the model, devices and objective of the answer."""
    mode = "" if answer.power_mode is None else f" in power mode {answer.power_mode}"
    device = device_text(answer.device, answer.platform, answer.software)
    return f"Placement of {answer.model} between {device} and {answer.fallback}{mode}, for {answer.objective}"


def _conclusion(answer: PlaceAnswer) -> str:
    """Return the suggested next step."""
    if answer.after is answer.before:
        kept = "" if answer.output is None else f" {answer.output} has the devices that you set, and no others."
        return f"No placement is estimated to be better than the default placement of a build.{kept}"
    if answer.output is None:
        return "Add --output FILE to write the placement for `dryfit build --placement FILE`."
    count = count_text(len(answer.placement), "layer")
    return f"Wrote {answer.output}: devices of {count}. Pass it as --placement, with the same other options."


def _bounded(answer: PlaceAnswer, *, is_changed: bool) -> str:
    """Return what a lower-bound time means for the choice."""
    bounds = answer.lower_bounds
    if bounds is None:
        return ""
    caution = (
        f"The time on {' and '.join(bounds.devices)} is a roofline lower bound: real runs take longer, so for "
        f"{answer.objective} the search favors this device too much."
    )
    if not is_changed:
        return f"{caution} The default placement is kept, so this has no effect here."
    if bounds.factor is None:
        return f"{caution} The proposal stays better however much longer they take."
    return f"{caution} The proposal stays better as long as they take less than {bounds.factor:.3g} times the estimate."


def _value(option: ComparedPlacement, unit: str) -> str:
    """Format the value of the objective: a time or an energy with its error, or a count."""
    if unit == "microseconds":
        return time_text(option.value, option.error_factor, is_lower_bound=bool(option.lower_bounds))
    if unit.startswith("multiply-accumulates"):
        return f"{option.value:,.0f}"
    return with_error(two_digits(option.value), option.energy_error_factor)


def _compared(before: ComparedPlacement, after: ComparedPlacement) -> Iterator[tuple[str, str, str]]:
    """Return (name, before, after) rows, without values that neither side has."""
    if (before.latency_microseconds, after.latency_microseconds) != (None, None):
        yield "latency", _latency(before), _latency(after)
    if (before.images_per_second, after.images_per_second) != (None, None):
        yield "throughput, all devices busy at once", _rate(before), _rate(after)
    if (before.energy, after.energy) != (None, None):
        yield "energy", _energy(before), _energy(after)
    yield "layers", _counts(before.layers_by_device), _counts(after.layers_by_device)
    yield "segments", _counts(before.segments_by_device), _counts(after.segments_by_device)
    yield "multiply-accumulates", _counts(before.macs_by_device), _counts(after.macs_by_device)
    yield "copies between devices", str(before.copies), str(after.copies)


def _latency(option: ComparedPlacement) -> str:
    return time_text(option.latency_microseconds, option.error_factor, is_lower_bound=bool(option.lower_bounds))


def _rate(option: ComparedPlacement) -> str:
    return rate_text(option.images_per_second, option.error_factor, is_upper_bound=bool(option.lower_bounds))


def _energy(option: ComparedPlacement) -> str:
    energy = option.energy
    if energy is None:
        return "none"
    return with_error(f"{two_digits(energy.amount)} {energy.unit}", option.energy_error_factor)


def _change(change: Change) -> tuple[str, str, str]:
    way = f"{count_text(len(change.layers), 'layer')} from {change.source} to {change.destination}"
    return f"{way} ({listed_names(change.layers)})", change.reason, ""


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {device}" for device, count in counts.items())


# The file -------------------------------------------------------------------------------------------------------------


def write_placement(path: Path, network: Network, answer: PlaceAnswer) -> None:
    """Write a placement: JSON for the suffix `.json`, else rules with a header that states their origin.

    Raises:
        ConfigError: The suffix is that of a script, the names cannot be written as rules, or the file cannot be
            written.
    """
    devices = answer.placement
    if path.suffix == ".py":
        raise ConfigError(
            "A placement must be written as rules or as JSON",
            where=f"--output {path}",
            found="the suffix .py",
            allowed="a suffix other than .py",
            remedy="Use the suffix .json, or .txt for rules",
        )
    if path.suffix == ".json":
        text = json.dumps(dict(devices), indent=2) + "\n"
    else:
        text = rules_text(devices, _file_heading(answer))
        _require_same(path, text, network, devices)
    write_atomically(path, [text.encode()])


def rules_text(devices: Mapping[str, str], heading: str = "") -> str:
    """Return the layer devices as rules, one per line, below a comment."""
    comment = "".join(f"# {line}\n" for line in heading.splitlines())
    return comment + "".join(f"{name} = {device}\n" for name, device in devices.items())


def _require_same(path: Path, text: str, network: Network, devices: Mapping[str, str]) -> None:
    """Reject rules that would be read differently, such as a name with a line break or ` #` in it."""
    if _read(path, text, network) != devices:
        alone = {name: _read(path, rules_text({name: device}), network) for name, device in devices.items()}
        odd = [name for name, found in alone.items() if found != {name: devices[name]}]
        raise ConfigError(
            "These layer names cannot be written as rules",
            where=f"--output {path}",
            found=", ".join(map(repr, odd)),
            remedy="Use the suffix .json",
        )


def _read(path: Path, text: str, network: Network) -> dict[str, str]:
    """Return the devices that rules assign; empty if the rules cannot be read."""
    config = BuilderConfig()
    try:
        PlacementRules.parse(text, str(path)).apply(network, config)
    except DryfitError:
        return {}
    return config.explicit_device_types(network)


def _file_heading(answer: PlaceAnswer) -> str:
    variant = " ".join(filter(None, [answer.platform, answer.software]))
    mode = "" if answer.power_mode is None else f", power mode {answer.power_mode}"
    return (
        f"Devices for {answer.objective} on {answer.device} ({variant}{mode}) and {answer.fallback}.\n"
        f"All other layers stay on the default device, {answer.device}.\n"
        f"Estimated, not measured: {_value(answer.after, answer.unit)}; without this file "
        f"{_value(answer.before, answer.unit)}."
    )
