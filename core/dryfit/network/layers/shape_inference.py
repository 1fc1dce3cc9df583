"""Shared helpers of shape inference: axes, broadcasting, and inputs with known values.

Axes are bit masks, as in TensorRT: bit i of an integer is axis i. Shapes broadcast if their ranks are equal: an extent
of 1 is repeated. Inputs may carry dimensions, axes or counts.
"""

from __future__ import annotations

from collections.abc import Iterable

from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.tensor import Shape, TensorSpec


def mask_of(axes: Iterable[int]) -> int:
    """Return the bit mask of these axes, which are counted from 0."""
    mask = 0
    for axis in axes:
        mask |= 1 << axis
    return mask


def axes_in(mask: int) -> tuple[int, ...]:
    """Return the axes whose bits are set, in ascending order."""
    return tuple(axis for axis in range(mask.bit_length()) if mask >> axis & 1)


def checked_axes(layer: Layer, mask: int, rank: int) -> tuple[int, ...]:
    """Return the axes of a mask, for a tensor of this rank.

    Raises:
        NetworkError: The mask is empty, or names an axis that the tensor does not have.
    """
    if mask <= 0 or mask.bit_length() > rank:
        raise layer.problem(
            "`axes` must select at least one axis of the input, and no others",
            found=bin(mask),
            allowed=f"bits 0 to {rank - 1}" if rank else "no axis, as the input is a scalar",
            remedy="Set `axes`",
        )
    return axes_in(mask)


def default_axis(rank: int) -> int:
    """Return TensorRT's default axis: the third from the end, or 0."""
    return max(rank - 3, 0)


def broadcast_shapes(layer: Layer, *shapes: Shape) -> Shape:
    """Return the broadcast shape. A dynamic extent (-1) takes the other extent, unless that is 1.

    Raises:
        NetworkError: The ranks differ, or two extents differ and neither is 1.
    """
    if all(shape == shapes[0] for shape in shapes):  # most operands
        return shapes[0]
    found = " and ".join(str(shape) for shape in shapes)
    if len({len(shape) for shape in shapes}) != 1:
        raise layer.problem(
            "The inputs must have the same rank", found=found, remedy="Add a shuffle layer that reshapes one of them"
        )
    output = []
    for extents in zip(*shapes, strict=True):
        known = {extent for extent in extents if extent not in (-1, 1)}
        if len(known) > 1:
            raise layer.problem(
                "The dimensions of the inputs must be equal or 1", found=found, remedy="Reshape one of the inputs"
            )
        output.append(known.pop() if known else -1 if -1 in extents else 1)
    return tuple(output)


INDEX_TYPES = (DataType.INT32, DataType.INT64)
"""Types of indices, axes and dimensions."""


def known_ints(spec: TensorSpec) -> tuple[int, ...] | None:
    """Return the contents of an integer tensor as Python ints, or None if not known at build time."""
    return None if spec.value is None else tuple(int(element) for element in spec.value.reshape(-1))


def dimension_input(layer: Layer, spec: TensorSpec, what: str) -> tuple[int, ...]:
    """Return the elements of an input with one number per dimension; -1 for each unknown element.

    Raises:
        NetworkError: The input is not a vector of integers, or its length is not known.
    """
    check_index_type(layer, spec, what)
    if spec.rank != 1 or spec.shape[0] < 0:
        raise layer.problem(
            f"{what} must be a vector of static length", found=spec.shape, remedy="Connect a vector with a fixed shape"
        )
    known = known_ints(spec)
    return (-1,) * spec.shape[0] if known is None else known


def check_index_type(layer: Layer, spec: TensorSpec, what: str) -> None:
    """Check that an input contains integers that can be indices.

    Raises:
        NetworkError: The input has another type.
    """
    if spec.dtype not in INDEX_TYPES:
        raise layer.problem(
            f"{what} has the wrong type",
            found=spec.dtype.text,
            allowed=" or ".join(t.text for t in INDEX_TYPES),
            remedy="Add a cast layer before it",
        )


def check_axis(layer: Layer, axis: int, rank: int, what: str = "`axis`") -> int:
    """Return the axis if a tensor of this rank has it; axes are counted from 0.

    Raises:
        NetworkError: The tensor does not have the axis.
    """
    if not 0 <= axis < rank:
        allowed = f"0 to {rank - 1}" if rank else "no axis, as the input is a scalar"
        raise layer.problem(
            f"{what} must be an axis of the input", found=axis, allowed=allowed, remedy="Choose one of these axes"
        )
    return axis


def normalized_axes(layer: Layer, axes: Iterable[int], rank: int) -> tuple[int, ...]:
    """Return axes counted from 0, in ascending order, for axes that may be negative (counted from the end).

    Raises:
        NetworkError: An axis does not exist, or is listed twice.
    """
    axes = tuple(axes)
    if any(not -rank <= axis < rank for axis in axes) or len({axis % rank for axis in axes}) != len(axes):
        raise layer.problem(
            "The axes must be distinct axes of the tensor",
            found=axes,
            allowed=f"{-rank} to {rank - 1}, each once",
            remedy="Name each axis once",
        )
    return tuple(sorted(axis % rank for axis in axes))


def check_same_types(layer: Layer, *specs: TensorSpec) -> DataType:
    """Return the type that these inputs share.

    Raises:
        NetworkError: The types differ.
    """
    if len({spec.dtype for spec in specs}) != 1:
        raise layer.problem(
            "All inputs must have the same type",
            found=" and ".join(spec.dtype.text for spec in specs),
            remedy="Add a cast layer before one of them",
        )
    return specs[0].dtype


def merged_extent(layer: Layer, first: int, second: int, what: str, *, is_mendable: bool = False) -> int:
    """Return the extent that two tensors share on an axis; one of them may be dynamic.

    Raises:
        NetworkError: The extents are known and differ.
    """
    if -1 in (first, second):
        return max(first, second)
    if first != second:
        raise layer.problem(
            f"{what} must be equal",
            found=f"{first} and {second}",
            is_mendable=is_mendable,
            remedy="Reshape one of them",
        )
    return first
