"""Nodes that become plugin layers: because the importer says so, or because a layer plugin has the operator's name."""

from __future__ import annotations

from onnx import AttributeProto, NodeProto

from dryfit.errors import PluginError
from dryfit.network.layers.plugin import Plugin, PluginKey, layer_plugin
from dryfit.onnx.node import Node
from dryfit.onnx.operand import Operand
from dryfit.onnx.problems import NodeRefusedError
from dryfit.plugins.layer_plugins import connect, find_layer_plugin


def plugin_key(proto: NodeProto) -> PluginKey:
    """(name, version, namespace) of the layer plugin for a node, as TensorRT's parser makes them.

    The operator is the name; the text attributes `plugin_version` and `plugin_namespace` say which version and whose.
    """
    texts = {attribute.name: attribute.s.decode("utf-8", "replace") for attribute in proto.attribute if attribute.s}
    return proto.op_type, texts.get("plugin_version", "1"), texts.get("plugin_namespace", "")


def has_layer_plugin(key: PluginKey) -> bool:
    """Whether a layer plugin is registered or installed.

    Raises:
        PluginError: it is installed, and broken.
    """
    connect()
    if find_layer_plugin(*key) is not None:
        return True
    try:
        layer_plugin(*key)
    except PluginError:
        return False
    return True


def add_layer_plugin(node: Node) -> list[Operand]:
    """A layer plugin of the operator's name; it gets the node's attributes as fields, as TensorRT's parser does it."""
    name, version, namespace = plugin_key(node.proto)
    fields = {key: value for key, value in node.fields().items() if key not in ("plugin_version", "plugin_namespace")}
    layer = Plugin(plugin_name=name, plugin_version=version, plugin_namespace=namespace, fields=fields)
    return node.add_all(layer, *node.inputs)


def unknown_operator(proto: NodeProto, domain: str, opset: int) -> NodeRefusedError:
    """The refusal of a node that nothing can import."""
    if any(a.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS) for a in proto.attribute):
        return NodeRefusedError("Operators with graphs inside them are not supported")
    return NodeRefusedError(
        "The operator is not supported",
        found=f"{domain or 'ai.onnx'} opset {opset}",
        remedy="A layer plugin of this name would be used if it were installed",
    )
