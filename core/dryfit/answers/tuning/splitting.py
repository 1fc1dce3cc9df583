"""Channels behind an activation divided into pieces, each of which has all codes for its part of the range.

A tensor x = clip(y, 0, h) is the sum of clip(y, 0, h/2) and clip(y - h/2, 0, h/2). The convolution that gives y
computes both from one kernel and two biases, and the one that reads x adds them up in its sums of products: its weights
appear twice. This is exact in real arithmetic, also at padding, since zero is divided into zeros. In INT8, a piece has
half the range and so half the step, and of the two pieces only one is rounded: the other one is at an end of its range,
which is a code. The noise of the tensor falls by 6 dB with two pieces and by 12 dB with four. It costs
multiply-accumulates in INT8, and needs neither a zero point nor FP16, also on a device without bounds below zero.

The last piece of a ReLU, x = clip(y, 0, h/2) + relu(y - h/2), has no bound either: INT8 ends at the range h of the
tensor, as it did before, and FP32 computes the same for all inputs.

A tensor without an activation is divided around zero: x = min(x, 0) + max(x, 0), each shifted by a quarter of the
range to have codes on both sides. A scale layer that shifts what a ReLU gives shifts each piece by its share.

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
from dryfit.answers.tuning.scale_centering import is_shift
from dryfit.attrs_classes import frozen
from dryfit.network.tensor import Array
from dryfit.onnx.editing.model_graph import ModelGraph, attribute, node_name
from dryfit.onnx.editing.parts import clip_node
from dryfit.onnx.external_data import ExternalData

MOST_PIECES = 8
"""Our choice: eight pieces bring 18 dB, and what is left of a tensor's noise then matters no more."""
LARGEST_BOUND = 127.0
"""Largest upper bound of a Clip on a DLA; the least is 1. Powers of two as factors change no code."""
BLOCK = 4
"""Channels of a group where a depthwise convolution reads pieces."""


@frozen
class Site:
    """A tensor whose channels can be divided.

    Attributes:
        producer: name of the convolution before the activation, or of the sum with a constant.
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
        site = _site(graph, node, ends) if node.op_type in ("Clip", "Relu", "Conv") else None
        if site is not None:
            found[_rounded_name(graph, node)] = site
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
        count = pieces.get(_rounded_name(graph, node), 1) if node.op_type in ("Clip", "Relu", "Conv") else 1
        if count > 1:
            end = _end(graph, node, ends)
            activation = _limited(graph, node, found) if node.op_type == "Conv" else node
            end *= _fit_bounds(graph, activation, count, end, ends, found)
            _divide(graph, activation, count, end, found)
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
    """Return how the output of an activation, or of a convolution that has none, is divided; None if it cannot be."""
    name = node.output[0]
    producer: NodeProto | None = node
    low, high = -math.inf, math.inf
    if node.op_type == "Conv":
        is_whole = _has_weights(graph, node) and attribute(node, "group", 1) == 1
    else:
        producer, (low, high) = graph.producer(node.input[0]), clip_bounds(graph, node)
        is_whole = math.isfinite(low) and graph.has_one_use(node.input[0])
    end = _end(graph, node, ends)
    if producer is None or graph.is_output(name) or not is_whole or not max(low, -end) < min(high, end) < math.inf:
        return None
    if not _adds_constant(graph, producer) and (not _has_weights(graph, producer) or graph.bias(producer) is None):
        return None
    readers = {}
    read = _rounded_name(graph, node)
    for reader in graph.consumers(read):
        is_read_once = list(reader.input).count(read) == 1 and reader.input[0] == read
        if not is_read_once or not _has_weights(graph, reader):
            return None
        is_plain = attribute(reader, "group", 1) == 1
        # A concatenation has the pieces one behind another, which groups would need side by side.
        if not is_plain and (not _is_depthwise(graph, reader) or _is_joined(producer, high)):
            return None
        readers[node_name(reader)] = 1 if is_plain else BLOCK
    return Site(node_name(producer), node_name(node), readers) if readers else None


def _limited(graph: ModelGraph, node: NodeProto, found: Splitting) -> NodeProto:
    """Put an activation without bounds behind a convolution, which `_divide` can divide."""
    name = node.output[0]
    activation = graph.compute_behind(node, "Clip", name=f"{node_name(node)}_limit", inside=f"{name}_whole")
    found.likenesses[node.output[0]] = name
    return activation


def _shift(graph: ModelGraph, node: NodeProto) -> NodeProto | None:
    """Return the scale layer that shifts the output of an activation before it is rounded, for all who read it."""
    name = node.output[0]
    readers = graph.consumers(name)
    if not graph.has_one_use(name) or not is_shift(graph, readers[0]) or graph.is_output(readers[0].output[0]):
        return None
    return readers[0]


def _rounded_name(graph: ModelGraph, node: NodeProto) -> str:
    """Return the tensor that is rounded: an activation's output, or that of the scale layer that shifts it."""
    return str((_shift(graph, node) or node).output[0])


