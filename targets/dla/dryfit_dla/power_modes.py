"""Clocks of the boards with a DLA, by power mode.

Watts in a mode's name are a budget of the whole module, not what the DLA takes: no energy follows from them.
`dryfit_dla.cost.energy` has what does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dryfit.target.power_mode import PowerMode

_MHZ = 1e6
_PEAK = "published peak of both DLAs on Jetson AGX Orin 64 GB (105, 92, 90 and 40 sparse INT8 TOPS), by 32768 MAC/cycle"
_BRIEF = "peak of the product brief, less the GPU's, by the DLA's 16384 sparse MAC/cycle"
_NVPMODEL = "clock limits in NVIDIA's nvpmodel configuration of the module, as Jetson Linux installs it"
_GUIDE = "Jetson Linux developer guide, Power Management for Jetson Xavier: supported modes and power efficiency"


def _mode(name: str, clock: float, memory: float, source: str, fidelity: str = "inferred") -> PowerMode:
    return PowerMode(name, clock * _MHZ, memory * _MHZ, source, fidelity)


POWER_MODES: Mapping[str, Sequence[PowerMode]] = {
    "agx-orin-64": (
        _mode("MAXN", 1600, 3200, "Jetson AGX Orin 64 GB, product brief: the DLA's largest clock", "documented"),
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
        _mode("MAXN", 1395.2, 2133, "Jetson AGX Xavier: 11.4 TOPS by two cores of 2048 MAC/cycle", "documented"),
        _mode("30W", 1050, 1600, _GUIDE),
        _mode("15W", 750, 1333, _GUIDE),
        _mode("10W", 550, 1066, _GUIDE),
    ),
    "xavier-nx": (_mode("15W", 1100, 1600, _GUIDE), _mode("10W", 900, 1600, _GUIDE)),
}
"""Platform to its power modes, the default first."""

_NO_CLOCKS = "no clock of the DLA is known to us in other modes"
NOTES: Mapping[str, str] = {
    "agx-orin-64": _NO_CLOCKS,
    "agx-orin-32": _NO_CLOCKS,
    "orin-nx-16": f"{_NO_CLOCKS}, such as those of Super mode (40W, MAXN_SUPER) in JetPack 6.2",
    "orin-nx-8": f"{_NO_CLOCKS}, such as those of Super mode (40W, MAXN_SUPER) in JetPack 6.2",
    "orin-nano": "the board has no DLA; `--device GPU --platform orin-nano` has modes",
    "agx-xavier": f"{_NO_CLOCKS}; variants of a mode that differ in CPU cores alone, such as 30W ALL, count as one",
    "xavier-nx": f"{_NO_CLOCKS}, such as the 20W modes of JetPack 4.6; variants that differ in CPU cores alone count "
    "as one",
}
"""Platform to why it has no other modes."""
