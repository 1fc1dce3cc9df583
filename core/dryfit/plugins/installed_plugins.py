"""What is installed and in which state, told without importing any of it."""

from __future__ import annotations

import ast
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Literal

from dryfit.attrs_classes import frozen
from dryfit.plugins.discovery import (
    CALIBRATORS,
    GROUPS,
    HOOKS,
    IMPORTERS,
    LAYERS,
    METRICS,
    ONNX_OPERATORS,
    OVERLAYS,
    PASSES,
    QUANTIZE_METHODS,
    TARGETS,
    PluginOwner,
    module_of,
    owner_of,
)
from dryfit.plugins.entry_points import EntryPoints, plain_name

State = Literal["available", "loaded", "disabled", "failed", "duplicate"]
"""`available` means that nothing has been tried."""

_THINGS = {
    TARGETS: "device",
    LAYERS: "layer plugin",
    IMPORTERS: "model format",
    ONNX_OPERATORS: "ONNX operator",
    PASSES: "pass",
    CALIBRATORS: "calibrator",
    QUANTIZE_METHODS: "quantize method",
    OVERLAYS: "overlay",
    METRICS: "metric",
}


@frozen
class InstalledPlugin:
    """An entry point of an installed package.

    Attributes:
        group, name, value: the entry point.
        distribution, version: the package; "" where its metadata does not say.
        registers: what it brings, as far as its name or source tells.
        state: `available` where nothing has been tried.
        reason: by what it is disabled, why it failed, who else claims its name; "" otherwise.
    """

    group: str
    name: str
    value: str
    distribution: str
    version: str
    registers: str
    state: State
    reason: str

    @property
    def owner(self) -> PluginOwner:
        """The plugin."""
        return PluginOwner(self.distribution, self.version, self.group, self.name)


def installed_plugins(plugins: EntryPoints) -> list[InstalledPlugin]:
    """Every plugin of a registry, sorted by package, group and name. Nothing is imported."""
    found = []
    for group in GROUPS:
        duplicates = plugins.duplicates(group)
        for entry in plugins.all_entries(group):
            owner = owner_of(entry)
            state, reason = _state(entry, plugins, duplicates)
            facts = (owner.group, owner.name, entry.value, owner.distribution, owner.version)
            found.append(InstalledPlugin(*facts, _registers(entry), state, reason))
    return sorted(found, key=lambda one: one.owner)


def _state(entry: EntryPoint, plugins: EntryPoints, duplicates: dict[PluginOwner, str]) -> tuple[State, str]:
    owner = owner_of(entry)
    switched_off = plugins.switches.reason(owner)
    if switched_off:
        return "disabled", f"by {switched_off}"
    if owner in duplicates:
        return "duplicate", duplicates[owner]
    if module_of(entry.value) is None:
        return "failed", f"malformed entry point: {entry.name!r} = {entry.value!r}"
    if plugins.is_loaded(owner):
        return "loaded", ""
    failures = [str(one.message) for one in plugins.failures() if one.owner == owner]
    return ("failed", failures[0]) if failures else ("available", "")


def _registers(entry: EntryPoint) -> str:
    if entry.group == HOOKS:
        hooks = _hooks_in_source(module_of(entry.value) or "")
        return f"hooks {', '.join(hooks)}" if hooks else "hooks"
    return f"{_THINGS[entry.group]} {plain_name(entry.group, entry.name)}"


def _hooks_in_source(module: str) -> list[str]:
    """The functions that a module marks as hook implementations, read from its text; none where it cannot be read."""
    place = Path(*module.split("."))
    for folder in sys.path:
        for path in (Path(folder) / place.with_suffix(".py"), Path(folder) / place / "__init__.py"):
            if path.is_file():
                try:
                    tree = ast.parse(path.read_bytes())
                except (SyntaxError, ValueError, OSError):
                    return []
                functions = [one for one in tree.body if isinstance(one, ast.FunctionDef)]
                return sorted(one.name for one in functions if any(map(_is_mark, one.decorator_list)))
    return []


def _is_mark(decorator: ast.expr) -> bool:
    """Whether a decorator is `hookimpl`, by whatever path, called or not."""
    return "hookimpl" in {getattr(node, "attr", getattr(node, "id", "")) for node in ast.walk(decorator)}
