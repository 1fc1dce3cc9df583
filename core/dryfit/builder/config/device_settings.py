"""The devices of a builder config: the device of each layer, and the platform of each device."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence

import attrs

from dryfit.builder.config.enumerations import BuilderFlag, DeviceType, software_version, whole_number
from dryfit.builder.config.flag_settings import FlagSettings
from dryfit.errors import ConfigError, UnknownNameError
from dryfit.network.layer import Layer
from dryfit.network.network import Network
from dryfit.plugins import registry
from dryfit.plugins.overlays import installed_overlays, require_known_overlays
from dryfit.target.memory_pools import MemoryPool
from dryfit.target.overlays import Overlay, overlaid
from dryfit.target.power_mode import PowerMode
from dryfit.target.target import Platform, Target


@attrs.define(eq=False, repr=False, slots=False)
class DeviceSettings(FlagSettings):
    """The part of a builder config that assigns layers to devices and selects platforms, software and memory limits.

    It includes the flags, because GPU fallback is one of them.
    """

    _fallback: str | None = attrs.field(init=False, default=None)
    _device_types: weakref.WeakKeyDictionary[Layer, str] = attrs.field(init=False, factory=weakref.WeakKeyDictionary)
    _default_device: str = attrs.field(init=False, default=str(DeviceType.GPU))
    _platforms: dict[str, str] = attrs.field(init=False, factory=dict)
    _software: dict[str, str] = attrs.field(init=False, factory=dict)
    _dla_core: int = attrs.field(init=False, default=-1)
    _power_mode: str | None = attrs.field(init=False, default=None)
    _pool_limits: dict[str, int] = attrs.field(init=False, factory=dict)
    _overlays: tuple[Overlay, ...] = attrs.field(init=False, default=())

    # Where layers go --------------------------------------------------------------------------------------------------

    @property
    def fallback_device(self) -> str | None:
        """Device for layers that cannot run on their assigned device; None: such a layer is an error."""
        return self._fallback or (str(DeviceType.GPU) if self.get_flag(BuilderFlag.GPU_FALLBACK) else None)

    def allow_fallback(self, device: str | None) -> None:
        """Set the fallback device for layers that cannot run on their assigned device; None disables fallback.

        Setting the GPU is the same as setting the flag `GPU_FALLBACK`.

        Raises:
            UnknownNameError: No installed package provides the device.
        """
        name = None if device is None else registry.target(device).device
        self._fallback = None if name == DeviceType.GPU else name
        self.allow_gpu_fallback(name == DeviceType.GPU)

    def allow_gpu_fallback(self, allow: bool) -> None:
        """Set or clear the flag `GPU_FALLBACK`; TensorRT's `allowGPUFallback`."""
        (self.set_flag if allow else self.clear_flag)(BuilderFlag.GPU_FALLBACK)

    @property
    def default_device_type(self) -> str:
        """Device of every layer without a device of its own; default: GPU."""
        return self._default_device

    @default_device_type.setter
    def default_device_type(self, device: str) -> None:
        self._default_device = registry.target(device).device

    def set_device_type(self, layer: Layer, device: str) -> None:
        """Assign a layer to a device, overriding the default.

        Raises:
            UnknownNameError: No installed package provides the device.
            ConfigError: The layer is not in a network.
        """
        require_network(layer)
        self._device_types[layer] = registry.target(device).device

    def get_device_type(self, layer: Layer) -> str:
        """Return the device of a layer: its own, or else the default. Support is not checked."""
        return self._device_types.get(layer, self._default_device)

    def is_device_type_set(self, layer: Layer) -> bool:
        """Return whether the layer has a device of its own."""
        return layer in self._device_types

    def reset_device_type(self, layer: Layer) -> None:
        """Remove a layer's own device, so that the default applies."""
        self._device_types.pop(layer, None)

    def explicit_device_types(self, network: Network) -> dict[str, str]:
        """Return device by layer name, in network order, for layers with a device of their own."""
        return {layer.name: self._device_types[layer] for layer in network.layers if layer in self._device_types}

    # What the devices are ---------------------------------------------------------------------------------------------

    def target(self, device: str) -> Target:
        """Return the target of a device as this config has it: with the overlays of its platform and software.

        Raises:
            UnknownNameError: No installed package provides the device, or an overlay names a rule that it lacks.
            ConfigError: An overlay is for another platform or software version, or two contradict each other.
        """
        target = registry.target(device)
        active = self._active_overlays(target)
        return overlaid(target, active) if active else target

    @property
    def overlays(self) -> Sequence[Overlay]:
        """What boards showed, as corrections of targets: see `dryfit.read_overlay`. Default: none.

        Overlays of installed packages are active, too, for the platform and the software version that they are for.
        """
        return self._overlays

    @overlays.setter
    def overlays(self, overlays: Iterable[Overlay]) -> None:
        found = tuple(overlays)
        require_known_overlays(found)
        self._overlays = found

    @property
    def overlay_labels(self) -> list[str]:
        """The active overlays of the devices that this config names, as answers and engines list them."""
        devices = {self._default_device, self.fallback_device or self._default_device, *self._device_types.values()}
        found = (self._active_overlays(registry.target(device)) for device in sorted(devices))
        return list(dict.fromkeys(one.label for overlays in found for one in overlays))

    def _active_overlays(self, target: Target) -> tuple[Overlay, ...]:
        """Those of the config that correct the target, and those of packages that are for its board.

        Raises:
            ConfigError: One of the config's is for another platform or software version.
        """
        given = [one for one in self._overlays if target.device in one.devices]
        brought = [one for one in installed_overlays() if target.device in one.devices]
        if not given and not brought:
            return ()
        platform, software = self.platform(target.device), self.software(target.device)
        for one in given:
            _require_board(one, target, platform, software)
        return tuple(given) + tuple(one for one in brought if _is_board(one, target, platform, software))

    def set_platform(self, device: str, platform: str) -> None:
        """Select the platform of a device, such as `set_platform("DLA", "agx-orin-64")`.

        Raises:
            UnknownNameError: The device or its platform does not exist.
        """
        target = registry.target(device)
        self._platforms[target.device] = target.platform(platform).name

    def platform(self, device: str) -> Platform:
        """Return the platform of a device: the one set for it, else the board of another device, else its first."""
        target = registry.target(device)
        boards = {platform.name for platform in target.platforms}
        same_board = (name for name in self._platforms.values() if name in boards)
        return target.platform(self._platforms.get(target.device) or next(same_board, None))

    @property
    def power_mode(self) -> str | None:
        """Power mode of the board for estimates, such as `MAXN`; None for the default of each platform.

        Whether the platform has this power mode is checked on use, because the platform may still change.
        """
        return self._power_mode

    @power_mode.setter
    def power_mode(self, name: str | None) -> None:
        if name is not None and not isinstance(name, str):
            raise ConfigError(
                "A power mode must be given by name",
                where="power_mode",
                found=repr(name),
                remedy='Pass the name as a string, such as "MAXN", or None for the default',
            )
        self._power_mode = name

    def clocks(self, device: str) -> PowerMode | None:
        """Return the power mode for estimates of a device; None if its platform has none.

        Raises:
            UnknownNameError: The platform has power modes, but not the one that was set.
        """
        platform = self.platform(device)
        return platform.power_mode(self.power_mode) if platform.power_modes else None

    def set_software(self, device: str, version: str) -> None:
        """Select the software version whose rules apply: `set_software("DLA", "10.3")`, or a name, `"jetpack-6.1"`.

        Whether the platform has this version is checked on use, because the platform may still change.

        Raises:
            UnknownNameError: The device does not exist.
            ConfigError: The version is malformed, or no release has this name.
        """
        target = registry.target(device)
        self._software[target.device] = software_version(version, f"device {target.device}")

    def software(self, device: str) -> tuple[int, ...]:
        """Return the software version of a device: the one that was set, else the newest of the platform.

        Raises:
            ConfigError: The platform does not have the version that was set.
        """
        target = registry.target(device)
        return target.software(self._software.get(target.device), self.platform(device))

    @property
    def DLA_core(self) -> int:
        """DLA core of the platform that runs the engine; -1 if none was selected."""
        return self._dla_core

    @DLA_core.setter
    def DLA_core(self, core: int) -> None:
        core = whole_number(core, "DLA core")
        platform = self.platform(DeviceType.DLA)
        if not -1 <= core < platform.cores:
            raise ConfigError(
                "The DLA core is out of range",
                where=f"platform {platform.name}",
                found=core,
                allowed=f"0 to {platform.cores - 1}, or -1 for none" if platform.cores else "-1 (no DLA)",
                source=platform.source or None,
                remedy="Choose one of these cores",
            )
        self._dla_core = core

    def set_memory_pool_limit(self, pool: str, pool_size: int) -> None:
        """Set the size limit of a memory pool, in bytes.

        Raises:
            UnknownNameError: No device has this pool.
            ConfigError: The device does not support this size.
        """
        _, found = _pool(pool)
        pool_size = whole_number(pool_size, f"limit of memory pool {found.name}")
        found.check_limit(pool_size)
        self._pool_limits[found.name] = pool_size

    def get_memory_pool_limit(self, pool: str, device: str | None = None) -> int | None:
        """Return the limit of a memory pool in bytes: the one set, else the platform's default. None: no limit.

        Args:
            pool: name of the pool.
            device: the device that has it. Default: all devices are searched.

        Raises:
            UnknownNameError: No device has this pool.
        """
        target, found = _pool(pool, device)
        platform = self.platform(target.device)
        return self._pool_limits.get(found.name, found.default_for(platform.family, platform.name))


