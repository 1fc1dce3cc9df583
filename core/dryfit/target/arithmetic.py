"""Rounding, saturation, accumulation and rescaling of a device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from dryfit.attrs_classes import frozen
from dryfit.errors import PluginError
from dryfit.network.data_types import DataType
from dryfit.quantization.rounding import Rounding, RoundingFunction, RoundingMode, declared_rounding


@frozen
class Approximation:
    """Layers that a device computes differently from the arithmetic of their type.

    Attributes:
        kernel: name of the target's kernel that implements the approximation.
        text: one sentence that names the layers and what is computed instead.
        fidelity: `documented`, `inferred` or `confirmed`: certainty of what is computed, not of whether the device
            approximates.
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


@frozen
class Arithmetic:
    """The arithmetic of one computation type on a device.

    Attributes:
        precision: the computation type.
        accumulator: type of the accumulator.
        rounds: where results are rounded to the tensor's type: `group` (once, at the end of a fused group) or `layer`.
        rounding: the rounding mode, or its name; for INT8 also a numpy function, see `RoundingFunction`.
        fidelity: `documented`, `inferred` or `confirmed`.
        source: document and section, or "our choice, because ...".
        rounding_since: software version to the rounding mode from that version on, if it changed; the earliest entry
            also applies to earlier versions.
        weight_rounding: rounding of weights that the builder quantizes. None: as `rounding`.
        weight_rounding_since: weight rounding by software version, as `rounding_since`.
        approximations: layers of this type that kernels of the target compute differently.

    Raises:
        UnknownNameError: No rounding mode has the given name.
        PluginError: A rounding is neither a mode nor a function, or a function is given for a type other than INT8.
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
        """All declared roundings, of results and of weights."""
        own = (self.rounding, *self.rounding_since.values(), *self.weight_rounding_since.values())
        return own if self.weight_rounding is None else (*own, self.weight_rounding)

    def rounding_for(self, software: tuple[int, ...]) -> Rounding:
        """Return the rounding mode of a software version; `rounding` for the empty version."""
        return _mode_for(software, self.rounding_since, self.rounding)

    def weight_rounding_for(self, software: tuple[int, ...]) -> Rounding:
        """Return the rounding mode of weights that are quantized at build time."""
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
    """Return the rounding of a device's weights in a computation type; half to even if undeclared."""
    found = arithmetic.get(precision)
    return RoundingMode.HALF_TO_EVEN if found is None else found.weight_rounding_for(software)


def integer_rounding(arithmetic: Mapping[DataType, Arithmetic], software: tuple[int, ...]) -> Rounding:
    """Return the rounding to whole numbers of a device in INT8.

    Default: half to even, as ONNX defines quantization, if the device declares no INT8 arithmetic.

    Args:
        arithmetic: arithmetic of the device, by computation type.
        software: software version; empty for the newest.
    """
    record = arithmetic.get(DataType.INT8)
    return RoundingMode.HALF_TO_EVEN if record is None else record.rounding_for(software)
