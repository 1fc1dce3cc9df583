"""A build as a trtexec command line."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

from dryfit.attrs_classes import frozen
from dryfit.board.board_build import DEFAULT_LEVEL, BoardBuild, BoardFiles
from dryfit.board.trtexec_meaning import OBEY, PREFER, as_trtexec_builds, trtexec_complaints, trtexec_problems
from dryfit.board.trtexec_options import missing_option
from dryfit.board.trtexec_values import CONSTRAINT_WORDS, FLAG_OPTIONS, shapes_text, types_text
from dryfit.board.versions import version_text
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.config.enumerations import BuilderFlag, EngineCapability, MemoryPoolType, ProfilingVerbosity
from dryfit.builder.config.layer_rules import layer_list
from dryfit.builder.config.trtexec_spellings import io_formats_text, memory_pool_sizes_text
from dryfit.building import design_for_assessment
from dryfit.engine.plan import ProfileShapes
from dryfit.errors import ConfigError
from dryfit.network.network import Network
from dryfit.plugins import registry


@frozen
class TrtexecLine:
    """A trtexec command line.

    Attributes:
        arguments: words after the program's name, unquoted.
        build: build that trtexec performs for them.
        notes: settings that trtexec adds to the requested build, and harmless errors, in sentences.
    """

    arguments: tuple[str, ...]
    build: BoardBuild
    notes: tuple[str, ...]

    def shell_text(self, program: str = "trtexec") -> str:
        """Return the command line for a shell, one option per line; names are quoted if necessary."""
        return " \\\n  ".join(map(shlex.quote, [program, *self.arguments]))


def trtexec_line(build: BoardBuild, files: BoardFiles, network: Network) -> TrtexecLine:
    """Return the command line that builds on the board; `parse_trtexec` restores the same build from it.

    Raises:
        ConfigError: Trtexec cannot express the build; the message lists all reasons.
    """
    meant, notes = as_trtexec_builds(build)
    problems = trtexec_problems(meant, network)
    if problems:
        raise ConfigError(
            f"trtexec of TensorRT {version_text(build.software)} does not support this build",
            found="; ".join(problems),
            source="trtexec in NVIDIA/TensorRT",
            remedy="Write a script for TensorRT's Python API instead, which supports more: --script FILE",
        )
    return TrtexecLine(tuple(_arguments(meant, files)), meant, (*notes, *trtexec_complaints(meant)))


def _arguments(build: BoardBuild, files: BoardFiles) -> Iterator[str]:
    yield f"--onnx={files.onnx}"
    if files.engine:
        yield f"--saveEngine={files.engine}"
    yield from _precisions(build, files)
    yield from _devices(build)
    yield from _borders(build)
    yield from _profiles(build.profiles)
    yield from _other_flags(build.flags)
    if files.timing_cache:
        yield f"--timingCacheFile={files.timing_cache}"
    if build.profiling_verbosity is not ProfilingVerbosity.LAYER_NAMES_ONLY:
        yield f"--profilingVerbosity={build.profiling_verbosity.name.lower()}"
    if build.optimization_level != DEFAULT_LEVEL:
        yield f"--builderOptimizationLevel={build.optimization_level}"
    yield "--buildOnly" if missing_option("--skipInference", build.software) else "--skipInference"


_PRECISIONS = (BuilderFlag.FP16, BuilderFlag.BF16, BuilderFlag.INT8, BuilderFlag.FP8, BuilderFlag.INT4)
_TOLD_ELSEWHERE = frozenset(
    {*_PRECISIONS, BuilderFlag.GPU_FALLBACK, BuilderFlag.DIRECT_IO, BuilderFlag.TF32, *CONSTRAINT_WORDS.values()}
)


def _precisions(build: BoardBuild, files: BoardFiles) -> Iterator[str]:
    if build.is_strongly_typed:
        yield "--stronglyTyped"
    yield from (FLAG_OPTIONS[flag] for flag in _PRECISIONS if flag in build.flags)
    if BuilderFlag.TF32 not in build.flags:
        yield "--noTF32"
    if build.scales is not None:
        yield f"--calib={files.calibration_cache}"
    # For a DLA trtexec prefers constraints anyway, but obeys them where that is said; types of layers count only then.
    if OBEY in build.flags:
        yield "--precisionConstraints=obey"
    elif PREFER in build.flags and (build.has_layer_types or not build.uses_dla):
        yield "--precisionConstraints=prefer"
    if build.precisions:
        yield f"--layerPrecisions={types_text({name: (one,) for name, one in build.precisions.items()})}"
    if build.output_types:
        yield f"--layerOutputTypes={types_text(build.output_types)}"


def _devices(build: BoardBuild) -> Iterator[str]:
    if build.uses_dla:
        yield f"--useDLACore={build.dla_core}"
    if BuilderFlag.GPU_FALLBACK in build.flags:
        yield FLAG_OPTIONS[BuilderFlag.GPU_FALLBACK]
    if build.devices:
        yield f"--layerDeviceTypes={layer_list(build.devices.items())[0]}"
    is_loadable = build.capability is EngineCapability.DLA_STANDALONE
    if build.capability is EngineCapability.SAFETY or (
        is_loadable and missing_option("--buildDLAStandalone", build.software)
    ):
        yield "--safe"
    elif is_loadable:
        yield "--buildDLAStandalone"
    if build.pools and missing_option("--memPoolSize", build.software):
        yield f"--workspace={build.pools[MemoryPoolType.WORKSPACE] >> 20}"
    elif build.pools:
        yield f"--memPoolSize={memory_pool_sizes_text(build.pools)}"


def _borders(build: BoardBuild) -> Iterator[str]:
    for option, formats in (("--inputIOFormats", build.input_formats), ("--outputIOFormats", build.output_formats)):
        if formats:
            yield f"{option}={io_formats_text(formats)}"
    if BuilderFlag.DIRECT_IO in build.flags:
        yield FLAG_OPTIONS[BuilderFlag.DIRECT_IO]


def _profiles(profiles: Sequence[ProfileShapes]) -> Iterator[str]:
    for index, profile in enumerate(profiles):
        if len(profiles) > 1:
            yield f"--profile={index}"
        told = {**profile.shapes, **profile.values}
        # One shape alone: trtexec takes the optimum for the other two as well.
        is_fixed = all(least == best == largest for least, best, largest in told.values())
        for place, option in enumerate(("--minShapes", "--optShapes", "--maxShapes")):
            if place == 1 or not is_fixed:
                yield f"{option}={shapes_text({name: triple[place] for name, triple in told.items()})}"


def _other_flags(flags: frozenset[BuilderFlag]) -> Iterator[str]:
    yield from (FLAG_OPTIONS[flag] for flag in sorted(flags - _TOLD_ELSEWHERE))


# Limits that a build lowers to what a core has ------------------------------------------------------------------------


@frozen
class LoweredLimits:
    """The lowered memory pool limits of a config.

    Attributes:
        limits: limit in bytes by memory pool, for limits that were set and lowered.
        notes: lowered limits with their reasons, in sentences.
    """

    limits: Mapping[str, int]
    notes: tuple[str, ...] = ()


def lowered_limits(network: Network, config: BuilderConfig) -> LoweredLimits:
    """Return the set limits that a build of this network lowers; the network is placed only if necessary.

    Raises:
        DryfitError: A limit may have to be lowered, and the network cannot be placed.
    """
    asked: Mapping[str, int] = config.settings(network)["memory_pool_limits"]
    if not any(_may_be_lowered(name, limit, config) for name, limit in asked.items()):
        return LoweredLimits({})
    design = design_for_assessment(network, config)
    kept = {name: limit for variant in design.variants.values() for name, limit in variant.pool_limits.items()}
    lowered = {
        name: limit for name, before in asked.items() if (limit := kept.get(name)) is not None and limit < before
    }
    return LoweredLimits(lowered, tuple(design.memory_warnings))


def _may_be_lowered(name: str, limit: int, config: BuilderConfig) -> bool:
    """Return whether a pool is a cache that segments may oversubscribe on a core."""
    return any(
        limit * pool.segments_at_once > pool.core_bytes[family]
        for target in registry.targets().values()
        for pool in target.memory_pools
        if pool.name == name and pool.holds == "cache"
        if (family := config.platform(target.device).family) in pool.core_bytes
    )
