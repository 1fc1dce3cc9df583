"""Which variant of each device a build is for: platform, power mode, software version, DLA core."""

from __future__ import annotations

from dryfit.builder.config.enumerations import DeviceType, software_version, whole_number
from dryfit.errors import ConfigError
from dryfit.plugins import registry
from dryfit.target.power_mode import PowerMode
from dryfit.target.target import Platform


class ConfigPlatforms:
    """The part of a builder config that says which variant of each device is meant."""

    def __init__(self) -> None:
        self._platforms: dict[str, str] = {}
        self._software: dict[str, str] = {}
        self._dla_core = -1
        self._power_mode: str | None = None

    def set_platform(self, device: str, platform: str) -> None:
        """Choose a device's variant, such as `set_platform("DLA", "agx-orin-64")`.

        Raises:
            UnknownNameError: the device, or its platform, does not exist.
        """
        target = registry.target(device)
        self._platforms[target.device] = target.platform(platform).name

    def platform(self, device: str) -> Platform:
        """The variant of a device: the one that was set, that of the board that was set for another, or its first."""
        target = registry.target(device)
        boards = {platform.name for platform in target.platforms}
        same_board = (name for name in self._platforms.values() if name in boards)
        return target.platform(self._platforms.get(target.device) or next(same_board, None))

    @property
    def power_mode(self) -> str | None:
        """Power mode of the board that estimates reckon with, such as `MAXN`; None for each platform's default.

        The platform may still change: whether it has this power mode is checked when it is used.
        """
        return self._power_mode

    @power_mode.setter
    def power_mode(self, name: str | None) -> None:
        if name is not None and not isinstance(name, str):
            raise ConfigError("A power mode has a name", where="power_mode", found=repr(name))
        self._power_mode = name

    def clocks(self, device: str) -> PowerMode | None:
        """The power mode that estimates for a device reckon with; None where its platform states none.

        Raises:
            UnknownNameError: the platform has power modes, and not the one that was set.
        """
        platform = self.platform(device)
        return platform.power_mode(self.power_mode) if platform.power_modes else None

    def set_software(self, device: str, version: str) -> None:
        """Choose the software version whose rules hold: `set_software("DLA", "10.3")`, or by a name, `"jetpack-6.1"`.

        The platform may still change: whether it has this version is checked when the version is used.

        Raises:
            UnknownNameError: the device does not exist.
            ConfigError: the version is malformed, or no release has this name.
        """
        target = registry.target(device)
        self._software[target.device] = software_version(version, f"device {target.device}")

    def software(self, device: str) -> tuple[int, ...]:
        """The software version of a device: the one that was set, or the newest that the platform has.

        Raises:
            ConfigError: the platform does not have the version that was set.
        """
        target = registry.target(device)
        return target.software(self._software.get(target.device), self.platform(device))

    @property
    def DLA_core(self) -> int:
        """Which DLA of the platform runs the engine; -1 where none was chosen."""
        return self._dla_core

    @DLA_core.setter
    def DLA_core(self, core: int) -> None:
        core = whole_number(core, "DLA core")
        platform = self.platform(DeviceType.DLA)
        if not -1 <= core < platform.cores:
            raise ConfigError(
                "The platform has no such DLA core",
                where=f"platform {platform.name}",
                found=core,
                allowed=f"0 to {platform.cores - 1}, or -1 for none" if platform.cores else "-1: it has no DLA",
                source=platform.source or None,
            )
        self._dla_core = core
