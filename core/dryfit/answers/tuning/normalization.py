"""What batch normalizations of an ONNX model say: of their outputs, mean and deviation of each channel are known.

A batch normalization behind a convolution is folded into it, as devices do, so that every step sees the weights that
are quantized. Its shift is then the mean of the convolution's output over the training data, and its scale the standard
deviation. Behind a ReLU or a Clip, the mean follows from the normal distribution. So what rounded weights add to the
mean of the next layer's sums is known without data.

Source: Nagel et al., Data-Free Quantization Through Weight Equalization and Bias Correction (ICCV 2019), section 4.2.1
and appendix C.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from statistics import NormalDist

import numpy as np
from onnx import ModelProto, NodeProto

from dryfit.answers.tuning.intervals import clip_bounds
from dryfit.answers.tuning.weights import Corrections
from dryfit.attrs_classes import frozen
from dryfit.network.tensor import Array
from dryfit.onnx.editing.model_graph import ModelGraph, attribute, node_name
from dryfit.onnx.external_data import ExternalData
from dryfit.quantization.int8_weights import rounded_by_output_channel

Statistics = Mapping[str, tuple[Array, Array]]
"""Mean and standard deviation of each channel by tensor name, float64[C]."""

_EPSILON = 1e-5
"""ONNX's default of BatchNormalization."""


@frozen(eq=False)
class Folding:
    """A model without batch normalizations behind convolutions.

    Attributes:
        model: the new model; the given one where there was nothing to fold.
        statistics: of the outputs of the convolutions that one was folded into.
    """

    model: ModelProto
    statistics: Statistics


def fold_batch_normalizations(model: ModelProto, external: ExternalData, kept: Collection[str] = ()) -> Folding:
    """Fold each batch normalization into the convolution before it, if nothing else reads that.

    Args:
        model: the model; it is not modified.
        external: location of its external data.
        kept: names of nodes that stay.
    """
    graph = ModelGraph(model, external)
    statistics: dict[str, tuple[Array, Array]] = {}
    for node in list(graph.nodes):
        if node.op_type != "BatchNormalization" or attribute(node, "training_mode", 0):
            continue
        convolution = graph.producer(node.input[0])
        if convolution is None or not {node_name(node), node_name(convolution)}.isdisjoint(kept):
            continue
        found = _folded(graph, convolution, node)
        if found is not None:
            statistics[node.output[0]] = found
    return Folding(graph.model(), statistics) if statistics else Folding(model, {})


def _folded(graph: ModelGraph, convolution: NodeProto, node: NodeProto) -> tuple[Array, Array] | None:
    if convolution.op_type != "Conv" or not graph.has_one_use(node.input[0]) or graph.is_output(node.input[0]):
        return None
    weights = graph.constant(convolution.input[1])
    bias = graph.bias(convolution)
    given = [graph.constant(name) for name in node.input[1:5]]
    if weights is None or bias is None or any(one is None for one in given):
        return None
    scale, shift, mean, variance = (np.asarray(one, np.float64) for one in given)
    factors = scale / np.sqrt(variance + attribute(node, "epsilon", _EPSILON))
    name = node_name(convolution)
    wide = weights.astype(np.float64) * factors.reshape(-1, *[1] * (weights.ndim - 1))
    kernel = graph.add_constant(f"{name}_weights_folded", wide.astype(weights.dtype))
    added = graph.add_constant(f"{name}_bias_folded", ((bias - mean) * factors + shift).astype(weights.dtype))
    whole = graph.new_node("Conv", [convolution.input[0], kernel, added], name=name, output=node.output[0])
    whole.attribute.extend(convolution.attribute)
    graph.replace(node, [whole])
    return shift, np.abs(scale)


def scaled(statistics: Statistics, factors: Mapping[str, Array]) -> Statistics:
    """Return the statistics of a model whose channels were multiplied by factors."""
    known = {name: np.asarray(factors.get(name, 1.0)) for name in statistics}
    return {name: (mean * known[name], each * known[name]) for name, (mean, each) in statistics.items()}


def shifted(statistics: Statistics, shifts: Mapping[str, Array]) -> Statistics:
    """Return the statistics of a model whose channels were lowered by shifts."""
    return {name: (mean - shifts.get(name, 0.0), each) for name, (mean, each) in statistics.items()}


def analytic_biases(model: ModelProto, external: ExternalData, statistics: Statistics) -> Corrections:
    """Return biases that take back the mean error by rounded weights, of convolutions whose inputs' means are known."""
    graph = ModelGraph(model, external)
    biases = {}
    for node in graph.nodes:
        means = _means(graph, node.input[0], statistics) if node.op_type == "Conv" else None
        weights = None if means is None else graph.constant(node.input[1])
        bias = graph.bias(node)
        if means is None or weights is None or bias is None:
            continue
        K, groups = weights.shape[0], attribute(node, "group", 1)
        error = rounded_by_output_channel(weights) - weights.astype(np.float64)
        per_group = np.repeat(means.reshape(groups, -1), K // groups, axis=0)
        shift = (error.reshape(K, weights.shape[1], -1).sum(axis=2) * per_group).sum(axis=1)
        if shift.any():
            biases[node_name(node)] = (bias - shift).astype(weights.dtype)
    return Corrections({}, biases)


def _means(graph: ModelGraph, name: str, statistics: Statistics) -> Array | None:
    """Return the mean of each channel of a tensor; None where it is not known."""
    if name in statistics:
        return statistics[name][0]
    node = graph.producer(name)
    if node is None or node.op_type not in ("Relu", "Clip") or node.input[0] not in statistics:
        return None
    low, high = clip_bounds(graph, node)
    pairs = zip(*(one.tolist() for one in statistics[node.input[0]]), strict=True)
    return np.array([_clipped_mean(mean, deviation, low, high) for mean, deviation in pairs])


def _clipped_mean(mean: float, deviation: float, low: float, high: float) -> float:
    """Return the mean of a normally distributed value that is cut off at two bounds."""
    if not deviation:
        return min(max(mean, low), high)
    normal = NormalDist()
    first, last = (low - mean) / deviation, (high - mean) / deviation
    inside = normal.cdf(last) - normal.cdf(first)
    found = mean * inside + deviation * (normal.pdf(first) - normal.pdf(last))
    # An infinite bound is never reached.
    found += low * normal.cdf(first) if np.isfinite(low) else 0.0
    return found + (high * (1 - normal.cdf(last)) if np.isfinite(high) else 0.0)
