"""A build as a Python script for TensorRT's API, which can express more than trtexec and does not require dryfit.

Source: TensorRT's Python API 8.2 to 10; differences between versions are resolved when the script is written.
"""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterator, Sequence

from dryfit.board import script_parts
from dryfit.board.board_build import BoardBuild, BoardFiles, api_problems
from dryfit.board.script_data import Constants, constants_of, constants_text
from dryfit.board.versions import LAYER_METADATA, POOL_LIMITS, version_text
from dryfit.builder.config.enumerations import BuilderFlag, MemoryPoolType
from dryfit.errors import ConfigError

EXPLICIT_BATCH_ENDS = (10, 0)
"""From this version on every network has an explicit batch, and the creation flag is deprecated."""


def python_script(build: BoardBuild, files: BoardFiles, notes: Sequence[str] = ()) -> str:
    """Return the text of the script; `dryfit.board.script_data.parse_script` restores the same build from it.

    Raises:
        ConfigError: This version of TensorRT cannot build it; the message lists all reasons.
    """
    problems = list(api_problems(build))
    if problems:
        raise ConfigError(
            f"TensorRT {version_text(build.software)} cannot build this",
            found="; ".join(problems),
            remedy="Leave it out, or build with a version that has it: --tensorrt VERSION",
        )
    said = constants_of(build, files)
    title = script_parts.TITLE.format(version=version_text(build.software[:2]))
    parts = [*_functions(build, said), _build_function(build, said), _main_function(said)]
    return "\n\n".join([title + comment_text(notes) + constants_text(said), *parts])


def comment_text(notes: Sequence[str]) -> str:
    """Format sentences as comment lines of a script; "" if there are none."""
    return "".join(
        f"{line}\n"
        for note in notes
        for line in textwrap.wrap(
            f"{note}.",
            118,
            initial_indent="# ",
            subsequent_indent="#   ",
            break_long_words=False,
            break_on_hyphens=False,
        )
    )


def _functions(build: BoardBuild, said: Collection[str]) -> Iterator[str]:
    """Return the functions that this build requires."""
    yield script_parts.PARSE
    if build.devices or build.has_layer_types:
        yield script_parts.LAYERS if build.software in LAYER_METADATA else script_parts.LAYERS_BY_NAME
    if build.input_formats or build.output_formats:
        yield script_parts.FORMATS
    for constant, part in (
        ("PROFILES", script_parts.PROFILES),
        ("CALIBRATION_CACHE", script_parts.CALIBRATOR),
        ("PLACEHOLDER_RANGES", script_parts.PLACEHOLDER_RANGES),
    ):
        if constant in said:
            yield part


def _build_function(build: BoardBuild, said: Collection[str]) -> str:
    lines = [*_creation(build), *(line for name, group in _settings(build).items() if name in said for line in group)]
    keep = script_parts.KEEP_TIMING_CACHE if "TIMING_CACHE" in said else ""
    body = "".join(f"    {line}\n" for line in lines)
    return f"{script_parts.BUILD_HEAD}{body}{script_parts.BUILD_END.format(keep_timing_cache=keep)}"


def _creation(build: BoardBuild) -> Iterator[str]:
    flags = ["EXPLICIT_BATCH"] if build.software < EXPLICIT_BATCH_ENDS else []
    flags += ["STRONGLY_TYPED"] if build.is_strongly_typed else []
    mask = " | ".join(f"1 << int(trt.NetworkDefinitionCreationFlag.{flag})" for flag in flags)
    yield f"network = builder.create_network({mask or 0})"
    yield "parse(trt.OnnxParser(network, logger), paths.onnx)"
    yield "config = builder.create_builder_config()"
    if BuilderFlag.TF32 not in build.flags:
        yield "config.clear_flag(trt.BuilderFlag.TF32)"


def _settings(build: BoardBuild) -> dict[str, tuple[str, ...]]:
    """Return the lines that set each constant, by constant."""
    limits = (
        "for pool, limit in MEMORY_POOLS.items():",
        "    config.set_memory_pool_limit(trt.MemoryPoolType.__members__[pool], limit)",
    )
    workspace = (f'config.max_workspace_size = MEMORY_POOLS["{MemoryPoolType.WORKSPACE}"]',)
    return {
        "INPUT_FORMATS": script_parts.SET_INPUT_FORMATS,
        "OUTPUT_FORMATS": script_parts.SET_OUTPUT_FORMATS,
        "FLAGS": ("for flag in FLAGS:", "    config.set_flag(trt.BuilderFlag.__members__[flag])"),
        "QUANTIZATION_FLAGS": (
            "for flag in QUANTIZATION_FLAGS:",
            "    config.set_quantization_flag(trt.QuantizationFlag.__members__[flag])",
        ),
        "DEFAULT_DEVICE": ("config.default_device_type = trt.DeviceType.__members__[DEFAULT_DEVICE]",),
        "DLA_CORE": ("config.DLA_core = DLA_CORE",),
        "CAPABILITY": ("config.engine_capability = trt.EngineCapability.__members__[CAPABILITY]",),
        "DEVICES": script_parts.SET_DEVICES,
        "PRECISIONS": script_parts.SET_PRECISIONS,
        "OUTPUT_TYPES": script_parts.SET_OUTPUT_TYPES,
        "MEMORY_POOLS": limits if build.software in POOL_LIMITS else workspace,
        "PROFILES": ("add_profiles(builder, config)",),
        "CALIBRATION_CACHE": ("config.int8_calibrator = CacheReader(paths.calibration_cache)",),
        "PLACEHOLDER_RANGES": ("set_placeholder_ranges(network)",),
        "PROFILING_VERBOSITY": (
            "config.profiling_verbosity = trt.ProfilingVerbosity.__members__[PROFILING_VERBOSITY]",
        ),
        "OPTIMIZATION_LEVEL": ("config.builder_optimization_level = OPTIMIZATION_LEVEL",),
        "TIMING_CACHE": script_parts.READ_TIMING_CACHE,
    }


def _main_function(said: Constants) -> str:
    files = [name for name in ("ONNX", "ENGINE", "CALIBRATION_CACHE", "TIMING_CACHE") if name in said]
    options = "".join(
        f'    parser.add_argument("--{name.lower().replace("_", "-")}", default={name})\n' for name in files
    )
    return script_parts.MAIN.format(options=options)
