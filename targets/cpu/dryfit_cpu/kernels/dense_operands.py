"""What kernels of windows read and write, as images: a batch of them at once, or volume by volume its slices.

A kernel that writes a pixel's channels together is given output and residual that lie so: where they do not, copies do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs
import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.target.kernels import Array, Binding
from dryfit_cpu.compiler.native import NativeStep, Work
from dryfit_cpu.kernels.copying import copy_work
from dryfit_cpu.kernels.epilogues import Epilogue
from dryfit_cpu.kernels.operands import ImageOperand, aligned_empty, bound_array

VOLUME_RANK = 5


@frozen(eq=False)
class Images:
    """Arrays with axes N, C, H, W or N, C, W or, until `batches` takes them apart, N, C, D, H, W.

    Attributes:
        source: what is read.
        output: what is written.
        residual: what is added, of the output's shape; None for nothing.
    """

    source: Array
    output: Array
    residual: Array | None = None

    @classmethod
    def of(cls, binding: Binding, source: str, residual: str = "") -> Images:
        """The arrays of tensors, and of the group's output; `residual` is "" for none."""
        output = bound_array(binding, binding.group.outputs[0].name)
        added = np.broadcast_to(bound_array(binding, residual), output.shape) if residual else None
        return cls(bound_array(binding, source), output, added)

    def batches(self) -> Iterator[Images]:
        """What is computed at a time, with four axes: all images, or of each volume `[C, D, H, W]` its slices."""
        outputs, residuals = _batches(self.output), _batches(self.residual)
        for source, output in zip(_batches(self.source), outputs, strict=True):
            yield Images(source, output, next(residuals, None))


def _batches(array: Array | None) -> Iterator[Array]:
    """`[N, C, W]` as images of one row, `[N, C, H, W]` as it is, and of `[N, C, D, H, W]` each volume as images."""
    if array is None:
        return
    if array.ndim == VOLUME_RANK:
        yield from array.swapaxes(1, 2)
    else:
        yield array[:, :, None, :] if array.ndim == VOLUME_RANK - 2 else array


# Register blocks write a pixel's channels as vectors; into planes each lane would be a store of its own. A copy in
# blocks afterwards, through the cache, costs less.
@frozen(eq=False)
class DenseOperands:
    """What a kernel writes and adds, with the channels of a pixel together.

    Attributes:
        output: the group's output, or FP32 in its place.
        residual: what the epilogue adds, in the output's shape; None for nothing.
        before: work that prepares the residual.
        after: work that brings the output to its place.
    """

    output: ImageOperand
    residual: ImageOperand | None
    before: Sequence[Work]
    after: Sequence[Work]

    @classmethod
    def of(cls, binding: Binding, epilogue: Epilogue, array: Array | None = None) -> DenseOperands:
        """Those of a group; one of three axes is an image of one row.

        What the kernel writes is `array`, by default the group's output.
        """
        if array is None:
            array = bound_array(binding, binding.group.outputs[0].name)
        added = epilogue.residual
        residual = np.broadcast_to(bound_array(binding, added.name), array.shape) if added is not None else None
        return cls.between(array, residual, binding.num_threads, np.float32)

    def around(self, steps: Sequence[NativeStep]) -> NativeStep:
        """Steps that write and add these, with the copies that they need, as one."""
        made = NativeStep.joined(steps[0].name, steps)
        return attrs.evolve(made, work=[*self.before, *made.work, *self.after], keeps=[self, *steps])

    @classmethod
    def between(cls, array: Array, added: Array | None, threads: int, dtype: type | None = None) -> DenseOperands:
        """Those in the place of an array of 3 or 4 axes and of what is added to it, which has its shape.

        What is copied has this type, by default that of its array.
        """
        output, after = with_dense_channels(array, threads, dtype)
        if added is None:
            return cls(output, None, [], after)
        residual, before = with_dense_channels(added, threads, dtype, is_read=True)
        return cls(output, residual, before, after)


def with_dense_channels(
    array: Array, threads: int, dtype: type | None = None, *, is_read: bool = False
) -> tuple[ImageOperand, list[Work]]:
    """An array as it is where its channels lie together; else another one, and the work that copies between them."""
    operand = ImageOperand.of(array)
    if operand.has_dense_channels:
        return operand, []
    other = channels_last(operand.shape, dtype or array.dtype.type)
    copy = copy_work(operand.array, other, threads) if is_read else copy_work(other, operand.array, threads)
    return ImageOperand.of(other), copy


def with_dense_rows(array: Array, threads: int) -> tuple[ImageOperand, list[Work]]:
    """An array as it is where the pixels of a row lie together; else another one, and the work that copies to it."""
    operand = ImageOperand.of(array)
    if operand.strides[3] == operand.size:
        return operand, []
    other = aligned_empty(operand.shape, array.dtype.type)
    return ImageOperand.of(other), copy_work(operand.array, other, threads)


def channels_last(shape: Sequence[int], dtype: type) -> Array:
    """A new array of logical shape (N, C, H, W) whose channels lie together."""
    N, C, H, W = shape
    return aligned_empty((N, H, W, C), dtype).transpose(0, 3, 1, 2)
