"""Boards with a DLA (and one without), the clocks of their power modes, and the software versions that the rules know.

Source: product pages of NVIDIA Jetson and DRIVE for cores; JetPack and DRIVE OS release notes for versions. The last
TensorRT for Xavier is 8.5; TensorRT 11 has no DLA so far.

Watts in a mode's name are a budget of the whole module, not what the DLA takes: no energy follows from them.
`dryfit_dla.cost.estimate` has what does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dryfit.target.power_mode import PowerMode
from dryfit.target.target import Platform

_MHZ = 1e6
_PEAK = (
    "published peak of both DLAs on Jetson AGX Orin 64 GB (105, 92, 90 and 40 sparse INT8 TOPS), divided by "
    "32768 MAC/cycle"
)
_BRIEF = "peak of the product brief, less the GPU's, divided by the DLA's 16384 sparse MAC/cycle"
_NVPMODEL = "clock limits in the module's nvpmodel configuration, as installed by Jetson Linux"
_GUIDE = "Jetson Linux developer guide, Power Management for Jetson Xavier: supported modes and power efficiency"


def _mode(name: str, clock: float, memory: float, source: str, fidelity: str = "inferred") -> PowerMode:
    return PowerMode(name, clock * _MHZ, memory * _MHZ, source, fidelity)


POWER_MODES: Mapping[str, Sequence[PowerMode]] = {
    "agx-orin-64": (
        _mode("MAXN", 1600, 3200, "Jetson AGX Orin 64 GB, product brief: maximum DLA clock", "documented"),
        _mode("50W", 1404, 3200, _PEAK),
        _mode("30W", 1373, 3200, _PEAK),
        _mode("15W", 614, 2133, _PEAK),
    ),
    "agx-orin-32": (
        _mode("MAXN", 1404, 3200, f"{_BRIEF} (200 TOPS, 92 of them DLA)"),
        _mode("40W", 1228.8, 3200, f"{_NVPMODEL} (p3701-0004)", "documented"),
        _mode("30W", 1369.6, 3200, f"{_NVPMODEL} (p3701-0004)", "documented"),
        _mode("15W", 614.4, 2133, f"{_NVPMODEL} (p3701-0004)", "documented"),
    ),
    "orin-nx-16": (
        _mode("MAXN", 614, 3200, f"{_BRIEF} (100 TOPS, 40 of them DLA)"),
        _mode("25W", 614.4, 3200, f"{_NVPMODEL} (p3767-0000)", "documented"),
        _mode("15W", 614.4, 3200, f"{_NVPMODEL} (p3767-0000)", "documented"),
        _mode("10W", 153.6, 2133, f"{_NVPMODEL} (p3767-0000; the second core runs at 115 MHz)", "documented"),
    ),
    "orin-nx-8": (
        _mode("MAXN", 614, 3200, f"{_BRIEF} (70 TOPS, 20 of them DLA)"),
        _mode("20W", 614.4, 3200, f"{_NVPMODEL} (p3767-0001)", "documented"),
        _mode("15W", 614.4, 3200, f"{_NVPMODEL} (p3767-0001)", "documented"),
        _mode("10W", 153.6, 2133, f"{_NVPMODEL} (p3767-0001)", "documented"),
    ),
    "orin-nano": (),
    "agx-xavier": (
        _mode("MAXN", 1395.2, 2133, "Jetson AGX Xavier: 11.4 TOPS from two cores of 2048 MAC/cycle", "documented"),
        _mode("30W", 1050, 1600, _GUIDE),
        _mode("15W", 750, 1333, _GUIDE),
        _mode("10W", 550, 1066, _GUIDE),
    ),
    "xavier-nx": (_mode("15W", 1100, 1600, _GUIDE), _mode("10W", 900, 1600, _GUIDE)),
}
"""Platform to its power modes, the default first."""

_NO_CLOCKS = "we have no DLA clocks for other modes"
NOTES: Mapping[str, str] = {
    "agx-orin-64": _NO_CLOCKS,
    "agx-orin-32": _NO_CLOCKS,
    "orin-nx-16": f"{_NO_CLOCKS}, such as the Super modes (40W, MAXN_SUPER) of JetPack 6.2",
    "orin-nx-8": f"{_NO_CLOCKS}, such as the Super modes (40W, MAXN_SUPER) of JetPack 6.2",
    "orin-nano": "the board has no DLA; `--device GPU --platform orin-nano` has power modes",
    "agx-xavier": f"{_NO_CLOCKS}; modes that differ only in CPU cores, such as 30W ALL, count as one",
    "xavier-nx": f"{_NO_CLOCKS}, such as the 20W modes of JetPack 4.6; modes that differ only in CPU cores count "
    "as one",
}
"""Platform to why it has no other modes."""


_ORIN = "Orin: TensorRT 8.4 (JetPack 5.0) to 10.x; TensorRT 11 has no DLA"
_XAVIER = (
    "Xavier: TensorRT 7.1 (JetPack 4.4) to 8.5 (JetPack 5.1); rules of 7.1 to 8.1 are those of their headers and of "
    "reports of builders, and those of 8.2 where these say nothing"
)

SOFTWARE_VERSIONS = (
    (7, 1),
    (8, 0),
    (8, 2),
    (8, 4),
    (8, 5),
    (8, 5, 10),
    (8, 6),
    (8, 6, 10),
    (8, 6, 11),
    (8, 6, 12),
    (10, 0),
    (10, 3),
    (10, 5),
    (10, 7),
    (10, 11),
    (10, 15),
    (10, 16),
)
"""TensorRT versions of JetPack and DRIVE OS, and those at which a rule or a parser feature changed."""


def _orin(name: str, title: str, cores: int, *aliases: str) -> Platform:
    return Platform(name, "orin", title, cores, ((8, 4), None), aliases, _ORIN, POWER_MODES[name], NOTES[name])


def _xavier(name: str, title: str, cores: int, *aliases: str) -> Platform:
    software = ((7, 1), (8, 5, 10))
    return Platform(name, "xavier", title, cores, software, aliases, _XAVIER, POWER_MODES[name], NOTES[name])


PLATFORMS = (
    _orin("agx-orin-64", "Jetson AGX Orin 64 GB", 2, "orin", "agx-orin"),
    _orin("agx-orin-32", "Jetson AGX Orin 32 GB", 2),
    _orin("orin-nx-16", "Jetson Orin NX 16 GB", 2, "orin-nx"),
    _orin("orin-nx-8", "Jetson Orin NX 8 GB", 1),
    _orin("orin-nano", "Jetson Orin Nano", 0),
    _xavier("agx-xavier", "Jetson AGX Xavier", 2, "xavier"),
    _xavier("xavier-nx", "Jetson Xavier NX", 2),
)
"""The first is the default."""

BOARDS_WITHOUT = {"agx-thor": "Jetson AGX Thor", "thor": "Jetson AGX Thor"}
"""Source: TensorRT 11.4 release notes, platforms with a DLA: Thor has none."""
