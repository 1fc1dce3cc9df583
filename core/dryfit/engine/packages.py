"""The packages that an engine requires: providers of its devices, plugin layers and quantize methods at build time.

Layer plugins and quantize methods are checked before a run, so that none is found missing during the run.
"""

from __future__ import annotations

import logging

from dryfit.engine.plan import Plan
from dryfit.errors import PluginError, UnknownNameError
from dryfit.network.layer import with_bodies
from dryfit.network.layer_plugin import plugin_title
from dryfit.network.layers.plugin import Plugin
from dryfit.network.layers.quantized_operator import QuantizedOperator
from dryfit.network.plugin_table import find_plugin
from dryfit.plugins import registry
from dryfit.plugins.layer_plugins import layer_plugin_package
from dryfit.plugins.quantize_methods import quantize_method


def target_key(device: str) -> str:
    """Return the key of a device in `Plan.packages`."""
    return f"target {device}"


def layer_key(name: str, version: str, namespace: str = "") -> str:
    """Return the key of a layer plugin in `Plan.packages`: `layer Name 1`, or `layer namespace::Name 1`."""
    return f"layer {namespace}::{name} {version}" if namespace else f"layer {name} {version}"


def method_key(name: str) -> str:
    """Return the key of a quantize method in `Plan.packages`."""
    return f"quantize_method {name}"


def install_remedy(plan: Plan, key: str) -> str:
    """Return the remedy for a package that an engine requires and that is not installed.

    Args:
        plan: plan of the engine.
        key: missing item, as a key from `target_key`, `layer_key` or `method_key`.
    """
    package = plan.packages.get(key)
    if not package:
        return f"Install what it was built with ({', '.join(plan.plugins) or 'dryfit'}), or build the engine again"
    distribution, _, version = package.partition(" ")
    unusable = registry.unusable(distribution)
    if unusable:
        return f"{distribution} is installed, but {'; '.join(unusable)}"
    built_with = f" (the engine was built with {version})" if version else ""
    return f"Install it: pip install {distribution}{built_with}, or build the engine again"


logger = logging.getLogger("dryfit.engine")


def require_layer_plugins(plan: Plan) -> None:
    """Find the plugins of an engine's layers. A package version that differs from build time is accepted and logged.

    Raises:
        PluginError: Plugins are missing or unusable; the message lists all missing ones with their packages.
    """
    layers = {layer.key: layer for layer in with_bodies(plan.network.layers) if isinstance(layer, Plugin)}
    missing = [key for key in layers if find_plugin(key) is None]
    if missing:
        raise PluginError(
            "The layer plugins of the engine must be installed",
            where=", ".join(f"layer {layers[key].name!r}" for key in missing),
            found=", ".join(f"no {plugin_title(key)}" for key in missing),
            remedy="; ".join(dict.fromkeys(_remedy(plan, layer_key(*key)) for key in missing)),
        )
    for key in layers:
        built_with = plan.packages.get(layer_key(*key))
        found = built_with and layer_plugin_package(key)
        if found and found != built_with:
            logger.warning(
                "The layer plugin %s comes from %s; the engine was built with %s", plugin_title(key), found, built_with
            )


def _remedy(plan: Plan, key: str) -> str:
    """Return the remedy for a plugin; one without a package was registered by the program that built the engine."""
    return install_remedy(plan, key) if key in plan.packages else "Call register_layer_plugin before you run it"


def require_quantize_methods(plan: Plan) -> None:
    """Find the quantize methods of an engine's quantized operators.

    Raises:
        PluginError: Methods are missing or unusable; the message lists all missing ones with their packages.
    """
    layers: dict[str, list[str]] = {}
    for layer in with_bodies(plan.network.layers):
        if isinstance(layer, QuantizedOperator):
            layers.setdefault(layer.method, []).append(layer.name)
    missing = [name for name in layers if not _is_installed(name)]
    if missing:
        raise PluginError(
            "The quantize methods of the engine must be installed",
            where=", ".join(f"layer {layers[name][0]!r}" for name in missing),
            found=", ".join(f"no {name}" for name in missing),
            remedy="; ".join(dict.fromkeys(install_remedy(plan, method_key(name)) for name in missing)),
        )


def _is_installed(name: str) -> bool:
    try:
        quantize_method(name)
    except UnknownNameError:
        return False
    return True
