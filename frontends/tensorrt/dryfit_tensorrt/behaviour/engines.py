"""Runtimes, engines and refitters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import dryfit
from dryfit_tensorrt.behaviour.build import default_tactic_sources
from dryfit_tensorrt.behaviour.monitoring import report_failure
from dryfit_tensorrt.behaviour.objects import Base, Scoped
from dryfit_tensorrt.behaviour.plugin_layers import take_plugins
from dryfit_tensorrt.behaviour.values import of_enum, to_core
from dryfit_tensorrt.settings import Settings


class Runtime(Base, Scoped):
    """Loads engines."""

    _beyond_tables = frozenset({"__enter__", "__exit__"})

    def __init__(self, logger: Any) -> None:
        self._logger = logger
        self._core = dryfit.Runtime()
        self._recorder = None
        self._host_code_allowed = False
        settings = Settings.from_environment()
        self._builder = dryfit.Builder()
        if settings.platform:
            self._builder.set_platform("DLA", settings.platform)

    @property
    def logger(self) -> Any:
        """The logger that was passed."""
        return self._logger

    def deserialize_cuda_engine(self, serialized_engine: Any) -> Any:
        """Return the engine of a file's bytes, or of a stream reader; None and a message for other bytes."""
        api = self._api
        try:
            if api.has("IStreamReader") and isinstance(serialized_engine, api.IStreamReader):
                contents = _read(serialized_engine.read)
            elif api.has("IStreamReaderV2") and isinstance(serialized_engine, api.IStreamReaderV2):
                contents = _read(lambda size: serialized_engine.read(size, 0))
            else:
                contents = bytes(serialized_engine)
            engine = api.ICudaEngine._of(dryfit.Engine.load(contents), self._logger)
            take_plugins(engine, engine._core)
        except dryfit.DryfitError as error:
            report_failure(self, error)
            return None
        return engine

    @property
    def DLA_core(self) -> int:
        """DLA core that runs the engines."""
        return self._core.DLA_core

    @DLA_core.setter
    def DLA_core(self, core: int) -> None:
        try:
            self._core.DLA_core = core
        except dryfit.DryfitError as error:
            report_failure(self, error)

    @property
    def num_DLA_cores(self) -> int:
        """Number of DLA cores of the platform that is simulated."""
        return self._builder.num_DLA_cores

    @property
    def engine_host_code_allowed(self) -> bool:
        """Whether engines may contain host code. Stored: an engine of dryfit never does."""
        return self._host_code_allowed

    @engine_host_code_allowed.setter
    def engine_host_code_allowed(self, allowed: bool) -> None:
        self._host_code_allowed = bool(allowed)

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


_CHUNK = 1 << 20


def _read(read: Any) -> bytes:
    """Everything that a stream reader has."""
    parts = []
    while part := bytes(read(_CHUNK) or b""):
        parts.append(part)
    return b"".join(parts)


