"""Groups of tensors that share one dynamic range, because layers between them only move, join or pick values.

A concatenation in INT8 copies bytes where all its inputs and its output have one scale, and a pooling compares them;
the DLA demands it. The range of a group is that of a tensor whose values cover those of the others. For a concatenation
that is the output, whose histogram is exactly the union of its inputs'; the largest of the ranges that were found for
its inputs one by one would be wider than what was asked for. A reshape covers its input and is covered by it, so that
what an average reads decides for the average and for every reshape of it. Where no single tensor covers the others, the
widest range of those that nothing covers serves, so that none of them is clipped to the range of another.

Source: TensorRT's published caches: concatenations and maxima have the scale of the output, averages that of the input
(`res5c_relu`, the average pooling after it and its squeeze in the caches of ResNet-50). NVIDIA's MLPerf inference 0.5
calibration note: operations that do not change the range hand the output's on to their inputs. The widest of several is
our choice.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterator, Mapping, Sequence

from dryfit.attrs_classes import frozen
from dryfit.network.copying import copy_network, with_network_types
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.activation import Activation, ActivationType
from dryfit.network.layers.generators import Fill, FillOperation
from dryfit.network.layers.resize import InterpolationMode, Resize
from dryfit.network.layers.slice import SampleMode, Slice
from dryfit.network.layers.window_layer import Pooling, PoolingType
from dryfit.network.network import Network
from dryfit.network.tensor import Array, Tensor
from dryfit.quantization.histogram import Histogram
from dryfit.quantization.integer_inputs import integer_inputs
from dryfit.reference.executor import needed_layers
from dryfit.reference.registry import evaluate


@frozen
class SharingGroup:
    """Tensors that share a range.

    Attributes:
        tensors: names, in the order of the network; at least two.
        deciding: those whose values cover the values of all others, the one that covers the most first; at least one,
            and none covers another. The widest of their ranges is the group's.
        rule: the kinds of layers that join them, in words.
    """

    tensors: Sequence[str]
    deciding: Sequence[str]
    rule: str


@frozen
class Covering:
    """What one layer says of the values of its tensors.

    Attributes:
        covered: names of tensors whose values are among those of `covering`.
        covering: name of the tensor.
        is_exact: whether `covering` has no other values, so that its range follows from those of all `covered`.
        rule: the kind of layer, in words.
        is_same: whether both have the same values, so that `covered` covers `covering` too.
    """

    covered: Sequence[str]
    covering: str
    is_exact: bool
    rule: str
    is_same: bool = False


def coverings(network: Network) -> Iterator[Covering]:
    """What the layers of a network say of the values of tensors, in the order of the network."""
    for layer in network.layers:
        found = covering_of(layer)
        if found is not None:
            yield found


def sharing_groups(network: Network) -> list[SharingGroup]:
    """The groups, in the order of the network; no tensor is in two."""
    found = list(coverings(network))
    order = {tensor.name: index for index, tensor in enumerate(network.tensors)}
    members = _joined(found)
    groups = []
    for names in members:
        inside = [one for one in found if one.covering in names]
        rules = list(dict.fromkeys(one.rule for one in inside))
        tensors = sorted(names, key=order.__getitem__)
        groups.append(SharingGroup(tensors, _deciding(tensors, inside), ", ".join(rules)))
    return sorted(groups, key=lambda group: order[group.tensors[0]])


def covering_of(layer: Layer) -> Covering | None:
    """What a layer says of the values of its tensors; None where it computes values of its own."""
    source = layer.inputs[0] if layer.inputs else None
    if source is None or not layer.outputs or not _is_data(layer.outputs[0]) or not _is_data(source):
        return None
    x, y = source.name, layer.outputs[0].name
    if layer.only_moves_values:
        return Covering([x], y, True, "movement", is_same=True)
    if layer.kind == "concatenation":
        inputs = layer.connected_inputs
        # A constant has values of its own, and no scale.
        names = [tensor.name for tensor in inputs if _is_data(tensor)]
        return Covering(names, y, len(names) == len(inputs), "concatenation")
    if isinstance(layer, Pooling):
        if layer.pooling_type is PoolingType.MAX:
            return Covering([x], y, True, "maximum pooling")
        return Covering([y], x, False, "average pooling")
    return Covering([y], x, False, layer.kind) if _picks(layer) else None


def _picks(layer: Layer) -> bool:
    """Whether a layer gives values of its first input, some perhaps several times, and no others but zeros."""
    if isinstance(layer, Slice):
        return (
            layer.mode is not SampleMode.FILL or len(layer.inputs) <= _FILL_VALUE or layer.inputs[_FILL_VALUE] is None
        )
    if isinstance(layer, Resize):
        return layer.resize_mode is InterpolationMode.NEAREST
    return layer.kind in ("gather", "padding")


_FILL_VALUE = 4
"""The input of a slice that says what stands outside."""


def _is_data(tensor: Tensor) -> bool:
    """Whether a tensor has values that a scale could serve."""
    return tensor.dtype.is_floating_point and not tensor.is_constant


def _joined(found: Sequence[Covering]) -> list[set[str]]:
    """Names of tensors in sets that coverings connect."""
    home: dict[str, set[str]] = {}
    for one in found:
        names = {one.covering, *one.covered}
        sets = {id(home[name]): home[name] for name in names if name in home}
        # The smaller sets move into the largest, so that each tensor moves few times.
        largest = max(sets.values(), key=len, default=set[str]())
        for other in sets.values():
            if other is not largest:
                largest |= other
                home.update(dict.fromkeys(other, largest))
        largest |= names
        home.update(dict.fromkeys(names, largest))
    return [one for one in {id(members): members for members in home.values()}.values() if len(one) > 1]


def _deciding(tensors: Sequence[str], found: Sequence[Covering]) -> list[str]:
    """The tensors that only their equals cover, the one that covers the most first; of equals the last."""
    covered_by: Mapping[str, list[str]] = {name: [] for name in tensors}
    for one in found:
        covered_by[one.covering].extend(one.covered)
        for name in one.covered if one.is_same else ():
            covered_by[name].append(one.covering)
    # A tensor that an earlier start has reached is covered by that one, or has its values. Starts that reach an earlier
    # start take its place.
    reached_by: dict[str, set[str]] = {}
    seen: set[str] = set()
    for name in reversed(tensors):
        if name in seen:
            continue
        reached = _reached(name, covered_by)
        reached_by = {other: values for other, values in reached_by.items() if other not in reached}
        reached_by[name] = reached
        seen |= reached
    return sorted(reached_by, key=lambda name: (-len(reached_by[name]), -tensors.index(name)))


def _reached(start: str, covered_by: Mapping[str, Sequence[str]]) -> set[str]:
    """The tensors whose values are among those of a tensor, itself included."""
    reached, waiting = {start}, [start]
    while waiting:
        for name in covered_by[waiting.pop()]:
            if name not in reached:
                reached.add(name)
                waiting.append(name)
    return reached


# Tensors that imply others --------------------------------------------------------------------------------------------


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


@frozen
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
