"""Subgraphs of ONNX nodes as bodies of layers: what they read from outside becomes inputs of the body."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from onnx import GraphProto

from dryfit.attrs_classes import define
from dryfit.network.control_flow import mark_body_output
from dryfit.network.data_types import DataType
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor, TensorSpec
from dryfit.onnx.graph_borders import remove_unused_layers
from dryfit.onnx.tensors import NodeInput


class Scope(dict[str, NodeInput | None]):
    """Operands by ONNX name; None where only what the model states is known, because the producer was refused."""

    def knows(self, name: str) -> bool:
        """Return whether a name stands for a value here."""
        return name in self

    def find(self, name: str) -> NodeInput | None:
        """Return the operand of a name; None where there is none."""
        return self.get(name)


class BodyScope(Scope):
    """Operands of a subgraph, which also sees those of the graph around it.

    Args:
        outer: the graph around it.
        network: the body that the subgraph becomes; None if its nodes are imported into the network around it.

    Attributes:
        captured: (operand of the graph around it, input of the body) for each value that the body reads from outside.
    """

    def __init__(self, outer: Scope, network: Network | None) -> None:
        super().__init__()
        self._outer = outer
        self._network = network
        self._seen: dict[str, NodeInput] = {}
        self.captured: list[tuple[NodeInput, Tensor]] = []

    def knows(self, name: str) -> bool:
        """Return whether a name stands for a value in the subgraph or around it."""
        return name in self or self._outer.knows(name)

    def find(self, name: str) -> NodeInput | None:
        """Return the operand of a name. A value from outside that is not known becomes an input of the body."""
        if name in self:
            return self[name]
        if name in self._seen:
            return self._seen[name]
        operand = self._outer.find(name)
        if operand is None or self._network is None:
            return operand
        if operand.value is not None:
            inner = NodeInput.known(name, operand.value)
        else:
            free = self._network.free_tensor_name(name)
            tensor = self._network.add_input(free, operand.dtype, operand.shape)
            # Extents that name a tensor outside say nothing in the body, which does not have that tensor.
            extents = operand.extents and tuple(one if isinstance(one, int) else None for one in operand.extents)
            inner = NodeInput(name, tensor.spec, tensor, extents)
            self.captured.append((operand, tensor))
        self._seen[name] = inner
        return inner


@define(eq=False)
class ImportedBody:
    """A subgraph as a network.

    Attributes:
        network: first the inputs of the subgraph, then the captured values; the outputs are those of the subgraph.
        captured: the values outside that the network reads, in the order of its last inputs.
        outputs: the operands of the subgraph's outputs.
    """

    network: Network
    captured: list[NodeInput]
    outputs: Sequence[NodeInput]

    @property
    def specs(self) -> list[TensorSpec]:
        """Specs of the outputs."""
        return [tensor.spec for tensor in self.network.outputs]

    def capture_also(self, operands: Sequence[NodeInput]) -> None:
        """Let the network have the inputs of another body, in its order; those that it does not read stay unused."""
        first = len(self.network.inputs) - len(self.captured)
        own = dict(zip(map(id, self.captured), self.network.inputs[first:], strict=True))
        inputs = self.network.inputs[:first]
        for operand in operands:
            tensor = own.get(id(operand))
            if tensor is None:
                name = self.network.free_tensor_name(operand.name)
                tensor = self.network.add_input(name, operand.dtype, operand.shape)
            inputs.append(tensor)
        self.network.inputs = inputs
        self.captured = list(operands)

    def add_first_input(self, name: str, dtype: DataType) -> None:
        """Let the network have one more input, a number, before all others."""
        tensor = self.network.add_input(self.network.free_tensor_name(name), dtype, ())
        self.network.inputs = [tensor, *(one for one in self.network.inputs if one is not tensor)]


class NodeBodies(Protocol):
    """What imports the subgraphs of a node."""

    def body(self, graph: GraphProto, inputs: Sequence[TensorSpec | None]) -> ImportedBody:
        """Import a subgraph as a network of its own.

        Args:
            graph: the subgraph.
            inputs: specs of its inputs; one with a value is a constant in the body, and no input of it.

        Raises:
            UnseenValueError: A node of the subgraph was refused.
        """
        ...

    def inline(
        self, graph: GraphProto, operands: Mapping[str, NodeInput] | None = None, opset: int | None = None
    ) -> list[NodeInput]:
        """Import the nodes of a subgraph without inputs into the network of the node; returns its outputs.

        Args:
            graph: the subgraph.
            operands: operands that it knows by other names than the graph around it; None for none.
            opset: version of ONNX's own operator set that its nodes are of; None for that of the graph around it.

        Raises:
            UnseenValueError: A node of the subgraph was refused.
        """
        ...


def finished_body(network: Network, scope: BodyScope, outputs: Sequence[Tensor]) -> list[NodeInput]:
    """Mark the outputs of a body and remove what they do not need; returns the captured operands that it reads."""
    for tensor in outputs:
        mark_body_output(network, tensor)
    remove_unused_layers(network, 0)
    unused = [tensor for _, tensor in scope.captured if not tensor.consumers and not tensor.is_network_output]
    network.inputs = [tensor for tensor in network.inputs if tensor not in unused]
    return [operand for operand, tensor in scope.captured if tensor not in unused]
