"""The builder config: which device each layer goes to, and how the network is built for it."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from dryfit.builder.config.computation_type import computation_type
from dryfit.builder.config.enumerations import (
    BuilderFlag,
    DeviceType,
    EngineCapability,
    MemoryPoolType,
    ProfilingVerbosity,
    QuantizationFlag,
    member,
    software_version,
    whole_number,
)
from dryfit.builder.config.optimization_profile import OptimizationProfile
from dryfit.builder.config.timing_cache import TimingCache, processor_name
from dryfit.errors import ConfigError, UnknownNameError
from dryfit.network.attribute_names import KnownAttributes
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.network import Network
from dryfit.network.tensor import Shape, TensorSpec
from dryfit.plugins import registry
from dryfit.reference.inference import infer_specs
from dryfit.target.limits import Question
from dryfit.target.memory_pools import MemoryPool
from dryfit.target.power_mode import PowerMode
from dryfit.target.target import Platform, Target
from dryfit.target.verdict import Verdict

if TYPE_CHECKING:
    from dryfit.quantization.calibration_cache import CalibrationCache
    from dryfit.quantization.calibration_stream import CalibrationStream
    from dryfit.quantization.calibrator import Calibrator, Solution
    from dryfit.quantization.sample_arrays import Samples

__all__ = ["BuilderConfig", "BuilderFlag", "DeviceType", "EngineCapability", "MemoryPoolType", "ProfilingVerbosity"]


class BuilderConfig(KnownAttributes):
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
        self._flags: set[BuilderFlag] = {BuilderFlag.TF32}
        self._fallback: str | None = None
        self._device_types: weakref.WeakKeyDictionary[Layer, str] = weakref.WeakKeyDictionary()
        self._default_device = str(DeviceType.GPU)
        self._platforms: dict[str, str] = {}
        self._software: dict[str, str] = {}
        self._dla_core = -1
        self._power_mode: str | None = None
        self._pool_limits: dict[str, int] = {}
        self._profiles: list[OptimizationProfile] = []
        self._inferred: weakref.WeakKeyDictionary[Network, _Inferred] = weakref.WeakKeyDictionary()
        self._kernels: weakref.WeakKeyDictionary[Layer, str] = weakref.WeakKeyDictionary()
        self._forbidden: list[str] = []
        self._timing_cache: TimingCache | None = None
        self._calibrator: Calibrator | None = None
        self._stream: CalibrationStream | None = None
        self._samples: Samples | None = None
        self._full_range = True
        self._cache: CalibrationCache | None = None
        self._calibration_profile: OptimizationProfile | None = None
        self._quantization_flags: set[QuantizationFlag] = set()
        self._remembered: weakref.WeakKeyDictionary[Network, tuple[int, Mapping[str, Solution]]]
        self._remembered = weakref.WeakKeyDictionary()
        self._profiling_verbosity = ProfilingVerbosity.LAYER_NAMES_ONLY
        self.progress_monitor = None
        self._assume_scales = False
        self._capability = EngineCapability.STANDARD
        self._optimization_level = 3

    # Flags and fallback -----------------------------------------------------------------------------------------------

    def set_flag(self, flag: BuilderFlag) -> None:
        """Switch a flag on.

        Raises:
            ConfigError: there is no such flag.
        """
        self._flags.add(_flag(flag))

    def clear_flag(self, flag: BuilderFlag) -> None:
        """Switch a flag off."""
        self._flags.discard(_flag(flag))

    def get_flag(self, flag: BuilderFlag) -> bool:
        """Whether a flag is on."""
        return _flag(flag) in self._flags

    @property
    def flags(self) -> int:
        """All flags as a bit mask, `1 << flag` each; TF32 alone in a new config."""
        return sum(1 << flag for flag in self._flags)

    @flags.setter
    def flags(self, mask: int) -> None:
        mask = whole_number(mask, "mask of flags")
        known = sum(1 << flag for flag in BuilderFlag)
        if mask & ~known:
            raise ConfigError("The mask has bits that are no builder flag", found=bin(mask), allowed=bin(known))
        self._flags = {flag for flag in BuilderFlag if mask >> flag & 1}

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

    # Devices of layers ------------------------------------------------------------------------------------------------

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

    # Platforms --------------------------------------------------------------------------------------------------------

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

    # Memory -----------------------------------------------------------------------------------------------------------

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

    # Profiles ---------------------------------------------------------------------------------------------------------

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

    # Kernels ----------------------------------------------------------------------------------------------------------

    def set_kernel(self, layer: Layer, name: str) -> None:
        """Name the host kernel that runs a layer and what it takes into its group, instead of the fastest.

        The layer becomes the first of its group. Whether its device has the kernel, and whether that can run the layer,
        is looked at when the network is built.

        Raises:
            ConfigError: the layer is in no network, or the name is no text.
        """
        require_network(layer)
        if not isinstance(name, str) or not name:
            raise ConfigError(
                "A kernel is named by text",
                where=f"layer {layer.name!r}",
                found=repr(name),
                allowed="'cpu.convolution'",
            )
        self._kernels[layer] = name

    def get_kernel(self, layer: Layer) -> str | None:
        """The kernel that was named for a layer; None where the builder chooses."""
        return self._kernels.get(layer)

    def reset_kernel(self, layer: Layer) -> None:
        """Let the builder choose the layer's kernel again."""
        self._kernels.pop(layer, None)

    def explicit_kernels(self, network: Network) -> dict[str, str]:
        """Layer name to kernel, for the layers of a network that have one named, in the network's order."""
        return {layer.name: self._kernels[layer] for layer in network.layers if layer in self._kernels}

    def forbid_kernels(self, pattern: str) -> None:
        """Choose no host kernel whose name fits a pattern, such as `cpu.winograd_*`; several patterns add up.

        A kernel that is named for a layer runs it all the same. In the place of TensorRT's tactic sources: kernels go
        by their names here.

        Raises:
            ConfigError: the pattern is no text.

        Example:
            >>> config = BuilderConfig()
            >>> config.forbid_kernels("cpu.winograd_*")
            >>> config.forbidden_kernels
            ('cpu.winograd_*',)
        """
        if not isinstance(pattern, str) or not pattern:
            raise ConfigError("A pattern of kernels is text", found=repr(pattern), allowed="'cpu.winograd_*'")
        if pattern not in self._forbidden:
            self._forbidden.append(pattern)

    @property
    def forbidden_kernels(self) -> Sequence[str]:
        """The patterns of kernels that are not chosen."""
        return tuple(self._forbidden)

    def reset_forbidden_kernels(self) -> None:
        """Let every kernel be chosen again."""
        self._forbidden.clear()

    def create_timing_cache(self, serialized_timing_cache: bytes = b"") -> TimingCache:
        """A timing cache from its text; an empty text gives an empty one.

        Raises:
            ConfigError: it is no timing cache; the line is named.
        """
        return TimingCache.parse(serialized_timing_cache)

    def set_timing_cache(self, cache: TimingCache, ignore_mismatch: bool = False) -> bool:
        """Choose kernels by this cache, and add to it what is measured; True.

        Without one, builds share a file in the user's cache folder.

        Raises:
            ConfigError: it was measured on another processor, and that matters; or it is no timing cache.
        """
        if not isinstance(cache, TimingCache):
            raise ConfigError(
                "This is no timing cache",
                found=type(cache).__name__,
                allowed="what `create_timing_cache` returns",
            )
        cache.require_processor(processor_name(), ignore_mismatch)
        self._timing_cache = cache
        return True

    def get_timing_cache(self) -> TimingCache | None:
        """The cache that was set; None where builds share the default one."""
        return self._timing_cache

    # Calibration ------------------------------------------------------------------------------------------------------

    # Calibrators --------------------------------------------------------------------------------------------------

    @property
    def int8_calibrator(self) -> CalibrationStream | None:
        """An object that brings samples and says which calibrator it wants; TensorRT's `IInt8Calibrator`.

        Derive it from `IInt8EntropyCalibrator2` or another of TensorRT's classes, or give it their methods. Where its
        attribute `full_range` is False, inputs and probabilities do not keep their largest magnitude.

        Raises:
            ConfigError: when set: it lacks methods of that interface.
        """
        return self._stream

    @int8_calibrator.setter
    def int8_calibrator(self, stream: CalibrationStream | None) -> None:
        from dryfit.quantization.calibration_stream import STREAM_METHODS, is_stream

        if stream is not None and not is_stream(stream):
            lacking = [name for name in STREAM_METHODS if not callable(getattr(stream, name, None))]
            raise ConfigError(
                "This is no INT8 calibrator",
                where="int8_calibrator",
                found=f"{type(stream).__name__} without {', '.join(lacking)}",
                allowed=f"an object with the methods {', '.join(STREAM_METHODS)}, or None",
                remedy="Call calibrate_with(calibrator, samples) to give samples as arrays",
            )
        self._stream, self._calibrator, self._samples, self._full_range = stream, None, None, True
        self._remembered.clear()

    def calibrate_with(self, calibrator: Calibrator | str, samples: Samples, *, full_range: bool = True) -> None:
        """Find ranges by a calibrator from samples: mappings of input names to arrays, or (name, mapping) pairs.

        Where the network has one input, samples may be arrays, or one array of all.
        Takes the place of `int8_calibrator`.

        Args:
            calibrator: one, or the name of an installed one.
            samples: gone through once for each network that is built or assessed; an iterator serves one.
            full_range: whether network inputs, and the outputs of softmax and sigmoid, keep their largest magnitude.

        Raises:
            UnknownNameError: there is no calibrator of this name.
            ConfigError: the calibrator brings samples of its own.
        """
        from dryfit.plugins.calibrators import calibrator as installed

        found = installed(calibrator) if isinstance(calibrator, str) else calibrator
        if found.stream is not None:
            raise ConfigError("The calibrator brings its own samples", where=f"calibrator {found.name!r}")
        self._calibrator, self._samples, self._stream, self._full_range = found, samples, None, full_range
        self._remembered.clear()

    @property
    def has_calibrator(self) -> bool:
        """Whether a build may find ranges by running the network."""
        return self._stream is not None or self._calibrator is not None

    @property
    def keeps_full_range(self) -> bool:
        """Whether `calibrate_with` said that inputs and probabilities keep their largest magnitude."""
        return self._full_range

    def set_calibration_profile(self, profile: OptimizationProfile) -> bool:
        """State the shapes in which a network with dynamic inputs is calibrated: the profile's optimum.

        Without one the first optimization profile counts.
        """
        self._calibration_profile = profile
        self._remembered.clear()
        return True

    def get_calibration_profile(self) -> OptimizationProfile | None:
        """The profile that was set."""
        return self._calibration_profile

    @property
    def calibration_cache(self) -> CalibrationCache | None:
        """Scales that were found before. The path of a file of any form, or the bytes of one of TensorRT's, may be set.

        Raises:
            CalibrationError: when set: the file cannot be read, or is damaged; names file and line.
        """
        return self._cache

    @calibration_cache.setter
    def calibration_cache(self, cache: CalibrationCache | Path | str | bytes | None) -> None:
        from dryfit.quantization import cache_forms, calibration_cache

        if isinstance(cache, (str, Path)):
            self._cache = cache_forms.read_calibration_cache(Path(cache))
        elif isinstance(cache, bytes):
            self._cache = calibration_cache.parse(cache)
        else:
            self._cache = cache

    def set_quantization_flag(self, flag: QuantizationFlag) -> None:
        """Switch a flag on.

        Raises:
            ConfigError: there is no such flag.
        """
        self._quantization_flags.add(member(QuantizationFlag, flag, "quantization flag"))

    def clear_quantization_flag(self, flag: QuantizationFlag) -> None:
        """Switch a flag off."""
        self._quantization_flags.discard(member(QuantizationFlag, flag, "quantization flag"))

    def get_quantization_flag(self, flag: QuantizationFlag) -> bool:
        """Whether a flag is on."""
        return member(QuantizationFlag, flag, "quantization flag") in self._quantization_flags

    @property
    def quantization_flags(self) -> int:
        """All flags as a bit mask, `1 << flag` each; none in a new config."""
        return sum(1 << flag for flag in self._quantization_flags)

    @quantization_flags.setter
    def quantization_flags(self, mask: int) -> None:
        mask = whole_number(mask, "mask of quantization flags")
        known = sum(1 << flag for flag in QuantizationFlag)
        if mask & ~known:
            raise ConfigError("The mask has bits that are no quantization flag", found=bin(mask), allowed=bin(known))
        self._quantization_flags = {flag for flag in QuantizationFlag if mask >> flag & 1}

    def calibration(self) -> tuple[Calibrator, Samples | None] | None:
        """The calibrator of a build and its samples, None where it brings them; None without a calibrator.

        Raises:
            CalibrationError, UnknownNameError: the stream asks for a calibrator that is not there.
        """
        if self._stream is not None:
            from dryfit.plugins.calibrators import of_stream

            return of_stream(self._stream), None
        if self._calibrator is None or self._samples is None:
            return None
        return self._calibrator, self._samples

    def remembered_ranges(self, network: Network) -> Mapping[str, Solution] | None:
        """What the calibrator found for a network, if that has not changed since."""
        revision, found = self._remembered.get(network, (-1, None))
        return found if revision == network.revision else None

    def remember_ranges(self, network: Network, found: Mapping[str, Solution]) -> None:
        """Keep what the calibrator found for a network."""
        self._remembered[network] = (network.revision, found)

    # What devices are asked -------------------------------------------------------------------------------------------

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


