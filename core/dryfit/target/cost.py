"""What a target may report about the cost of layers: always an estimate, never a measurement."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, SupportsFloat, SupportsIndex

import attrs

from dryfit.attrs_classes import frozen
from dryfit.errors import PluginError
from dryfit.rule import FIDELITIES

if TYPE_CHECKING:
    from dryfit.network.data_types import DataType
    from dryfit.network.layer import Layer
    from dryfit.network.tensor import TensorSpec
    from dryfit.target.power_mode import PowerMode
    from dryfit.target.target import Platform

Bound = Literal["compute", "memory", "overhead"]


@frozen(eq=False)
class CostQuestion:
    """Layers that would run as one segment, and everything that an estimate may depend on.

    Attributes:
        layers: in execution order.
        specs: tensor name to its shape, at the extents for which the engine is optimized, and its type: the type in
            which the device stores it, if known.
        platform: the variant of the device.
        software: software version whose rules apply; empty if the device has one rule set.
        precisions: layer name to computation type. Default: the type of the layer's tensors.
        sparse_layers: names of the layers whose weights the device treats as sparse and whose zeros it skips.
        power_mode: clock frequencies used in the estimate; None for a platform without power modes.
        allows_nominal: whether a nominal estimate is of use (see `CostEstimate.is_nominal`); if not, a target may
            return None instead, and need not compute it.
        parameters: the platform's record in the target's `cost_parameters`; None for a target without parameters.
    """

    layers: Sequence[Layer]
    specs: Mapping[str, TensorSpec]
    platform: Platform
    software: tuple[int, ...] = ()
    precisions: Mapping[str, DataType] = attrs.field(factory=dict)
    sparse_layers: frozenset[str] = frozenset()
    power_mode: PowerMode | None = None
    allows_nominal: bool = True
    parameters: Any = None

    def precision(self, layer: Layer) -> DataType:
        """Return the computation type of a layer."""
        return self.precisions.get(layer.name, self.specs[layer.outputs[0].name].dtype)


@frozen(eq=False)
class TransferQuestion:
    """A tensor that crosses the boundary between a segment of the device and another device.

    Attributes:
        bytes_moved: size of the tensor as the device stores it.
        platform: the variant of the device.
        power_mode: clock frequencies used in the estimate; None for a platform without power modes.
        parameters: as in `CostQuestion`.
    """

    bytes_moved: int
    platform: Platform
    power_mode: PowerMode | None = None
    parameters: Any = None


# attrs asks converters for their signatures: those of `operator.index` and `float` are texts, which take 8 ms to read.
def _whole(value: SupportsIndex) -> int:
    return operator.index(value)


def _real(value: SupportsFloat) -> float:
    return float(value)


@frozen
class StepCost:
    """Estimated cost of one step of a segment: layers that the device runs as one.

    Attributes:
        layers: names of the layers, in execution order.
        compute_microseconds: time of the device's arithmetic.
        memory_microseconds: time of its memory accesses.
        overhead_microseconds: fixed time per step, independent of its size.
        cycles: clock cycles of the device's arithmetic; 0 if the estimate does not count cycles.
        bytes_moved: bytes moved between the device and its memories.
        macs: multiply-accumulates, without any padding.
        overlaps: whether arithmetic and memory accesses overlap, so that the longer of the two counts.
        padded_macs: multiply-accumulates with those on padded channels, which the device does in vain; None if the
            target does not count them.
    """

    layers: Sequence[str]
    compute_microseconds: float = attrs.field(converter=_real)
    memory_microseconds: float = attrs.field(converter=_real)
    overhead_microseconds: float = attrs.field(converter=_real)
    cycles: int = attrs.field(converter=_whole)
    bytes_moved: int = attrs.field(converter=_whole)
    macs: int = attrs.field(converter=_whole)
    overlaps: bool = False
    padded_macs: int | None = attrs.field(default=None, converter=attrs.converters.optional(_whole))

    def __attrs_post_init__(self) -> None:
        _require_costs(
            compute_microseconds=self.compute_microseconds,
            memory_microseconds=self.memory_microseconds,
            overhead_microseconds=self.overhead_microseconds,
            cycles=self.cycles,
            bytes_moved=self.bytes_moved,
            multiply_accumulates=self.macs,
            padded_multiply_accumulates=self.padded_macs or 0,
        )

    @property
    def microseconds(self) -> float:
        """Time of one run of the step."""
        compute, memory = self.compute_microseconds, self.memory_microseconds
        return (max(compute, memory) if self.overlaps else compute + memory) + self.overhead_microseconds

    @property
    def bound(self) -> Bound:
        """Largest part of the time: `compute`, `memory` or `overhead`; the first of them in a tie."""
        times: dict[Bound, float] = {
            "compute": self.compute_microseconds,
            "memory": self.memory_microseconds,
            "overhead": self.overhead_microseconds,
        }
        return max(times, key=lambda name: times[name])


@frozen
class Energy:
    """Estimated energy of layers in one run. Not measured here.

    Energies can be compared and added only in the same unit. If no watts are published, two devices can still be
    compared if the power of one is known as a fraction of the other's: see `of_work`.

    Attributes:
        amount: amount in the unit.
        basis: how it was calculated, in one sentence; shown with the number.
        source: document and section of the underlying figures.
        unit: `joules`, or another unit that the targets of a board share.
        error_factor: as `CostEstimate.error_factor`.

    Raises:
        PluginError: The amount is negative or not finite, the basis or unit is missing, or the error factor is less
            than 1.

    Example:
        >>> Energy(0.002, "2 W by the estimated time", "Acme NPU, data sheet, table 4").unit
        'joules'
    """

    amount: float = attrs.field(converter=_real)
    basis: str
    source: str
    unit: str = "joules"
    error_factor: float | None = None

    def __attrs_post_init__(self) -> None:
        if not self.basis or not self.unit:
            raise PluginError(
                "An energy must have a basis and a unit", found="no basis or no unit", remedy="Set `basis` and `unit`"
            )
        _require_costs(**{self.unit: self.amount})
        _require_error(self.error_factor)

    @classmethod
    def of_work(
        cls,
        microseconds: float,
        basis: str,
        source: str,
        *,
        device: str,
        board: str,
        mode: str,
        error_factor: float | None = None,
    ) -> Energy:
        """Return the energy of a device in this time of estimated work: a relative unit, not joules.

        Args:
            microseconds: time of the device's work, as estimated by its own target.
            basis: how it was calculated.
            source: source of the underlying figures.
            device: device whose work is the unit.
            board: name of its platform.
            mode: name of the board's power mode.
            error_factor: as `CostEstimate.error_factor`.
        """
        return cls(microseconds, basis, source, f"{device} us of {board} in {mode}", error_factor)


@frozen
class CostEstimate:
    """Estimated cost of layers in one run as one segment. No number in it was measured here.

    Attributes:
        microseconds: the time; None if the target does not estimate it.
        bytes_moved: bytes that the device reads from and writes to its memories.
        macs: multiply-accumulates.
        basis: how it was calculated, in one sentence; shown with every number.
        source: document and section of the underlying figures.
        fidelity: `documented`, `inferred` or `confirmed`.
        energy: the energy; None if the target does not estimate it.
        steps: the steps that the device runs in sequence; empty if the target reports only totals.
        is_lower_bound: whether the time is a bound that the device cannot beat and does not reach, such as a roofline,
            rather than an estimate of the actual time.
        error_factor: possible error of the time, as a factor up or down: 1.15 for 15 %, 10 for an order of magnitude.
            None: unknown. Reports print it next to the time.
        is_nominal: whether the estimate is based on figures of a similar machine instead of the requested one, or of
            this machine. Reported when costs are requested; not stored in the results of builds.

    Raises:
        PluginError: A number is negative or not finite, the basis is missing, the fidelity is invalid, or the error
            factor is less than 1.
        TypeError: A count is not a whole number.
    """

    JSON_NAMES: ClassVar[Mapping[str, str]] = {
        name: name
        for name in (
            "microseconds",
            "bytes_moved",
            "macs",
            "basis",
            "source",
            "fidelity",
            "energy",
            "is_lower_bound",
            "error_factor",
            "is_nominal",
        )
    }

    microseconds: float | None = attrs.field(converter=attrs.converters.optional(_real))
    bytes_moved: int = attrs.field(converter=_whole)
    macs: int = attrs.field(converter=_whole)
    basis: str
    source: str
    fidelity: str = "inferred"
    energy: Energy | None = None
    steps: Sequence[StepCost] = attrs.field(default=(), converter=tuple[StepCost, ...])
    is_lower_bound: bool = False
    error_factor: float | None = None
    is_nominal: bool = False

    def __attrs_post_init__(self) -> None:
        _require_error(self.error_factor)
        _require_costs(
            microseconds=self.microseconds or 0.0,
            bytes=self.bytes_moved,
            multiply_accumulates=self.macs,
        )
        if not self.basis:
            raise PluginError(
                "A cost estimate must have a basis", found="no basis", remedy="Set `basis` to how the estimate is made"
            )
        if self.fidelity not in FIDELITIES:
            raise PluginError(
                "A cost estimate has an unknown fidelity",
                found=self.fidelity,
                allowed=", ".join(FIDELITIES),
                remedy="Set `fidelity` to one of these",
            )


EstimateCost = Callable[[CostQuestion], CostEstimate | None]
"""Cost of running these layers as one segment; None for a platform whose rates are unknown."""

EstimateTransfer = Callable[[TransferQuestion], CostEstimate | None]
"""Cost of transferring one tensor to or from the device; None as above."""


def require_estimate(found: object) -> CostEstimate | None:
    """Return the result of a target's cost function, after checking its type.

    Raises:
        TypeError: The result is neither an estimate nor None.
    """
    if found is None or isinstance(found, CostEstimate):
        return found
    raise TypeError(f"a cost function returns a CostEstimate or None, not {type(found).__name__}")


def combined_error(parts: Iterable[tuple[float, float | None]]) -> float | None:
    """Return the error factor of a sum, assuming that all parts are off in the same direction.

    Args:
        parts: amounts with their error factors; None for an unknown factor.

    Returns:
        A factor of at least 1; None if the factor of a part is unknown, or there are no parts.
    """
    known = [(amount, factor) for amount, factor in parts if amount > 0]
    if not known or any(factor is None for _, factor in known):
        return None
    return sum(amount * (factor or 1.0) for amount, factor in known) / sum(amount for amount, _ in known)


def _require_error(factor: float | None) -> None:
    if factor is not None and not (math.isfinite(factor) and factor >= 1):
        raise PluginError(
            "The error factor of an estimate must be at least 1",
            found=factor,
            allowed="a factor of at least 1",
            remedy="Use 1 for exact, or leave it None where the error is unknown",
        )


def _require_costs(**costs: float) -> None:
    if not all(math.isfinite(cost) and cost >= 0 for cost in costs.values()):
        raise PluginError(
            "The numbers of a cost estimate must be finite and at least 0",
            found=", ".join(f"{cost} {name.replace('_', '-')}" for name, cost in costs.items()),
            allowed="finite numbers, at least 0",
            remedy="Check the cost function for divisions by 0 and overflows",
        )
