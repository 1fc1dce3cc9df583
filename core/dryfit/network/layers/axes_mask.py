"""Axes as TensorRT writes them: bit i of an integer stands for axis i."""

from __future__ import annotations

from collections.abc import Iterable

from dryfit.network.layer import Layer


def mask_of(axes: Iterable[int]) -> int:
    """The bit mask of these axes, which count from 0."""
    mask = 0
    for axis in axes:
        mask |= 1 << axis
    return mask


def axes_in(mask: int) -> tuple[int, ...]:
    """The axes whose bits are set, ascending."""
    return tuple(axis for axis in range(mask.bit_length()) if mask >> axis & 1)


def checked_axes(layer: Layer, mask: int, rank: int) -> tuple[int, ...]:
    """The axes of a mask, for a tensor of this rank.

    Raises:
        NetworkError: the mask is empty or names an axis that the tensor does not have.
    """
    if mask <= 0 or mask.bit_length() > rank:
        raise layer.problem(
            "The bits of `axes` are axes of the input, at least one",
            found=bin(mask),
            allowed=f"bits 0 to {rank - 1}" if rank else "none: the input is a scalar",
        )
    return axes_in(mask)


def default_axis(rank: int) -> int:
    """The axis that TensorRT takes where none is given: the third from the end, or 0."""
    return max(rank - 3, 0)
