"""The roofline of each device: the rates of the steps of an estimate, below the peak rates that the estimate uses."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

from dryfit.answers.estimate import EstimatedStep
from dryfit.estimate_text import two_digits
from dryfit.reporting.facts import ReportFacts
from dryfit.reporting.figures import WIDTH, Figure, Legend, chart, device_color
from dryfit.short_text import count_text


def roofline(facts: ReportFacts, steps: Sequence[EstimatedStep]) -> Iterator[Figure]:
    """The rate of each step over the multiply-accumulates per byte; roofs are the rates that the estimate uses."""
    shown = [one for one in steps if one.macs and one.bytes_moved and one.microseconds]
    if not shown:
        return
    devices = [one for one in facts.devices if any(step.device == one for step in shown)]
    values: list[dict[str, Any]] = [
        {
            "device": one.device,
            "intensity": one.macs / one.bytes_moved,
            "rate": one.macs / one.microseconds / 1000,
            "time": one.microseconds,
        }
        for one in shown
    ]
    low = min(one.macs / one.bytes_moved for one in shown) / 2
    high = 2 * max(one.macs / one.bytes_moved for one in shown)
    roofs: list[dict[str, Any]] = [
        {"device": device, "roof": f"{device} {index}", "intensity": intensity, "rate": rate / 1000}
        for device in devices
        for index, peak in enumerate(peaks([one for one in steps if one.device == device]))
        for intensity, rate in _corners(peak, memory_rate([one for one in steps if one.device == device]), low, high)
    ]
    rates = (min(one["rate"] for one in values), max(one["rate"] for one in (*values, *roofs)))
    x = {
        "field": "intensity",
        "type": "quantitative",
        "title": "multiply-accumulates per byte of DRAM",
        "scale": {"type": "log", "domain": [low, high], "nice": False},
        "axis": {"values": _powers(low, high), "format": ",~r"},
    }
    y = {
        "field": "rate",
        "type": "quantitative",
        "title": "10⁹ multiply-accumulates per second",
        "scale": {"type": "log", "domain": [rates[0] / 2, 2 * rates[1]], "nice": False},
        "axis": {"values": _powers(*rates), "format": ",~r"},
    }
    color = Legend("device", {one: device_color(one, facts.devices) for one in devices}).encoding
    specification = {
        "width": WIDTH,
        "height": 300,
        "layer": [
            {
                "data": {"values": roofs},
                "mark": {"type": "line", "strokeWidth": 2},
                "encoding": {
                    "x": x,
                    "y": y,
                    "color": color,
                    "detail": {"field": "roof", "type": "nominal"},
                },
            },
            {
                "data": {"values": values},
                "mark": {"type": "point", "filled": True, "opacity": 0.65},
                "encoding": {
                    "x": x,
                    "y": y,
                    "color": color,
                    "size": {
                        "field": "time",
                        "type": "quantitative",
                        "title": "estimated time in us",
                        "scale": {"range": [15, 250]},
                        "legend": {"orient": "top", "values": _legend_times(shown), **_SYMBOLS},
                    },
                },
            },
        ],
    }
    said = (
        f"{count_text(len(shown), 'step')} with multiply-accumulates. "
        + "; ".join(
            f"{device}: at most {two_digits(max(found) / 1000)} x 10^9 multiply-accumulates per second"
            for device in devices
            if (found := peaks([one for one in steps if one.device == device]))
        )
        + ". Steps lie far below the roof where padding or overhead takes the time."
    )
    yield chart("roofline", "Roofline: steps below the peak rates of the estimate", said, specification)


_SYMBOLS = {"symbolFillColor": "var(--muted)", "symbolStrokeColor": "var(--muted)"}


def _powers(low: float, high: float) -> list[float]:
    """Powers of ten from below one number to above another."""
    return [10.0**power for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]


def _legend_times(steps: Sequence[EstimatedStep]) -> list[float]:
    longest = max(one.microseconds for one in steps)
    power = 10.0 ** math.floor(math.log10(longest))
    return [power / 10, power]


def peaks(steps: Sequence[EstimatedStep]) -> list[float]:
    """Return the peak rates that an estimate uses, one per computation type, in multiply-accumulates per microsecond.

    They are those of steps with the padding that the device multiplies too.
    """
    rates: list[float] = []
    # Cycles are whole numbers, but times are exact: rates of one type agree but for rounding.
    counted = ((one.padded_macs or one.macs, one.compute_microseconds) for one in steps)
    for rate in sorted((macs / time for macs, time in counted if macs and time), reverse=True):
        if not rates or rate < 0.99 * rates[-1]:
            rates.append(rate)
    return rates


def memory_rate(steps: Sequence[EstimatedStep]) -> float | None:
    """Return the bytes per microsecond that an estimate uses; None if no step moves bytes."""
    rates = (one.bytes_moved / one.memory_microseconds for one in steps if one.memory_microseconds)
    return max(rates, default=None)


def _corners(peak: float, rate: float | None, low: float, high: float) -> Iterator[tuple[float, float]]:
    """(intensity, multiply-accumulates per microsecond) at the ends and the ridge of a roof."""
    if rate is None or peak / rate <= low:
        yield from ((low, peak), (high, peak))
    else:
        ridge = min(peak / rate, high)
        points = [(low, low * rate), (ridge, ridge * rate), (high, min(peak, high * rate))]
        yield from (one for one, _ in itertools.groupby(points))
