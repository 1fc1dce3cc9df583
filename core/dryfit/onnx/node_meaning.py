"""What a node stands for: an operator function, a layer plugin that has its name, or a function made of other nodes.

If it is none of these, it is refused, with what was looked for and where it might come from. So are operators that take
and give quantized integers themselves, in models for devices. TensorRT refuses such models too: it takes quantize and
dequantize nodes around operators on real numbers. Into networks with a quantize method some are imported: see
`dryfit.onnx.operators.quantized_integers`.

Source: TensorRT "Working with Quantized Types", ONNX support; ONNX Runtime, contributed operators.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from onnx import AttributeProto, FunctionProto, NodeProto

from dryfit.errors import PluginError
from dryfit.network.layer_plugin import PluginKey
from dryfit.network.layers.plugin import Plugin
from dryfit.network.plugin_table import find_plugin, likely_meant
from dryfit.onnx.functions import function_of, is_unchanged
from dryfit.onnx.node import Node
from dryfit.onnx.problems import NodeRefusedError
from dryfit.onnx.registry import NEWEST_OPSET, OLDEST_OPSET, OperatorFunction, find_importer
from dryfit.onnx.tensors import NodeInput
from dryfit.plugins import registry
from dryfit.plugins.discovery import HOOKS, IMPORTERS, LAYERS, ONNX_OPERATORS, PluginOwner, owner_of
from dryfit.plugins.layer_plugins import why_no_layer_plugin


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
    for key in candidate_keys(proto):
        try:
            if find_plugin(key) is not None:
                return key
        except PluginError as error:
            raise NodeRefusedError(error.description, remedy=error.remedy) from error
    return None


def has_layer_plugin(op_type: str) -> bool:
    """Whether there is a layer plugin of this name that can be used, of version 1 and without a namespace."""
    try:
        return plugin_key(NodeProto(op_type=op_type)) is not None
    except NodeRefusedError:
        return False


def add_layer_plugin(node: Node, key: PluginKey) -> list[NodeInput]:
    """A layer plugin; it gets the node's attributes as fields, as TensorRT's parser does it."""
    name, version, namespace = key
    naming = ("plugin_version", "plugin_namespace")
    fields = {field: value for field, value in node.fields().items() if field not in naming}
    layer = Plugin(plugin_name=name, plugin_version=version, plugin_namespace=namespace, fields=fields)
    return node.add_all(layer, *node.inputs)


INTEGER_OPERATORS = frozenset({"ConvInteger", "MatMulInteger", "QLinearConv", "QLinearMatMul"})
"""Those of ONNX's own set."""
_MICROSOFT = frozenset(
    {
        "DynamicQuantizeLSTM",
        "DynamicQuantizeMatMul",
        "MatMulInteger16",
        "MatMulIntegerToFloat",
        "QAttention",
        "QEmbedLayerNormalization",
        "QGemm",
        "QOrderedAttention",
        "QOrderedGelu",
        "QOrderedLayerNormalization",
        "QOrderedLongformerAttention",
        "QOrderedMatMul",
    }
)
_PREFIX = "QLinear"
"""How ONNX Runtime names all other such operators: `QLinearAdd`, `QLinearAveragePool`, ..."""


def integer_operator(op_type: str, domain: str) -> NodeRefusedError | None:
    """The refusal of an operator that computes on quantized integers; None for any other."""
    is_microsoft = domain == "com.microsoft" and (op_type in _MICROSOFT or op_type.startswith(_PREFIX))
    if not is_microsoft and not (domain == "" and op_type in INTEGER_OPERATORS):
        return None
    return NodeRefusedError(
        "Operators that compute on quantized integers are not supported",
        found=f"{domain or 'ai.onnx'} {op_type}",
        allowed="QuantizeLinear and DequantizeLinear around floating-point operators",
        remedy="Export or quantize the model again in Q/DQ form (ONNX Runtime's quantizer: quant_format=QuantFormat.QDQ"
        "; Model Optimizer and PyTorch write it), or run it on this machine with the integer arithmetic of a library: "
        "--quantize-method NAME, or network.quantize_method before parsing, for the operators that the method supports",
    )


_GROUPS = (LAYERS, ONNX_OPERATORS, HOOKS)


def unknown_operator(proto: NodeProto, domain: str, opset: int) -> NodeRefusedError:
    """The refusal."""
    if any(a.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS) for a in proto.attribute):
        return NodeRefusedError(
            "Operators with subgraphs are not supported, except If, Loop and Scan",
            remedy="Unroll the loop, or export the model without control flow",
        )
    refusal = integer_operator(proto.op_type, domain)
    if refusal is not None:
        return refusal
    keys = candidate_keys(proto)
    facts = [
        f"{domain or 'ai.onnx'} opset {opset}",
        *filter(None, (why_no_layer_plugin(key) for key in keys)),
        *_unusable(domain, proto.op_type),
    ]
    return NodeRefusedError(
        "The operator is not supported", found="; ".join(facts), remedy=_remedy(domain, proto.op_type, keys)
    )


def _remedy(domain: str, op_type: str, keys: list[PluginKey]) -> str:
    name, version, _ = keys[0]
    namespaces = " or ".join(f"namespace {namespace!r}" if namespace else "no namespace" for _, _, namespace in keys)
    importer = f"an importer of {domain}::{op_type}, or " if domain else ""
    meant = "".join(dict.fromkeys(filter(None, map(likely_meant, keys))))
    owners = {owner_of(entry) for group in _GROUPS for entry in registry.entries(group)}
    packages = sorted({owner.package for owner in owners if owner.is_foreign} - {""})
    plugin = f"{importer}a layer plugin {name} version {version} with {namespaces}"
    if not domain:  # one of ONNX's own, which no package is known to bring
        return f"Export the model without it, or write {plugin} (docs/how-to/write-a-layer-plugin.md). {meant}".rstrip()
    return (
        f"It requires {plugin}. {meant}Install the package that provides it, if one exists (installed packages with "
        f"layers: {', '.join(packages) or 'none'}), or write it (docs/how-to/write-a-layer-plugin.md)"
    )


def _unusable(domain: str, op_type: str) -> list[str]:
    """What is switched off or failed, and might have brought the operator: its importer, or any module of hooks."""

    def might_bring_it(plugin: PluginOwner) -> bool:
        is_named = plugin.name == f"{domain}::{op_type}" and plugin.group in (ONNX_OPERATORS, IMPORTERS)
        return plugin.group == HOOKS or is_named

    owners = [owner_of(entry) for group in (ONNX_OPERATORS, HOOKS) for entry in registry.all_entries(group)]
    off = {owner: registry.switches.reason(owner) for owner in owners if might_bring_it(owner)}
    return [
        *(f"{owner} is switched off: {reason}" for owner, reason in off.items() if reason),
        *(f"failed: {failure}" for failure in registry.failures() if might_bring_it(failure.owner)),
    ]


def meaning_of(
    proto: NodeProto, domain: str, opset: int, own: FunctionProto | None, inputs: Sequence[NodeInput | None]
) -> OperatorFunction | FunctionProto:
    """What adds the layers of a node, or the function that stands in its place.

    Asked in this order: the importer's own operators, those of installed packages, the model's functions, layer
    plugins, the functions by which ONNX defines operators.

    Raises:
        NodeRefusedError: nothing can import it.
        PluginError: two packages bring its importer.
    """
    if not domain and opset < OLDEST_OPSET and not is_unchanged(proto.op_type, opset, OLDEST_OPSET):
        raise NodeRefusedError(
            f"The operator is not supported before opset {OLDEST_OPSET}",
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
