"""Cost: the steps that take the most time, the roofline of each device, multipliers lost to padding, and energy."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dryfit.answers.estimate import EstimateAnswer, EstimatedStep
from dryfit.answers.text import Block, Line, Table, bytes_text, table_name
from dryfit.estimate_text import duration, two_digits, with_error
from dryfit.reporting.facts import ReportFacts
from dryfit.reporting.figures import Figure, Legend, Part, bars, chart, device_color, label, percent, time_unit
from dryfit.reporting.parts.roofline import peaks, roofline
from dryfit.short_text import count_text

MOST_STEPS = 20
"""Steps in the pictures and tables of the most expensive ones; the details have all."""
MOST_PADDED = 12
BOUND_COLORS = {"compute": "var(--device-3)", "memory": "var(--device-2)", "overhead": "var(--device-5)"}


def part(facts: ReportFacts) -> Part | None:
    """The part about cost; None if the model cannot be built."""
    cost = facts.estimate
    if cost is None:
        return None
    steps = sorted(cost.layers, key=lambda one: -one.microseconds)
    figures = [_longest(steps), *roofline(facts, steps), *_padding(steps), *_energy(facts, cost)] if steps else []
    return Part(
        name="cost",
        title="Cost",
        finding=_finding(cost, steps),
        figures=figures,
        blocks=[
            *_device_table(cost),
            *_step_table("Steps that take the most time", steps[:MOST_STEPS]),
            *_padding_table(steps),
            *_energy_table(cost),
        ],
        details=list(_step_table("All steps, in execution order", cost.layers)),
        basis=f"{cost.note} The time of a single step is less certain than the sum.",
        numbers=_numbers(cost, steps),
    )


def _numbers(cost: EstimateAnswer, steps: Sequence[EstimatedStep]) -> dict[str, Any]:
    """Shares of the time and of the cycles, sums by device, and the peak rates that the estimate uses."""
    total, few = sum(one.microseconds for one in steps), steps[: math.ceil(len(steps) / 10)]
    devices = {
        device: {
            "steps": sum(one.device == device for one in steps),
            "microseconds": cost_time(cost, device),
            "bound_share": bound_shares([one for one in steps if one.device == device]),
            "macs": sum(one.macs for one in cost.segments if one.device == device),
            "dram_bytes": sum(one.dram_bytes for one in cost.segments if one.device == device),
            "padding_share": idle_share([one for one in steps if one.device == device]),
            "peak_gigamacs_per_second": [one / 1000 for one in peaks([one for one in steps if one.device == device])],
        }
        for device in cost.devices
    }
    return {
        "longest_steps": len(few),
        "longest_steps_share": sum(one.microseconds for one in few) / total if total else None,
        "bound_share": bound_shares(steps),
        "padding_share": idle_share(steps),
        "steps_padding_share": [_padded_share(one) for one in most_padded(steps)],
        "steps_with_macs": sum(bool(one.macs and one.bytes_moved and one.microseconds) for one in steps),
        "devices": devices,
        "energy": _energies(cost),
    }


def cost_time(cost: EstimateAnswer, device: str) -> float | None:
    """Return the microseconds of a device's segments; None if one has no time."""
    times = [one.microseconds for one in cost.segments if one.device == device]
    known = [time for time in times if time is not None]
    return sum(known) if len(known) == len(times) else None


def idle_share(steps: Sequence[EstimatedStep]) -> float | None:
    """Return the share of multiplier cycles that padding takes; None if the target does not count padding."""
    own = [one for one in steps if one.padded_macs and one.cycles]
    cycles = sum(one.cycles for one in own)
    return None if not cycles else sum(one.cycles * _padded_share(one) for one in own) / cycles


def _padded_share(step: EstimatedStep) -> float:
    return 1 - step.macs / step.padded_macs if step.padded_macs else 0.0


