"""Traces in the form of Chrome's trace events, which Perfetto and `chrome://tracing` open.

A trace is a JSON object: `traceEvents` has complete events (phase X) with begin and duration in microseconds, and
metadata events (phase M), which name the process and the tracks; `otherData` says what the times are. Tracks are
threads of one process. On a track, slices must nest or follow each other: Perfetto drops one that overlaps another in
part. Times are kept as whole nanoseconds, so that an inner slice never ends after the outer one by rounding.

Source: Trace Event Format (Chromium); Perfetto FAQ on overlapping events in JSON traces.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from dryfit.atomic_file import write_atomically
from dryfit.attrs_classes import frozen
from dryfit.errors import ConfigError
from dryfit.version import __version__

_PROCESS = 1
_LARGEST_NAME = 200
"""Characters of a slice's name; the whole name of a group of many layers is in its arguments."""


@frozen
class Slice:
    """A stretch of time on a track.

    Attributes:
        track: name of the track.
        name: what happens.
        category: kind of the slice: run, segment, layer, step or copy.
        begin, end: in nanoseconds since the beginning of the trace.
        facts: arguments that viewers show for the slice.
    """

    track: str
    name: str
    category: str
    begin: int
    end: int
    facts: Mapping[str, Any] = attrs.field(factory=dict)


class Trace:
    """Slices on named tracks.

    Args:
        process: name of the process, which says whose times these are.
        facts: what is said about the whole trace.

    Example:
        >>> trace = Trace("Estimate for agx-orin-64", {"times": "estimated"})
        >>> trace.add(Slice("DLA", "segment 0", "segment", 0, 1500))
        >>> trace.to_dict()["traceEvents"][-1]["dur"]
        1.5
    """

    def __init__(self, process: str, facts: Mapping[str, Any]) -> None:
        self._process = process
        self._facts = facts
        self._tracks: dict[str, int] = {}
        self.slices: list[Slice] = []

    def name_tracks(self, names: Sequence[str]) -> None:
        """Set the order of tracks; others follow in the order of their first slice."""
        for name in names:
            # A track with the number of the process would be its main thread.
            self._tracks.setdefault(name, len(self._tracks) + _PROCESS + 1)

    def add(self, one: Slice) -> None:
        """Add a slice. It must not overlap another of its track in part."""
        self.name_tracks([one.track])
        self.slices.append(one)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {
            "traceEvents": [*self._names(), *map(self._event, self._in_order())],
            "displayTimeUnit": "ms",
            "otherData": {"producer": f"dryfit {__version__}", **self._facts},
        }

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the trace as JSON, whole or not at all.

        Raises:
            ConfigError: The file cannot be written.
        """
        text = json.dumps(self.to_dict(), separators=(",", ":"), allow_nan=False)
        try:
            write_atomically(path, [text.encode()])
        except OSError as error:
            raise ConfigError(
                "The trace cannot be written",
                where=f"--trace {os.fspath(path)}",
                found=error.strerror or str(error),
                remedy="Check the folder and its permissions",
            ) from error

    def _in_order(self) -> list[Slice]:
        """Return outer slices before the inner ones that begin with them."""
        return sorted(self.slices, key=lambda one: (one.begin, -one.end))

    def _names(self) -> Iterator[dict[str, Any]]:
        yield self._metadata("process_name", 0, {"name": self._process})
        for name, number in self._tracks.items():
            yield self._metadata("thread_name", number, {"name": name})
            yield self._metadata("thread_sort_index", number, {"sort_index": number})

    def _metadata(self, name: str, track: int, facts: Mapping[str, Any]) -> dict[str, Any]:
        return {"ph": "M", "name": name, "pid": _PROCESS, "tid": track, "ts": 0, "args": facts}

    def _event(self, one: Slice) -> dict[str, Any]:
        is_long = len(one.name) > _LARGEST_NAME
        return {
            "ph": "X",
            "name": f"{one.name[: _LARGEST_NAME - 3]}..." if is_long else one.name,
            "cat": one.category,
            "pid": _PROCESS,
            "tid": self._tracks[one.track],
            "ts": one.begin / 1000,
            "dur": (one.end - one.begin) / 1000,
            "args": {**({"name": one.name} if is_long else {}), **one.facts},
        }
