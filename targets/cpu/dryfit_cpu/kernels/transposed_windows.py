"""A deconvolution as convolutions: the outputs that are a stride apart read the same places of the window.

With a stride of 2 and a window of 4, along one axis, * marks what an output is the sum of:

    place in the window   0  1  2  3
    even outputs          *     *       a convolution with places 2 and 0
    odd outputs              *     *    a convolution with places 3 and 1

So each input value is multiplied once with each place of the window, as in a deconvolution, and sums are collected in
registers, as in a convolution. Along several axes there is a convolution for each choice of such sets of outputs.

Axes are always three: images, which are slices of a volume or lie apart, rows and columns.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import cast

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.network.layers.convolution import Deconvolution
from dryfit.network.tensor import Shape, Tensor
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Specs
from dryfit_cpu.kernels.windows import Slices, WindowGeometry, images_of


@frozen
class AxisPlaces:
    """The places of a window along one axis that fall on the same outputs.

    Attributes:
        residue: the outputs are those whose distance from the uncut output's first one has this remainder by the
            stride.
        places: in the order in which they meet the input, which is the last one first; none where the stride leaves
            gaps, which hold the bias.
        dilation: elements of the input from one to the next.
    """

    residue: int
    places: Sequence[int]
    dilation: int


@frozen
class WindowPart:
    """The places of one of the convolutions, along all axes.

    Attributes:
        name: ends the names of its packed weights.
        axes: along images, rows and columns.
    """

    name: str
    axes: tuple[AxisPlaces, AxisPlaces, AxisPlaces]

    def kernel(self, weights: Array) -> Array:
        """Of weights `[K, C / groups, *window]` those of these places; zeros for one where there are none.

        Returns:
            `[K, C / groups, images, rows, columns]`.
        """
        K, C, *window = weights.shape
        # Chosen when weights are packed: at run time a phase is a convolution like any other, with its own panels, and
        # no zeros are multiplied, as they would be in an input spread out by the stride.
        chosen = weights.reshape(K, C, *three(window, 1))
        for axis, places in enumerate(self.axes, 2):
            chosen = chosen.take(list(places.places), axis)
        shape = (K, C, *(max(len(places.places), 1) for places in self.axes))
        return chosen if chosen.size else np.zeros(shape, weights.dtype)


@frozen
class Phase:
    """Which outputs of images are one convolution, and its geometry.

    Attributes:
        part: its places.
        window: of the convolution.
        first_input: image, row and column of the input at which it begins.
        first_output: image, row and column of its first output.
        step: images, rows and columns from one output to the next.
    """

    part: WindowPart
    window: WindowGeometry
    first_input: tuple[int, int, int]
    first_output: tuple[int, int, int]
    step: tuple[int, int, int]

    def inputs(self, array: Array) -> Array:
        """What it reads of images `[N, C, H, W]`."""
        image, row, column = self.first_input
        return array[image:, :, row:, column:]

    def outputs(self, array: Array) -> Array:
        """What it writes of them."""
        # A view with longer strides: the phases write the same output, each its own pixels, and nothing is copied
        # together.
        image, row, column = (slice(*axis) for axis in zip(self.first_output, itertools.repeat(None), self.step))
        return array[image, :, row, column]


def three(values: Sequence[int], missing: int) -> tuple[int, int, int]:
    """What belongs to up to three spatial axes, with that of the missing ones in front."""
    images, rows, columns = [*[missing] * (3 - len(values)), *values]
    return images, rows, columns


def parts_of(layer: Deconvolution) -> list[WindowPart]:
    """The convolutions, whatever the extents are."""
    geometry = (three(values, 1) for values in (layer.kernel_size_nd, layer.stride_nd, layer.dilation_nd))
    images, rows, columns = (list(_places(*axis)) for axis in zip(*geometry, strict=True))
    return [WindowPart(f"_{number}", axes) for number, axes in enumerate(itertools.product(images, rows, columns))]


def _places(extent: int, stride: int, dilation: int) -> Iterator[AxisPlaces]:
    common = math.gcd(stride, dilation)
    hop = stride // common
    for residue in range(stride):
        first = next((place for place in range(hop) if (residue - place * dilation) % stride == 0), extent)
        yield AxisPlaces(residue, range(first, extent, hop)[::-1], dilation // common)


def phases_of(group: LayerGroup, specs: Specs) -> list[Phase]:
    """The convolutions of a group's deconvolution that have outputs, for these shapes."""
    layer = cast("Deconvolution", group.main)
    x, y = (specs[cast("Tensor", tensor).name].shape for tensor in (layer.inputs[0], layer.outputs[0]))
    phases = (_phase(layer, part, x, y) for part in parts_of(layer))
    return [phase for phase in phases if phase is not None]


def _phase(layer: Deconvolution, part: WindowPart, x: Shape, y: Shape) -> Phase | None:
    """The convolution of a part; None where no output is its own."""
    (N, C, *inputs), (M, K, *outputs) = images_of(x), images_of(y)
    step = three(layer.stride_nd, 1)
    cuts = [*[(0, 0)] * (3 - len(layer.kernel_size_nd)), *layer.paddings(x[2:])]
    geometry = zip(part.axes, (N, *inputs), (M, *outputs), step, three(layer.dilation_nd, 1), cuts, strict=True)
    axes = [_axis(*axis) for axis in geometry]
    if any(axis.outputs <= 0 for axis in axes):
        return None
    images, rows, columns = axes
    kernel = [max(len(places.places), 1) for places in part.axes]
    window = WindowGeometry(
        (images.inputs, C, rows.inputs, columns.inputs),
        (images.outputs, K, rows.outputs, columns.outputs),
        (kernel[1], kernel[2]),
        (1, 1),
        (part.axes[1].dilation, part.axes[2].dilation),
        (rows.padding, columns.padding),
        layer.num_groups,
        Slices(kernel[0], 1, part.axes[0].dilation, images.padding),
    )
    first_input = (images.first_input, rows.first_input, columns.first_input)
    return Phase(part, window, first_input, (images.first_output, rows.first_output, columns.first_output), step)


@frozen
class _Axis:
    """One axis of a phase: where it begins in the input, how much of that it may read, its outputs, its padding."""

    first_input: int
    inputs: int
    first_output: int
    outputs: int
    padding: tuple[int, int]


def _axis(places: AxisPlaces, inputs: int, outputs: int, stride: int, dilation: int, cut: tuple[int, int]) -> _Axis:
    first_output = (places.residue - cut[0]) % stride
    count = -(-(outputs - first_output) // stride)
    reach = (max(len(places.places), 1) - 1) * places.dilation
    first = (first_output + cut[0] - places.places[0] * dilation) // stride if places.places else inputs
    if first >= inputs:
        # It reads nothing of the input: padding alone.
        return _Axis(0, inputs, first_output, count, (reach + count, 0))
    skipped = max(first, 0)
    behind = first + reach + count - inputs
    return _Axis(skipped, inputs - skipped, first_output, count, (max(-first, 0), max(behind, 0)))
