"""The graph of an ONNX model as an edit sees it: nodes, constants, shapes, and who uses what."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from dryfit.errors import OnnxImportError
from dryfit.network.tensor import Array
from dryfit.onnx.editing.shape_table import ShapeTable, known_values
from dryfit.onnx.external_data import ExternalData
from dryfit.onnx.tensors import array_of

Extents = tuple[int | None, ...]
"""The shape of a value; None for an extent that is not known before the model runs."""


class ModelGraph:
    """A copy of a model that can be rewritten. Nodes keep their identity: they may be compared with `is`.

    Args:
        model: is not changed.
        external: where its external data may lie.

    Example:
        >>> graph = ModelGraph(model, ExternalData(None))
        >>> [node.op_type for node in graph.nodes]
        ['GlobalAveragePool', 'Flatten']
    """

    def __init__(self, model: ModelProto, external: ExternalData) -> None:
        self._model = ModelProto()
        self._model.CopyFrom(model)
        self._external = external
        self.nodes: list[NodeProto] = [_copied(node) for node in model.graph.node]
        self._initializers = {tensor.name: tensor for tensor in self._model.graph.initializer}
        self._inputs = {info.name for info in self._model.graph.input} - set(self._initializers)
        self._outputs = {info.name for info in self._model.graph.output}
        self._names = {name for node in self.nodes for name in (*node.input, *node.output, node.name)}
        self._names |= self._inputs | set(self._initializers)
        self._made: list[NodeProto] = []
        self._made_ids: set[int] = set()
        self._shapes: ShapeTable | None = None
        self._unseen: set[int] = set()
        self._uses: Uses | None = None

    # What is there ------------------------------------------------------------------------------------------------

    @property
    def opset(self) -> int:
        """The version of ONNX's own operators."""
        versions = [entry.version for entry in self._model.opset_import if entry.domain in ("", "ai.onnx")]
        return versions[0] if versions else 1

    def producer(self, name: str) -> NodeProto | None:
        """The node that computes a value; None for inputs and initializers."""
        return self._indexed().producers.get(name)

    def consumers(self, name: str) -> list[NodeProto]:
        """The nodes that use a value, also inside their branches and loop bodies."""
        return list(self._indexed().consumers.get(name, ()))

    def holds(self, node: NodeProto) -> bool:
        """Whether the node is in the graph now."""
        return id(node) in self._indexed().members

    def is_made(self, node: NodeProto) -> bool:
        """Whether an edit made the node."""
        return id(node) in self._made_ids

    def is_output(self, name: str) -> bool:
        """Whether a value is an output of the model."""
        return name in self._outputs

    def has_one_use(self, name: str) -> bool:
        """Whether one node uses a value, and the caller does not get it."""
        return not self.is_output(name) and len(self.consumers(name)) == 1

    def shape(self, name: str) -> Extents | None:
        """The shape of a value; None where not even its rank is known."""
        return self._table(name).shape(name)

    def shape_behind_batch(self, name: str, rank: int | None = None) -> tuple[int, ...] | None:
        """All extents of a value but the first, which may be dynamic; None where another one is not known.

        Args:
            name: the value.
            rank: that it must have; None for any of 1 and more.
        """
        shape = self.shape(name)
        if not shape or (rank is not None and len(shape) != rank):
            return None
        rest = tuple(extent for extent in shape[1:] if extent is not None and extent > 0)
        return rest if len(rest) == len(shape) - 1 else None

    def data_type(self, name: str) -> int:
        """ONNX's number of a value's element type; 0 where it is not known."""
        return self._table(name).data_type(name)

    def constant(self, name: str) -> Array | None:
        """The contents of a value that is known now: an initializer, a constant, or these reshaped."""
        if name in self._initializers:
            return array_of(self._initializers[name], self._external)
        producer = self.producer(name) if name else None
        return None if producer is None else known_values(producer, self.constant)

    def bias(self, node: NodeProto) -> Array | None:
        """The bias of a weighted sum, one zero where it has none; None where it is not known now."""
        has_bias = len(node.input) > 2 and bool(node.input[2])
        return self.constant(node.input[2]) if has_bias else np.zeros(1)

    # What can be changed ------------------------------------------------------------------------------------------

    def fresh_name(self, name: str) -> str:
        """A name that nothing has yet: the one that was asked for, or that with a number."""
        chosen, number = name, 1
        while chosen in self._names:
            chosen, number = f"{name}_{number}", number + 1
        self._names.add(chosen)
        return chosen

    def add_constant(self, name: str, values: Array) -> str:
        """Add an initializer; returns the name that it got."""
        chosen = self.fresh_name(name)
        self.put_constant(chosen, values)
        return chosen

    def put_constant(self, name: str, values: Array) -> None:
        """Add an initializer of a name that is free, or whose node will be taken out."""
        tensor = numpy_helper.from_array(np.ascontiguousarray(values).reshape(np.shape(values)), name)
        self._model.graph.initializer.append(tensor)
        self._initializers[name] = self._model.graph.initializer[-1]
        if self._shapes is not None:
            self._shapes.add_constant(self._initializers[name])

    def scalar_like(self, name: str, values: Sequence[float] | float, like: str) -> str:
        """Add an initializer of the element type that the value `like` has."""
        dtype = helper.tensor_dtype_to_np_dtype(self.data_type(like))
        return self.add_constant(name, np.asarray(values, dtype))

    def new_node(
        self, operator: str, inputs: Sequence[str], *, name: str, output: str | None = None, **attributes: Any
    ) -> NodeProto:
        """A node that is not in the graph yet; `replace` and the methods below put it there.

        Args:
            operator: ONNX's name.
            inputs: values.
            name: of the node, made unique.
            output: the value that it computes; None for a new one.
            attributes: those that are None are left out.
        """
        unique = self.fresh_name(name)
        given = {key: value for key, value in attributes.items() if value is not None}
        node = helper.make_node(operator, inputs, [output or self.fresh_name(f"{unique}_out")], unique, **given)
        self._made.append(node)
        self._made_ids.add(id(node))
        return node

    def replace(self, old: NodeProto, new: Sequence[NodeProto]) -> None:
        """Put nodes in the place of one; one of them has to compute what that one did, where it is used."""
        position = next(index for index, node in enumerate(self.nodes) if node is old)
        if new:
            # The user looks for the node that he knows: the last of the new ones takes its name, or its lack of one.
            new[-1].name = old.name
        uses = self._indexed()
        self.nodes[position : position + 1] = new
        uses.remove(old)
        for node in new:
            uses.add(node)
            self._unseen.add(id(node))

    def insert(self, node: NodeProto) -> None:
        """Put a node that reads only inputs and constants before all others."""
        self.nodes.insert(0, node)
        self._indexed().add(node)
        self._unseen.add(id(node))

    def insert_behind(self, node: NodeProto, new: NodeProto) -> None:
        """Put a node right behind another one; both may have been changed in place."""
        position = next(index for index, one in enumerate(self.nodes) if one is node)
        self.nodes.insert(position + 1, new)
        self.changed()

    def compute_behind(
        self, node: NodeProto, operator: str, inputs: Sequence[str] = (), *, name: str, inside: str
    ) -> NodeProto:
        """Compute something of a node's output for all that use it, which keeps its name.

        Args:
            node: with one output.
            operator: ONNX's name.
            inputs: values behind the first one, which is what the node gives.
            name: of the new node, made unique.
            inside: of what the node gives from now on, made unique.
        """
        output = node.output[0]
        node.name, node.output[0] = node_name(node), self.fresh_name(inside)
        new = self.new_node(operator, [node.output[0], *inputs], name=name, output=output)
        self.insert_behind(node, new)
        return new

    def redirect(self, old: str, new: str) -> None:
        """Let every node that uses one value use another instead."""
        uses = self._indexed()
        for node in self.consumers(old):
            uses.remove(node)
            for index, name in enumerate(node.input):
                if name == old:
                    node.input[index] = new
            uses.add(node)

    def changed(self) -> None:
        """Say that nodes were changed in place, so that shapes and uses are found anew."""
        self._shapes = self._uses = None

    def fix_inputs(self, shapes: dict[str, Sequence[int]]) -> None:
        """Give inputs of the model the extents that are asked for, except that of the batch, the first one."""
        for info in self._model.graph.input:
            for index, extent in enumerate(shapes.get(info.name, ())):
                dim = info.type.tensor_type.shape.dim[index]
                if index and not dim.HasField("dim_value"):
                    dim.dim_value = extent
        self.changed()

    def model(self) -> ModelProto:
        """The model as it is now, without nodes, constants and facts that nothing uses any more."""
        self._remove_unused()
        graph = self._model.graph
        del graph.node[:]
        graph.node.extend(self.nodes)
        used = {name for node in self.nodes for name in used_names(node)} | self._outputs
        gone = [(index, tensor.name) for index, tensor in enumerate(graph.initializer) if tensor.name not in used]
        if gone:
            for index, _ in reversed(gone):  # the others stay where they are: a copy of all weights takes long
                del graph.initializer[index]
            # Before IR version 4 an initializer is an input too.
            names = {name for _, name in gone}
            _refill(graph.input, [info for info in graph.input if info.name not in names])
        self._declare_initializers()
        computed = {name for node in self.nodes for name in node.output}
        _refill(graph.value_info, [info for info in graph.value_info if info.name in computed])
        return self._model

    def _declare_initializers(self) -> None:
        """Before IR version 4, initializers have to be inputs too."""
        graph = self._model.graph
        if self._model.ir_version >= 4:
            return
        declared = {info.name for info in graph.input}
        for tensor in graph.initializer:
            if tensor.name not in declared:
                graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)))

    def _remove_unused(self) -> None:
        needed, kept = set(self._outputs), []
        for node in reversed(self.nodes):
            if needed.intersection(node.output):
                kept.append(node)
                needed.update(used_names(node))
        self.nodes = kept[::-1]
        self.changed()

    def _indexed(self) -> Uses:
        if self._uses is None:
            self._uses = Uses()
            for node in self.nodes:
                self._uses.add(node)
        return self._uses

    def _table(self, name: str) -> ShapeTable:
        """The shapes, with those of the nodes that were put in since, where the value is one of theirs.

        A rewrite keeps the values that were there, so that only what new nodes compute has to be inferred. Inferring
        the whole graph after each of hundreds of rewrites took most of the time of `explain`.
        """
        if self._shapes is None:
            self._shapes = ShapeTable(self._model, self.nodes)
            self._unseen.clear()
        elif self._unseen and not self._shapes.knows(name):
            self._shapes.add_nodes([node for node in self.nodes if id(node) in self._unseen])
            self._unseen.clear()
        return self._shapes


