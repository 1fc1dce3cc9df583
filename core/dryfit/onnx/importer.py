"""Import of an ONNX graph to a network, node by node; all reasons for a failure are collected before raising."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import onnx
from onnx import FunctionProto, GraphProto, NodeProto, TensorProto, ValueInfoProto

from dryfit.errors import DryfitError, OnnxImportError, UnknownNameError
from dryfit.network.layers.generators import Constant
from dryfit.network.network import Network
from dryfit.network.tensor import Array, Shape, Tensor, TensorSpec
from dryfit.onnx.bodies import BodyScope, ImportedBody, Scope, finished_body
from dryfit.onnx.external_data import ExternalData
from dryfit.onnx.functions import LARGEST_NODE_COUNT, bound_body, nodes_written_out, sorted_nodes, too_many_nodes
from dryfit.onnx.graph_borders import (
    DeclaredTypes,
    add_graph_input,
    claim_name,
    keep_metadata,
    mark_graph_output,
    name_dimensions,
    name_weights,
    named_results,
    remove_unused_layers,
)
from dryfit.onnx.model_file import ModelSource, SharedModel, read_model
from dryfit.onnx.node import LayerHost, Node
from dryfit.onnx.node_meaning import meaning_of
from dryfit.onnx.problems import ErrorCode, ImportProblem, ModelRefusedError, NodeRefusedError
from dryfit.onnx.registry import (
    NEWEST_OPSET,
    OLDEST_OPSET,
    UNSEEN_BODIES,
    Result,
    TrialNetwork,
    UnseenOperand,
    UnseenValueError,
    looked_at_behind,
    stated_spec,
    unseen_operand,
)
from dryfit.onnx.tensors import NodeInput, array_of
from dryfit.plugins.contributions import ImportedModel, ImportOptions, ModelImporter

DEEPEST_NESTING = 64
"""Functions and subgraphs inside each other. Our choice: real models have a few, and a file can let a function call
itself."""


def network_from_onnx(
    source: ModelSource,
    *,
    folder: Path | None = None,
    constants: Mapping[str, Array] | None = None,
    flags: int = 0,
    quantize_method: str = "",
    shapes: Mapping[str, Shape] | None = None,
) -> Network:
    """Return the network of an ONNX model.

    Layers have the names of their nodes, and tensors the names of ONNX values. Constants are folded during the import.

    Args:
        source: a path, the bytes of a model file, a `ModelProto`, or a model that shares its weights.
        folder: folder with the external data, if `source` is bytes or a `ModelProto`.
        constants: fixed contents of graph inputs, which are then not inputs of the network.
        flags: creation flags of the network: a mask of `NetworkDefinitionCreationFlag`. Types are always those of the
            model.
        quantize_method: quantize method of the network. With any value, even "none", integer biases stay integers, and
            operators that compute on quantized integers directly (`QLinearConv`) are imported.
        shapes: shape by name of graph inputs with dynamic dimensions, which are then static.

    Raises:
        ModelRefusedError: The model contains nodes that cannot be imported. An `OnnxImportError` that lists every such
            node with the reason.
        OnnxImportError: The file is not a complete ONNX model, or a shape does not fit its input.
        UnknownNameError: A shape is for no input of the model.
    """
    model, external = (source.model, source.external) if isinstance(source, SharedModel) else read_model(source, folder)
    inputs = {info.name for info in model.graph.input}
    for name in shapes or {}:
        if name not in inputs:
            raise UnknownNameError("input", name, inputs)
    network = Network(model.graph.name or "network", flags)
    network.quantize_method = quantize_method
    graph = GraphImport(network, model, external, constants or {}, shapes or {})
    if graph.run():
        raise ModelRefusedError(graph.problems, graph.half_seen_nodes)
    return network


class GraphImport:
    """The import of one model into a network."""

    def __init__(
        self,
        network: Network,
        model: onnx.ModelProto,
        external: ExternalData,
        constants: Mapping[str, Array],
        shapes: Mapping[str, Shape],
    ) -> None:
        self.network = network
        self.problems: list[ImportProblem] = []
        self.half_seen_nodes = 0
        self._declared_types: DeclaredTypes = {}
        self._model = model
        self._external = external
        self._constants = constants
        self._shapes = shapes
        self._functions = {(function.domain, function.name): function for function in model.functions}
        self._reasons_kept = _ReasonsKept(self)
        self._node_count = 0
        self._nesting = 0
        self._top_level_index = -1
        self._first_layer = len(network.layers)
        self._stated = {info.name: info for info in (*model.graph.input, *model.graph.output, *model.graph.value_info)}

    def run(self) -> list[ImportProblem]:
        """Import the graph; return the reasons why it cannot be imported, empty on success."""
        graph = self._model.graph
        opsets = {_domain(entry.domain): entry.version for entry in self._model.opset_import}
        if not self._check_opset(opsets.get("")):
            return self.problems
        if nodes_written_out(graph.node, self._functions, LARGEST_NODE_COUNT) > LARGEST_NODE_COUNT:
            self.refuse(str(too_many_nodes()))
            return self.problems
        scope = Scope()
        self._add_initializers(graph, scope)
        for info in graph.input:
            if info.name not in scope:
                scope[info.name] = None
                with self._reasons_kept:
                    scope[info.name] = self._input(info)
        with self._reasons_kept:
            self._import_nodes(graph.node, scope, opsets, "")
        for info in graph.output if not self.problems else ():
            with self._reasons_kept:
                self._mark_output(info.name, scope)
        if not self.problems:
            remove_unused_layers(self.network, self._first_layer)
            name_dimensions(self.network, graph)
            name_weights(self.network, (scope[tensor.name] for tensor in graph.initializer))
            keep_metadata(self.network, self._model)
        return self.problems

    def _add_initializers(self, graph: GraphProto, scope: Scope) -> None:
        for tensor in graph.initializer:
            scope[tensor.name] = None
            with self._reasons_kept:
                scope[tensor.name] = NodeInput.known(tensor.name, self.array_of(tensor))
        for sparse in graph.sparse_initializer:
            self.refuse(f"tensor {sparse.values.name!r}: Sparse initializers are not supported")

    # What nodes ask for -------------------------------------------------------------------------------------------

    def array_of(self, tensor: TensorProto) -> Array:
        """Return the contents of a tensor of the model."""
        return array_of(tensor, self._external)

    def tensor_of(self, operand: NodeInput) -> Tensor:
        """Return the network tensor of an operand; known contents are added as a constant layer, once."""
        if operand.tensor is None and operand.value is not None:
            layer = Constant(weights=operand.value, shape=operand.shape)
            layer.name = operand.name
            self.network.add_layer(layer, [])
            operand.tensor = layer.outputs[0]
            claim_name(self.network, operand.tensor, operand.name)
        if operand.tensor is None:
            raise NodeRefusedError(
                "The value is neither a constant nor the output of a node",
                found=operand.name,
                allowed="a constant, an input of the graph or the output of an earlier node",
                remedy="Fix the names of inputs in the model",
            )
        return operand.tensor

    # Nodes --------------------------------------------------------------------------------------------------------

    def _import_nodes(
        self,
        nodes: Sequence[NodeProto],
        scope: Scope,
        opsets: Mapping[str, int],
        prefix: str,
    ) -> None:
        for index, proto in sorted_nodes(nodes, scope):
            self._node_count += 1
            if not prefix:
                self._top_level_index = index
            if self._node_count > LARGEST_NODE_COUNT:
                raise too_many_nodes()
            names = list(proto.output)
            outputs: list[NodeInput | None] = [None] * len(names)
            name = prefix + (proto.name or f"node_of_{next(iter(names), proto.op_type)}")
            try:
                results = self._import_node(proto, name, names, scope, opsets, prefix)
                outputs[: len(results)] = results[: len(outputs)]
            except UnseenValueError:
                self.half_seen_nodes += 1
            except DryfitError as error:
                self._refuse_node(proto, name, error)
            except MemoryError as error:
                refusal = NodeRefusedError(
                    "Not enough memory for the node's constants",
                    code=ErrorCode.MEM_ALLOC_FAILED,
                    found=error,
                    remedy="Compute the constants at run time, or use a machine with more memory",
                )
                self._refuse_node(proto, name, refusal)
            except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as error:
                refusal = NodeRefusedError(
                    "The node is malformed",
                    code=ErrorCode.INVALID_NODE,
                    found=f"{type(error).__name__}: {error}",
                    remedy="Fix the node, or export the model again",
                )
                self._refuse_node(proto, name, refusal)
            for output, operand in zip(names, outputs, strict=True):
                if output:
                    scope[output] = operand

    def _import_node(
        self,
        proto: NodeProto,
        name: str,
        outputs: Sequence[str],
        scope: Scope,
        opsets: Mapping[str, int],
        prefix: str,
    ) -> list[NodeInput | None]:
        domain = _domain(proto.domain)
        opset = opsets.get(domain, 1)
        read = list(proto.input)
        inputs = [self._looked_up(value, scope, prefix) for value in read]
        meaning = meaning_of(proto, domain, opset, self._functions.get((proto.domain, proto.op_type)), inputs)
        taken = [output for output in outputs if output in scope and output]
        if taken:
            raise NodeRefusedError(
                "Every value must be produced by exactly one node",
                code=ErrorCode.INVALID_GRAPH,
                found=taken[0],
                remedy="Rename the output of one of the nodes",
            )
        missing = [value for value in read if value and not scope.knows(value)]
        if missing:
            raise NodeRefusedError(
                "Every input must be produced by another node, without a cycle",
                code=ErrorCode.INVALID_GRAPH,
                found=", ".join(missing),
                remedy="Fix the inputs of the node",
            )
        if isinstance(meaning, FunctionProto):
            return self._import_function(meaning, proto, name, prefix, inputs)

        bodies = _NodeBodies(self, scope, opsets, name)

        def import_into(host: LayerHost, operands: Sequence[NodeInput | None]) -> list[NodeInput]:
            node = Node(proto, name, opset, operands, host, bodies if host is self else UNSEEN_BODIES)
            results = _as_list(meaning(node))
            wanted = [index for index, output in enumerate(outputs) if output]
            if wanted and wanted[-1] >= len(results):
                raise NodeRefusedError(
                    "This output of the node is not supported",
                    found=outputs[wanted[-1]],
                    allowed="its first output" if len(results) == 1 else f"its first {len(results)} outputs",
                    remedy="Remove what reads the output",
                )
            node.finish()
            return results

        if any(isinstance(operand, UnseenOperand) for operand in inputs):
            return [*looked_at_behind(lambda tried: import_into(TrialNetwork(self.array_of), tried), inputs)]
        results = import_into(self, inputs)
        made_by = f"{name}/" if bodies.is_inlined else name
        return named_results(self.network, results, outputs, prefix, made_by)

    def _looked_up(self, value: str, scope: Scope, prefix: str) -> NodeInput | None:
        """The operand of a node's input; None where it is absent, or nothing produces it."""
        operand = scope.find(value)
        if operand is not None or not value or not scope.knows(value):
            return operand
        info = None if prefix else self._stated.get(value)  # inside a function the model states nothing
        return unseen_operand(value, None if info is None else stated_spec(info))

    def _import_function(
        self, function: FunctionProto, proto: NodeProto, name: str, prefix: str, inputs: Sequence[NodeInput | None]
    ) -> list[NodeInput | None]:
        inner = Scope({"": None})
        inner.update(dict(zip(function.input, inputs, strict=False)))
        absent = {value for value in function.input if inner.get(value) is None}
        opsets = {_domain(entry.domain): entry.version for entry in function.opset_import}
        with self._nested():
            self._import_nodes(bound_body(function, proto, absent), inner, opsets, f"{name}/")
        results = [inner.get(value) for value in function.output]
        return named_results(self.network, results, proto.output, prefix, f"{name}/")

    # Subgraphs ----------------------------------------------------------------------------------------------------

    def import_body(
        self,
        graph: GraphProto,
        inputs: Sequence[TensorSpec | None],
        scope: Scope,
        opsets: Mapping[str, int],
        name: str,
    ) -> ImportedBody:
        """Import a subgraph of a node as a network of its own; see `NodeBodies.body`."""
        body = Network(f"{name}/{graph.name}" if graph.name else name, self.network.flags)
        body.quantize_method = self.network.quantize_method
        inner = BodyScope(scope, body)
        for info, spec in zip(graph.input, inputs, strict=True):
            if spec is not None and spec.value is not None:
                inner[info.name] = NodeInput.known(info.name, spec.value)
            elif spec is not None:
                tensor = body.add_input(body.free_tensor_name(f"{name}/{info.name}"), spec.dtype, spec.shape)
                inner[info.name] = NodeInput(info.name, tensor.spec, tensor)
        around, self.network = self.network, body
        try:
            outputs = self.import_subgraph(graph, inner, opsets, name)
            captured = finished_body(body, inner, [self.tensor_of(operand) for operand in outputs])
        finally:
            self.network = around
        return ImportedBody(body, captured, outputs)

    def import_subgraph(
        self, graph: GraphProto, scope: BodyScope, opsets: Mapping[str, int], name: str
    ) -> list[NodeInput]:
        """Import the nodes of a subgraph into the network that is being made; returns the subgraph's outputs."""
        before = len(self.problems), self.half_seen_nodes
        self._add_initializers(graph, scope)
        with self._nested():
            self._import_nodes(graph.node, scope, opsets, f"{name}/")
        outputs = [scope.find(info.name) for info in graph.output]
        if (len(self.problems), self.half_seen_nodes) != before:
            raise UnseenValueError(name)
        for info, operand in zip(graph.output, outputs, strict=True):
            if operand is None:
                raise NodeRefusedError(
                    "No node produces this output of the subgraph",
                    code=ErrorCode.INVALID_GRAPH,
                    found=info.name,
                    allowed="an output of a node, or a value of the graph around it",
                    remedy="Remove the output, or correct its name",
                )
        return [operand for operand in outputs if operand is not None]

    @contextlib.contextmanager
    def _nested(self) -> Iterator[None]:
        """Count one more level of functions and subgraphs.

        Raises:
            NodeRefusedError: There are too many.
        """
        if self._nesting >= DEEPEST_NESTING:
            raise NodeRefusedError(
                "Functions and subgraphs are nested too deeply",
                found=f"more than {DEEPEST_NESTING} levels",
                remedy="Inline the functions before the import",
            )
        self._nesting += 1
        try:
            yield
        finally:
            self._nesting -= 1

    # Borders ------------------------------------------------------------------------------------------------------

    def _input(self, info: ValueInfoProto) -> NodeInput:
        if info.name in self._constants:
            return NodeInput.known(info.name, self._constants[info.name])
        return add_graph_input(self.network, info, self._declared_types, self._shapes.get(info.name))

    def _mark_output(self, name: str, scope: Scope) -> None:
        operand = scope.get(name)
        if operand is None:
            raise OnnxImportError(
                "No node produces this graph output",
                where=f"output {name!r}",
                remedy="Remove the output, or correct its name",
            )
        mark_graph_output(self.network, self.tensor_of(operand), name)

    # Reasons ------------------------------------------------------------------------------------------------------

    def _check_opset(self, opset: int | None) -> bool:
        if opset is None or opset <= NEWEST_OPSET:
            return True
        self.refuse(
            f"Opset {opset} is not supported (allowed: {OLDEST_OPSET} to {NEWEST_OPSET}). Convert the "
            "model, for example with onnx.version_converter"
        )
        return False

    def refuse(self, reason: str) -> None:
        """Note why the graph cannot be imported."""
        self.problems.append(ImportProblem(ErrorCode.INVALID_GRAPH, reason))

    def _refuse_node(self, proto: NodeProto, name: str, error: DryfitError) -> None:
        code = error.code if isinstance(error, NodeRefusedError) else ErrorCode.INVALID_NODE
        needs = error.needs_constants if isinstance(error, NodeRefusedError) else frozenset()
        operator = f"{proto.domain}.{proto.op_type}" if _domain(proto.domain) else proto.op_type
        self.problems.append(ImportProblem(code, str(error), self._top_level_index, name, operator, needs))


