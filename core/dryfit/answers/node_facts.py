"""What became of each node of an ONNX model: its layers, their device, segment, precision, format, scale and estimate.

Nodes and layers are many to many: a node may become several layers, or none where it is folded, and several nodes one
layer. Names join them: a layer keeps the names of its nodes, and a tensor that of the node's output.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import attrs
import numpy as np
from onnx import GraphProto, NodeProto

from dryfit.answers.json_data import Amount, Count
from dryfit.answers.network_cost import NetworkCost
from dryfit.answers.text import bytes_text
from dryfit.attrs_classes import frozen
from dryfit.builder.decisions import layer_placements
from dryfit.builder.design import Design
from dryfit.builder.formats.forms import TensorForms
from dryfit.engine.plan import LayerPlacement
from dryfit.estimate_text import duration
from dryfit.network.layers.quantization import Dequantize, Quantize
from dryfit.onnx.annotations import ModelNode, NodeNotes, model_nodes
from dryfit.target.cost import StepCost


class NodeFate(enum.StrEnum):
    """What became of a node."""

    LAYERS = "layers"
    """It became one layer or several."""
    INSIDE = "inside"
    """It is part of the layer of the node around it, as in the body of a loop."""
    FOLDED = "folded"
    """Its outputs are computed at build time."""
    NO_LAYER = "no layer"
    """It only passes a tensor on, was merged into other layers, or is not needed for the outputs."""


@frozen
class NodeEstimate:
    """The estimated cost of the steps that compute a node. Nothing is measured.

    Attributes:
        microseconds: estimated time of the steps.
        bytes_moved: bytes moved between the device and its memory.
        macs: multiply-accumulates.
        bound: largest part of the time of the longest step: `compute`, `memory` or `overhead`.
        shared_with: other layers in these steps, whose cost is included.
    """

    microseconds: Amount
    bytes_moved: Count
    macs: Count
    bound: str
    shared_with: Sequence[str]

    def __str__(self) -> str:
        shared = f"; includes {', '.join(self.shared_with)}" if self.shared_with else ""
        return f"{duration(self.microseconds)}, bound by {self.bound}, {bytes_text(self.bytes_moved)} DRAM{shared}"


@frozen
class AnnotatedNode:
    """A node of the model, with what became of it.

    Attributes:
        name: name of the node, with the names of the nodes around it.
        operator: operator of the node.
        became: `layers`, `inside`, `folded` or `no layer`.
        layers: names of the layers that the node became.
        device: devices of these layers; None without one.
        segment: index of the segment of the first layer; None without one.
        precision: computation types of the layers; None without one.
        format: format of each output with its copies, or `inside a step` for a tensor between layers that are computed
            together; None if unknown.
        scale: INT8 scale of each output; None without one.
        estimate: estimated cost; None if nothing is estimated.
        cause: why the layers run on their device; empty by default.
    """

    name: str
    operator: str
    became: NodeFate
    layers: Sequence[str]
    device: str | None
    segment: int | None
    precision: str | None
    format: str | None
    scale: str | None
    estimate: NodeEstimate | None
    cause: str

    @property
    def notes(self) -> NodeNotes:
        """The facts as texts by key."""
        texts = {
            "device": self.device,
            "segment": None if self.segment is None else str(self.segment),
            "precision": self.precision,
            "format": self.format,
            "scale": self.scale,
            "estimate": None if self.estimate is None else str(self.estimate),
            "layers": ", ".join(self.layers),
            "became": _FATES[self.became] if not self.layers else None,
            "cause": self.cause,
        }
        return NodeNotes(self.device, self.segment, {key: text for key, text in texts.items() if text})


_FATES = {
    NodeFate.LAYERS: "",
    NodeFate.INSIDE: "part of the layer of the node around it",
    NodeFate.FOLDED: "folded into constants at build time",
    NodeFate.NO_LAYER: "no layer: it passes a tensor on, was merged into other layers, or no output needs it",
}


def node_facts(
    graph: GraphProto, design: Design, cost: NetworkCost | None
) -> Iterator[tuple[NodeProto, AnnotatedNode]]:
    """Return every node of a model with what became of it.

    Args:
        graph: graph that the network was imported from.
        design: decisions about the network.
        cost: estimates; None if nothing can be estimated.
    """
    nodes = list(model_nodes(graph))
    index = _LayerIndex(design, cost, [one.name for one in nodes])
    known = {tensor.name for tensor in graph.initializer}
    facts: dict[int, AnnotatedNode] = {}
    for one in nodes:
        layers = index.layers_of(one)
        # What a node inside a body computes is part of the layer around it.
        outer = facts.get(id(one.around[-1])) if one.around else None
        if not layers and outer is not None and outer.became in (NodeFate.LAYERS, NodeFate.INSIDE):
            found = attrs.evolve(
                outer, name=one.name, operator=one.proto.op_type, became=NodeFate.INSIDE, format=None, scale=None
            )
        else:
            is_folded = not layers and (one.name in index.constants or _is_known(one.proto, known))
            if is_folded:
                known.update(one.proto.output)
            found = _facts(one, layers, index, is_folded=is_folded)
        facts[id(one.proto)] = found
        yield one.proto, found


def _is_known(node: NodeProto, known: set[str]) -> bool:
    """Return whether the outputs follow from constants and shapes; the network has no layer for the node."""
    return node.op_type in ("Constant", "Shape", "Size") or all(name in known for name in node.input if name)


def _facts(one: ModelNode, layers: Sequence[LayerPlacement], index: _LayerIndex, *, is_folded: bool) -> AnnotatedNode:
    fate = NodeFate.LAYERS if layers else NodeFate.FOLDED if is_folded else NodeFate.NO_LAYER
    names = [layer.layer for layer in layers]
    outputs = [name for name in one.proto.output if name]
    return AnnotatedNode(
        name=one.name,
        operator=one.proto.op_type,
        became=fate,
        layers=names,
        device=_joined([layer.device or "unplaced" for layer in layers]),
        segment=next((layer.segment for layer in layers if layer.segment >= 0), None),
        precision=_joined([layer.precision.text for layer in layers]),
        format=_of_outputs(outputs, index.formats) if layers else None,
        scale=index.own_scale(names) or (_of_outputs(outputs, index.scales) if layers else None),
        estimate=index.estimate(names),
        cause="; ".join(dict.fromkeys(layer.cause for layer in layers if layer.cause)),
    )


def _joined(words: Sequence[str]) -> str | None:
    return ", ".join(dict.fromkeys(words)) or None


def _of_outputs(outputs: Sequence[str], texts: Mapping[str, str]) -> str | None:
    found = {name: texts[name] for name in outputs if name in texts}
    if len(outputs) == 1:
        return next(iter(found.values()), None)
    return "; ".join(f"{name}: {text}" for name, text in found.items()) or None


class _LayerIndex:
    """Finds what a design says about a node."""

    def __init__(self, design: Design, cost: NetworkCost | None, nodes: Sequence[str]) -> None:
        self._network = design.network
        self._specs = design.specs
        self._by_node: dict[str, list[LayerPlacement]] = {}
        self._inner: dict[str, list[LayerPlacement]] = {}
        counts = Counter(nodes)
        self._shared_names = {name for name, count in counts.items() if count > 1}
        for placement in layer_placements(design):
            for node in placement.onnx_nodes:
                self._by_node.setdefault(node, []).append(placement)
                if node not in counts:
                    # Written out from a function, or from an operator that consists of others: for the node around it.
                    outer = next((name for name in _outer_names(node) if name in counts), None)
                    if outer is not None:
                        self._inner.setdefault(outer, []).append(placement)
        placed = {placement.layer for layers in self._by_node.values() for placement in layers}
        self.constants = {
            node for layer in self._network.layers if layer.name not in placed for node in layer.onnx_nodes
        }
        self.scales = {
            name: f"{entry.scale:.9g} ({entry.origin})" for name, entry in design.network_scales.table.ranged.items()
        }
        segments = () if cost is None else cost.segments
        self._steps: dict[str, StepCost] = {
            name: step
            for segment in segments
            if segment.estimate is not None
            for step in segment.estimate.steps
            for name in step.layers
        }
        self.formats = {
            name: "inside a step" if self._is_inside(name) else _form_text(forms)
            for name, forms in design.formats.forms.items()
        }

    def _is_inside(self, tensor: str) -> bool:
        """Return whether a tensor exists only inside a step, so that it lies in no memory."""
        found = self._network.find_tensor(tensor)
        if found is None or found.producer is None or found.is_network_output:
            return False
        step = self._steps.get(found.producer.name)
        readers = [layer.name for layer, _ in found.consumers]
        return step is not None and bool(readers) and all(self._steps.get(name) is step for name in readers)

    def layers_of(self, node: ModelNode) -> list[LayerPlacement]:
        """Return the layers of a node; where several nodes share a name, only those that make its outputs."""
        found = {one.layer: one for one in (*self._by_node.get(node.name, ()), *self._inner.get(node.name, ()))}
        if node.name in self._shared_names:
            outputs = set(node.proto.output)
            made = {name for name in found if outputs & {one.name for one in self._network.layer(name).outputs}}
            found = {name: one for name, one in found.items() if name in made}
        return list(found.values())

    def own_scale(self, layers: Sequence[str]) -> str | None:
        """Return the scale of quantize and dequantize layers; None for other layers."""
        for name in layers:
            layer = self._network.layer(name)
            scale = layer.inputs[1] if isinstance(layer, Quantize | Dequantize) and len(layer.inputs) > 1 else None
            value = None if scale is None else self._specs[scale.name].value
            if value is not None:
                numbers = np.asarray(value, np.float32)
                if numbers.size == 1:
                    return f"{numbers.item():.9g} (Q/DQ)"
                return f"{numbers.min():.9g} to {numbers.max():.9g} (Q/DQ, {numbers.size} scales)"
        return None

    def estimate(self, layers: Sequence[str]) -> NodeEstimate | None:
        """Return the cost of the steps of layers."""
        steps = {id(self._steps[name]): self._steps[name] for name in layers if name in self._steps}
        if not steps:
            return None
        others = dict.fromkeys(name for step in steps.values() for name in step.layers if name not in layers)
        return NodeEstimate(
            microseconds=sum(step.microseconds for step in steps.values()),
            bytes_moved=sum(step.bytes_moved for step in steps.values()),
            macs=sum(step.macs for step in steps.values()),
            bound=max(steps.values(), key=lambda step: step.microseconds).bound,
            shared_with=list(others),
        )


def _outer_names(node: str) -> Iterator[str]:
    """Return the names that a name inside another begins with, the longest first."""
    while "/" in node:
        node = node.rpartition("/")[0]
        yield node


def _form_text(forms: TensorForms) -> str:
    copies = ", ".join(form.words for form in forms.copies)
    return forms.produced.words + (f"; copied to {copies}" if copies else "")
