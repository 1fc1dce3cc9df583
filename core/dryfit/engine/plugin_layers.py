"""The layer plugins that an engine needs: looked for before it runs, so that none is missed in the middle of a run."""

from __future__ import annotations

import logging

from dryfit.engine.packages import install_remedy, layer_key
from dryfit.engine.plan import Plan
from dryfit.errors import PluginError
from dryfit.network.layer_plugin import plugin_title
from dryfit.network.layers.plugin import Plugin
from dryfit.network.plugin_table import find_plugin
from dryfit.plugins.layer_plugins import connect, layer_plugin_package

logger = logging.getLogger("dryfit.engine")


def require_layer_plugins(plan: Plan) -> None:
    """Find the plugins of an engine's layers. One of another package version than at build time is taken, and logged.

    Raises:
        PluginError: some are not there, or cannot be used; all that are missing are listed with their packages.
    """
    connect()
    layers = {layer.key: layer for layer in plan.network.layers if isinstance(layer, Plugin)}
    missing = [key for key in layers if find_plugin(key) is None]
    if missing:
        raise PluginError(
            "The engine was built with layer plugins that are not installed",
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
    """What to do for a plugin; one of no package was registered by the program that built the engine."""
    return install_remedy(plan, key) if key in plan.packages else "Call register_layer_plugin before it is run"
