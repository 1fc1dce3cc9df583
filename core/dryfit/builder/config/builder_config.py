"""The builder config: which device each layer goes to, and how the network is built for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dryfit.builder.config.calibration import ConfigCalibration
from dryfit.builder.config.computation_type import computation_type
from dryfit.builder.config.devices import ConfigDevices
from dryfit.builder.config.enumerations import (
    BuilderFlag,
    DeviceType,
    EngineCapability,
    MemoryPoolType,
    ProfilingVerbosity,
    member,
    whole_number,
)
from dryfit.builder.config.flags import ConfigFlags
from dryfit.builder.config.kernels import ConfigKernels, require_network
from dryfit.builder.config.memory import ConfigMemory
from dryfit.builder.config.profiles import ConfigProfiles
from dryfit.errors import ConfigError
from dryfit.network.attribute_names import KnownAttributes
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.network import Network
from dryfit.network.tensor import TensorSpec
from dryfit.plugins import format_names, layer_plugins, quantize_methods, registry
from dryfit.target.limits import Question
from dryfit.target.target import Target
from dryfit.target.verdict import Verdict

format_names.connect()
layer_plugins.connect()
quantize_methods.connect()

__all__ = ["BuilderConfig", "BuilderFlag", "DeviceType", "EngineCapability", "MemoryPoolType", "ProfilingVerbosity"]


class BuilderConfig(
    KnownAttributes, ConfigFlags, ConfigDevices, ConfigMemory, ConfigProfiles, ConfigKernels, ConfigCalibration
):
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

    progress_monitor: Any

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Return to the state of a new config: every layer on the GPU, no flag but TF32, no profile."""
        ConfigFlags.__init__(self)
        ConfigDevices.__init__(self)
        ConfigMemory.__init__(self)
        ConfigProfiles.__init__(self)
        ConfigKernels.__init__(self)
        ConfigCalibration.__init__(self)
        self._profiling_verbosity = ProfilingVerbosity.LAYER_NAMES_ONLY
        self.progress_monitor = None
        self._assume_scales = False
        self._capability = EngineCapability.STANDARD
        self._optimization_level = 3

    # Devices ------------------------------------------------------------------------------------------------------

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
        """What the limit table of a target is asked about a layer; `questions` says of what."""
        return self.questions(target, specs, assume_scales=assume_scales)(layer)

    def asked_type(self, layer: Layer, target: Target) -> DataType:
        """The computation type that a layer is asked for on a device, as `question` has it."""
        return computation_type(layer, target, self._flags, assume_scales=self._assume_scales)

    def questions(
        self,
        target: Target,
        specs: Mapping[str, TensorSpec] | None = None,
        *,
        assume_scales: bool | None = None,
        is_put_here: Callable[[Layer], bool] | None = None,
    ) -> Callable[[Layer], Question]:
        """What the limit table of a target is asked about layers: layer to question, as this config stands now.

        The layers may belong to a copy of the network that the config was made for.

        Args:
            target: the device.
            specs: the tensors' specs where they are not those that the network states.
            assume_scales: whether every tensor counts as if it had a scale; None: as the config says.
            is_put_here: whether the user set a layer's device to this one; None: as the config says of its own layers.
        """
        assumes = self.assume_scales if assume_scales is None else assume_scales
        platform, software, options = self.platform(target.device), self.software(target.device), self._options(assumes)
        is_here = is_put_here or (lambda layer: self._device_types.get(layer) == target.device)

        def question(layer: Layer) -> Question:
            return Question(
                layer=layer,
                precision=computation_type(layer, target, self._flags, assume_scales=assumes),
                device=target.device,
                platform=platform.name,
                family=platform.family,
                software=software,
                explicit_device=is_here(layer),
                is_put_here=is_here,
                options=options,
                cores=platform.cores,
                specs=specs,
            )

        return question

    def _options(self, assume_scales: bool) -> dict[str, Any]:
        return {
            "flags": frozenset(flag.name for flag in self._flags),
            "engine_capability": self._capability.name,
            "assume_scales": assume_scales,
        }

    @property
    def engine_capability(self) -> EngineCapability:
        """What kind of engine is built."""
        return self._capability

    @engine_capability.setter
    def engine_capability(self, capability: EngineCapability) -> None:
        self._capability = member(EngineCapability, capability, "engine capability")

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
            "power_mode": self.power_mode,
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


def _text(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def _listed(shapes: Mapping[str, Any]) -> dict[str, list[list[int]]]:
    return {name: [list(shape) for shape in triple] for name, triple in shapes.items()}
