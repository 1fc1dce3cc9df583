"""Weights with one scale for all channels."""

from __future__ import annotations

from collections.abc import Iterator

from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.fully_connected import FullyConnected
from dryfit.network.layers.kernel_layer import KernelLayer
from dryfit.quantization.lint.network_view import NetworkView, scale_of
from dryfit.quantization.lint.rule import Hit, lint_rule


@lint_rule(
    "qdq.weights.per_tensor",
    text="INT8 weights have one scale an output channel",
    remedy="Quantize the weights with one scale an output channel",
)
def weights_per_tensor(view: NetworkView) -> Iterator[Hit]:
    """INT8 weights of several output channels that share one scale."""
    for layer in view.weighted:
        weights = view.weights(layer)
        scale = None if weights is None else scale_of(weights.dequantize)
        if weights is None or scale is None or scale.size != 1:
            continue
        codes, channels = weights.dequantize.inputs[0], _output_channels(layer)
        if codes is not None and codes.dtype is DataType.INT8 and channels > 1:
            yield layer, weights.tensor, f"{channels} output channels share one scale"


def _output_channels(layer: Layer) -> int:
    """Channels of the output; of a product of matrices its columns."""
    if isinstance(layer, KernelLayer):
        return layer.num_output_maps
    return layer.num_output_channels if isinstance(layer, FullyConnected) else layer.outputs[0].shape[-1]
