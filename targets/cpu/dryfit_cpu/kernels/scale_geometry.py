"""Which scale serves which element, as native functions walk them: rows of elements that lie together."""

from __future__ import annotations

import math
from typing import cast

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.errors import ExecutionError
from dryfit.network.layers.quantization import Dequantize, Quantize
from dryfit.network.layers.scale_granularity import block_extents
from dryfit.network.tensor import Shape, Tensor
from dryfit.target.kernels import Array, Specs
from dryfit_cpu.descriptors import Scales

_PIECE = 4096
"""Elements that are worth a row of their own where all have one scale."""


def scale_blocks(layer: Quantize | Dequantize, specs: Specs) -> tuple[int, ...] | None:
    """Extents of the block of elements that shares a scale; None where they are not known, or of a form of its own.

    A block has one axis: on the others it is one element, or all blocks are the whole tensor. On the last axis the
    blocks are whole ones. Where data and scales have an extent that is not known yet, it is taken to be the same.
    """
    x, scale = (specs[cast("Tensor", tensor).name] for tensor in layer.inputs[:2])
    if scale.shape in ((), (1,)):
        return x.shape
    blocks = block_extents(layer, x.shape, scale.shape, layer.axis, layer.block_shape)
    if scale.rank == 1 and x.rank != 1:
        return blocks
    if x.rank == scale.rank:
        unknown = [extents == (-1, -1) for extents in zip(x.shape, scale.shape, strict=True)]
        blocks = tuple(1 if is_unknown else block for block, is_unknown in zip(blocks, unknown, strict=True))
    long = [axis for axis, extent in enumerate(blocks) if extent != 1 and x.shape[axis] != 1]
    is_one = len(long) <= 1 and -1 not in blocks and x.rank > 0
    return blocks if is_one and (x.rank - 1 not in long or x.shape[-1] % blocks[-1] == 0) else None


@frozen
class ScaleGeometry:
    """Elements `[outer, rows, inner]` that lie together, and the strides of their scales in elements.

    Attributes:
        count: elements that are there; the last row may be shorter.
        outer, rows, inner: extents.
        block: rows that share a scale.
        outer_stride, row_stride, column_stride: from the scale of one to that of the next; 0 for the same one.
    """

    count: int
    outer: int
    rows: int
    inner: int
    block: int = 1
    outer_stride: int = 0
    row_stride: int = 0
    column_stride: int = 0

    @classmethod
    def of(cls, shape: Shape, scale: Array, axis: int, block_shape: Shape) -> ScaleGeometry:
        """Of data of this shape.

        Row-major data has one scale, one for each index of an axis, or one for each block, of whose extents one at most
        is not 1.

        Raises:
            ExecutionError: more of them are not, now that dynamic extents are known.
        """
        count = math.prod(shape)
        if scale.size == 1:
            return cls(count, 1, -(-count // _PIECE), _PIECE)
        if scale.ndim == 1 and len(shape) != 1:
            before, extent, after = math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
            if after == 1:
                return cls(count, before, 1, extent, column_stride=1)
            return cls(count, before, extent, after, row_stride=1)
        long = [axis for axis, extent in enumerate(block_shape) if extent != 1 and shape[axis] != 1]
        if not long:
            return cls(count, 1, 1, count, column_stride=1)
        blocked = long[0]
        if len(long) > 1 or (blocked == len(shape) - 1 and shape[-1] % block_shape[-1]):
            raise ExecutionError(
                "The block shape of the scales is not supported for these extents",
                found=f"blocks of {tuple(block_shape)} for {shape}",
                allowed="whole blocks along one axis",
                remedy="Set `block_shape`, or build for these extents",
            )
        block, blocks = block_shape[blocked], scale.shape[blocked]
        before, after = math.prod(shape[:blocked]), math.prod(shape[blocked + 1 :])
        if after == 1:
            return cls(count, before, blocks, block, outer_stride=blocks, row_stride=1)
        strides = {"outer_stride": blocks * after, "row_stride": after, "column_stride": 1}
        return cls(count, before, shape[blocked], after, block, **strides)

    @property
    def scales(self) -> int:
        """How many scales it reads."""
        if not self.count:
            return 0
        last = (self.outer - 1) * self.outer_stride + (self.rows - 1) // self.block * self.row_stride
        return last + (self.inner - 1) * self.column_stride + 1

    def scales_at(self, scale: Array, kind: int) -> Scales:
        """What native functions are told about the scales, given their element code."""
        outer, row, column = (
            scale.itemsize * stride for stride in (self.outer_stride, self.row_stride, self.column_stride)
        )
        return Scales(scale.ctypes.data, kind, outer, row, column, self.block)


def memory_order(array: Array) -> list[int]:
    """The axes, that with the widest stride first: in this order an array without gaps is row-major."""
    return sorted(range(array.ndim), key=lambda axis: (-abs(array.strides[axis]), axis))


def is_dense(array: Array, order: list[int]) -> bool:
    """Whether an array's elements lie together, in this order of its axes."""
    return bool(np.transpose(array, order).flags.c_contiguous)