class Uses:
    """Who computes and who uses each value, kept up to date as nodes come and go.

    Attributes:
        producers: value to the node that computes it.
        consumers: value to the nodes that use it, also inside their branches and loop bodies.
        members: identities of the nodes that are there.
    """

    def __init__(self) -> None:
        self.producers: dict[str, NodeProto] = {}
        self.consumers: dict[str, list[NodeProto]] = {}
        self.members: set[int] = set()

    def add(self, node: NodeProto) -> None:
        """A node that comes."""
        self.members.add(id(node))
        self.producers.update((name, node) for name in node.output if name)
        for name in dict.fromkeys(used_names(node)):
            self.consumers.setdefault(name, []).append(node)

    def remove(self, node: NodeProto) -> None:
        """A node that goes; what it uses and computes must be as it was when it came."""
        self.members.discard(id(node))
        for name in node.output:
            if self.producers.get(name) is node:
                del self.producers[name]
        for name in dict.fromkeys(used_names(node)):
            self.consumers[name] = [one for one in self.consumers.get(name, ()) if one is not node]


def node_name(node: NodeProto) -> str:
    """The name of a node as the importer gives it to its layer."""
    return node.name or f"node_of_{next(iter(node.output), '')}"


def used_names(node: NodeProto) -> Iterator[str]:
    """The values that a node uses, also those that graphs inside it take from outside."""
    yield from node.input
    for attribute in node.attribute:
        graphs = [attribute.g] if attribute.type == onnx.AttributeProto.GRAPH else attribute.graphs
        for graph in graphs:
            for inner in graph.node:
                yield from used_names(inner)
            yield from (info.name for info in graph.output)


def attribute(node: NodeProto, name: str, default: Any = None) -> Any:
    """The value of an attribute: int, float, str, list of ints or floats; `default` where it is not given.

    Raises:
        OnnxImportError: it is a text that is no UTF-8.
    """
    for one in node.attribute:
        if one.name != name:
            continue
        value = helper.get_attribute_value(one)
        try:
            return value.decode() if isinstance(value, bytes) else list(value) if _is_list(value) else value
        except UnicodeDecodeError as error:
            raise OnnxImportError(
                "The string is not valid UTF-8",
                where=f"node {node.name!r}, attribute {name!r}",
                remedy="The file is damaged; export the model again",
            ) from error
    return default


def _is_list(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, (str, TensorProto))


def _copied(node: NodeProto) -> NodeProto:
    copy = NodeProto()
    copy.CopyFrom(node)
    return copy


def _refill(field: Any, entries: Sequence[Any]) -> None:
    copies = [type(entry).FromString(entry.SerializeToString()) for entry in entries]
    del field[:]
    field.extend(copies)
