"""The geometry of a window that slides over an image, as native functions take it."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from dryfit.network.layers.convolution import Convolution
from dryfit.network.tensor import Shape, TensorSpec
from dryfit_cpu.kernels.matrix_products import is_narrow
from dryfit_cpu.kernels.operands import fp32_bytes

_CONFLICTING_BYTES = 2048
"""Pixels whose distance is a multiple of this share few sets of the first-level cache: a copy keeps them apart."""
_SHARED_SET_BYTES = 4096
"""Those whose distance is a multiple of this share one set, of 8 or 12 lines, and a register block has 14 pixels."""
_MANY_OUTPUTS = 128
"""Output channels from which a copy against conflicts costs less than they do: the input is read once for each panel
of 32, from the first-level cache or past it. Measured with 1x1 windows on 512 and 1024 channels."""
_PITCH_PADDING = 64


def pair(values: Sequence[int]) -> tuple[int, int]:
    """Sizes along one or two spatial axes as (height, width)."""
    return (1, values[0]) if len(values) == 1 else (values[0], values[1])


def read_paddings(layer: Convolution, x: Shape, y: Shape) -> list[tuple[int, int]]:
    """What windows read before and behind each spatial axis; what rounding up adds behind the padding is zero too."""
    given = zip(layer.axes(x[2:]), layer.paddings(x[2:]), y[2:], strict=True)
    return [
        (pre, max(0, (outputs - 1) * stride + (kernel - 1) * dilation + 1 - pre - extent))
        for (extent, kernel, stride, dilation, _, _), (pre, _), outputs in given
    ]


def pixel_pitch(channels: int, size: int, step: int = 1) -> int:
    """Values from pixel to pixel of a copy, so that pixels `step` apart do not share few sets of the cache.

    Args:
        channels: of a pixel.
        size: bytes of a value.
        step: pixels from one that is read to the next.
    """
    return channels + (_PITCH_PADDING // size if pixel_conflicts(size * channels * step) else 0)


def pixel_conflicts(distance: int) -> bool:
    """Whether pixels so many bytes apart share few sets of the cache."""
    return distance % _CONFLICTING_BYTES == 0


@attrs.frozen
class Window:
    """A convolution's geometry in two spatial axes, for one input.

    Attributes:
        input, output: (N, C, H, W).
        kernel, stride, dilation: (height, width).
        padding: ((top, bottom), (left, right)).
        groups: number of groups.
    """

    input: tuple[int, int, int, int]
    output: tuple[int, int, int, int]
    kernel: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    padding: tuple[tuple[int, int], tuple[int, int]]
    groups: int

    @classmethod
    def of(cls, layer: Convolution, x: TensorSpec, y: TensorSpec) -> Window:
        """The geometry for these shapes; one spatial axis is a row of an image."""

        def image(shape: Sequence[int]) -> tuple[int, int, int, int]:
            return (shape[0], shape[1], *pair(shape[2:]))

        stride, dilation, kernel = pair(layer.stride_nd), pair(layer.dilation_nd), pair(layer.kernel_size_nd)
        rows, columns = [*[(0, 0)] * (4 - x.rank), *read_paddings(layer, x.shape, y.shape)]
        return cls(image(x.shape), image(y.shape), kernel, stride, dilation, (rows, columns), layer.num_groups)

    @property
    def has_conflicts(self) -> bool:
        """Whether a block's pixels share one set of the first-level cache, for so long that a copy costs less."""
        _, C, H, W = self.input
        return 4 * C * self.stride[1] % _SHARED_SET_BYTES == 0 and H * W > 1 and self.output[1] >= _MANY_OUTPUTS

    def padding_fields(self) -> dict[str, int]:
        """The fields by which native functions know the input and its padding."""
        images, channels, rows, columns = self.input
        (top, bottom), (left, right) = self.padding
        return {
            "images": images,
            "rows": rows,
            "columns": columns,
            "channels": channels,
            "top": top,
            "bottom": bottom,
            "left": left,
            "right": right,
        }

    @property
    def is_padded(self) -> bool:
        """Whether it reads beyond the input."""
        return any(side for axis in self.padding for side in axis)

    @property
    def staged_shape(self) -> tuple[int, int, int, int]:
        """(N, H, W, channel pitch) of the input with its padding."""
        N, C, H, W = self.input
        (top, bottom), (left, right) = self.padding
        return (N, top + H + bottom, left + W + right, pixel_pitch(C, 4, self.stride[1]))

    @property
    def is_gathered(self) -> bool:
        """Whether the windows are gathered, because the rows are too short for tiles to read the input as it is."""
        N, _, H, W = self.output
        is_flat = self.kernel == (1, 1) and self.stride == (1, 1) and not self.is_padded
        return not (self.groups > 1 or is_flat or H * W == 1 or not is_narrow(W) or is_narrow(N * H * W))

    @property
    def windows_shape(self) -> tuple[int, int] | None:
        """(pixels, k) of the gathered windows; None where tiles can read the input as it is."""
        N, _, H, W = self.output
        return (N * H * W, self.input[1] * self.kernel[0] * self.kernel[1]) if self.is_gathered else None

    @property
    def workspace_bytes(self) -> int:
        """Room for the gathered windows and, where it is padded, the staged input."""
        windows = fp32_bytes(self.windows_shape) if self.windows_shape is not None else 0
        return windows + (fp32_bytes(self.staged_shape) if self.is_padded else 0)
