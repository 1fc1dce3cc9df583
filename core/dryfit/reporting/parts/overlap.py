"""Several inferences at once: when each piece of them runs, by estimate, if devices and cores work at the same time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dryfit.answers.estimate import EstimateAnswer
from dryfit.answers.estimated_trace import COPIES
from dryfit.answers.trace import Slice
from dryfit.attrs_classes import frozen
from dryfit.estimate_text import duration
from dryfit.reporting.facts import ReportFacts
from dryfit.reporting.figures import WIDTH, Figure, Legend, chart, device_color, time_unit

NARROWEST_NAMED = 0.03
"""Share of the time that a bar must take for its number to fit inside."""


@frozen
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


@frozen
class InFlight:
    """Several batches that start together.

    Attributes:
        batches: number of batches.
        microseconds: time until the last one ends.
        images_per_second: images of all batches in that time.
        busiest: row of the device that works most.
        busy_share: share of the time in which it works.
    """

    batches: int
    microseconds: float
    images_per_second: float
    busiest: str
    busy_share: float


def in_flight(cost: EstimateAnswer, pieces: Sequence[Slice]) -> list[InFlight]:
    """Return what several batches in flight give: one, and then twice as many up to eight for each core."""
    cores = {cost.device: len(cost.network.throughput)}
    found = []
    batches = 1
    while pieces and batches <= MOST_BATCHES * cores[cost.device] and len(pieces) * batches <= MOST_PLACED:
        placed = overlapped(pieces, cores, batches)
        end = max(one.end for one in placed)
        busy: dict[str, int] = {}
        for one in placed:
            busy[one.row] = busy.get(one.row, 0) + one.end - one.begin
        row = max(busy, key=lambda name: busy[name])
        if not end:
            break
        found.append(InFlight(batches, end / 1000, batches * cost.batch * 1e9 / end, row, busy[row] / end))
        batches *= 2
    return found


MOST_BATCHES = 8
"""Batches in flight for each core up to which the timeline says what they give. Our choice."""


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
    bars = [
        Bar(one.row, one.piece.track, str(one.run + 1), one.begin, one.end) for one in placed if one.end > one.begin
    ]
    kinds = list(dict.fromkeys(one.kind for one in bars))
    rows = sorted({one.row for one in placed})
    specification = over_time(bars, rows, piece_colors(facts, kinds), end, ROW_HEIGHT)
    of = "inferences" if cost.batch == 1 else f"batches of {cost.batch}"
    said = f"{runs} {of} that start together end after {duration(end / 1000)}, one alone after "
    said += f"{duration(max(one.end for one in pieces) / 1000)}."
    numbered = ", numbered" if any(one.is_named(end) for one in bars) else ""
    title = f"{runs} {of} in flight{numbered}, on all cores: each piece as soon as its device is free"
    yield chart("overlapped", title, said, specification)


ROW_HEIGHT = 32
"""Pixels of a row of several inferences."""


# Drawing --------------------------------------------------------------------------------------------------------------


@frozen
class Bar:
    """A piece of work in a picture.

    Attributes:
        row: row in which it is drawn.
        kind: the device, or copies: what its color means.
        name: what is written in it where there is room.
        begin, end: in nanoseconds.
    """

    row: str
    kind: str
    name: str
    begin: int
    end: int

    def is_named(self, whole: int) -> bool:
        """Whether there is room for the name in a picture of this many nanoseconds."""
        return bool(self.name) and self.end - self.begin >= NARROWEST_NAMED * whole


def piece_colors(facts: ReportFacts, kinds: Sequence[str]) -> dict[str, str]:
    """Return the colors of devices and copies."""
    return {kind: "var(--warning)" if kind == COPIES else device_color(kind, facts.devices) for kind in kinds}


def over_time(
    bars: Sequence[Bar],
    rows: Sequence[str],
    colors: Mapping[str, str],
    end: int,
    row_height: int,
    *,
    has_legend: bool = True,
) -> dict[str, Any]:
    """Return the specification of a picture of work over time; pieces too narrow for a bar are marks of one width.

    Args:
        bars: the pieces.
        rows: names of the rows, from the top.
        colors: color by kind.
        end: nanoseconds until the end of the picture.
        row_height: pixels of a row.
        has_legend: whether the picture says what the colors mean.
    """
    unit, nanoseconds = time_unit(end)
    values = [
        {
            "row": one.row,
            "kind": one.kind,
            "begin": one.begin / nanoseconds,
            "end": one.end / nanoseconds,
            "middle": (one.begin + one.end) / 2 / nanoseconds,
            "narrow": one.end - one.begin < NARROWEST_BAR * end,
            "name": one.name if one.is_named(end) else "",
        }
        for one in bars
    ]
    y = {"field": "row", "type": "nominal", "title": None, "sort": list(rows)}
    color = Legend("kind", colors, is_shown=has_legend).encoding
    middle = {"field": "middle", "type": "quantitative"}
    return {
        "width": WIDTH,
        "height": {"step": row_height},
        "data": {"values": values},
        "layer": [
            {
                "transform": [{"filter": "datum.narrow"}],
                "mark": {"type": "tick", "thickness": 2, "height": row_height - 6},
                "encoding": {"y": y, "x": middle, "color": color},
            },
            {
                "transform": [{"filter": "!datum.narrow"}],
                "mark": {"type": "bar", "stroke": "var(--background)", "strokeWidth": 0.5},
                "encoding": {
                    "y": y,
                    "x": {"field": "begin", "type": "quantitative", "title": f"estimated time in {unit}"},
                    "x2": {"field": "end"},
                    "color": color,
                },
            },
            {
                "transform": [{"filter": "datum.name != ''"}],
                "mark": {"type": "text", "color": "var(--background)", "fontWeight": "bold"},
                "encoding": {"y": y, "x": middle, "text": {"field": "name", "type": "nominal"}},
            },
        ],
    }


NARROWEST_BAR = 0.004
"""Share of the time below which a piece is a mark of constant width, as a bar could not be seen."""

MOST_PLACED = 400
"""Pieces up to which several inferences are drawn: more cannot be told apart."""
