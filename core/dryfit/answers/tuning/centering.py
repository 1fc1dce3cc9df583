"""Centering: channels of an ONNX model's tensors are shifted so that INT8's symmetric range is used on both sides.

INT8 of TensorRT and of a DLA has no zero point: of a tensor from 0 to 6, as a ReLU6 gives, no negative code is used,
and of a channel far from zero only few codes are. If a convolution's bias is lowered by c, its output is x - c, and a
reader without padding that adds W c to its own bias computes the same as before. A ReLU that follows becomes
max(x, -c), and a ReLU6 clips from -c to 6 - c. With c in the middle, one INT8 step is half as large: the noise of the
rounding falls by 6 dB. It is exact in real arithmetic for all inputs, not only for those seen.

Shifts flow from convolutions, whose bias gives any shift, through layers that keep it (activations that limit, poolings
without padding, concatenations, sums) to convolutions that absorb it. A tensor with another reader stays as it is. So
does one that a convolution with padding reads, whose zeros are zeros of the unshifted tensor, unless a sum behind the
convolution may add in FP16 what these zeros take away: a constant that is zero but at the border.

In INT8, W is rounded, and a bias with the exact W c leaves an error of c times the sum of the rounding errors. So W can
be rounded to the INT8 grid first, where it is not on it: then INT8 computes with just these weights.

Source: Nagel et al., Data-Free Quantization Through Weight Equalization and Bias Correction (ICCV 2019), section 4.1.3,
absorbs biases so that few values fall below zero; shifting the bounds of the activation with them, which is exact and
uses the negative codes, is our choice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from onnx import ModelProto, NodeProto

from dryfit.answers.tuning.intervals import clip_bounds
from dryfit.attrs_classes import frozen
from dryfit.network.tensor import Array
from dryfit.onnx.editing.model_graph import ModelGraph, attribute, node_name
from dryfit.onnx.external_data import ExternalData
from dryfit.quantization.int8_weights import rounded_by_output_channel

_LIMITING = ("Relu", "Clip")
_FLATTENING = ("Flatten", "Reshape", "Squeeze")
_PASSING = ("Identity", "Dropout", "MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool", *_FLATTENING)
_SAME_RANGE = ("Concat", "Identity", "Dropout", "MaxPool", "GlobalMaxPool", *_FLATTENING)
"""Layers whose output has the range of their inputs."""


@frozen(eq=False)
class Centering:
    """A centered model.

    Attributes:
        model: the new model.
        origin: what it computes the same as, in real arithmetic: the model, with rounded weights if they are.
        shifts: name of each shifted tensor to what its channels are lowered by, float64[C].
        ranges: end of the range by name of each tensor behind an activation, and of what shares its range: its lower
            bound is the code -127, so that what the activation cuts off has no rounding error.
        half: names of the layers that have to be in FP16: sums for borders, and activations behind them.
    """

    model: ModelProto
    origin: ModelProto
    shifts: Mapping[str, Array]
    ranges: Mapping[str, float]
    half: frozenset[str]


def centered_tensors(model: ModelProto, external: ExternalData) -> list[str]:
    """Return the tensors whose ends `center` requires."""
    return list(_Flow(ModelGraph(model, external), activations=True, borders=True).movable)


def center(
    model: ModelProto,
    external: ExternalData,
    lowest: Mapping[str, Array],
    highest: Mapping[str, Array],
    *,
    activations: bool = True,
    borders: bool = False,
    rounds: bool = False,
) -> Centering:
    """Shift the channels of a model's tensors.

    Args:
        model: the model; it is not modified.
        external: location of its external data.
        lowest: name of each of `centered_tensors` to the smallest value per channel, float[C].
        highest: the largest values, likewise.
        activations: whether tensors behind activations are shifted, whose lower bound is then not 0: a DLA has no such
            activation.
        borders: whether tensors are shifted that convolutions with padding read: a sum behind these in FP16 adds what
            zeros of the padding, which are not shifted, take away at the border.
        rounds: whether the weights of convolutions that absorb a shift are rounded to INT8 codes per output channel.
    """
    graph = ModelGraph(model, external)
    flow = _Flow(graph, activations=activations, borders=borders)
    shifts, ranges = flow.shifts(lowest, highest)
    absorbing = [node for node in graph.nodes if flow.is_weighted(node) and node.input[0] in shifts]
    origin = with_rounded_weights(graph, absorbing) if rounds else model
    half: set[str] = set()
    for node in list(graph.nodes):
        if flow.is_weighted(node):
            before = shifts.get(node.input[0])
            absorb_shift(graph, node, before, shifts.get(node.output[0]))
            if before is not None and not is_unpadded(node):
                half |= _add_border(graph, node, before)
        elif node.op_type in _LIMITING and node.output[0] in shifts:
            _lower_bounds(graph, node, float(shifts[node.output[0]][0]))
    return Centering(graph.model(), origin, shifts, ranges, frozenset(half))


class _Flow:
    """Where shifts can go in a graph.

    Attributes:
        movable: name of each tensor that can be shifted to its number of channels, in the order of the nodes.
    """

    def __init__(self, graph: ModelGraph, *, activations: bool, borders: bool) -> None:
        self._graph = graph
        self._borders = borders
        self._activations = activations
        self._weighted = {id(node) for node in graph.nodes if has_weights(graph, node)}
        self.movable: dict[str, int] = {}
        for node in graph.nodes:
            shape = self._graph.shape(node.output[0]) if len(node.output) == 1 else None
            if shape is not None and len(shape) > 1 and shape[1] and not graph.is_output(node.output[0]):
                self.movable[node.output[0]] = shape[1]
        count = len(self.movable) + 1
        while len(self.movable) < count:
            count = len(self.movable)
            for node in graph.nodes:
                self._settle(node)

    def is_weighted(self, node: NodeProto) -> bool:
        """Return whether a node is a convolution with known weights and bias: it can give any shift."""
        return id(node) in self._weighted

    def shifts(
        self, lowest: Mapping[str, Array], highest: Mapping[str, Array]
    ) -> tuple[dict[str, Array], dict[str, float]]:
        """Return the shift of each tensor that has one, and the ranges of those behind activations."""
        found: dict[str, Array] = {}
        ranges: dict[str, float] = {}
        nothing = np.zeros(1)
        ends = self._shared_ends(highest)

        def center_of(name: str) -> Array:
            reader = self._only_reader(name)
            if reader is not None and reader.op_type in _LIMITING and reader.output[0] in self.movable:
                end = ends[reader.output[0]] / 2
                if end > 0:
                    ranges[reader.output[0]] = end
                return np.full(self.movable[name], end)
            return np.asarray(np.add(lowest[name], highest[name], dtype=np.float64) / 2)

        for node in self._graph.nodes:
            name = node.output[0] if node.output else ""
            if name not in self.movable:
                continue
            sources = [found.get(one, nothing) for one in self._data(node)]
            if self.is_weighted(node):
                reader = self._only_reader(name)
                if reader is not None and reader.op_type == "Add" and reader.output[0] in self.movable:
                    (other,) = [one for one in reader.input if one != name]
                    # The operand that comes last brings the sum to its center; the first one has its own.
                    known = self._is_before(other, name)
                    shift = center_of(reader.output[0]) - found.get(other, nothing) if known else center_of(name)
                else:
                    shift = center_of(name)
            elif node.op_type == "Add":
                shift = sources[0] + sources[1]
            elif node.op_type == "Concat":
                sizes = [(self._graph.shape(one) or (0, 0))[1] or 0 for one in node.input]
                shift = np.concatenate(
                    [np.broadcast_to(one, (size,)) for one, size in zip(sources, sizes, strict=True)]
                )
            else:
                shift = sources[0]
            if np.any(shift):
                found[name] = np.broadcast_to(shift, (self.movable[name],)).astype(np.float64)
            given = {ranges.get(one) for one in self._data(node)}
            if node.op_type in _SAME_RANGE and len(given) == 1 and None not in given:
                ranges[name] = ranges[node.input[0]]
        return found, {name: end for name, end in ranges.items() if name in found}

    def _shared_ends(self, highest: Mapping[str, Array]) -> dict[str, float]:
        """Return the largest value of each tensor, and of all that share its range: what a concatenation joins."""
        ends = {name: float(np.max(highest[name], initial=0.0)) for name in self.movable}
        for node in reversed(self._graph.nodes):
            if node.op_type in _SAME_RANGE and node.output[0] in self.movable:
                together = [one for one in (*self._data(node), node.output[0]) if one in self.movable]
                largest = max(ends[one] for one in together)
                ends.update(dict.fromkeys(together, largest))
        return ends

    def _settle(self, node: NodeProto) -> None:
        """Fix what a node does not let move."""
        data, outputs = self._data(node), list(node.output)
        if self.is_weighted(node):
            if not is_unpadded(node) and not (self._borders and _has_border(self._graph, node)):
                self._fix(data)
        elif node.op_type in (*_LIMITING, *_PASSING) and self._keeps(node):
            if outputs[0] not in self.movable or data[0] not in self.movable:
                self._fix([*data, *outputs])
        elif node.op_type in ("Add", "Concat") and self._keeps(node):
            if outputs[0] not in self.movable:
                self._fix(data)
        else:
            self._fix([*node.input, *outputs])

    def _keeps(self, node: NodeProto) -> bool:
        """Return whether shifts of a node's inputs become one of its output."""
        shapes = [self._graph.shape(name) for name in (*self._data(node), *node.output)]
        if node.op_type in _LIMITING and not self._activations:
            return False
        if node.op_type == "Clip":
            has_bounds = all(not name or self._graph.constant(name) is not None for name in node.input[1:])
            return has_bounds and self._starts_at_bias(node.input[0])
        if node.op_type == "Relu":
            return self._starts_at_bias(node.input[0])
        if node.op_type == "Add":
            return shapes[0] is not None and shapes[0] == shapes[1] == shapes[2] and node.input[0] != node.input[1]
        if node.op_type == "Concat":
            rank = len(shapes[-1] or ())
            return all(one and len(one) > 1 and one[1] for one in shapes) and attribute(node, "axis") in (1, 1 - rank)
        if node.op_type == "AveragePool":
            return is_unpadded(node) and not attribute(node, "ceil_mode", 0)
        if node.op_type in _FLATTENING:
            return all(one is not None and len(one) > 1 and _is_flat(one) and one[1] for one in shapes) and (
                shapes[0][1] == shapes[1][1]  # type: ignore[index]  # all of them are known
            )
        return True

    def _starts_at_bias(self, name: str) -> bool:
        """Return whether a tensor's channels can be shifted alike: by the bias of the convolution right before it."""
        producer = self._graph.producer(name)
        if producer is None or not self._graph.has_one_use(name):
            return False
        if producer.op_type == "Add":
            last = max(producer.input, key=self._position)
            giver = self._graph.producer(last)
            return giver is not None and self.is_weighted(giver) and self._graph.has_one_use(last)
        return self.is_weighted(producer)

    def _position(self, name: str) -> int:
        producer = self._graph.producer(name)
        return next((index for index, node in enumerate(self._graph.nodes) if node is producer), -1)

    def _is_before(self, name: str, other: str) -> bool:
        return self._position(name) < self._position(other)

    def _only_reader(self, name: str) -> NodeProto | None:
        return self._graph.consumers(name)[0] if self._graph.has_one_use(name) else None

    def _data(self, node: NodeProto) -> list[str]:
        """Return the inputs of a node that are shifted with it, or absorbed by it."""
        return list(node.input) if node.op_type in ("Add", "Concat") else list(node.input[:1])

    def _fix(self, names: list[str]) -> None:
        for name in names:
            self.movable.pop(name, None)


