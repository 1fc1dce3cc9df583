"""Broadcasting of shapes as TensorRT has it: equal ranks, an extent of 1 is repeated."""

from __future__ import annotations

from dryfit.network.layer import Layer
from dryfit.network.tensor import Shape


def broadcast_shapes(layer: Layer, *shapes: Shape) -> Shape:
    """The shape that these shapes broadcast to. A dynamic extent (-1) takes the extent beside it, unless that is 1.

    Raises:
        NetworkError: ranks differ, or two extents differ and neither is 1.
    """
    found = " and ".join(str(shape) for shape in shapes)
    if len({len(shape) for shape in shapes}) != 1:
        raise layer.problem("The inputs have equal ranks", found=found, remedy="Reshape one of them by a shuffle layer")
    output = []
    for extents in zip(*shapes, strict=True):
        known = {extent for extent in extents if extent not in (-1, 1)}
        if len(known) > 1:
            raise layer.problem("The inputs' extents are equal, or 1", found=found)
        output.append(known.pop() if known else -1 if -1 in extents else 1)
    return tuple(output)
