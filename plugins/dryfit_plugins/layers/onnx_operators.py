"""ONNX operators without a layer kind: Lp pooling, bits read as another type, determinants, unique elements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layer import Inputs
from dryfit.network.layer_plugin import Fields, LayerPlugin, PluginField
from dryfit.network.layers.window_layer import PaddingMode, Pooling, PoolingType
from dryfit.network.plugin_function import layer_plugin
from dryfit.network.tensor import Array, TensorSpec
from dryfit.reference.registry import compute_type


class LpPooling(LayerPlugin):
    """`(sum of |x|^p over the window)^(1 / p)`; elements outside the input count as 0.

    Fields: `p`, and of the window `kernel`, `strides`, `dilations`, `before`, `after`, one value per spatial axis,
    and `padding_mode`. Source: ONNX `LpPool`.
    """

    plugin_name = "LpPool"
    declared_fields = {
        "p": PluginField(int, default=2),
        **{name: PluginField(tuple[int, ...]) for name in ("kernel", "strides", "dilations", "before", "after")},
        "padding_mode": PluginField(str, default=PaddingMode.EXPLICIT_ROUND_DOWN.value),
    }

    def output_specs(self, fields: Fields, inputs: Inputs) -> Sequence[TensorSpec]:
        """`[N, C, *spatial]` of the input's type, the extents of a pooling with this window."""
        if fields["p"] < 1:
            raise ValueError(f"p must be an integer of at least 1 (found {fields['p']})")
        require_floating_point(inputs[0])
        return _window(fields).infer_outputs(inputs)[:1]

    def enqueue(self, fields: Fields, inputs: Sequence[Array | None]) -> list[Array]:
        """The norms, computed in FP32 at least."""
        x, window, p = np.asarray(inputs[0]), _window(fields), fields["p"]
        extents, spatial = window.output_extents(x.shape[2:]), x.shape[2:]
        powers = np.abs(x.astype(compute_type(x.dtype))) ** p
        total = np.zeros(x.shape[:2] + extents, powers.dtype)
        padding = [(0, 0), (0, 0)]
        for (pre, _), extent, output, kernel, stride, dilation in zip(
            window.paddings(spatial),
            spatial,
            extents,
            window.window_size_nd,
            window.stride_nd,
            window.dilation_nd,
            strict=True,
        ):
            reach = (output - 1) * stride + (kernel - 1) * dilation + 1
            padding.append((pre, max(reach - pre - extent, 0)))
        padded = np.pad(powers, padding)
        for place in np.ndindex(*window.window_size_nd):
            total += padded[
                (
                    slice(None),
                    slice(None),
                    *(
                        slice(k * d, k * d + (o - 1) * s + 1, s)
                        for k, d, o, s in zip(place, window.dilation_nd, extents, window.stride_nd, strict=True)
                    ),
                )
            ]
        return [(total ** (1 / p)).astype(x.dtype)]


def require_floating_point(x: TensorSpec | None) -> None:
    """Refuse what ONNX's operator does not take, rather than compute powers and weighted sums in an integer type.

    Raises:
        ValueError: the input has another type.
    """
    if x is not None and not x.dtype.is_floating_point:
        raise ValueError(f"input 0 must have a floating-point type (found {x.dtype.text}); dequantize or cast it first")


def _window(fields: Fields) -> Pooling:
    """A pooling with the same window, which knows extents and paddings."""
    return Pooling(
        pooling_type=PoolingType.AVERAGE,
        window_size_nd=fields["kernel"],
        stride_nd=fields["strides"],
        dilation_nd=fields["dilations"],
        pre_padding=fields["before"],
        post_padding=fields["after"],
        padding_mode=PaddingMode(fields["padding_mode"]),
    )


LP_POOLING = LpPooling()


