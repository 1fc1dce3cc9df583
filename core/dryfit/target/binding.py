"""What a kernel is given when it is bound to memory, and what it gives back: a step, which a schedule runs."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import attrs
import numpy as np

from dryfit.errors import EngineFileError
from dryfit.network.data_types import DataType
from dryfit.network.tensor import Tensor, TensorSpec
from dryfit.quantization.rounding import Rounding, RoundingMode
from dryfit.target.group import LayerGroup

Array = np.ndarray[Any, Any]
Specs = Mapping[str, TensorSpec]


class HostLayout(enum.Enum):
    """How the host keeps a tensor in memory while it emulates a device."""

    LINEAR = "linear"
    """Row-major, in the order of the axes."""
    CHANNELS_LAST = "channels_last"
    """Ranks 4 and 5 only: N, (D,) H, W, C in memory, seen as a strided N, C, (D,) H, W array."""
    ANY = "any"
    """No preference: the kernel takes what its neighbours have."""


@attrs.frozen(eq=False)
class Binding:
    """A group with everything it needs to run at one set of shapes.

    Attributes:
        group: the layers.
        specs: tensor name to concrete spec, for all tensors that the group touches, inner ones too.
        arrays: tensor name to array of the tensor's logical shape (N, C, H, W), for the group's inputs and outputs.
            Strides are those of the tensor's host layout; kernels accept any strides, and are fast for the layout that
            they asked for. Memory is aligned to 64 bytes and stays where it is while the step lives. An output never
            overlaps an input of the same group.
        weights: what `Kernel.pack` returned.
        workspace: uint8, `Kernel.workspace_bytes` long, aligned to 64 bytes; its contents are undefined.
        num_threads: how many threads will run the schedule.
        packed: tensor name to the tensor in the format that the kernel declared, an array of the extents that
            `TensorFormat.array_shape` tells, with zeros for padding; empty for a kernel without `Kernel.formats`.
            Inputs are filled before each run, outputs are taken out after it.
        rounding: how the device that the group runs on finds whole numbers, where it computes in INT8.
    """

    group: LayerGroup
    specs: Specs
    arrays: Mapping[str, Array]
    weights: Mapping[str, Array]
    workspace: Array
    num_threads: int = 1
    packed: Mapping[str, Array] = attrs.field(factory=dict)
    rounding: Rounding = RoundingMode.HALF_TO_EVEN

    @property
    def inputs(self) -> list[Array]:
        """The arrays that the group reads at run time, in the order of `group.inputs`; constants are left out.

        In the declared format where the kernel has one for its inputs; so are the outputs.
        """
        return [self._array(tensor) for tensor in self.group.inputs if is_activation(tensor, self.specs)]

    @property
    def outputs(self) -> list[Array]:
        """The arrays that the group writes, in the order of `group.outputs`."""
        return [self._array(tensor) for tensor in self.group.outputs]

    def _array(self, tensor: Tensor) -> Array:
        return self.packed[tensor.name] if tensor.name in self.packed else self.arrays[tensor.name]

    def weight(self, name: str, shape: Sequence[int], dtype: DataType = DataType.FLOAT) -> Array:
        """Return a packed array of exactly this shape and type, row-major.

        Weights come out of engine files. A native function would read beyond an array that is smaller than it thinks,
        so every kernel says here what it relies on.

        Raises:
            EngineFileError: there is no such array, or it is another.
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
    """Return whether a tensor is read or written at run time: no constant, and nothing that is known before the run."""
    return not tensor.is_constant and specs[tensor.name].value is None


class Step(Protocol):
    """One bound group, ready to run. What else it carries is between kernel and schedule."""

    @property
    def name(self) -> str:
        """The group's name."""
        ...

    def run(self) -> None:
        """Compute the group's outputs from its inputs, on the calling thread."""
        ...


@attrs.frozen(eq=False)
class CallableStep:
    """A step that calls a Python function.

    Attributes:
        name: the group's name.
        function: computes the outputs from the inputs.
    """

    name: str
    function: Callable[[], object]

    def run(self) -> None:
        """Call the function."""
        self.function()


class Schedule(Protocol):
    """An ordered list of steps with the threads that run them."""

    def run(self, observe: Callable[[str, float], None] | None = None) -> None:
        """Run all steps. `observe(step name, seconds)` is called after each step when given."""
        ...
