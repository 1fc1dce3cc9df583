"""A copy of an ONNX model with facts about each node in its metadata, which viewers such as Netron show.

Metadata of nodes came with IR version 10, so an older model is raised to it. Operators, attributes and weights stay as
they are, and with them the results. Netron takes the color of a node from its operator alone (a table of operators and
categories), and shows its name in place of the operator if it is asked to: what can be done about colors follows from
that, see `NodeMarks`.

Source: ONNX, `NodeProto.metadata_props` (IR version 10) and the IR's rules on initializers (IR version 4); Netron,
issues 952, 1046 and 1321, and the category of operators in its `onnx-metadata.json`.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping, Sequence

from onnx import GraphProto, ModelProto, NodeProto

from dryfit.attrs_classes import frozen
from dryfit.onnx.editing.model_graph import node_name

PREFIX = "dryfit."
"""The keys of what is written begin with it."""
FIRST_IR_WITH_NODE_METADATA = 10
_FIRST_IR_WITH_CONSTANT_INITIALIZERS = 4
_PALETTE = ("Conv", "Relu", "MaxPool", "Dropout")
"""Operators of ONNX whose categories have colors in Netron that can be told apart: blue, red, green, violet."""
_UNCOLORED = "Identity"
"""An operator without a category: dark gray."""


class NodeMarks(enum.StrEnum):
    """How the nodes of one device are told from those of another in a viewer that knows nothing of metadata."""

    NONE = "none"
    """Only by metadata."""
    NAMES = "names"
    """The names begin with device and segment; the model still runs. Netron shows names instead of operators on
    request (View, Show Names)."""
    DOMAINS = "domains"
    """The domain of operators on the default device is that device. For viewing only: in Netron, nodes of domains that
    it does not know are gray, so that only those that left the device keep the color of their category."""
    OPERATORS = "operators"
    """The operator is one whose color stands for the device, and the name begins with the real operator. For viewing
    only."""

    @property
    def can_run(self) -> bool:
        """Whether the marked model still runs."""
        return self in (NodeMarks.NONE, NodeMarks.NAMES)


@frozen
class NodeNotes:
    """What is written about a node.

    Attributes:
        device: device of the node; None for a node without one, such as a folded node.
        segment: index of its segment; None without one.
        properties: key without the prefix to text.
    """

    device: str | None
    segment: int | None
    properties: Mapping[str, str]


@frozen(eq=False)
class ModelNode:
    """A node of a model, also of one inside another.

    Attributes:
        name: name as the importer makes it: with the names of the nodes around it, separated by "/".
        proto: the node.
        around: the nodes around it, the outermost first.
    """

    name: str
    proto: NodeProto
    around: Sequence[NodeProto] = ()


def model_nodes(graph: GraphProto, prefix: str = "", around: Sequence[NodeProto] = ()) -> Iterator[ModelNode]:
    """Return the nodes of a graph and of the subgraphs of its nodes, in the order of the model."""
    for node in graph.node:
        name = f"{prefix}{node_name(node)}"
        yield ModelNode(name, node, around)
        for attribute in node.attribute:
            for inner in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                yield from model_nodes(inner, f"{name}/", (*around, node))


def annotate_model(
    model: ModelProto,
    notes: Iterable[tuple[NodeProto, NodeNotes]],
    facts: Mapping[str, str],
    marks: NodeMarks,
    default_device: str,
) -> None:
    """Write notes into a model, in place of those of an earlier annotation.

    Args:
        model: model to change.
        notes: nodes of the model with what is written about each.
        facts: what is written about the model, by key without the prefix.
        marks: how nodes of different devices are told apart.
        default_device: device that the layers are assigned to.
    """
    _raise_version(model)
    _write(model, facts)
    known = list(notes)
    own_domain = f"{PREFIX}{default_device}"
    devices = list(dict.fromkeys((default_device, *(one.device for _, one in known if one.device is not None))))
    for node, one in known:
        properties = dict(one.properties)
        if marks is NodeMarks.NAMES and one.device is not None:
            properties["name"] = node.name
            place = one.device if one.segment is None else f"{one.device}:{one.segment}"
            node.name = f"{place} {node_name(node)}"
        elif marks is NodeMarks.DOMAINS and one.device == default_device:
            properties["domain"] = node.domain or "ai.onnx"
            node.domain = own_domain
        elif marks is NodeMarks.OPERATORS:
            properties["operator"] = f"{node.domain}::{node.op_type}" if node.domain else node.op_type
            node.name = f"{node.op_type} {node_name(node)}"
            node.op_type, node.domain = _stand_in(one.device, devices), ""
        _write(node, properties)
    if marks is NodeMarks.DOMAINS and own_domain not in {entry.domain for entry in model.opset_import}:
        model.opset_import.add(domain=own_domain, version=1)


def _stand_in(device: str | None, devices: Sequence[str]) -> str:
    return _UNCOLORED if device is None else _PALETTE[devices.index(device) % len(_PALETTE)]


def _raise_version(model: ModelProto) -> None:
    """Raise the IR version to the first that has metadata of nodes, with the same meaning of the model."""
    if model.ir_version < _FIRST_IR_WITH_CONSTANT_INITIALIZERS:
        # Until then every initializer had to be an input as well; from then on that makes it a default that a caller
        # may override, which is no constant any more.
        constants = {tensor.name for tensor in model.graph.initializer}
        kept = [info for info in model.graph.input if info.name not in constants]
        del model.graph.input[:]
        model.graph.input.extend(kept)
    if not model.opset_import:
        model.opset_import.add(domain="", version=1)
    model.ir_version = max(model.ir_version, FIRST_IR_WITH_NODE_METADATA)


def _write(place: ModelProto | NodeProto, texts: Mapping[str, str]) -> None:
    kept = [entry for entry in place.metadata_props if not entry.key.startswith(PREFIX)]
    entries = [(entry.key, entry.value) for entry in kept]
    del place.metadata_props[:]
    for key, value in (*entries, *((f"{PREFIX}{key}", value) for key, value in texts.items())):
        place.metadata_props.add(key=key, value=value)