class BitCast(LayerPlugin):
    """The same bits reinterpreted as another type of the same width. Field: `to_type`. Source: ONNX `BitCast`."""

    plugin_name = "BitCast"
    declared_fields = {"to_type": PluginField(str)}

    def output_specs(self, fields: Fields, inputs: Inputs) -> Sequence[TensorSpec]:
        """The input's shape, of the other type."""
        x, to_type = inputs[0], _to_type(fields)
        if x is None or x.dtype.bits != to_type.bits:
            found = "nothing" if x is None else f"{x.dtype.text} of {x.dtype.bits} bits"
            raise ValueError(f"to_type must have the input's width (found {to_type.bits} bits for {found})")
        return [TensorSpec(x.shape, to_type)]

    def enqueue(self, fields: Fields, inputs: Sequence[Array | None]) -> list[Array]:
        """The reinterpreted elements."""
        x, to_type = np.array(inputs[0], order="C"), _to_type(fields)
        if to_type.bits >= 8:
            return [x.view(to_type.numpy)]
        # NumPy keeps one narrow element a byte, and a signed one with its sign extended.
        codes = x.view(np.uint8) & np.uint8((1 << to_type.bits) - 1)
        if to_type.numpy_name.startswith("int"):
            sign = 1 << (to_type.bits - 1)
            return [((codes ^ np.uint8(sign)).astype(np.int8) - np.int8(sign)).astype(to_type.numpy)]
        return [codes.astype(to_type.numpy) if to_type.is_integer else codes.view(to_type.numpy)]


def _to_type(fields: Fields) -> DataType:
    return DataType.parse(str(fields["to_type"]))


BIT_CAST = BitCast()


def _without_matrix(x: TensorSpec) -> TensorSpec:
    """The input's shape without its last two axes."""
    if x.rank < 2 or not x.dtype.is_floating_point:
        raise ValueError("the input must be a floating-point tensor of rank 2 or more")
    rows, columns = x.shape[-2:]
    if rows != columns and -1 not in (rows, columns):
        raise ValueError(f"the matrix must be square (found {rows} x {columns})")
    return TensorSpec(x.shape[:-2], x.dtype)


@layer_plugin("Det", outputs=_without_matrix)
def determinant(x: Array) -> Array:
    """`det(x[..., n, n])` by LU decomposition, of the input's type; FP16 and BF16 are computed in FP32.

    Source: ONNX `Det`.
    """
    return np.asarray(np.linalg.det(x.astype(compute_type(x.dtype)))).astype(x.dtype)


DETERMINANT = determinant


class Unique(LayerPlugin):
    """(values, index of the first occurrence of each, index into the values of each element, count of each).

    Fields: `sorted` (1: ascending, 0: by first occurrence), `axis` (absent: the flattened input). How many values there
    are depends on the data. Source: ONNX `Unique`.
    """

    plugin_name = "Unique"
    declared_fields = {"sorted": PluginField(int, default=1), "axis": PluginField(int | None, default=None)}

    def output_specs(self, fields: Fields, inputs: Inputs) -> Sequence[TensorSpec]:
        """The input's shape with a dynamic extent along the axis, and three INT64 vectors."""
        x = inputs[0]
        if x is None:
            raise ValueError("the input is not connected")
        axis = _axis(fields, x.rank)
        inverse = -1 if not x.is_static else x.shape[axis] if axis is not None else int(np.prod(x.shape))
        shape = (-1,) if axis is None else tuple(-1 if i == axis else extent for i, extent in enumerate(x.shape))
        vector = TensorSpec((-1,), DataType.INT64)
        return [TensorSpec(shape, x.dtype), vector, TensorSpec((inverse,), DataType.INT64), vector]

    def enqueue(self, fields: Fields, inputs: Sequence[Array | None]) -> list[Array]:
        """The four outputs."""
        x = np.asarray(inputs[0])
        axis = _axis(fields, x.ndim)
        values, first, inverse, counts = np.unique(
            x, return_index=True, return_inverse=True, return_counts=True, axis=axis
        )
        inverse = inverse.reshape(-1)  # NumPy 2.0 gives it the input's rank
        if not fields["sorted"]:
            order = np.argsort(first)
            rank = np.empty_like(order)
            rank[order] = np.arange(order.size)
            values = np.take(values, order, axis=axis or 0)
            first, inverse, counts = first[order], rank[inverse], counts[order]
        return [values, first.astype(np.int64), inverse.astype(np.int64), counts.astype(np.int64)]


def _axis(fields: Fields, rank: int) -> int | None:
    axis: int | None = fields["axis"]
    if axis is None:
        return None
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis} is out of range for a tensor of rank {rank}")
    return axis % rank


UNIQUE = Unique()