def _end(graph: ModelGraph, node: NodeProto, ends: Mapping[str, float]) -> float:
    """Return the end of the range of an activation's output; a shifted one has as much on both sides of zero."""
    scale = _shift(graph, node)
    return ends.get(node.output[0], math.inf) if scale is None else 2 * ends.get(scale.output[0], math.inf)


def _has_weights(graph: ModelGraph, node: NodeProto) -> bool:
    return node.op_type == "Conv" and len(node.input) > 1 and graph.constant(node.input[1]) is not None


def _is_depthwise(graph: ModelGraph, node: NodeProto) -> bool:
    weights, groups = graph.constant(node.input[1]), attribute(node, "group", 1)
    return weights is not None and weights.shape[1] == 1 and groups % BLOCK == 0


def _adds_constant(graph: ModelGraph, node: NodeProto) -> bool:
    """Return whether a node is a sum with a constant, as centering adds for borders."""
    return node.op_type == "Add" and graph.constant(node.input[0]) is None and graph.constant(node.input[1]) is not None


def _is_joined(producer: NodeProto, high: float) -> bool:
    """Return whether what gives a tensor is repeated for each piece, and a concatenation joins them."""
    return producer.op_type == "Add" or attribute(producer, "group", 1) != 1 or math.isinf(high)


def _fit_bounds(
    graph: ModelGraph, node: NodeProto, count: int, end: float, ends: Mapping[str, float], found: Splitting
) -> float:
    """Scale what a ReLU gives so that pieces end at a bound that a DLA supports, and return the factor."""
    producer, (low, high) = graph.producer(node.input[0]), clip_bounds(graph, node)
    assert producer is not None  # noqa: S101  a site has one
    if producer.op_type != "Conv" or low != 0.0 or not math.isinf(high):
        return 1.0
    power = math.ceil(max(0.0, math.log2(end / count / LARGEST_BOUND))) + math.floor(min(0.0, math.log2(end / count)))
    if not power:
        return 1.0
    factor = 2.0**-power
    weights, scale = _weights(graph, producer), _shift(graph, node)
    _set_weights(graph, producer, (weights * factor).astype(weights.dtype))
    _set_bias(graph, producer, (_bias(graph, producer) * factor).astype(weights.dtype))
    if scale is not None:
        means = (_constant(graph, scale.input[3]) * factor).astype(weights.dtype)
        scale.input[3] = graph.add_constant(f"{scale.input[3]}_fitted", means)
    for reader in graph.consumers(_rounded_name(graph, node)):
        _set_weights(graph, reader, (_weights(graph, reader) / factor).astype(weights.dtype))
    if node.input[0] in ends:
        found.ranges[node.input[0]] = ends[node.input[0]] * factor
    return factor


