"""A built network: TensorRT's `ICudaEngine`, for this CPU."""

from __future__ import annotations

import enum
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from dryfit.engine import engine_file
from dryfit.engine.binding import specs_for
from dryfit.engine.device_tensors import format_description, platform_family, tensor_format
from dryfit.engine.execution_context import ExecutionContext
from dryfit.engine.file_source import EngineSource
from dryfit.engine.plan import Plan
from dryfit.engine.plan_check import check_plan
from dryfit.engine.stripping import stripped
from dryfit.errors import ConfigError, ExecutionError, UnknownNameError
from dryfit.forking import ForkSafeLock
from dryfit.network.attribute_names import KnownAttributes
from dryfit.network.data_types import DataType
from dryfit.network.packed_elements import is_stand_in
from dryfit.network.tensor import Array, Shape, Tensor, TensorLocation, TensorSpec
from dryfit.network.weights_role import weights_of

if TYPE_CHECKING:
    from dryfit.engine.inspector import EngineInspector


class TensorIOMode(enum.IntEnum):
    """The role of a tensor in an engine; TensorRT's `TensorIOMode`."""

    NONE = 0
    INPUT = 1
    OUTPUT = 2


class EngineStat(enum.IntEnum):
    """A number about an engine; TensorRT's `EngineStat`."""

    TOTAL_WEIGHTS_SIZE = 0
    STRIPPED_WEIGHTS_SIZE = 1


