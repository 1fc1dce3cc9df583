"""Builders, their configs, profiles and timing caches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import dryfit
from dryfit_tensorrt.behaviour import algorithms
from dryfit_tensorrt.behaviour.algorithms import SelectorOfProgram
from dryfit_tensorrt.behaviour.build_log import log_placement
from dryfit_tensorrt.behaviour.calibrators import StreamOfProgram
from dryfit_tensorrt.behaviour.monitoring import MonitorOfProgram, forwarded_log, report, report_failure
from dryfit_tensorrt.behaviour.objects import Base, Scoped
from dryfit_tensorrt.behaviour.plugin_layers import finish_build, take_plugins
from dryfit_tensorrt.behaviour.values import of_enum
from dryfit_tensorrt.cuda.device import current_device
from dryfit_tensorrt.settings import Settings

_OBEYED = {"STRICT_TYPES": "OBEY_PRECISION_CONSTRAINTS"}
"""Flags of older versions to what they became."""


class Builder(Base, Scoped):
    """Makes networks and configs, and builds engines."""

    _beyond_tables = frozenset({"__enter__", "__exit__"})

    def __init__(self, logger: Any) -> None:
        self._logger = logger
        self._core = dryfit.Builder()
        self._settings = Settings.from_environment()
        self._recorder = None
        for device in ("GPU", "DLA") if self._settings.platform else ():
            self._core.set_platform(device, self._settings.platform or "")

    @property
    def logger(self) -> Any:
        """The logger that was passed."""
        return self._logger

    def reset(self) -> None:
        """Set everything back to its default."""
        self._recorder = None

    def create_network(self, flags: int = 0) -> Any:
        """Return an empty network. In version 11 every network is strongly typed.

        Args:
            flags: bit mask of `NetworkDefinitionCreationFlag`.
        """
        known = self._api.NetworkDefinitionCreationFlag.__members__
        flags = int(flags)
        unknown = flags & ~sum(1 << int(one) for one in known.values())
        if unknown:
            report(self, "WARNING", f"create_network: bits {unknown:#b} are not creation flags of this version")
        strong = self._api.major >= 11 or bool("STRONGLY_TYPED" in known and flags >> int(known["STRONGLY_TYPED"]) & 1)
        typed = 1 << dryfit.NetworkDefinitionCreationFlag.STRONGLY_TYPED if strong else 0
        core = self._core.create_network(typed)
        core.name = "Unnamed Network 0"
        return self._api.INetworkDefinition._of(self, core, flags)

    def create_builder_config(self) -> Any:
        """Return a config with the defaults of the version."""
        return self._api.IBuilderConfig._of(self)

    def create_optimization_profile(self) -> Any:
        """Return an empty profile."""
        return self._api.IOptimizationProfile._of(self)

    @property
    def num_DLA_cores(self) -> int:
        """Number of DLA cores of the platform that is simulated; 0 in version 11.1, which has no DLA."""
        return 0 if self._api.major >= 11 and self._settings.software is None else self._core.num_DLA_cores

    @property
    def max_DLA_batch_size(self) -> int:
        """Largest batch on the DLA."""
        return self._core.max_DLA_batch_size

    @property
    def platform_has_tf32(self) -> bool:
        """True: a build may have the flag, which changes nothing here."""
        return True

    @property
    def platform_has_fast_fp16(self) -> bool:
        """Whether the GPU computes in FP16."""
        return self._core.platform_has_fast_fp16

    @property
    def platform_has_fast_int8(self) -> bool:
        """Whether the GPU computes in INT8."""
        return self._core.platform_has_fast_int8

    @property
    def error_recorder(self) -> Any:
        """The recorder of errors, or None."""
        return self._recorder

    @error_recorder.setter
    def error_recorder(self, recorder: Any) -> None:
        self._recorder = recorder

    def get_plugin_registry(self) -> Any:
        """Return the plugin registry of this process."""
        return self._api.get_plugin_registry()

    # Building -----------------------------------------------------------------------------------------------------

    def is_network_supported(self, network: Any, config: Any) -> bool:
        """Return whether every layer can be placed; logs why not."""
        return self._tried(network, config, self._core.is_network_supported, False)

    def build_engine_with_config(self, network: Any, config: Any) -> Any:
        """Build an engine and return it, or None with messages in the log."""
        return self._built(network, config)

    def build_engine(self, network: Any, config: Any) -> Any:
        """Build an engine and return it, or None with messages in the log."""
        return self._built(network, config)

    def _built(self, network: Any, config: Any) -> Any:
        def build(core: Any, settings: Any) -> Any:
            engine = self._api.ICudaEngine._of(self._core_engine(core, settings), self._logger)
            take_plugins(engine, engine._core, just_built=True)
            return engine

        engine = self._tried(network, config, build, None)
        if engine is not None:
            log_placement(self, engine._core.plan)
        return engine

    def _core_engine(self, core: Any, settings: Any) -> dryfit.Engine:
        engine = self._core.build_engine(core, settings)
        finish_build(engine)
        return engine

    def build_serialized_network(self, network: Any, config: Any, kernel_text: Any = None) -> Any:
        """Build an engine and return its bytes, or None with messages in the log.

        With `EngineCapability.DLA_STANDALONE` these are the bytes of a loadable. There is no kernel text here.
        """
        del kernel_text

        def build(core: Any, settings: Any) -> bytes:
            if settings.engine_capability is dryfit.EngineCapability.DLA_STANDALONE:
                return self._core.build_serialized_network(core, settings)
            engine = self._core_engine(core, settings)
            log_placement(self, engine.plan)
            return engine.serialize()

        contents = self._tried(network, config, build, None)
        return None if contents is None else self._api.IHostMemory(contents)

    def build_serialized_network_to_stream(self, network: Any, config: Any, writer: Any) -> bool:
        """Build an engine and write its bytes to a writer; returns whether all was written."""
        contents = self.build_serialized_network(network, config)
        if contents is None:
            return False
        place = 0
        while place < len(contents):
            written = int(writer.write(contents[place:]) or 0)
            if written <= 0:
                report(self, "ERROR", f"The stream writer took {place} of {len(contents)} bytes of the engine")
                return False
            place += written
        return True

    def _tried(self, network: Any, config: Any, build: Callable[[Any, Any], Any], otherwise: Any) -> Any:
        """What a build returns; a failure is logged, as TensorRT does it, and gives another value."""
        with forwarded_log(self):
            try:
                return build(network._core, config._for_build(network))
            except dryfit.DryfitError as error:
                report_failure(self, error)
                return otherwise


class IBuilderConfig(Base, Scoped):
    """The settings of a build."""

    _beyond_tables = frozenset({"__enter__", "__exit__"})

    def __init__(self) -> None:
        raise TypeError("tensorrt.IBuilderConfig: No constructor defined!")

    @classmethod
    def _of(cls, builder: Any) -> Any:
        self = cls._blank()
        self._builder, self._logger = builder, builder._logger
        self._start()
        return self

    def _start(self) -> None:
        settings = self._builder._settings
        self._core = self._builder._core.create_builder_config()
        if settings.software is not None or self._api.major < 11:
            self._core.set_software("DLA", settings.software or self._api.level.name)
        self._calibrator: Any = None
        self._monitor: Any = None
        self._timing_cache: Any = None
        self._profiles: list[Any] = []
        self._calibration_profile: Any = None
        self._pools: dict[str, int] = {}
        self._tactic_sources = default_tactic_sources(self._api)
        self._preview = set(_PREVIEWED.get(self._api.major, ()))
        self._algorithm_selector: Any = None
        tf32 = self._api.BuilderFlag.__members__.get("TF32")
        self._flags = 0 if tf32 is None else 1 << int(tf32)
        self._quantization_flags = 0

    def reset(self) -> None:
        """Set everything back to its default."""
        self._start()

    # Flags --------------------------------------------------------------------------------------------------------

    @property
    def flags(self) -> int:
        """Build flags, a bit mask of `BuilderFlag`."""
        return self._flags

    @flags.setter
    def flags(self, flags: int) -> None:
        self._flags = int(flags)

    def set_flag(self, flag: Any) -> None:
        """Set a flag."""
        self._flags |= 1 << int(flag)

    def clear_flag(self, flag: Any) -> None:
        """Clear a flag."""
        self._flags &= ~(1 << int(flag))

    def get_flag(self, flag: Any) -> bool:
        """Return whether a flag is set."""
        return bool(self._flags >> int(flag) & 1)

    @property
    def quantization_flags(self) -> int:
        """Bit mask of `QuantizationFlag`."""
        return self._quantization_flags

    @quantization_flags.setter
    def quantization_flags(self, flags: int) -> None:
        self._quantization_flags = int(flags)

    def set_quantization_flag(self, flag: Any) -> None:
        """Set a quantization flag."""
        self._quantization_flags |= 1 << int(flag)

    def clear_quantization_flag(self, flag: Any) -> None:
        """Clear a quantization flag."""
        self._quantization_flags &= ~(1 << int(flag))

    def get_quantization_flag(self, flag: Any) -> bool:
        """Return whether a quantization flag is set."""
        return bool(self._quantization_flags >> int(flag) & 1)

    # Devices ------------------------------------------------------------------------------------------------------

    @property
    def default_device_type(self) -> Any:
        """Device of layers without one of their own."""
        return of_enum(self._api, "DeviceType", self._core.default_device_type)

    @default_device_type.setter
    def default_device_type(self, device: Any) -> None:
        self._core.default_device_type = self._api.DeviceType(int(device)).name

    @property
    def DLA_core(self) -> int:
        """DLA core; -1 for none."""
        return self._core.DLA_core

    @DLA_core.setter
    def DLA_core(self, core: int) -> None:
        try:
            self._core.DLA_core = core
        except dryfit.DryfitError as error:
            report_failure(self, error)

    def set_device_type(self, layer: Any, device_type: Any) -> None:
        """Assign a layer to a device."""
        self._core.set_device_type(layer._core, self._api.DeviceType(int(device_type)).name)

    def get_device_type(self, layer: Any) -> Any:
        """Return the device of a layer: its own, or else the default."""
        return of_enum(self._api, "DeviceType", self._core.get_device_type(layer._core))

    def can_run_on_DLA(self, layer: Any) -> bool:
        """Return whether a layer can run on the DLA as it is now; the reasons are logged."""
        self._apply(layer._network)
        verdict = self._core.can_run_on(layer._core, "DLA")
        for violation in verdict.violations:
            report(self, "WARNING", f"{layer._core.name}: {violation}")
        return bool(verdict.supported)

    @property
    def engine_capability(self) -> Any:
        """Kind of engine to build."""
        return of_enum(self._api, "EngineCapability", self._core.engine_capability)

    @engine_capability.setter
    def engine_capability(self, capability: Any) -> None:
        self._core.engine_capability = dryfit.EngineCapability(int(capability))

    # Memory pools -------------------------------------------------------------------------------------------------

    def set_memory_pool_limit(self, pool: Any, pool_size: int) -> None:
        """Set the limit of a memory pool in bytes. A build with the DLA fails with a size that a pool cannot have."""
        self._pools[self._api.MemoryPoolType(int(pool)).name] = int(pool_size)

    def get_memory_pool_limit(self, pool: Any) -> int:
        """Return the limit of a memory pool in bytes: the one set, else the default of the board."""
        name = self._api.MemoryPoolType(int(pool)).name
        if name in self._pools:
            return self._pools[name]
        found = self._core.get_memory_pool_limit(name) if name in dryfit.MemoryPoolType.__members__ else None
        return _default_limit(name) if found is None else found

    def _hand_on_pools(self, *, with_dla: bool) -> None:
        """Give the limits of the pools that dryfit has to it; those of the DLA count only if a layer may run there.

        Raises:
            DryfitError: A pool cannot have its limit.
        """
        for name, size in self._pools.items():
            if name in dryfit.MemoryPoolType.__members__ and (with_dla or not name.startswith("DLA_")):
                self._core.set_memory_pool_limit(name, size)

    @property
    def max_workspace_size(self) -> int:
        """Limit of the workspace in bytes."""
        return self.get_memory_pool_limit(self._api.MemoryPoolType.WORKSPACE)

    @max_workspace_size.setter
    def max_workspace_size(self, size: int) -> None:
        self.set_memory_pool_limit(self._api.MemoryPoolType.WORKSPACE, size)

    # Profiles and calibration -------------------------------------------------------------------------------------

    def add_optimization_profile(self, profile: Any) -> int:
        """Add a profile and return its index; -1 and a message for an empty one."""
        try:
            index = self._core.add_optimization_profile(profile._core)
        except dryfit.DryfitError as error:
            report_failure(self, error)
            return -1
        self._profiles.append(profile)
        return index

    @property
    def num_optimization_profiles(self) -> int:
        """Number of profiles."""
        return len(self._profiles)

    def set_calibration_profile(self, profile: Any) -> bool:
        """Set the profile whose optimum shapes are used to calibrate."""
        self._calibration_profile = profile
        self._core.set_calibration_profile(profile._core)
        return True

    def get_calibration_profile(self) -> Any:
        """Return the calibration profile, or None."""
        return self._calibration_profile

    @property
    def int8_calibrator(self) -> Any:
        """The calibrator, or None."""
        return self._calibrator

    @int8_calibrator.setter
    def int8_calibrator(self, calibrator: Any) -> None:
        self._calibrator = calibrator

    # The rest -----------------------------------------------------------------------------------------------------

    @property
    def profiling_verbosity(self) -> Any:
        """Level of detail of the engine inspector."""
        return of_enum(self._api, "ProfilingVerbosity", self._core.profiling_verbosity)

    @profiling_verbosity.setter
    def profiling_verbosity(self, verbosity: Any) -> None:
        self._core.profiling_verbosity = dryfit.ProfilingVerbosity(int(verbosity))

    @property
    def builder_optimization_level(self) -> int:
        """Effort of the builder, 0 to 5."""
        return self._core.builder_optimization_level

    @builder_optimization_level.setter
    def builder_optimization_level(self, level: int) -> None:
        try:
            self._core.builder_optimization_level = level
        except dryfit.DryfitError as error:
            report_failure(self, error)

    @property
    def progress_monitor(self) -> Any:
        """The progress monitor, or None."""
        return self._monitor

    @progress_monitor.setter
    def progress_monitor(self, monitor: Any) -> None:
        self._monitor = monitor

    @property
    def algorithm_selector(self) -> Any:
        """The selector that is asked about the kernels of each layer, or None."""
        return self._algorithm_selector

    @algorithm_selector.setter
    def algorithm_selector(self, selector: Any) -> None:
        self._algorithm_selector = selector

    def set_tactic_sources(self, tactic_sources: int) -> bool:
        """Store a bit mask of `TacticSource`; it chooses nothing here."""
        self._tactic_sources = int(tactic_sources)
        return True

    def get_tactic_sources(self) -> int:
        """Return the bit mask of tactic sources."""
        return self._tactic_sources

    def set_preview_feature(self, feature: Any, enable: bool) -> None:
        """Store whether a preview feature is on; it changes nothing here."""
        (self._preview.add if enable else self._preview.discard)(self._api.PreviewFeature(int(feature)).name)

    def get_preview_feature(self, feature: Any) -> bool:
        """Return whether a preview feature is on."""
        return self._api.PreviewFeature(int(feature)).name in self._preview

    def create_timing_cache(self, serialized_timing_cache: Any) -> Any:
        """Return a timing cache from its bytes; an empty one from none. None and a message for other bytes."""
        try:
            core = self._core.create_timing_cache(bytes(serialized_timing_cache))
        except dryfit.DryfitError as error:
            report_failure(self, error)
            return None
        return self._api.ITimingCache._of(core, self._logger)

    def set_timing_cache(self, cache: Any, ignore_mismatch: bool) -> bool:
        """Use a timing cache; returns whether it fits this machine."""
        try:
            self._core.set_timing_cache(cache._core, ignore_mismatch)
        except dryfit.DryfitError as error:
            report_failure(self, error)
            return False
        self._timing_cache = cache
        return True

    def get_timing_cache(self) -> Any:
        """Return the timing cache that is used, or None."""
        if self._timing_cache is None:
            core = self._core.get_timing_cache()
            return None if core is None else self._api.ITimingCache._of(core, self._logger)
        return self._timing_cache

    # For the build ------------------------------------------------------------------------------------------------

    def _apply(self, network: Any) -> None:
        """Hand flags and calibrator to the config of dryfit."""
        core = self._core
        names = {one.name: int(one) for one in self._api.BuilderFlag}
        wanted = {_OBEYED.get(name, name) for name, bit in names.items() if self._flags >> bit & 1}
        for flag in dryfit.BuilderFlag:
            (core.set_flag if flag.name in wanted else core.clear_flag)(flag)
        before_fusion = dryfit.QuantizationFlag.CALIBRATE_BEFORE_FUSION
        (core.set_quantization_flag if self._quantization_flags & 1 else core.clear_quantization_flag)(before_fusion)
        stream = None if self._calibrator is None else StreamOfProgram(self._calibrator, network, self)
        current = core.int8_calibrator
        if stream is None or not isinstance(current, StreamOfProgram) or current.calibrator is not self._calibrator:
            core.int8_calibrator = stream

    def _for_build(self, network: Any) -> dryfit.BuilderConfig:
        self._apply(network)
        on_dla = "DLA" in (self._core.default_device_type, *self._core.explicit_device_types(network._core).values())
        self._hand_on_pools(with_dla=on_dla)
        if on_dla and not self._builder.num_DLA_cores:
            self._core.set_software("DLA", self._api.level.name)  # the build says why there is no DLA
        dynamic = any(-1 in tensor.shape for tensor in network._core.inputs)
        if self._calibrator is not None and dynamic and self._calibration_profile is None and self._profiles:
            report(
                self, "WARNING", "No calibration profile is set: the first optimization profile is used to calibrate"
            )
            self._core.set_calibration_profile(self._profiles[0]._core)
        self._core.progress_monitor = None if self._monitor is None else MonitorOfProgram(self._monitor)
        selector = self._algorithm_selector
        self._core.kernel_selector = None if selector is None else SelectorOfProgram(selector, self._api)
        return self._core


def _default_limit(pool: str) -> int:
    """Return the default of a pool that dryfit does not limit.

    Source: TensorRT API, MemoryPoolType: the workspace is all memory of the device, TACTIC_DRAM 75 % of it on a board
    whose processors share their memory. TACTIC_SHARED_MEMORY is 1 GiB in the tests of Polygraphy.
    """
    if pool == "TACTIC_SHARED_MEMORY":
        return 1 << 30
    device = current_device()
    return device.total_bytes * 3 // 4 if pool == "TACTIC_DRAM" and device.is_integrated else device.total_bytes


_PREVIEWED = {
    8: ("FASTER_DYNAMIC_SHAPES_0805", "DISABLE_EXTERNAL_TACTIC_SOURCES_FOR_CORE_0805"),
    10: ("PROFILE_SHARING_0806",),
}
"""Preview features that are on by default, by major version. Source: the tests of Polygraphy."""

_OFF_BY_DEFAULT = {"CUBLAS", "CUBLAS_LT", "CUDNN"}
"""Tactic sources that are off by default since version 10. Source: the tests of Polygraphy."""


def default_tactic_sources(api: Any) -> int:
    """Return the bit mask of the tactic sources that a version uses by default."""
    off = _OFF_BY_DEFAULT if api.major >= 10 else ()
    return sum(1 << int(one) for one in api.TacticSource if one.name not in off)


class IOptimizationProfile(Base):
    """Shapes of dynamic inputs."""

    def __init__(self) -> None:
        raise TypeError("tensorrt.IOptimizationProfile: No constructor defined!")

    @classmethod
    def _of(cls, builder: Any) -> Any:
        self = cls._blank()
        self._core, self._logger = dryfit.OptimizationProfile(), builder._logger
        self._extra = 1.0
        return self

    def set_shape(self, input: str, min: Sequence[int], opt: Sequence[int], max: Sequence[int]) -> None:
        """Set the shapes of an input.

        Raises:
            RuntimeError: The shapes are not in ascending order or differ in rank.
        """
        try:
            self._core.set_shape(input, tuple(min), tuple(opt), tuple(max))
        except dryfit.DryfitError as error:
            raise RuntimeError(str(error)) from None

    def get_shape(self, input: str) -> list[Any]:
        """Return minimum, optimum and maximum; [] where none are set."""
        return [self._api.Dims(shape) for shape in self._core.get_shape(input)]

    def set_shape_input(self, input: str, min: Sequence[int], opt: Sequence[int], max: Sequence[int]) -> None:
        """Set the values of an input that carries dimensions.

        Raises:
            RuntimeError: The values are not in ascending order or differ in number.
        """
        try:
            self._core.set_shape_input(input, tuple(min), tuple(opt), tuple(max))
        except dryfit.DryfitError as error:
            raise RuntimeError(str(error)) from None

    def get_shape_input(self, input: str) -> list[Any]:
        """Return minimum, optimum and maximum values; [] where none are set."""
        return [list(values) for values in self._core.get_shape_input(input)]

    @property
    def extra_memory_target(self) -> float:
        """Stored without effect."""
        return self._extra

    @extra_memory_target.setter
    def extra_memory_target(self, target: float) -> None:
        self._extra = float(target)

    def __bool__(self) -> bool:
        return bool(self._core)


class ITimingCache(Base, Scoped):
    """Measured times of kernels on this machine."""

    _beyond_tables = frozenset({"__enter__", "__exit__"})

    def __init__(self) -> None:
        raise TypeError("tensorrt.ITimingCache: No constructor defined!")

    @classmethod
    def _of(cls, core: dryfit.TimingCache, logger: Any) -> Any:
        self = cls._blank()
        self._core, self._logger = core, logger
        return self

    def serialize(self) -> Any:
        """Return the bytes of the cache."""
        return self._api.IHostMemory(self._core.serialize())

    queryKeys = algorithms.query_keys  # noqa: N815  TensorRT's name
    query = algorithms.query
    update = algorithms.update

    def combine(self, input_cache: Any, ignore_mismatch: bool) -> bool:
        """Add another cache; returns whether it fits this machine."""
        try:
            return bool(self._core.combine(input_cache._core, ignore_mismatch))
        except dryfit.DryfitError as error:
            report_failure(self, error)
            return False

    def reset(self) -> bool:
        """Remove all entries."""
        self._core.reset()
        return True
