"""Nodes that become plugin layers because a layer plugin has the operator's name."""

from __future__ import annotations

from onnx import NodeProto

from dryfit.errors import PluginError
from dryfit.network.layer_plugin import PluginKey
from dryfit.network.layers.plugin import Plugin
from dryfit.network.plugin_table import find_plugin
from dryfit.onnx.node import Node
from dryfit.onnx.operand import Operand
from dryfit.onnx.problems import NodeRefusedError
from dryfit.plugins.layer_plugins import connect


def candidate_keys(proto: NodeProto) -> list[PluginKey]:
    """(name, version, namespace) of the layer plugins that a node may mean, the likeliest first.

    The operator is the name, and the text attribute `plugin_version`, or "1", the version. The namespace is the text
    attribute `plugin_namespace`; without it the node's domain, and then none.
    """
    texts = {attribute.name: attribute.s.decode("utf-8", "replace") for attribute in proto.attribute if attribute.s}
    stated = texts.get("plugin_namespace")
    namespaces = [proto.domain, ""] if stated is None else [stated]
    return [(proto.op_type, texts.get("plugin_version", "1"), namespace) for namespace in dict.fromkeys(namespaces)]


def plugin_key(proto: NodeProto) -> PluginKey | None:
    """The layer plugin for a node: the first candidate that is there; None where none is.

    Raises:
        NodeRefusedError: it is installed, and cannot be used.
    """
    connect()
    for key in candidate_keys(proto):
        try:
            if find_plugin(key) is not None:
                return key
        except PluginError as error:
            raise NodeRefusedError(str(error)) from error
    return None


def has_layer_plugin(op_type: str) -> bool:
    """Whether there is a layer plugin of this name that can be used, of version 1 and without a namespace."""
    try:
        return plugin_key(NodeProto(op_type=op_type)) is not None
    except NodeRefusedError:
        return False


def add_layer_plugin(node: Node, key: PluginKey) -> list[Operand]:
    """A layer plugin; it gets the node's attributes as fields, as TensorRT's parser does it."""
    name, version, namespace = key
    naming = ("plugin_version", "plugin_namespace")
    fields = {field: value for field, value in node.fields().items() if field not in naming}
    layer = Plugin(plugin_name=name, plugin_version=version, plugin_namespace=namespace, fields=fields)
    return node.add_all(layer, *node.inputs)
