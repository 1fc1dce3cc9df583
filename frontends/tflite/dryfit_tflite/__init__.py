"""The importer of TFLite models: a plugin that gives dryfit the network of a `.tflite` file.

`model_file` reads a file with the schema's published bindings and verifies what they trust; `importer` turns it into a
network, operator by operator; `operators/` has one file per family of operators.
"""

from __future__ import annotations

from typing import Any

from dryfit.plugins.contributions import ImportedModel, ImportOptions, ModelImporter

FILE_IDENTIFIER = b"TFL3"
"""Bytes 4 to 7 of every TFLite file. Source: the schema's `file_identifier`."""


def is_tflite(first_bytes: bytes) -> bool:
    """Return whether a file that begins with these bytes is a TFLite model."""
    return first_bytes[4:8] == FILE_IDENTIFIER


def _read(source: Any, options: ImportOptions) -> ImportedModel:
    from dryfit_tflite.importer import network_from_tflite  # at first use: it needs the schema's bindings

    return network_from_tflite(source, options)


def _without_names(source: Any) -> bytes:
    from dryfit_tflite.model_file import without_names

    return without_names(source)


IMPORTER = ModelImporter(
    name="tflite",
    title="TFLite",
    suffixes=(".tflite", ".lite"),
    recognises=is_tflite,
    read=_read,
    without_names=_without_names,
)
"""The entry point `tflite` of the group `dryfit.importers`."""