class Engine(KnownAttributes):
    """A network built for its devices. Contexts run it; only a refit modifies it.

    Attributes:
        plan: layers, kernels, decisions and weights. A refit replaces it.
        refit_lock: lock that is held during a refit.

    Args:
        plan: plan to use.

    Raises:
        EngineFileError: The parts of the plan are inconsistent.

    Example:
        >>> engine = builder.build_engine(network, config)
        >>> engine.save("model.engine")
        >>> context = Engine.load("model.engine").create_execution_context()
    """

    plan: Plan
    refit_lock: ForkSafeLock

    def __init__(self, plan: Plan) -> None:
        self.refit_lock = ForkSafeLock()
        self.adopt(plan)

    def adopt(self, plan: Plan) -> None:
        """Replace the plan by another one of the same network. Active runs finish with the old plan.

        Args:
            plan: plan to use from now on.

        Raises:
            EngineFileError: The parts of the plan are inconsistent.
        """
        plan.network.refresh_shapes()  # now, so that contexts in several threads only read it
        check_plan(plan)
        self._take(plan)

    def _take(self, plan: Plan) -> None:
        self.plan = plan
        self._inputs = {tensor.name: tensor for tensor in plan.network.inputs}
        self._outputs = {tensor.name: tensor for tensor in plan.outputs}

    def __repr__(self) -> str:
        devices = ", ".join(sorted({segment.device for segment in self.plan.segments}))
        plural = "" if self.num_layers == 1 else "s"
        return f"<Engine {self.name!r}: {self.num_layers} engine layer{plural} on {devices}>"

    @classmethod
    def load(cls, source: EngineSource) -> Engine:
        """Load an engine from a file path, or from the bytes of a file.

        Raises:
            EngineFileError: See `dryfit.engine.engine_file.load`.
        """
        engine = cls.__new__(cls)
        engine.refit_lock = ForkSafeLock()
        engine._take(engine_file.load(source))  # noqa: SLF001  which has checked the plan
        return engine

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the engine to a file. On failure, no partial file is left.

        Raises:
            EngineFileError: See `dryfit.engine.engine_file.save`.
        """
        engine_file.save(self.plan, path)

    def serialize(self, *, exclude_weights: bool = False) -> bytes:
        """Return the bytes of the engine file. The same network, config and versions give the same bytes.

        Args:
            exclude_weights: whether to leave out the weights that a refit can provide; TensorRT's
                `SerializationFlag.EXCLUDE_WEIGHTS`.

        Raises:
            ExecutionError: `exclude_weights` is set, and the engine does not support refit.
        """
        if not exclude_weights or self.is_stripped:
            return engine_file.serialize(self.plan)
        if not self.refittable:
            raise ExecutionError(
                "Only the weights of an engine that supports refit can be excluded",
                where=f"engine {self.name!r}",
                remedy="Build it with `BuilderFlag.REFIT`, REFIT_IDENTICAL or STRIP_PLAN",
            )
        return engine_file.serialize(stripped(self.plan))

    def create_execution_context(self, num_threads: int | None = None) -> ExecutionContext:
        """Create an execution context. Its memory is allocated at the first run with new input shapes.

        Args:
            num_threads: number of threads; default: one per CPU.

        Raises:
            PluginError: A device that the engine uses is not installed.
            EngineFileError: A kernel that the engine uses does not exist, or does not support its layer.
            ExecutionError: The number of threads is less than 1, or the engine is stripped.
        """
        return ExecutionContext(self, num_threads)

    def create_engine_inspector(self) -> EngineInspector:
        """Create an inspector, which reports the engine's layers as text or JSON."""
        from dryfit.engine.inspector import EngineInspector

        return EngineInspector(self)

    # The engine ---------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """Name of the network."""
        return self.plan.network.name

    @property
    def num_layers(self) -> int:
        """Number of engine layers; a fused group counts as one."""
        return len(self.plan.operations)

    @property
    def device_memory_size(self) -> int:
        """Total bytes of all memory pools of the devices that the engine uses."""
        return sum(self.plan.pool_sizes.values())

    device_memory_size_v2 = device_memory_size

    @property
    def engine_capability(self) -> str:
        """Name of the `EngineCapability` that the engine was built with."""
        return str(self.plan.settings.get("engine_capability", "STANDARD"))

    @property
    def profiling_verbosity(self) -> str:
        """Name of the `ProfilingVerbosity` that the engine was built with."""
        return str(self.plan.settings.get("profiling_verbosity", "LAYER_NAMES_ONLY"))

    @property
    def refittable(self) -> bool:
        """Whether `Refitter` can exchange weights: the engine was built with REFIT, or a flag that includes it."""
        return self.plan.refit is not None

    @property
    def is_stripped(self) -> bool:
        """Whether the engine has no weights and cannot run until a refit."""
        return self.plan.is_stripped

    def get_engine_stat(self, stat: EngineStat) -> int:
        """Return the bytes of weights; TensorRT's `get_engine_stat`.

        TOTAL_WEIGHTS_SIZE counts all weights, as the network states them and before kernels pack them;
        STRIPPED_WEIGHTS_SIZE those among them that a stripped engine lacks, 0 for another engine.
        """
        arrays = [array for layer in self.plan.network.layers for _, array in weights_of(layer)]
        if EngineStat(stat) is EngineStat.STRIPPED_WEIGHTS_SIZE:
            arrays = [array for array in arrays if self.is_stripped and is_stand_in(array)]
        return sum(DataType.from_numpy(array.dtype).bytes_of(array.size) for array in arrays)

    def get_aliased_input_tensor(self, name: str) -> str | None:
        """Return the input that an output updates, None for another output; TensorRT's `get_aliased_input_tensor`.

        The output of a cache update has the same memory as the cache in TensorRT. Here it has memory of its own, unless
        the array of the input is also given for the output.

        Raises:
            UnknownNameError: The engine has no such input or output.
        """
        return self.plan.aliased_inputs.get(self._tensor(name).name)

    def is_debug_tensor(self, name: str) -> bool:
        """Return whether a tensor was marked with `Network.mark_debug`; TensorRT's `is_debug_tensor`."""
        return name in self.plan.debug_tensors

    # Inputs and outputs -------------------------------------------------------------------------------------------

    @property
    def num_io_tensors(self) -> int:
        """Number of inputs and outputs."""
        return len(self._inputs) + len(self._outputs)

    def get_tensor_name(self, index: int) -> str:
        """Return the name of an input or output; inputs come first.

        Raises:
            ExecutionError: The index is out of range.
        """
        names = [*self._inputs, *self._outputs]
        if not -len(names) <= index < len(names):
            raise ExecutionError(
                "The engine input or output index is out of range",
                where=f"engine {self.name!r}",
                found=index,
                allowed=f"0 to {len(names) - 1}",
                remedy="Use an index below num_io_tensors",
            )
        return names[index]

    __getitem__ = get_tensor_name

    def get_tensor_mode(self, name: str) -> TensorIOMode:
        """Return whether a tensor is an input, an output, or neither."""
        if name in self._inputs:
            return TensorIOMode.INPUT
        return TensorIOMode.OUTPUT if name in self._outputs else TensorIOMode.NONE

    def get_tensor_shape(self, name: str) -> Shape:
        """Return the shape of an input or output; -1 for a dynamic extent."""
        return self._tensor(name).shape

    def get_tensor_dtype(self, name: str) -> DataType:
        """Return the data type of an input or output."""
        return self._tensor(name).dtype

    def get_tensor_location(self, name: str) -> TensorLocation:
        """Return whether an input or output carries data (DEVICE) or dimensions (HOST)."""
        return TensorLocation.HOST if self._tensor(name).is_shape_tensor else TensorLocation.DEVICE

    def is_shape_inference_io(self, name: str) -> bool:
        """Return whether an input or output carries dimensions."""
        return self._tensor(name).is_shape_tensor

    # Formats ------------------------------------------------------------------------------------------------------

    def get_tensor_format(self, name: str) -> str:
        """Return the name of the format of an input or output on its device."""
        return tensor_format(self.plan, self._tensor(name).name).name

    def get_tensor_format_desc(self, name: str) -> str:
        """Return the format of an input or output as TensorRT describes it."""
        return format_description(self.plan, name, self._tensor(name).dtype)

    def get_tensor_vectorized_dim(self, name: str) -> int:
        """Return the axis that is vectorized, which is the channel axis; -1 without vectorization."""
        described = tensor_format(self.plan, self._tensor(name).name)
        if described.channels_vector == 1:
            return -1
        return len(self._tensor(name).shape) - 1 - described.spatial_axes

    def get_tensor_components_per_element(self, name: str) -> int:
        """Return the number of elements per vector; -1 without vectorization."""
        vector = tensor_format(self.plan, self._tensor(name).name).channels_vector
        return vector if vector > 1 else -1

    def get_tensor_bytes_per_component(self, name: str) -> int:
        """Return the number of bytes per vector element; -1 without vectorization."""
        vectorized = self.get_tensor_vectorized_dim(name) >= 0
        return self._tensor(name).dtype.bytes_of(1) if vectorized else -1

    def tensor_specs(self, input_shapes: Mapping[str, Shape]) -> Mapping[str, TensorSpec]:
        """Return the shape and type of every tensor inside the engine for these input shapes, by name.

        Raises:
            ExecutionError: A layer does not support the resulting shapes.
        """
        return specs_for(self.plan, input_shapes)

    def tensor_bytes(self, name: str, shape: Shape) -> int:
        """Return the bytes of an input or output of a shape in its format on the device.

        Raises:
            UnknownNameError: The engine has no such input or output.
            ConfigError: The format is not defined for this shape.
        """
        return tensor_format(self.plan, name).size_bytes(shape, self._tensor(name).dtype, self._family(name))

    def pack_tensor(self, name: str, array: Array) -> Array:
        """Return the bytes of an input or output in its format on the device, such as CHW32; padding is zero.

        `ExecutionContext.run` takes and returns plain arrays; a board's runtime takes these bytes.

        Raises:
            UnknownNameError: The engine has no such input or output.
            ConfigError: The format is not defined for this shape.
        """
        values = np.ascontiguousarray(array, self._tensor(name).dtype.numpy)
        packed = tensor_format(self.plan, name).pack(values, self._family(name))
        return np.ascontiguousarray(packed).reshape(-1).view(np.uint8)

    def unpack_tensor(self, name: str, memory: Array, shape: Shape) -> Array:
        """Return the array of a shape that the bytes of `pack_tensor` hold; padding is not read.

        Raises:
            UnknownNameError: The engine has no such input or output.
            ConfigError: The format is not defined for this shape, or the number of bytes is not `tensor_bytes`.
        """
        dtype, described, family = self._tensor(name).dtype, tensor_format(self.plan, name), self._family(name)
        expected = described.size_bytes(shape, dtype, family)
        if memory.nbytes != expected:
            raise ConfigError(
                "The memory does not have the size of the tensor",
                where=f"tensor {name!r}, {shape} in {described.name}",
                found=f"{memory.nbytes} bytes",
                allowed=f"{expected} bytes",
                remedy="Pass as many bytes as tensor_bytes returns",
            )
        stored = memory.view(dtype.numpy).reshape(described.array_shape(shape, dtype, family))
        return described.unpack(stored, shape, family)

    def _family(self, name: str) -> str:
        placement = self.plan.placements.get(name)
        return "" if placement is None else platform_family(self.plan, placement.device)

    # Profiles -----------------------------------------------------------------------------------------------------

    @property
    def num_optimization_profiles(self) -> int:
        """Number of optimization profiles; 1 for an engine with only static shapes."""
        return max(1, len(self.plan.profiles))

    def get_tensor_profile_shape(self, name: str, profile_index: int) -> list[Shape]:
        """Return the minimum, optimum and maximum shape of an input in a profile.

        Raises:
            UnknownNameError: The engine has no such input.
            ExecutionError: The engine has no such profile.
        """
        if name not in self._inputs:
            raise UnknownNameError("input", name, self._inputs, where=f"engine {self.name!r}")
        if not 0 <= profile_index < self.num_optimization_profiles:
            raise ExecutionError(
                "The optimization profile index is out of range",
                where=f"engine {self.name!r}",
                found=profile_index,
                allowed=f"0 to {self.num_optimization_profiles - 1}",
                remedy="Use an index below num_optimization_profiles",
            )
        static = (self._inputs[name].shape,) * 3
        profiles = self.plan.profiles
        return list(profiles[profile_index].shapes.get(name, static) if profiles else static)

    def get_tensor_profile_values(self, profile_index: int, name: str) -> list[Shape]:
        """Return the minimum, optimum and maximum values of an input that carries dimensions; empty for another input.

        Raises:
            UnknownNameError: The engine has no such input.
            ExecutionError: The engine has no such profile.
        """
        self.get_tensor_profile_shape(name, profile_index)
        profiles = self.plan.profiles
        return list(profiles[profile_index].values.get(name, ())) if profiles else []

    def _tensor(self, name: str) -> Tensor:
        tensor = self._inputs.get(name) or self._outputs.get(name)
        if tensor is None:
            known = [*self._inputs, *self._outputs]
            raise UnknownNameError("input or output", name, known, where=f"engine {self.name!r}")
        return tensor
