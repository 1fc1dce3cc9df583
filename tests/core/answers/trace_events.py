"""Traces as a viewer reads them, by the rules of the format: tracks by name, and slices that nest."""

from __future__ import annotations

import json
from collections import defaultdict
from fractions import Fraction
from pathlib import Path
from typing import Any


def read_trace(path: Path) -> tuple[dict[str, list[dict[str, Any]]], dict[str, Any]]:
    """Track name to its slices in order, each with its `depth`; and what is said of the whole trace.

    Fails where a trace breaks a rule: an unknown phase, a missing field, a track without a name, or slices that overlap
    in part. Times are compared as the decimal numbers of the file.
    """
    document = json.loads(path.read_text(encoding="utf-8"), parse_float=Fraction)
    assert set(document) == {"traceEvents", "displayTimeUnit", "otherData"}
    assert document["displayTimeUnit"] in ("ms", "ns")
    names: dict[tuple[int, int], str] = {}
    slices: dict[tuple[int, int], list[dict[str, Any]]] = defaultdict(list)
    processes = []
    for event in document["traceEvents"]:
        track = event["pid"], event["tid"]
        assert isinstance(event["args"], dict)
        if event["ph"] == "M":
            assert event["name"] in ("process_name", "thread_name", "thread_sort_index")
            if event["name"] == "thread_name":
                assert names.setdefault(track, event["args"]["name"]) == event["args"]["name"]
            if event["name"] == "process_name":
                processes.append(event["args"]["name"])
            continue
        assert event["ph"] == "X"
        assert event["name"]
        assert event["cat"]
        assert event["ts"] >= 0
        assert event["dur"] >= 0
        slices[track].append(event)
    assert len(processes) == 1
    assert slices.keys() <= names.keys()
    for events in slices.values():
        _nest(events)
    return {name: slices[track] for track, name in names.items()}, document["otherData"]


def _nest(events: list[dict[str, Any]]) -> None:
    """Give each slice its depth."""
    open_ends: list[Fraction] = []
    assert [event["ts"] for event in events] == sorted(event["ts"] for event in events)
    for event in events:
        begin, end = Fraction(event["ts"]), Fraction(event["ts"]) + Fraction(event["dur"])
        while open_ends and open_ends[-1] <= begin and end > open_ends[-1]:
            open_ends.pop()
        assert not open_ends or end <= open_ends[-1], f"{event['name']} overlaps another slice in part"
        event["depth"] = len(open_ends)
        open_ends.append(end)
