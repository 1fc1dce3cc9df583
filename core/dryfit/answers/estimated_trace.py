"""The estimate of a network as a trace: segments with their steps, and copies, each when its inputs are there.

The order is that of the estimated latency: one thing at a time. A copy comes right before the first segment that reads
it, or last where the caller gets it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from dryfit.answers.network_cost import NetworkCost, SegmentCost, TransferCost
from dryfit.answers.trace import Slice, Trace
from dryfit.builder.design import Design

COPIES = "copies"
NOTE = (
    "Estimated, not measured: each segment, step and copy is as long as its target's formula says. They run one after "
    "the other, as in the estimated latency, and each begins when all of its inputs are there. Time of a segment that "
    "belongs to none of its steps comes first. A slice of 0 ns has no estimate. Reformats inside a device are part of "
    "the steps."
)


def estimated_trace(model: str, board: str, design: Design, cost: NetworkCost) -> Trace:
    """Return the trace of one inference.

    Args:
        model: name of the model.
        board: name of the device and its platform.
        design: decisions about the network.
        cost: estimates of its segments and copies.
    """
    trace = Trace(f"Estimated: {model} on {board}", {"model": model, "board": board, "times": NOTE})
    trace.name_tracks([*dict.fromkeys(one.device for one in cost.segments), COPIES])
    now, waiting = 0, list(cost.transfers)
    for segment in cost.segments:
        layers = [design.network.layer(name) for name in segment.layers]
        read = {tensor.name for layer in layers for tensor in layer.inputs if tensor is not None}
        needed = [one for one in waiting if one.tensor in read and one.destination == segment.device]
        waiting = [one for one in waiting if one not in needed]
        now = _add_copies(trace, now, needed, design)
        now = _add_segment(trace, now, segment, design)
    _add_copies(trace, now, waiting, design)
    return trace


def _add_copies(trace: Trace, now: int, copies: Sequence[TransferCost], design: Design) -> int:
    reformats = {
        (one.tensor, one.source.split()[0], one.destination.split()[0]): one for one in design.formats.reformats
    }
    for one in copies:
        end = now + _nanoseconds(one.microseconds)
        reformat = reformats[one.tensor, one.sender, one.destination]
        facts = {
            "bytes": reformat.size,
            "from": reformat.source,
            "to": reformat.destination,
            "copied_by": one.copier,
            "cause": reformat.cause,
            "estimate": one.text,
        }
        trace.add(Slice(COPIES, f"{one.tensor}: {one.sender} to {one.destination}", "copy", now, end, facts))
        now = end
    return now


def _add_segment(trace: Trace, now: int, segment: SegmentCost, design: Design) -> int:
    steps = () if segment.estimate is None else segment.estimate.steps
    lengths = [_nanoseconds(step.microseconds) for step in steps]
    length = max(_nanoseconds(segment.microseconds), sum(lengths))
    facts = {
        "segment": segment.index,
        "layers": segment.layer_count,
        "dram_bytes": segment.dram_bytes,
        "macs": segment.macs,
        "estimate": segment.text,
        "basis": segment.basis,
        "fidelity": segment.fidelity,
    }
    name = f"segment {segment.index}"
    trace.add(Slice(segment.device, name, "segment", now, now + length, facts))
    begin = now + length - sum(lengths)
    for step, own in zip(steps, lengths, strict=True):
        facts = {
            "layers": list(step.layers),
            "precision": _joined(design.precisions.layers[one].text for one in step.layers),
            "format": _formats(step.layers, design),
            "dram_bytes": step.bytes_moved,
            "macs": step.macs,
            "cycles": step.cycles,
            "bound_by": step.bound,
            "compute_us": step.compute_microseconds,
            "memory_us": step.memory_microseconds,
            "overhead_us": step.overhead_microseconds,
        }
        trace.add(Slice(segment.device, " + ".join(step.layers), "step", begin, begin + own, facts))
        begin += own
    return now + length


def _formats(layers: Collection[str], design: Design) -> str:
    """Return the formats of the tensors that layers leave for others."""
    forms = design.formats.forms
    left = [
        tensor.name
        for name in layers
        for tensor in design.network.layer(name).outputs
        if tensor.is_network_output or any(reader.name not in layers for reader, _ in tensor.consumers)
    ]
    return _joined(
        f"{forms[name].produced.dtype.text} {forms[name].produced.layout.name}" for name in left if name in forms
    )


def _joined(words: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(words))


def _nanoseconds(microseconds: float | None) -> int:
    return round(1000 * (microseconds or 0.0))
