"""The enumerations of the module `tensorrt` in TensorRT 8 and 10, with their numbers.

Source: TensorRT's Python bindings of 8.6.1 and 10.16; for older releases their `BuilderFlag` and release notes.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping

Version = tuple[int, ...]

FORMATS = (
    *("LINEAR", "CHW2", "HWC8", "CHW4", "CHW16", "CHW32", "DHWC8", "CDHW32", "HWC", "DLA_LINEAR", "DLA_HWC4"),
    *("HWC16", "DHWC"),
)
_FLAGS_8 = (
    *("FP16", "INT8", "DEBUG", "GPU_FALLBACK", "STRICT_TYPES", "REFIT", "DISABLE_TIMING_CACHE", "TF32"),
    *("SPARSE_WEIGHTS", "SAFETY_SCOPE", "OBEY_PRECISION_CONSTRAINTS", "PREFER_PRECISION_CONSTRAINTS", "DIRECT_IO"),
    "REJECT_EMPTY_ALGORITHMS",
)
_FLAGS_8_6 = (*_FLAGS_8, "ENABLE_TACTIC_HEURISTIC", "VERSION_COMPATIBLE", "EXCLUDE_LEAN_RUNTIME", "FP8")
_FLAGS_10 = (
    *("FP16", "INT8", "DEBUG", "GPU_FALLBACK", "REFIT", "DISABLE_TIMING_CACHE", "TF32", "SPARSE_WEIGHTS"),
    *("SAFETY_SCOPE", "OBEY_PRECISION_CONSTRAINTS", "PREFER_PRECISION_CONSTRAINTS", "DIRECT_IO"),
    *("REJECT_EMPTY_ALGORITHMS", "VERSION_COMPATIBLE", "EXCLUDE_LEAN_RUNTIME", "FP8", "ERROR_ON_TIMING_CACHE_MISS"),
    *("BF16", "DISABLE_COMPILATION_CACHE", "STRIP_PLAN", "REFIT_IDENTICAL", "WEIGHT_STREAMING", "INT4"),
    *("REFIT_INDIVIDUAL", "STRICT_NANS", "MONITOR_MEMORY", "FP4", "EDITABLE_TIMING_CACHE"),
    "DISTRIBUTIVE_INDEPENDENCE",
)
_TYPES = ("FLOAT", "HALF", "INT8", "INT32", "BOOL", "UINT8", "FP8", "BF16", "INT64", "INT4")
_POOLS = ("WORKSPACE", "DLA_MANAGED_SRAM", "DLA_LOCAL_DRAM", "DLA_GLOBAL_DRAM", "TACTIC_DRAM")


def enumerations(version: Version) -> Mapping[str, type[enum.IntEnum]]:
    """Name to enumeration, as a version has them."""
    is_10, is_8_6 = version >= (10,), version >= (8, 6)
    members = {
        "BuilderFlag": _FLAGS_10 if is_10 else _FLAGS_8_6 if is_8_6 else _FLAGS_8,
        "NetworkDefinitionCreationFlag": ("EXPLICIT_BATCH", "STRONGLY_TYPED" if is_10 else "EXPLICIT_PRECISION"),
        "DataType": _TYPES if is_10 else _TYPES[:7] if is_8_6 else _TYPES[:5],
        "TensorFormat": FORMATS,
        "DeviceType": ("GPU", "DLA"),
        "EngineCapability": ("STANDARD", "SAFETY", "DLA_STANDALONE"),
        "ProfilingVerbosity": ("LAYER_NAMES_ONLY", "NONE", "DETAILED"),
        "QuantizationFlag": ("CALIBRATE_BEFORE_FUSION",),
    }
    if version >= (8, 4):
        members["MemoryPoolType"] = _POOLS
    return {name: enum.IntEnum(name, names, start=0) for name, names in members.items()}
