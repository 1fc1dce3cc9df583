"""Estimate the cost of a network on a board, layer by layer: `dryfit.estimate` and `dryfit estimate`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Unpack

import attrs

from dryfit.answers.asked import Model, asked, quiet_log
from dryfit.answers.defaults import with_scales
from dryfit.answers.estimated_trace import estimated_trace
from dryfit.answers.json_data import Amount, Count, hidden
from dryfit.answers.network_cost import NetworkCost, SegmentCost, TotalEnergy, TransferCost, network_cost
from dryfit.answers.options import Options, Sparsity
from dryfit.answers.placement_text import defaults_line
from dryfit.answers.text import Answer, Block, Entries, Line, Table, bytes_text, device_text, table_name
from dryfit.answers.trace import Trace
from dryfit.attrs_classes import frozen
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.refusals import require_places
from dryfit.estimate_text import duration, rate_text, time_text, two_digits, with_error
from dryfit.json_names import json_names
from dryfit.short_text import count_text
from dryfit.target.cost import StepCost

NOTE = "All times, rates and energies are estimates by formula; nothing was measured."


@frozen(kw_only=True)
class EstimatedStep(StepCost):
    """Layers that a device runs as one step.

    Attributes:
        segment: index of the segment that contains the step.
        device: device that runs the step.
    """

    JSON_NAMES: ClassVar[Mapping[str, str]] = json_names(
        "segment device layers macs cycles:mac_cycles bytes_moved:dram_bytes compute_microseconds "
        "memory_microseconds overhead_microseconds microseconds bound padded_macs"
    )

    segment: Count
    device: str


@frozen
class Throughput:
    """The throughput of several cores of a device, each on a run of its own; copies and other devices are not included.

    Attributes:
        cores: number of cores of the device that are used.
        images_per_second: estimated, never measured; None if the target does not estimate time or no layer runs there.
    """

    cores: Count
    images_per_second: Amount | None


@frozen
class NetworkEstimate:
    """The totals of the whole network, per run unless stated otherwise. All values are estimates.

    Attributes:
        macs: multiply-accumulates of the whole network.
        macs_on_device: multiply-accumulates of the segments on the requested device.
        latency_microseconds: latency with segments and copies run sequentially; None if a target does not estimate
            time.
        latency_error_factor: error of the latency, as a factor up or down; None if unknown.
        latency_text: latency to two digits, with its error.
        lower_bounds: devices whose time is a lower bound.
        busy_microseconds: time of one core of the device; None if its target does not estimate time.
        busy_error_factor: error of that time, as a factor; None if unknown.
        throughput: throughput by number of cores of the device.
        tops_used: operations of all cores of the device, in 10^12 per second, with two operations per
            multiply-accumulate; None without a time.
        pipeline_images_per_second: throughput with all devices and copies working at once on different runs; None
            without a time.
        energy: energy of segments and copies; None if a target does not estimate energy.
        energy_error_factor: error of the energy, as a factor; None if unknown.
        without_time: devices whose targets do not estimate time.
    """

    macs: Count
    macs_on_device: Count
    latency_microseconds: Amount | None
    latency_error_factor: float | None
    latency_text: str
    lower_bounds: Sequence[str]
    busy_microseconds: Amount | None
    busy_error_factor: float | None
    throughput: Sequence[Throughput]
    tops_used: Amount | None
    pipeline_images_per_second: Amount | None
    energy: TotalEnergy | None
    energy_error_factor: float | None
    without_time: Sequence[str]


@frozen(repr=False)
class EstimateAnswer(Answer):
    """The estimated cost of a model with its layers placed.

    Attributes:
        model: path of the model file, or name of the network.
        device: default device of the layers.
        platform: name of the platform.
        power_mode: power mode of the board; None if the platform has none.
        software: software version whose rules apply; empty if the device has a single rule set.
        precisions: allowed computation types besides FP32.
        fallback: device for layers that the default device rejects; None if fallback is disabled.
        overlays: active overlays, each with its board and a digest.
        assumed: defaults that were applied, as command-line options.
        sparsity: whether weight zeros are assumed to be skipped on devices that support it.
        sparse_layers: layers whose weight zeros are assumed to be skipped.
        note: states that every value is an estimate.
        devices: devices that run layers.
        batch: images per run: the first extent of the first input.
        layers: steps of the segments, in execution order.
        segments: the segments in execution order.
        transfers: copies between devices.
        network: totals of the whole network.
        trace: path of the trace that was written; None for none.
        course: the segments, steps and copies of one inference in time, as in that trace.
        notes: remarks on options that were adjusted.

    Example:
        >>> answer = dryfit.estimate("digits.onnx", platform="agx-orin-64")
        >>> answer.network.latency_text
        '~690 us (within a factor of 3.6)'
    """

    COMMAND: ClassVar[str] = "estimate"

    model: str
    device: str
    platform: str
    power_mode: str | None
    software: str
    precisions: Sequence[str]
    fallback: str | None
    overlays: Sequence[str]
    assumed: Sequence[str]
    sparsity: Sparsity
    sparse_layers: Sequence[str]
    note: str
    devices: Sequence[str]
    batch: Count
    layers: Sequence[EstimatedStep]
    segments: Sequence[SegmentCost]
    transfers: Sequence[TransferCost]
    network: NetworkEstimate
    trace: str | None
    course: Trace = hidden(eq=False)
    notes: Sequence[str] = hidden(())

    def blocks(self, *, verbose: bool = False) -> Iterator[Block]:  # noqa: ARG002  there is no more to show
        """Return the lines and tables that `dryfit estimate` prints."""
        return _blocks(self)

    def summary_line(self) -> str:
        """Return a one-line summary of the answer."""
        return f"{_heading(self)}: {self.network.latency_text}"


def estimate(
    model: Model,
    config: BuilderConfig | None = None,
    *,
    trace: str | os.PathLike[str] | None = None,
    **options: Unpack[Options],
) -> EstimateAnswer:
    """Estimate the cost of a model on a board: multiplier cycles, bytes, time and throughput. Measures nothing.

    Args:
        model: a path, an ONNX model, a network, or a PyTorch module with `example_inputs`.
        config: build settings; None to use the options. The config is not modified: a device whose board is not set is
            estimated for its first platform.
        trace: path of a trace to write for Perfetto: one inference as it is estimated. An existing file is replaced.
        options: keyword arguments named like the options of `dryfit estimate`, with the same defaults.

    Raises:
        PlacementError: A layer cannot be placed.
        ConfigError: The options, the config and the model conflict, or the trace cannot be written.
        NetworkError: The network is invalid; the message lists all problems.
        OnnxImportError: The model is corrupt or has unsupported operators.
        UnknownNameError: A device, platform, power mode or option value does not exist.

    Example:
        >>> answer = dryfit.estimate("digits.onnx", platform="agx-orin-64")
        >>> [one.text for one in answer.segments if one.device == "GPU"]
        ['at least 5.0 us', 'at least 5.0 us', 'at least 10 us']
    """
    subject = asked(model, config, options, defaults=with_scales, shares=True).on_named_board()
    chosen, design = subject.config, subject.design
    with quiet_log():
        require_places(design, chosen)
        cost = network_cost(design)
        settings = chosen.settings(subject.network)
    device = chosen.default_device_type
    clocks = chosen.clocks(device)
    platform, software = settings["platforms"].get(device, ""), settings["software"].get(device, "")
    course = estimated_trace(Path(subject.name).name, device_text(device, platform, software), design, cost)
    if trace is not None:
        course.write(trace)
    return EstimateAnswer(
        model=subject.name,
        device=device,
        platform=platform,
        power_mode=None if clocks is None else clocks.name,
        software=software,
        precisions=subject.precisions,
        fallback=settings["fallback_device"],
        overlays=list(settings.get("overlays", ())),
        assumed=list(subject.assumed),
        sparsity=subject.sparsity,
        sparse_layers=sorted(design.sparse_layers),
        note=NOTE,
        devices=sorted({one.device for one in cost.segments}),
        batch=cost.batch,
        layers=[
            EstimatedStep(**attrs.asdict(step, recurse=False), segment=one.index, device=one.device)
            for one in cost.segments
            if one.estimate
            for step in one.estimate.steps
        ],
        segments=cost.segments,
        transfers=cost.transfers,
        network=_network(cost, device),
        trace=None if trace is None else os.fspath(trace),
        course=course,
        notes=subject.notes,
    )


def _network(cost: NetworkCost, device: str) -> NetworkEstimate:
    cores = max(cost.cores[device], 1)
    throughput = [Throughput(count, cost.images_per_second(device, count)) for count in range(1, cores + 1)]
    best = throughput[-1].images_per_second
    latency, error, bounds = cost.latency_microseconds, cost.latency_error, cost.lower_bounds
    return NetworkEstimate(
        macs=cost.macs(),
        macs_on_device=cost.macs(device),
        latency_microseconds=latency,
        latency_error_factor=error,
        latency_text=time_text(latency, error, is_lower_bound=bool(bounds)),
        lower_bounds=list(bounds),
        busy_microseconds=cost.busy_microseconds(device),
        busy_error_factor=cost.busy_error(device),
        throughput=throughput,
        tops_used=None if best is None else 2 * cost.macs(device) / cost.batch * best / 1e12,
        pipeline_images_per_second=cost.pipeline_images_per_second,
        energy=cost.energy,
        energy_error_factor=None if cost.energy is None else cost.energy_error,
        without_time=list(cost.without_time),
    )


# Text -----------------------------------------------------------------------------------------------------------------


def _blocks(answer: EstimateAnswer) -> Iterator[Block]:
    yield Line(_heading(answer))
    yield from (Line(f"  {text}") for text in _figures(answer))
    yield Line(answer.note)
    yield from defaults_line(answer.assumed, answer.overlays)
    yield Line()
    if answer.layers:
        yield Table(
            "Steps of one inference (a single step is less certain than the sum)",
            ["layers in one step", "device", "MAC cycles", "DRAM", "time", "bound by"],
            [
                (
                    _names(one.layers),
                    one.device,
                    two_digits(one.cycles),
                    bytes_text(one.bytes_moved),
                    duration(one.microseconds),
                    one.bound,
                )
                for one in answer.layers
            ],
        )
    segments = [
        (one.index, one.device, one.layer_count, one.text, bytes_text(one.dram_bytes)) for one in answer.segments
    ]
    yield Table("Segments", ["segment", "device", "layers", "time", "DRAM"], segments)
    copies = [(one.tensor, one.sender, one.destination, one.text) for one in answer.transfers]
    if copies:
        yield Table("Copies between devices", ["tensor", "from", "to", "time"], copies)
    yield Entries("Basis", _bases(answer))
    if answer.trace is not None:
        yield Line(f"Trace of the estimate: {answer.trace} (https://ui.perfetto.dev opens it)")


def _figures(answer: EstimateAnswer) -> Iterator[str]:
    network, device = answer.network, answer.device
    error, bounds = network.latency_error_factor, network.lower_bounds
    bounded = f"; the time on {', '.join(bounds)} is a roofline lower bound" if bounds and error is not None else ""
    yield f"latency (no overlap of segments and copies): {network.latency_text}{bounded}"
    for one in network.throughput:
        cores = device if len(network.throughput) == 1 else count_text(one.cores, f"{device} core")
        rate = rate_text(one.images_per_second, network.busy_error_factor, is_upper_bound=device in bounds)
        yield f"throughput, {cores}: {rate if device in answer.devices else f'n/a (no layer runs on {device})'}"
    if network.tops_used is not None:
        yield f"{device} utilization at that rate: {two_digits(network.tops_used)} TOPS"
    if network.pipeline_images_per_second is not None:
        rate = rate_text(network.pipeline_images_per_second, error, is_upper_bound=bool(bounds))
        yield f"throughput, all devices and copies busy at once: {rate}"
    if network.energy is not None:
        amount, unit = two_digits(network.energy.amount), network.energy.unit
        scale = "" if unit == "joules" else " (relative)"
        yield f"energy{scale}: {with_error(f'{amount} {unit}', network.energy_error_factor)}"
    if network.without_time:
        yield f"no latency estimate for {', '.join(network.without_time)}"


def _bases(answer: EstimateAnswer) -> list[tuple[str, str, str]]:
    """Return (device, method of the estimate, source), without duplicates."""
    found = [(one.device, f"{one.basis} ({one.fidelity})", one.source) for one in answer.segments]
    found += [("copies", one.basis, one.source) for one in answer.transfers]
    if answer.network.energy is not None:
        found += [
            (f"energy of {one.device}", f"{one.energy.basis} ({one.fidelity})", one.energy.source)
            for one in answer.segments
            if one.energy is not None
        ]
        drawn = [one.energy for one in answer.transfers if one.energy is not None]
        found += [("energy of copies", one.basis, one.source) for one in drawn]
    return list(dict.fromkeys(found))


def _heading(answer: EstimateAnswer) -> str:
    mode = "" if answer.power_mode is None else f" in power mode {answer.power_mode}"
    wanted = f"{device_text(answer.device, answer.platform, answer.software)}{mode}"
    if answer.device in answer.devices:
        return f"Estimated cost of {answer.model} on {wanted}, batch {answer.batch}"
    # Figures of one device must not appear under the name of another.
    used = " and ".join(answer.devices) or "no device"
    return f"Estimated cost of {answer.model} on {used}, batch {answer.batch}: no layer runs on {wanted}"


def _names(layers: Sequence[str]) -> str:
    first = table_name(layers[0])
    return first if len(layers) == 1 else f"{first} + {len(layers) - 1}"
