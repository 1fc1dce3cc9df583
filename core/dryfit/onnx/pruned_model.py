"""A copy of an ONNX model in which the weights of some nodes have other values: those of a pruning."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto

from dryfit.attrs_classes import frozen
from dryfit.network.tensor import Array
from dryfit.onnx.editing.model_graph import node_name, used_names
from dryfit.onnx.external_data import ExternalData
from dryfit.onnx.tensors import array_of

WEIGHT_INPUTS = {"Conv": 1, "QLinearConv": 3}
"""Operator to the input that has its weights."""

_PASSING = frozenset({"QuantizeLinear", "DequantizeLinear", "Cast", "Identity"})
"""Operators whose first input goes on element by element."""


@frozen(eq=False)
class ExchangedWeights:
    """Other values for weights that some nodes share.

    Attributes:
        nodes: names of the nodes that compute with them.
        before: as the model has them.
        after: of the same type and number.
    """

    nodes: Sequence[str]
    before: Array
    after: Array


def with_weights(
    model: ModelProto, external: ExternalData, exchanged: Sequence[ExchangedWeights]
) -> tuple[ModelProto, list[ExchangedWeights]]:
    """A copy of a model with other weights, and what could not be exchanged.

    Weights are looked for where the nodes read them, through quantizations and casts, among initializers and constants.
    What the model computes, has in a function, or uses elsewhere too, stays as it is.

    Args:
        model: is not changed.
        external: where its external data lie; what is exchanged stands in the copy itself.
        exchanged: what to exchange.

    Raises:
        OnnxImportError: a tensor of the model is damaged.
    """
    copy = ModelProto()
    copy.CopyFrom(model)
    stored = _StoredWeights(copy)
    missing = []
    for one in exchanged:
        names = stored.names(one.nodes)
        tensors = [tensor for name in names if (tensor := stored.tensor(name)) is not None]
        is_known = bool(names) and len(tensors) == len(names) and stored.readers(names) <= set(one.nodes)
        if is_known and all(_holds(tensor, external, one.before) for tensor in tensors):
            for tensor in tensors:
                _store(tensor, one.after)
        else:
            missing.append(one)
    return copy, missing


class _StoredWeights:
    """Where a model has the weights of its nodes.

    Args:
        model: tensors of it are handed out, to be written to.
    """

    def __init__(self, model: ModelProto) -> None:
        graph = model.graph
        self._nodes = {node_name(node): node for node in graph.node}
        self._producers = {name: node for node in graph.node for name in node.output}
        self._initializers = {tensor.name: tensor for tensor in graph.initializer}
        self._outputs = {info.name for info in graph.output}
        self._uses: dict[str, list[NodeProto]] = {}
        for node in graph.node:
            for name in used_names(node):
                self._uses.setdefault(name, []).append(node)

    def names(self, nodes: Sequence[str]) -> set[str]:
        """The values that the weights of nodes come from."""
        found = set()
        for node in (self._nodes[name] for name in nodes if name in self._nodes):
            if node.op_type in WEIGHT_INPUTS:
                name = node.input[WEIGHT_INPUTS[node.op_type]]
                while name in self._producers and self._producers[name].op_type in _PASSING:
                    name = self._producers[name].input[0]
                found.add(name)
        return found

    def tensor(self, name: str) -> TensorProto | None:
        """What the model has under a name; None where it computes the value."""
        if name in self._initializers:
            tensor: TensorProto = self._initializers[name]
            return tensor
        producer = self._producers.get(name)
        if producer is None or producer.op_type != "Constant":
            return None
        tensors: list[TensorProto] = [one.t for one in producer.attribute if one.name == "value"]
        return tensors[0] if tensors else None

    def readers(self, names: Iterable[str]) -> set[str]:
        """The names of all nodes that compute with values; "" for the caller, who gets one as an output."""
        found, open_names = set(), list(names)
        while open_names:
            name = open_names.pop()
            found |= {""} if name in self._outputs else set()
            for node in self._uses.get(name, ()):
                if node.op_type in _PASSING and node.input[0] == name:
                    open_names.extend(node.output)
                else:
                    found.add(node_name(node))
        return found


def _holds(tensor: TensorProto, external: ExternalData, values: Array) -> bool:
    found = array_of(tensor, external)
    return found.dtype == values.dtype and np.array_equal(found.reshape(-1), values.reshape(-1))


def _store(tensor: TensorProto, values: Array) -> None:
    """Put values of its own type and number into a tensor."""
    new = TensorProto(
        name=tensor.name,
        data_type=tensor.data_type,
        dims=tensor.dims,
        doc_string=tensor.doc_string,
        raw_data=values.tobytes(),
    )
    tensor.CopyFrom(new)
