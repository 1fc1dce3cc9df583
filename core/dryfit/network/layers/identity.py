"""Identity: the input again, under another name."""

from __future__ import annotations

from collections.abc import Sequence

from dryfit.network.layer import Inputs, Layer, LayerOwner, layer_kind
from dryfit.network.tensor import Tensor, TensorSpec


@layer_kind("identity")
class Identity(Layer):
    """The input, unchanged. For another type use a cast.

    Source: TensorRT `IIdentityLayer`; ONNX `Identity`.
    """

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """The input's shape, type and value."""
        x = self.required(inputs, 0)
        return [TensorSpec(x.shape, x.dtype, x.value)]


class AddIdentity:
    """The builder method of identities."""

    def add_identity(self: LayerOwner, input: Tensor) -> Identity:
        """Add an identity; TensorRT's `add_identity`."""
        return self.add_layer(Identity(), [input])
