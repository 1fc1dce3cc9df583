"""The builder config: the device of each layer, and the build settings of the network.

Users see one object. Its parts are separate classes, one per file: `FlagSettings`, `DeviceSettings`, `KernelSettings`
and `CalibrationSettings`. attrs generates a single `__init__` from the fields of all.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from dryfit.attrs_classes import frozen
from dryfit.builder.config.calibration_settings import CalibrationSettings
from dryfit.builder.config.computation_type import computation_type
from dryfit.builder.config.device_settings import DeviceSettings, require_network
from dryfit.builder.config.enumerations import (
    BuilderFlag,
    DeviceType,
    EngineCapability,
    MemoryPoolType,
    ProfilingVerbosity,
    member,
    whole_number,
)
from dryfit.builder.config.kernel_selector import KernelSelector
from dryfit.builder.config.kernel_settings import KernelSettings
from dryfit.builder.config.optimization_profile import OptimizationProfile
from dryfit.errors import ConfigError
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.network import Network
from dryfit.network.tensor import Shape, TensorSpec
from dryfit.plugins import registry
from dryfit.reference.inference import infer_specs
from dryfit.target.limits import Question
from dryfit.target.target import Target
from dryfit.target.verdict import Verdict

__all__ = ["BuilderConfig", "BuilderFlag", "DeviceType", "EngineCapability", "MemoryPoolType", "ProfilingVerbosity"]


@frozen(eq=False)
class _Inferred:
    """The tensor specs of a network for fixed input shapes, with the network revision that they belong to."""

    revision: int
    shapes: Mapping[str, Shape]
    specs: Mapping[str, TensorSpec]


@attrs.define(eq=False, repr=False, slots=False)
class BuilderConfig(DeviceSettings, KernelSettings, CalibrationSettings):
    """The build settings of a network; TensorRT's `IBuilderConfig`, extended to any device.

    Devices are referred to by name, case-insensitively: a target included in dryfit (`DeviceType.DLA`) or any installed
    one (`"ACME_NPU"`). Layers are tracked by identity, so one config can serve several networks.

    Attributes:
        progress_monitor: monitor that is called in each phase of the build, or None.
        kernel_selector: a `dryfit.KernelSelector` that chooses among the kernels of each engine layer, or None.
        ranks_unmeasured_kernels: whether a build that measures no kernels takes those of the highest
            `Kernel.unmeasured_priority`, as calibration does, and not the first by name.

    Example:
        >>> config = BuilderConfig()
        >>> config.set_flag(BuilderFlag.FP16)
        >>> config.set_flag(BuilderFlag.GPU_FALLBACK)
        >>> config.default_device_type = DeviceType.DLA
        >>> config.default_device_type, config.fallback_device
        ('DLA', 'GPU')
    """

    progress_monitor: Any = attrs.field(init=False, default=None)
    kernel_selector: KernelSelector | None = attrs.field(init=False, default=None)
    ranks_unmeasured_kernels: bool = attrs.field(init=False, default=False)
    _profiles: list[OptimizationProfile] = attrs.field(init=False, factory=list)
    _inferred: weakref.WeakKeyDictionary[Network, _Inferred] = attrs.field(
        init=False, factory=weakref.WeakKeyDictionary
    )
    _profiling_verbosity: ProfilingVerbosity = attrs.field(init=False, default=ProfilingVerbosity.LAYER_NAMES_ONLY)
    _capability: EngineCapability = attrs.field(init=False, default=EngineCapability.STANDARD)
    _optimization_level: int = attrs.field(init=False, default=3)

    def reset(self) -> None:
        """Reset to the state of a new config: every layer on the GPU, no flag except TF32, no profile."""
        vars(self).update(vars(BuilderConfig()))

    # Profiles ---------------------------------------------------------------------------------------------------------

    def add_optimization_profile(self, profile: OptimizationProfile) -> int:
        """Add an optimization profile and return its index.

        Raises:
            ConfigError: The profile is empty.
        """
        if not profile:
            raise ConfigError("An optimization profile must have shapes", found="none", remedy="Call set_shape first")
        self._profiles.append(profile)
        return len(self._profiles) - 1

    @property
    def num_optimization_profiles(self) -> int:
        """Number of optimization profiles."""
        return len(self._profiles)

    def get_optimization_profile(self, index: int) -> OptimizationProfile:
        """Return a profile by index.

        Raises:
            ConfigError: The profile does not exist.
        """
        if not 0 <= index < len(self._profiles):
            raise ConfigError(
                "The optimization profile index is out of range",
                found=index,
                allowed=f"0 to {len(self._profiles) - 1}" if self._profiles else "none was added",
                remedy="Add the profile with add_optimization_profile, or use an index in this range",
            )
        return self._profiles[index]

    def _fixed_specs(self, network: Network) -> Mapping[str, TensorSpec] | None:
        """Return the specs for the single shape of all profiles; None if the network is static, or the shapes differ.

        The result is cached while the network is unmodified, because scripts ask about one layer after another.
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

    # What devices are asked -------------------------------------------------------------------------------------------

    def can_run_on(self, layer: Layer, device: str) -> Verdict:
        """Return whether a layer can run on a device, in its current state, with every rule that it violates.

        The computation type is the layer's own precision; else INT8 if the flag is set and the layer's tensors have
        scales, or will get them from a calibrator; else FP16 or BF16 if the flag is set; else the device's default.
        Dynamic dimensions count as fixed if a profile has minimum = optimum = maximum for them.

        Raises:
            UnknownNameError: No installed package provides the device.
            ConfigError: The layer is not in a network, or the platform does not have the software version.
        """
        network = require_network(layer)
        target = self.target(device)
        assumes = self.assume_scales or self.has_calibrator
        return target.verdict(self.question(layer, target, self._fixed_specs(network), assume_scales=assumes))

    def can_run_on_DLA(self, layer: Layer) -> bool:
        """Return whether a layer can run on the DLA; `can_run_on(layer, "DLA")` also returns the reasons."""
        return self.can_run_on(layer, DeviceType.DLA).supported

    def question(
        self,
        layer: Layer,
        target: Target,
        specs: Mapping[str, TensorSpec] | None = None,
        *,
        assume_scales: bool | None = None,
    ) -> Question:
        """Return the question about a layer for a target's limit table; see `questions`."""
        return self.questions(target, specs, assume_scales=assume_scales)(layer)

    def asked_type(self, layer: Layer, target: Target) -> DataType:
        """Return the computation type of a layer on a device, as in `question`."""
        return computation_type(layer, target, self._flags, assume_scales=self._assume_scales)

    def questions(
        self,
        target: Target,
        specs: Mapping[str, TensorSpec] | None = None,
        *,
        assume_scales: bool | None = None,
        is_put_here: Callable[[Layer], bool] | None = None,
    ) -> Callable[[Layer], Question]:
        """Return the questions for a target's limit table by layer, with the current settings of this config.

        The layers may belong to a copy of the network that the config was created for.

        Args:
            target: target of the device.
            specs: tensor specs that replace those of the network.
            assume_scales: whether every tensor is assumed to have a scale; None to use the config.
            is_put_here: whether the user assigned a layer to this device; None to use the config's own assignments.
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
                verdict=target.verdict,
            )

        return question

    def _options(self, assume_scales: bool) -> dict[str, Any]:
        return {
            "flags": frozenset(flag.name for flag in self._flags),
            "engine_capability": self._capability.name,
            "assume_scales": assume_scales,
        }

    # The build --------------------------------------------------------------------------------------------------------

    @property
    def engine_capability(self) -> EngineCapability:
        """Kind of engine to build."""
        return self._capability

    @engine_capability.setter
    def engine_capability(self, capability: EngineCapability) -> None:
        self._capability = member(EngineCapability, capability, "engine capability")

    @property
    def profiling_verbosity(self) -> ProfilingVerbosity:
        """Level of detail that the engine reports about its layers."""
        return self._profiling_verbosity

    @profiling_verbosity.setter
    def profiling_verbosity(self, verbosity: ProfilingVerbosity) -> None:
        self._profiling_verbosity = member(ProfilingVerbosity, verbosity, "profiling verbosity")

    @property
    def builder_optimization_level(self) -> int:
        """Effort of the builder, 0 to 5; default: 3.

        At level 0, no kernel is measured and no timing cache is used: the first kernel by name is chosen.
        """
        return self._optimization_level

    @builder_optimization_level.setter
    def builder_optimization_level(self, level: int) -> None:
        level = whole_number(level, "builder optimization level")
        if not 0 <= level <= 5:
            raise ConfigError(
                "The builder optimization level is out of range",
                found=level,
                allowed="0 to 5",
                remedy="Use a level in this range; the default is 3",
            )
        self._optimization_level = level

    def settings(self, network: Network | None = None) -> dict[str, Any]:
        """Return the settings that determine an engine, as plain data in a fixed order, for the engine's manifest.

        Args:
            network: network whose layers' own devices and kernels are included.
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
            **({"overlays": labels} if (labels := self.overlay_labels) else {}),
        }


def _text(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def _listed(shapes: Mapping[str, Any]) -> dict[str, list[list[int]]]:
    return {name: [list(shape) for shape in triple] for name, triple in shapes.items()}
