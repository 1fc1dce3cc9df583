"""Which TensorRT versions have what, as far as a build is told of it.

Source: TensorRT's release notes, its `BuilderFlag` and the option parser of trtexec in NVIDIA/TensorRT, by release. Of
two releases between which something appeared the later one stands here.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from dryfit.builder.config.enumerations import BuilderFlag
from dryfit.errors import ConfigError
from dryfit.network.data_types import DataType

Version = tuple[int, ...]
"""Such as (8, 6) or (8, 5, 10)."""

OLDEST: Version = (8, 2)
FIRST_REFUSED: Version = (11,)
"""TensorRT 11 has no implicit quantization, no precisions of layers, and other words for formats."""


@attrs.frozen
class Versions:
    """The versions that have something.

    Attributes:
        since: the first one.
        until: the first one without it; None where it is still there.

    Example:
        >>> (8, 5) in Versions((8, 4), (10,)), str(Versions((8, 4), (10,)))
        (True, 'TensorRT 8.4 and later, before 10')
    """

    since: Version = OLDEST
    until: Version | None = None

    def __contains__(self, software: Version) -> bool:
        return software >= self.since and (self.until is None or software < self.until)

    def __str__(self) -> str:
        ended = "" if self.until is None else f", before {version_text(self.until)}"
        return f"TensorRT {version_text(self.since)} and later{ended}"


def version_text(software: Version) -> str:
    """The version as people write it."""
    return ".".join(map(str, software))


def require_known(software: Version) -> None:
    """Refuse a version that nothing is written for.

    Raises:
        ConfigError: it is older than TensorRT 8.2, or not older than 11.
    """
    if not OLDEST <= software < FIRST_REFUSED:
        raise ConfigError(
            "Builds are written for TensorRT 8.2 to 10",
            where="TensorRT version",
            found=version_text(software),
            allowed=f"{version_text(OLDEST)} or later, before {version_text(FIRST_REFUSED)}",
        )


FLAG_VERSIONS: Mapping[BuilderFlag, Versions] = {
    **dict.fromkeys(BuilderFlag, Versions()),
    BuilderFlag.FP8: Versions((8, 6)),
    BuilderFlag.VERSION_COMPATIBLE: Versions((8, 6)),
    BuilderFlag.EXCLUDE_LEAN_RUNTIME: Versions((8, 6)),
    BuilderFlag.BF16: Versions((10, 0)),
    BuilderFlag.ERROR_ON_TIMING_CACHE_MISS: Versions((10, 0)),
    BuilderFlag.DISABLE_COMPILATION_CACHE: Versions((10, 0)),
    BuilderFlag.STRIP_PLAN: Versions((10, 0)),
    BuilderFlag.REFIT_IDENTICAL: Versions((10, 0)),
    BuilderFlag.WEIGHT_STREAMING: Versions((10, 0)),
    BuilderFlag.INT4: Versions((10, 3)),
    BuilderFlag.REFIT_INDIVIDUAL: Versions((10, 3)),
    BuilderFlag.STRICT_NANS: Versions((10, 3)),
    BuilderFlag.MONITOR_MEMORY: Versions((10, 8)),
    BuilderFlag.FP4: Versions((10, 8)),
    BuilderFlag.EDITABLE_TIMING_CACHE: Versions((10, 8)),
    BuilderFlag.DISTRIBUTIVE_INDEPENDENCE: Versions((10, 13)),
}
"""The versions whose `BuilderFlag` has each flag."""

TYPE_VERSIONS: Mapping[DataType, Versions] = {
    DataType.FLOAT: Versions(),
    DataType.HALF: Versions(),
    DataType.INT8: Versions(),
    DataType.INT32: Versions(),
    DataType.BOOL: Versions(),
    DataType.UINT8: Versions((8, 6)),
    DataType.FP8: Versions((8, 6)),
    DataType.BF16: Versions((10, 0)),
    DataType.INT64: Versions((10, 0)),
    DataType.INT4: Versions((10, 0)),
    DataType.FP4: Versions((10, 8)),
    DataType.E8M0: Versions((10, 11)),
}
"""The versions whose `DataType` has each type."""

POOL_LIMITS = Versions((8, 4))
"""Limits of memory pools; before there is one for the workspace alone."""
OPTIMIZATION_LEVEL = Versions((8, 6))
STRONG_TYPING = Versions((10, 0))
LAYER_METADATA = Versions((8, 6))
"""`ILayer.metadata`, in which the parser says from which ONNX node a layer came."""
