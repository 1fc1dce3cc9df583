"""The format and strides of an engine's tensors on their devices."""

from __future__ import annotations

from collections.abc import Sequence

from dryfit.engine.plan import Plan
from dryfit.errors import EngineFileError
from dryfit.network.data_types import DataType
from dryfit.network.tensor import Shape
from dryfit.plugins import registry
from dryfit.target.formats import LINEAR, TensorFormat

_DESCRIPTIONS = {
    "CHW2": "Two wide channel vectorized row major {type} format",
    "CHW4": "Four wide channel vectorized row major {type} format",
    "CHW16": "Sixteen wide channel vectorized row major {type} format",
    "CHW32": "Thirty-two wide channel vectorized row major {type} format",
    "HWC": "Channel major {type} format",
    "HWC8": "Channel major {type} format where channel % 8 == 0",
    "HWC16": "Channel major {type} format where channel % 16 == 0",
    "DLA_LINEAR": "Row major {capitals} format where column stride % 64 == 0",
    "DLA_HWC4": "Channel major {capitals} format where channel == 4 and column stride % 32 == 0",
}
"""What TensorRT writes for each format. The stride of DLA_HWC4 is Xavier's in the text of every platform."""
_LINEAR = {
    DataType.FLOAT: "Row major linear FP32",
    DataType.INT32: "Row major linear Int32",
    DataType.BOOL: "Row major linear BOOL",
    DataType.INT8: "Row major Int8 format",
}
"""What TensorRT writes for LINEAR where it is not `Row major linear TYPE format`."""
_TYPE_NAMES = {
    DataType.FLOAT: "FP32",
    DataType.HALF: "FP16",
    DataType.BF16: "BFloat16",
    DataType.INT8: "Int8",
    DataType.INT32: "Int32",
    DataType.INT64: "Int64",
    DataType.UINT8: "UInt8",
}


def tensor_format(plan: Plan, name: str) -> TensorFormat:
    """Return the format of a tensor on its device; LINEAR if the plan does not state one.

    Raises:
        EngineFileError: The tensor's device does not have the format.
        UnknownNameError: No installed package provides the device.
    """
    placement = plan.placements.get(name)
    if placement is None or placement.format == LINEAR.name:
        return LINEAR
    target = registry.target(placement.device)
    for table in (target.output_formats, target.input_formats):
        for formats in table.values():
            for candidate in formats:
                if candidate.name == placement.format:
                    return candidate
    raise EngineFileError(
        "The device does not support this tensor format",
        where=f"tensor {name!r}",
        found=f"{placement.format} on {placement.device}",
        allowed="the formats that the installed target declares",
        remedy="Build the engine again with the installed version of the target",
    )


def platform_family(plan: Plan, device: str) -> str:
    """Return the family of the platform that a device was built for."""
    platforms = plan.settings.get("platforms")
    chosen = platforms.get(device) if isinstance(platforms, dict) else None
    return registry.target(device).platform(chosen if isinstance(chosen, str) else None).family


def device_strides(plan: Plan, name: str, shape: Shape, dtype: DataType) -> Sequence[int]:
    """Return the strides of a tensor in its device's memory, in elements or vectors of elements."""
    described = tensor_format(plan, name)
    placement = plan.placements.get(name)
    family = "" if placement is None or described is LINEAR else platform_family(plan, placement.device)
    return described.strides(shape, dtype, family)


def format_description(plan: Plan, name: str, dtype: DataType) -> str:
    """Return the format as TensorRT's `get_tensor_format_desc` describes it, which tools search for."""
    described = tensor_format(plan, name)
    kind = _TYPE_NAMES.get(dtype, dtype.name)
    if described.name == LINEAR.name:
        return _LINEAR.get(dtype, f"Row major linear {kind} format")
    text = _DESCRIPTIONS.get(described.name, f"{described.name} {{type}} format")
    return text.format(type=kind, capitals=kind.upper())
