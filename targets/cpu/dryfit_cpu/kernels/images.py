"""What a layer with a window reads and writes, as images: a batch of them at once, or volume by volume its slices."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import numpy as np

from dryfit.target.kernels import Array, Binding
from dryfit_cpu.kernels.operands import bound_array

VOLUME_RANK = 5


@attrs.frozen(eq=False)
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
