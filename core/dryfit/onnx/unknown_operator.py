"""The refusal of an operator that nothing can import: what was looked for, and where it might come from."""

from __future__ import annotations

from onnx import AttributeProto, NodeProto

from dryfit.network.layer_plugin import PluginKey
from dryfit.network.plugin_table import likely_meant
from dryfit.onnx.integer_operators import integer_operator
from dryfit.onnx.layer_plugins import candidate_keys
from dryfit.onnx.problems import NodeRefusedError
from dryfit.plugins import registry
from dryfit.plugins.discovery import PluginOwner, owner_of
from dryfit.plugins.layer_plugins import InstalledLayerPlugins, connect

_GROUPS = (registry.LAYERS, registry.IMPORTERS, registry.HOOKS)


def unknown_operator(proto: NodeProto, domain: str, opset: int) -> NodeRefusedError:
    """The refusal.

    Args:
        proto: the node.
        domain: its operator set; "" for ONNX's own.
        opset: the version of the set that the model uses.
    """
    if any(a.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS) for a in proto.attribute):
        return NodeRefusedError("Operators with graphs inside them are not supported")
    refusal = integer_operator(proto.op_type, domain)
    if refusal is not None:
        return refusal
    connect()
    keys = candidate_keys(proto)
    facts = [
        f"{domain or 'ai.onnx'} opset {opset}",
        *filter(None, (InstalledLayerPlugins().reason(key) for key in keys)),
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
    owners = {owner_of(entry) for group in _GROUPS for entry in registry.installed().entries(group)}
    packages = sorted({owner.package for owner in owners if owner.is_foreign} - {""})
    plugin = f"{importer}a layer plugin {name} version {version} with {namespaces}"
    if not domain:  # one of ONNX's own, which no package is known to bring
        return f"Export the model without it, or write {plugin} (docs/how-to/write-a-layer-plugin.md). {meant}".rstrip()
    return (
        f"It takes {plugin}. {meant}Install the package that brings it, if there is one (installed packages with "
        f"layers: {', '.join(packages) or 'none'}), or write it (docs/how-to/write-a-layer-plugin.md)"
    )


def _unusable(domain: str, op_type: str) -> list[str]:
    """What is switched off or failed, and might have brought the operator: its importer, or any module of hooks."""

    def might_bring_it(plugin: PluginOwner) -> bool:
        return plugin.group == registry.HOOKS or (plugin.group, plugin.name) == (
            registry.IMPORTERS,
            f"{domain}::{op_type}",
        )

    plugins = registry.installed()
    owners = [owner_of(entry) for group in (registry.IMPORTERS, registry.HOOKS) for entry in plugins.all_entries(group)]
    off = {owner: plugins.switches.reason(owner) for owner in owners if might_bring_it(owner)}
    return [
        *(f"{owner} is switched off: {reason}" for owner, reason in off.items() if reason),
        *(f"failed: {failure}" for failure in plugins.failures() if might_bring_it(failure.owner)),
    ]
