"""Channels behind an activation divided into pieces, each of which has all codes for its part of the range.

A tensor x = clip(y, 0, h) is the sum of clip(y, 0, h/2) and clip(y - h/2, 0, h/2). The convolution that gives y
computes both from one kernel and two biases, and the one that reads x adds them up in its sums of products: its weights
appear twice. This is exact in real arithmetic, also at padding, since zero is divided into zeros. In INT8, a piece has
half the range and so half the step, and of the two pieces only one is rounded: the other one is at an end of its range,
which is a code. The noise of the tensor falls by 6 dB with two pieces and by 12 dB with four. It costs
multiply-accumulates in INT8, and needs neither a zero point nor FP16, also on a device without bounds below zero.

The last piece of a ReLU, x = clip(y, 0, h/2) + relu(y - h/2), has no bound either: INT8 ends at the range h of the
tensor, as it did before, and FP32 computes the same for all inputs.

A depthwise convolution that reads pieces becomes one with groups of four channels, of which most weights are zero. In
TensorRT, groups in INT8 have a multiple of four channels (IConvolutionLayer, setNbGroups). A convolution with groups
that gives pieces is repeated for each, and a concatenation joins them: then it stays depthwise. So is one before a
ReLU, whose pieces have different activations.

Source: Zhao et al., Improving Neural Network Quantization without Retraining using Outlier Channel Splitting (ICML
2019), halves the values of a channel that is duplicated; dividing its range, which activations keep, is our choice.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

import attrs
import numpy as np
from onnx import ModelProto, NodeProto

from dryfit.answers.tuning.intervals import clip_bounds
from dryfit.attrs_classes import frozen
from dryfit.network.tensor import Array
from dryfit.onnx.editing.model_graph import ModelGraph, attribute, node_name
from dryfit.onnx.editing.parts import clip_node
from dryfit.onnx.external_data import ExternalData

MOST_PIECES = 8
"""Our choice: eight pieces bring 18 dB, and what is left of a tensor's noise then matters no more."""
BLOCK = 4
"""Channels of a group where a depthwise convolution reads pieces."""


@frozen
class Site:
    """A tensor whose channels can be divided.

    Attributes:
        producer: name of the convolution before the activation.
        activation: name of the activation that gives the tensor.
        readers: names of the convolutions that read it, and how many times as many multiply-accumulates each has to
            do as soon as there are pieces, besides those of the pieces.
    """

    producer: str
    activation: str
    readers: Mapping[str, int]

    def factors(self, pieces: int) -> dict[str, int]:
        """Return how many times as many multiply-accumulates each convolution has to do with so many pieces."""
        if pieces == 1:
            return {}
        return {self.producer: pieces, **{name: pieces * more for name, more in self.readers.items()}}


@frozen(eq=False)
class Splitting:
    """A model with divided channels.

    Attributes:
        model: the new model.
        ranges: end of the range of each tensor that holds pieces, by name.
        origins: name of each new layer to the one that it is a part of.
        likenesses: name of each new tensor before an activation to the one that it is like.
    """

    model: ModelProto
    ranges: dict[str, float] = attrs.field(factory=dict)
    origins: dict[str, str] = attrs.field(factory=dict)
    likenesses: dict[str, str] = attrs.field(factory=dict)


def divisible_tensors(model: ModelProto, external: ExternalData, ends: Mapping[str, float]) -> dict[str, Site]:
    """Return the tensors that `split` divides, by name.

    Args:
        model: the model.
        external: location of its external data.
        ends: end of the range by tensor name.
    """
    graph = ModelGraph(model, external)
    found = {}
    for node in graph.nodes:
        site = _site(graph, node, ends) if node.op_type in ("Clip", "Relu") else None
        if site is not None:
            found[node.output[0]] = site
    return found


def split(model: ModelProto, external: ExternalData, pieces: Mapping[str, int], ends: Mapping[str, float]) -> Splitting:
    """Divide the channels of tensors.

    Args:
        model: the model; it is not modified.
        external: location of its external data.
        pieces: number of pieces by name of one of `divisible_tensors`.
        ends: as there.
    """
    graph = ModelGraph(model, external)
    found = Splitting(model)
    for node in list(graph.nodes):
        name = node.output[0]
        if node.op_type in ("Clip", "Relu") and pieces.get(name, 1) > 1:
            _divide(graph, node, pieces[name], ends.get(name, math.inf), found)
    divided = graph.model()
    del divided.graph.value_info[:]  # the shapes there are those of before
    return attrs.evolve(found, model=divided)


