"""Pooling by the p-norm of each window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dryfit.network.layer import Inputs
from dryfit.network.layers.plugin import Fields
from dryfit.network.layers.pooling import Pooling, PoolingType
from dryfit.network.layers.spatial_window import PaddingMode
from dryfit.network.tensor import TensorSpec
from dryfit.reference.registry import compute_type

Array = np.ndarray[Any, Any]


class LpPooling:
    """`(sum of |x|^p over the window)^(1 / p)`; what lies outside the input counts as 0.

    Fields: `p`, and of the window `kernel`, `strides`, `dilations`, `before`, `after`, one value a spatial axis, and
    `padding_mode`. Source: ONNX `LpPool`.
    """

    def output_specs(self, fields: Fields, inputs: Inputs) -> Sequence[TensorSpec]:
        """`[N, C, *spatial]` of the input's type, the extents of a pooling with this window."""
        return _window(fields).infer_outputs(inputs)[:1]

    def enqueue(self, fields: Fields, inputs: Sequence[Array | None]) -> list[Array]:
        """The norms, computed in FP32 at least."""
        x, window, p = np.asarray(inputs[0]), _window(fields), _number(fields["p"])
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


def _window(fields: Fields) -> Pooling:
    """A pooling with the same window, which knows extents and paddings."""
    return Pooling(
        pooling_type=PoolingType.AVERAGE,
        window_size_nd=_numbers(fields["kernel"]),
        stride_nd=_numbers(fields["strides"]),
        dilation_nd=_numbers(fields["dilations"]),
        pre_padding=_numbers(fields["before"]),
        post_padding=_numbers(fields["after"]),
        padding_mode=PaddingMode(fields["padding_mode"]),
    )


def _numbers(value: object) -> tuple[int, ...]:
    if not isinstance(value, tuple):
        raise ValueError(f"one integer a spatial axis is expected, not {value!r}")  # noqa: TRY004  the protocol's error
    return tuple(int(element) for element in value)


def _number(value: object) -> int:
    if not isinstance(value, int) or value < 1:
        raise ValueError(f"p is an integer from 1 on, not {value!r}")
    return value


PLUGIN = LpPooling()
