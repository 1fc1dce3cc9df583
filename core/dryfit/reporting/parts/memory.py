"""Memory: what each segment needs of its memory pools against their limits, and what is live while the network runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dryfit.answers.memory_use import CALLER, LiveTensors, MemoryUse, PoolUse
from dryfit.answers.text import Block, Table, bytes_text
from dryfit.reporting.facts import ReportFacts
from dryfit.reporting.figures import WIDTH, Figure, Part, chart, color_scale, device_color, label, percent
from dryfit.short_text import count_text

MIB = 1 << 20
BASIS = "Nothing was built: needs are those of the memory plan that a build makes on this machine."


def part(facts: ReportFacts) -> Part | None:
    """The part about memory; None if nothing is known about it."""
    memory = facts.memory
    if not memory.pools and not memory.live:
        return None
    figures = [*([_pools(facts)] if memory.pools else []), *([_live(facts)] if memory.live else [])]
    return Part(
        name="memory",
        title="Memory",
        finding=" ".join([_fit(facts), *_peak(memory)]),
        figures=figures,
        blocks=[*_rejected(facts), *_pool_table(memory), *_live_table(memory)],
        basis=BASIS,
        numbers={
            "share_of_limit": [
                {"segment": one.segment, "pool": one.pool, "share": one.needed_bytes / one.limit_bytes}
                for one in memory.pools
                if one.limit_bytes
            ],
            "live_bytes": max(_live_in_all(memory), default=0),
            "peak_bytes": {_pool_name(one): one.peak_bytes for one in memory.live},
            "peak_steps": {_pool_name(one): one.live_bytes.index(one.peak_bytes) for one in memory.live},
        },
    )


def fullest(pools: Sequence[PoolUse]) -> PoolUse | None:
    """Return the need that fills its pool the most; caches, which are meant to be full, do not count."""
    limited = [one for one in pools if one.limit_bytes and one.needed_bytes and one.holds != "cache"]
    return max(limited, key=lambda one: one.needed_bytes / (one.limit_bytes or 1), default=None)


def _fit(facts: ReportFacts) -> str:
    lost = sum(bool(segment.shortages) for one in facts.check.offloading for segment in one.rejected)
    found = fullest(facts.memory.pools)
    if lost:
        moved = "1 segment does" if lost == 1 else f"{lost} segments do"
        return f"{moved} not fit the memory pools of the device."
    if found is None or found.limit_bytes is None:
        is_limited = any(one.limit_bytes is not None for one in facts.memory.pools)
        return "All segments fit their memory pools." if is_limited else "No device limits the memory of a segment."
    need, limit = bytes_text(found.needed_bytes), bytes_text(found.limit_bytes)
    return (
        f"All segments fit their memory pools: the fullest is {found.pool} of segment {found.segment}, "
        f"{need} of {limit} ({_share(found.needed_bytes, found.limit_bytes)})."
    )


def _share(part_bytes: int, whole_bytes: int) -> str:
    return percent(part_bytes / whole_bytes, 1)


def _peak(memory: MemoryUse) -> Iterator[str]:
    totals = _live_in_all(memory)
    if totals and memory.steps:
        step = totals.index(max(totals))
        where = f"at step {step} ({label(memory.steps[step].layers[0])})"
        yield f"At most {bytes_text(totals[step])} of tensors besides inputs and outputs are live at once, {where}."


def _live_in_all(memory: MemoryUse) -> list[int]:
    """Bytes that are live at each step in all pools, without the caller's."""
    own = [one for one in memory.live if one.pool != CALLER]
    return [sum(sizes) for sizes in zip(*(one.live_bytes for one in own), strict=True)]


# Pools ----------------------------------------------------------------------------------------------------------------


def _pools(facts: ReportFacts) -> Figure:
    uses = facts.memory.pools
    needs = [
        {"pool": one.pool, "device": one.device, "needed": one.needed_bytes / MIB} for one in uses if one.needed_bytes
    ]
    found = {(one.pool, one.limit_bytes) for one in uses if one.limit_bytes is not None}
    limits = [{"pool": pool, "limit": limit / MIB} for pool, limit in sorted(found)]
    scale = {"type": "log", "base": 2, "nice": False, "padding": 12}
    y = {"field": "pool", "type": "nominal", "title": None, "sort": None}
    x = {"type": "quantitative", "title": "MiB, logarithmic", "scale": scale, "axis": {"tickCount": 6, "format": "~r"}}
    specification = {
        "width": WIDTH,
        "height": {"step": 32},
        "layer": [
            {
                "data": {"values": needs},
                "mark": {"type": "point", "filled": True, "size": 110, "opacity": 0.7},
                "encoding": {
                    "y": y,
                    "x": {**x, "field": "needed"},
                    "color": {
                        "field": "device",
                        "type": "nominal",
                        "legend": None,
                        "scale": color_scale(facts.devices),
                    },
                },
            },
            {
                "data": {"values": limits},
                "mark": {"type": "tick", "color": "var(--unplaced)", "thickness": 3, "height": 24},
                "encoding": {"y": y, "x": {**x, "field": "limit"}},
            },
        ],
    }
    said = "; ".join(f"segment {one.segment}, {one.pool}: {bytes_text(one.needed_bytes)}" for one in uses)
    return chart("pools", "What each segment needs of its pools (dots), and the limits (red)", said, specification)


