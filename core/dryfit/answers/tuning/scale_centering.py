"""Centering by scale layers: what a device computes from 0 up is stored on both sides of zero.

A DLA has no activation with a bound below zero, so that the outputs of a ReLU have the codes 0 to 127 only. A scale
layer behind it that subtracts half of the range gives all 255 codes to what convolutions read, whose biases take the
shift back: the noise of the rounding falls by 6 dB. The scale layer runs in FP16, between the sums of the layer before
and the rounding, and has no multiply-accumulates. It costs a pass over the tensor. Other readers of the tensor, such as
convolutions with padding, whose zeros are zeros of the unshifted tensor, read it as it was.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from onnx import ModelProto, NodeProto

from dryfit.answers.tuning.centering import absorb_shift, has_weights, is_unpadded, with_rounded_weights
from dryfit.attrs_classes import frozen
from dryfit.network.tensor import Array
from dryfit.onnx.editing.model_graph import ModelGraph, attribute, node_name
from dryfit.onnx.external_data import ExternalData

LEAST_SAVING = 0.4
"""Share by which an INT8 step must become smaller. Our choice: less is not worth a layer."""


@frozen(eq=False)
class ScaleCentering:
    """A model with scale layers that center what convolutions read.

    Attributes:
        model: the new model.
        origin: what it computes the same as, in real arithmetic: the model, with rounded weights if they are.
        layers: names of the scale layers, which have to stay in FP16.
        ranges: end of the range by name of each shifted tensor: its smallest value is the code -127.
    """

    model: ModelProto
    origin: ModelProto
    layers: frozenset[str]
    ranges: Mapping[str, float]


def scalable_tensors(model: ModelProto, external: ExternalData) -> list[str]:
    """Return the tensors whose ends `center_by_scales` requires."""
    graph = ModelGraph(model, external)
    return list(dict.fromkeys(node.input[0] for node in graph.nodes if _absorbs(graph, node)))


def center_by_scales(
    model: ModelProto,
    external: ExternalData,
    lowest: Mapping[str, Array],
    highest: Mapping[str, Array],
    *,
    rounds: bool = False,
) -> ScaleCentering:
    """Put scale layers before the convolutions whose inputs are far from centered.

    Args:
        model: the model; it is not modified.
        external: location of its external data.
        lowest: name of each of `scalable_tensors` to the smallest value per channel, float[C].
        highest: the largest values, likewise.
        rounds: whether the weights of these convolutions are rounded to INT8 codes per output channel.
    """
    graph = ModelGraph(model, external)
    readers = {name: [one for one in graph.consumers(name) if _absorbs(graph, one)] for name in lowest}
    shifts = {}
    for name, absorbing in readers.items():
        low, high = float(np.min(lowest[name])), float(np.max(highest[name]))
        largest = max(abs(low), abs(high))
        if absorbing and (high - low) / 2 <= (1 - LEAST_SAVING) * largest:
            shifts[name] = (low + high) / 2, (high - low) / 2
    absorbing_ones = (reader for name in shifts for reader in readers[name])
    origin = with_rounded_weights(graph, absorbing_ones) if rounds else model
    layers, ranges = [], {}
    for name, (shift, end) in shifts.items():
        absorbing, producer = readers[name], graph.producer(name)
        assert producer is not None  # noqa: S101  a tensor that is computed
        weights = graph.constant(absorbing[0].input[1])
        assert weights is not None  # noqa: S101  it absorbs
        shape = graph.shape(name)
        assert shape is not None  # noqa: S101  it absorbs
        ones, zeros, means = (
            graph.add_constant(f"{name}_shift_{what}", np.full(shape[1], value, weights.dtype))
            for what, value in (("ones", 1.0), ("zeros", 0.0), ("means", shift))
        )
        node = graph.new_node(
            "BatchNormalization",
            [name, ones, zeros, means, ones],
            name=f"{name}_shift",
            output=graph.fresh_name(f"{name}_centered"),
            epsilon=0.0,
        )
        for reader in absorbing:
            absorb_shift(graph, reader, np.full(shape[1], shift))
            reader.input[0] = node.output[0]
        graph.insert_behind(producer, node)
        layers.append(node_name(node))
        ranges[node.output[0]] = end
    return ScaleCentering(graph.model(), origin, frozenset(layers), ranges)


def is_shift(graph: ModelGraph, node: NodeProto) -> bool:
    """Return whether a node is a scale layer that only subtracts a constant."""
    if node.op_type != "BatchNormalization" or len(node.output) > 1 or attribute(node, "training_mode", 0):
        return False
    factors, variances = (graph.constant(node.input[index]) for index in (1, 4))
    is_one = factors is not None and variances is not None and (factors == 1).all() and (variances == 1).all()
    return is_one and attribute(node, "epsilon", 1e-5) == 0


def _absorbs(graph: ModelGraph, node: NodeProto) -> bool:
    """Return whether a node is a convolution that takes a shift of its computed input back by its bias."""
    if not has_weights(graph, node) or not is_unpadded(node):
        return False
    producer, shape = graph.producer(node.input[0]), graph.shape(node.input[0])
    return (
        producer is not None
        and producer.op_type not in ("Conv", "BatchNormalization")
        and bool(shape and len(shape) > 2 and shape[1])
    )