def has_weights(graph: ModelGraph, node: NodeProto) -> bool:
    """Return whether a node is a convolution with known weights and bias."""
    if node.op_type != "Conv" or len(node.input) < 2:
        return False
    return graph.constant(node.input[1]) is not None and graph.bias(node) is not None


def is_unpadded(node: NodeProto) -> bool:
    """Return whether a convolution or pooling adds no padding."""
    automatic = attribute(node, "auto_pad", "NOTSET")
    return automatic in ("NOTSET", "VALID") and not any(attribute(node, "pads", [0]))


def _has_border(graph: ModelGraph, node: NodeProto) -> bool:
    """Return whether it is known which sums of a convolution of pictures read padding."""
    weights, shapes = graph.constant(node.input[1]), [graph.shape(name) for name in (node.input[0], node.output[0])]
    is_picture = weights is not None and weights.ndim == 4 and attribute(node, "auto_pad", "NOTSET") == "NOTSET"
    return is_picture and all(shape is not None and None not in shape[1:] for shape in shapes)


def _add_border(graph: ModelGraph, node: NodeProto, shift: Array) -> set[str]:
    """Add behind a convolution what its padding takes from a shift; return the layers that have to be in FP16."""
    weights, output = graph.constant(node.input[1]), node.output[0]
    extents, sums = (tuple(each or 0 for each in graph.shape(name) or ()) for name in (node.input[0], output))
    assert weights is not None  # noqa: S101  `_has_border`
    pads, strides, dilations = (attribute(node, name) or [1, 1] for name in ("pads", "strides", "dilations"))
    K, groups = len(weights), attribute(node, "group", 1)
    per_group = np.repeat(shift.reshape(groups, -1), K // groups, axis=0)
    taps = (weights.astype(np.float64) * per_group[:, :, None, None]).sum(axis=1)
    inside = []
    for axis in (0, 1):
        first = np.arange(sums[2 + axis]) * strides[axis] - pads[axis]
        index = first + np.arange(weights.shape[2 + axis])[:, None] * dilations[axis]
        inside.append(((index >= 0) & (index < extents[2 + axis])).astype(np.float64))
    border = np.einsum("kij,ip,jq->kpq", taps, *inside) - taps.sum(axis=(1, 2))[:, None, None]
    readers = graph.consumers(output)
    is_limited = len(readers) == 1 and readers[0].op_type in _LIMITING
    summand = graph.add_constant(f"{node_name(node)}_border_values", border[None].astype(weights.dtype))
    total = graph.compute_behind(node, "Add", [summand], name=f"{node_name(node)}_border", inside=f"{output}_inside")
    return {node_name(total), *([node_name(readers[0])] if is_limited else [])}


def _is_flat(shape: tuple[int | None, ...]) -> bool:
    return all(extent == 1 for extent in shape[2:])


def _lower_bounds(graph: ModelGraph, node: NodeProto, shift: float) -> None:
    """Lower the bounds of an activation; a ReLU becomes a Clip."""
    low, high = clip_bounds(graph, node)
    bounds = {"min": low - shift, "max": high - shift}
    name, source = node_name(node), node.input[0]
    if graph.opset < 11:
        given = {key: value for key, value in bounds.items() if np.isfinite(value)}
        new = graph.new_node("Clip", [source], name=name, output=node.output[0], **given)
    else:
        inputs = [
            graph.scalar_like(f"{name}_{key}_centered", value, source) if np.isfinite(value) else ""
            for key, value in bounds.items()
        ]
        new = graph.new_node("Clip", [source, *inputs], name=name, output=node.output[0])
    graph.replace(node, [new])


def with_rounded_weights(graph: ModelGraph, nodes: Iterable[NodeProto]) -> ModelProto:
    """Round the weights of convolutions to INT8 codes per output channel, and return a copy of the model with these."""
    for node in nodes:
        _round_weights(graph, node)
    model = ModelProto()
    model.CopyFrom(graph.model())
    return model


def _round_weights(graph: ModelGraph, node: NodeProto) -> None:
    """Round weights to the nearest of 255 codes; the largest magnitude of an output channel is code 127."""
    weights = graph.constant(node.input[1])
    if weights is None:
        return
    rounded = rounded_by_output_channel(weights)
    node.input[1] = graph.add_constant(f"{node_name(node)}_weights_rounded", rounded.astype(weights.dtype))


def absorb_shift(graph: ModelGraph, node: NodeProto, before: Array | None, after: Array | None = None) -> None:
    """Add to a bias what the shift of the input takes away, and take away the shift of the output."""
    if before is None and after is None:
        return
    weights = graph.constant(node.input[1])
    if weights is None:
        return
    K, groups = weights.shape[0], attribute(node, "group", 1)
    old = graph.constant(node.input[2]) if len(node.input) > 2 and node.input[2] else None
    bias = np.zeros(K) if old is None else old.astype(np.float64)
    if before is not None:
        per_group = np.repeat(before.reshape(groups, -1), K // groups, axis=0)
        sums = weights.astype(np.float64).reshape(K, per_group.shape[1], -1).sum(axis=2)
        bias = bias + (sums * per_group).sum(axis=1)
    if after is not None:
        bias = bias - after
    name = graph.add_constant(f"{node_name(node)}_bias_centered", bias.astype(weights.dtype))
    del node.input[2:]
    node.input.append(name)
