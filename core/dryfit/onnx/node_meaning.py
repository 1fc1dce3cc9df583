"""What a node stands for: an operator function, a layer plugin, or a function made of other nodes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from onnx import FunctionProto, NodeProto

from dryfit.onnx.functions import function_of, is_unchanged
from dryfit.onnx.layer_plugins import add_layer_plugin, plugin_key
from dryfit.onnx.operand import Operand
from dryfit.onnx.problems import NodeRefusedError
from dryfit.onnx.registry import NEWEST_OPSET, OLDEST_OPSET, OperatorFunction, find_importer
from dryfit.onnx.unknown_operator import unknown_operator


def meaning_of(
    proto: NodeProto, domain: str, opset: int, own: FunctionProto | None, inputs: Sequence[Operand | None]
) -> OperatorFunction | FunctionProto:
    """What adds the layers of a node, or the function that stands in its place.

    Asked in this order: the importer's own operators, those of installed packages, the model's functions, layer
    plugins, the functions by which ONNX defines operators.

    Args:
        proto: the node.
        domain: its operator set; "" for ONNX's own.
        opset: the version of the set that the model uses.
        own: the model's function of this name.
        inputs: the node's operands.

    Raises:
        NodeRefusedError: nothing can import it.
        PluginError: two packages bring its importer.
    """
    if not domain and opset < OLDEST_OPSET and not is_unchanged(proto.op_type, opset, OLDEST_OPSET):
        raise NodeRefusedError(
            f"The operator meant something else before opset {OLDEST_OPSET}",
            found=f"opset {opset}",
            allowed=f"{OLDEST_OPSET} to {NEWEST_OPSET}",
            remedy="Convert the model, for example with onnx.version_converter",
        )
    importer = find_importer(proto.op_type, domain, opset)
    if importer is not None:
        return importer.function
    if own is not None:
        return own
    key = plugin_key(proto)
    if key is not None:
        return partial(add_layer_plugin, key=key)
    function = function_of(proto, domain, opset, inputs)
    if function is None:
        raise unknown_operator(proto, domain, opset)
    return function
