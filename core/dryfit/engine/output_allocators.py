"""Memory of outputs: allocators that the caller provides, and upper bounds of sizes that depend on data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from dryfit.engine.buffers import size_of
from dryfit.errors import DryfitError, ExecutionError
from dryfit.network.network import Network
from dryfit.network.tensor import Array, Shape, TensorSpec
from dryfit.reference.inference import infer_with_values

ALIGNMENT = 64
"""Alignment in bytes that is asked for: a cache line."""


class OutputAllocator(Protocol):
    """Provides the memory of an output, whose size may depend on data; TensorRT's `IOutputAllocator`.

    A method `notify_shape(name, shape)` is optional: it is called in each run once the output is written.
    """

    def __call__(self, name: str, size: int, alignment: int) -> Any:
        """Return a writable, contiguous array of at least `size` bytes, which receives the output.

        Args:
            name: name of the output.
            size: number of bytes, 0 for an empty output.
            alignment: preferred alignment in bytes.
        """
        ...


def allocated(allocator: OutputAllocator, name: str, spec: TensorSpec) -> Array:
    """Return an array of an allocator as the output that a spec describes.

    Raises:
        ExecutionError: The allocator did not return writable memory of sufficient size.
    """
    size = int(np.prod(spec.shape, dtype=np.int64)) * spec.dtype.numpy.itemsize
    given = allocator(name, size, ALIGNMENT)
    try:
        # A view through the buffer protocol, so that nothing is copied: the memory is the caller's.
        memory = np.frombuffer(memoryview(given).cast("B"), np.uint8)
    except (TypeError, ValueError, BufferError) as error:
        raise _unusable(name, size, f"{type(given).__name__}: {error}") from error
    if memory.size < size or not memory.flags.writeable:
        raise _unusable(name, size, f"{memory.size} {'' if memory.flags.writeable else 'read-only '}bytes")
    return memory[:size].view(spec.dtype.numpy).reshape(spec.shape)


def _unusable(name: str, size: int, found: str) -> ExecutionError:
    return ExecutionError(
        "An output allocator must return writable, contiguous memory that is large enough",
        where=f"output {name!r}",
        found=found,
        allowed=f"at least {size} bytes",
        remedy="Return an array such as numpy.empty(size, 'uint8')",
    )


def largest_size(network: Network, input_shapes: Mapping[str, Shape], name: str) -> int:
    """Return an upper bound of the bytes of an output; -1 if there is none.

    Extents that depend on data take the largest value that their layer allows.

    Args:
        network: network of the engine.
        input_shapes: shape of each input.
        name: name of an output.
    """
    specs = {
        tensor.name: TensorSpec(input_shapes.get(tensor.name, tensor.shape), tensor.spec.dtype)
        for tensor in network.inputs
    }
    try:
        for layer in network.layers:
            inputs = [None if tensor is None else specs[tensor.name] for tensor in layer.inputs]
            for tensor, spec in zip(
                layer.outputs, layer.largest_outputs(inputs, infer_with_values(layer, inputs)), strict=True
            ):
                specs[tensor.name] = spec
    except DryfitError:  # bounds need not fit together as the extents of one run do
        return -1
    return size_of(specs[name]) if specs[name].is_static else -1
