"""What a dump says of the results of a design's stages."""

from __future__ import annotations

from collections.abc import Iterator

from dryfit.builder.placement.assign import Assignment
from dryfit.quantization.scale_table import ScaleTable


def scale_lines(scales: ScaleTable) -> Iterator[str]:
    """Each tensor with its scale and where that comes from, then what contradicts itself."""
    for entry in scales.entries.values():
        scale = "no scale" if entry.dynamic_range is None else f"{entry.dynamic_range.scale:.9g}"
        yield f"{entry.tensor}: {scale}, {entry.words}"
    yield from map(str, scales.conflicts)


def assignment_lines(assignment: Assignment) -> Iterator[str]:
    """Each layer with its device and the reason."""
    for layer, device in assignment.devices.items():
        yield f"{layer}: {device} ({assignment.causes[layer]})"
