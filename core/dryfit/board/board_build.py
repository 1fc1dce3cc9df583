"""A build for TensorRT as plain data in TensorRT's names: the contents common to both forms of export."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from dryfit.attrs_classes import frozen
from dryfit.board.versions import (
    FLAG_VERSIONS,
    OPTIMIZATION_LEVEL,
    POOL_LIMITS,
    STRONG_TYPING,
    TYPE_VERSIONS,
    Version,
    Versions,
    layers_by_name,
    version_text,
)
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.config.enumerations import (
    BuilderFlag,
    DeviceType,
    EngineCapability,
    MemoryPoolType,
    ProfilingVerbosity,
    QuantizationFlag,
)
from dryfit.builder.config.optimization_profile import OptimizationProfile
from dryfit.builder.config.trtexec_spellings import IoFormat, set_io_formats
from dryfit.engine.plan import ProfileShapes
from dryfit.errors import ConfigError
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.network import Network
from dryfit.quantization.cache_header import CacheHeader
from dryfit.quantization.calibration_cache import CalibrationCache
from dryfit.quantization.calibration_stream import CalibrationAlgoType

DEFAULT_LEVEL = 3
"""Of `builder_optimization_level`."""


@frozen
class BoardFiles:
    """Paths on the board, as written to the export.

    Attributes:
        onnx: path of the model.
        engine: path where the engine or loadable is saved; "" if it is not saved.
        calibration_cache: path of the scales; "" for none.
        timing_cache: path of TensorRT's timing cache; "" for none.
    """

    onnx: str
    engine: str = ""
    calibration_cache: str = ""
    timing_cache: str = ""


@frozen
class BoardBuild:
    """A build on the board.

    Layers have their TensorRT names. Host-only settings are not included: kernels, platforms, power modes.

    Attributes:
        software: TensorRT version.
        flags: flags that are set, including `GPU_FALLBACK`.
        default_device: default device: GPU or DLA.
        dla_core: DLA core; -1 for none.
        capability: kind of engine.
        devices: GPU or DLA by layer, for layers with a device of their own.
        precisions: computation type by layer.
        output_types: output types by layer.
        input_formats, output_formats: one entry for each input or output; empty if not set.
        pools: limit in bytes by memory pool.
        profiles: optimization profiles, for dynamic inputs only.
        scales: INT8 scale by tensor; None without implicit quantization.
        assumes_scales: whether TensorRT invents scales, as trtexec does to measure latency without data.
        is_strongly_typed: whether the network is strongly typed.
        quantization_flags: quantization flags that are set.
        profiling_verbosity, optimization_level: same as in the config.
    """

    software: Version
    flags: frozenset[BuilderFlag] = frozenset({BuilderFlag.TF32})
    default_device: str = str(DeviceType.GPU)
    dla_core: int = -1
    capability: EngineCapability = EngineCapability.STANDARD
    devices: Mapping[str, str] = attrs.field(factory=dict)
    precisions: Mapping[str, DataType] = attrs.field(factory=dict)
    output_types: Mapping[str, tuple[DataType, ...]] = attrs.field(factory=dict)
    input_formats: tuple[IoFormat, ...] = ()
    output_formats: tuple[IoFormat, ...] = ()
    pools: Mapping[str, int] = attrs.field(factory=dict)
    profiles: tuple[ProfileShapes, ...] = ()
    scales: Mapping[str, float] | None = None
    assumes_scales: bool = False
    is_strongly_typed: bool = False
    quantization_flags: frozenset[QuantizationFlag] = frozenset()
    profiling_verbosity: ProfilingVerbosity = ProfilingVerbosity.LAYER_NAMES_ONLY
    optimization_level: int = DEFAULT_LEVEL

    @property
    def uses_dla(self) -> bool:
        """Whether layers are assigned to the DLA by default."""
        return self.default_device == DeviceType.DLA

    @property
    def has_layer_types(self) -> bool:
        """Whether single layers have types of their own."""
        return bool(self.precisions or self.output_types)

    @property
    def calibration_cache(self) -> CalibrationCache | None:
        """The scales as a cache for the board. With another algorithm name, the board would calibrate again.

        Raises:
            CalibrationError: The first line cannot represent the version.
        """
        if self.scales is None:
            return None
        major, minor, patch = (*self.software, 0, 0)[:3]
        header = CacheHeader(CalibrationAlgoType.ENTROPY_CALIBRATION_2, (major, minor, patch))
        return CalibrationCache(header.text, self.scales)

    def apply_to(self, network: Network, config: BuilderConfig | None = None) -> BuilderConfig:
        """Apply the build to a config; types and formats are set in the network.

        Args:
            network: network from the same model, without types and formats of its own.
            config: new config with settings that the build does not include, such as platforms; None for none.

        Raises:
            ConfigError: The network's typing differs from the build, or a setting does not match the network.
        """
        if network.is_strongly_typed != self.is_strongly_typed:
            raise ConfigError(
                "The network and the build must both be strongly typed, or neither",
                where=f"network {network.name!r}",
                found=f"strongly typed network: {network.is_strongly_typed}, build: {self.is_strongly_typed}",
                remedy="Create both with STRONGLY_TYPED, or neither",
            )
        config = BuilderConfig() if config is None else config
        set_io_formats(network, self.input_formats, self.output_formats)
        for name, layers in layers_by_name(network).items():
            for layer in layers:
                self._apply_to_layer(name, layer, config)
        config.flags = sum(1 << flag for flag in self.flags)
        for flag in self.quantization_flags:
            config.set_quantization_flag(flag)
        config.default_device_type = self.default_device
        if self.uses_dla:
            config.set_software(DeviceType.DLA, version_text(self.software))
        config.DLA_core = self.dla_core
        config.engine_capability = self.capability
        for pool, limit in self.pools.items():
            config.set_memory_pool_limit(pool, limit)
        for profile in self.profiles:
            config.add_optimization_profile(_profile(profile))
        config.calibration_cache = self.calibration_cache
        config.assume_scales = self.assumes_scales
        config.profiling_verbosity = self.profiling_verbosity
        config.builder_optimization_level = self.optimization_level
        return config

    def _apply_to_layer(self, name: str, layer: Layer, config: BuilderConfig) -> None:
        if name in self.devices:
            config.set_device_type(layer, self.devices[name])
        if name in self.precisions:
            layer.precision = self.precisions[name]
        types = self.output_types.get(name, ())
        for index in range(len(layer.outputs) if types else 0):
            layer.set_output_type(index, types[index % len(types)])


def _profile(shapes: ProfileShapes) -> OptimizationProfile:
    profile = OptimizationProfile()
    for name, (least, best, largest) in shapes.shapes.items():
        profile.set_shape(name, least, best, largest)
    for name, (least, best, largest) in shapes.values.items():
        profile.set_shape_input(name, least, best, largest)
    return profile


# What a version of TensorRT does not have at all ----------------------------------------------------------------------


def api_problems(build: BoardBuild) -> Iterator[str]:
    """Return all reasons why the build's TensorRT version cannot build it; empty if it can."""
    for what, versions in _needed(build):
        if versions is None:
            yield f"TensorRT has no {what}"
        elif build.software not in versions:
            yield f"TensorRT {version_text(build.software)} has no {what} ({versions})"


def _needed(build: BoardBuild) -> Iterator[tuple[str, Versions | None]]:
    """Return the features that the build requires, and the versions that have them; None for none."""
    for flag in sorted(build.flags):
        yield f"flag {flag.name}", FLAG_VERSIONS[flag]
    for dtype in dict.fromkeys(_types(build)):
        yield f"type {dtype.name}", TYPE_VERSIONS.get(dtype)
    for pool in build.pools:
        if pool not in set(MemoryPoolType):
            yield f"memory pool {pool}", None
        elif pool != MemoryPoolType.WORKSPACE:
            yield f"limit of memory pool {pool}", POOL_LIMITS
    if build.is_strongly_typed:
        yield "strongly typed networks", STRONG_TYPING
    if build.optimization_level != DEFAULT_LEVEL:
        yield "builder optimization level", OPTIMIZATION_LEVEL


def _types(build: BoardBuild) -> Iterator[DataType]:
    yield from (one.dtype for one in (*build.input_formats, *build.output_formats))
    yield from build.precisions.values()
    for types in build.output_types.values():
        yield from types
