"""Padding: zeros around the last two axes, or a crop of them."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from dryfit.network.layer import Inputs, Layer, LayerOwner, layer_kind
from dryfit.network.layers.window_layer import ints
from dryfit.network.tensor import Tensor, TensorSpec


@layer_kind("padding")
class Padding(Layer):
    """Zeros before and after the last two axes; a negative count crops.

    Attributes:
        pre_padding_nd, post_padding_nd: one count for each of the last two axes.

    Source: TensorRT `IPaddingLayer`.
    """

    pre_padding_nd: tuple[int, ...] = attrs.field(converter=ints)
    post_padding_nd: tuple[int, ...] = attrs.field(converter=ints)

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """The input's shape with other last two extents, and its type."""
        x = self.required(inputs, 0)
        if x.rank < 2 or len(self.pre_padding_nd) != 2 or len(self.post_padding_nd) != 2:
            raise self.problem(
                "The last two axes are padded",
                found=f"pre {self.pre_padding_nd}, post {self.post_padding_nd} for an input of {x.shape}",
                allowed="2 values each, and rank 2 or more",
            )
        extents = tuple(
            -1 if extent < 0 else extent + pre + post
            for extent, pre, post in zip(x.shape[-2:], self.pre_padding_nd, self.post_padding_nd, strict=True)
        )
        for extent, pre, post in zip(x.shape[-2:], self.pre_padding_nd, self.post_padding_nd, strict=True):
            if extent >= 0 and (extent + pre + post < 1 or extent + min(pre, 0) < 0 or extent + min(post, 0) < 0):
                raise self.problem(
                    "The crop leaves nothing",
                    found=f"pre {self.pre_padding_nd}, post {self.post_padding_nd} for an input of {x.shape}",
                )
        return [TensorSpec((*x.shape[:-2], *extents), x.dtype)]


class AddPadding:
    """The builder method of paddings."""

    def add_padding_nd(
        self: LayerOwner, input: Tensor, pre_padding: Sequence[int], post_padding: Sequence[int]
    ) -> Padding:
        """Pad or crop the last two axes; TensorRT's `add_padding_nd`."""
        layer = Padding(pre_padding_nd=tuple(pre_padding), post_padding_nd=tuple(post_padding))
        return self.add_layer(layer, [input])