def _divide(graph: ModelGraph, node: NodeProto, count: int, end: float, found: Splitting) -> None:
    """Divide the output of an activation, whose range has an end, and write down what is new."""
    producer, name = graph.producer(node.input[0]), node.output[0]
    assert producer is not None  # noqa: S101  a site has one
    low, high = clip_bounds(graph, node)
    least, most = max(low, -end), end if math.isinf(high) else high
    lower, width = least / count, (most - least) / count
    # A piece starts at a share of the lower bound, so that the pieces add up to the value and not to it less the bound.
    starts = lower - least - width * np.arange(count)
    weights, bias = _constant(graph, producer.input[1]), _bias(graph, producer)
    found.ranges[name] = max(abs(lower), abs(lower + width))
    scale = _shift(graph, node)
    readers = graph.consumers(_rounded_name(graph, node))
    position = next(index for index, one in enumerate(graph.nodes) if one is node)
    like = node.input[0]
    first_lower = low if math.isinf(low) else lower
    first = clip_node(graph, like, lower + width, lower=first_lower, name=f"{node_name(node)}_first", output=name)
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
            found.origins.update({copy.name: node_name(producer), clip.name: node_name(scale or node)})
            found.likenesses[copy.output[0]] = found.likenesses.get(like, like)
            parts.append(part)
            new += [copy, clip]
        _set_bias(graph, producer, (bias + starts[0]).astype(weights.dtype))
        joined = graph.new_node("Concat", parts, name=f"{node_name(node)}_joined", axis=1)
        found.origins[joined.name] = node_name(scale or node)
        found.ranges.update(dict.fromkeys([*parts, joined.output[0]], found.ranges[name]))
        new.append(joined)
        for reader in readers if scale is None else [scale]:
            reader.input[0] = joined.output[0]
    if scale is not None:
        _divide_shift(graph, scale, count, is_joined=len(new) > 1)
        found.ranges[scale.output[0]] = width / 2
    for reader in readers:
        if attribute(reader, "group", 1) != 1:
            _read_in_blocks(graph, reader, count)
        elif len(new) > 1:  # one piece of all channels behind the other
            _set_weights(graph, reader, np.concatenate([_weights(graph, reader)] * count, axis=1))
        else:
            _set_weights(graph, reader, np.repeat(_weights(graph, reader), count, axis=1))
    graph.nodes[position : position + 1] = new
    graph.changed()


def _divide_shift(graph: ModelGraph, scale: NodeProto, count: int, *, is_joined: bool) -> None:
    """Let a scale layer shift pieces, each by its share."""
    repeat = np.tile if is_joined else np.repeat
    for index, share in ((1, 1), (2, 1), (3, 1 / count), (4, 1)):
        values = _constant(graph, scale.input[index])
        divided = (repeat(values, count) * share).astype(values.dtype)
        scale.input[index] = graph.add_constant(f"{scale.input[index]}_divided", divided)


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


def _bias(graph: ModelGraph, node: NodeProto) -> Array:
    """Return what a convolution adds to each channel, or a sum to each value."""
    if node.op_type == "Add":
        return _constant(graph, node.input[1]).astype(np.float64)
    given = graph.bias(node)
    return np.broadcast_to(np.zeros(1) if given is None else given.astype(np.float64), _weights(graph, node).shape[:1])


def _weights(graph: ModelGraph, node: NodeProto) -> Array:
    return _constant(graph, node.input[1])


def _constant(graph: ModelGraph, name: str) -> Array:
    values = graph.constant(name)
    assert values is not None  # noqa: S101  a site has weights, and constants that shift
    return values


def _set_weights(graph: ModelGraph, node: NodeProto, weights: Array) -> None:
    node.input[1] = graph.add_constant(f"{node_name(node)}_weights_divided", weights)


def _set_bias(graph: ModelGraph, node: NodeProto, bias: Array) -> None:
    name = graph.add_constant(f"{node_name(node)}_bias_divided", bias)
    del node.input[1 if node.op_type == "Add" else 2 :]
    node.input.append(name)
