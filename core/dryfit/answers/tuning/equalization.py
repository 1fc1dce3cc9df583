"""Cross-layer equalization: channels of an ONNX model's tensors are scaled so that each uses the whole INT8 range.

A convolution's output channel can be multiplied by any positive factor if every reader divides its weights by it.
Layers that work channel by channel and commute with positive factors (ReLU, PReLU, poolings, resizes, concatenations,
and sums of tensors that are scaled alike) pass the factor on. With one scale per weight channel, the factor costs the
producer nothing, and a depthwise reader nothing either; another reader's weights become less equal, which limits it.

A ReLU6 does not commute with factors, unless the channel cannot reach its bound, which interval arithmetic over the
weights proves for some: such a channel is scaled up towards the bound. So the edit is exact in real arithmetic.

Source: Nagel et al., Data-Free Quantization Through Weight Equalization and Bias Correction (ICCV 2019), section 4.1.
Proofs for ReLU6, and factors from activations instead of weights, are our choice.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from onnx import ModelProto, NodeProto

from dryfit.answers.tuning.intervals import Interval, clip_bounds, intervals
from dryfit.attrs_classes import frozen
from dryfit.network.tensor import Array
from dryfit.onnx.editing.model_graph import ModelGraph, attribute, node_name
from dryfit.onnx.external_data import ExternalData

LARGEST_FACTOR = 2.0**10
"""Factors beyond this say that a channel is dead; its noise cannot be heard. Our choice."""

_CHANNELWISE = frozenset(
    {"Relu", "LeakyRelu", "MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool", "Identity", "Dropout"}
)


@frozen(eq=False)
class Equalization:
    """An equalized model.

    Attributes:
        model: the new model.
        factors: name of each scaled tensor to the factors of its channels, float64[C].
        proved: number of channels of bounded activations that cannot reach the bound, and were scaled.
    """

    model: ModelProto
    factors: Mapping[str, Array]
    proved: int

    @property
    def num_tensors(self) -> int:
        """Number of tensors that hold other values than before."""
        return len(self.factors)


def channel_tensors(model: ModelProto, external: ExternalData) -> list[str]:
    """Return the tensors whose largest value per channel `equalize` requires."""
    return list(_Classes(ModelGraph(model, external)).channels)


def equalize(
    model: ModelProto,
    external: ExternalData,
    largest: Mapping[str, Array],
    strength: float = 0.5,
    inputs: Mapping[str, float] | None = None,
) -> Equalization:
    """Scale the channels of a model's tensors.

    Args:
        model: the model; it is not modified.
        external: location of its external data.
        largest: name of each of `channel_tensors` to the largest magnitude per channel, float[C].
        strength: exponent of the factors of channels that a layer sums with others, from 0 to 1. Channels that only
            depthwise layers read are always made equal.
        inputs: largest magnitude of each input, which proves bounds of what follows; None to prove nothing from them.
    """
    graph = ModelGraph(model, external)
    classes = _Classes(graph)
    factors, proved = classes.factors(largest, strength, intervals(model, external, inputs or {}))
    for node in list(graph.nodes):
        if node.op_type in _WEIGHTED and classes.has_weights(node):
            _scale(graph, node, factors.get(node.input[0]), factors.get(node.output[0]))
    changed = {name: one for name, one in factors.items() if (one != 1).any()}
    return Equalization(graph.model(), changed, proved)


_WEIGHTED = ("Conv", "ConvTranspose")


class _Classes:
    """The channels of a graph's tensors, in classes that have to be scaled alike.

    Attributes:
        channels: tensor name to the class of each channel, int[C]; only tensors `[N, C, ...]`.
    """

    def __init__(self, graph: ModelGraph) -> None:
        self._graph = graph
        self._parents: list[int] = []
        self._fixed: set[int] = set()
        self._mixed: set[int] = set()
        self._bounds: dict[str, float] = {}
        self._ids: dict[str, Array] = {}
        for node in graph.nodes:
            self._add(node)
        for name in [*self._ids]:
            if graph.is_output(name) or graph.producer(name) is None:
                self._fix(name)
        self._fixed = {self._root(one) for one in self._fixed}
        self._mixed = {self._root(one) for one in self._mixed}
        self.channels = {
            name: np.array([self._root(int(one)) for one in ids], np.int64) for name, ids in self._ids.items()
        }

    def has_weights(self, node: NodeProto) -> bool:
        """Return whether a node's weights are known and its channels can be scaled."""
        weights = self._graph.constant(node.input[1]) if len(node.input) > 1 else None
        bias = self._graph.bias(node)
        if weights is None or bias is None or weights.ndim < 3:
            return False
        return node.op_type == "Conv" or attribute(node, "group", 1) == 1

    def factors(
        self, largest: Mapping[str, Array], strength: float, known: Mapping[str, Interval]
    ) -> tuple[dict[str, Array], int]:
        """Return the factors of each tensor's channels, and how many of them have a bound that they cannot reach."""
        share: dict[int, float] = {}
        limit: dict[int, float] = {}
        fixed = set(self._fixed)
        near: set[int] = set()
        for name, classes in self.channels.items():
            seen = np.asarray(largest[name], np.float64)
            if self._is_inside_step(name):
                seen = np.zeros_like(seen)  # it is never rounded: what its negative values need does not count
            whole = seen.max(initial=0.0)
            bound = self._bounds.get(name)
            ends = known[name][1] if name in known else np.full(len(classes), np.inf)
            for one, value, end in zip(classes.tolist(), seen.tolist(), ends.tolist(), strict=True):
                share[one] = max(share.get(one, 0.0), value / whole if whole else 0.0)
                if bound is not None:
                    if end >= bound:
                        fixed.add(one)
                    limit[one] = min(limit.get(one, np.inf), bound / end if end > 0 else LARGEST_FACTOR)
                    near.add(one)
        found: dict[int, float] = {}
        for one, part in share.items():
            exponent = strength if one in self._mixed else 1.0
            factor = min((1 / part) ** exponent if part else 1.0, LARGEST_FACTOR, limit.get(one, np.inf))
            # Factors of two change no mantissa, but waste up to half of the range: any factor is used.
            found[one] = 1.0 if one in fixed else max(factor, 1.0)
        proved = sum(found[one] > 1 for one in near)
        return {name: np.array([found[one] for one in ids.tolist()]) for name, ids in self.channels.items()}, proved

    def _add(self, node: NodeProto) -> None:
        source = self._of(node.input[0]) if node.input and node.input[0] else None
        if node.op_type in _WEIGHTED and source is not None and self.has_weights(node):
            self._of(node.output[0])
            if not self._is_depthwise(node):
                self._mixed.update(source.tolist())
        elif node.op_type in _CHANNELWISE or self._is_relu6(node) or self._is_channelwise(node):
            self._same(node.input[0], node.output[0])
            if node.op_type == "Clip":
                self._bounds[node.output[0]] = clip_bounds(self._graph, node)[1]
        elif node.op_type == "Add" and self._are_alike(node):
            self._same(node.input[0], node.input[1])
            self._same(node.input[0], node.output[0])
        elif node.op_type == "Concat" and self._joins_channels(node):
            parts = [self._of(name) for name in node.input]
            joined = np.concatenate([part for part in parts if part is not None])
            output = self._of(node.output[0])
            for one, other in zip(joined.tolist(), () if output is None else output.tolist(), strict=False):
                self._join(one, other)
        else:
            for name in (*node.input, *node.output):
                self._fix(name)

    def _of(self, name: str) -> Array | None:
        """Return the ids of a tensor's channels; None for one without channels."""
        if name not in self._ids:
            shape = self._graph.shape(name)
            if shape is None or len(shape) < 3 or not shape[1] or self._graph.constant(name) is not None:
                return None
            start = len(self._parents)
            self._parents.extend(range(start, start + shape[1]))
            self._ids[name] = np.arange(start, start + shape[1])
        return self._ids[name]

    def _fix(self, name: str) -> None:
        ids = self._of(name) if name else None
        if ids is not None:
            self._fixed.update(ids.tolist())

    def _same(self, first: str, second: str) -> None:
        ids, others = self._of(first), self._of(second)
        if ids is None or others is None or len(ids) != len(others):
            self._fix(first)
            self._fix(second)
            return
        for one, other in zip(ids.tolist(), others.tolist(), strict=True):
            self._join(one, other)

    def _join(self, one: int, other: int) -> None:
        first, second = sorted((self._root(one), self._root(other)))
        self._parents[second] = first

    def _root(self, one: int) -> int:
        while self._parents[one] != one:
            self._parents[one] = self._parents[self._parents[one]]
            one = self._parents[one]
        return one

    def _is_inside_step(self, name: str) -> bool:
        """Return whether a tensor only goes from a sum of products, or a sum, to a ReLU, which devices run as one."""
        producer, readers = self._graph.producer(name), self._graph.consumers(name)
        is_sum = producer is not None and producer.op_type in (*_WEIGHTED, "Add")
        return is_sum and self._graph.has_one_use(name) and readers[0].op_type in ("Relu", "Clip")

    def _is_depthwise(self, node: NodeProto) -> bool:
        weights = self._graph.constant(node.input[1])
        return node.op_type == "Conv" and weights is not None and weights.shape[1] == 1

    def _is_relu6(self, node: NodeProto) -> bool:
        return node.op_type == "Clip" and clip_bounds(self._graph, node)[0] == 0.0 and len(node.output) == 1

    def _is_channelwise(self, node: NodeProto) -> bool:
        if node.op_type == "PRelu":
            return self._graph.constant(node.input[1]) is not None
        if node.op_type in ("Resize", "Upsample"):
            before, after = self._graph.shape(node.input[0]), self._graph.shape(node.output[0])
            return before is not None and after is not None and before[:2] == after[:2]
        return False

    def _are_alike(self, node: NodeProto) -> bool:
        first, second = (self._graph.shape(name) for name in node.input)
        return first is not None and first == second and all(self._of(name) is not None for name in node.input)

    def _joins_channels(self, node: NodeProto) -> bool:
        shape = self._graph.shape(node.output[0])
        axis = attribute(node, "axis", 1)
        is_known = all(self._of(name) is not None for name in (*node.input, *node.output))
        return shape is not None and is_known and axis in (1, 1 - len(shape))


