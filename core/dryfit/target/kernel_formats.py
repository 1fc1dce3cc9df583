"""Kernels whose arrays are in tensor formats of the device: the copies before and after each run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs
import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.network.data_types import DataType
from dryfit.network.tensor import TensorSpec
from dryfit.target.binding import Array, Binding, Specs, Step, is_activation
from dryfit.target.formats import TensorFormat
from dryfit.target.group import LayerGroup


@frozen(eq=False)
class PackedTensor:
    """A tensor stored in two layouts.

    Attributes:
        layout: the format that the kernel declares.
        array: the tensor as the engine stores it.
        memory: the tensor in the format, with the extents of `TensorFormat.array_shape`.
    """

    layout: TensorFormat
    array: Array
    memory: Array

    @classmethod
    def of(cls, layout: TensorFormat, array: Array, memory: Array | None = None) -> PackedTensor:
        """Return memory for an array, given or new; padding is zero.

        Raises:
            ConfigError: The format is not defined for this shape and type.
        """
        if memory is None:
            memory = np.empty(layout.array_shape(array.shape, DataType.from_numpy(array.dtype)), array.dtype)
        memory.fill(0)
        return cls(layout, array, memory)


@frozen(eq=False)
class PackedStep:
    """A step between copies to and from the declared formats.

    Attributes:
        step: the step on memory in the declared formats.
        inputs: tensors written before the step.
        outputs: tensors read after the step.
    """

    step: Step
    inputs: Sequence[PackedTensor]
    outputs: Sequence[PackedTensor]

    @property
    def name(self) -> str:
        """Name of the group."""
        return self.step.name

    def run(self) -> None:
        """Copy in, compute, copy out."""
        for one in self.inputs:
            one.layout.pack(one.array, out=one.memory)
        self.step.run()
        for one in self.outputs:
            one.layout.unpack(one.memory, one.array.shape, out=one.array)


def bind_in_formats(
    formats: Mapping[str, TensorFormat], binding: Binding, bind: Callable[[Binding], Step]
) -> PackedStep:
    """Return the step of a kernel whose inputs or outputs are in formats of its own.

    Formats whose line alignment differs on some platforms use the alignment of the other platforms.

    Args:
        formats: `input` and `output`, or one of them, to format.
        binding: binding with the engine's arrays. A tensor with memory in `packed` uses that memory.
        bind: function that receives the binding with `packed` filled in.

    Raises:
        ConfigError: A format is not defined for the shape and type of a tensor.
    """
    sides = {
        side: {
            tensor.name: PackedTensor.of(formats[side], binding.arrays[tensor.name], binding.packed.get(tensor.name))
            for tensor in tensors
            if side in formats and (side == "output" or is_activation(tensor, binding.specs))
        }
        for side, tensors in (("input", binding.group.inputs), ("output", binding.group.outputs))
    }
    packed = {name: one.memory for tensors in sides.values() for name, one in tensors.items()}
    step = bind(attrs.evolve(binding, packed=packed))
    return PackedStep(step, list(sides["input"].values()), list(sides["output"].values()))


def unfit_format(formats: Mapping[str, TensorFormat], group: LayerGroup, specs: Specs) -> str | None:
    """Return why the declared formats cannot be used for a group; None if they can."""
    for side, tensors in (("input", group.inputs), ("output", group.outputs)):
        for tensor in tensors:
            if side in formats and is_activation(tensor, specs) and not _allows(formats[side], specs[tensor.name]):
                shape = specs[tensor.name].shape
                return f"its {side} format {formats[side].name} is not defined for {tensor.name!r} of shape {shape}"
    return None


def _allows(layout: TensorFormat, spec: TensorSpec) -> bool:
    # No count of channels is 0: a format for certain counts is not defined for a count that is not known.
    return layout.allows([max(extent, 0) for extent in spec.shape], spec.dtype)
