"""Packages of strangers that are installed for the time of one test."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest
from tests.core.plugins.packages import install as lay_out

from dryfit.network import plugin_table
from dryfit.plugins import registry
from dryfit.plugins.plugin_registry import PluginRegistry


@pytest.fixture
def install_package(tmp_path, monkeypatch):
    """`tests.core.plugins.packages.install` into a folder on the path, for registries that the test makes itself.

    What the test imports from the folder is forgotten afterwards.
    """
    folder = tmp_path / "strangers"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)

    def installed(*arguments, **named) -> Path:
        lay_out(folder, *arguments, **named)
        importlib.invalidate_caches()
        return folder

    yield installed
    for name, module in [*sys.modules.items()]:
        if str(folder) in str(getattr(module, "__file__", "")):
            del sys.modules[name]


@pytest.fixture
def install(install_package, monkeypatch):
    """A function that installs a package for the registry of this process.

    `install("acme", code)` brings a module `acme` with that code and names it in `dryfit.hooks`; other entry points are
    given by group and name: `install("acme", code, {"dryfit.passes": {"mine": "acme:PASS"}})`.
    """
    monkeypatch.setattr(plugin_table, "_REGISTERED", {**plugin_table._REGISTERED})

    def installed(name, code, entries=None, version="1.0"):
        install_package(name, entries or {"dryfit.hooks": {name: name}}, {name: code}, version)
        monkeypatch.setattr(registry, "__dict__", vars(PluginRegistry()))  # entry points are read once a process

    return installed
