"""Quantized inputs as the register block reads them: how they lie, and the work that brings them there."""

from __future__ import annotations

import math
from collections.abc import Sequence

import attrs

from dryfit.attrs_classes import frozen
from dryfit.target.kernels import Array
from dryfit_cpu.compiler.native import NativeFunction, Work
from dryfit_cpu.compiler.tier import current_tier
from dryfit_cpu.kernels.copying import chunks_for
from dryfit_cpu.kernels.integer_weights import UNIT
from dryfit_cpu.kernels.operands import ImageOperand
from dryfit_cpu.kernels.windows import WindowGeometry, pixel_conflicts, pixel_pitch

_SIZES = {current_tier().staged_bytes, 1} if current_tier().has_short_sums else {current_tier().staged_bytes}
_STAGE = {size: NativeFunction("staging", "stage_bytes" if size == 1 else "stage_pairs") for size in _SIZES}


@frozen
class Staged:
    """A staged input: where its values lie.

    Attributes:
        shape: (N, H, W, channel pitch), with its padding.
        size: bytes of a value.
        runs: byte offsets of the runs of values that an output pixel sums over.
        run_units: units of four values in each run.
    """

    shape: tuple[int, int, int, int]
    size: int
    runs: Sequence[int]
    run_units: int

    @classmethod
    def of(cls, window: WindowGeometry, size: int) -> Staged:
        """The staged input of a window, with values of a size; its runs hold the packed weights in their order."""
        C = window.input[1]
        pitch = pixel_pitch(C, size)
        count, length = weight_runs(C, window.kernel, window.dilation, window.groups)
        if pitch > C or window.dilation[1] > 1 or window.groups > 1:
            count, length = window.kernel[0] * window.kernel[1], C // window.groups
        shape = (*window.padded_images, pitch)
        runs = window.segments(_strides(shape, size), count // window.kernel[0])
        return cls(shape, size, runs, -(-length // UNIT))

    @property
    def strides(self) -> tuple[int, int, int]:
        """Bytes from one image, row and pixel to the next."""
        return _strides(self.shape, self.size)

    @property
    def words(self) -> int:
        """Words of four bytes that it takes."""
        return -(-math.prod(map(int, self.shape)) * self.size // 4)


def _strides(shape: tuple[int, int, int, int], size: int) -> tuple[int, int, int]:
    _, H, W, pitch = shape
    pixel = pitch * size
    return (H * W * pixel, W * pixel, pixel)


def weight_runs(channels: int, kernel: tuple[int, int], dilation: tuple[int, int], groups: int) -> tuple[int, int]:
    """Runs of weights in a slice of the window, and values in each: kernel rows where pixels lie together, else taps.

    On every machine the same. Rows of whole units are the same as taps of whole units.
    """
    if groups == 1 and (dilation[1] == 1 or kernel[1] == 1):
        return kernel[0], kernel[1] * channels
    return kernel[0] * kernel[1], channels // groups


def stage_integers_work(
    window: WindowGeometry, staged: Staged, source: ImageOperand, destination: Array, threads: int, fill: int
) -> Work:
    """Work that stages an INT8 image with its padding.

    The fill is what stands for 0.
    """
    return _STAGE[staged.size].work(
        chunks_for(staged.words, threads),
        source=source.image,
        padding=window.around,
        destination=destination.ctypes.data,
        pitch=staged.strides[2],
        fill=fill,
    )


def without_steps(window: WindowGeometry) -> WindowGeometry:
    """The same window over an image of the pixels that it reads, where it reads pixels apart: a window of one."""
    # A window of one pixel in steps reads a quarter of the image or less: staging it would copy the rest too, and with
    # the steps in the strides there is nothing left to skip.
    if window.kernel != (1, 1) or window.is_padded:
        return window
    return attrs.evolve(window, input=(*window.input[:2], *window.output[2:]), stride=(1, 1))


def with_pixels_of(window: WindowGeometry, source: ImageOperand) -> ImageOperand:
    """The image that `without_steps` of a window slides over."""
    if window.kernel != (1, 1) or window.is_padded:
        return source
    n, c, h, w = source.strides
    shape, strides = without_steps(window).input, (n, c, h * window.stride[0], w * window.stride[1])
    return attrs.evolve(source, shape=shape, strides=strides)


def runs_in_place(window: WindowGeometry, strides: tuple[int, int, int, int]) -> tuple[Sequence[int], int] | None:
    """Byte offsets of the runs of an INT8 image where it lies, and units in each; None where bytes have to be staged.

    A window of one pixel is one without steps. Strides are bytes from one element of the image to the next along N, C,
    H, W.
    """
    image, channel, row, pixel = strides
    _, C, H, W = window.input
    count, length = weight_runs(C, window.kernel, window.dilation, window.groups)
    if pixel != C:
        count, length = window.kernel[0] * window.kernel[1], C // window.groups
    # Only whole words, since the last word of a run would reach into the next pixel, whose weights are not zero.
    fits = channel == 1 and length % UNIT == 0 and not window.is_padded
    if not fits or (pixel_conflicts(pixel * window.stride[1]) and H * W > 1):
        return None
    return window.segments((image, row, pixel), count // window.kernel[0]), length // UNIT
