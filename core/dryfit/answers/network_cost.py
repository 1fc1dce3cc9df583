"""What a network is estimated to cost as its layers are placed: segments, copies, latency, throughput."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from dryfit.builder.decisions import segment_estimate, transfer_estimate
from dryfit.builder.design import Design
from dryfit.builder.placement.target_variant import TargetVariant
from dryfit.engine.plan import Reformat
from dryfit.target.cost import CostEstimate, Energy, combined_error


@attrs.frozen
class SegmentCost:
    """One segment.

    Attributes:
        index: in execution order.
        device: where it runs.
        layers: names, in execution order.
        estimate: of one run on one core; None where the target estimates nothing.
    """

    index: int
    device: str
    layers: Sequence[str]
    estimate: CostEstimate | None


@attrs.frozen
class TransferCost:
    """A tensor that goes from one device to another.

    Attributes:
        tensor: its name.
        source, destination: devices.
        copier: the one of them that makes the copy: not the one whose target estimates it, whose border it crosses.
        estimate: of one run; None where neither device's target estimates it.
    """

    tensor: str
    source: str
    destination: str
    copier: str
    estimate: CostEstimate | None


@attrs.frozen
class NetworkCost:
    """A placed network. All times are estimates.

    Attributes:
        segments: in execution order.
        transfers: the copies between devices.
        batch: images of one run: the first extent of the first input.
        cores: device to the number of its cores on the platform.
    """

    segments: Sequence[SegmentCost]
    transfers: Sequence[TransferCost]
    batch: int
    cores: Mapping[str, int]

    @property
    def without_time(self) -> Sequence[str]:
        """Devices that segments run on and whose targets estimate no time."""
        return sorted({one.device for one in self.segments if _time(one.estimate) is None})

    @property
    def latency_microseconds(self) -> float | None:
        """The time of one run, with segments and copies one after the other; None where a part has no time."""
        if self.without_time:
            return None
        estimates = [*(one.estimate for one in self.segments), *(one.estimate for one in self.transfers)]
        return sum((_time(estimate) or 0.0 for estimate in estimates), 0.0)

    @property
    def lower_bounds(self) -> Sequence[str]:
        """Devices whose time is one that they cannot beat, rather than one that they are thought to take."""
        return sorted({one.device for one in self.segments if one.estimate is not None and one.estimate.is_lower_bound})

    @property
    def latency_error(self) -> float | None:
        """How far the latency may be off, as `CostEstimate.error_factor`; a time that is a lower bound counts as it is.

        None where the error of a part is not known, and where times that are lower bounds are more than the error.
        """
        return _error([*(one.estimate for one in self.segments), *(one.estimate for one in self.transfers)])

    def busy_error(self, device: str) -> float | None:
        """How far `busy_microseconds` of a device may be off."""
        return _error([one.estimate for one in self.segments if one.device == device])

    @property
    def energy_error(self) -> float | None:
        """How far the energy may be off."""
        return combined_error((one.amount, one.error_factor) for _, one in self.energies if one is not None)

    def busy_microseconds(self, device: str) -> float | None:
        """The time that one run keeps one core of a device at its segments; None where one of them has no time."""
        times = [_time(one.estimate) for one in self.segments if one.device == device]
        known = [time for time in times if time is not None]
        return sum(known) if len(known) == len(times) else None

    def images_per_second(self, device: str, cores: int) -> float | None:
        """How many images that many cores of a device can work on, each at a run of its own; copies are not its work.

        None where it has nothing to do, or no time is estimated.
        """
        busy = self.busy_microseconds(device)
        return None if not busy else cores * self.batch / busy * 1e6

    @property
    def pipeline_images_per_second(self) -> float | None:
        """Images a second where all devices work at once on different runs; the busiest one decides."""
        busy = self.pipeline_microseconds
        return None if not busy else self.batch / max(busy.values()) * 1e6

    @property
    def pipeline_microseconds(self) -> Mapping[str, float] | None:
        """Device to the time between two runs that it could do, copies included; None where a part has no time."""
        if self.without_time:
            return None
        times = {
            device: (self.busy_microseconds(device) or 0.0) / max(self.cores[device], 1)
            for device in dict.fromkeys(one.device for one in self.segments)
        }
        for transfer in self.transfers:
            times[transfer.copier] = times.get(transfer.copier, 0.0) + (_time(transfer.estimate) or 0.0)
        return times

    @property
    def energies(self) -> Sequence[tuple[str, Energy | None]]:
        """What each segment draws, with its device, and each copy that is estimated, with the device that makes it."""
        parts = [(one.device, one.estimate) for one in self.segments]
        parts += [(one.copier, one.estimate) for one in self.transfers if one.estimate is not None]
        return [(device, None if estimate is None else estimate.energy) for device, estimate in parts]

    @property
    def energy(self) -> tuple[float, str] | None:
        """What one run draws, and in which unit; None where a part has no energy, or parts have several units."""
        known = [energy for _, energy in self.energies if energy is not None]
        units = {energy.unit for energy in known}
        if len(units) != 1 or len(known) != len(self.energies):
            return None
        return sum(energy.amount for energy in known), units.pop()

    def macs(self, device: str | None = None) -> int:
        """Multiply-accumulates of one run, on one device or on all."""
        chosen = [one for one in self.segments if device is None or one.device == device]
        return sum(one.estimate.macs for one in chosen if one.estimate is not None)


def network_cost(design: Design) -> NetworkCost:
    """The estimate of a network whose layers all have a place."""
    segments = [
        SegmentCost(
            index=index,
            device=run.device,
            layers=[layer.name for layer in run.layers],
            estimate=segment_estimate(
                design.variants[run.device], run.layers, design.specs, design.precisions, design.sparse_layers
            ),
        )
        for index, run in enumerate(design.partition.runs)
    ]
    transfers = []
    for copy in design.formats.reformats:
        source, destination = (end.split()[0] for end in (copy.source, copy.destination))
        if source != destination:
            transfers.append(transfer_cost(design.variants, copy, source, destination))
    inputs = [tensor for tensor in design.network.inputs if design.specs[tensor.name].shape]
    return NetworkCost(
        segments=segments,
        transfers=transfers,
        batch=max(design.specs[inputs[0].name].shape[0], 1) if inputs else 1,
        cores={device: variant.platform.cores for device, variant in design.variants.items()},
    )


def transfer_cost(variants: Mapping[str, TargetVariant], copy: Reformat, source: str, destination: str) -> TransferCost:
    """A copy between devices, as the device estimates it that can: the destination before the source."""
    for device, copier in ((destination, source), (source, destination)):
        found = transfer_estimate(variants[device], copy.size) if device in variants else None
        if found is not None:
            return TransferCost(copy.tensor, source, destination, copier, found)
    return TransferCost(copy.tensor, source, destination, source, None)


def _error(estimates: Sequence[CostEstimate | None]) -> float | None:
    known = [one for one in estimates if one is not None and one.microseconds]
    parts = [(one.microseconds or 0.0, 1.0 if one.is_lower_bound else one.error_factor) for one in known]
    error = combined_error(parts)
    if error is None:
        return None
    bounded = sum(one.microseconds or 0.0 for one in known if one.is_lower_bound)
    return None if bounded > (error - 1) * sum(time for time, _ in parts) else error


def _time(estimate: CostEstimate | None) -> float | None:
    return None if estimate is None else estimate.microseconds
