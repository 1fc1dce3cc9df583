"""The accelerators, and the systems around them that Arm's compiler knows: what a platform and a power mode stand for.

A platform is an accelerator with a memory mode, which says where constants, arena and cache lie; a power mode is a
system configuration: clocks, and how fast each memory is. numpy is not imported, so that targets are listed fast.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from dryfit.target.power_mode import PowerMode
from dryfit.target.target import Platform

VELA = "Arm Vela 5.2.0"
_INI = f"{VELA}, config_files/Arm/vela.ini"


@attrs.frozen
class Accelerator:
    """An Ethos-U with a number of multipliers.

    Attributes:
        name: such as `u55-128`.
        macs: multiply-accumulates per cycle and core, on 8 bits.
        cores: cores that share the channels of a result.
        block: height, width and channels of the results that the array makes at a time.
        unit_width: channels of the input that a multiplier tree sums per cycle.
        element_cycles: cycles per result of the output unit for: a plain one, a product, a sum, a maximum, a table.
    """

    name: str
    macs: int
    cores: int
    block: tuple[int, int, int]
    element_cycles: tuple[float, float, float, float, float]
    unit_width: int = 8

    @property
    def family(self) -> str:
        """Arm's name of the generation: `u55`, `u65` or `u85`."""
        return self.name.partition("-")[0]


_SOURCE = f"{VELA}, architecture_features: microblocks and cycles per element"
ACCELERATORS = (
    Accelerator("u55-32", 32, 1, (1, 1, 4), (2.0, 3.0, 6.0, 1.0, 2.0)),
    Accelerator("u55-64", 64, 1, (1, 1, 8), (1.0, 1.5, 3.0, 0.5, 1.0)),
    Accelerator("u55-128", 128, 1, (1, 2, 8), (0.5, 0.75, 1.5, 0.25, 1.0)),
    Accelerator("u55-256", 256, 1, (2, 2, 8), (0.25, 0.375, 0.75, 0.125, 1.0)),
    Accelerator("u65-256", 256, 1, (2, 2, 8), (0.25, 0.375, 0.75, 0.125, 1.0)),
    Accelerator("u65-512", 256, 2, (2, 2, 8), (0.125, 0.1875, 0.375, 0.0625, 0.5)),
    Accelerator("u85-128", 128, 1, (1, 1, 16), (0.5, 0.75, 1.5, 0.25, 1.0)),
    Accelerator("u85-256", 256, 1, (1, 2, 16), (0.25, 0.375, 0.75, 0.125, 1.0)),
    Accelerator("u85-512", 512, 1, (2, 2, 16), (0.125, 0.1875, 0.375, 0.0625, 0.5)),
    Accelerator("u85-1024", 1024, 1, (2, 2, 32), (0.0625, 0.09375, 0.1875, 0.03125, 0.25)),
    Accelerator("u85-2048", 2048, 1, (4, 2, 32), (0.03125, 0.046875, 0.09375, 0.015625, 0.125)),
)


@attrs.frozen
class System:
    """A system configuration of Vela.

    Attributes:
        name: Vela's name.
        clock_hz: clock of the accelerator.
        sram_bytes_per_cycle, sram_latency: rate of the SRAM, over all its ports, and cycles until a burst begins.
        other: `flash` or `dram`: the second memory.
        other_bytes_per_cycle, other_latency: the same of it.
    """

    name: str
    clock_hz: float
    sram_bytes_per_cycle: float
    sram_latency: int
    other: str
    other_bytes_per_cycle: float
    other_latency: int


_U55, _WIDE = 8, 16
"""Bytes per cycle of an AXI port. Source: Vela, architecture_features."""
SYSTEMS = (
    System("Ethos_U55_High_End_Embedded", 500e6, _U55, 32, "flash", _U55 * 0.125, 64),
    System("Ethos_U55_Deep_Embedded", 200e6, _U55, 32, "flash", _U55 * 0.0625, 64),
    System("Ethos_U65_High_End", 1e9, _WIDE, 32, "dram", _WIDE * 0.234375, 500),
    System("Ethos_U65_Embedded", 500e6, _WIDE, 32, "flash", _WIDE * 0.0625, 64),
    System("Ethos_U65_Mid_End", 500e6, _WIDE, 32, "dram", _WIDE * 0.46875, 500),
    System("Ethos_U65_Client_Server", 1e9, _WIDE, 32, "dram", _WIDE * 0.75, 500),
    System("Ethos_U85_SYS_DRAM_Mid", 1e9, _WIDE * 2, 32, "dram", _WIDE * 0.75, 500),
    System("Ethos_U85_SYS_DRAM_Low", 500e6, _WIDE * 2, 16, "dram", _WIDE * 0.46875, 500),
    System("Ethos_U85_SYS_DRAM_High", 1e9, _WIDE * 4, 32, "dram", _WIDE * 2 * 0.75, 500),
    System("Ethos_U85_SYS_Flash_High", 500e6, _WIDE * 2, 32, "flash", _WIDE * 0.0625, 64),
    System("Ethos_U85_SYS_Flash_Low", 200e6, _WIDE * 2, 8, "flash", _WIDE * 0.0625, 32),
)

CACHES = {"Dedicated_Sram_256KB": 256 << 10, "Dedicated_Sram_384KB": 384 << 10, "Dedicated_Sram_512KB": 512 << 10}
"""Memory mode to bytes of its SRAM, where the arena lies in DRAM and the SRAM is a cache."""
MODES = {
    "u55": ("Shared_Sram", "Sram_Only"),
    "u65": ("Dedicated_Sram_384KB", "Dedicated_Sram_256KB", "Dedicated_Sram_512KB", "Shared_Sram", "Sram_Only"),
    "u85": ("Dedicated_Sram_384KB", "Dedicated_Sram_256KB", "Dedicated_Sram_512KB", "Shared_Sram", "Sram_Only"),
}
"""Family to memory modes, the default first. A U55 has no mode with the arena in a second memory that it writes."""


def _platform_name(accelerator: Accelerator, mode: str) -> str:
    return f"{accelerator.name}-{mode.lower().replace('_', '-')}"


def _power_modes(family: str) -> Sequence[PowerMode]:
    return [
        PowerMode(one.name, one.clock_hz, one.clock_hz, source=_INI, aliases=[one.name.split("_", 2)[2]])
        for one in SYSTEMS
        if f"_{family.upper()}_" in one.name
    ]


PLATFORMS = [
    Platform(
        name=_platform_name(one, mode),
        family=one.family,
        title=f"Ethos-{one.name.upper()}, memory mode {mode}",
        aliases=[one.name] if mode == MODES[one.family][0] else (),
        source=f"{_INI}; {_SOURCE}",
        power_modes=_power_modes(one.family),
    )
    for one in sorted(ACCELERATORS, key=lambda one: one.name != "u55-128")
    for mode in MODES[one.family]
]
MODE_OF = {_platform_name(one, mode): (one, mode) for one in ACCELERATORS for mode in MODES[one.family]}
"""Platform name to its accelerator and memory mode."""


def system(power_mode: PowerMode | None, family: str) -> System:
    """Return the system configuration of a power mode; for None that of the family's default."""
    name = _power_modes(family)[0].name if power_mode is None else power_mode.name
    return next(one for one in SYSTEMS if one.name == name)
