"""The matrices of Winograd's minimal filtering for windows of 3 x 3, by the size of the output tile.

Source: Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2015, sections 4.1 and 4.3.
"""

from __future__ import annotations

from collections.abc import Mapping

Matrix = tuple[tuple[int, ...], ...]

INPUT_TRANSFORMS: Mapping[int, Matrix] = {
    2: (
        (1, 0, -1, 0),
        (0, 1, 1, 0),
        (0, -1, 1, 0),
        (0, 1, 0, -1),
    ),
    4: (
        (4, 0, -5, 0, 1, 0),
        (0, -4, -4, 1, 1, 0),
        (0, 4, -4, -1, 1, 0),
        (0, -2, -1, 2, 1, 0),
        (0, 2, -1, -2, 1, 0),
        (0, 4, 0, -5, 0, 1),
    ),
}
"""B^T: from a tile of the input to the positions that are multiplied."""

OUTPUT_TRANSFORMS: Mapping[int, Matrix] = {
    2: (
        (1, 1, 1, 0),
        (0, 1, -1, -1),
    ),
    4: (
        (1, 1, 1, 1, 1, 0),
        (0, 1, -1, 2, -2, 0),
        (0, 1, 1, 4, 4, 0),
        (0, 1, -1, 8, -8, 1),
    ),
}
"""A^T: from the products to a tile of the output."""

KERNEL_TRANSFORMS: Mapping[int, tuple[tuple[float, ...], ...]] = {
    2: ((1, 0, 0), (1 / 2, 1 / 2, 1 / 2), (1 / 2, -1 / 2, 1 / 2), (0, 0, 1)),
    4: (
        (1 / 4, 0, 0),
        (-1 / 6, -1 / 6, -1 / 6),
        (-1 / 6, 1 / 6, -1 / 6),
        (1 / 24, 1 / 12, 1 / 6),
        (1 / 24, -1 / 12, 1 / 6),
        (0, 0, 1),
    ),
}
"""G: from a kernel of 3 x 3 to its positions."""