class _ReasonsKept:
    """Lets an import go on after what cannot be imported, with the reason."""

    def __init__(self, graph: GraphImport) -> None:
        self._graph = graph

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        if isinstance(error, DryfitError):
            self._graph.refuse(str(error))
        return isinstance(error, DryfitError)


class _NodeBodies:
    """Imports the subgraphs of one node.

    Attributes:
        is_inlined: whether one took the node's place.
    """

    def __init__(self, graph: GraphImport, scope: Scope, opsets: Mapping[str, int], name: str) -> None:
        self._graph = graph
        self._scope = scope
        self._opsets = opsets
        self._name = name
        self.is_inlined = False

    def body(self, graph: GraphProto, inputs: Sequence[TensorSpec | None]) -> ImportedBody:
        """Import a subgraph as a network of its own."""
        return self._graph.import_body(graph, inputs, self._scope, self._opsets, self._name)

    def inline(
        self, graph: GraphProto, operands: Mapping[str, NodeInput] | None = None, opset: int | None = None
    ) -> list[NodeInput]:
        """Import the nodes of a subgraph into the network of the node; see `NodeBodies.inline`."""
        self.is_inlined = True
        scope = BodyScope(self._scope, None)
        scope.update(operands or {})
        opsets = self._opsets if opset is None else {**self._opsets, "": opset}
        return self._graph.import_subgraph(graph, scope, opsets, self._name)


def _domain(domain: str) -> str:
    return "" if domain == "ai.onnx" else domain


def _as_list(result: Result) -> list[NodeInput]:
    return [result] if isinstance(result, NodeInput) else list(result)


# The importer as a plugin ---------------------------------------------------------------------------------------------


def _read(source: ModelSource, options: ImportOptions) -> ImportedModel:
    network = network_from_onnx(
        source,
        folder=options.folder,
        flags=options.flags,
        quantize_method=options.quantize_method or "",
        shapes=options.shapes,
    )
    return ImportedModel(network)


IMPORTER = ModelImporter(
    name="onnx",
    title="ONNX",
    suffixes=(".onnx",),
    recognises=lambda first: False,  # a protobuf message has no signature
    read=_read,
)
"""The entry point `onnx` of the group `dryfit.importers`. It reads an `onnx.ModelProto`, too."""
