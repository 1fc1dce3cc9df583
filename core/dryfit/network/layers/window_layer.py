"""Pooling, and the common base of pooling, convolution and deconvolution: a window that slides over spatial axes.

Source: TensorRT's `PaddingMode`, and ONNX Conv and the pooling operators.
"""

from __future__ import annotations

import abc
import enum
from collections.abc import Sequence

import attrs

from dryfit.network.data_types import DataType
from dryfit.network.layer import Inputs, Layer, LayerOwner, define_layer, layer_kind
from dryfit.network.tensor import Tensor, TensorSpec


class PaddingMode(enum.Enum):
    """Computation of the padding and rounding of the output extent; TensorRT's `PaddingMode`."""

    EXPLICIT_ROUND_DOWN = "explicit_round_down"
    EXPLICIT_ROUND_UP = "explicit_round_up"
    SAME_UPPER = "same_upper"
    SAME_LOWER = "same_lower"


def ints(values: int | Sequence[int] | None) -> tuple[int, ...]:
    """Return a tuple of Python ints; the converter of every parameter with one value per spatial axis."""
    if values is None:
        return ()
    return (int(values),) if isinstance(values, int) else tuple(int(value) for value in values)


def dilated(kernel: int, dilation: int) -> int:
    """Return the extent that a dilated kernel covers."""
    return (kernel - 1) * dilation + 1


