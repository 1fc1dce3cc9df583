"""Streams and events. Work runs when it is queued, in the caller's thread, so a stream never has work left.

Handles are integers that C code would take for pointers; a handle that does not exist is refused, since a program that
passes one would crash on a GPU. 0, 1 and 2 are CUDA's default streams.
"""

from __future__ import annotations

import itertools
import threading
import time
from typing import Any

from dryfit_tensorrt.cuda.results import CudaCallError

DEFAULT_STREAMS = (0, 1, 2)
"""Handles of the default stream: null, legacy and per thread."""

_lock = threading.Lock()
_handles = itertools.count(0x1000, 0x10)
_streams: set[int] = set()
_events: dict[int, float | None] = {}
"""Handle to the time at which the event was last recorded, in seconds; None before."""


def create_stream() -> int:
    """Return the handle of a new stream."""
    with _lock:
        handle = next(_handles)
        _streams.add(handle)
    return handle


def destroy_stream(stream: Any) -> None:
    """Destroy a stream."""
    handle = check_stream(stream)
    if handle in DEFAULT_STREAMS:
        raise _unknown("stream", handle)
    with _lock:
        _streams.discard(handle)


def check_stream(stream: Any) -> int:
    """Return the handle of a stream.

    Raises:
        CudaCallError: there is no such stream, or it was destroyed.
    """
    handle = 0 if stream is None else int(stream)
    if handle not in _streams and handle not in DEFAULT_STREAMS:
        raise _unknown("stream", handle)
    return handle


def create_event() -> int:
    """Return the handle of a new event."""
    with _lock:
        handle = next(_handles)
        _events[handle] = None
    return handle


def destroy_event(event: Any) -> None:
    """Destroy an event."""
    del _events[check_event(event)]


def check_event(event: Any) -> int:
    """Return the handle of an event.

    Raises:
        CudaCallError: there is no such event, or it was destroyed.
    """
    handle = int(event)
    if handle not in _events:
        raise _unknown("event", handle)
    return handle


def record_event(event: Any, stream: Any = 0) -> None:
    """Record an event: all work before it is done."""
    check_stream(stream)
    _events[check_event(event)] = time.perf_counter()


def elapsed_ms(start: Any, end: Any) -> float:
    """Return the time between two recorded events on this machine, in milliseconds.

    Raises:
        CudaCallError: an event does not exist, or was not recorded.
    """
    first, last = _events[check_event(start)], _events[check_event(end)]
    if first is None or last is None:
        which = "first" if first is None else "second"
        raise CudaCallError(
            400, f"The {which} event was not recorded", remedy="Record both events before the time is read"
        )
    return (last - first) * 1000


def _unknown(what: str, handle: int) -> CudaCallError:
    return CudaCallError(
        400,
        f"Unknown {what}",
        found=f"{handle:#x}",
        remedy=f"Pass a {what} that was created and is not destroyed" + (", or 0" if what == "stream" else ""),
    )
