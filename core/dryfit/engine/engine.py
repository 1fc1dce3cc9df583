"""The built thing: TensorRT's `ICudaEngine`, for this CPU."""

from __future__ import annotations

import enum
import os
from typing import TYPE_CHECKING

from dryfit.engine import engine_file
from dryfit.engine.device_tensors import format_description, tensor_format
from dryfit.engine.execution_context import ExecutionContext
from dryfit.engine.file_source import EngineSource
from dryfit.engine.plan import Plan
from dryfit.engine.plan_check import check_plan
from dryfit.errors import ExecutionError, UnknownNameError
from dryfit.forking import ForkSafeLock
from dryfit.network.attribute_names import KnownAttributes
from dryfit.network.data_types import DataType
from dryfit.network.tensor import Shape, Tensor, TensorLocation

if TYPE_CHECKING:
    from dryfit.engine.inspector import EngineInspector


class TensorIOMode(enum.IntEnum):
    """What a tensor is to an engine; TensorRT's `TensorIOMode`."""

    NONE = 0
    INPUT = 1
    OUTPUT = 2


class Engine(KnownAttributes):
    """A network built for devices, with all that runs it here. Contexts run it; only a refit changes it.

    Attributes:
        plan: layers, kernels, decisions and weights. A refit puts another one in its place.
        refit_lock: held while weights are exchanged.

    Raises:
        EngineFileError: the parts of the plan do not fit together.

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
        """Take another plan of the same network. Runs that have begun end with the old one; the next take the new one.

        Raises:
            EngineFileError: the parts of the plan do not fit together.
        """
        plan.network.refresh_shapes()  # now, so that contexts in several threads only read it
        check_plan(plan)
        self.plan = plan
        self._inputs = {tensor.name: tensor for tensor in plan.network.inputs}
        self._outputs = {tensor.name: tensor for tensor in plan.network.outputs}

    def __repr__(self) -> str:
        devices = ", ".join(sorted({segment.device for segment in self.plan.segments}))
        plural = "" if self.num_layers == 1 else "s"
        return f"<Engine {self.name!r}: {self.num_layers} engine layer{plural} on {devices}>"

    @classmethod
    def load(cls, source: EngineSource) -> Engine:
        """The engine in a file, by its path, or in the bytes of one.

        Raises:
            EngineFileError: see `dryfit.engine.engine_file.load`.
        """
        return cls(engine_file.load(source))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the engine to a file, whole or not at all.

        Raises:
            EngineFileError: see `dryfit.engine.engine_file.save`.
        """
        engine_file.save(self.plan, path)

    def serialize(self) -> bytes:
        """The bytes of the engine's file. The same network, config and versions give the same bytes."""
        return engine_file.serialize(self.plan)

    def create_execution_context(self, num_threads: int | None = None) -> ExecutionContext:
        """A context to run the engine with. Its memory is taken at the first run with new input shapes.

        Args:
            num_threads: how many threads run it; as many as there are CPUs when absent.

        Raises:
            PluginError: a device that the engine names is not installed.
            EngineFileError: a kernel that the engine names does not exist, or does not serve its layer.
            ExecutionError: the number of threads is not at least 1, or the engine is stripped.
        """
        return ExecutionContext(self, num_threads)

    def create_engine_inspector(self) -> EngineInspector:
        """What tells of the engine's layers, as text or JSON."""
        from dryfit.engine.inspector import EngineInspector

        return EngineInspector(self)

    # The engine ---------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The network's name."""
        return self.plan.network.name

    @property
    def num_layers(self) -> int:
        """Number of engine layers: a fused group is one."""
        return len(self.plan.operations)

    @property
    def device_memory_size(self) -> int:
        """Bytes of all memory pools of the devices that the engine uses."""
        return sum(self.plan.pool_sizes.values())

    device_memory_size_v2 = device_memory_size

    @property
    def engine_capability(self) -> str:
        """Name of the `EngineCapability` it was built with."""
        return str(self.plan.settings.get("engine_capability", "STANDARD"))

    @property
    def profiling_verbosity(self) -> str:
        """Name of the `ProfilingVerbosity` it was built with."""
        return str(self.plan.settings.get("profiling_verbosity", "LAYER_NAMES_ONLY"))

    @property
    def refittable(self) -> bool:
        """Whether weights can be exchanged, by `Refitter`: it was built with REFIT, or a flag that includes it."""
        return self.plan.refit is not None

    @property
    def is_stripped(self) -> bool:
        """Whether it has no weights, so that it cannot run before a refit."""
        return self.plan.is_stripped

    # Inputs and outputs -------------------------------------------------------------------------------------------

    @property
    def num_io_tensors(self) -> int:
        """Number of inputs and outputs."""
        return len(self._inputs) + len(self._outputs)

    def get_tensor_name(self, index: int) -> str:
        """Name of an input or output; inputs come first.

        Raises:
            ExecutionError: there are not so many.
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
        """Whether a name is that of an input, of an output, or of neither."""
        if name in self._inputs:
            return TensorIOMode.INPUT
        return TensorIOMode.OUTPUT if name in self._outputs else TensorIOMode.NONE

    def get_tensor_shape(self, name: str) -> Shape:
        """Shape of an input or output; -1 where it is dynamic."""
        return self._tensor(name).shape

    def get_tensor_dtype(self, name: str) -> DataType:
        """Element type of an input or output."""
        return self._tensor(name).dtype

    def get_tensor_location(self, name: str) -> TensorLocation:
        """Whether an input or output carries data (DEVICE) or dimensions (HOST)."""
        return TensorLocation.HOST if self._tensor(name).is_shape_tensor else TensorLocation.DEVICE

    def is_shape_inference_io(self, name: str) -> bool:
        """Whether an input or output carries dimensions."""
        return self._tensor(name).is_shape_tensor

    # Formats ------------------------------------------------------------------------------------------------------

    def get_tensor_format(self, name: str) -> str:
        """Name of the format in which an input or output lies on its device."""
        return tensor_format(self.plan, self._tensor(name).name).name

    def get_tensor_format_desc(self, name: str) -> str:
        """The format in TensorRT's words."""
        return format_description(self.plan, name, self._tensor(name).dtype)

    def get_tensor_vectorized_dim(self, name: str) -> int:
        """The axis whose elements lie in vectors, that of the channels; -1 where none does."""
        described = tensor_format(self.plan, self._tensor(name).name)
        if described.channels_vector == 1:
            return -1
        return len(self._tensor(name).shape) - 1 - described.spatial_axes

    def get_tensor_components_per_element(self, name: str) -> int:
        """Elements in a vector; -1 where they do not lie in vectors."""
        vector = tensor_format(self.plan, self._tensor(name).name).channels_vector
        return vector if vector > 1 else -1

    def get_tensor_bytes_per_component(self, name: str) -> int:
        """Bytes of one element of a vector; -1 where they do not lie in vectors."""
        vectorized = self.get_tensor_vectorized_dim(name) >= 0
        return self._tensor(name).dtype.bytes_of(1) if vectorized else -1

    # Profiles -----------------------------------------------------------------------------------------------------

    @property
    def num_optimization_profiles(self) -> int:
        """Number of optimization profiles; 1 for an engine whose shapes are all static."""
        return max(1, len(self.plan.profiles))

    def get_tensor_profile_shape(self, name: str, profile_index: int) -> list[Shape]:
        """Minimum, optimum and maximum shape of an input in a profile.

        Raises:
            UnknownNameError: the engine has no such input.
            ExecutionError: the engine has no such profile.
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
        """Minimum, optimum and maximum values of an input that carries dimensions; empty for another input.

        Raises:
            UnknownNameError: the engine has no such input.
            ExecutionError: the engine has no such profile.
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