class ICudaEngine(Base, Scoped):
    """A built network."""

    _beyond_tables = frozenset({"__enter__", "__exit__", "get_tensor_profile_values"})

    def __init__(self) -> None:
        raise TypeError("tensorrt.ICudaEngine: No constructor defined!")

    @classmethod
    def _of(cls, core: dryfit.Engine, logger: Any) -> Any:
        self = cls._blank()
        self._core, self._logger = core, logger
        self._recorder = None
        self._shown = None
        return self

    @property
    def num_layers(self) -> int:
        """Number of engine layers; a loadable of the DLA counts as one."""
        return len(self._core.create_engine_inspector().tensorrt_information()["Layers"])

    def _shown_names(self) -> dict[str, str]:
        """Name of each engine layer of dryfit to the name that is shown: of a DLA loadable, its one name."""
        shown: dict[str, str] | None = vars(self)["_shown"]
        if shown is None:
            shown = vars(self)["_shown"] = self._core.create_engine_inspector().tensorrt_names()
        return shown

    def serialize(self) -> Any:
        """Return the bytes of the engine file."""
        return self._api.IHostMemory(self._core.serialize())

    def serialize_with_config(self, config: Any) -> Any:
        """Return the bytes of the engine file."""
        del config
        return self.serialize()

    def create_serialization_config(self) -> Any:
        """Return a serialization config; its flags are stored."""
        return self._api.ISerializationConfig()

    def create_runtime_config(self) -> Any:
        """Return a runtime config; its strategy is stored."""
        return self._api.IRuntimeConfig()

    def create_execution_context(self, strategy: Any = None) -> Any:
        """Return an execution context; None and a message if the engine cannot run."""
        del strategy
        try:
            return self._api.IExecutionContext._of(self, self._core.create_execution_context())
        except dryfit.DryfitError as error:
            report_failure(self, error)
            return None

    def create_execution_context_without_device_memory(self) -> Any:
        """Return an execution context. It has its own memory."""
        return self.create_execution_context()

    def create_engine_inspector(self) -> Any:
        """Return an inspector."""
        return self._api.EngineInspector._of(self)

    def __getitem__(self, index: int | str) -> Any:
        """Return the name of an input or output by its index; in version 8 also the index by the name."""
        if isinstance(index, str):
            return self._index(index)
        if not -self._core.num_io_tensors <= index < self._core.num_io_tensors:
            raise IndexError(index)  # `for name in engine` ends here
        return self._core.get_tensor_name(index % self._core.num_io_tensors)

    def __len__(self) -> int:
        """Return the number of bindings."""
        return self.num_bindings

    def get_tensor_name(self, index: int) -> str:
        """Return the name of an input or output."""
        return self._core.get_tensor_name(index)

    def get_tensor_mode(self, name: str) -> Any:
        """Return whether a tensor is an input, an output, or neither."""
        return of_enum(self._api, "TensorIOMode", self._core.get_tensor_mode(name))

    def get_tensor_dtype(self, name: str) -> Any:
        """Return the type of an input or output."""
        return self._known(lambda: of_enum(self._api, "DataType", self._core.get_tensor_dtype(name)), "FLOAT")

    def get_tensor_shape(self, name: str) -> Any:
        """Return the shape of an input or output; -1 for a dynamic extent."""
        return self._known(lambda: self._api.Dims(self._core.get_tensor_shape(name)), None)

    def get_tensor_location(self, name: str) -> Any:
        """Return where an input or output is read: HOST for dimensions."""
        return self._known(lambda: of_enum(self._api, "TensorLocation", self._core.get_tensor_location(name)), None)

    def get_tensor_format(self, name: str, profile_index: int = 0) -> Any:
        """Return the format of an input or output."""
        del profile_index
        return self._known(lambda: of_enum(self._api, "TensorFormat", self._core.get_tensor_format(name)), None)

    def get_tensor_format_desc(self, name: str, profile_index: int = 0) -> str:
        """Return the format of an input or output in words."""
        del profile_index
        return self._known(lambda: self._core.get_tensor_format_desc(name), None) or ""

    def get_tensor_vectorized_dim(self, name: str, profile_index: int = 0) -> int:
        """Return the vectorized axis; -1 for none."""
        del profile_index
        return self._core.get_tensor_vectorized_dim(name)

    def get_tensor_components_per_element(self, name: str, profile_index: int = 0) -> int:
        """Return the elements of a vector; -1 without vectors."""
        del profile_index
        return self._core.get_tensor_components_per_element(name)

    def get_tensor_bytes_per_component(self, name: str, profile_index: int = 0) -> int:
        """Return the bytes of an element of a vector; -1 without vectors."""
        del profile_index
        return self._core.get_tensor_bytes_per_component(name)

    def get_tensor_profile_shape(self, name: str, profile_index: int) -> list[Any]:
        """Return minimum, optimum and maximum of an input or output in a profile."""
        try:
            if self._core.get_tensor_mode(name).name == "OUTPUT":
                shapes = self._output_shapes(name, profile_index)
            else:
                shapes = self._core.get_tensor_profile_shape(name, profile_index)
        except dryfit.DryfitError as error:
            report_failure(self, error)
            return []
        return [self._api.Dims(shape) for shape in shapes]

    def _output_shapes(self, name: str, profile_index: int) -> list[tuple[int, ...]]:
        """The shapes of an output at minimum, optimum and maximum of the inputs."""
        declared = self._core.get_tensor_shape(name)
        if -1 not in declared:
            return [declared] * 3
        context, found = self._core.create_execution_context(1), []
        context.set_optimization_profile(profile_index)
        inputs = [self._core.get_tensor_name(index) for index in range(self._core.num_io_tensors)]
        inputs = [one for one in inputs if self._core.get_tensor_mode(one).name == "INPUT"]
        for which in range(3):
            for one in inputs:
                context.set_input_shape(one, self._core.get_tensor_profile_shape(one, profile_index)[which])
            found.append(context.get_tensor_shape(name))
        return found

    def get_tensor_profile_values(self, name: Any, profile_index: Any) -> list[Any]:
        """Return minimum, optimum and maximum values of an input that carries dimensions."""
        name, profile_index = (profile_index, name) if isinstance(profile_index, str) else (name, profile_index)
        try:
            return [list(values) for values in self._core.get_tensor_profile_values(profile_index, name)]
        except dryfit.DryfitError as error:
            report_failure(self, error)
            return []

    def get_aliased_input_tensor(self, name: str) -> str:
        """Return the input whose memory an output shares; "" for none."""
        return self._core.get_aliased_input_tensor(name) or ""

    def is_debug_tensor(self, name: str) -> bool:
        """Return whether a tensor was marked for debugging."""
        return bool(self._core.is_debug_tensor(name))

    @property
    def name(self) -> str:
        """Name of the network."""
        return self._core.name

    @property
    def engine_capability(self) -> Any:
        """Kind of engine."""
        return of_enum(self._api, "EngineCapability", self._core.engine_capability)

    @property
    def profiling_verbosity(self) -> Any:
        """Level of detail of the inspector."""
        return of_enum(self._api, "ProfilingVerbosity", self._core.profiling_verbosity)

    @property
    def hardware_compatibility_level(self) -> Any:
        """NONE."""
        return self._api.HardwareCompatibilityLevel.NONE

    @property
    def tactic_sources(self) -> int:
        """The default sources of the version: they choose nothing here."""
        return default_tactic_sources(self._api)

    @property
    def has_implicit_batch_dimension(self) -> bool:
        """False."""
        return False

    def get_device_memory_size_for_profile(self, profile_index: int) -> int:
        """Return the bytes of a context for a profile."""
        del profile_index
        return self._core.device_memory_size

    def get_device_memory_size_for_profile_v2(self, profile_index: int) -> int:
        """Return the bytes of a context for a profile."""
        del profile_index
        return self._core.device_memory_size

    def get_weight_streaming_automatic_budget(self) -> int:
        """Return 0: weights are not streamed."""
        return 0

    def get_engine_stat(self, stat: Any) -> int:
        """Return a size in bytes: of all weights, or of those that a stripped engine lacks."""
        return self._core.get_engine_stat(dryfit.EngineStat[stat.name])

    @property
    def error_recorder(self) -> Any:
        """The recorder of errors, or None."""
        return self._recorder

    @error_recorder.setter
    def error_recorder(self, recorder: Any) -> None:
        self._recorder = recorder

    def _known(self, ask: Any, otherwise: str | None) -> Any:
        try:
            return ask()
        except dryfit.DryfitError as error:
            report_failure(self, error)
            return None if otherwise is None else self._api.DataType[otherwise]

    # The binding interface of version 8 ---------------------------------------------------------------------------

    @property
    def num_bindings(self) -> int:
        """Number of inputs and outputs, of every profile."""
        return self._core.num_io_tensors * self._core.num_optimization_profiles

    @property
    def max_batch_size(self) -> int:
        """1: the batch is explicit."""
        return 1

    def _index(self, name: str) -> int:
        count = self._core.num_io_tensors * self._core.num_optimization_profiles
        names = [self.get_binding_name(index) for index in range(count)]
        return names.index(name) if name in names else -1

    def _binding(self, binding: int | str) -> str:
        if isinstance(binding, str):
            return binding.partition(" [profile ")[0]
        return self._core.get_tensor_name(binding % self._core.num_io_tensors)

    def get_binding_name(self, index: int) -> str:
        """Return the name of a binding; after those of the first profile, with ` [profile N]`."""
        profile = index // self._core.num_io_tensors
        return self._binding(index) + (f" [profile {profile}]" if profile else "")

    def get_binding_index(self, name: str) -> int:
        """Return the index of a binding; -1 for none."""
        return self._index(name)

    def binding_is_input(self, index: int | str) -> bool:
        """Return whether a binding is an input."""
        return bool(self._core.get_tensor_mode(self._binding(index)).name == "INPUT")

    def get_binding_shape(self, index: int | str) -> Any:
        """Return the shape of a binding."""
        return self.get_tensor_shape(self._binding(index))

    def get_binding_dtype(self, index: int | str) -> Any:
        """Return the type of a binding."""
        return self.get_tensor_dtype(self._binding(index))

    def get_binding_format(self, index: int | str) -> Any:
        """Return the format of a binding."""
        return self.get_tensor_format(self._binding(index))

    def get_binding_format_desc(self, index: int | str) -> str:
        """Return the format of a binding in words."""
        return self.get_tensor_format_desc(self._binding(index))

    def get_binding_vectorized_dim(self, index: int | str) -> int:
        """Return the vectorized axis of a binding."""
        return self.get_tensor_vectorized_dim(self._binding(index))

    def get_binding_components_per_element(self, index: int | str) -> int:
        """Return the elements of a vector of a binding."""
        return self.get_tensor_components_per_element(self._binding(index))

    def get_binding_bytes_per_component(self, index: int | str) -> int:
        """Return the bytes of an element of a vector of a binding."""
        return self.get_tensor_bytes_per_component(self._binding(index))

    def get_location(self, index: int | str) -> Any:
        """Return where a binding is read."""
        return self.get_tensor_location(self._binding(index))

    def get_profile_shape(self, profile_index: int, binding: int | str) -> list[Any]:
        """Return minimum, optimum and maximum of a binding."""
        return self.get_tensor_profile_shape(self._binding(binding), profile_index)

    def get_profile_shape_input(self, profile_index: int, binding: int | str) -> list[Any]:
        """Return minimum, optimum and maximum values of a binding that carries dimensions."""
        return self.get_tensor_profile_values(self._binding(binding), profile_index)

    def is_shape_binding(self, binding: int) -> bool:
        """Return whether a binding carries dimensions."""
        return self._core.is_shape_inference_io(self._binding(binding))

    def is_execution_binding(self, binding: int) -> bool:
        """Return whether a binding carries data."""
        return not self.is_shape_binding(binding)


