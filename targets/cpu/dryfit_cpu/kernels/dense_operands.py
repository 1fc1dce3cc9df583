"""Output and residual of a kernel that writes a pixel's channels together: where they do not lie so, copies do."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from dryfit.target.kernels import Array, Binding
from dryfit_cpu.kernels.copying import copy_work
from dryfit_cpu.kernels.epilogues import Epilogue
from dryfit_cpu.kernels.operands import Operand, aligned_empty, bound_array
from dryfit_cpu.steps import NativeStep, Work


@attrs.frozen(eq=False)
class DenseOperands:
    """What a kernel writes and adds, with the channels of a pixel together.

    Attributes:
        output: the group's output, or FP32 in its place.
        residual: what the epilogue adds, in the output's shape; None for nothing.
        before: work that prepares the residual.
        after: work that brings the output to its place.
    """

    output: Operand
    residual: Operand | None
    before: Sequence[Work]
    after: Sequence[Work]

    @classmethod
    def of(cls, binding: Binding, epilogue: Epilogue, array: Array | None = None) -> DenseOperands:
        """Those of a group; one of three axes is an image of one row.

        Args:
            binding: of the group.
            epilogue: what the kernel does with its sums.
            array: what it writes; by default the group's output.
        """
        if array is None:
            array = bound_array(binding, binding.group.outputs[0].name)
        added = epilogue.residual
        residual = np.broadcast_to(bound_array(binding, added.name), array.shape) if added is not None else None
        return cls.between(array, residual, binding.num_threads)

    def around(self, steps: Sequence[NativeStep]) -> NativeStep:
        """Steps that write and add these, with the copies that they need, as one."""
        made = NativeStep.joined(steps[0].name, steps)
        return attrs.evolve(made, work=[*self.before, *made.work, *self.after], keeps=[self, *steps])

    @classmethod
    def between(cls, array: Array, added: Array | None, threads: int) -> DenseOperands:
        """Those in the place of an array of 3 or 4 axes and of what is added to it, which has its shape."""
        output = Operand.of(array)
        before: list[Work] = []
        after: list[Work] = []
        if not output.has_dense_channels:
            unordered = channels_last(output.shape, np.float32)
            after = copy_work(unordered, output.array, threads)
            output = Operand.of(unordered)
        residual = None
        if added is not None:
            residual = Operand.of(added)
            if not residual.has_dense_channels:
                copy = channels_last(output.shape, np.float32)
                before = copy_work(residual.array, copy, threads)
                residual = Operand.of(copy)
        return cls(output, residual, before, after)


def channels_last(shape: Sequence[int], dtype: type) -> Array:
    """A new array of logical shape (N, C, H, W) whose channels lie together."""
    N, C, H, W = shape
    return aligned_empty((N, H, W, C), dtype).transpose(0, 3, 1, 2)
