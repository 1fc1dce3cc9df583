"""The features of TensorRT versions, as far as a build depends on them.

Source: TensorRT's release notes, its `BuilderFlag` and the option parser of trtexec in NVIDIA/TensorRT, by release. If
a feature appeared between two known releases, the later one is listed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TypeVar

from dryfit.attrs_classes import frozen
from dryfit.builder.config.enumerations import BuilderFlag
from dryfit.errors import ConfigError
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.network import Network

Version = tuple[int, ...]
"""Such as (8, 6) or (8, 5, 10)."""

OLDEST: Version = (8, 2)
FIRST_REFUSED: Version = (11,)
"""TensorRT 11 has no implicit quantization, no precisions of layers, and other words for formats."""


@frozen
class Versions:
    """The versions that have a feature.

    Attributes:
        since: first version with the feature.
        until: first version without the feature; None if it still exists.

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
    """Format a version."""
    return ".".join(map(str, software))


def require_known(software: Version) -> None:
    """Reject an unsupported version.

    Raises:
        ConfigError: The version is older than TensorRT 8.2, or 11 or newer.
    """
    if not OLDEST <= software < FIRST_REFUSED:
        raise ConfigError(
            "TensorRT version must be 8.2 to 10",
            where="TensorRT version",
            found=version_text(software),
            allowed=f"{version_text(OLDEST)} or later, before {version_text(FIRST_REFUSED)}",
            remedy="Choose a supported version; TensorRT 11 and later build from the ONNX model alone",
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


# Layers as TensorRT's ONNX parser names them --------------------------------------------------------------------------


Word = TypeVar("Word")


def tensorrt_name(layer: Layer) -> str:
    """Return the name that TensorRT's parser gives the layer, or the node that it was imported from."""
    return layer.onnx_nodes[0] if layer.onnx_nodes else layer.name


def layers_by_name(network: Network) -> Mapping[str, list[Layer]]:
    """Return the layers of a network by TensorRT name, without constants."""
    found: dict[str, list[Layer]] = {}
    for layer in network.layers:
        if layer.kind != "constant":
            found.setdefault(tensorrt_name(layer), []).append(layer)
    return found


def words_by_name(
    network: Network, words: Iterable[tuple[Layer, Word]], what: str
) -> tuple[dict[str, Word], list[str], list[str]]:
    """Return (values by TensorRT name, conflicts, notes on nodes whose layers are only partly covered)."""
    named = layers_by_name(network)
    said = {layer.name: word for layer, word in words if layer.kind != "constant"}
    found: dict[str, Word] = {}
    problems, notes = [], []
    for name, layers in named.items():
        meant = [layer for layer in layers if layer.name in said]
        if any(said[layer.name] != said[meant[0].name] for layer in meant):
            told = ", ".join(f"{layer.name!r} {said[layer.name]}" for layer in meant)
            problems.append(f"{what} of layers from ONNX node {name!r} differ: {told}")
        elif meant:
            found[name] = said[meant[0].name]
            if len(meant) < len(layers):
                others = ", ".join(repr(layer.name) for layer in layers if layer not in meant)
                notes.append(f"{what} of ONNX node {name!r} applies to all of its layers, here also to {others}")
    return found, problems, notes


def plausible_name(name: str, listed: Collection[str]) -> str | None:
    """Return the entry of a list that trtexec matches to a layer or tensor; None for none.

    An exact match wins; else the first entry in which one `*` matches any text.
    """
    if name in listed:
        return name
    for entry in listed:
        before, star, behind = entry.partition("*")
        fits = name.startswith(before) and name.endswith(behind) and len(name) >= len(before) + len(behind)
        if star and fits:
            return entry
    return None


def strayed_names(names: Iterable[str], listed: Collection[str]) -> list[str]:
    """Return unlisted names that trtexec matches to an entry because of a `*` in it."""
    return [name for name in names if name not in listed and plausible_name(name, listed) is not None]