def resolved_padding(
    mode: PaddingMode, extent: int, kernel: int, stride: int, dilation: int, pre: int, post: int
) -> tuple[int, int]:
    """Return (pre, post) padding of one axis in this mode; the SAME modes compute it from the extent."""
    if mode not in (PaddingMode.SAME_UPPER, PaddingMode.SAME_LOWER) or extent < 0:
        return pre, post
    total = max((-(-extent // stride) - 1) * stride + dilated(kernel, dilation) - extent, 0)
    small, large = total // 2, total - total // 2
    return (small, large) if mode is PaddingMode.SAME_UPPER else (large, small)


def output_extent(mode: PaddingMode, extent: int, kernel: int, stride: int, dilation: int, pre: int, post: int) -> int:
    """Return the output extent of one axis of a convolution: -1 if dynamic, 0 if the window does not fit."""
    if extent < 0:
        return -1
    if mode in (PaddingMode.SAME_UPPER, PaddingMode.SAME_LOWER):
        return -(-extent // stride)
    span = extent + pre + post - dilated(kernel, dilation)
    return max((-(-span // stride) if mode is PaddingMode.EXPLICIT_ROUND_UP else span // stride) + 1, 0)


@define_layer
class WindowLayer(Layer):
    """A layer with a window over one or more spatial axes of `x[N, C, *spatial]`.

    Attributes:
        stride_nd, dilation_nd: one value per spatial axis. Default: 1.
        pre_padding, post_padding: padding before and after each spatial axis. Default: 0.
        padding_mode: whether the padding is explicit or computed from the input extents, and the rounding of the output
            extents.
    """

    stride_nd: tuple[int, ...] = attrs.field(default=(), converter=ints)
    dilation_nd: tuple[int, ...] = attrs.field(default=(), converter=ints)
    pre_padding: tuple[int, ...] = attrs.field(default=(), converter=ints)
    post_padding: tuple[int, ...] = attrs.field(default=(), converter=ints)
    padding_mode: PaddingMode = PaddingMode.EXPLICIT_ROUND_DOWN

    def __attrs_post_init__(self) -> None:
        axes = len(self.window)
        self.stride_nd = self.stride_nd or (1,) * axes
        self.dilation_nd = self.dilation_nd or (1,) * axes
        self.pre_padding = self.pre_padding or (0,) * axes
        self.post_padding = self.post_padding or (0,) * axes

    @property
    @abc.abstractmethod
    def window_name(self) -> str:
        """Name of the parameter that holds the window: `kernel_size_nd` or `window_size_nd`."""

    @property
    def window(self) -> tuple[int, ...]:
        """The window: one extent per spatial axis."""
        return getattr(self, self.window_name)  # type: ignore[no-any-return]

    @property
    def padding_nd(self) -> tuple[int, ...]:
        """Symmetric padding; setting it sets `pre_padding` and `post_padding`."""
        return self.pre_padding

    @padding_nd.setter
    def padding_nd(self, padding: Sequence[int]) -> None:
        self.pre_padding = padding  # type: ignore[assignment]  # it is converted
        self.post_padding = self.pre_padding

    def paddings(self, spatial: Sequence[int]) -> list[tuple[int, int]]:
        """Return (pre, post) padding of each spatial axis for an input of these extents."""
        return [resolved_padding(self.padding_mode, *axis) for axis in self.axes(spatial)]

    def output_extents(self, spatial: Sequence[int]) -> tuple[int, ...]:
        """Return the output extent of each spatial axis; -1 if the input's is dynamic."""
        return tuple(output_extent(self.padding_mode, *axis) for axis in self.axes(spatial))

    def checked_extents(self, shape: Sequence[int], message: str) -> tuple[int, ...]:
        """Return `output_extents` for this input shape, after checking that no axis becomes empty.

        Raises:
            NetworkError: An output axis is empty although the input axis is not. Has the given message.
        """
        outputs = self.output_extents(shape[2:])
        if any(output < 1 <= extent for output, extent in zip(outputs, shape[2:], strict=True)):
            window = f"{self.window_name.split('_', maxsplit=1)[0]} {self.window} on an input of {tuple(shape)}"
            raise self.problem(
                message,
                found=f"{window}, an output of {outputs}",
                allowed="an output of at least 1 on each axis",
                remedy="Increase the padding or the input, or use a smaller window or dilation",
                is_mendable=True,
            )
        return outputs

    def axes(self, spatial: Sequence[int]) -> list[tuple[int, int, int, int, int, int]]:
        """Return (extent, window, stride, dilation, pre padding, post padding) of each spatial axis."""
        window = (self.window, self.stride_nd, self.dilation_nd, self.pre_padding, self.post_padding)
        return list(zip(spatial, *window, strict=True))

    def check_window(self, rank: int, *, least_post_padding: int | None = 0) -> None:
        """Check the window parameters: one value per spatial axis of the input, none below its minimum.

        Args:
            rank: rank of the input, including batch and channels.
            least_post_padding: minimum padding after an axis; None if it may be negative.

        Raises:
            NetworkError: A number of values or a value is invalid.
        """
        name, extents = self.window_name, self.window
        if not extents or rank != len(extents) + 2:
            raise self.problem(
                f"The input must have a batch axis, a channel axis and one axis per value of `{name}`",
                found=f"rank {rank} with a {name} of {tuple(extents)}",
                allowed=f"rank {len(extents) + 2}" if extents else "one extent or more",
                remedy=f"Set `{name}`, or reshape the input",
            )
        least = {name: 1, "stride_nd": 1, "dilation_nd": 1, "pre_padding": 0, "post_padding": least_post_padding}
        for parameter, bound in least.items():
            values = getattr(self, parameter)
            if len(values) != len(extents):
                raise self.problem(
                    f"`{parameter}` must have one value per spatial axis",
                    found=tuple(values),
                    allowed=f"{len(extents)} values",
                    remedy=f"Set `{parameter}`",
                )
            if bound is not None and min(values) < bound:
                raise self.problem(
                    f"A value of `{parameter}` is too small",
                    found=tuple(values),
                    allowed=f"at least {bound}",
                    remedy=f"Set `{parameter}`",
                )


# Pooling --------------------------------------------------------------------------------------------------------------


class PoolingType(enum.Enum):
    """TensorRT's `PoolingType`."""

    MAX = "max"
    AVERAGE = "average"
    MAX_AVERAGE_BLEND = "max_average_blend"


@layer_kind("pooling")
class Pooling(WindowLayer):
    """The maximum, the average, or `(1 - blend_factor) * maximum + blend_factor * average` of each window.

    If the output extent is rounded up, a window that would start beyond the input and its leading padding is omitted,
    as in ONNX; elements that this rounding adds after the trailing padding are never counted in an average.

    Attributes:
        pooling_type: the pooling operation.
        window_size_nd: one extent per spatial axis.
        pre_padding, post_padding: padding before and after each spatial axis. Default: 0. Padding is never selected as
            a maximum.
        blend_factor: the weight of the average in MAX_AVERAGE_BLEND.
        average_count_excludes_padding: whether an average is divided by the number of elements inside the input (True)
            or by the size of the window (False).
        dilation_nd: distance between the elements of a window. Default: 1. Not supported by TensorRT: host only.
        returns_indices: whether a second output, INT64, contains the index of each maximum in the flattened input. Not
            supported by TensorRT: host only.
        column_major_indices: whether the last spatial axis varies slowest in those indices.

    Source: TensorRT `IPoolingLayer`; ONNX `MaxPool`, `AveragePool`.
    """

    pooling_type: PoolingType
    window_size_nd: tuple[int, ...] = attrs.field(converter=ints)
    blend_factor: float = 0.0
    average_count_excludes_padding: bool = True
    returns_indices: bool = False
    column_major_indices: bool = False

    @property
    def window_name(self) -> str:
        """The parameter that holds the window."""
        return "window_size_nd"

    @property
    def output_count(self) -> int:
        """Number of outputs: 1, or 2 with indices."""
        return 2 if self.returns_indices else 1

    @property
    def is_host_only(self) -> bool:
        """Whether it uses dilation or indices, which TensorRT lacks."""
        return self.returns_indices or any(dilation != 1 for dilation in self.dilation_nd)

    @property
    def may_hold_only_padding(self) -> bool:
        """Whether a window may lie in the padding alone: its maximum is minus infinity, and its average may be NaN.

        Without dilation no window does whose padding is smaller. Dilated windows are not looked at any closer.
        """
        pads = zip(self.window_size_nd, self.pre_padding, self.post_padding, strict=True)
        return any(max(pre, post) >= window for window, pre, post in pads) or any(one != 1 for one in self.dilation_nd)

    def output_extents(self, spatial: Sequence[int]) -> tuple[int, ...]:
        """Return the output extent of each spatial axis; -1 if the input's is dynamic."""
        outputs = []
        for extent, window, stride, dilation, pre, post in self.axes(spatial):
            output = output_extent(self.padding_mode, extent, window, stride, dilation, pre, post)
            is_rounded_up = self.padding_mode is PaddingMode.EXPLICIT_ROUND_UP and extent >= 0
            if is_rounded_up and output and (output - 1) * stride >= extent + pre:
                output -= 1
            outputs.append(output)
        return tuple(outputs)

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """Return `[N, C, *spatial]`, in the input's type, and the indices if requested."""
        x = self.required(inputs, 0)
        self.check_window(x.rank)
        if self.returns_indices and self.pooling_type is not PoolingType.MAX:
            raise self.problem(
                "Only maximum pooling supports indices",
                found=self.pooling_type.name,
                allowed="MAX",
                remedy="Set `pooling_type` to MAX, or `returns_indices` to False",
            )
        spatial = self.checked_extents(x.shape, "The window must not be larger than the padded input")
        output = TensorSpec((*x.shape[:2], *spatial), x.dtype)
        return [output, TensorSpec(output.shape, DataType.INT64)] if self.returns_indices else [output]


class AddPooling:
    """The builder method of poolings."""

    def add_pooling_nd(
        self: LayerOwner,
        input: Tensor,
        type: PoolingType,
        window_size: Sequence[int],
        *,
        returns_indices: bool = False,
    ) -> Pooling:
        """Add a pooling layer; TensorRT's `add_pooling_nd`. `returns_indices` adds a second output (host only)."""
        layer = Pooling(pooling_type=type, window_size_nd=tuple(window_size), returns_indices=returns_indices)
        return self.add_layer(layer, [input], is_finished=False)
