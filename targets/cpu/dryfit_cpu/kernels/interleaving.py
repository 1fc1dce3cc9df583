"""Copies between a few planes and their pixels: the layouts whose innermost axis is too short for a transposition."""

from __future__ import annotations

from dryfit.target.kernels import Array
from dryfit_cpu.codes import interleavings
from dryfit_cpu.compiler.native import NativeFunction
from dryfit_cpu.descriptors import Lines
from dryfit_cpu.kernels.copying import chunks_for, joined_axes
from dryfit_cpu.steps import Work

INTERLEAVE = NativeFunction("interleaving", "interleave")
_NUMBERS = {interleaving: number for number, interleaving in enumerate(interleavings())}
_SIZES = {size for size, *_ in _NUMBERS}
_AXES = 4


def interleaving_work(source: Array, destination: Array, threads: int) -> Work | None:
    """Work that copies two to four planes to pixels, or pixels to planes; None for any other copy.

    Where pixels have room for a value more than there are planes, that value stays as it is, but is written: nobody
    else may write it at the same time. It becomes zero where the destination shows it and the source has no plane for
    it.
    """
    size, is_padded = destination.itemsize, source.shape != destination.shape
    destination = destination[tuple(map(slice, source.shape))]
    if source.dtype != destination.dtype or size not in _SIZES or not source.size:
        return None
    for planar, pixels, makes_pixels in ((source, destination, True), (destination, source, False)):
        axes = joined_axes([pixels, planar])
        across = next((axis for axis in axes if axis[1][0] == size), None)
        along = next((axis for axis in axes if axis[1][1] == size), None)
        if across is None or along is None or across is along or not 2 <= len(axes) <= _AXES:
            continue
        planes, pitch = across[0], along[1][0] // size
        number = _NUMBERS.get((size, planes, pitch, makes_pixels, is_padded))
        if number is None or along[1][0] % size:
            continue
        outer = [axis for axis in axes if axis is not across and axis is not along]
        (extent0, strides0), (extent1, strides1) = [(1, [0, 0])] * (2 - len(outer)) + outer
        planes_at = Lines(planar.ctypes.data, strides0[1], strides1[1], across[1][1])
        pixels_at = Lines(pixels.ctypes.data, strides0[0], strides1[0])
        return INTERLEAVE.work(
            min(chunks_for(source.size, threads), extent0 * extent1),
            number=number,
            size=size,
            planes=planes,
            pitch=pitch,
            makes_pixels=makes_pixels,
            clears=is_padded,
            source=planes_at if makes_pixels else pixels_at,
            output=pixels_at if makes_pixels else planes_at,
            extent0=extent0,
            extent1=extent1,
            columns=along[0],
        )
    return None
