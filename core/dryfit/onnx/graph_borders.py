"""Inputs and outputs of an ONNX graph as those of a network: tensors and their names, dimensions, metadata.

What is done to a network when all nodes of a model are imported is here too: layers that nobody needs go, the others
get their names.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

import onnx
from onnx import ValueInfoProto

from dryfit.errors import OnnxImportError
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.movement import Identity
from dryfit.network.network import Network
from dryfit.network.tensor import Shape, Tensor, fits_declared
from dryfit.onnx.tensors import NodeInput, data_type


def named_results(
    network: Network, operands: Sequence[NodeInput | None], outputs: Sequence[str], prefix: str, node_name: str
) -> list[NodeInput | None]:
    """The results of a node under their ONNX names, which the tensors that it made take too.

    Names inside a function carry the path of the call, because the function can be called again.
    """
    named: list[NodeInput | None] = []
    for operand, output in zip(operands, outputs, strict=False):
        if operand is None or not output:
            named.append(operand)
            continue
        if operand.tensor is not None and _is_made_by(operand.tensor, node_name):
            claim_name(network, operand.tensor, prefix + output)
        named.append(NodeInput(prefix + output, operand.spec, operand.tensor, operand.extents))
    return named


def claim_name(network: Network, tensor: Tensor, name: str) -> None:
    """Name a tensor as ONNX does; a tensor that has the name by chance gets another."""
    if tensor.name == name:
        return
    holder = network.find_tensor(name)
    if holder is not None:
        number = 1
        while network.find_tensor(f"{name}_{number}") is not None:
            number += 1
        network.rename_tensor(holder, f"{name}_{number}")
    network.rename_tensor(tensor, name)


def _is_made_by(tensor: Tensor, node_name: str) -> bool:
    """Whether a tensor is new from a node, or from a node inside a function whose call's path ends in a slash."""
    names = tensor.producer.onnx_nodes if tensor.producer is not None else ()
    return node_name in names or (node_name.endswith("/") and any(name.startswith(node_name) for name in names))


DeclaredTypes = dict[bytes, tuple[DataType, Shape]]
"""A graph input's type as it is written in the file, to the type and shape of its tensor; -1 is dynamic."""


def add_graph_input(
    network: Network, info: ValueInfoProto, known: DeclaredTypes, chosen: Shape | None = None
) -> NodeInput:
    """The operand of a new network input.

    Args:
        network: gets the input.
        info: the graph's input.
        known: types that were read before, since many inputs have the same; gets this one.
        chosen: the only shape that the input will have; None for the graph's, which may be dynamic.

    Raises:
        OnnxImportError: the graph's input is no tensor, its number of axes is not given, or the chosen shape does not
            fit it.
    """
    written = info.type.SerializeToString()
    if written not in known:
        known[written] = _declared(info)
    dtype, shape = known[written]
    if chosen is not None:
        if not fits_declared(chosen, shape):
            raise OnnxImportError(
                "The shape must match the model's input",
                where=f"input {info.name!r}",
                found=tuple(chosen),
                allowed=shape,
                remedy="Change only the dynamic dimensions (shown as -1)",
            )
        shape = tuple(chosen)
    tensor = network.add_input(info.name, dtype, shape)
    return NodeInput(info.name, tensor.spec, tensor)


def _declared(info: ValueInfoProto) -> tuple[DataType, Shape]:
    where = f"input {info.name!r}"
    if not info.type.HasField("tensor_type"):
        raise OnnxImportError(
            "Inputs must be tensors",
            where=where,
            found=info.type.WhichOneof("value"),
            remedy="Replace the sequence, map or optional by tensors",
        )
    kind = info.type.tensor_type
    dtype = data_type(kind.elem_type, where)
    if not kind.HasField("shape"):
        raise OnnxImportError(
            "The rank of an input must be known", where=where, remedy="Add a shape with dynamic dimensions to the input"
        )
    return dtype, tuple(dim.dim_value if dim.HasField("dim_value") else -1 for dim in kind.shape.dim)


def mark_graph_output(network: Network, tensor: Tensor, name: str) -> None:
    """Make a tensor the network's output of this name; one that has a name at the border already is copied."""
    if tensor.name != name and (tensor.is_network_input or tensor.is_network_output):
        tensor = network.add_layer(Identity(name=f"output {name}"), [tensor]).outputs[0]
    claim_name(network, tensor, name)
    network.mark_output(tensor)


logger = logging.getLogger("dryfit.onnx")

_UNKNOWN = frozenset({"-1", "none", "null", "unknown", "unk", "undefined", "dynamic"})
"""What exporters write as the name of a dimension of which they know nothing."""


def remove_unused_layers(network: Network, first: int) -> None:
    """Remove the layers from a position on that no output of the network depends on."""
    needed: set[int] = set()
    waiting: list[Layer] = [tensor.producer for tensor in network.outputs if tensor.producer is not None]
    while waiting:
        layer = waiting.pop()
        if id(layer) not in needed:
            needed.add(id(layer))
            waiting.extend(t.producer for t in layer.connected_inputs if t.producer is not None)
    network.remove_layers([layer for layer in network.layers[first:] if id(layer) not in needed])


def name_dimensions(network: Network, graph: onnx.GraphProto) -> None:
    """Give dynamic dimensions the names that the model has for them.

    Names that only say that nothing is known, such as Paddle's `?`, are left out: dimensions that share one are not
    equal for that.
    """
    ignored: dict[str, list[str]] = {}
    for info in (*graph.input, *graph.output, *graph.value_info):
        tensor = network.find_tensor(info.name)
        if tensor is None or -1 not in tensor.shape or not info.type.HasField("tensor_type"):
            continue
        for axis, dim in enumerate(info.type.tensor_type.shape.dim):
            if dim.dim_param and axis < len(tensor.shape) and tensor.shape[axis] < 0:
                if not _means_nothing(dim.dim_param):
                    tensor.set_dimension_name(axis, dim.dim_param)
                elif tensor.is_network_input:
                    ignored.setdefault(dim.dim_param, []).append(f"axis {axis} of {info.name!r}")
    for name, places in ignored.items():
        if len(places) > 1:
            told = ", ".join(places)
            logger.warning(
                "Dimensions named %r are treated as independent, as the name is a placeholder: %s", name, told
            )


def _means_nothing(name: str) -> bool:
    """Whether a dimension's name only says that it is not known."""
    return name.strip().casefold() in _UNKNOWN or not any(character.isalnum() for character in name)


def name_weights(network: Network, initializers: Iterable[NodeInput | None]) -> None:
    """Give weights that layers took over as they are the names of their initializers.

    What the importer computed from initializers, such as the coefficients of a batch normalization, stays without a
    name of its own: it is found by layer and role.
    """
    known = [one for one in initializers if one is not None and one.value is not None]
    network.set_weights_names({one.name: one.value for one in known if one.value is not None})


def keep_metadata(network: Network, model: onnx.ModelProto) -> None:
    """Write into the network's metadata who made the model, its operator sets, and its own metadata."""
    facts = {
        "onnx_producer": f"{model.producer_name} {model.producer_version}".strip(),
        "onnx_domain": model.domain,
        "onnx_model_version": str(model.model_version or ""),
        "onnx_opsets": ", ".join(f"{entry.domain or 'ai.onnx'} {entry.version}" for entry in model.opset_import),
    }
    network.metadata.update({key: value for key, value in facts.items() if value})
    network.metadata.update({entry.key: entry.value for entry in model.metadata_props})
