"""Which tensors of a network calibration looks at, and which it knows without looking.

Some are the same whatever it is shown. The histogram of others follows exactly from that of another tensor: a reshape
or transpose gives the values that it takes, a ReLU those above zero, a concatenation those of all its inputs.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterator, Mapping, Sequence

import attrs

from dryfit.network.copying import copy_network, with_network_types
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.activation import Activation, ActivationType
from dryfit.network.layers.generators import Fill, FillOperation
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor
from dryfit.quantization.collector import Array
from dryfit.quantization.histogram import Histogram
from dryfit.quantization.integer_inputs import integer_inputs
from dryfit.reference.executor import needed_layers
from dryfit.reference.registry import evaluate


def floating_point_network(network: Network) -> Network:
    """A copy in which nothing is in INT8 that has no scale of its own: what calibration runs.

    Types that were asked for are forgotten, and an INT8 input that may stand for real numbers is FLOAT.
    """
    copy = copy_network(with_network_types(network))
    for layer in copy.layers:
        layer.precision = None
        layer.output_types.clear()
    for name in integer_inputs(network):
        copy.tensor(name).dtype = DataType.FLOAT
    copy.refresh_shapes()
    return copy


def observed_tensors(network: Network) -> list[Tensor]:
    """The floating-point tensors that outputs need and that depend on what is fed, in the order of execution."""
    fed = _fed(network)
    computed = [tensor for layer in needed_layers(network) if layer.name in fed for tensor in layer.outputs]
    return [tensor for tensor in (*network.inputs, *computed) if tensor.dtype.is_floating_point]


def constant_tensors(network: Network) -> Iterator[tuple[str, Array]]:
    """Name and value of the floating-point tensors that outputs need and that nothing fed can change.

    They are no samples: their ranges follow from the network alone, however many samples there are.
    """
    fed = _fed(network)
    values: dict[str, Array] = {}
    for layer in needed_layers(network):
        if layer.name in fed:
            continue
        inputs = [None if tensor is None else values[tensor.name] for tensor in layer.inputs]
        for tensor, value in zip(layer.outputs, evaluate(layer, inputs), strict=True):
            values[tensor.name] = value
            if tensor.dtype.is_floating_point:
                yield tensor.name, value


def _fed(network: Network) -> set[str]:
    """Names of the layers whose results depend on the network's inputs, or on chance."""
    fed: set[str] = set()
    for layer in network.layers:
        sources = layer.connected_inputs
        is_fed = any(tensor.producer is None or tensor.producer.name in fed for tensor in sources)
        if is_fed or _is_random(layer):
            fed.add(layer.name)
    return fed


def _is_random(layer: Layer) -> bool:
    return layer.kind == "plugin" or (isinstance(layer, Fill) and layer.operation is not FillOperation.LINSPACE)


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
