"""The estimated cost of a placed network: segments, copies, latency and throughput."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import attrs

from dryfit.answers.json_data import Amount, Count
from dryfit.attrs_classes import frozen
from dryfit.builder.decisions import segment_estimate, transfer_estimate
from dryfit.builder.design import Design
from dryfit.builder.placement.target_variant import TargetVariant
from dryfit.engine.plan import Reformat
from dryfit.estimate_text import time_text
from dryfit.json_names import json_names
from dryfit.target.cost import CostEstimate, Energy, combined_error


@frozen
class EstimatedPart:
    """A part of a network with the target's estimate for one run; nothing is measured.

    Attributes:
        estimate: estimate of the target; None if it provides none.
    """

    NO_ESTIMATE: ClassVar[str] = "not estimated by its target"

    estimate: CostEstimate | None = attrs.field(kw_only=True)

    @property
    def microseconds(self) -> Amount | None:
        """Estimated time in us, never measured; null if the target does not estimate time."""
        return None if self.estimate is None else self.estimate.microseconds

    @property
    def dram_bytes(self) -> Count:
        """Bytes transferred between the device and its memory."""
        return 0 if self.estimate is None else self.estimate.bytes_moved

    @property
    def macs(self) -> Count:
        """Multiply-accumulates."""
        return 0 if self.estimate is None else self.estimate.macs

    @property
    def energy(self) -> Energy | None:
        """Estimated energy, never measured; null if the target does not estimate energy."""
        return None if self.estimate is None else self.estimate.energy

    @property
    def basis(self) -> str:
        """Method of the estimate."""
        return self.NO_ESTIMATE if self.estimate is None else self.estimate.basis

    @property
    def source(self) -> str:
        """Source of the estimate."""
        return "" if self.estimate is None else self.estimate.source

    @property
    def fidelity(self) -> str:
        """`documented`, `inferred` or `confirmed`."""
        return "inferred" if self.estimate is None else self.estimate.fidelity

    @property
    def error_factor(self) -> float | None:
        """Error of the time, as a factor up or down: 1.15 for 15 %; null if unknown."""
        return None if self.estimate is None else self.estimate.error_factor

    @property
    def is_lower_bound(self) -> bool:
        """Whether the time is a lower bound that the device does not reach."""
        return self.estimate is not None and self.estimate.is_lower_bound

    @property
    def text(self) -> str:
        """Time to two digits, with its error."""
        return time_text(self.microseconds, self.error_factor, is_lower_bound=self.is_lower_bound)


@frozen
class SegmentCost(EstimatedPart):
    """The cost of one segment, estimated for one core.

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
        """Number of network layers in the segment."""
        return len(self.layers)


@frozen
class TransferCost(EstimatedPart):
    """The cost of copying a tensor from one device to another.

    Attributes:
        tensor: name of the tensor.
        sender, destination: source and destination device.
        copier: the device of the two that performs the copy.
    """

    JSON_NAMES: ClassVar[Mapping[str, str]] = json_names(
        "tensor sender:from destination:to microseconds energy basis source error_factor text"
    )

    tensor: str
    sender: str
    destination: str
    copier: str


@frozen
class TotalEnergy:
    """The total energy of several parts of a network.

    Attributes:
        amount: energy in `unit`.
        unit: unit of the summed energies.
    """

    amount: Amount
    unit: str


@frozen
class NetworkCost:
    """The cost of a placed network. All times are estimates.

    Attributes:
        segments: the segments in execution order.
        transfers: copies between devices.
        batch: images per run: the first extent of the first input.
        cores: number of cores on the platform, by device.
    """

    segments: Sequence[SegmentCost]
    transfers: Sequence[TransferCost]
    batch: int
    cores: Mapping[str, int]

    @property
    def without_time(self) -> Sequence[str]:
        """The devices that run segments and whose targets do not estimate time."""
        return sorted({one.device for one in self.segments if one.microseconds is None})

    @property
    def latency_microseconds(self) -> float | None:
        """The latency with segments and copies run sequentially; None if a part has no time."""
        if self.without_time:
            return None
        return sum((one.microseconds or 0.0 for one in (*self.segments, *self.transfers)), 0.0)

    @property
    def lower_bounds(self) -> Sequence[str]:
        """The devices whose time is a lower bound rather than an expected value."""
        return sorted({one.device for one in self.segments if one.is_lower_bound})

    @property
    def latency_error(self) -> float | None:
        """The error of the latency, as `CostEstimate.error_factor`. Lower bounds count as exact.

        None: the error of a part is unknown, or the lower bounds exceed the error.
        """
        return _error([*self.segments, *self.transfers])

    def busy_error(self, device: str) -> float | None:
        """Return the error of a device's `busy_microseconds`, as a factor."""
        return _error([one for one in self.segments if one.device == device])

    @property
    def energy_error(self) -> float | None:
        """The error of the energy, as a factor."""
        return combined_error((one.amount, one.error_factor) for _, one in self.energies if one is not None)

    def busy_microseconds(self, device: str) -> float | None:
        """Return the time that one core of a device spends on its segments per run; None if a segment has no time."""
        times = [one.microseconds for one in self.segments if one.device == device]
        known = [time for time in times if time is not None]
        return sum(known) if len(known) == len(times) else None

    def images_per_second(self, device: str, cores: int) -> float | None:
        """Return the throughput of several cores of a device, each on a run of its own, without copies.

        None: the device has no segments, or a time is missing.
        """
        busy = self.busy_microseconds(device)
        return None if not busy else cores * self.batch / busy * 1e6

    @property
    def pipeline_images_per_second(self) -> float | None:
        """The images per second with all devices working on different runs; the busiest device is the limit."""
        busy = self.pipeline_microseconds
        return None if not busy else self.batch / max(busy.values()) * 1e6

    @property
    def pipeline_microseconds(self) -> Mapping[str, float] | None:
        """The shortest time between two runs by device, including copies; None if a part has no time."""
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
        """The energy of each segment with its device, and of each estimated copy with its copying device."""
        copies = [(one.copier, one.energy) for one in self.transfers if one.estimate is not None]
        return [*((one.device, one.energy) for one in self.segments), *copies]

    @property
    def energy(self) -> TotalEnergy | None:
        """The energy of one run; None if a part has no energy or the units differ."""
        known = [energy for _, energy in self.energies if energy is not None]
        units = {energy.unit for energy in known}
        if len(units) != 1 or len(known) != len(self.energies):
            return None
        return TotalEnergy(sum(energy.amount for energy in known), units.pop())

    def macs(self, device: str | None = None) -> int:
        """Return the multiply-accumulates of one run, on one device or on all."""
        return sum(one.macs for one in self.segments if device is None or one.device == device)


def network_cost(design: Design) -> NetworkCost:
    """Return the estimate of a network whose layers are all placed."""
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
    """Return the cost of a copy between devices, estimated by the destination if it can, else by the source."""
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
