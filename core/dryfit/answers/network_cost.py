"""What a network is estimated to cost as its layers are placed: segments, copies, latency, throughput."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import attrs

from dryfit.answers.json_data import Amount, Count
from dryfit.builder.decisions import segment_estimate, transfer_estimate
from dryfit.builder.design import Design
from dryfit.builder.placement.target_variant import TargetVariant
from dryfit.engine.plan import Reformat
from dryfit.estimate_text import time_text
from dryfit.json_names import json_names
from dryfit.target.cost import CostEstimate, Energy, combined_error


@attrs.frozen
class EstimatedPart:
    """A part of a network with what a target estimates of one run of it; nothing of it was measured.

    Attributes:
        estimate: the target's; None where it estimates nothing.
    """

    NO_ESTIMATE: ClassVar[str] = "not estimated by its target"

    estimate: CostEstimate | None = attrs.field(kw_only=True)

    @property
    def microseconds(self) -> Amount | None:
        """Estimated, never measured; null where a target estimates none."""
        return None if self.estimate is None else self.estimate.microseconds

    @property
    def dram_bytes(self) -> Count:
        """Bytes between the device and its memory."""
        return 0 if self.estimate is None else self.estimate.bytes_moved

    @property
    def macs(self) -> Count:
        """Multiply-accumulates."""
        return 0 if self.estimate is None else self.estimate.macs

    @property
    def energy(self) -> Energy | None:
        """Estimated, never measured; null where a target estimates none."""
        return None if self.estimate is None else self.estimate.energy

    @property
    def basis(self) -> str:
        """How it was estimated."""
        return self.NO_ESTIMATE if self.estimate is None else self.estimate.basis

    @property
    def source(self) -> str:
        """What the estimate rests on."""
        return "" if self.estimate is None else self.estimate.source

    @property
    def fidelity(self) -> str:
        """`documented`, `inferred` or `confirmed`."""
        return "inferred" if self.estimate is None else self.estimate.fidelity

    @property
    def error_factor(self) -> float | None:
        """How far the time may be off, as a factor up or down: 1.15 for 15 %; null where that is not known."""
        return None if self.estimate is None else self.estimate.error_factor

    @property
    def is_lower_bound(self) -> bool:
        """Whether the time is one that the device cannot beat and does not reach."""
        return self.estimate is not None and self.estimate.is_lower_bound

    @property
    def text(self) -> str:
        """The time to two digits, with its error."""
        return time_text(self.microseconds, self.error_factor, is_lower_bound=self.is_lower_bound)


@attrs.frozen
class SegmentCost(EstimatedPart):
    """One segment; the estimate is for one core.

    Attributes:
        index: index of the segment in execution order.
        device: device that runs the segment.
        layers: names of the layers, in execution order.
    """

    NO_ESTIMATE: ClassVar[str] = "the target has no cost model"
    JSON_NAMES: ClassVar[Mapping[str, str]] = json_names(
        "index:id device layer_count:layers microseconds dram_bytes macs energy basis source fidelity "
        "error_factor is_lower_bound text"
    )

    index: int
    device: str
    layers: Sequence[str]

    @property
    def layer_count(self) -> Count:
        """How many layers of the network."""
        return len(self.layers)


@attrs.frozen
class TransferCost(EstimatedPart):
    """A tensor that goes from one device to another.

    Attributes:
        tensor: name of the tensor.
        sender, destination: the two devices.
        copier: the one of them that makes the copy: not the one whose target estimates it, whose border it crosses.
    """

    JSON_NAMES: ClassVar[Mapping[str, str]] = json_names(
        "tensor sender:from destination:to microseconds energy basis source error_factor text"
    )

    tensor: str
    sender: str
    destination: str
    copier: str


@attrs.frozen
class TotalEnergy:
    """What several parts of a network draw.

    Attributes:
        amount: energy in the unit.
        unit: unit of the energies that were added.
    """

    amount: Amount
    unit: str


@attrs.frozen
class NetworkCost:
    """A placed network. All times are estimates.

    Attributes:
        segments: the segments in execution order.
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
        return sorted({one.device for one in self.segments if one.microseconds is None})

    @property
    def latency_microseconds(self) -> float | None:
        """The time of one run, with segments and copies one after the other; None where a part has no time."""
        if self.without_time:
            return None
        return sum((one.microseconds or 0.0 for one in (*self.segments, *self.transfers)), 0.0)

    @property
    def lower_bounds(self) -> Sequence[str]:
        """Devices whose time is one that they cannot beat, rather than one that they are thought to take."""
        return sorted({one.device for one in self.segments if one.is_lower_bound})

    @property
    def latency_error(self) -> float | None:
        """How far the latency may be off, as `CostEstimate.error_factor`; a time that is a lower bound counts as it is.

        None where the error of a part is not known, and where times that are lower bounds are more than the error.
        """
        return _error([*self.segments, *self.transfers])

    def busy_error(self, device: str) -> float | None:
        """How far `busy_microseconds` of a device may be off."""
        return _error([one for one in self.segments if one.device == device])

    @property
    def energy_error(self) -> float | None:
        """How far the energy may be off."""
        return combined_error((one.amount, one.error_factor) for _, one in self.energies if one is not None)

    def busy_microseconds(self, device: str) -> float | None:
        """The time that one run keeps one core of a device at its segments; None where one of them has no time."""
        times = [one.microseconds for one in self.segments if one.device == device]
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
            times[transfer.copier] = times.get(transfer.copier, 0.0) + (transfer.microseconds or 0.0)
        return times

    @property
    def energies(self) -> Sequence[tuple[str, Energy | None]]:
        """What each segment draws, with its device, and each copy that is estimated, with the device that makes it."""
        copies = [(one.copier, one.energy) for one in self.transfers if one.estimate is not None]
        return [*((one.device, one.energy) for one in self.segments), *copies]

    @property
    def energy(self) -> TotalEnergy | None:
        """What one run draws; None where a part has no energy, or parts have several units."""
        known = [energy for _, energy in self.energies if energy is not None]
        units = {energy.unit for energy in known}
        if len(units) != 1 or len(known) != len(self.energies):
            return None
        return TotalEnergy(sum(energy.amount for energy in known), units.pop())

    def macs(self, device: str | None = None) -> int:
        """Multiply-accumulates of one run, on one device or on all."""
        return sum(one.macs for one in self.segments if device is None or one.device == device)


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
            return TransferCost(copy.tensor, source, destination, copier, estimate=found)
    return TransferCost(copy.tensor, source, destination, source, estimate=None)


def _error(parts: Sequence[EstimatedPart]) -> float | None:
    known = [(one.microseconds, one) for one in parts if one.microseconds]
    error = combined_error((time, 1.0 if one.is_lower_bound else one.error_factor) for time, one in known)
    if error is None:
        return None
    bounded = sum(time for time, one in known if one.is_lower_bound)
    return None if bounded > (error - 1) * sum(time for time, _ in known) else error
