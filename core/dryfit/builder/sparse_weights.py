"""Which layers of a placed network have the zeros of their weights skipped by their device, and why others have not.

That is what a device gains in time, and it looks at weights as it stores them: the integers of a quantized layer, after
what is folded into them. Here everything is computed with all weights, zeros too: the results are the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import attrs
import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.builder.placement.assign import Assignment
from dryfit.builder.placement.target_variant import Specs, TargetVariant
from dryfit.builder.precision.chosen import Precisions
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.convolution import FullyConnected
from dryfit.network.layers.kernel_layer import KernelLayer
from dryfit.network.layers.quantization import Dequantize
from dryfit.network.network import Network
from dryfit.quantization.int8_weights import constant_weights, folded, folded_scale, int8_weights
from dryfit.reference.quantization import spread
from dryfit.target.question import Question
from dryfit.target.verdict import Verdict

Array = np.ndarray[Any, Any]


class PlacedNetwork(Protocol):
    """What is asked of a design: a network, where its layers run, and in what types."""

    @property
    def network(self) -> Network:
        """As it was placed."""
        ...

    @property
    def assignment(self) -> Assignment:
        """The devices."""
        ...

    @property
    def variants(self) -> Mapping[str, TargetVariant]:
        """Device name to target."""
        ...

    @property
    def precisions(self) -> Precisions:
        """Computation types."""
        ...

    @property
    def specs(self) -> Specs:
        """Tensor name to spec."""
        ...


@frozen
class LayerSparsity:
    """One layer with weights that are known.

    Attributes:
        layer: its name.
        kind: of the layer.
        onnx_nodes: that it came from.
        device: where it runs; "" where it was refused.
        macs: multiply-accumulates of one run, zeros counted.
        asked: the device whose rules were asked; None where neither the layer's own nor the default one skips zeros.
        verdict: what that device says: a violation means that zeros are not skipped; None where none was asked.
        is_eligible: whether other weights of the same shape would have their zeros skipped there.
        has_pattern: whether the weights, as they are stored, have the pattern that the device asks for; None where that
            does not matter.
    """

    layer: str
    kind: str
    onnx_nodes: Sequence[str]
    device: str
    macs: int
    asked: str | None = None
    verdict: Verdict | None = None
    is_eligible: bool = False
    has_pattern: bool | None = None

    @property
    def is_sparse(self) -> bool:
        """Whether the zeros are skipped where the layer runs."""
        return self.is_eligible and self.has_pattern is True and self.device == self.asked


def network_sparsity(design: PlacedNetwork, default: TargetVariant | None = None) -> list[LayerSparsity]:
    """What there is to say of each layer with known weights, in the order of the network.

    Args:
        design: where layers run, and in what types.
        default: is asked about layers on devices that skip no zeros, as if they ran on it; None: nobody is.
    """
    found = []
    for layer in design.network.layers:
        weights = stored_weights(layer, design.precisions)
        if weights is not None and layer.name in design.assignment.devices:
            found.append(_of_layer(design, layer, weights, default))
    return found


def sparse_layers(design: PlacedNetwork) -> frozenset[str]:
    """Names of the layers whose zeros are skipped where they run."""
    return frozenset(one.layer for one in network_sparsity(design) if one.is_sparse)


def _of_layer(design: PlacedNetwork, layer: Layer, weights: Array, default: TargetVariant | None) -> LayerSparsity:
    device = design.assignment.devices[layer.name]
    variant = design.variants[device]
    if default is not None and variant.target.sparsity is None:
        variant = default
    sparsity = variant.target.sparsity
    plain = LayerSparsity(
        layer=layer.name,
        kind=layer.kind,
        onnx_nodes=layer.onnx_nodes,
        device=device,
        macs=layer.multiply_accumulates(design.specs),
    )
    if sparsity is None:
        return plain
    question = _question(design, layer, weights, variant)
    verdict = sparsity.verdict(question)
    return attrs.evolve(
        plain,
        asked=variant.device,
        verdict=verdict,
        is_eligible=sparsity.can_become_sparse(verdict),
        has_pattern=sparsity.has_pattern(question),
    )


def _question(design: PlacedNetwork, layer: Layer, weights: Array, variant: TargetVariant) -> Question:
    platform = variant.platform
    computed = design.precisions.layers.get(layer.name, layer.outputs[0].dtype)
    return Question(
        layer=layer,
        precision=DataType.INT8 if is_explicit_int8(layer) else computed,
        device=variant.device,
        platform=platform.name,
        family=platform.family,
        software=variant.software,
        cores=platform.cores,
        specs=design.specs,
        weights=weights,
    )


def stored_weights(layer: Layer, precisions: Precisions) -> Array | None:
    """The weights of a layer of a network that is built; None where they are computed, or it has none.

    Returns:
        int8 for a layer that is computed in INT8 by the ranges of its tensors. Quantized weights of an explicitly
        quantized network, less their zero point, in a type that holds the difference. Else the real weights.
    """
    dequantize = weight_dequantize(layer)
    if dequantize is not None:
        return _integers(dequantize)
    weights = constant_weights(layer)
    if weights is None or not precisions.is_int8(layer):
        return weights
    scale = folded_scale(layer, precisions.real_tensors)
    if scale is not None and isinstance(layer, (KernelLayer, FullyConnected)):
        weights, _ = folded(layer, weights, scale)
    return int8_weights(layer, weights, precisions.weight_rounding[layer.name]).values


def weight_dequantize(layer: Layer) -> Dequantize | None:
    """The layer that dequantizes the second input of another one; None where none does."""
    tensor = layer.inputs[1] if len(layer.inputs) > 1 else None
    producer = None if tensor is None else tensor.producer
    return producer if isinstance(producer, Dequantize) else None


def is_explicit_int8(layer: Layer) -> bool:
    """Whether a layer reads both its data and its weights from INT8 through dequantize layers."""
    data = layer.inputs[0].producer if layer.inputs and layer.inputs[0] is not None else None
    sources = [one.inputs[0] for one in (data, weight_dequantize(layer)) if isinstance(one, Dequantize)]
    return len(sources) == 2 and all(one is not None and one.dtype is DataType.INT8 for one in sources)


def _integers(dequantize: Dequantize) -> Array | None:
    quantized = dequantize.inputs[0]
    values = None if quantized is None else quantized.spec.value
    zero_point = dequantize.inputs[2] if len(dequantize.inputs) > 2 else None
    if values is None or zero_point is None:
        return values
    zeros = zero_point.spec.value
    if zeros is None:
        return None
    return values.astype(np.int16) - spread(
        dequantize, zeros, values.shape, dequantize.axis, dequantize.block_shape
    ).astype(np.int16)
