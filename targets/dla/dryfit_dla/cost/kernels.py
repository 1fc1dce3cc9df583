"""What the multiplying layers of a network ask of the DLA's multipliers."""

from __future__ import annotations

import math
from typing import Any

from dryfit.network.layer import Layer
from dryfit.target.cost import CostQuestion
from dryfit_dla.cost.formula import Kernels


def kernels_of(layer: Layer, question: CostQuestion, *, is_image: bool = False) -> Kernels:
    """The work of one layer that sums products; other kinds than convolutions run as convolutions of 1x1.

    Args:
        layer: of a multiplying kind.
        question: has its tensors' shapes.
        is_image: whether its input is an image in DLA_HWC4.
    """
    first: Any = layer
    given, made = question.specs[layer.connected_input(0).name].shape, question.specs[layer.outputs[0].name].shape
    is_sparse = layer.name in question.sparse_layers
    if layer.kind in ("convolution", "deconvolution"):
        # A deconvolution applies its kernels at each position of the input, a convolution at each of the output.
        shape = made if layer.kind == "convolution" else given
        height, width = (1, 1, *first.kernel_size_nd)[-2:]
        return Kernels(
            height=height,
            width=width,
            channels=given[1],
            maps=made[1],
            groups=first.num_groups,
            positions=shape[0] * math.prod(shape[2:]),
            is_image=is_image,
            is_sparse=is_sparse,
        )
    maps = made[-1] if layer.kind == "matrix_multiply" else first.num_output_channels
    positions = math.prod(made) // max(maps, 1)
    channels = layer.multiply_accumulates(question.specs) // max(positions * maps, 1)
    return Kernels(1, 1, channels, maps, 1, positions, is_sparse=is_sparse)
