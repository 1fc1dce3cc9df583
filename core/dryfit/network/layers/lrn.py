"""Local response normalization across channels."""

from __future__ import annotations

from collections.abc import Sequence

from dryfit.network.layer import Inputs, Layer, LayerOwner, layer_kind
from dryfit.network.tensor import Tensor, TensorSpec


@layer_kind("lrn")
class Lrn(Layer):
    """`x / (k + alpha / window_size * sum of squares) ^ beta`, the sum over the channels around each channel.

    Attributes:
        window_size: channels summed: `(window_size - 1) // 2` before, `window_size // 2` after.
        alpha, beta, k: as in the formula.

    Source: TensorRT `ILRNLayer`; ONNX `LRN` (`bias` is k).
    """

    needs_real_numbers = True

    window_size: int
    alpha: float
    beta: float
    k: float

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """The input's shape and type."""
        x = self.required(inputs, 0)
        if x.rank < 2 or not (x.dtype.is_floating_point or x.dtype.is_quantized):
            raise self.problem(
                "The input has batch and channels, and floating-point or quantized elements",
                found=f"{x.dtype.name}{list(x.shape)}",
            )
        if self.window_size < 1:
            raise self.problem("The window has at least one channel", found=self.window_size)
        return [TensorSpec(x.shape, x.dtype)]


class AddLrn:
    """The builder method of local response normalizations."""

    def add_lrn(self: LayerOwner, input: Tensor, window: int, alpha: float, beta: float, k: float) -> Lrn:
        """Add a local response normalization; TensorRT's `add_lrn`."""
        return self.add_layer(Lrn(window_size=window, alpha=alpha, beta=beta, k=k), [input])
