"""Targets that are installed for one test."""

import importlib
import sys

import pytest

from dryfit.plugins import registry
from dryfit.plugins.discovery import TARGETS
from dryfit.plugins.plugin_registry import PluginRegistry

MODULE = "acme_in_memory"


@pytest.fixture
def install(tmp_path, monkeypatch):
    """A function that installs a target as a package of its own, and returns it.

    `install(target)` takes any record; another process finds a package without one. `install(target, "module:NAME")`
    installs the record that stands there, in every process.
    """
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(site)

    def installed(target, place=f"{MODULE}:TARGET"):
        metadata = site / "acme-1.0.dist-info"
        metadata.mkdir(exist_ok=True)
        (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text(f"[{TARGETS}]\n{target.device} = {place}\n")
        (site / f"{MODULE}.py").write_text("")
        importlib.invalidate_caches()
        monkeypatch.delitem(sys.modules, MODULE, raising=False)
        monkeypatch.setattr(importlib.import_module(MODULE), "TARGET", target, raising=False)
        monkeypatch.setattr(registry, "__dict__", vars(PluginRegistry()))  # entry points are read once a process
        return target

    yield installed
    sys.modules.pop(MODULE, None)
