"""What a host kernel declares, and what it is given when an execution context binds it to memory.

A kernel serves a layer group. At build time it says whether it can (`accepts`, `fuses`) and packs the group's weights
(`pack`). When shapes and memory are known it is bound (`bind`) and gives a step, which the host's schedule runs.
Every target that declares no kernel of its own for a layer is run by the CPU target's.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import attrs
import numpy as np

from dryfit.errors import EngineFileError
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.tensor import TensorSpec
from dryfit.target.declared_sets import data_types as declared_types
from dryfit.target.declared_sets import names
from dryfit.target.group import LayerGroup

Array = np.ndarray[Any, Any]
Specs = Mapping[str, TensorSpec]


class HostLayout(enum.Enum):
    """How the host keeps a tensor in memory while it emulates a device."""

    LINEAR = "linear"
    """Row-major, in the order of the axes."""
    CHANNELS_LAST = "channels_last"
    """Rank 4 only: N, H, W, C in memory, seen as a strided N, C, H, W array."""
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
    """

    group: LayerGroup
    specs: Specs
    arrays: Mapping[str, Array]
    weights: Mapping[str, Array]
    workspace: Array
    num_threads: int = 1

    def weight(self, name: str, shape: Sequence[int], dtype: DataType = DataType.FLOAT) -> Array:
        """A packed array of exactly this shape and type, row-major.

        Weights come out of engine files. A native function would read beyond an array that is smaller than it thinks,
        so every kernel says here what it relies on.

        Raises:
            EngineFileError: there is no such array, or it is another.
        """
        array = self.weights.get(name)
        expected = (tuple(shape), dtype.numpy)
        if array is None or (array.shape, array.dtype) != expected or not array.flags.c_contiguous:
            raise EngineFileError(
                "The packed weights are not those that the kernel needs",
                where=f"engine layer {self.group.name!r}, weights {name!r}",
                found="none" if array is None else f"{array.dtype} {array.shape}",
                allowed=f"{dtype.numpy} {tuple(shape)}",
                remedy="Build the engine again",
            )
        return array


class Step(Protocol):
    """One bound group, ready to run. What else it carries is between kernel and schedule."""

    @property
    def name(self) -> str:
        """The group's name."""
        ...

    def run(self) -> None:
        """Compute the group's outputs from its inputs, on the calling thread."""
        ...


class Schedule(Protocol):
    """An ordered list of steps with the threads that run them."""

    def run(self, observe: Callable[[str, float], None] | None = None) -> None:
        """Run all steps. `observe(step name, seconds)` is called after each step when given."""
        ...


def _never(group: LayerGroup, layer: Layer) -> bool:
    del group, layer
    return False


def _nothing(group: LayerGroup) -> dict[str, Array]:
    del group
    return {}


def _no_bytes(group: LayerGroup, specs: Specs, num_threads: int) -> int:
    del group, specs, num_threads
    return 0


class EveryKind(frozenset[str]):
    """The set of all layer kinds, those that plugins add later included; `Kernel.kinds` of a kernel that serves all."""

    def __contains__(self, kind: object) -> bool:
        return True


@attrs.frozen(eq=False)
class Kernel:
    """A compiled host function with a declared signature.

    Attributes:
        name: `<package>.<what>`, unique, stable: engines name their kernels by it.
        kinds: kinds of main layer that it serves; `EveryKind()` for all.
        data_types: types of the group's activations that it serves.
        bind: binding -> step.
        accepts: whether it serves this group for these specs (static or dynamic); looked at after kinds and data types.
        fuses: whether it can take this layer, the only consumer of the group's output, as the group's next.
        pack: the group's weights as the kernel wants them; saved in the engine, so plain arrays only, and independent
            of the machine.
        packed_parameters: parameters of the group's layers (such as `kernel`, `bias`) that `pack` made superfluous, so
            that the engine need not keep them.
        workspace_bytes: scratch memory of one run, for concrete specs.
        layout: the host layout that it is fast for.
        priority: among the kernels that accept a group the highest is taken.
    """

    name: str
    kinds: frozenset[str] = attrs.field(converter=names)
    data_types: frozenset[DataType] = attrs.field(converter=declared_types)
    bind: Callable[[Binding], Step]
    accepts: Callable[[LayerGroup, Specs], bool] = lambda group, specs: True
    fuses: Callable[[LayerGroup, Layer], bool] = _never
    pack: Callable[[LayerGroup], Mapping[str, Array]] = _nothing
    packed_parameters: Sequence[str] = ()
    workspace_bytes: Callable[[LayerGroup, Specs, int], int] = _no_bytes
    layout: HostLayout = HostLayout.ANY
    priority: int = 0
