"""Pooling by the p-norm of each window."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dryfit.network.layer import Inputs
from dryfit.network.layer_plugin import Array, Fields, LayerPlugin, PluginField
from dryfit.network.layers.pooling import Pooling, PoolingType
from dryfit.network.layers.window_layer import PaddingMode
from dryfit.network.tensor import TensorSpec
from dryfit.reference.registry import compute_type


class LpPooling(LayerPlugin):
    """`(sum of |x|^p over the window)^(1 / p)`; what lies outside the input counts as 0.

    Fields: `p`, and of the window `kernel`, `strides`, `dilations`, `before`, `after`, one value a spatial axis, and
    `padding_mode`. Source: ONNX `LpPool`.
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
            raise ValueError(f"p is an integer from 1 on, not {fields['p']}")
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


PLUGIN = LpPooling()
