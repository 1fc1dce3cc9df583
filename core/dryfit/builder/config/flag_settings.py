"""The build flags and quantization flags of a builder config."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import TypeVar

import attrs

from dryfit.builder.config.enumerations import BuilderFlag, QuantizationFlag, member, whole_number
from dryfit.errors import ConfigError
from dryfit.network.attribute_names import KnownAttributes

FlagT = TypeVar("FlagT", bound=IntEnum)


@attrs.define(eq=False, repr=False, slots=False)
class FlagSettings(KnownAttributes):
    """The part of a builder config that holds flags."""

    _flags: set[BuilderFlag] = attrs.field(init=False, factory=lambda: {BuilderFlag.TF32})
    _quantization_flags: set[QuantizationFlag] = attrs.field(init=False, factory=set)

    def set_flag(self, flag: BuilderFlag) -> None:
        """Set a flag.

        Raises:
            ConfigError: The flag does not exist.
        """
        self._flags.add(_flag(flag))

    def clear_flag(self, flag: BuilderFlag) -> None:
        """Clear a flag."""
        self._flags.discard(_flag(flag))

    def get_flag(self, flag: BuilderFlag) -> bool:
        """Return whether a flag is set."""
        return _flag(flag) in self._flags

    @property
    def flags(self) -> int:
        """All flags as a bit mask of `1 << flag`; default: TF32 only."""
        return _mask(self._flags)

    @flags.setter
    def flags(self, mask: int) -> None:
        self._flags = _flags_of(BuilderFlag, whole_number(mask, "mask of flags"), "builder flag")

    def set_quantization_flag(self, flag: QuantizationFlag) -> None:
        """Set a quantization flag.

        Raises:
            ConfigError: The flag does not exist.
        """
        self._quantization_flags.add(_quantization_flag(flag))

    def clear_quantization_flag(self, flag: QuantizationFlag) -> None:
        """Clear a quantization flag."""
        self._quantization_flags.discard(_quantization_flag(flag))

    def get_quantization_flag(self, flag: QuantizationFlag) -> bool:
        """Return whether a quantization flag is set."""
        return _quantization_flag(flag) in self._quantization_flags

    @property
    def quantization_flags(self) -> int:
        """All quantization flags as a bit mask of `1 << flag`; default: none."""
        return _mask(self._quantization_flags)

    @quantization_flags.setter
    def quantization_flags(self, mask: int) -> None:
        mask = whole_number(mask, "mask of quantization flags")
        self._quantization_flags = _flags_of(QuantizationFlag, mask, "quantization flag")


def _flag(flag: object) -> BuilderFlag:
    # A real flag is the rule, and flags are asked for often.
    return flag if isinstance(flag, BuilderFlag) else member(BuilderFlag, flag, "builder flag")


def _quantization_flag(flag: object) -> QuantizationFlag:
    return member(QuantizationFlag, flag, "quantization flag")


def _mask(flags: Iterable[IntEnum]) -> int:
    return sum(1 << flag for flag in flags)


def _flags_of(kind: type[FlagT], mask: int, words: str) -> set[FlagT]:
    """Return the flags of a bit mask.

    Raises:
        ConfigError: A bit does not correspond to a flag.
    """
    known = _mask(kind)
    if mask & ~known:
        raise ConfigError(
            f"The mask has bits that are not {words}s",
            found=bin(mask),
            allowed=bin(known),
            remedy=f"Combine {words}s as 1 << int(flag)",
        )
    return {flag for flag in kind if mask >> flag & 1}
