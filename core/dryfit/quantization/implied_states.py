"""Histograms that follow exactly from those of other tensors, so that nobody needs to look at the values.

A reshape or transpose gives the values that it takes, a ReLU those above zero, a concatenation those of all its inputs.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping, Sequence

import attrs

from dryfit.network.layer import Layer
from dryfit.network.layers.activation import Activation, ActivationType
from dryfit.network.network import Network
from dryfit.quantization.histogram import Histogram
from dryfit.reference.executor import needed_layers


class Implication(enum.Enum):
    """What a tensor's values are, given others."""

    SAME = "the same values"
    RECTIFIED = "max(x, 0) of the values"
    UNION = "all values"


@attrs.frozen
class ImpliedState:
    """How the histogram of a tensor follows.

    Attributes:
        implication: what the tensor's values are.
        sources: of these tensors; some may be implied themselves.
    """

    implication: Implication
    sources: Sequence[str]


def implied_states(network: Network, observed: Collection[str]) -> dict[str, ImpliedState]:
    """Tensor to how its histogram follows, for those for which it does, in the order of execution.

    Args:
        network: what is calibrated.
        observed: names of the tensors whose histograms are asked for; only these imply others.
    """
    found: dict[str, ImpliedState] = {}
    for layer in needed_layers(network):
        implication = _implication(layer)
        count = None if implication is Implication.UNION else 1
        sources = [tensor for tensor in layer.inputs[:count] if tensor is not None]
        name = layer.outputs[0].name
        if implication is None or name not in observed or not {one.name for one in sources} <= set(observed):
            continue
        if all(one.dtype is layer.outputs[0].dtype for one in sources):
            found[name] = ImpliedState(implication, [one.name for one in sources])
    return found


def fill_implied(states: Mapping[str, ImpliedState], histograms: Mapping[str, Histogram]) -> None:
    """Give each implied tensor's histogram, which is replaced, the state that follows from the others."""
    for name, state in states.items():
        sources = [histograms[source] for source in state.sources]
        if state.implication is Implication.RECTIFIED:
            sources = [sources[0].rectified()]
        histograms[name].become_union(sources)


def _implication(layer: Layer) -> Implication | None:
    if layer.only_moves_values:
        return Implication.SAME
    if layer.kind == "concatenation":
        return Implication.UNION
    if isinstance(layer, Activation) and layer.activation_type is ActivationType.RELU:
        return Implication.RECTIFIED
    return None
