"""The binding that a kernel receives, and the step that it returns for a schedule to run."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import attrs
import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.errors import EngineFileError
from dryfit.network.data_types import DataType
from dryfit.network.tensor import Tensor, TensorSpec
from dryfit.quantization.rounding import Rounding, RoundingMode
from dryfit.target.group import LayerGroup

Array = np.ndarray[Any, Any]
Specs = Mapping[str, TensorSpec]


class HostLayout(enum.Enum):
    """Memory layout of a tensor on the host while it emulates a device."""

    LINEAR = "linear"
    """Row-major, in the order of the axes."""
    CHANNELS_LAST = "channels_last"
    """Ranks 4 and 5 only: N, (D,) H, W, C in memory, viewed as a strided N, C, (D,) H, W array."""
    ANY = "any"
    """No preference: the kernel uses the layout of its neighbors."""


@frozen(eq=False)
class Binding:
    """A group with everything that it needs to run at one set of shapes.

    Attributes:
        group: the layers.
        specs: tensor name to concrete spec, for all tensors that the group uses, including internal tensors.
        arrays: tensor name to array of the tensor's logical shape (N, C, H, W), for the inputs and outputs of the
            group. Strides are those of the tensor's host layout; kernels must accept any strides, and are fast for the
            layout that they declare. Memory is aligned to 64 bytes and does not move during the lifetime of the step.
            An output never overlaps an input of the same group.
        weights: what `Kernel.pack` returned.
        workspace: uint8, `Kernel.workspace_bytes` long, aligned to 64 bytes; contents are undefined.
        num_threads: number of threads that run the schedule.
        packed: tensor name to the tensor in the format that the kernel declares, an array with the extents of
            `TensorFormat.array_shape` and zero padding. Empty for a kernel without `Kernel.formats`. Inputs are written
            before each run; outputs are read after it.
        rounding: how the group's device rounds to whole numbers in INT8.
        tactic: which of the kernel's tactics runs; empty for the kernel's default.
    """

    group: LayerGroup
    specs: Specs
    arrays: Mapping[str, Array]
    weights: Mapping[str, Array]
    workspace: Array
    num_threads: int = 1
    packed: Mapping[str, Array] = attrs.field(factory=dict)
    rounding: Rounding = RoundingMode.HALF_TO_EVEN
    tactic: str = ""

    @property
    def inputs(self) -> list[Array]:
        """Arrays that the group reads at run time, in the order of `group.inputs`, without constants.

        Inputs and outputs have the format that the kernel declares, if any.
        """
        return [self._array(tensor) for tensor in self.group.inputs if is_activation(tensor, self.specs)]

    @property
    def outputs(self) -> list[Array]:
        """Arrays that the group writes, in the order of `group.outputs`."""
        return [self._array(tensor) for tensor in self.group.outputs]

    def _array(self, tensor: Tensor) -> Array:
        return self.packed[tensor.name] if tensor.name in self.packed else self.arrays[tensor.name]

    def weight(self, name: str, shape: Sequence[int], dtype: DataType = DataType.FLOAT) -> Array:
        """Return a packed array of exactly this shape and type, row-major.

        Weights are read from engine files. A native function would read beyond an array that is smaller than expected,
        so every kernel must state here what it relies on.

        Raises:
            EngineFileError: The array does not exist, or has another shape or type.
        """
        array = self.weights.get(name)
        expected = (tuple(shape), dtype.numpy)
        if array is None or (array.shape, array.dtype) != expected or not array.flags.c_contiguous:
            raise EngineFileError(
                "The packed weights do not match the kernel",
                where=f"engine layer {self.group.name!r}, weights {name!r}",
                found="none" if array is None else f"{array.dtype} {array.shape}",
                allowed=f"{dtype.numpy} {tuple(shape)}",
                remedy="Build the engine again",
            )
        return array


def is_activation(tensor: Tensor, specs: Specs) -> bool:
    """Return whether a tensor is read or written at run time, rather than known before the run."""
    return not tensor.is_constant and specs[tensor.name].value is None


class Step(Protocol):
    """A bound group, ready to run. Any further members are private to kernel and schedule."""

    @property
    def name(self) -> str:
        """Name of the group."""
        ...

    def run(self) -> None:
        """Compute the group's outputs from its inputs, on the calling thread."""
        ...


@frozen(eq=False)
class CallableStep:
    """A step that calls a Python function.

    Attributes:
        name: name of the group.
        function: function that computes the outputs from the inputs.
    """

    name: str
    function: Callable[[], object]

    def run(self) -> None:
        """Call the function."""
        self.function()


class Schedule(Protocol):
    """An ordered list of steps with the threads that run them."""

    def run(self, observe: Callable[[str, float], None] | None = None) -> None:
        """Run all steps. If given, `observe(step name, seconds)` is called after each step."""
        ...
