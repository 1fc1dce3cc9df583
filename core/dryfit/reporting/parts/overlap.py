"""Several inferences at once: when each piece of them runs, by estimate, if devices and cores work at the same time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import attrs

from dryfit.answers.estimate import EstimateAnswer
from dryfit.answers.estimated_trace import COPIES
from dryfit.answers.trace import Slice
from dryfit.estimate_text import duration
from dryfit.reporting.facts import ReportFacts
from dryfit.reporting.figures import WIDTH, Figure, chart, device_color, time_unit

NARROWEST_NAMED = 0.03
"""Share of the time that a bar must take for its number to fit inside."""


@attrs.frozen
class Placed:
    """A piece of one of several inferences, on the core that is free first.

    Attributes:
        run: number of the inference.
        row: device, with the number of its core if it has several.
        piece: the segment or copy.
        begin, end: in nanoseconds.
    """

    run: int
    row: str
    piece: Slice
    begin: int
    end: int


def overlapped(pieces: Sequence[Slice], cores: Mapping[str, int], runs: int) -> list[Placed]:
    """Place the pieces of several inferences: each as soon as the one before it has ended and a core is free.

    As in the estimate of throughput, a copy takes the time of the device that copies.

    Args:
        pieces: segments and copies of one inference, in execution order.
        cores: number of cores by device; 1 for the others.
        runs: number of inferences.
    """
    free: dict[str, int] = {}
    ready, following = [0] * runs, [0] * runs
    placed: list[Placed] = []
    while any(index < len(pieces) for index in following):
        found: list[tuple[int, int, str]] = []
        for run, index in enumerate(following):
            if index < len(pieces):
                row = min(_rows_of(pieces[index], cores), key=lambda one: free.get(one, 0))
                found.append((max(ready[run], free.get(row, 0)), run, row))
        begin, run, row = min(found)
        piece = pieces[following[run]]
        end = begin + piece.end - piece.begin
        placed.append(Placed(run, row, piece, begin, end))
        free[row] = ready[run] = end
        following[run] += 1
    return placed


def _rows_of(piece: Slice, cores: Mapping[str, int]) -> list[str]:
    device = str(piece.facts["copied_by"]) if piece.track == COPIES else piece.track
    count = cores.get(device, 1)
    return [device] if count == 1 else [f"{device} core {index}" for index in range(count)]


def overlapped_runs(cost: EstimateAnswer, pieces: Sequence[Slice]) -> list[Placed]:
    """Return two inferences for each core of the device, at once.

    None if one device does all work, or if there are more pieces than could be told apart in a picture.
    """
    cores = {cost.device: len(cost.network.throughput)}
    runs = 2 * cores[cost.device]
    if len({row for one in pieces for row in _rows_of(one, cores)}) < 2 or len(pieces) * runs > MOST_PLACED:
        return []
    return overlapped(pieces, cores, runs)


def overlapped_figure(facts: ReportFacts, cost: EstimateAnswer, pieces: Sequence[Slice]) -> Iterator[Figure]:
    """Draw several inferences; nothing where there is nothing to tell apart."""
    placed = overlapped_runs(cost, pieces)
    if not placed:
        return
    runs = max(one.run for one in placed) + 1
    end = max(one.end for one in placed)
    unit, nanoseconds = time_unit(end)
    values = [
        {
            "row": one.row,
            "begin": one.begin / nanoseconds,
            "end": one.end / nanoseconds,
            "middle": (one.begin + one.end) / 2 / nanoseconds,
            "of": COPIES if one.piece.track == COPIES else one.piece.track,
            "run": str(one.run + 1) if one.end - one.begin >= NARROWEST_NAMED * end else "",
        }
        for one in placed
        if one.end > one.begin
    ]
    devices = facts.devices
    kinds = list(dict.fromkeys(str(one["of"]) for one in values))
    colors = {
        "domain": kinds,
        "range": ["var(--warning)" if kind == COPIES else device_color(kind, devices) for kind in kinds],
    }
    y = {"field": "row", "type": "nominal", "title": None, "sort": sorted({one.row for one in placed})}
    specification = {
        "width": WIDTH,
        "height": {"step": 32},
        "data": {"values": values},
        "layer": [
            {
                "mark": {"type": "bar", "stroke": "var(--background)", "strokeWidth": 0.5},
                "encoding": {
                    "y": y,
                    "x": {"field": "begin", "type": "quantitative", "title": f"estimated time in {unit}"},
                    "x2": {"field": "end"},
                    "color": {
                        "field": "of",
                        "type": "nominal",
                        "title": None,
                        "scale": colors,
                        "legend": {"orient": "top"},
                    },
                },
            },
            {
                "transform": [{"filter": "datum.run != ''"}],
                "mark": {"type": "text", "color": "var(--background)", "fontWeight": "bold"},
                "encoding": {
                    "y": y,
                    "x": {"field": "middle", "type": "quantitative"},
                    "text": {"field": "run", "type": "nominal"},
                },
            },
        ],
    }
    said = f"{runs} inferences that start together end after {duration(end / 1000)}, one alone after "
    said += f"{duration(max(one.end for one in pieces) / 1000)}."
    title = f"{runs} inferences at once, numbered, on all cores: each piece as soon as its device is free"
    yield chart("overlapped", title, said, specification)


MOST_PLACED = 400
"""Pieces up to which several inferences are drawn: more cannot be told apart."""
