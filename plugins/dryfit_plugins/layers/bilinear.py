"""Reading a picture between its elements, which region pooling and deformable convolution share."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def corners(position: Array, extent: int) -> tuple[Array, Array, Array]:
    """(lower index, upper index, weight of the upper one) along an axis, for positions inside `[0, extent - 1]`."""
    low = np.clip(np.floor(position).astype(np.int64), 0, extent - 1)
    high = np.minimum(low + 1, extent - 1)
    return low, high, np.clip(position - low, 0, 1)


def sample(picture: Array, rows: Array, columns: Array) -> Array:
    """`picture[..., rows, columns]` between elements, the four neighbours weighted; 0 where outside by 1 or more.

    Args:
        picture: `[..., H, W]`.
        rows: positions on the axis before the last.
        columns: positions on the last axis, in the shape of `rows`.
    """
    height, width = picture.shape[-2:]
    top, left = np.floor(rows).astype(np.int64), np.floor(columns).astype(np.int64)
    down, right = rows - top, columns - left
    total = np.zeros(picture.shape[:-2] + rows.shape, picture.dtype)
    for row, row_weight in ((top, 1 - down), (top + 1, down)):
        for column, column_weight in ((left, 1 - right), (left + 1, right)):
            inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
            values = picture[..., np.clip(row, 0, height - 1), np.clip(column, 0, width - 1)]
            total += values * (inside * row_weight * column_weight).astype(picture.dtype)
    return total
