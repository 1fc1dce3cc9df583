"""A deconvolution as convolutions: the outputs that are a stride apart read the same places of the window.

With a stride of 2 and a window of 4, along one axis, * marks what an output is the sum of:

    place in the window   0  1  2  3
    even outputs          *     *       a convolution with places 2 and 0
    odd outputs              *     *    a convolution with places 3 and 1

So each input value is multiplied once with each place of the window, as in a deconvolution, and sums are collected in
registers, as in a convolution. Along two axes there is a convolution for each pair of such sets of outputs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import attrs

from dryfit.network.layers.deconvolution import Deconvolution
from dryfit.network.tensor import Shape
from dryfit_cpu.kernels.windows import Window, pair


@attrs.frozen
class Places:
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


@attrs.frozen
class Phase:
    """Which outputs of an image are one convolution, and its geometry.

    Attributes:
        window: of the convolution.
        first_input: row and column of the input at which it begins.
        first_output: row and column of its first output.
        step: rows and columns from one output to the next.
    """

    window: Window
    first_input: tuple[int, int]
    first_output: tuple[int, int]
    step: tuple[int, int]


def places_of(layer: Deconvolution) -> list[tuple[Places, Places]]:
    """The places in rows and in columns of each convolution; whatever the extents are."""
    axes = zip(pair(layer.kernel_size_nd), pair(layer.stride_nd), pair(layer.dilation_nd), strict=True)
    rows, columns = (list(_places(*axis)) for axis in axes)
    return list(itertools.product(rows, columns))


def _places(extent: int, stride: int, dilation: int) -> Iterator[Places]:
    common = math.gcd(stride, dilation)
    hop = stride // common
    for residue in range(stride):
        first = next((place for place in range(hop) if (residue - place * dilation) % stride == 0), extent)
        yield Places(residue, range(first, extent, hop)[::-1], dilation // common)


def phase_of(layer: Deconvolution, places: tuple[Places, Places], x: Shape, y: Shape) -> Phase | None:
    """The convolution of these places for the shapes of input and output; None where no output is its own."""
    input_extents, output_extents = pair(x[2:]), pair(y[2:])
    paddings = [*[(0, 0)] * (2 - len(layer.kernel_size_nd)), *layer.paddings(x[2:])]
    geometry = zip(
        places, input_extents, output_extents, pair(layer.stride_nd), pair(layer.dilation_nd), paddings, strict=True
    )
    axes = [_axis(*axis) for axis in geometry]
    if any(axis.outputs <= 0 for axis in axes):
        return None
    rows, columns = axes
    window = Window(
        (x[0], x[1], rows.inputs, columns.inputs),
        (y[0], y[1], rows.outputs, columns.outputs),
        (max(len(places[0].places), 1), max(len(places[1].places), 1)),
        (1, 1),
        (places[0].dilation, places[1].dilation),
        (rows.padding, columns.padding),
        layer.num_groups,
    )
    first_input, first_output = (rows.first_input, columns.first_input), (rows.first_output, columns.first_output)
    return Phase(window, first_input, first_output, pair(layer.stride_nd))


@attrs.frozen
class _Axis:
    """One axis of a phase: where it begins in the input, how much of that it may read, its outputs, its padding."""

    first_input: int
    inputs: int
    first_output: int
    outputs: int
    padding: tuple[int, int]


def _axis(places: Places, inputs: int, outputs: int, stride: int, dilation: int, cut: tuple[int, int]) -> _Axis:
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
