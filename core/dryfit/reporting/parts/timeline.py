"""The timeline: when devices and copies work in one inference, by estimate, and how many inferences a second follow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dryfit.answers.estimate import EstimateAnswer
from dryfit.answers.estimated_trace import COPIES
from dryfit.answers.network_cost import SegmentCost
from dryfit.answers.text import Block, Line, Table, bytes_text, table_name
from dryfit.answers.trace import Slice
from dryfit.estimate_text import duration, rate_text
from dryfit.reporting.facts import ReportFacts
from dryfit.reporting.figures import WIDTH, Figure, Part, bars, chart, device_color, label, percent, time_unit
from dryfit.reporting.parts.overlap import NARROWEST_NAMED, overlapped_figure, overlapped_runs
from dryfit.short_text import count_text

ROW_HEIGHT = 44
NARROWEST_BAR = 0.004
"""Share below which a piece is a mark of constant width, as a bar could not be seen."""
ORDER = (
    "One inference as the latency estimate counts it: one thing at a time, each segment and copy when its inputs are "
    "there."
)


def part(facts: ReportFacts) -> Part | None:
    """The part about time; None if the model cannot be built."""
    cost = facts.estimate
    if cost is None:
        return None
    pieces = [one for one in cost.course.slices if one.category in ("segment", "copy")]
    figures: list[Figure] = []
    if cost.network.latency_microseconds is not None:
        figures = [_course(facts, cost, pieces), *overlapped_figure(facts, cost, pieces), *_rates(cost)]
    return Part(
        name="timeline",
        title="Timeline of one inference",
        finding=_finding(cost, pieces),
        figures=figures,
        blocks=[*_rate_table(cost), *_longest_segments(cost)],
        details=[*_all_segments(cost), *_copies(cost)],
        basis=f"{cost.note} {ORDER}",
        numbers=_numbers(cost, pieces),
    )


def _numbers(cost: EstimateAnswer, pieces: Sequence[Slice]) -> dict[str, Any]:
    """The time of each device and of copies, its share, and when several inferences end."""
    tracks = times_by_track(pieces)
    total = sum(tracks.values())
    found: dict[str, Any] = {
        "microseconds": {track: time / 1000 for track, time in tracks.items()},
        "share": {track: time / total for track, time in tracks.items() if total},
    }
    placed = overlapped_runs(cost, pieces)
    if placed:
        runs = max(one.run for one in placed) + 1
        found["overlapped"] = {"inferences": runs, "microseconds": max(one.end for one in placed) / 1000}
    return found


def times_by_track(pieces: Sequence[Slice]) -> dict[str, int]:
    """Return nanoseconds by device, and those of copies, the longest first."""
    found: dict[str, int] = {}
    for one in pieces:
        found[one.track] = found.get(one.track, 0) + one.end - one.begin
    return dict(sorted(found.items(), key=lambda entry: -entry[1]))


def _finding(cost: EstimateAnswer, pieces: Sequence[Slice]) -> str:
    network = cost.network
    if network.latency_microseconds is None:
        return f"No latency is estimated: the target of {' and '.join(network.without_time)} does not estimate time."
    tracks = times_by_track(pieces)
    total = sum(tracks.values()) or 1
    shares = ", ".join(f"{track} {percent(time / total)}" for track, time in tracks.items() if time)
    longest = max(pieces, key=lambda one: one.end - one.begin)
    name = f"{longest.name} on {longest.track}" if longest.category == "segment" else f"a copy ({label(longest.name)})"
    length = duration((longest.end - longest.begin) / 1000)
    return f"Estimated latency {network.latency_text}: {shares}. The longest piece is {name}, {length}."


def _course(facts: ReportFacts, cost: EstimateAnswer, pieces: Sequence[Slice]) -> Figure:
    end = max(one.end for one in pieces)
    unit, nanoseconds = time_unit(end)
    devices = facts.devices
    rows = [*dict.fromkeys(one.device for one in cost.segments), *([COPIES] if cost.transfers else [])]
    values = [
        {
            "row": one.track,
            "begin": one.begin / nanoseconds,
            "end": one.end / nanoseconds,
            "number": str(one.facts.get("segment", "")) if one.end - one.begin >= NARROWEST_NAMED * end else "",
            "middle": (one.begin + one.end) / 2 / nanoseconds,
            "narrow": one.end - one.begin < NARROWEST_BAR * end,
        }
        for one in pieces
    ]
    colors = {
        "domain": rows,
        "range": ["var(--warning)" if row == COPIES else device_color(row, devices) for row in rows],
    }
    y = {"field": "row", "type": "nominal", "title": None, "sort": rows}
    specification = {
        "width": WIDTH,
        "height": {"step": ROW_HEIGHT},
        "data": {"values": values},
        "layer": [
            {
                "transform": [{"filter": "datum.narrow"}],
                "mark": {"type": "tick", "thickness": 2, "height": ROW_HEIGHT - 6},
                "encoding": {
                    "y": y,
                    "x": {"field": "middle", "type": "quantitative"},
                    "color": {"field": "row", "type": "nominal", "legend": None, "scale": colors},
                },
            },
            {
                "transform": [{"filter": "!datum.narrow"}],
                "mark": {"type": "bar", "stroke": "var(--background)", "strokeWidth": 0.5},
                "encoding": {
                    "y": y,
                    "x": {"field": "begin", "type": "quantitative", "title": f"estimated time in {unit}"},
                    "x2": {"field": "end"},
                    "color": {"field": "row", "type": "nominal", "legend": None, "scale": colors},
                },
            },
            {
                "transform": [{"filter": "datum.number != ''"}],
                "mark": {"type": "text", "color": "var(--background)", "fontWeight": "bold"},
                "encoding": {
                    "y": y,
                    "x": {"field": "middle", "type": "quantitative"},
                    "text": {"field": "number", "type": "nominal"},
                },
            },
        ],
    }
    said = "; ".join(f"{track}: {duration(time / 1000)} in all" for track, time in times_by_track(pieces).items())
    return chart("course", "One inference: segments with their numbers, and copies", said, specification)


def _rates(cost: EstimateAnswer) -> Iterator[Figure]:
    values: list[dict[str, Any]] = [
        {"of": title, "rate": rate} for title, rate, _ in _throughputs(cost) if rate is not None
    ]
    if len(values) > 1:
        specification = bars(values, "of", "rate", "estimated images per second", row_height=26, longest_label=260)
        said = "; ".join(f"{title}: {text}" for title, _, text in _throughputs(cost))
        yield chart("throughput", f"Throughput at batch {cost.batch}", said, specification)


def _throughputs(cost: EstimateAnswer) -> Iterator[tuple[str, float | None, str]]:
    """(what works, images per second, the same in words)."""
    network, device = cost.network, cost.device
    if device in cost.devices:
        for one in network.throughput:
            rate, is_bound = one.images_per_second, device in network.lower_bounds
            yield (
                f"{count_text(one.cores, 'core')} of {device} alone",
                rate,
                rate_text(rate, network.busy_error_factor, is_upper_bound=is_bound),
            )
    if network.pipeline_images_per_second is not None:
        rate = network.pipeline_images_per_second
        text = rate_text(rate, network.latency_error_factor, is_upper_bound=bool(network.lower_bounds))
        yield "all devices and copies at once", rate, text


def _rate_table(cost: EstimateAnswer) -> Iterator[Block]:
    rows = [(title, text) for title, _, text in _throughputs(cost)]
    if rows:
        yield Table(f"Throughput at batch {cost.batch} (estimated)", ["what works", "throughput"], rows)


MOST_SEGMENTS = 20
"""Segments up to which the table has all in execution order; of more, it has the longest, and the details have all."""


def _longest_segments(cost: EstimateAnswer) -> Iterator[Block]:
    if len(cost.segments) <= MOST_SEGMENTS:
        yield _segments("Segments in execution order", cost.segments)
    else:
        longest = sorted(cost.segments, key=lambda one: -(one.microseconds or 0.0))
        yield _segments("Longest segments", longest[:MOST_SEGMENTS])


def _all_segments(cost: EstimateAnswer) -> Iterator[Block]:
    if len(cost.segments) > MOST_SEGMENTS:
        yield _segments("Segments in execution order", cost.segments)


def _segments(title: str, segments: Sequence[SegmentCost]) -> Table:
    rows = [
        (one.index, one.device, one.layer_count, f"{one.macs:,}", bytes_text(one.dram_bytes), one.text)
        for one in segments
    ]
    columns = ["segment", "device", "layers", "MACs", "DRAM", "estimated time"]
    return Table(title, columns, rows)


def _copies(cost: EstimateAnswer) -> Iterator[Block]:
    if cost.transfers:
        rows = [(table_name(one.tensor), one.sender, one.destination, one.copier, one.text) for one in cost.transfers]
        yield Table("Copies between devices", ["tensor", "from", "to", "copied by", "estimated time"], rows)
    for source in dict.fromkeys(f"{one.basis}. Source: {one.source}." for one in (*cost.segments, *cost.transfers)):
        yield Line(source)