def _scale(graph: ModelGraph, node: NodeProto, before: Array | None, after: Array | None) -> None:
    """Divide a layer's weights by the factors of its input, and multiply them and its bias by those of its output."""
    weights = graph.constant(node.input[1])
    if weights is None or (before is None and after is None):
        return
    wide = weights.astype(np.float64)
    groups = attribute(node, "group", 1)
    transposed = node.op_type == "ConvTranspose"
    K = wide.shape[1] if transposed else wide.shape[0]
    ones = [1] * (wide.ndim - 2)
    if before is not None:
        if transposed:
            wide = wide / before.reshape(-1, 1, *ones)
        else:
            per_group = before.reshape(groups, -1)
            rows = np.repeat(per_group, K // groups, axis=0)
            wide = wide / rows.reshape(K, -1, *ones)
    if after is not None:
        wide = wide * (after.reshape(1, -1, *ones) if transposed else after.reshape(-1, 1, *ones))
    node.input[1] = graph.add_constant(f"{node_name(node)}_weights_equalized", wide.astype(weights.dtype))
    bias = graph.constant(node.input[2]) if len(node.input) > 2 and node.input[2] else None
    if bias is not None and after is not None:
        scaled = (bias.astype(np.float64) * after).astype(bias.dtype)
        node.input[2] = graph.add_constant(f"{node_name(node)}_bias_equalized", scaled)
