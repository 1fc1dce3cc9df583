"""Plugins watch the runs of an execution context."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from dryfit.network.tensor import Shape
from dryfit.plugins.contributions import RunObserver


@contextmanager
def watched_run(
    observer: RunObserver, input_shapes: Mapping[str, Shape], layer_seconds: Mapping[str, float]
) -> Iterator[None]:
    """Tell an observer of one run, which happens inside; also of the end of one that raises.

    Args:
        observer: of the facade, which knows who wants the times of layers.
        input_shapes: input name to shape.
        layer_seconds: engine layer to the seconds that it took, filled by the run; empty where layers are not timed.
    """
    observer.run_started(dict(input_shapes))
    started = time.perf_counter()
    try:
        yield
    finally:
        milliseconds = (time.perf_counter() - started) * 1e3
        for layer, seconds in layer_seconds.items():
            observer.layer_finished(layer, seconds * 1e3)
        observer.run_finished(milliseconds)
