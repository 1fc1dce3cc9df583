"""The geometry of a window that slides over images, as native functions take it.

A volume is seen as images too: its slices. A window over it is one over an image that goes on in several slices, as it
goes on in several rows; and the slices of a volume are to the register block what the images of a batch are.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from dryfit.network.layers.convolution import Convolution
from dryfit.network.tensor import Shape, TensorSpec
from dryfit_cpu.descriptors import ImagePadding, WindowAxis
from dryfit_cpu.kernels.dense_operands import VOLUME_RANK
from dryfit_cpu.kernels.matrix_products import computed_pixels, is_narrow
from dryfit_cpu.kernels.operands import fp32_bytes

_CONFLICTING_BYTES = 2048
"""Pixels whose distance is a multiple of this share few sets of the first-level cache: a copy keeps them apart."""
_SHARED_SET_BYTES = 4096
"""Those whose distance is a multiple of this share one set, of 8 or 12 lines, and a register block has 14 pixels."""
_MANY_OUTPUTS = 128
"""Output channels from which a copy against conflicts costs less than they do: the input is read once for each panel
of 32, from the first-level cache or past it. Measured with 1x1 windows on 512 and 1024 channels."""
_PITCH_PADDING = 64
_SAVED_OUTPUTS = 16
"""Output channels of a pixel whose products take as long as gathering its window. Rows of 7 pixels in tiles of 6
compute 9 each: with 512 channels and a 3 x 3 window FP32 takes a seventh less time gathered, measured on a Zen 3, and
INT8 no less."""


def pair(values: Sequence[int]) -> tuple[int, int]:
    """Sizes along the spatial axes, of which the last two count, as (height, width)."""
    return (1, values[0]) if len(values) == 1 else (values[-2], values[-1])


def images_of(shape: Sequence[int]) -> tuple[int, int, int, int]:
    """A shape as that of images (N, C, H, W): one spatial axis is a row, three are the slices of one volume."""
    return (shape[2 if len(shape) == VOLUME_RANK else 0], shape[1], *pair(shape[2:]))


def read_paddings(layer: Convolution, x: Shape, y: Shape) -> list[tuple[int, int]]:
    """What windows read before and behind each spatial axis; what rounding up adds behind the padding is zero too."""
    given = zip(layer.axes(x[2:]), layer.paddings(x[2:]), y[2:], strict=True)
    return [
        (pre, max(0, (outputs - 1) * stride + (kernel - 1) * dilation + 1 - pre - extent))
        for (extent, kernel, stride, dilation, _, _), (pre, _), outputs in given
    ]


def pixel_pitch(channels: int, size: int, step: int = 1) -> int:
    """Values from pixel to pixel of a copy, so that pixels `step` apart do not share few sets of the cache.

    Values have `size` bytes.
    """
    return channels + (_PITCH_PADDING // size if pixel_conflicts(size * channels * step) else 0)


def pixel_conflicts(distance: int) -> bool:
    """Whether pixels so many bytes apart share few sets of the cache."""
    return distance % _CONFLICTING_BYTES == 0


def share_sets(pixels: int, distance: int, outputs: int) -> bool:
    """Whether a copy costs less than that pixels so many bytes apart lie in one set, while outputs are computed."""
    return pixels > 1 and distance % _SHARED_SET_BYTES == 0 and outputs >= _MANY_OUTPUTS


@attrs.frozen
class Slices:
    """How a window goes on along the images, where they are the slices of a volume; by default not at all.

    Attributes:
        kernel, stride, dilation: in slices.
        padding: slices before and behind.
    """

    kernel: int = 1
    stride: int = 1
    dilation: int = 1
    padding: tuple[int, int] = (0, 0)

    @property
    def is_one(self) -> bool:
        """Whether a window sees one slice, and each output has its own."""
        return self == Slices()


@attrs.frozen
class WindowGeometry:
    """A convolution's geometry: in two spatial axes for a batch of images, in three for the slices of one volume.

    Attributes:
        input, output: (N, C, H, W); of a volume N are the slices.
        kernel, stride, dilation: (height, width).
        padding: ((top, bottom), (left, right)).
        groups: number of groups.
        slices: what it does along N.
    """

    input: tuple[int, int, int, int]
    output: tuple[int, int, int, int]
    kernel: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    padding: tuple[tuple[int, int], tuple[int, int]]
    groups: int
    slices: Slices = Slices()

    @classmethod
    def of(cls, layer: Convolution, x: TensorSpec, y: TensorSpec) -> WindowGeometry:
        """The geometry for these shapes."""
        stride, dilation, kernel = pair(layer.stride_nd), pair(layer.dilation_nd), pair(layer.kernel_size_nd)
        *slices, rows, columns = [*[(0, 0)] * (4 - x.rank), *read_paddings(layer, x.shape, y.shape)]
        along = Slices()
        if slices:
            along = Slices(layer.kernel_size_nd[0], layer.stride_nd[0], layer.dilation_nd[0], slices[0])
        padding = (rows, columns)
        images = images_of(x.shape), images_of(y.shape)
        return cls(*images, kernel, stride, dilation, padding, layer.num_groups, along)

    def has_conflicts(self, image_bytes: int, pixel_bytes: int) -> bool:
        """Whether a block's pixels share one set of the first-level cache, for so long that a copy costs less.

        The distances are from one to the next in the input. Pixels of several images are a block's where outputs have
        one each.
        """
        N, K, H, W = self.output
        is_image = H * W == 1
        pixels, distance = (N, image_bytes) if is_image else (H * W, pixel_bytes * self.stride[1])
        return share_sets(pixels, distance, K)

    @property
    def around(self) -> ImagePadding:
        """The padding around the input."""
        return ImagePadding(*self.slices.padding, *self.padding[0], *self.padding[1])

    @property
    def axes(self) -> tuple[WindowAxis, WindowAxis]:
        """What native functions are told about it, along the rows and along the columns."""
        rows, columns = zip(self.kernel, self.stride, self.dilation, *zip(*self.padding, strict=True), strict=True)
        return WindowAxis(*rows), WindowAxis(*columns)

    @property
    def is_padded(self) -> bool:
        """Whether it reads beyond the input."""
        return any(side for axis in (self.slices.padding, *self.padding) for side in axis)

    @property
    def padded_images(self) -> tuple[int, int, int]:
        """(N, H, W) of the input with its padding."""
        N, _, H, W = self.input
        (top, bottom), (left, right) = self.padding
        return (N + sum(self.slices.padding), top + H + bottom, left + W + right)

    def segments(self, strides: Sequence[int], columns: int) -> list[int]:
        """Byte offsets of the runs of values of an output pixel's window.

        Strides are bytes from one image, row and pixel of the input to the next; a row of the window is `columns` runs.
        """
        image, row, pixel = strides
        return [
            z * self.slices.dilation * image + y * self.dilation[0] * row + x * self.dilation[1] * pixel
            for z in range(self.slices.kernel)
            for y in range(self.kernel[0])
            for x in range(columns)
        ]

    def steps(self, strides: Sequence[int]) -> tuple[int, int, int]:
        """Bytes from one output image, row and pixel to the next in an input with such strides."""
        image, row, pixel = strides
        return (image * self.slices.stride, row * self.stride[0], pixel * self.stride[1])

    @property
    def staged_shape(self) -> tuple[int, int, int, int]:
        """(N, H, W, channel pitch) of the input with its padding."""
        return (*self.padded_images, pixel_pitch(self.input[1], 4, self.stride[1]))

    @property
    def has_short_rows(self) -> bool:
        """Whether windows have to be gathered, because the rows are too short for tiles to read the input as it is."""
        return self._can_be_gathered and is_narrow(self.output[3])

    @property
    def is_gathered(self) -> bool:
        """Whether FP32 windows are gathered: rows are too short for tiles, or tiles compute too many pixels in vain."""
        N, K, H, W = self.output
        if not self._can_be_gathered:
            return False
        in_vain = computed_pixels(W) / W - computed_pixels(N * H * W) / (N * H * W)
        return is_narrow(W) or K * in_vain >= _SAVED_OUTPUTS

    @property
    def _can_be_gathered(self) -> bool:
        N, _, H, W = self.output
        is_flat = self.kernel == (1, 1) and self.stride == (1, 1) and not self.is_padded
        return not (self.groups > 1 or is_flat or H * W == 1 or is_narrow(N * H * W))

    @property
    def windows_shape(self) -> tuple[int, int] | None:
        """(pixels, k) of the gathered windows; None where tiles can read the input as it is."""
        N, _, H, W = self.output
        places = self.slices.kernel * self.kernel[0] * self.kernel[1]
        return (N * H * W, self.input[1] * places) if self.is_gathered else None

    @property
    def workspace_bytes(self) -> int:
        """Room for the gathered windows and, where it is padded, the staged input."""
        windows = fp32_bytes(self.windows_shape) if self.windows_shape is not None else 0
        return windows + (fp32_bytes(self.staged_shape) if self.is_padded else 0)
