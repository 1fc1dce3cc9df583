"""Runs of an engine on this machine as a trace: runs, the segments of each device, their layers, and copies.

The times are those of this machine's CPU, which emulates the devices. All devices share it, so that nothing overlaps.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from dryfit.answers.trace import Slice, Trace
from dryfit.attrs_classes import frozen
from dryfit.engine.execution_context import ExecutionContext
from dryfit.engine.plan import Operation, Plan
from dryfit.engine.profiler import LayerSpan, LayerSpans
from dryfit.engine.segment_program import operation_group

RUNS = "runs"
COPIES = "copies and reformats"
NOTE = (
    "Measured on this host, whose CPU emulates the devices: the times do not indicate the speed of a device. While a "
    "trace is taken, layers run one by one, which takes longer than without. A layer uses all of the host threads."
)
_NO_SEGMENT = -1


class RunTrace:
    """What is recorded while an engine runs. Assign `spans` to the context's profiler.

    Attributes:
        spans: when each layer ran.
    """

    def __init__(self) -> None:
        self.spans = LayerSpans()
        self._runs: list[_Run] = []
        self._began = 0.0

    def begin_each(self, feeds: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
        """Return the inputs of each run, which begins when it takes them."""
        for feed in feeds:
            self._began = time.perf_counter()
            yield feed

    def end_run(self) -> None:
        """Record that the run has ended."""
        first = self._runs[-1].last if self._runs else 0
        self._runs.append(_Run(self._began, time.perf_counter(), first, len(self.spans.spans)))

    def trace(self, model: str, context: ExecutionContext) -> Trace:
        """Return the trace."""
        plan, threads = context.engine.plan, context.num_threads
        facts = {"model": model, "times": NOTE, "host_threads": threads}
        trace = Trace(f"Measured on this host: {model}", facts)
        trace.name_tracks([RUNS, *dict.fromkeys(_track(one) for one in plan.operations if not _is_copy(one)), COPIES])
        origin = self._runs[0].begin if self._runs else 0.0
        described = {one.name: (one, _facts(plan, one)) for one in plan.operations}
        for number, run in enumerate(self._runs):
            begin, end = _since(origin, run.begin), _since(origin, run.end)
            trace.add(Slice(RUNS, f"run {number}", "run", begin, end, {"run": number}))
            own = self.spans.spans[run.first : run.last]
            for _, group in itertools.groupby(own, key=lambda span: _place(described[span.layer][0])):
                _add_layers(trace, origin, [(span, *described[span.layer]) for span in group])
        return trace


@frozen
class _Run:
    """A run: begin and end in seconds, and the range of its spans."""

    begin: float
    end: float
    first: int
    last: int


def _add_layers(trace: Trace, origin: float, layers: Sequence[tuple[LayerSpan, Operation, Mapping[str, Any]]]) -> None:
    """Add layers that ran one after the other in the same segment, inside a slice for the segment if there is one."""
    _, operation, _ = layers[0]
    if operation.segment != _NO_SEGMENT:
        begin, end = _since(origin, layers[0][0].begin), _since(origin, layers[-1][0].end)
        facts = {"segment": operation.segment, "device": operation.device, "layers": len(layers)}
        trace.add(Slice(_track(operation), f"segment {operation.segment}", "segment", begin, end, facts))
    for span, one, own in layers:
        kind = "copy" if _is_copy(one) else "layer"
        trace.add(Slice(_track(one), span.layer, kind, _since(origin, span.begin), _since(origin, span.end), own))


def _place(operation: Operation) -> tuple[str, int]:
    return _track(operation), operation.segment


def _track(operation: Operation) -> str:
    return COPIES if _is_copy(operation) else operation.device


def _is_copy(operation: Operation) -> bool:
    """Return whether the operation is a reformat at a border, which none of the user's layers became."""
    return operation.segment == _NO_SEGMENT and not operation.source_layers


def _facts(plan: Plan, operation: Operation) -> dict[str, Any]:
    layers = {name: plan.network.layer(name) for name in operation.layers}
    group = operation_group(operation, layers)
    places = plan.placements
    read = [places[tensor.name] for tensor in group.inputs if tensor.name in places]
    written = [places[tensor.name] for tensor in group.outputs if tensor.name in places]
    return {
        "device": operation.device,
        "segment": operation.segment,
        "precision": operation.precision.text,
        "format": ", ".join(dict.fromkeys(one.format for one in written)),
        "bytes_read": sum(one.size for one in read),
        "bytes_written": sum(one.size for one in written),
        "kernel": operation.kernel,
        "layers": list(operation.source_layers),
        "onnx_nodes": list(operation.onnx_nodes),
    }


def _since(origin: float, moment: float) -> int:
    return max(0, round(1e9 * (moment - origin)))
