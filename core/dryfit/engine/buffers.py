"""The host memory of one execution context: one arena for the tensors between layers."""

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
    """Return the size if it is a possible memory size.

    Args:
        size: size in bytes.
        where: owner of the memory, for errors.
        what: shape or other origin of the size, for errors.

    Raises:
        ExecutionError: The size is negative, or larger than `LARGEST_SIZE`.
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
    """Return the bytes of a static tensor on the host, where types below 8 bits occupy one byte per element."""
    return math.prod(spec.shape) * spec.dtype.numpy.itemsize


def new_array(spec: TensorSpec, layout: HostLayout = HostLayout.LINEAR) -> Array:
    """Return an uninitialized array with its own memory for a static tensor."""
    return _array(aligned_bytes(size_of(spec)), spec, layout)


def arena_arrays(
    tensors: Mapping[str, tuple[TensorSpec, HostLayout, int, int]], workspaces: Sequence[int], num_threads: int = 1
) -> tuple[dict[str, Array], list[Array]]:
    """Allocate arrays in one arena; tensors that are never live at the same time share memory.

    Args:
        tensors: (static spec, layout, first step, last step) by tensor name.
        workspaces: bytes of scratch memory per step.
        num_threads: that use it. With several, the workspaces of all steps are the same memory, apart from the tensors.

    Returns:
        The array of each tensor, and the workspace of each step.
    """
    specs = [spec for spec, _, _, _ in tensors.values()]
    buffers: list[Buffer] = [(size_of(spec), first, last) for spec, _, first, last in tensors.values()]
    # Memory that a dead tensor had is still in the cache of one thread. Several threads would find much of it in the
    # caches of each other; a workspace in the same place has mostly been used by the same thread in the step before.
    are_apart = num_threads > 1
    if not are_apart:
        buffers += [(size + SLACK if size else 0, step, step) for step, size in enumerate(workspaces)]
    offsets, total = plan_memory(buffers, ALIGNMENT)
    if is_watched():
        pieces = [aligned_bytes(size) for size in (*map(size_of, specs), *workspaces)]
    else:
        arena = aligned_bytes(total)
        pieces = [arena[offset : offset + size] for offset, (size, _, _) in zip(offsets, buffers, strict=True)]
        if are_apart:
            shared = aligned_bytes(max(workspaces, default=0) + SLACK)
            pieces += [shared[:size] for size in workspaces]
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