def _finding(cost: EstimateAnswer, steps: Sequence[EstimatedStep]) -> str:
    without = sorted({one.device for one in cost.segments} - {one.device for one in steps})
    unknown = f" The target of {' and '.join(without)} estimates no time of steps." if without else ""
    total = sum(one.microseconds for one in steps)
    if not total:
        return f"The time of no step is estimated.{unknown}"
    few = steps[: math.ceil(len(steps) / 10)]
    share = sum(one.microseconds for one in few) / total
    bound = bound_shares(steps)
    most = max(bound, key=lambda name: bound[name])
    idle = idle_share(steps)
    lost = "" if idle is None else f" Padding of channels takes {percent(idle)} of the multipliers' cycles."
    first = f"{count_text(len(few), 'step')} of {len(steps)} take" + ("s" if len(few) == 1 else "")
    return f"{first} {percent(share)} of the estimated time; {percent(bound[most])} is bound by {most}.{lost}{unknown}"


def bound_shares(steps: Sequence[EstimatedStep]) -> dict[str, float]:
    """Return the share of the time in steps that are bound by compute, memory and overhead."""
    total = sum(one.microseconds for one in steps) or 1.0
    return {bound: sum(one.microseconds for one in steps if one.bound == bound) / total for bound in BOUND_COLORS}


def step_name(step: EstimatedStep) -> str:
    """Return the first layer of a step, and how many run with it."""
    return step.layers[0] if len(step.layers) == 1 else f"{step.layers[0]} + {len(step.layers) - 1}"


# Time -----------------------------------------------------------------------------------------------------------------


def _longest(steps: Sequence[EstimatedStep]) -> Figure:
    shown = steps[:MOST_STEPS]
    unit, nanoseconds = time_unit(1000 * shown[0].microseconds)
    values = [
        {
            "step": f"{rank}. {label(step_name(one))}",
            "time": 1000 * one.microseconds / nanoseconds,
            "bound": one.bound,
        }
        for rank, one in enumerate(shown, 1)
    ]
    legend = Legend("bound", BOUND_COLORS, "bound by")
    specification = bars(values, "step", "time", f"estimated time in {unit}", legend=legend)
    said = "; ".join(f"{label(step_name(one))}: {duration(one.microseconds)}, {one.bound}" for one in shown)
    return chart("steps", "Steps that take the most time", said, specification)


def _device_table(cost: EstimateAnswer) -> Iterator[Block]:
    rows = []
    for device in cost.devices:
        own = [one for one in cost.layers if one.device == device]
        segments = [one for one in cost.segments if one.device == device]
        time = cost_time(cost, device)
        bound = bound_shares(own)
        idle = idle_share(own)
        rows.append(
            (
                device,
                len(own) or "-",
                "none" if time is None else duration(time),
                ", ".join(f"{name} {percent(share)}" for name, share in bound.items()) if own else "-",
                f"{sum(one.macs for one in segments):,}",
                bytes_text(sum(one.dram_bytes for one in segments)),
                "-" if idle is None else percent(idle, 1),
            )
        )
    columns = ["device", "steps", "time", "bound by", "MACs", "DRAM", "multiplier cycles on padding"]
    yield Table("Devices (estimated)", columns, rows)


def _step_table(title: str, steps: Sequence[EstimatedStep]) -> Iterator[Block]:
    rows = [
        (
            table_name(step_name(one)),
            one.segment,
            one.device,
            duration(one.microseconds),
            one.bound,
            f"{one.macs:,}",
            two_digits(one.cycles),
            bytes_text(one.bytes_moved),
        )
        for one in steps
    ]
    if rows:
        columns = ["layers in one step", "segment", "device", "time", "bound by", "MACs", "MAC cycles", "DRAM"]
        yield Table(f"{title} (estimated)", columns, rows)


# Padding --------------------------------------------------------------------------------------------------------------


