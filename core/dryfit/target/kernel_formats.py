"""Kernels that want their arrays in tensor formats of the device: the copies before and after each run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs
import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.tensor import TensorSpec
from dryfit.target.binding import Array, Binding, Specs, Step, is_activation
from dryfit.target.formats import TensorFormat
from dryfit.target.group import LayerGroup


@attrs.frozen(eq=False)
class PackedTensor:
    """A tensor that is kept twice.

    Attributes:
        layout: the format that the kernel declared.
        array: the tensor as the engine keeps it.
        memory: the tensor in the format, of the extents that `TensorFormat.array_shape` tells.
    """

    layout: TensorFormat
    array: Array
    memory: Array

    @classmethod
    def of(cls, layout: TensorFormat, array: Array, memory: Array | None = None) -> PackedTensor:
        """Memory for an array: what is given, or new one; padding is zero.

        Raises:
            ConfigError: the format is not defined for this shape and type.
        """
        if memory is None:
            memory = np.empty(layout.array_shape(array.shape, DataType.from_numpy(array.dtype)), array.dtype)
        memory.fill(0)
        return cls(layout, array, memory)


@attrs.frozen(eq=False)
class PackedStep:
    """A step between copies.

    Attributes:
        step: works on memory in the declared formats.
        inputs: filled before it.
        outputs: taken out after it.
    """

    step: Step
    inputs: Sequence[PackedTensor]
    outputs: Sequence[PackedTensor]

    @property
    def name(self) -> str:
        """The group's name."""
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

    Formats whose lines are aligned otherwise on some platforms are taken as on the others.

    Args:
        formats: `input` and `output`, or one of them, to format.
        binding: with the engine's arrays. A tensor that has memory in `packed` is kept there.
        bind: is given the binding with `packed` filled.

    Raises:
        ConfigError: a format is not defined for a tensor's shape and type.
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
    """Why the declared formats do not fit a group, in words; None where they do."""
    for side, tensors in (("input", group.inputs), ("output", group.outputs)):
        for tensor in tensors:
            if side in formats and is_activation(tensor, specs) and not _allows(formats[side], specs[tensor.name]):
                shape = specs[tensor.name].shape
                return f"its {side} format {formats[side].name} is not defined for {tensor.name!r} of shape {shape}"
    return None


def _allows(layout: TensorFormat, spec: TensorSpec) -> bool:
    # No count of channels is 0: a format for certain counts is not defined for a count that is not known.
    return layout.allows([max(extent, 0) for extent in spec.shape], spec.dtype)
