"""The tensor formats of installed devices by name, for tensors, which know no devices."""

from __future__ import annotations

from dryfit.network import tensor_format
from dryfit.plugins import registry


def connect() -> None:
    """Let tensors allow the formats of every installed device."""
    tensor_format.installed_formats = installed_formats


def installed_formats() -> frozenset[str]:
    """Names of the formats that inputs or outputs of an installed device may have; loads all targets."""
    return frozenset(
        one.name
        for target in registry.targets().values()
        for table in (target.input_formats, target.output_formats)
        for formats in table.values()
        for one in formats
    )
