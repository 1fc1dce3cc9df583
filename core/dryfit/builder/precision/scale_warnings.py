"""What is probably wrong with the scales of a network, though a build takes them as they are."""

from __future__ import annotations

from collections.abc import Sequence

from dryfit.builder.config.quantization_mode import is_explicit
from dryfit.network.data_types import DataType
from dryfit.network.io_types import given_types
from dryfit.network.network import Network
from dryfit.quantization.lint.catalogue import findings_of
from dryfit.quantization.lint.network_view import NetworkView
from dryfit.quantization.lint.weights import weights_axis
from dryfit.quantization.scale_table import RangeOrigin, ScaleTable

LEAST_RANGE, LARGEST_RANGE = 2.0**-14, 65504.0
"""Our choice: below the one, everything that the scale covers is subnormal in FP16; beyond the other, it overflows."""
_LARGEST_INPUT = 128.0


def scale_warnings(network: Network, scales: ScaleTable) -> list[str]:
    """Warnings, one sentence each.

    Args:
        network: the user's.
        scales: its scales.
    """
    return [*_unlikely_ranges(scales), *_wide_inputs(network, scales), *_wrong_axes(network)]


def _unlikely_ranges(scales: ScaleTable) -> Sequence[str]:
    found = [
        f"{name!r} {entry.dynamic_range.threshold:.4g}"
        for name, entry in scales.entries.items()
        if entry.dynamic_range is not None and not LEAST_RANGE <= entry.dynamic_range.threshold <= LARGEST_RANGE
    ]
    if not found:
        return []
    others = f" and {len(found) - 1} more" if len(found) > 1 else ""
    where = f"{LEAST_RANGE:.4g} to {LARGEST_RANGE:g}, which FP16 holds"
    return [f"INT8 range outside {where}: {found[0]}{others}. Check the unit of the ranges and the calibration data"]


def _wide_inputs(network: Network, scales: ScaleTable) -> Sequence[str]:
    """INT8 inputs whose calibration data INT8 does not hold.

    Source: TensorRT 8 developer guide, INT8 calibration: data of INT8 inputs are FP32 values of -128 to 127.
    """
    entries = {
        name: scales.entries[name]
        for name, dtype in given_types(network).items()
        if dtype is DataType.INT8 and name in scales.entries
    }
    found = [
        f"{name!r} (up to {entry.dynamic_range.threshold:.4g})"
        for name, entry in entries.items()
        if entry.dynamic_range is not None
        and entry.origin is RangeOrigin.CALIBRATED
        and entry.dynamic_range.threshold > _LARGEST_INPUT
    ]
    allowed = "must be FP32 values from -128 to 127"
    return [f"Calibration data of INT8 inputs {allowed}: they are not for {', '.join(found)}"] if found else []


def _wrong_axes(network: Network) -> Sequence[str]:
    """Weights whose scales follow another axis than that of the output channels."""
    if not is_explicit(network):
        return []
    return [
        f"Scales of the weights of {one.layer!r} must follow the output channels: {one.found}. It is not INT8"
        for one in findings_of(weights_axis, NetworkView(network))
    ]
