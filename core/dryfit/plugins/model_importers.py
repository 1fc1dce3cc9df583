"""Model formats of installed packages: which importer reads a file, by its content and then by its suffix.

An entry point in the group `dryfit.importers` names a `dryfit.plugins.contributions.ModelImporter`. The entry point's
name is the format's.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

from dryfit.errors import PluginError
from dryfit.plugins import registry
from dryfit.plugins.contributions import ModelImporter
from dryfit.plugins.discovery import IMPORTERS, ONNX_OPERATORS

FIRST_BYTES = 64
"""How much of a file an importer sees when it is asked whether the file is of its format."""

DEFAULT_FORMAT = "onnx"
"""The format of files that no importer recognises, by content or suffix: ONNX files have no signature."""


def model_importers() -> dict[str, ModelImporter]:
    """Return every importer that can be loaded, by name, sorted; the failures of the others are recorded."""
    record_moved_operators()
    if IMPORTERS not in registry.answers:
        registry.answers[IMPORTERS] = registry.load_all(IMPORTERS, _prepare)
    found: dict[str, ModelImporter] = registry.answers[IMPORTERS]
    return found


def importer_of(source: str | os.PathLike[str] | bytes) -> ModelImporter:
    """Return the importer of a model file: the one that recognises its content, or else has its suffix, or else ONNX's.

    Args:
        source: a path, or the bytes of a file. A file that cannot be read is left to the importer of its suffix.

    Raises:
        PluginError: The importer is switched off or broken.
    """
    first, suffix = _first_bytes(source), "" if isinstance(source, bytes) else Path(source).suffix.lower()
    importers = model_importers()
    for importer in importers.values():
        if first and importer.recognises(first):
            return importer
    for importer in importers.values():
        if suffix and suffix in importer.suffixes:
            return importer
    return _named(DEFAULT_FORMAT)


def is_model_file(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is a model by its content or suffix, and not an engine or something else."""
    first, suffix = _first_bytes(path), Path(path).suffix.lower()
    return any((first and one.recognises(first)) or suffix in one.suffixes for one in model_importers().values())


def _named(name: str) -> ModelImporter:
    """Return the importer of a format.

    Raises:
        PluginError: It is not installed, switched off or broken.
    """
    entry = registry.entry(IMPORTERS, name)
    if entry is None:
        raise PluginError(
            "No installed package reads this model format",
            found=name,
            allowed=", ".join(model_importers()),
            remedy="Install a package that reads it",
        )
    loaded: ModelImporter = registry.require(entry, _prepare(entry), f"The model format {name!r} could not be loaded")
    return loaded


def record_moved_operators() -> None:
    """Record entry points that are in the group of model formats under the name of an ONNX operator."""
    for entry in registry.entries(IMPORTERS):
        if "::" in entry.name:
            registry.fail(
                entry,
                f"An importer of an ONNX operator must be in the entry-point group {ONNX_OPERATORS} (found "
                f"{IMPORTERS}, which names model formats)",
                remedy=f"Rename the group in the package to {ONNX_OPERATORS}",
            )


def _first_bytes(source: str | os.PathLike[str] | bytes) -> bytes:
    if isinstance(source, bytes):
        return source[:FIRST_BYTES]
    try:
        with Path(source).open("rb") as file:
            return file.read(FIRST_BYTES)
    except OSError:
        return b""


def _prepare(entry: EntryPoint) -> Callable[[Any], ModelImporter]:
    """The function that checks what an entry point names."""

    def prepare(loaded: Any) -> ModelImporter:
        if not isinstance(loaded, ModelImporter):
            raise PluginError(
                "The entry point must name a model importer",
                found=type(loaded).__name__,
                allowed="a ModelImporter",
                remedy="Let the entry point name a ModelImporter",
            )
        if loaded.name != entry.name:
            raise PluginError(
                "A model importer must have the name of its entry point",
                found=f"{loaded.name!r}",
                allowed=f"{entry.name!r}",
                remedy="Rename the entry point or the model importer",
            )
        return loaded

    return prepare
