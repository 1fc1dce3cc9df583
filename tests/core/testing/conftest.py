"""Targets that are installed for one test."""

from types import SimpleNamespace

import attrs
import pytest

from dryfit.plugins import registry


@attrs.frozen
class FakeEntry:
    """An entry point that names an object, wherever it comes from."""

    name: str
    target: object
    module: str
    value: str = ""
    group: str = registry.TARGETS
    dist: object = SimpleNamespace(name="acme", version="1.0")

    def load(self):
        return self.target


@pytest.fixture
def install(monkeypatch):
    """A function that installs a target beside those of the house, and returns it."""
    read = registry._installed

    def installed(target, module="dryfit_dla"):
        entry = FakeEntry(target.device.lower(), target, module)
        fresh = registry.PluginRegistry(
            lambda group: [*read(group), *([entry] if group == registry.TARGETS else [])], ""
        )
        monkeypatch.setattr(registry, "_registry", fresh)
        return target

    return installed
