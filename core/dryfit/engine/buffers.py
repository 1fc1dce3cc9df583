"""The host's memory of one execution context: one arena for what lives between layers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from dryfit.engine.memory_planner import Buffer, plan_memory
from dryfit.errors import ExecutionError
from dryfit.network.tensor import TensorSpec
from dryfit.target.kernels import Array, HostLayout
from dryfit.target.memory import ALIGNMENT, SLACK, aligned_bytes, is_watched

LARGEST_SIZE = 2**48
"""Bytes that no tensor and no workspace has: what a processor of today can address. More is refused before any memory
is asked for, and before a number that no native function takes is made of it."""


def check_size(size: int, where: str, what: object) -> int:
    """The size, where it is one that memory can have.

    Args:
        size: in bytes.
        where: whose it is, for errors.
        what: its shape, or what else it follows from, for errors.

    Raises:
        ExecutionError: It is negative, or larger than `LARGEST_SIZE`.
    """
    if not 0 <= size <= LARGEST_SIZE:
        raise ExecutionError(
            "Not enough memory to run the engine with these input shapes",
            where=where,
            found=f"{size} bytes needed, for {what}",
            allowed=f"at most {LARGEST_SIZE} bytes",
            remedy="Run smaller batches; if the shapes are correct, build the engine again",
        )
    return size


def size_of(spec: TensorSpec) -> int:
    """Bytes of a static tensor on the host, where types below 8 bits take a byte an element."""
    return math.prod(spec.shape) * spec.dtype.numpy.itemsize


def new_array(spec: TensorSpec, layout: HostLayout = HostLayout.LINEAR) -> Array:
    """An uninitialised array for a static tensor, with memory of its own."""
    return _array(aligned_bytes(size_of(spec)), spec, layout)


def arena_arrays(
    tensors: Mapping[str, tuple[TensorSpec, HostLayout, int, int]], workspaces: Sequence[int]
) -> tuple[dict[str, Array], list[Array]]:
    """Arrays in one arena, in which what is never alive at the same time shares memory.

    Args:
        tensors: name to (static spec, layout, first step, last step).
        workspaces: bytes of scratch memory of each step.

    Returns:
        The array of each tensor, and the workspace of each step.
    """
    specs = [spec for spec, _, _, _ in tensors.values()]
    buffers: list[Buffer] = [(size_of(spec), first, last) for spec, _, first, last in tensors.values()]
    buffers += [(size + SLACK if size else 0, step, step) for step, size in enumerate(workspaces)]
    offsets, total = plan_memory(buffers, ALIGNMENT)
    if is_watched():
        pieces = [aligned_bytes(size) for size in (*map(size_of, specs), *workspaces)]
    else:
        arena = aligned_bytes(total)
        pieces = [arena[offset : offset + size] for offset, (size, _, _) in zip(offsets, buffers, strict=True)]
    arrays = {
        name: _array(piece, spec, layout)
        for (name, (spec, layout, _, _)), piece in zip(tensors.items(), pieces, strict=False)
    }
    scratch = [piece[:size].view() for piece, size in zip(pieces[len(tensors) :], workspaces, strict=True)]
    return arrays, scratch


def _array(memory: Array, spec: TensorSpec, layout: HostLayout) -> Array:
    elements = memory.view(spec.dtype.numpy)
    if layout is HostLayout.CHANNELS_LAST and spec.rank in (4, 5):
        batch, channels, *spatial = spec.shape
        return np.moveaxis(elements.reshape(batch, *spatial, channels), -1, 1)
    return elements.reshape(spec.shape)
