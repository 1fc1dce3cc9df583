"""What is done to a network when all nodes of a model are imported: unused layers, names, metadata."""

from __future__ import annotations

import logging
from collections.abc import Iterable

import onnx

from dryfit.network.layer import Layer
from dryfit.network.network import Network
from dryfit.onnx.operand import Operand

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
            waiting.extend(t.producer for t in layer.inputs if t is not None and t.producer is not None)
    network.remove_layers([layer for layer in network.layers[first:] if id(layer) not in needed])


def name_dimensions(network: Network, graph: onnx.GraphProto) -> None:
    """Give dynamic dimensions the names that the model has for them.

    Names that only say that nothing is known, such as Paddle's `?`, are left out: dimensions that share one are not
    equal for that.
    """
    ignored: dict[str, list[str]] = {}
    for info in (*graph.input, *graph.output, *graph.value_info):
        tensor = network.find_tensor(info.name)
        if tensor is None or not info.type.HasField("tensor_type"):
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
            logger.warning("Dimensions named %r are taken as independent, as the name means nothing: %s", name, told)


def _means_nothing(name: str) -> bool:
    """Whether a dimension's name only says that it is not known."""
    return name.strip().casefold() in _UNKNOWN or not any(character.isalnum() for character in name)


def name_weights(network: Network, initializers: Iterable[Operand | None]) -> None:
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
