"""The builder config: which device each layer goes to, and how the network is built for it."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs

from dryfit.builder.config_calibration import ConfigCalibration
from dryfit.builder.config_enumerations import (
    BuilderFlag,
    DeviceType,
    EngineCapability,
    MemoryPoolType,
    ProfilingVerbosity,
    member,
    whole_number,
)
from dryfit.builder.config_flags import ConfigFlags
from dryfit.builder.config_kernels import ConfigKernels, require_network
from dryfit.builder.config_platforms import ConfigPlatforms
from dryfit.builder.optimization_profile import OptimizationProfile
from dryfit.builder.precision import computation_type
from dryfit.errors import ConfigError, UnknownNameError
from dryfit.network.attribute_names import has_setter, settable_properties
from dryfit.network.layer import Layer
from dryfit.network.network import Network
from dryfit.network.tensor import Shape, TensorSpec
from dryfit.plugins import layer_plugins, registry
from dryfit.reference.inference import infer_specs
from dryfit.target.limits import Question
from dryfit.target.memory_pools import MemoryPool
from dryfit.target.target import Target
from dryfit.target.verdict import Verdict

layer_plugins.connect()

__all__ = ["BuilderConfig", "BuilderFlag", "DeviceType", "EngineCapability", "MemoryPoolType", "ProfilingVerbosity"]


class BuilderConfig(ConfigFlags, ConfigPlatforms, ConfigKernels, ConfigCalibration):
    """How a network is built; TensorRT's `IBuilderConfig`, open to any device.

    A device is a name, in any case: of a target that comes with dryfit (`DeviceType.DLA`), or of any installed one
    (`"ACME_NPU"`). Layers are remembered by identity: a config may serve several networks.

    Attributes:
        progress_monitor: told of each phase of the build, or None.

    Example:
        >>> config = BuilderConfig()
        >>> config.set_flag(BuilderFlag.FP16)
        >>> config.set_flag(BuilderFlag.GPU_FALLBACK)
        >>> config.default_device_type = DeviceType.DLA
        >>> config.default_device_type, config.fallback_device
        ('DLA', 'GPU')
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Return to the state of a new config: every layer on the GPU, no flag but TF32, no profile."""
        ConfigFlags.__init__(self)
        ConfigPlatforms.__init__(self)
        ConfigKernels.__init__(self)
        ConfigCalibration.__init__(self)
        self._profiling_verbosity = ProfilingVerbosity.LAYER_NAMES_ONLY
        self.progress_monitor: Any = None
        self._assume_scales = False
        self._device_types: weakref.WeakKeyDictionary[Layer, str] = weakref.WeakKeyDictionary()
        self._default_device = str(DeviceType.GPU)
        self._pool_limits: dict[str, int] = {}
        self._profiles: list[OptimizationProfile] = []
        self._inferred: weakref.WeakKeyDictionary[Network, _Inferred] = weakref.WeakKeyDictionary()
        self._capability = EngineCapability.STANDARD
        self._optimization_level = 3

    if not TYPE_CHECKING:  # a type checker finds misspelt names by itself, unless it sees this

        def __setattr__(self, name: str, value: Any) -> None:
            """Refuse what no build would look at.

            Raises:
                UnknownNameError: there is no such setting.
                ConfigError: it is one of an older TensorRT that has another place now.
            """
            cls = type(self)
            if not (name.startswith("_") or name == "progress_monitor" or has_setter(cls, name)):
                if name in _OLDER_SETTINGS:
                    raise ConfigError("TensorRT 10 has no such setting", found=name, remedy=_OLDER_SETTINGS[name])
                raise UnknownNameError(
                    "setting of a builder config", name, settable_properties(cls) | {"progress_monitor"}
                )
            super().__setattr__(name, value)

    # Devices ------------------------------------------------------------------------------------------------------

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

    def can_run_on(self, layer: Layer, device: str) -> Verdict:
        """Whether a layer, as it and this config stand now, can run on a device, and every rule that it fails.

        It is asked for the layer's own precision; else INT8 where the flag is on and its tensors have scales, or are to
        get them from a calibrator; else
        FP16 or BF16 where the flag is on; else the device's default. Dynamic dimensions count as fixed where a profile
        has minimum = optimum = maximum for them.

        Raises:
            UnknownNameError: no installed package brings the device.
            ConfigError: the layer is in no network, or the platform does not have the software version.
        """
        network = require_network(layer)
        target = registry.target(device)
        assumes = self.assume_scales or self.has_calibrator
        return target.verdict(self.question(layer, target, self._fixed_specs(network), assume_scales=assumes))

    def can_run_on_DLA(self, layer: Layer) -> bool:
        """Whether a layer can run on the DLA; `can_run_on(layer, "DLA")` says why not."""
        return self.can_run_on(layer, DeviceType.DLA).supported

    def question(
        self,
        layer: Layer,
        target: Target,
        specs: Mapping[str, TensorSpec] | None = None,
        *,
        assume_scales: bool | None = None,
    ) -> Question:
        """What the limit table of a target is asked about a layer.

        Args:
            layer: a layer, which may belong to a copy of the network that the config was made for.
            target: the device.
            specs: the tensors' specs where they are not those that the network states.
            assume_scales: whether every tensor counts as if it had a scale; None: as the config says.
        """
        assumes = self.assume_scales if assume_scales is None else assume_scales
        platform = self.platform(target.device)
        return Question(
            layer=layer,
            precision=computation_type(layer, target, self._flags, assume_scales=assumes),
            device=target.device,
            platform=platform.name,
            family=platform.family,
            software=self.software(target.device),
            explicit_device=self._device_types.get(layer) == target.device,
            options=self._options(assumes),
            cores=platform.cores,
            specs=specs,
        )

    def _options(self, assume_scales: bool) -> dict[str, Any]:
        return {
            "flags": frozenset(flag.name for flag in self._flags),
            "engine_capability": self._capability.name,
            "assume_scales": assume_scales,
        }

    def _fixed_specs(self, network: Network) -> Mapping[str, TensorSpec] | None:
        """The specs for the one shape that all profiles state; None where the network is static, or they differ.

        They are inferred once for as long as the network stays as it is: scripts ask about one layer after another.
        """
        if not self._profiles or all(extent >= 0 for tensor in network.inputs for extent in tensor.shape):
            return None
        shapes = self._profiles[0].fixed_shapes
        if any(profile.fixed_shapes != shapes or not profile.is_fixed for profile in self._profiles):
            return None
        inferred = self._inferred.get(network)
        if inferred is None or inferred.revision != network.revision or inferred.shapes != shapes:
            specs = infer_specs(network, shapes)
            inferred = self._inferred[network] = _Inferred(network.revision, shapes, specs)
        return inferred.specs

    @property
    def engine_capability(self) -> EngineCapability:
        """What kind of engine is built."""
        return self._capability

    @engine_capability.setter
    def engine_capability(self, capability: EngineCapability) -> None:
        self._capability = member(EngineCapability, capability, "engine capability")

    # Memory and shapes --------------------------------------------------------------------------------------------

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

    def add_optimization_profile(self, profile: OptimizationProfile) -> int:
        """Add shapes that the engine is built for; returns the profile's number.

        Raises:
            ConfigError: nothing was stated in the profile.
        """
        if not profile:
            raise ConfigError("The optimization profile states no shapes", remedy="Call set_shape on it first")
        self._profiles.append(profile)
        return len(self._profiles) - 1

    @property
    def num_optimization_profiles(self) -> int:
        """Number of profiles."""
        return len(self._profiles)

    def get_optimization_profile(self, index: int) -> OptimizationProfile:
        """A profile by number.

        Raises:
            ConfigError: there is no such profile.
        """
        if not 0 <= index < len(self._profiles):
            raise ConfigError(
                "There is no optimization profile of this number",
                found=index,
                allowed=f"0 to {len(self._profiles) - 1}" if self._profiles else "none was added",
            )
        return self._profiles[index]

    # The build ----------------------------------------------------------------------------------------------------

    @property
    def profiling_verbosity(self) -> ProfilingVerbosity:
        """How much the engine tells of its layers."""
        return self._profiling_verbosity

    @profiling_verbosity.setter
    def profiling_verbosity(self, verbosity: ProfilingVerbosity) -> None:
        self._profiling_verbosity = member(ProfilingVerbosity, verbosity, "profiling verbosity")

    @property
    def assume_scales(self) -> bool:
        """Whether every tensor counts as if it had an INT8 scale, to ask about placement before calibrating."""
        return self._assume_scales

    @assume_scales.setter
    def assume_scales(self, assume: bool) -> None:
        if not isinstance(assume, bool):
            raise ConfigError("Scales are assumed or not", found=repr(assume), allowed="True or False")
        self._assume_scales = assume

    @property
    def builder_optimization_level(self) -> int:
        """How much work the builder does, 0 to 5; 3 in a new config.

        At 0 no kernel is measured and no timing cache is looked at: of several, the first by name is taken.
        """
        return self._optimization_level

    @builder_optimization_level.setter
    def builder_optimization_level(self, level: int) -> None:
        level = whole_number(level, "builder optimization level")
        if not 0 <= level <= 5:
            raise ConfigError("There is no such builder optimization level", found=level, allowed="0 to 5")
        self._optimization_level = level

    def settings(self, network: Network | None = None) -> dict[str, Any]:
        """What decides on an engine, as plain data in a fixed order, for the engine's manifest.

        Args:
            network: adds the devices and kernels of those of its layers that have one of their own.
        """
        named = {self._default_device, self.fallback_device or self._default_device, *self._platforms, *self._software}
        if network is not None:
            named.update(self.explicit_device_types(network).values())
        # Devices that this config does not name decide nothing, so a package that is merely installed changes nothing.
        devices = [one for one in map(registry.target, sorted(named)) if not one.segment_rules.is_host]
        return {
            "flags": [flag.name for flag in sorted(self._flags)],
            "quantization_flags": [flag.name for flag in sorted(self._quantization_flags)],
            "default_device_type": self._default_device,
            "fallback_device": self.fallback_device,
            "device_types": {} if network is None else self.explicit_device_types(network),
            "kernels": {} if network is None else self.explicit_kernels(network),
            "forbidden_kernels": list(self.forbidden_kernels),
            "platforms": {target.device: self.platform(target.device).name for target in devices},
            "software": {target.device: _text(self.software(target.device)) for target in devices},
            "DLA_core": self._dla_core,
            "engine_capability": self._capability.name,
            "memory_pool_limits": dict(sorted(self._pool_limits.items())),
            "optimization_profiles": [
                {"shapes": _listed(profile.shapes), "shape_values": _listed(profile.shape_values)}
                for profile in self._profiles
            ],
            "profiling_verbosity": self._profiling_verbosity.name,
            "builder_optimization_level": self._optimization_level,
            "assume_scales": self.assume_scales,
        }


_OLDER_SETTINGS = {
    "max_workspace_size": "Call set_memory_pool_limit(MemoryPoolType.WORKSPACE, size)",
}
"""Settings of TensorRT 8 and older to what stands in their place."""


@attrs.frozen(eq=False)
class _Inferred:
    """The specs of a network's tensors for fixed input shapes, and the revision of the network that they are of."""

    revision: int
    shapes: Mapping[str, Shape]
    specs: Mapping[str, TensorSpec]


def _pool(name: str) -> tuple[Target, MemoryPool]:
    known = []
    for target in registry.targets_in_turn():
        for pool in target.memory_pools:
            if isinstance(name, str) and name.upper() == pool.name:
                return target, pool
            known.append(pool.name)
    raise UnknownNameError("memory pool", str(name), known)


def _text(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def _listed(shapes: Mapping[str, Any]) -> dict[str, list[list[int]]]:
    return {name: [list(shape) for shape in triple] for name, triple in shapes.items()}
