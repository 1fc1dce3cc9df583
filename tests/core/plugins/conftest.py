"""A registry for each test: what a test makes of `dryfit.plugins.registry` is forgotten after it."""

import pytest

from dryfit.plugins import registry
from dryfit.plugins.plugin_registry import PluginRegistry


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch):
    # Everybody holds the one registry, so that its state is replaced and not the object.
    monkeypatch.setattr(registry, "__dict__", vars(PluginRegistry()))
