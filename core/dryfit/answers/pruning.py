"""Prune weights by magnitude to the pattern whose zeros a device skips, like trtexec's `--sparsity=force`.

A layer is pruned only if the device would skip its zeros; pruning others would lose accuracy for no gain. Weights
shared by several layers stay shared: they are pruned only if all of their readers gain.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

import attrs
import numpy as np

from dryfit.answers.json_data import Count, Share
from dryfit.attrs_classes import frozen
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.design import Design
from dryfit.builder.placement.target_variant import TargetVariant
from dryfit.builder.sparse_weights import network_sparsity
from dryfit.building import designed
from dryfit.json_names import json_names
from dryfit.network.copying import copy_network
from dryfit.network.layer import Layer
from dryfit.network.layers.kernel_layer import KernelLayer
from dryfit.network.layers.movement import Identity
from dryfit.network.layers.quantization import Dequantize
from dryfit.network.network import Network
from dryfit.network.tensor import Array, Tensor
from dryfit.network.weights_role import NamedWeights, WeightsRole, set_weights
from dryfit.quantization.int8_weights import SparsePattern
from dryfit.reference.quantization import spread
from dryfit.short_text import count_text

ACCURACY = (
    "Pruning changes results: measure the accuracy, and retrain the model with the zeros fixed, before relying on "
    "the gain"
)


@frozen(eq=False)
class PrunedWeights:
    """Weights that were partly set to 0.

    Attributes:
        name: name of the weights in the network; in an ONNX model, of the initializer.
        layers: names of the layers that use the weights.
        before: values before pruning; not modified.
        after: values after pruning; pruned elements of quantized weights equal the zero point.
        zeroed: number of elements that were changed to 0.
        energy_kept: share of the sum of squares that is left, 0 to 1.
    """

    JSON_NAMES: ClassVar[Mapping[str, str]] = json_names("name layers size zeroed energy_kept")

    name: str
    layers: Sequence[str]
    before: Array
    after: Array
    zeroed: Count
    energy_kept: Share

    @property
    def size(self) -> Count:
        """Number of elements."""
        return self.after.size


@frozen
class LeftWeights:
    """Weights that could have been pruned but were not.

    Attributes:
        name: name of the weights in the network; "" if they are not constant.
        layers: names of the layers that would have gained.
        reason: why the weights were not changed.
    """

    name: str
    layers: Sequence[str]
    reason: str


@frozen(eq=False)
class Pruning:
    """The pruning of a network. Weights that already have the pattern are in neither list.

    Attributes:
        pruned: weights that are pruned, in network order.
        left: weights that would gain but are not pruned, with the reason.
        already: names of eligible layers whose weights already have the pattern.
    """

    pruned: Sequence[PrunedWeights]
    left: Sequence[LeftWeights]
    already: Sequence[str]

    def __str__(self) -> str:
        if not self.pruned:
            reason = "all layers that would gain are sparse already" if self.already else "no layer would gain"
            return f"nothing was pruned, because {'weights were left' if self.left else reason}"
        layers = sum(len(one.layers) for one in self.pruned)
        zeroed, total = (sum(one.zeroed for one in self.pruned), sum(one.after.size for one in self.pruned))
        return f"{zeroed:,} of {total:,} weights of {count_text(layers, 'layer')} were set to 0 in a copy"

    def apply(self, network: Network) -> None:
        """Set the pruned weights in the network, or in a copy of it. No existing array is modified."""
        names = {one.name: one for one in self.pruned}
        own = network.named_weights()
        for weights in own:
            if weights.name in names:
                for layer, role in weights.places:
                    set_weights(layer, role, names[weights.name].after)
        network.set_weights_names({name: one.after for name, one in names.items()})


def plan_pruning(network: Network, config: BuilderConfig) -> Pruning:
    """Return the changes that pruning by magnitude would make to a network, without making them.

    Raises:
        DryfitError: The network cannot be assessed; see `dryfit.building.assess`.
    """
    design = designed(network, config, f"Looking for weights to prune in {network.name}")
    return planned_pruning(network, design, TargetVariant.chosen(config, config.default_device_type))


def planned_pruning(network: Network, design: Design, default: TargetVariant) -> Pruning:
    """Return the changes that pruning would make to a network with known design.

    Args:
        network: the user's network.
        design: decisions about the network.
        default: target whose rules apply to layers on devices that do not skip zeros.
    """
    patterns: dict[str, SparsePattern] = {}
    already = []
    for one in network_sparsity(design, default):
        target = default.target if one.asked == default.device else design.variants[one.asked or ""].target
        if not one.is_eligible or target.sparsity is None:
            continue
        if one.has_pattern:
            already.append(one.layer)
        else:
            patterns[design.canonical.found.rewrites.origin(one.layer)] = target.sparsity.pattern
    return _planned(network, patterns, already)


def pruned_copy(network: Network, pruning: Pruning) -> Network:
    """Return a copy of a network with pruned weights."""
    copy = copy_network(network)
    keep_weights_names(network, copy)
    pruning.apply(copy)
    return copy


def keep_weights_names(network: Network, copy: Network) -> None:
    """Name the weights of a copy as in the original network."""
    copy.set_weights_names({one.name: one.values for one in network.named_weights()})


def _planned(network: Network, patterns: Mapping[str, SparsePattern], already: Sequence[str]) -> Pruning:
    pruned: list[PrunedWeights] = []
    left: list[LeftWeights] = []
    found: set[str] = set()
    for weights in network.named_weights():
        readers = weight_readers(weights)
        gaining = [one for one in readers if one.is_weights and one.layer in patterns]
        if not gaining:
            continue
        layers = list(dict.fromkeys(one.layer for one in gaining))
        found.update(layers)
        others = [one.layer for one in readers if one not in gaining]
        if others:
            shared = ", ".join(map(repr, dict.fromkeys(others)))
            left.append(LeftWeights(weights.name, layers, f"also read by {shared}, which would not benefit"))
            continue
        results = [_pruned(weights, one, patterns[one.layer]) for one in gaining]
        if any(not np.array_equal(results[0].after, one.after) for one in results[1:]):
            reason = "their readers quantize them differently, so that other values are the largest"
            left.append(LeftWeights(weights.name, layers, reason))
        elif results[0].zeroed:
            pruned.append(attrs.evolve(results[0], layers=layers))
    missing = [
        LeftWeights("", [name], "they are computed at run time, not constant") for name in patterns if name not in found
    ]
    return Pruning(pruned, [*left, *missing], already)


def _pruned(weights: NamedWeights, reader: WeightReader, pattern: SparsePattern) -> PrunedWeights:
    before = weights.values.reshape(reader.shape)
    real = reader.real(before)
    after = pattern.pruned(before, np.abs(real), reader.zero)
    still = reader.real(after)
    total = float(np.square(real, dtype=np.float64).sum())
    return PrunedWeights(
        name=weights.name,
        layers=[reader.layer],
        before=before,
        after=np.ascontiguousarray(after),
        zeroed=int(np.count_nonzero(real) - np.count_nonzero(still)),
        energy_kept=float(np.square(still, dtype=np.float64).sum()) / total if total else 1.0,
    )


# Readers of weights, also behind quantizations ------------------------------------------------------------------------


@frozen(eq=False)
class WeightReader:
    """A use of weights by a layer.

    Attributes:
        layer: name of the layer that uses the weights; "" if they are a network output.
        is_weights: whether the weights are the kernel of a convolution or deconvolution, rather than a bias or data.
        shape: shape in which the layer reads the weights.
        scale: scale of quantized weights, broadcastable to their shape; 1 for floating-point weights.
        zero: stored value that represents 0 in quantized weights; broadcastable to their shape.
    """

    layer: str
    is_weights: bool
    shape: tuple[int, ...]
    scale: Array | float = 1.0
    zero: Array | int = 0

    def real(self, values: Array) -> Array:
        """Return the real values of the stored values: float32, or float64 for float64."""
        wide = np.float64 if values.dtype == np.float64 else np.float32
        real: Array = (values.astype(wide) - np.asarray(self.zero, wide)) * np.asarray(self.scale, wide)
        return real


def weight_readers(weights: NamedWeights) -> list[WeightReader]:
    """Return every use of weights, in order of their places."""
    found: list[WeightReader] = []
    for layer, role in weights.places:
        if role is WeightsRole.CONSTANT:
            found += _behind(layer.outputs[0], WeightReader("", is_weights=False, shape=layer.outputs[0].shape))
        else:
            is_kernel = role is WeightsRole.KERNEL and isinstance(layer, KernelLayer)
            found.append(WeightReader(layer.name, is_weights=is_kernel, shape=_kernel_shape(layer, role, weights)))
    return found


def _kernel_shape(layer: Layer, role: WeightsRole, weights: NamedWeights) -> tuple[int, ...]:
    kernel: Array | None = getattr(layer, "kernel", None) if role is WeightsRole.KERNEL else None
    shape: tuple[int, ...] = weights.values.shape if kernel is None else kernel.shape
    return shape


def _behind(tensor: Tensor, reader: WeightReader) -> Iterator[WeightReader]:
    if tensor.is_network_output:
        yield reader
    for layer, index in tensor.consumers:
        if index == 0 and (layer.is_conversion or isinstance(layer, Identity)):
            yield from _behind(layer.outputs[0], _through(layer, reader))
        else:
            yield attrs.evolve(reader, layer=layer.name, is_weights=isinstance(layer, KernelLayer) and index == 1)


def _through(layer: Layer, reader: WeightReader) -> WeightReader:
    """Return the reader behind a layer: stored integers are interpreted by the first dequantization."""
    if not isinstance(layer, Dequantize) or layer.inputs[0] is None or _is_quantized_here(layer):
        return reader
    scale, zero = (_value(layer, index) for index in (1, 2))
    return attrs.evolve(reader, scale=1.0 if scale is None else scale, zero=0 if zero is None else zero)


def _is_quantized_here(layer: Dequantize) -> bool:
    """Return whether a quantize layer creates the integers, so that the network stores floating-point weights."""
    source = layer.inputs[0]
    return source is not None and source.producer is not None and source.producer.kind == "quantize"


def _value(layer: Dequantize, index: int) -> Array | None:
    """Return the constant scale or zero point of a dequantization, broadcastable; None if there is none."""
    tensor = layer.inputs[index] if len(layer.inputs) > index else None
    source = layer.inputs[0]
    if tensor is None or source is None or tensor.spec.value is None:
        return None
    return spread(layer, tensor.spec.value, source.shape, layer.axis, layer.block_shape)
