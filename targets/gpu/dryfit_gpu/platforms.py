"""The GPUs of the boards that have a DLA, for estimates of cost; no rule of placement depends on them.

Source: peaks by power mode of Jetson AGX Orin 64 GB as published (171, 109, 41 and 14 sparse INT8 TOPS); clocks and
memories of the other boards from their product briefs.
"""

from __future__ import annotations

from dryfit.target.power_mode import PowerMode
from dryfit.target.target import Platform

_MHZ = 1e6
_PEAK = "published peak of the power mode, expressed as a clock of the whole GPU"
_BRIEF = "product brief of the board"
_NVPMODEL = (
    "clock limits in the module's nvpmodel configuration, as installed by Jetson Linux; clusters that are "
    "switched off count as a lower clock"
)
_GUIDE = "Jetson Linux developer guide, Power Management for Jetson Xavier: supported modes and power efficiency"


def _mode(name: str, clock: float, memory: float, source: str = _BRIEF, *aliases: str) -> PowerMode:
    return PowerMode(name, clock * _MHZ, memory * _MHZ, source, "inferred", aliases)


def _board(name: str, title: str, *modes: PowerMode, aliases: tuple[str, ...] = ()) -> Platform:
    note = "we have no GPU clocks for other modes"
    return Platform(
        name, "generic", f"GPU of {title}", aliases=aliases, source=_BRIEF, power_modes=modes, power_mode_note=note
    )


PLATFORMS = (
    Platform("generic", "generic", "NVIDIA GPU", source="no rule depends on the GPU's generation yet"),
    _board(
        "agx-orin-64",
        "Jetson AGX Orin 64 GB",
        _mode("MAXN", 1305, 3200, _PEAK),
        _mode("50W", 832, 3200, _PEAK),
        _mode("30W", 313, 3200, _PEAK),
        _mode("15W", 107, 2133, _PEAK),
        aliases=("orin", "agx-orin"),
    ),
    _board(
        "agx-orin-32",
        "Jetson AGX Orin 32 GB",
        _mode("MAXN", 930, 3200),
        _mode("40W", 816, 3200, _NVPMODEL),
        _mode("30W", 612 * 4 / 7, 3200, _NVPMODEL),
        _mode("15W", 408 * 3 / 7, 2133, _NVPMODEL),
    ),
    _board(
        "orin-nx-16",
        "Jetson Orin NX 16 GB",
        _mode("MAXN", 918, 3200),
        _mode("25W", 408, 3200, _NVPMODEL),
        _mode("15W", 612 * 2 / 4, 3200, _NVPMODEL),
        _mode("10W", 612 * 2 / 4, 2133, _NVPMODEL),
        aliases=("orin-nx",),
    ),
    _board(
        "orin-nx-8",
        "Jetson Orin NX 8 GB",
        _mode("MAXN", 765, 3200),
        _mode("20W", 408, 3200, _NVPMODEL),
        _mode("15W", 612 * 2 / 4, 3200, _NVPMODEL),
        _mode("10W", 612 * 2 / 4, 2133, _NVPMODEL),
    ),
    _board(
        "orin-nano",
        "Jetson Orin Nano",
        _mode("MAXN", 625, 2133, _BRIEF, "15W"),
        _mode("7W", 408 * 2 / 4, 2133, _NVPMODEL),
    ),
    _board(
        "agx-xavier",
        "Jetson AGX Xavier",
        _mode("MAXN", 1377, 2133),
        _mode("30W", 900, 1600, _GUIDE),
        _mode("15W", 670, 1333, _GUIDE),
        _mode("10W", 520, 1066, _GUIDE),
        aliases=("xavier",),
    ),
    _board("xavier-nx", "Jetson Xavier NX", _mode("15W", 1100, 1600, _GUIDE), _mode("10W", 800, 1600, _GUIDE)),
)
"""The first is the default."""
