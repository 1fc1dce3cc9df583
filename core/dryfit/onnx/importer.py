"""From an ONNX graph to a network, node by node; every reason for a refusal is collected before anything is raised."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import attrs
import onnx
from onnx import FunctionProto, NodeProto, TensorProto, ValueInfoProto

from dryfit.errors import DryfitError, OnnxImportError
from dryfit.network.layers.constant import Constant
from dryfit.network.layers.identity import Identity
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor
from dryfit.onnx.behind import (
    TrialNetwork,
    UnseenOperand,
    UnseenValueError,
    looked_at_behind,
    stated_spec,
    unseen_operand,
)
from dryfit.onnx.external_data import ExternalData
from dryfit.onnx.finishing import keep_metadata, name_dimensions, remove_unused_layers
from dryfit.onnx.functions import bound_body, function_of, is_unchanged, sorted_nodes
from dryfit.onnx.layer_plugins import add_layer_plugin, has_layer_plugin, plugin_key, unknown_operator
from dryfit.onnx.model_file import ModelSource, read_model
from dryfit.onnx.node import LayerHost, Node
from dryfit.onnx.operand import Array, Operand
from dryfit.onnx.problems import ErrorCode, ImportProblem, ModelRefusedError, NodeRefusedError
from dryfit.onnx.registry import NEWEST_OPSET, OLDEST_OPSET, Result, find_importer
from dryfit.onnx.tensors import array_of, data_type

LARGEST_NODE_COUNT = 500_000
"""Nodes after functions are put in their callers' places. Our choice: a small file can nest functions so that the
count doubles at every level."""
DEEPEST_NESTING = 64
"""Functions inside functions. Our choice: real models have a few, and a file can let a function call itself."""

Scope = dict[str, Operand | None]
"""Operands by ONNX name; None where nothing but what the model states is known, because its producer was refused."""


def network_from_onnx(
    source: ModelSource, *, folder: Path | None = None, constants: Mapping[str, Array] | None = None
) -> Network:
    """The network of an ONNX model.

    Layers carry the names of their nodes and tensors the names of ONNX values. What can be computed now is.

    Args:
        source: a path, the bytes of a model file, or a `ModelProto`.
        folder: where the external data of bytes or of a `ModelProto` lie.
        constants: contents of graph inputs that are to be fixed; those are then no inputs of the network.

    Raises:
        ModelRefusedError: an `OnnxImportError` that lists every node that cannot be imported, and why.
        OnnxImportError: the file is no whole ONNX model.
    """
    model, external = read_model(source, folder)
    network = Network(model.graph.name or "network")
    graph = GraphImport(network, model, external, constants or {})
    if graph.run():
        raise ModelRefusedError(graph.problems, graph.half_seen_nodes)
    return network


class GraphImport:
    """The import of one model into a network.

    Args:
        network: takes the layers.
        model: the model; its graph is not changed.
        external: where its external data may lie.
        constants: contents of graph inputs that are to be fixed.
    """

    def __init__(
        self, network: Network, model: onnx.ModelProto, external: ExternalData, constants: Mapping[str, Array]
    ) -> None:
        self.network = network
        self.problems: list[ImportProblem] = []
        self.half_seen_nodes = 0
        self._model = model
        self._external = external
        self._constants = constants
        self._functions = {(function.domain, function.name): function for function in model.functions}
        self._node_count = 0
        self._nesting = 0
        self._top_level_index = -1
        self._first_layer = len(network.layers)
        self._stated = {info.name: info for info in (*model.graph.input, *model.graph.output, *model.graph.value_info)}

    def run(self) -> list[ImportProblem]:
        """Import the graph; the reasons why it cannot be, empty where it is."""
        graph = self._model.graph
        opsets = {_domain(entry.domain): entry.version for entry in self._model.opset_import}
        if not self._check_opset(opsets.get("")):
            return self.problems
        scope: Scope = {}
        for tensor in graph.initializer:
            scope[tensor.name] = None
            with self._reasons_kept():
                scope[tensor.name] = Operand.known(tensor.name, self.array_of(tensor))
        for sparse in graph.sparse_initializer:
            self._refuse(f"tensor {sparse.values.name!r}: Sparse initializers are not supported")
        for info in graph.input:
            if info.name not in scope:
                scope[info.name] = None
                with self._reasons_kept():
                    scope[info.name] = self._input(info)
        with self._reasons_kept():
            self._import_nodes(graph.node, scope, opsets, "")
        for info in graph.output if not self.problems else ():
            with self._reasons_kept():
                self._mark_output(info.name, scope)
        if not self.problems:
            remove_unused_layers(self.network, self._first_layer)
            name_dimensions(self.network, graph)
            keep_metadata(self.network, self._model)
        return self.problems

    # What nodes ask for -------------------------------------------------------------------------------------------

    def array_of(self, tensor: TensorProto) -> Array:
        """The contents of a tensor of the model."""
        return array_of(tensor, self._external)

    def tensor_of(self, operand: Operand) -> Tensor:
        """The network's tensor of an operand; a constant layer is added for known contents, once."""
        if operand.tensor is None and operand.value is not None:
            layer = Constant(weights=operand.value, shape=operand.shape)
            layer.name = operand.name
            self.network.add_layer(layer, [])
            operand.tensor = layer.outputs[0]
            self._claim_name(operand.tensor, operand.name)
        if operand.tensor is None:
            raise NodeRefusedError("A value is neither known nor computed", found=operand.name)
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
                raise NodeRefusedError(
                    "The graph has too many nodes", found=f"more than {LARGEST_NODE_COUNT}, functions written out"
                )
            outputs: list[Operand | None] = [None] * len(proto.output)
            name = prefix + (proto.name or f"node_of_{next(iter(proto.output), proto.op_type)}")
            try:
                results = self._import_node(proto, name, scope, opsets, prefix)
                outputs[: len(results)] = results[: len(outputs)]
            except UnseenValueError:
                self.half_seen_nodes += 1
            except DryfitError as error:
                self._refuse_node(proto, name, error)
            except (ArithmeticError, LookupError, MemoryError, RecursionError, TypeError, ValueError) as error:
                refusal = NodeRefusedError(
                    "The node is malformed", code=ErrorCode.INVALID_NODE, found=f"{type(error).__name__}: {error}"
                )
                self._refuse_node(proto, name, refusal)
            for output, operand in zip(proto.output, outputs, strict=True):
                if output:
                    scope[output] = operand

    def _import_node(
        self,
        proto: NodeProto,
        name: str,
        scope: Scope,
        opsets: Mapping[str, int],
        prefix: str,
    ) -> list[Operand | None]:
        domain = _domain(proto.domain)
        opset = opsets.get(domain, 1)
        if not domain and opset < OLDEST_OPSET and not is_unchanged(proto.op_type, opset, OLDEST_OPSET):
            raise NodeRefusedError(
                f"The operator meant something else before opset {OLDEST_OPSET}",
                found=f"opset {opset}",
                allowed=f"{OLDEST_OPSET} to {NEWEST_OPSET}",
                remedy="Convert the model, for example with onnx.version_converter",
            )
        inputs = [self._looked_up(value, scope, prefix) for value in proto.input]
        importer = find_importer(proto.op_type, domain, opset)
        function = self._functions.get((proto.domain, proto.op_type))
        is_plugin = importer is None and function is None and has_layer_plugin(plugin_key(proto))
        if importer is None and function is None and not is_plugin:
            function = function_of(proto, domain, opset, inputs)
            if function is None:
                raise unknown_operator(proto, domain, opset)
        taken = [output for output in proto.output if output and output in scope]
        if taken:
            raise NodeRefusedError("Two nodes produce one value", code=ErrorCode.INVALID_GRAPH, found=taken[0])
        missing = [value for value in proto.input if value and value not in scope]
        if missing:
            raise NodeRefusedError(
                "Nothing produces an input of the node, or the nodes form a cycle",
                code=ErrorCode.INVALID_GRAPH,
                found=", ".join(missing),
            )
        if function is not None and importer is None:
            return self._import_function(function, proto, name, prefix, inputs)

        def import_into(host: LayerHost, operands: Sequence[Operand | None]) -> list[Operand]:
            node = Node(proto, name, opset, operands, host)
            results = _as_list(importer.function(node) if importer is not None else add_layer_plugin(node))
            wanted = [index for index, output in enumerate(proto.output) if output]
            if wanted and wanted[-1] >= len(results):
                raise NodeRefusedError("An output of the node is not supported", found=proto.output[wanted[-1]])
            node.finish()
            return results

        if any(isinstance(operand, UnseenOperand) for operand in inputs):
            return [*looked_at_behind(lambda tried: import_into(TrialNetwork(self.array_of), tried), inputs)]
        return self._named(import_into(self, inputs), proto.output, prefix, name)

    def _looked_up(self, value: str, scope: Scope, prefix: str) -> Operand | None:
        """The operand of a node's input; None where it is absent, or nothing produces it."""
        operand = scope.get(value)
        if operand is not None or not value or value not in scope:
            return operand
        info = None if prefix else self._stated.get(value)  # inside a function the model states nothing
        return unseen_operand(value, None if info is None else stated_spec(info))

    def _import_function(
        self, function: FunctionProto, proto: NodeProto, name: str, prefix: str, inputs: Sequence[Operand | None]
    ) -> list[Operand | None]:
        inner: Scope = {"": None}
        inner.update(dict(zip(function.input, inputs, strict=False)))
        absent = {value for value in function.input if inner.get(value) is None}
        opsets = {_domain(entry.domain): entry.version for entry in function.opset_import}
        if self._nesting >= DEEPEST_NESTING:
            raise NodeRefusedError("Functions are nested too deep", found=f"more than {DEEPEST_NESTING} levels")
        self._nesting += 1
        try:
            self._import_nodes(bound_body(function, proto, absent), inner, opsets, f"{name}/")
        finally:
            self._nesting -= 1
        return self._named([inner.get(value) for value in function.output], proto.output, prefix, f"{name}/")

    def _named(
        self, operands: Sequence[Operand | None], outputs: Sequence[str], prefix: str, node_name: str
    ) -> list[Operand | None]:
        """The results of a node under their ONNX names, which the tensors that it made take too.

        Names inside a function carry the path of the call, because the function can be called again.
        """
        named: list[Operand | None] = []
        for operand, output in zip(operands, outputs, strict=False):
            if operand is None or not output:
                named.append(operand)
                continue
            if operand.tensor is not None and _is_made_by(operand.tensor, node_name):
                self._claim_name(operand.tensor, prefix + output)
            named.append(attrs.evolve(operand, name=prefix + output))
        return named

    def _claim_name(self, tensor: Tensor, name: str) -> None:
        """Name a tensor as ONNX does; a tensor that has the name by chance gets another."""
        if tensor.name == name:
            return
        holder = self.network.find_tensor(name)
        if holder is not None:
            number = 1
            while self.network.find_tensor(f"{name}_{number}") is not None:
                number += 1
            self.network.rename_tensor(holder, f"{name}_{number}")
        self.network.rename_tensor(tensor, name)

    # Borders ------------------------------------------------------------------------------------------------------

    def _input(self, info: ValueInfoProto) -> Operand:
        if info.name in self._constants:
            return Operand.known(info.name, self._constants[info.name])
        where = f"input {info.name!r}"
        if not info.type.HasField("tensor_type"):
            raise OnnxImportError("An input is not a tensor", where=where, found=info.type.WhichOneof("value"))
        kind = info.type.tensor_type
        dtype = data_type(kind.elem_type, where)
        if not kind.HasField("shape"):
            raise OnnxImportError("The number of axes of an input is not given", where=where)
        shape = [dim.dim_value if dim.HasField("dim_value") else -1 for dim in kind.shape.dim]
        tensor = self.network.add_input(info.name, dtype, shape)
        return Operand(info.name, tensor.spec, tensor)

    def _mark_output(self, name: str, scope: Scope) -> None:
        operand = scope.get(name)
        if operand is None:
            raise OnnxImportError("Nothing produces this output of the graph", where=f"output {name!r}")
        tensor = self.tensor_of(operand)
        if tensor.name != name and (tensor.is_network_input or tensor.is_network_output):
            layer = Identity(name=f"output {name}")
            tensor = self.network.add_layer(layer, [tensor]).outputs[0]
        self._claim_name(tensor, name)
        self.network.mark_output(tensor)

    # Reasons ------------------------------------------------------------------------------------------------------

    def _check_opset(self, opset: int | None) -> bool:
        if opset is None or opset <= NEWEST_OPSET:
            return True
        self._refuse(
            f"The model uses opset {opset}, which is newer than this importer knows"
            f" (allowed: {OLDEST_OPSET} to {NEWEST_OPSET}). Convert it, for example with onnx.version_converter"
        )
        return False

    @contextlib.contextmanager
    def _reasons_kept(self) -> Iterator[None]:
        try:
            yield
        except DryfitError as error:
            self._refuse(str(error))

    def _refuse(self, reason: str) -> None:
        self.problems.append(ImportProblem(ErrorCode.INVALID_GRAPH, reason))

    def _refuse_node(self, proto: NodeProto, name: str, error: DryfitError) -> None:
        code = error.code if isinstance(error, NodeRefusedError) else ErrorCode.INVALID_NODE
        needs = error.needs_constants if isinstance(error, NodeRefusedError) else frozenset()
        operator = f"{proto.domain}.{proto.op_type}" if _domain(proto.domain) else proto.op_type
        self.problems.append(ImportProblem(code, str(error), self._top_level_index, name, operator, needs))


def _domain(domain: str) -> str:
    return "" if domain == "ai.onnx" else domain


def _is_made_by(tensor: Tensor, node_name: str) -> bool:
    """Whether a tensor is new from a node, or from a node inside a function whose call's path ends in a slash."""
    names = tensor.producer.onnx_nodes if tensor.producer is not None else ()
    return node_name in names or (node_name.endswith("/") and any(name.startswith(node_name) for name in names))


def _as_list(result: Result) -> list[Operand]:
    return [result] if isinstance(result, Operand) else list(result)