def most_padded(steps: Sequence[EstimatedStep]) -> list[EstimatedStep]:
    """Return the steps with the most cycles on padding."""
    own = [one for one in steps if one.padded_macs and one.padded_macs > one.macs]
    return sorted(own, key=lambda one: -one.cycles * _padded_share(one))[:MOST_PADDED]


def _padding(steps: Sequence[EstimatedStep]) -> Iterator[Figure]:
    shown = most_padded(steps)
    if not shown:
        return
    uses = ["on the layer", "on padding"]
    values = [
        {"step": f"{rank}. {label(step_name(one))}", "use": use, "order": use == uses[1], "cycles": one.cycles * share}
        for rank, one in enumerate(shown, 1)
        for use, share in zip(uses, (1 - _padded_share(one), _padded_share(one)), strict=True)
    ]
    legend = Legend("use", dict(zip(uses, ("var(--device-3)", "var(--unplaced)"), strict=True)))
    specification = bars(
        values, "step", "cycles", "cycles of the multipliers", legend=legend, stacked_by="order", **_SHORT
    )
    said = "; ".join(
        f"{label(step_name(one))}: {percent(_padded_share(one))} of the cycles on padding" for one in shown
    )
    yield chart("padding", "Multipliers lost to padding of channels", said, specification)


_SHORT: Mapping[str, Any] = {"format": "~s", "tickCount": 6}


def _padding_table(steps: Sequence[EstimatedStep]) -> Iterator[Block]:
    rows = [
        (
            table_name(step_name(one)),
            one.device,
            f"{one.macs:,}",
            f"{one.padded_macs:,}",
            two_digits(one.cycles),
            percent(_padded_share(one), 1),
        )
        for one in most_padded(steps)
    ]
    if rows:
        columns = ["layers in one step", "device", "MACs", "with padding", "MAC cycles", "on padding"]
        yield Table("Steps with the most cycles on padding (estimated)", columns, rows)


# Energy ---------------------------------------------------------------------------------------------------------------


def _energies(cost: EstimateAnswer) -> dict[str, float]:
    """Return the energy of each device's segments and of copies; empty if one is unknown, or if units differ."""
    if cost.network.energy is None:
        return {}
    found: dict[str, float] = {}
    for name, energy in [
        *((one.device, one.energy) for one in cost.segments),
        *(("copies", one.energy) for one in cost.transfers),
    ]:
        if energy is not None:
            found[name] = found.get(name, 0.0) + energy.amount
    return found


def _energy(facts: ReportFacts, cost: EstimateAnswer) -> Iterator[Figure]:
    found = _energies(cost)
    if not found or cost.network.energy is None:
        return
    unit = cost.network.energy.unit
    values = [{"of": name, "amount": amount} for name, amount in found.items()]
    devices = facts.devices
    colors = {**{one: device_color(one, devices) for one in devices}, "copies": "var(--warning)"}
    specification = bars(
        values,
        "of",
        "amount",
        f"estimated energy in {unit}",
        legend=Legend("of", colors, is_shown=False),
        row_height=26,
    )
    said = "; ".join(f"{name}: {two_digits(amount)} {unit}" for name, amount in found.items())
    yield chart("energy", "Energy of one inference", said, specification)


def _energy_table(cost: EstimateAnswer) -> Iterator[Block]:
    found, total = _energies(cost), cost.network.energy
    if total is None:
        yield Line("Energy is not estimated: nothing is published for this board and power mode, or for one device.")
        return
    rows = [(name, f"{two_digits(amount)} {total.unit}") for name, amount in found.items()]
    rows.append(("all", with_error(f"{two_digits(total.amount)} {total.unit}", cost.network.energy_error_factor)))
    yield Table("Energy of one inference (estimated)", ["of", "energy"], rows)
    drawn = [one.energy for one in (*cost.segments, *cost.transfers)]
    for source in dict.fromkeys(f"{one.basis}. Source: {one.source}." for one in drawn if one is not None):
        yield Line(source)
