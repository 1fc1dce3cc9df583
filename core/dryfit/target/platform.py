"""Platforms of a device, and how partitioning treats it: parts of the record that defines a device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from dryfit.attrs_classes import frozen
from dryfit.errors import UnknownNameError

if TYPE_CHECKING:
    from dryfit.target.power_mode import PowerMode


@frozen
class Platform:
    """A variant of a device.

    Attributes:
        name: name of the platform, such as `agx-orin-64`.
        family: family that rules compare with, such as `orin`.
        title: display name, such as `Jetson AGX Orin 64 GB`.
        cores: number of cores of the device.
        software: (first, last) software version that supports the platform; None for no bound.
        aliases: other names, such as `orin`.
        source: document and section.
        power_modes: clock settings available to estimates; the first is the default.
        power_mode_note: why there are no other power modes, shown in the error for an unknown mode; "" for no reason.
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
        """Return a power mode by name or alias, ignoring case; for None, the default mode (or None if there are none).

        Raises:
            UnknownNameError: The platform has no such power mode.
        """
        if name is None:
            return next(iter(self.power_modes), None)
        known = {each.lower(): mode for mode in self.power_modes for each in (mode.name, *mode.aliases)}
        if name.lower() not in known:
            names = sorted(mode.name for mode in self.power_modes)
            told = f"{', '.join(names) or 'none'}; {self.power_mode_note}" if self.power_mode_note else None
            raise UnknownNameError(f"power mode of {self.name}", name, names, told=told)
        return known[name.lower()]


@frozen
class SegmentRules:
    """Rules that partitioning follows for a device.

    Attributes:
        same_batch: whether all layers of a segment must have the same batch (the product of all but the last three
            dimensions).
        max_segments: first software version to the maximum number of segments that a core can load from that version
            on; further segments move to the fallback device. Empty: no limit.
        is_host: whether this is the CPU that emulates the other devices.
        compiles_dynamic_shapes: whether the target's segment compiler supports dynamic shapes. If not, such a segment
            moves to the fallback device or is rejected. Kernels support all shapes.
        cuts_to_fit: handling of a segment that exceeds a memory pool. True: it is split into segments that fit, and
            only a layer that does not fit alone moves to the fallback device. False: the whole segment moves, as DLA
            candidates do.
        source: document and section.
    """

    same_batch: bool = False
    max_segments: Mapping[tuple[int, ...], int] = attrs.field(factory=dict)
    is_host: bool = False
    compiles_dynamic_shapes: bool = False
    cuts_to_fit: bool = True
    source: str = ""

    def segment_limit(self, software: tuple[int, ...]) -> int | None:
        """Return the maximum number of segments for a software version; None for no limit."""
        fitting = [limit for since, limit in sorted(self.max_segments.items()) if software >= since]
        return fitting[-1] if fitting else None
