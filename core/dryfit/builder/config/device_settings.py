"""The devices of a builder config: which one each layer goes to, and which variant of each is meant."""

from __future__ import annotations

import weakref

import attrs

from dryfit.builder.config.enumerations import BuilderFlag, DeviceType, software_version, whole_number
from dryfit.builder.config.flag_settings import FlagSettings
from dryfit.errors import ConfigError, UnknownNameError
from dryfit.network.layer import Layer
from dryfit.network.network import Network
from dryfit.plugins import registry
from dryfit.target.memory_pools import MemoryPool
from dryfit.target.power_mode import PowerMode
from dryfit.target.target import Platform, Target


@attrs.define(eq=False, repr=False, slots=False)
class DeviceSettings(FlagSettings):
    """The part of a builder config that says where layers go, and what these devices are: variant, software, memory.

    Flags belong to it, since a fallback to the GPU is one.
    """

    _fallback: str | None = attrs.field(init=False, default=None)
    _device_types: weakref.WeakKeyDictionary[Layer, str] = attrs.field(init=False, factory=weakref.WeakKeyDictionary)
    _default_device: str = attrs.field(init=False, default=str(DeviceType.GPU))
    _platforms: dict[str, str] = attrs.field(init=False, factory=dict)
    _software: dict[str, str] = attrs.field(init=False, factory=dict)
    _dla_core: int = attrs.field(init=False, default=-1)
    _power_mode: str | None = attrs.field(init=False, default=None)
    _pool_limits: dict[str, int] = attrs.field(init=False, factory=dict)

    # Where layers go --------------------------------------------------------------------------------------------------

    @property
    def fallback_device(self) -> str | None:
        """The device of layers that cannot run on the one they were given; None: such a layer is an error."""
        return self._fallback or (str(DeviceType.GPU) if self.get_flag(BuilderFlag.GPU_FALLBACK) else None)

    def allow_fallback(self, device: str | None) -> None:
        """Let layers that cannot run on their device go to another; None forbids it.

        Naming the GPU is the same as the flag `GPU_FALLBACK`.

        Raises:
            UnknownNameError: no installed package brings the device.
        """
        name = None if device is None else registry.target(device).device
        self._fallback = None if name == DeviceType.GPU else name
        self.allow_gpu_fallback(name == DeviceType.GPU)

    def allow_gpu_fallback(self, allow: bool) -> None:
        """Switch the flag `GPU_FALLBACK`; TensorRT's `allowGPUFallback`."""
        (self.set_flag if allow else self.clear_flag)(BuilderFlag.GPU_FALLBACK)

    @property
    def default_device_type(self) -> str:
        """The device of every layer that can run there and has no device of its own; the GPU in a new config."""
        return self._default_device

    @default_device_type.setter
    def default_device_type(self, device: str) -> None:
        self._default_device = registry.target(device).device

    def set_device_type(self, layer: Layer, device: str) -> None:
        """Put a layer on a device, whatever the default is.

        Raises:
            UnknownNameError: no installed package brings the device.
            ConfigError: the layer is in no network.
        """
        require_network(layer)
        self._device_types[layer] = registry.target(device).device

    def get_device_type(self, layer: Layer) -> str:
        """The device of a layer: its own, or else the default. Whether it can run there is not asked."""
        return self._device_types.get(layer, self._default_device)

    def is_device_type_set(self, layer: Layer) -> bool:
        """Whether the layer has a device of its own."""
        return layer in self._device_types

    def reset_device_type(self, layer: Layer) -> None:
        """Let the default decide on a layer's device again."""
        self._device_types.pop(layer, None)

    def explicit_device_types(self, network: Network) -> dict[str, str]:
        """Layer name to device, for the layers of a network that have a device of their own, in the network's order."""
        return {layer.name: self._device_types[layer] for layer in network.layers if layer in self._device_types}

    # What the devices are ---------------------------------------------------------------------------------------------

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
            raise ConfigError(
                "A power mode must be given by name",
                where="power_mode",
                found=repr(name),
                remedy='Pass the name as a string, such as "MAXN", or None for the default',
            )
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
                "The DLA core is out of range",
                where=f"platform {platform.name}",
                found=core,
                allowed=f"0 to {platform.cores - 1}, or -1 for none" if platform.cores else "-1 (no DLA)",
                source=platform.source or None,
                remedy="Choose one of these cores",
            )
        self._dla_core = core

    def set_memory_pool_limit(self, pool: str, pool_size: int) -> None:
        """Set the largest size of a memory pool, in bytes.

        Raises:
            UnknownNameError: no device has such a pool.
            ConfigError: the device would refuse this size.
        """
        _, found = _pool(pool)
        pool_size = whole_number(pool_size, f"limit of memory pool {found.name}")
        found.check_limit(pool_size)
        self._pool_limits[found.name] = pool_size

    def get_memory_pool_limit(self, pool: str) -> int | None:
        """The largest size of a memory pool in bytes: the one that was set, or the platform's default. None: no limit.

        Raises:
            UnknownNameError: no device has such a pool.
        """
        target, found = _pool(pool)
        return self._pool_limits.get(found.name, found.default_for(self.platform(target.device).family))


def _pool(name: str) -> tuple[Target, MemoryPool]:
    known = []
    for target in registry.targets_in_turn():
        for pool in target.memory_pools:
            if isinstance(name, str) and name.upper() == pool.name:
                return target, pool
            known.append(pool.name)
    raise UnknownNameError("memory pool", str(name), known)


def require_network(layer: Layer) -> Network:
    """The network of a layer.

    Raises:
        ConfigError: it is in none.
    """
    if layer.network is None:
        raise ConfigError(
            "The layer must belong to a network", where=f"layer {layer.name!r}", remedy="Add it to a network first"
        )
    return layer.network  # type: ignore[no-any-return]
