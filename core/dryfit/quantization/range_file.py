"""Dynamic ranges set by hand from a file, such as that of TensorRT's sampleINT8API: `name: range`, one tensor a line.

A range is the largest magnitude: a tensor has values from minus to plus that. Other forms have both ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dryfit.errors import CalibrationError
from dryfit.network.network import Network
from dryfit.quantization.cache_forms import cache_form, read_ranges_file
from dryfit.quantization.dynamic_range import DynamicRange
from dryfit.quantization.stored_ranges import StoredRange, StoredRanges
from dryfit.quantization.threshold_lines import RANGE_LINES


def read_ranges(path: Path) -> dict[str, DynamicRange]:
    """The ranges in a file of any form, by tensor, in the file's order; tensors without one are left out.

    Raises:
        CalibrationError: the file cannot be read, or an entry is none or has no range; names file and line.
    """
    return {one.name: one.dynamic_range for one in read_ranges_file(path).entries if one.dynamic_range is not None}


def ranges_text(ranges: Mapping[str, DynamicRange]) -> str:
    """The text of a file in sampleINT8API's form with these ranges; reading it gives the same thresholds.

    Raises:
        CalibrationError: a name cannot stand in such a file.

    Example:
        >>> ranges_text({"conv1": DynamicRange(-5.5, 2.0)}).splitlines()
        ['conv1: 5.5']
    """
    entries = [StoredRange.of_threshold(name, one.threshold) for name, one in ranges.items()]
    return cache_form(RANGE_LINES.name).write(StoredRanges(entries, RANGE_LINES.name)).decode()


def set_ranges(network: Network, ranges: Mapping[str, DynamicRange], where: str = "ranges") -> None:
    """Set the ranges of a network's tensors by hand.

    Raises:
        CalibrationError: tensors are named that the network does not have; all of them are.
    """
    unknown = [name for name in ranges if network.find_tensor(name) is None]
    if unknown:
        raise CalibrationError(
            "The network has no such tensors",
            where=where,
            found=", ".join(map(repr, unknown)),
            remedy="Remove these lines, or take the file that belongs to the model",
        )
    for name, one in ranges.items():
        network.tensor(name).dynamic_range = (one.minimum, one.maximum)
