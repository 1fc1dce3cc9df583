"""The matrices of Winograd's minimal filtering for windows of 3 x 3, by the size of the output tile.

Source: Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2015, sections 4.1 and 4.3.

In whole numbers G has no fractions: what its rows are multiplied by moves to the columns of A^T, whose rows then give
multiples of the results. Our own arrangement of the same matrices.
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

WHOLE_INPUT_TRANSFORM: Matrix = tuple(INPUT_TRANSFORMS[4][row] for row in (0, 5, 1, 2, 3, 4))
"""B^T for tiles of 4 x 4, with rows in pairs that share the most: all matrices for whole numbers have this order."""

WHOLE_KERNEL_TRANSFORM: Matrix = (
    (1, 0, 0),
    (0, 0, 1),
    (1, 1, 1),
    (1, -1, 1),
    (1, 2, 4),
    (1, -2, 4),
)
"""G that belongs to it: the rows of `KERNEL_TRANSFORMS[4]` times 4, 1, -6, -6, 24 and 24."""

WHOLE_OUTPUT_TRANSFORM: Matrix = (
    (6, 0, -4, -4, 1, 1),
    (0, 0, -2, 2, 1, -1),
    (0, 0, -1, -1, 1, 1),
    (0, 6, -1, 1, 2, -2),
)
"""A^T that belongs to both."""

WHOLE_MULTIPLES = (24, 12, 6, 6)
"""What of a result each row of `WHOLE_OUTPUT_TRANSFORM` gives: 3 times a power of two."""
