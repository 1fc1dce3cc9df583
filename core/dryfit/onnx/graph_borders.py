"""Inputs and outputs of an ONNX graph as those of a network."""

from __future__ import annotations

from onnx import ValueInfoProto

from dryfit.errors import OnnxImportError
from dryfit.network.layers.identity import Identity
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor
from dryfit.onnx.operand import Operand
from dryfit.onnx.tensors import data_type
from dryfit.onnx.value_names import claim_name


def add_graph_input(network: Network, info: ValueInfoProto) -> Operand:
    """The operand of a new network input.

    Raises:
        OnnxImportError: the graph's input is no tensor, or its number of axes is not given.
    """
    where = f"input {info.name!r}"
    if not info.type.HasField("tensor_type"):
        raise OnnxImportError("An input is not a tensor", where=where, found=info.type.WhichOneof("value"))
    kind = info.type.tensor_type
    dtype = data_type(kind.elem_type, where)
    if not kind.HasField("shape"):
        raise OnnxImportError("The number of axes of an input is not given", where=where)
    shape = [dim.dim_value if dim.HasField("dim_value") else -1 for dim in kind.shape.dim]
    tensor = network.add_input(info.name, dtype, shape)
    return Operand(info.name, tensor.spec, tensor)


def mark_graph_output(network: Network, tensor: Tensor, name: str) -> None:
    """Make a tensor the network's output of this name; one that has a name at the border already is copied."""
    if tensor.name != name and (tensor.is_network_input or tensor.is_network_output):
        tensor = network.add_layer(Identity(name=f"output {name}"), [tensor]).outputs[0]
    claim_name(network, tensor, name)
    network.mark_output(tensor)
