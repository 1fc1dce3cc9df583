"""What of a build a TensorRT version does not have at all, neither in trtexec nor in its Python API."""

from __future__ import annotations

from collections.abc import Iterator

from dryfit.board.board_build import DEFAULT_LEVEL, BoardBuild
from dryfit.board.versions import (
    FLAG_VERSIONS,
    OPTIMIZATION_LEVEL,
    POOL_LIMITS,
    STRONG_TYPING,
    TYPE_VERSIONS,
    Versions,
    version_text,
)
from dryfit.builder.config.enumerations import MemoryPoolType
from dryfit.network.data_types import DataType


def api_problems(build: BoardBuild) -> Iterator[str]:
    """Why the build's version of TensorRT cannot build it, all reasons; none where it can."""
    for what, versions in _needed(build):
        if versions is None:
            yield f"TensorRT has no {what}"
        elif build.software not in versions:
            yield f"TensorRT {version_text(build.software)} has no {what} ({versions})"


def _needed(build: BoardBuild) -> Iterator[tuple[str, Versions | None]]:
    """What the build takes, and the versions that have it; None for none."""
    for flag in sorted(build.flags):
        yield f"flag {flag.name}", FLAG_VERSIONS[flag]
    for dtype in dict.fromkeys(_types(build)):
        yield f"type {dtype.name}", TYPE_VERSIONS.get(dtype)
    for pool in build.pools:
        if pool not in set(MemoryPoolType):
            yield f"memory pool {pool}", None
        elif pool != MemoryPoolType.WORKSPACE:
            yield f"limit of memory pool {pool}", POOL_LIMITS
    if build.is_strongly_typed:
        yield "strongly typed networks", STRONG_TYPING
    if build.optimization_level != DEFAULT_LEVEL:
        yield "builder optimization level", OPTIMIZATION_LEVEL


def _types(build: BoardBuild) -> Iterator[DataType]:
    yield from (one.dtype for one in (*build.input_formats, *build.output_formats))
    yield from build.precisions.values()
    for types in build.output_types.values():
        yield from types
