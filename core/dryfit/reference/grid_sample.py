"""Grid sample: taps around each place, weighted and added."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from dryfit.network.layers.resize import GridSample, InterpolationMode
from dryfit.network.layers.slice import SampleMode
from dryfit.network.tensor import Array
from dryfit.reference.precision import cut_off, widened
from dryfit.reference.registry import reference
from dryfit.reference.resize import cubic_kernel, linear_kernel

_CUBIC_COEFFICIENT = -0.75
"""ONNX `GridSample`: the `a` of its cubic interpolation."""


@reference(GridSample)
def grid_sample(layer: GridSample, inputs: Sequence[Array]) -> list[Array]:
    """The input at the places of the grid; NEAREST rounds half to even and copies elements.

    Integers are interpolated in floating-point numbers, and the fraction of the result is dropped, as in a linear
    resize (our choice: ONNX allows integers, and neither ONNX Runtime nor ONNX's reference computes them).
    """
    x, grid = inputs[0], widened(inputs[1])
    is_nearest = layer.interpolation_mode is InterpolationMode.NEAREST
    wide = x if is_nearest else widened(x)
    samples, channels, *spatial = x.shape
    output = np.zeros((samples, channels, int(np.prod(grid.shape[1:-1]))), wide.dtype)
    for sample in range(samples):
        points = grid[sample].reshape(-1, len(spatial))
        # The grid's last axis is (x, y, z): the last spatial axis first.
        places = [_place(layer, points[:, -1 - axis], extent) for axis, extent in enumerate(spatial)]
        taps = [_taps(layer, place, extent) for place, extent in zip(places, spatial, strict=True)]
        flat = wide[sample].reshape(channels, -1)
        for corner in itertools.product(*(range(weights.shape[0]) for _, weights in taps)):
            index, weight = np.zeros((), np.intp), np.ones((), grid.dtype)
            for (positions, weights), tap, extent in zip(taps, corner, spatial, strict=True):
                index = index * extent + positions[tap]
                weight = weight * weights[tap]
            if is_nearest:
                output[sample] = np.where(weight > 0, flat[:, index], output[sample])
            else:
                output[sample] += flat[:, index] * weight
    return [cut_off(output.reshape(samples, channels, *grid.shape[1:-1]), x.dtype)]


def _place(layer: GridSample, coordinate: Array, extent: int) -> Array:
    """The place in the input, in elements, of a coordinate of which -1 and 1 are the borders."""
    # With aligned corners the borders are the centres of the outer elements, else half an element further out.
    margin = 0 if layer.align_corners else 1
    place = ((coordinate + 1) * (extent - 1 + margin) - margin) / 2
    if layer.interpolation_mode is InterpolationMode.NEAREST:
        place = np.rint(place)
    if layer.interpolation_mode is not InterpolationMode.CUBIC:
        place = _inside(layer, place, extent)
    return place


def _inside(layer: GridSample, place: Array, extent: int) -> Array:
    """Places that are outside moved into the input, as the sample mode has it; FILL leaves them."""
    if layer.sample_mode is SampleMode.CLAMP:
        return np.clip(place, 0, extent - 1)
    if layer.sample_mode is SampleMode.REFLECT:
        low, high = (0.0, extent - 1.0) if layer.align_corners else (-0.5, extent - 0.5)
        if low == high:
            return np.zeros_like(place)
        period = 2 * (high - low)
        turned = np.mod(place - low, period)
        return (low + np.minimum(turned, period - turned)).astype(place.dtype)
    return place


def _taps(layer: GridSample, place: Array, extent: int) -> tuple[Array, Array]:
    """(positions, weights) of the elements around each place, `[taps, points]`; positions lie in the input."""
    first = np.floor(place)
    if layer.interpolation_mode is InterpolationMode.NEAREST:
        positions, weights = np.rint(place)[None], np.ones_like(place)[None]
    elif layer.interpolation_mode is InterpolationMode.LINEAR:
        positions = first + np.arange(2, dtype=place.dtype)[:, None]
        weights = linear_kernel(positions - place)
    else:
        positions = first + np.arange(-1, 3, dtype=place.dtype)[:, None]
        weights = cubic_kernel(positions - place, _CUBIC_COEFFICIENT)
    # A place inside can have neighbours outside.
    positions = np.rint(_inside(layer, positions, extent))
    weights = np.where((positions >= 0) & (positions < extent), weights, 0).astype(place.dtype)
    return np.clip(np.nan_to_num(positions), 0, extent - 1).astype(np.intp), weights
