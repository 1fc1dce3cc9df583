"""Variants of a device, and how partition treats the device: parts of the record that makes one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from dryfit.errors import UnknownNameError

if TYPE_CHECKING:
    from dryfit.target.power_mode import PowerMode


@attrs.frozen
class Platform:
    """One variant of a device.

    Attributes:
        name: such as `agx-orin-64`.
        family: what rules compare with, such as `orin`.
        title: for people, such as `Jetson AGX Orin 64 GB`.
        cores: how many of the device it has.
        software: (first, last) version of the software that supports it; None for no bound.
        aliases: other names, such as `orin`.
        source: document and section.
        power_modes: the clocks that estimates can reckon with; the first is the default.
        power_mode_note: why there are no others, for the error about one that is missing; "" for no reason.
    """

    name: str
    family: str
    title: str
    cores: int = 1
    software: tuple[tuple[int, ...] | None, tuple[int, ...] | None] = (None, None)
    aliases: Sequence[str] = ()
    source: str = ""
    power_modes: Sequence[PowerMode] = ()
    power_mode_note: str = ""

    def power_mode(self, name: str | None) -> PowerMode | None:
        """A power mode by name or alias, in any case; the default for None, or None where the platform states none.

        Raises:
            UnknownNameError: the platform has no such power mode.
        """
        if name is None:
            return next(iter(self.power_modes), None)
        known = {each.lower(): mode for mode in self.power_modes for each in (mode.name, *mode.aliases)}
        if name.lower() not in known:
            names = sorted(mode.name for mode in self.power_modes)
            told = f"{', '.join(names) or 'none'}; {self.power_mode_note}" if self.power_mode_note else None
            raise UnknownNameError(f"power mode of {self.name}", name, names, told=told)
        return known[name.lower()]


@attrs.frozen
class SegmentRules:
    """How partition treats a device.

    Attributes:
        same_batch: all layers of a segment have the same batch (the product of all but the last three dimensions).
        max_segments: software version from which it holds, to the largest number of segments a core can load; further
            segments move to the fallback device. Empty means no limit.
        is_host: whether this is the CPU that emulates the others.
        compiles_dynamic_shapes: whether the target's segment compiler takes segments with dynamic shapes. Where it does
            not, such a segment moves to the fallback device, or is refused. Kernels run any.
        cuts_to_fit: what becomes of a segment that needs more of a memory pool than there is. True: it is cut into
            segments that fit, and only a layer that does not fit alone moves to the fallback device. False: it moves as
            a whole, as a candidate for the DLA does.
        source: document and section.
    """

    same_batch: bool = False
    max_segments: Mapping[tuple[int, ...], int] = attrs.field(factory=dict)
    is_host: bool = False
    compiles_dynamic_shapes: bool = False
    cuts_to_fit: bool = True
    source: str = ""

    def segment_limit(self, software: tuple[int, ...]) -> int | None:
        """The largest number of segments for a software version; None for no limit."""
        fitting = [limit for since, limit in sorted(self.max_segments.items()) if software >= since]
        return fitting[-1] if fitting else None