def _is_board(overlay: Overlay, target: Target, platform: Platform, software: tuple[int, ...]) -> bool:
    return target.platform(overlay.platform) is platform and overlay.holds_for_software(software)


def _require_board(overlay: Overlay, target: Target, platform: Platform, software: tuple[int, ...]) -> None:
    """Reject an overlay that another board or version showed.

    Raises:
        ConfigError: It is for another platform or software version than the config's.
    """
    if _is_board(overlay, target, platform, software):
        return
    version = ".".join(map(str, software))
    same_board = target.platform(overlay.platform) is platform
    raise ConfigError(
        f"The overlay is for another {'software version' if same_board else 'platform'}",
        where=overlay.where,
        found=overlay.board_text,
        allowed=f"{platform.name}, TensorRT {version}" if version else platform.name,
        remedy=f"Use --platform {overlay.platform}{f' --software {overlay.software}' if overlay.software else ''}, or "
        "leave out the overlay",
    )


def _pool(name: str, device: str | None = None) -> tuple[Target, MemoryPool]:
    known = []
    for target in registry.targets_in_turn() if device is None else [registry.target(device)]:
        for pool in target.memory_pools:
            if isinstance(name, str) and name.upper() == pool.name:
                return target, pool
            known.append(pool.name)
    raise UnknownNameError("memory pool", str(name), known)


def require_network(layer: Layer) -> Network:
    """Return the network of a layer.

    Raises:
        ConfigError: The layer is not in a network.
    """
    if layer.network is None:
        raise ConfigError(
            "The layer must belong to a network", where=f"layer {layer.name!r}", remedy="Add it to a network first"
        )
    return layer.network  # type: ignore[no-any-return]
