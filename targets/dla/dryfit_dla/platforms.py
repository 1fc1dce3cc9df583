"""Boards with a DLA (and one without), and the software versions that the rules know.

Source: product pages of NVIDIA Jetson and DRIVE for cores; JetPack and DRIVE OS release notes for versions. The last
TensorRT for Xavier is 8.5; TensorRT 11 has no DLA so far.
"""

from __future__ import annotations

from dryfit.target.target import Platform
from dryfit_dla.power_modes import NOTES, POWER_MODES

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