def next_division(
    sites: Mapping[str, Site],
    noise: Mapping[str, Array],
    others: Array,
    macs: Mapping[str, int],
    pieces: Mapping[str, int],
    *,
    most_added: float,
    half: Collection[str] = (),
    most_half: float = 0.0,
) -> dict[str, int] | None:
    """Return the pieces with those of one tensor doubled: the one that brings most for its multiply-accumulates.

    Args:
        sites: tensors that can be divided, by name.
        noise: noise over signal that the rounding of each tensor causes, undivided: float64[outputs] by name.
        others: that of everything else.
        macs: multiply-accumulates of each layer of the undivided network.
        pieces: number of pieces so far, by name.
        most_added: largest share of multiply-accumulates that may be added.
        half: names of the layers in FP16.
        most_half: largest share of the multiply-accumulates of these.
    """

    def work(tried: Mapping[str, int]) -> tuple[float, float]:
        """Return the multiply-accumulates of all layers, and of those in FP16."""
        now = dict(macs)
        for name, count in tried.items():
            for layer, factor in sites[name].factors(count).items():
                now[layer] *= factor
        return float(sum(now.values())), float(sum(now[name] for name in half if name in now))

    before = float(sum(macs.values()))
    spent, _ = work(pieces)
    left = {name: one / pieces.get(name, 1) ** 2 for name, one in noise.items() if name in sites}
    total = others + sum(left.values(), np.zeros_like(others))
    weights = (total / total.max()) ** 2 if total.max(initial=0.0) > 0 else np.ones(len(total))
    best, most = None, 0.0
    for name, one in left.items():
        tried = {**pieces, name: 2 * pieces.get(name, 1)}
        all_macs, in_half = work(tried)
        if tried[name] > MOST_PIECES or all_macs > (1 + most_added) * before or in_half > most_half * all_macs:
            continue
        worth = float(one @ weights) / max(1.0, all_macs - spent)
        if worth > most:
            best, most = tried, worth
    return best


def _site(graph: ModelGraph, node: NodeProto, ends: Mapping[str, float]) -> Site | None:
    """Return how the output of an activation is divided; None if it cannot be."""
    producer, name = graph.producer(node.input[0]), node.output[0]
    low, high = clip_bounds(graph, node)
    has_range = math.isfinite(low) and low < min(high, ends.get(name, math.inf)) < math.inf
    if producer is None or graph.is_output(name) or not graph.has_one_use(node.input[0]) or not has_range:
        return None
    if not _has_weights(graph, producer) or graph.bias(producer) is None:
        return None
    readers = {}
    for reader in graph.consumers(name):
        is_read_once = list(reader.input).count(name) == 1 and reader.input[0] == name
        if not is_read_once or not _has_weights(graph, reader):
            return None
        is_plain = attribute(reader, "group", 1) == 1
        # A concatenation has the pieces one behind another, which groups would need side by side.
        if not is_plain and (not _is_depthwise(graph, reader) or _is_joined(producer, high)):
            return None
        readers[node_name(reader)] = 1 if is_plain else BLOCK
    return Site(node_name(producer), node_name(node), readers) if readers else None


def _has_weights(graph: ModelGraph, node: NodeProto) -> bool:
    return node.op_type == "Conv" and len(node.input) > 1 and graph.constant(node.input[1]) is not None


def _is_depthwise(graph: ModelGraph, node: NodeProto) -> bool:
    weights, groups = graph.constant(node.input[1]), attribute(node, "group", 1)
    return weights is not None and weights.shape[1] == 1 and groups % BLOCK == 0


def _is_joined(producer: NodeProto, high: float) -> bool:
    """Return whether a convolution is repeated for each piece, and a concatenation joins them."""
    return attribute(producer, "group", 1) != 1 or math.isinf(high)