def _pool_table(memory: MemoryUse) -> Iterator[Block]:
    rows = [
        (
            one.segment,
            one.device,
            one.pool,
            one.holds,
            bytes_text(one.needed_bytes),
            "-" if one.limit_bytes is None else bytes_text(one.limit_bytes),
            _share(one.needed_bytes, one.limit_bytes) if one.limit_bytes else "-",
        )
        for one in memory.pools
    ]
    if rows:
        columns = ["segment", "device", "pool", "holds", "needed", "limit", "filled"]
        yield Table("Memory pools of the segments", columns, rows)


def _rejected(facts: ReportFacts) -> Iterator[Block]:
    rows = [
        (
            one.device,
            count_text(len(lost.layers), "layer"),
            lost.cause,
            "; ".join(f"{s.pool}: {bytes_text(s.needed)} of {bytes_text(s.limit)}" for s in lost.shortages) or "-",
            lost.fallback_device or "-",
        )
        for one in facts.check.offloading
        for lost in one.rejected
    ]
    if rows:
        columns = ["device", "layers", "cause", "needed of limit", "moved to"]
        yield Table("Segments that could not stay on their device", columns, rows)


# Live tensors ---------------------------------------------------------------------------------------------------------


def _live(facts: ReportFacts) -> Figure:
    memory = facts.memory
    pools = sorted(memory.live, key=lambda one: one.pool == CALLER)
    names = [_pool_name(one) for one in pools]
    values = [
        {"step": step, "pool": name, "size": size / MIB}
        for name, one in zip(names, pools, strict=True)
        for step, size in _corners(one.live_bytes)
    ]
    devices = facts.devices
    colors = ["var(--muted)" if one.pool == CALLER else device_color(one.device, devices) for one in pools]
    x = {"field": "step", "type": "quantitative", "title": None, "scale": {"domain": [0, len(memory.steps)]}}
    area = {
        "width": WIDTH,
        "height": 70,
        "mark": {"type": "area", "interpolate": "step-after", "line": False},
        "encoding": {
            "x": {**x, "axis": {"labels": False, "ticks": False}},
            "y": {"field": "size", "type": "quantitative", "title": "MiB", "axis": {"tickCount": 3}},
            "color": {
                "field": "pool",
                "type": "nominal",
                "legend": None,
                "scale": {"domain": names, "range": colors},
            },
        },
    }
    areas = [
        {
            **area,
            "title": {"text": name, **_TITLE},
            "transform": [{"filter": {"field": "pool", "equal": name}}],
        }
        for name in names
    ]
    specification = {
        "data": {"values": values},
        "vconcat": [*areas, _strip(facts, x)],
        "spacing": 6,
        "resolve": {"scale": {"color": "independent", "y": "shared"}},
    }
    said = "; ".join(f"{_pool_name(one)}: at most {bytes_text(one.peak_bytes)}" for one in memory.live)
    return chart("live", "Live tensors by pool, over the steps of an inference", said, specification)


_TITLE = {"anchor": "start", "frame": "group", "fontSize": 12, "fontWeight": "normal", "color": "var(--text)"}


def _strip(facts: ReportFacts, x: Mapping[str, object]) -> dict[str, object]:
    """A strip that shows which device runs each step."""
    runs: list[dict[str, object]] = []
    for step, one in enumerate(facts.memory.steps):
        if runs and runs[-1]["device"] == one.device:
            runs[-1]["end"] = step + 1
        else:
            runs.append({"device": one.device, "begin": step, "end": step + 1, "row": "device"})
    return {
        "width": WIDTH,
        "height": 14,
        "data": {"values": runs},
        "mark": "bar",
        "encoding": {
            "x": {**x, "field": "begin", "title": "step"},
            "x2": {"field": "end"},
            "y": {"field": "row", "type": "nominal", "title": None, "axis": None},
            "color": {
                "field": "device",
                "type": "nominal",
                "title": None,
                "scale": color_scale(facts.devices),
                "legend": {"orient": "bottom"},
            },
        },
    }


def _pool_name(one: LiveTensors) -> str:
    """The pool's name with that of its device, which most pools' names have already."""
    return one.pool if one.pool.startswith(one.device) else f"{one.device} {one.pool}"


def _corners(sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """(step, size) wherever the size changes, and at the end."""
    for step, size in enumerate(sizes):
        if not step or size != sizes[step - 1]:
            yield step, size
    if sizes:
        yield len(sizes), sizes[-1]


def _live_table(memory: MemoryUse) -> Iterator[Block]:
    rows = []
    for one in memory.live:
        step = one.live_bytes.index(one.peak_bytes)
        layers = label(memory.steps[step].layers[0])
        rows.append((one.device or "caller", one.pool, bytes_text(one.peak_bytes), step, layers))
    if rows:
        yield Table("Largest sum of live tensors", ["device", "pool", "bytes", "at step", "with layer"], rows)
