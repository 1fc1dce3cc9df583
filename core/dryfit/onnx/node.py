"""One ONNX node as an operator function sees it: typed attributes, inputs, and a way to add layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from onnx import AttributeProto, GraphProto, NodeProto, TensorProto

from dryfit.network.layer import Layer
from dryfit.network.layer_plugin import FieldValue
from dryfit.network.network import Network
from dryfit.network.tensor import Array, Tensor
from dryfit.onnx.bodies import NodeBodies
from dryfit.onnx.folding import folded, followed_extents
from dryfit.onnx.problems import ErrorCode, NodeRefusedError
from dryfit.onnx.tensors import NodeInput, attribute_fields, specs_of

_HELPERS = ("shuffle", "cast", "constant")


class LayerHost(Protocol):
    """What takes the layers of a node."""

    network: Network

    def array_of(self, tensor: TensorProto) -> Array:
        """The contents of a tensor of the model."""
        ...

    def tensor_of(self, operand: NodeInput) -> Tensor:
        """The network's tensor of an operand."""
        ...


class Node:
    """An ONNX node during its import.

    Attributes:
        proto: the node as the model has it.
        name: its name; `node_of_<first output>` where the model gives none, as TensorRT names such nodes.
        op_type: the operator.
        domain: the operator set it belongs to; empty for ONNX's own.
        opset: the version of that operator set which the model uses.
        inputs: operands, None where an optional input is absent.
        bodies: imports the node's subgraphs.
    """

    refusal = NodeRefusedError
    """The error to raise where the node cannot be imported."""

    def __init__(
        self,
        proto: NodeProto,
        name: str,
        opset: int,
        inputs: Sequence[NodeInput | None],
        graph: LayerHost,
        bodies: NodeBodies,
    ) -> None:
        self.proto = proto
        self.name = name
        self.op_type = proto.op_type
        self.domain = proto.domain
        self.opset = opset
        self.inputs = list(inputs)
        self.bodies = bodies
        self._graph = graph
        self._attributes = {attribute.name: attribute for attribute in proto.attribute}
        self._layers: list[Layer] = []
        self._main: Layer | None = None
        self._known_metadata: str | None = None

    @property
    def quantize_method(self) -> str:
        """The quantize method of the network that is made; "" where it has none."""
        return self._graph.network.quantize_method

    def on(self, *inputs: NodeInput | None) -> Node:
        """The same node with other inputs, for the function of an operator that this one is made of."""
        other = Node(self.proto, self.name, self.opset, inputs, self._graph, self.bodies)
        other._layers = self._layers
        return other

    # Inputs -------------------------------------------------------------------------------------------------------

    def input(self, index: int) -> NodeInput | None:
        """An optional input."""
        return self.inputs[index] if index < len(self.inputs) else None

    def __getitem__(self, index: int) -> NodeInput:
        operand = self.input(index)
        if operand is None:
            raise self.refusal(
                f"Required input {index} is missing", code=ErrorCode.INVALID_NODE, remedy="Connect the input"
            )
        return operand

    def constant(self, index: int, what: str) -> Array | None:
        """The contents of an optional input that must be known now; None where it is absent.

        Raises:
            NodeRefusedError: the input is computed at run time.
        """
        operand = self.input(index)
        return None if operand is None else self.known(operand, what)

    def known(self, operand: NodeInput, what: str) -> Array:
        """The contents of an operand that must be known now.

        Raises:
            NodeRefusedError: it is computed at run time.
        """
        if operand.value is None:
            raise self.refusal(
                f"{what} must be known when the model is imported",
                code=ErrorCode.UNSUPPORTED_NODE_INPUT,
                found=f"{operand.name!r} is computed at run time",
                remedy="Make it an initializer, or make the graph input that it depends on static",
                needs_constants=[operand.name],
            )
        return operand.value

    def static_shape(self, operand: NodeInput, what: str) -> tuple[int, ...]:
        """The shape of an operand that must have no dynamic dimension.

        Raises:
            NodeRefusedError: it has one.
        """
        if not operand.spec.is_static:
            raise self.refusal(
                f"{what} must not have dynamic dimensions",
                code=ErrorCode.UNSUPPORTED_NODE_DYNAMIC,
                found=f"{operand.name!r} {operand.shape}",
                remedy="Set a fixed shape, such as with --shape",
                needs_constants=[operand.name],
            )
        return operand.shape

    # Attributes ---------------------------------------------------------------------------------------------------

    def has(self, name: str) -> bool:
        """Whether the model gives the attribute."""
        return name in self._attributes

    def get_int(self, name: str, default: int) -> int:
        """An integer attribute."""
        return int(self._attribute(name, AttributeProto.INT, "i", default))

    def get_float(self, name: str, default: float) -> float:
        """A floating-point attribute."""
        return float(self._attribute(name, AttributeProto.FLOAT, "f", default))

    def get_string(self, name: str, default: str) -> str:
        """A text attribute."""
        value = self._attribute(name, AttributeProto.STRING, "s", default)
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)

    def get_ints(self, name: str) -> tuple[int, ...] | None:
        """A list of integers, or None where absent."""
        value = self._attribute(name, AttributeProto.INTS, "ints", None)
        return None if value is None else tuple(int(element) for element in value)

    def get_floats(self, name: str) -> tuple[float, ...] | None:
        """A list of numbers, or None where absent."""
        value = self._attribute(name, AttributeProto.FLOATS, "floats", None)
        return None if value is None else tuple(float(element) for element in value)

    def get_strings(self, name: str) -> tuple[str, ...] | None:
        """A list of texts, or None where absent."""
        value = self._attribute(name, AttributeProto.STRINGS, "strings", None)
        return None if value is None else tuple(element.decode("utf-8", "replace") for element in value)

    def get_array(self, name: str) -> Array | None:
        """A tensor attribute, or None where absent."""
        value = self._attribute(name, AttributeProto.TENSOR, "t", None)
        return None if value is None else self._graph.array_of(value)

    def get_graph(self, name: str) -> GraphProto:
        """A subgraph, which the node must have.

        Raises:
            NodeRefusedError: it has none of this name.
        """
        graph = self._attribute(name, AttributeProto.GRAPH, "g", None)
        if graph is None:
            raise self.refusal(
                f"Required attribute {name!r} is missing", code=ErrorCode.INVALID_NODE, remedy="Export the model again"
            )
        return graph  # type: ignore[no-any-return]

    def fields(self) -> dict[str, FieldValue]:
        """Every attribute as the field of a layer plugin.

        Raises:
            NodeRefusedError: an attribute holds a graph, a sparse tensor or a type.
        """
        return attribute_fields(self.proto.attribute, self._graph.array_of)

    def choice(self, name: str, default: str, allowed: Sequence[str]) -> str:
        """A text attribute that has one of a few values.

        Raises:
            NodeRefusedError: it has another one.
        """
        value = self.get_string(name, default)
        if value not in allowed:
            raise self.refusal(
                f"This value of attribute {name!r} is not supported",
                code=ErrorCode.UNSUPPORTED_NODE_ATTR,
                found=value,
                allowed=", ".join(allowed),
                remedy="Export the model with a supported value",
            )
        return value

    def _attribute(self, name: str, kind: int, field: str, default: Any) -> Any:
        attribute = self._attributes.get(name)
        if attribute is None:
            return default
        if attribute.type not in (kind, AttributeProto.UNDEFINED):
            raise self.refusal(
                f"Attribute {name!r} has the wrong type",
                code=ErrorCode.INVALID_NODE,
                found=AttributeProto.AttributeType.Name(attribute.type),
                allowed=AttributeProto.AttributeType.Name(kind),
                remedy="Fix the attribute, or export the model again",
            )
        return getattr(attribute, field)

    # Results ------------------------------------------------------------------------------------------------------

    def array(self, value: Any, dtype: Any = None) -> NodeInput:
        """An operand with known contents."""
        return NodeInput.known(f"{self.name}/constant", np.asarray(value, dtype))

    def add(self, layer: Layer, *inputs: NodeInput | None, fold: bool = True) -> NodeInput:
        """Add a layer and return its first output; evaluate it instead where all inputs are known."""
        return self.add_all(layer, *inputs, fold=fold)[0]

    def add_all(self, layer: Layer, *inputs: NodeInput | None, fold: bool = True) -> list[NodeInput]:
        """Add a layer and return its outputs; evaluate it instead where all inputs are known.

        Args:
            layer: a new layer with its parameters.
            inputs: its inputs, None where an optional one is absent.
            fold: False keeps the layer though its inputs are known (a quantized weight must stay quantized).

        Raises:
            NetworkError: parameters and inputs do not fit together.
        """
        # The layer is in no network yet, and these texts need no check: a large model has many nodes.
        vars(layer).update(name=f"{self.name}/{layer.kind}", onnx_nodes=(self.name,), metadata=self._metadata)
        values = folded(layer, inputs) if fold else None
        if values is not None:
            return [NodeInput.known(self.name, value) for value in values]
        extents = followed_extents(layer, inputs)
        if extents is not None and all(isinstance(extent, int) for extent in extents):
            spec = layer.infer_outputs(specs_of(inputs))[0]
            return [NodeInput.known(self.name, np.asarray(extents, spec.dtype.numpy).reshape(spec.shape))]
        self._graph.network.add_layer(layer, [None if operand is None else self.tensor(operand) for operand in inputs])
        self._layers.append(layer)
        outputs = [NodeInput(tensor.name, tensor.spec, tensor) for tensor in layer.outputs]
        outputs[0].extents = extents
        return outputs

    def tensor(self, operand: NodeInput) -> Tensor:
        """The network's tensor of an operand; a constant layer is added for known contents, once."""
        return self._graph.tensor_of(operand)

    def name_last(self) -> None:
        """Keep the node's plain name for the layer that does the work among those that were added up to now."""
        work = [layer for layer in self._layers if layer.kind not in _HELPERS] or self._layers
        self._main = work[-1] if work else None

    def finish(self) -> None:
        """Give the node's plain name to the layer that does its work, after the operator function returned."""
        if self._main is None:
            self.name_last()
        if self._main is not None:
            self._graph.network.rename_layer(self._main, self.name)

    @property
    def _metadata(self) -> str:
        if self._known_metadata is None:  # one that is cached takes a lock, for each node
            entries = getattr(self.proto, "metadata_props", ())
            properties = "".join(f" [{entry.key}: {entry.value}]" for entry in entries)
            self._known_metadata = f"[ONNX Layer: {self.name}]{properties}"
        return self._known_metadata