class Refitter(Base, Scoped):
    """Exchanges the weights of an engine."""

    _beyond_tables = frozenset({"__enter__", "__exit__"})

    def __init__(self, engine: Any, logger: Any) -> None:
        self._logger, self._engine = logger, engine
        self._recorder = None
        self._sources: dict[tuple[str, ...], Callable[[], bool]] = {}
        self._core = dryfit.Refitter(engine._core)

    @property
    def logger(self) -> Any:
        """The logger that was passed."""
        return self._logger

    def _tried(self, call: Any, otherwise: Any = False) -> Any:
        try:
            return call()
        except dryfit.DryfitError as error:
            report_failure(self, error)
            return otherwise

    def set_weights(self, layer_name: str, role: Any, weights: Any) -> bool:
        """Set the weights of a layer; returns whether they fit. Their memory is read again by the refit."""
        core_role = dryfit.WeightsRole[role.name]
        return self._given(
            ("layer", layer_name, role.name), lambda: self._core.set_weights(layer_name, core_role, _array(weights))
        )

    def set_named_weights(self, name: str, weights: Any, location: Any = None) -> bool:
        """Set weights by name; returns whether they fit. Their memory is read again by the refit.

        Args:
            name: name of the weights.
            weights: the weights.
            location: where their address is; both kinds of memory are the host's here.
        """
        del location
        return self._given(("name", name), lambda: self._core.set_named_weights(name, _array(weights)))

    def _given(self, key: tuple[str, ...], give: Callable[[], bool]) -> bool:
        if not self._tried(give):
            return False
        self._sources[key] = give
        return True

    def unset_named_weights(self, weights_name: str) -> bool:
        """Forget the weights of a name; returns whether there were any."""
        self._sources.pop(("name", weights_name), None)
        return self._tried(lambda: self._core.unset_named_weights(weights_name))

    def refit_cuda_engine(self) -> bool:
        """Put the new weights into the engine, as they are now; returns whether that was possible."""
        if not all(self._tried(give) for give in self._sources.values()):
            return False
        return self._tried(self._core.refit_cuda_engine)

    def refit_cuda_engine_async(self, stream_handle: int) -> bool:
        """Put the new weights into the engine; it is done when the call returns."""
        del stream_handle
        return self.refit_cuda_engine()

    def get_missing(self) -> Any:
        """Return the layers and roles that must be set before a refit."""
        layers, roles = self._core.get_missing()
        return list(layers), [of_enum(self._api, "WeightsRole", role) for role in roles]

    def get_all(self) -> Any:
        """Return the layers and roles that can be set."""
        layers, roles = self._core.get_all()
        return list(layers), [of_enum(self._api, "WeightsRole", role) for role in roles]

    def get_named_weights(self, weights_name: str) -> Any:
        """Return the current weights of a name."""
        return self._tried(lambda: self._api.Weights(self._core.get_named_weights(weights_name)), None)

    def get_weights_prototype(self, weights_name: str) -> Any:
        """Return type and size of the weights of a name, without values."""
        return self._tried(lambda: self._api.Weights(self._core.get_named_weights(weights_name)), None)

    def get_dynamic_range(self, tensor_name: str) -> Any:
        """Return (minimum, maximum) of a tensor."""
        return self._tried(lambda: self._core.get_dynamic_range(tensor_name), None)

    def set_dynamic_range(self, tensor_name: str, range: Any) -> bool:
        """Set the range of a tensor; returns whether it is valid."""
        return self._tried(lambda: self._core.set_dynamic_range(tensor_name, tuple(range)))

    @property
    def error_recorder(self) -> Any:
        """The recorder of errors, or None."""
        return self._recorder

    @error_recorder.setter
    def error_recorder(self, recorder: Any) -> None:
        self._recorder = recorder


def _array(weights: Any) -> Any:
    """The values of weights, or of an array, at this moment, in one axis: TensorRT's weights have no shape."""
    found = to_core(weights)
    return np.asarray(found.numpy() if isinstance(found, dryfit.Weights) else found).reshape(-1)