def _flag(flag: object) -> BuilderFlag:
    # A real flag is the rule, and flags are asked for often.
    return flag if isinstance(flag, BuilderFlag) else member(BuilderFlag, flag, "builder flag")


def _pool(name: str) -> tuple[Target, MemoryPool]:
    known = []
    for target in registry.targets_in_turn():
        for pool in target.memory_pools:
            if isinstance(name, str) and name.upper() == pool.name:
                return target, pool
            known.append(pool.name)
    raise UnknownNameError("memory pool", str(name), known)


@attrs.frozen(eq=False)
class _Inferred:
    """The specs of a network's tensors for fixed input shapes, and the revision of the network that they are of."""

    revision: int
    shapes: Mapping[str, Shape]
    specs: Mapping[str, TensorSpec]


def require_network(layer: Layer) -> Network:
    """The network of a layer.

    Raises:
        ConfigError: it is in none.
    """
    if layer.network is None:
        raise ConfigError(
            "The layer is in no network", where=f"layer {layer.name!r}", remedy="Add it to a network first"
        )
    return layer.network  # type: ignore[no-any-return]


def _text(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def _listed(shapes: Mapping[str, Any]) -> dict[str, list[list[int]]]:
    return {name: [list(shape) for shape in triple] for name, triple in shapes.items()}
