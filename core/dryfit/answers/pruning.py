"""Weights pruned by magnitude to the pattern whose zeros a device skips: what trtexec calls `--sparsity=force`.

Only layers are pruned of which the device would skip the zeros; others would lose accuracy for nothing. Weights that
several layers share stay shared, so they are pruned where all of their readers gain, and else left as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from dryfit.answers.weight_readers import WeightReader, weight_readers
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.placement.target_variant import TargetVariant
from dryfit.builder.sparse_weights import network_sparsity
from dryfit.building import designed
from dryfit.network.copying import copy_network
from dryfit.network.network import Network
from dryfit.network.weights_role import NamedWeights, set_weights
from dryfit.quantization.sparse_pattern import SparsePattern
from dryfit.short_text import count_text

Array = np.ndarray[Any, Any]

ACCURACY = (
    "Pruned weights compute something else: measure the accuracy, and train the model again with the zeros held, "
    "before the gain counts"
)


@attrs.frozen(eq=False)
class PrunedWeights:
    """Weights of which some became 0.

    Attributes:
        name: as the network names them; the initializer's in an ONNX model.
        layers: names of the layers that compute with them.
        before: as they were; not written to.
        after: as they are now; quantized ones have their zero point where they were pruned.
        zeroed: how many were other than 0, and are 0 now.
        energy_kept: what is left of the sum of their squares, 0 to 1.
    """

    name: str
    layers: Sequence[str]
    before: Array
    after: Array
    zeroed: int
    energy_kept: float


@attrs.frozen
class LeftWeights:
    """Weights that could have been pruned and were not.

    Attributes:
        name: as the network names them; "" where they are no constant.
        layers: names of the layers that would have gained.
        reason: in words.
    """

    name: str
    layers: Sequence[str]
    reason: str


@attrs.frozen(eq=False)
class Pruning:
    """What is pruned in a network. Weights that have the pattern already are in neither list.

    Attributes:
        pruned: by weights, in the order of the network.
        left: that would have gained, and why not.
        already: names of eligible layers whose weights have the pattern.
    """

    pruned: Sequence[PrunedWeights]
    left: Sequence[LeftWeights]
    already: Sequence[str]

    def __str__(self) -> str:
        if not self.pruned:
            reason = "all that would gain is sparse already" if self.already else "no layer would gain"
            return f"nothing was pruned, because {'weights were left' if self.left else reason}"
        layers = sum(len(one.layers) for one in self.pruned)
        zeroed, total = (sum(one.zeroed for one in self.pruned), sum(one.after.size for one in self.pruned))
        return f"{zeroed:,} of {total:,} weights of {count_text(layers, 'layer')} were made 0 in a copy"

    def apply(self, network: Network) -> None:
        """Give the layers of a network, or of a copy of it, the pruned weights. No array is written to."""
        names = {one.name: one for one in self.pruned}
        own = network.named_weights()
        for weights in own:
            if weights.name in names:
                for layer, role in weights.places:
                    set_weights(layer, role, names[weights.name].after)
        network.set_weights_names({name: one.after for name, one in names.items()})


def plan_pruning(network: Network, config: BuilderConfig) -> Pruning:
    """What pruning by magnitude would change in a network. Changes nothing.

    Raises:
        DryfitError: the network cannot be assessed; what `dryfit.building.assess` raises.
    """
    design = designed(network, config, f"Looking for weights to prune in {network.name}")
    default = TargetVariant.chosen(config, config.default_device_type)
    patterns: dict[str, SparsePattern] = {}
    already = []
    for one in network_sparsity(design, default):
        target = default.target if one.asked == default.device else design.variants[one.asked or ""].target
        if not one.is_eligible or target.sparsity is None:
            continue
        if one.has_pattern:
            already.append(one.layer)
        else:
            patterns[design.canonical.rewrites.origin(one.layer)] = target.sparsity.pattern
    return _planned(network, patterns, already)


def pruned_network(network: Network, config: BuilderConfig) -> tuple[Network, Pruning]:
    """A copy of a network with pruned weights, and what was pruned. The network, and its arrays, stay as they are.

    Raises:
        DryfitError: what `plan_pruning` raises.

    Example:
        >>> sparse, pruning = pruned_network(network, config)
        >>> [(one.name, one.zeroed) for one in pruning.pruned]
        [('conv1.weight', 18432)]
    """
    pruning = plan_pruning(network, config)
    copy = copy_network(network)
    copy.set_weights_names({one.name: one.values for one in network.named_weights()})
    pruning.apply(copy)
    return copy, pruning


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
            left.append(LeftWeights(weights.name, layers, f"{shared} read them too, and would gain nothing"))
            continue
        results = [_pruned(weights, one, patterns[one.layer]) for one in gaining]
        if any(not np.array_equal(results[0].after, one.after) for one in results[1:]):
            reason = "their readers quantize them differently, so that other values are the largest"
            left.append(LeftWeights(weights.name, layers, reason))
        elif results[0].zeroed:
            pruned.append(attrs.evolve(results[0], layers=layers))
    missing = [LeftWeights("", [name], "they are computed, no constant") for name in patterns if name not in found]
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
