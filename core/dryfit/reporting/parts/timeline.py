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
from dryfit.reporting.figures import Figure, Part, bars, chart, label, percent
from dryfit.reporting.parts.overlap import Bar, in_flight, over_time, overlapped_figure, overlapped_runs, piece_colors
from dryfit.short_text import count_text

ROW_HEIGHT = 44
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
        blocks=[*_rate_table(cost), *_flight_table(cost, pieces), *_longest_segments(cost)],
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
    if cost.network.latency_microseconds is not None:
        found["in_flight"] = in_flight(cost, pieces)
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
    rows = [*dict.fromkeys(one.device for one in cost.segments), *([COPIES] if cost.transfers else [])]
    bars = [Bar(one.track, one.track, str(one.facts.get("segment", "")), one.begin, one.end) for one in pieces]
    specification = over_time(bars, rows, piece_colors(facts, rows), end, ROW_HEIGHT, has_legend=False)
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


def _flight_table(cost: EstimateAnswer, pieces: Sequence[Slice]) -> Iterator[Block]:
    """What several batches in flight give, if segments and copies of different batches overlap."""
    if cost.network.latency_microseconds is None:
        return
    error, bounds = cost.network.latency_error_factor, cost.network.lower_bounds
    rows = [
        (
            one.batches,
            duration(one.microseconds),
            rate_text(one.images_per_second, error, is_upper_bound=bool(bounds)),
            f"{one.busiest} ({percent(one.busy_share)})",
        )
        for one in in_flight(cost, pieces)
    ]
    if len(rows) > 1:
        title = f"Batches of {cost.batch} in flight, which start together on all cores (estimated)"
        yield Table(title, ["batches", "all end after", "throughput", "works most, share of the time"], rows)


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
