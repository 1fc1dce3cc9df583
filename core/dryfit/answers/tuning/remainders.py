"""What INT8 rounds off a tensor, stored as a second INT8 tensor that the convolutions behind it read too.

A tensor x is rounded to y, a multiple of its step. The remainder x - y lies within half a step of zero, so that INT8
rounds it with a step 254 times as fine. A convolution that reads x computes W x = W y + W (x - y): one from the same
weights for each, and a sum. So the noise of the rounding falls by 48 dB, as with 16 bits.

In the model, y is what a convolution of one weight -1 per channel gives in INT8, but for the sign, and two sums in FP16
compute the remainder and add up the results. In real arithmetic y is x and the remainder zero, so that FP32 computes
the same to the last bit, for all inputs and at padding. It costs the reader's multiply-accumulates a second time in
INT8, one more per value, and passes in FP16 without multiply-accumulates. A tensor that a convolution gives without an
activation gets a scale layer by one in FP16, which hands on its sums before they are rounded.

Source: sums of products of 16-bit numbers in parts of 8 bits are textbook arithmetic; that a device without 16-bit
integers is made to compute them this way is our choice.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

import attrs
import numpy as np
from onnx import ModelProto, NodeProto, helper

from dryfit.attrs_classes import frozen
from dryfit.network.tensor import Array
from dryfit.onnx.editing.model_graph import ModelGraph, node_name
from dryfit.onnx.editing.parts import scale_node
from dryfit.onnx.external_data import ExternalData

STEPS_PER_RANGE = 254
"""INT8 steps between the ends of a range; half a step, what a remainder is at most, is as much less than its end."""
_WEIGHTED = ("Conv", "ConvTranspose")
_ACTIVATIONS = ("Relu", "Clip", "LeakyRelu", "Sigmoid", "Tanh")


@frozen
class RemainderSite:
    """A tensor whose remainder can be stored.

    Attributes:
        readers: names of the convolutions in INT8 that read it.
        half: names of the layers around it that have to be in FP16; they have no multiply-accumulates.
        values: number of values of the tensor: each costs a multiply-accumulate.
    """

    readers: frozenset[str]
    half: frozenset[str]
    values: int

    def added(self, macs: Mapping[str, int]) -> int:
        """Return the multiply-accumulates that the remainder adds to those of each layer."""
        return self.values + sum(macs.get(name, 0) for name in self.readers)


@frozen(eq=False)
class WithRemainders:
    """A model with stored remainders.

    Attributes:
        model: the new model.
        half: names of the layers that have to be in FP16.
        ranges: end of the range of each tensor whose remainder is stored, of its rounded values and of the remainder.
        origins: name of each new convolution that reads a remainder to the one whose weights it has.
        likenesses: name of each new tensor of sums to the one that it is a part of.
    """

    model: ModelProto
    half: set[str] = attrs.field(factory=set)
    ranges: dict[str, float] = attrs.field(factory=dict)
    origins: dict[str, str] = attrs.field(factory=dict)
    likenesses: dict[str, str] = attrs.field(factory=dict)


def remainder_sites(
    model: ModelProto,
    external: ExternalData,
    macs: Mapping[str, int],
    rounded: Mapping[str, Collection[str]],
    half: Collection[str] = (),
) -> dict[str, RemainderSite]:
    """Return the tensors whose remainders `store_remainders` can store, by name.

    Args:
        model: the model.
        external: location of its external data.
        macs: multiply-accumulates of each layer.
        rounded: names of the layers in INT8 that read each tensor that they store in INT8.
        half: names of the layers that are in FP16 already.
    """
    graph = ModelGraph(model, external)
    found = {}
    for name, layers in rounded.items():
        site = _site(graph, name, macs, layers, half)
        if site is not None:
            found[name] = site
    return found


def store_remainders(
    model: ModelProto,
    external: ExternalData,
    sites: Mapping[str, RemainderSite],
    ends: Mapping[str, float],
) -> WithRemainders:
    """Store the remainders of tensors.

    Args:
        model: the model; it is not modified.
        external: location of its external data.
        sites: those of `remainder_sites` whose remainders are stored.
        ends: end of the range by tensor name.
    """
    graph = ModelGraph(model, external)
    found = WithRemainders(model)
    for name, site in sites.items():
        readers = [node for node in graph.consumers(name) if node_name(node) in site.readers]
        found.half.update(site.half)
        remainder = _add_remainder(graph, name, ends[name], found)
        for reader in readers:
            _add_reader(graph, reader, remainder, found)
        graph.changed()
    whole = graph.model()
    del whole.graph.value_info[:]  # names there are those of before
    return attrs.evolve(found, model=whole)


def remainders_by_worth(
    sites: Mapping[str, RemainderSite],
    readers: Mapping[str, frozenset[str]],
    noise: Mapping[str, Array],
    others: Array,
    macs: Mapping[str, int],
    half: Collection[str],
    most_added: float,
) -> list[str]:
    """Return tensors in the order in which their remainders bring most for what they add, as many as are affordable.

    Args:
        sites: tensors whose remainders can be stored, by name.
        readers: names of the layers that read each tensor that is rounded.
        noise: noise over signal that the rounding of each tensor causes: float64[outputs] by name.
        others: that of everything else.
        macs: multiply-accumulates of each layer.
        half: names of the layers in FP16.
        most_added: most multiply-accumulates that may be added.
    """
    left = dict(noise)
    waiting = {name: site for name, site in sites.items() if name in left}
    in_half = frozenset(half)
    found: list[str] = []

    def gone(name: str) -> list[str]:
        """Return the tensors that are not rounded any more, or whose rounding is taken back."""
        after = in_half | waiting[name].half
        return [one for one in left if one == name or (readers.get(one) and readers[one] <= after)]

    while True:
        waiting = {name: site for name, site in waiting.items() if name in left and site.added(macs) <= most_added}
        total = others + sum(left.values(), np.zeros_like(others))
        weights = (total / total.max()) ** 2 if total.max(initial=0.0) > 0 else np.ones(len(total))
        worths = {
            name: sum(float(left[one] @ weights) for one in gone(name)) / max(1, site.added(macs))
            for name, site in waiting.items()
        }
        best = max(worths, key=lambda name: worths[name], default=None)
        if best is None or worths[best] <= 0:
            return found
        found.append(best)
        most_added -= waiting[best].added(macs)
        vanished, in_half = gone(best), in_half | waiting[best].half
        for name in vanished:
            del left[name]


def _site(
    graph: ModelGraph, name: str, macs: Mapping[str, int], layers: Collection[str], half: Collection[str]
) -> RemainderSite | None:
    """Return how the remainder of a tensor is stored; None if it cannot be, or another layer rounds the tensor too."""
    shape, producer = graph.shape_behind_batch(name, rank=4), graph.producer(name)
    consumers = [node for node in graph.consumers(name) if node_name(node) not in half]
    readers = [node for node in consumers if node_name(node) in layers and _can_read_twice(graph, node, name)]
    others = [node for node in consumers if node.op_type == "Add"]
    unrounded = [node for node in consumers if node_name(node) not in layers and macs.get(node_name(node), 0)]
    is_known = len(readers) + len(others) + len(unrounded) == len(consumers)
    if shape is None or graph.is_output(name) or not readers or not is_known:
        return None
    around = set(map(node_name, others))
    if producer is not None and producer.op_type not in _WEIGHTED:
        if macs.get(node_name(producer), 0):
            return None
        around.add(node_name(producer))
    for node in consumers:
        behind = graph.consumers(node.output[0])
        if graph.has_one_use(node.output[0]) and behind[0].op_type in _ACTIVATIONS:
            around.add(node_name(behind[0]))
    return RemainderSite(frozenset(map(node_name, readers)), frozenset(around), math.prod(shape))


def _can_read_twice(graph: ModelGraph, node: NodeProto, name: str) -> bool:
    """Return whether a node is a convolution with known weights that reads a tensor as its data only."""
    is_convolution = node.op_type in _WEIGHTED and node.input[0] == name and list(node.input).count(name) == 1
    return is_convolution and graph.constant(node.input[1]) is not None and graph.bias(node) is not None


def _add_remainder(graph: ModelGraph, name: str, end: float, found: WithRemainders) -> NodeProto:
    """Add what computes the remainder of a tensor, and return the last node of it."""
    producer = graph.producer(name)
    if producer is not None and producer.op_type in _WEIGHTED:
        producer.name, producer.output[0] = node_name(producer), graph.fresh_name(f"{name}_sums")
        found.likenesses[producer.output[0]] = found.likenesses.get(name, name)
        graph.changed()
        scale = scale_node(graph, producer.output[0], 1.0, 0.0, name=f"{name}_as_it_is", output=name)
        found.half.add(scale.name)
        graph.insert_behind(producer, scale)
        producer = scale
    (channels, *_) = graph.shape_behind_batch(name, rank=4) or (0,)
    dtype = helper.tensor_dtype_to_np_dtype(graph.data_type(name))
    minus_one = graph.add_constant(f"{name}_minus_one", np.full((channels, 1, 1, 1), -1, dtype))
    rounded = graph.new_node("Conv", [name, minus_one], name=f"{name}_rounded", group=channels)
    remainder = graph.new_node("Add", [name, rounded.output[0]], name=f"{name}_remainder")
    found.half.add(remainder.name)
    found.ranges.update({name: end, rounded.output[0]: end, remainder.output[0]: end / STEPS_PER_RANGE})
    if producer is None:
        graph.insert(remainder)
        graph.insert(rounded)
    else:
        graph.insert_behind(producer, rounded)
        graph.insert_behind(rounded, remainder)
    return remainder


def _add_reader(graph: ModelGraph, reader: NodeProto, remainder: NodeProto, found: WithRemainders) -> None:
    """Let a convolution read a remainder too."""
    output = reader.output[0]
    reader.name, reader.output[0] = node_name(reader), graph.fresh_name(f"{output}_of_rounded")
    other = graph.new_node(reader.op_type, [remainder.output[0], reader.input[1]], name=f"{reader.name}_of_remainder")
    other.attribute.extend(reader.attribute)
    parts = [reader.output[0], other.output[0]]
    total = graph.new_node("Add", parts, name=f"{reader.name}_total", output=output)
    graph.insert_behind(reader, other)
    graph.insert_behind(other, total)
    found.half.add(total.name)
    found.origins[other.name] = reader.name
    found.likenesses.update(dict.fromkeys(parts, found.likenesses.get(output, output)))
