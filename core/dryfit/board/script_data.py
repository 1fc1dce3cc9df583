"""The constants at the top of the Python script for the board, which hold the whole build, and their parser."""

from __future__ import annotations

import ast
import pprint
from collections.abc import Callable, Mapping
from typing import Any

from dryfit.board.board_build import BoardBuild, BoardFiles
from dryfit.board.versions import Version, version_text
from dryfit.builder.config.enumerations import BuilderFlag, EngineCapability, ProfilingVerbosity, QuantizationFlag
from dryfit.builder.config.trtexec_spellings import IoFormat
from dryfit.engine.plan import ProfileShapes
from dryfit.errors import ConfigError
from dryfit.network.data_types import DataType

Constants = dict[str, Any]
"""Name to plain data. What is as TensorRT has it of itself has no constant."""


def constants_of(build: BoardBuild, files: BoardFiles) -> Constants:
    """Return the constants of a build."""
    usual = BoardBuild(build.software)
    said: Constants = {
        "TENSORRT": version_text(build.software),
        "ONNX": files.onnx,
        "ENGINE": files.engine,
        "FLAGS": [flag.name for flag in sorted(build.flags)],
    }
    if build.scales is not None:
        said["CALIBRATION_CACHE"] = files.calibration_cache
    optional: Constants = {
        "TIMING_CACHE": files.timing_cache,
        "QUANTIZATION_FLAGS": [flag.name for flag in sorted(build.quantization_flags)],
        "DEVICES": dict(build.devices),
        "PRECISIONS": {name: dtype.name for name, dtype in build.precisions.items()},
        "OUTPUT_TYPES": {name: [one.name for one in types] for name, types in build.output_types.items()},
        "INPUT_FORMATS": [(one.dtype.name, list(one.formats)) for one in build.input_formats],
        "OUTPUT_FORMATS": [(one.dtype.name, list(one.formats)) for one in build.output_formats],
        "MEMORY_POOLS": dict(build.pools),
        "PROFILES": [(dict(profile.shapes), dict(profile.values)) for profile in build.profiles],
        "STRONGLY_TYPED": build.is_strongly_typed,
        "PLACEHOLDER_RANGES": build.assumes_scales,
    }
    words = (
        ("DEFAULT_DEVICE", build.default_device, usual.default_device),
        ("DLA_CORE", build.dla_core, usual.dla_core),
        ("CAPABILITY", build.capability.name, usual.capability.name),
        ("PROFILING_VERBOSITY", build.profiling_verbosity.name, usual.profiling_verbosity.name),
        ("OPTIMIZATION_LEVEL", build.optimization_level, usual.optimization_level),
    )
    said |= {name: value for name, value in optional.items() if value}
    return said | {name: value for name, value, default in words if value != default}


def constants_text(constants: Mapping[str, object]) -> str:
    """Return the constants as lines of Python."""
    return "".join(
        f"{name} = {pprint.pformat(value, width=110 - len(name), sort_dicts=False)}\n"
        for name, value in constants.items()
    )


def parse_script(text: str, read_scales: Callable[[str], Mapping[str, float]]) -> tuple[BoardBuild, BoardFiles]:
    """Parse the build that a script creates, and its files. The script is not run: only its constants are read.

    Args:
        text: text written by `dryfit.board.python_script`.
        read_scales: function that returns the scales in the calibration cache at a path.

    Raises:
        ConfigError: The text is not such a script.
    """
    try:
        said = {
            statement.targets[0].id: ast.literal_eval(statement.value)
            for statement in ast.parse(text).body
            if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)
        }
        return _build(said, read_scales), BoardFiles(
            said["ONNX"], said["ENGINE"], said.get("CALIBRATION_CACHE", ""), said.get("TIMING_CACHE", "")
        )
    except (SyntaxError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            "The generated script is not valid",
            where="script",
            found=f"{type(error).__name__}: {error}",
            remedy="Export the script again",
        ) from error


def _build(said: Constants, read_scales: Callable[[str], Mapping[str, float]]) -> BoardBuild:
    software: Version = tuple(int(part) for part in said["TENSORRT"].split("."))
    usual = BoardBuild(software)
    return BoardBuild(
        software,
        frozenset(BuilderFlag[name] for name in said["FLAGS"]),
        said.get("DEFAULT_DEVICE", usual.default_device),
        said.get("DLA_CORE", usual.dla_core),
        EngineCapability[said.get("CAPABILITY", usual.capability.name)],
        said.get("DEVICES", {}),
        {name: DataType[dtype] for name, dtype in said.get("PRECISIONS", {}).items()},
        {name: tuple(DataType[one] for one in types) for name, types in said.get("OUTPUT_TYPES", {}).items()},
        _formats(said.get("INPUT_FORMATS", [])),
        _formats(said.get("OUTPUT_FORMATS", [])),
        said.get("MEMORY_POOLS", {}),
        tuple(ProfileShapes(shapes, values) for shapes, values in said.get("PROFILES", [])),
        read_scales(said["CALIBRATION_CACHE"]) if "CALIBRATION_CACHE" in said else None,
        said.get("PLACEHOLDER_RANGES", False),
        said.get("STRONGLY_TYPED", False),
        frozenset(QuantizationFlag[name] for name in said.get("QUANTIZATION_FLAGS", [])),
        ProfilingVerbosity[said.get("PROFILING_VERBOSITY", usual.profiling_verbosity.name)],
        said.get("OPTIMIZATION_LEVEL", usual.optimization_level),
    )


def _formats(entries: list[tuple[str, list[str]]]) -> tuple[IoFormat, ...]:
    return tuple(IoFormat(DataType[dtype], tuple(names)) for dtype, names in entries)