def _divide(graph: ModelGraph, node: NodeProto, count: int, end: float, found: Splitting) -> None:
    """Divide the output of an activation, whose range has an end, and write down what is new."""
    producer, name = graph.producer(node.input[0]), node.output[0]
    assert producer is not None  # noqa: S101  a site has one
    low, high = clip_bounds(graph, node)
    lower, width = low / count, ((end if math.isinf(high) else high) - low) / count
    # A piece starts at a share of the lower bound, so that the pieces add up to the value and not to it less the bound.
    starts = lower - low - width * np.arange(count)
    weights, given = _weights(graph, producer), graph.bias(producer)
    bias = np.broadcast_to(np.zeros(1) if given is None else given.astype(np.float64), weights.shape[:1])
    found.ranges[name] = max(abs(lower), abs(lower + width))
    readers = graph.consumers(name)
    position = next(index for index, one in enumerate(graph.nodes) if one is node)
    like = node.input[0]
    first = clip_node(graph, like, lower + width, lower=lower, name=f"{node_name(node)}_first", output=name)
    first.name = node.name
    new = [first]
    if not _is_joined(producer, high):
        _set_weights(graph, producer, np.repeat(weights, count, axis=0))
        _set_bias(graph, producer, (np.repeat(bias, count) + np.tile(starts, len(bias))).astype(weights.dtype))
    else:
        parts = [name]
        for index, start in list(enumerate(starts))[1:]:
            copy = NodeProto()
            copy.CopyFrom(producer)
            copy.name = graph.fresh_name(f"{node_name(producer)}_piece_{index}")
            copy.output[0] = graph.fresh_name(f"{producer.output[0]}_piece_{index}")
            _set_bias(graph, copy, (bias + start).astype(weights.dtype))
            part = graph.fresh_name(f"{name}_piece_{index}")
            clip = clip_node(
                graph,
                copy.output[0],
                high if index == count - 1 and math.isinf(high) else lower + width,
                lower=lower,
                name=f"{node_name(node)}_piece_{index}",
                like=like,
                output=part,
            )
            found.origins.update({copy.name: node_name(producer), clip.name: node_name(node)})
            found.likenesses[copy.output[0]] = like
            parts.append(part)
            new += [copy, clip]
        _set_bias(graph, producer, (bias + starts[0]).astype(weights.dtype))
        joined = graph.new_node("Concat", parts, name=f"{node_name(node)}_joined", axis=1)
        found.origins[joined.name] = node_name(node)
        found.ranges.update(dict.fromkeys([*parts, joined.output[0]], found.ranges[name]))
        new.append(joined)
        for reader in readers:
            reader.input[0] = joined.output[0]
    for reader in readers:
        if attribute(reader, "group", 1) != 1:
            _read_in_blocks(graph, reader, count)
        elif len(new) > 1:  # one piece of all channels behind the other
            _set_weights(graph, reader, np.concatenate([_weights(graph, reader)] * count, axis=1))
        else:
            _set_weights(graph, reader, np.repeat(_weights(graph, reader), count, axis=1))
    graph.nodes[position : position + 1] = new
    graph.changed()


def _read_in_blocks(graph: ModelGraph, reader: NodeProto, count: int) -> None:
    """Let a depthwise convolution add up pieces: in groups of `BLOCK` channels, with zeros for those of others."""
    weights, groups = _weights(graph, reader), attribute(reader, "group", 1)
    wide = np.zeros((weights.shape[0], BLOCK * count, *weights.shape[2:]), weights.dtype)
    for row in range(weights.shape[0]):
        first = row * groups // weights.shape[0] % BLOCK * count
        wide[row, first : first + count] = weights[row]
    _set_weights(graph, reader, wide)
    for one in reader.attribute:
        if one.name == "group":
            one.i = groups // BLOCK


def _weights(graph: ModelGraph, node: NodeProto) -> Array:
    weights = graph.constant(node.input[1])
    assert weights is not None  # noqa: S101  a site has weights
    return weights


def _set_weights(graph: ModelGraph, node: NodeProto, weights: Array) -> None:
    node.input[1] = graph.add_constant(f"{node_name(node)}_weights_divided", weights)


def _set_bias(graph: ModelGraph, node: NodeProto, bias: Array) -> None:
    name = graph.add_constant(f"{node_name(node)}_bias_divided", bias)
    del node.input[2:]
    node.input.append(name)
