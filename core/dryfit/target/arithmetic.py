"""How a device rounds, saturates, accumulates and rescales."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from dryfit.errors import PluginError
from dryfit.network.data_types import DataType
from dryfit.quantization.rounding import Rounding, RoundingFunction, RoundingMode, declared_rounding


@attrs.frozen
class Approximation:
    """Layers that a device computes otherwise than the arithmetic of their type would.

    Attributes:
        kernel: name of the target's kernel that computes so.
        text: which layers, and what it computes in their place, in a sentence.
        fidelity: `documented`, `inferred` or `confirmed`: of what is computed, not of whether the device approximates.
        source: document and section, or "our choice, because ...".
    """

    kernel: str
    text: str
    fidelity: str
    source: str


def _by_version(declared: Mapping[tuple[int, ...], object]) -> Mapping[tuple[int, ...], Rounding]:
    return {version: declared_rounding(one) for version, one in declared.items()}


def _optional(declared: object) -> Rounding | None:
    return None if declared is None else declared_rounding(declared)


@attrs.frozen
class Arithmetic:
    """The arithmetic of one computation type on a device.

    Attributes:
        precision: the computation type.
        accumulator: the type sums are kept in.
        rounds: where results are rounded to the tensor's type: `group` (once, at the end of a fused group) or `layer`.
        rounding: the rounding mode, or its name; for INT8 also a function in numpy, see `RoundingFunction`.
        fidelity: `documented`, `inferred` or `confirmed`.
        source: document and section, or "our choice, because ...".
        rounding_since: software version to the rounding mode from that version on, where it changed; the earliest entry
            holds before itself too.
        weight_rounding: how weights that the builder quantizes are rounded; None: as `rounding` has it.
        weight_rounding_since: the same by software version, as `rounding_since`.
        approximations: layers of this type that kernels of the target compute in a way of their own.

    Raises:
        UnknownNameError: no rounding mode has the name that is given.
        PluginError: a rounding is neither a mode nor a function, or a function is given for another type than INT8.
    """

    precision: DataType
    accumulator: DataType
    rounds: str
    rounding: Rounding = attrs.field(converter=declared_rounding)
    fidelity: str
    source: str
    rounding_since: Mapping[tuple[int, ...], Rounding] = attrs.field(factory=dict, converter=_by_version)
    weight_rounding: Rounding | None = attrs.field(default=None, converter=_optional)
    weight_rounding_since: Mapping[tuple[int, ...], Rounding] = attrs.field(factory=dict, converter=_by_version)
    approximations: Sequence[Approximation] = ()

    def __attrs_post_init__(self) -> None:
        functions = [one for one in self.roundings if isinstance(one, RoundingFunction)]
        if functions and self.precision is not DataType.INT8:
            raise PluginError(
                "Only INT8 may have a rounding function: the host rounds other types as their formats define",
                where=f"arithmetic of {self.precision.text}",
                found=str(functions[0]),
                allowed=", ".join(mode.value for mode in RoundingMode),
                remedy="Use a RoundingMode for this type",
            )

    @property
    def roundings(self) -> Sequence[Rounding]:
        """Every rounding that is declared, of results and of weights."""
        own = (self.rounding, *self.rounding_since.values(), *self.weight_rounding_since.values())
        return own if self.weight_rounding is None else (*own, self.weight_rounding)

    def rounding_for(self, software: tuple[int, ...]) -> Rounding:
        """Return the rounding mode of a software version; `rounding` for the empty version."""
        return _mode_for(software, self.rounding_since, self.rounding)

    def weight_rounding_for(self, software: tuple[int, ...]) -> Rounding:
        """Return the rounding mode of weights that are quantized when an engine is built."""
        newest = self.weight_rounding or self.rounding_for(software)
        return _mode_for(software, self.weight_rounding_since, newest)


def _mode_for(software: tuple[int, ...], since: Mapping[tuple[int, ...], Rounding], newest: Rounding) -> Rounding:
    """The mode that holds for a version; the newest for the empty version, the earliest before all."""
    if not since or not software:
        return newest
    ordered = sorted(since.items())
    return ([mode for version, mode in ordered if software >= version] or [ordered[0][1]])[-1]


def weight_rounding(
    arithmetic: Mapping[DataType, Arithmetic], precision: DataType, software: tuple[int, ...]
) -> Rounding:
    """How a device rounds the weights of a computation type; half to even where it declares nothing of the type."""
    found = arithmetic.get(precision)
    return RoundingMode.HALF_TO_EVEN if found is None else found.weight_rounding_for(software)


def integer_rounding(arithmetic: Mapping[DataType, Arithmetic], software: tuple[int, ...]) -> Rounding:
    """How a device finds whole numbers where it computes in INT8.

    Half to even, as ONNX defines quantization, where nothing is declared of INT8.

    Args:
        arithmetic: of the device, by computation type.
        software: version that it runs; empty for the newest.
    """
    record = arithmetic.get(DataType.INT8)
    return RoundingMode.HALF_TO_EVEN if record is None else record.rounding_for(software)
