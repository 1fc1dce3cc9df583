"""Plugins watch builds."""

from __future__ import annotations

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.network.network import Network
from dryfit.plugins import facade
from dryfit.plugins.contributions import BuildObserver


def build_observer(network: Network, config: BuilderConfig) -> BuildObserver:
    """What tells all plugins that watch the build of a network with a config; it does nothing where none does."""
    if not facade.is_implemented("observe_build"):
        return BuildObserver()
    return facade.build_observers(network, config.settings(network))
