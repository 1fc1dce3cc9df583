"""Fills a module with the names of a version."""

from __future__ import annotations

from typing import Any

from dryfit_tensorrt.behaviour.quick_plugins import plugin_module
from dryfit_tensorrt.behaviour.values import nptype, volume
from dryfit_tensorrt.namespace import Namespace, namespace
from dryfit_tensorrt.settings import api_level
from dryfit_tensorrt.surface.changes import removal_text

_DTYPES = {
    "float32": "FLOAT",
    "float16": "HALF",
    "bfloat16": "BF16",
    "int8": "INT8",
    "int32": "INT32",
    "int64": "INT64",
    "bool": "BOOL",
    "uint8": "UINT8",
    "fp8": "FP8",
    "int4": "INT4",
    "fp4": "FP4",
    "e8m0": "E8M0",
}
"""Alias of a data type to its member."""


def contents(name: str) -> dict[str, Any]:
    """Return everything that the module of a version shows, by name.

    Args:
        name: name of the version, as `--api` takes it.
    """
    api = namespace(api_level(name))
    shown = {key: value for key, value in api.names.items() if key != "Severity"}
    types = api.DataType.__members__
    shown.update({alias: types[member] for alias, member in _DTYPES.items() if member in types})
    shown.update(
        __version__=api.level.version,
        nptype=nptype,
        volume=volume,
        init_libnvinfer_plugins=_init_plugins,
        get_plugin_registry=api.get_plugin_registry,
        get_nv_onnx_parser_version=lambda: _parser_version(api),
        get_builder_plugin_registry=lambda capability: api.get_plugin_registry(),
    )
    if api.major >= 10:
        shown["plugin"] = plugin_module(api)
    if api.major == 8:
        shown.update(ResizeMode=api.InterpolationMode, SliceMode=api.SampleMode)
    return shown


def missing(version: str, name: str) -> AttributeError:
    """Return the error of a name that a version's module lacks.

    Args:
        version: name of the version, as `--api` takes it.
        name: the name.
    """
    found = removal_text(name, int(version.partition(".")[0]))
    text = f"module 'tensorrt' has no attribute {name!r} (TensorRT {version}, simulated by dryfit)"
    return AttributeError(f"{text}: {found}" if found else text, name=name)


def _init_plugins(logger: Any, namespace: str) -> bool:
    """Return True: the plugins of NVIDIA's library that dryfit has are layers, found by name."""
    del logger, namespace
    return True


def _parser_version(api: Namespace) -> int:
    major, minor, patch = map(int, api.level.version.split("."))
    return (major * 100 + minor) * 100 + patch if api.major >= 10 else major * 1000 + minor * 100 + patch
