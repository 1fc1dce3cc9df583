"""The values of trtexec's options: flags, words, formats, and lists with one value per layer or input.

Source: the option parser of trtexec in NVIDIA/TensorRT, releases 8.0 to 11.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from dryfit.board.versions import OLDEST, Version
from dryfit.builder.config.enumerations import BuilderFlag
from dryfit.builder.config.layer_rules import PRECISION_WORDS, layer_list
from dryfit.errors import ConfigError
from dryfit.network.data_types import DataType
from dryfit.network.tensor import Shape

FLAG_OPTIONS: Mapping[BuilderFlag, str] = {
    BuilderFlag.FP16: "--fp16",
    BuilderFlag.INT8: "--int8",
    BuilderFlag.BF16: "--bf16",
    BuilderFlag.FP8: "--fp8",
    BuilderFlag.INT4: "--int4",
    BuilderFlag.GPU_FALLBACK: "--allowGPUFallback",
    BuilderFlag.DIRECT_IO: "--directIO",
    BuilderFlag.SPARSE_WEIGHTS: "--sparsity=enable",
    BuilderFlag.REFIT: "--refit",
    BuilderFlag.STRIP_PLAN: "--stripWeights",
    BuilderFlag.VERSION_COMPATIBLE: "--versionCompatible",
    BuilderFlag.EXCLUDE_LEAN_RUNTIME: "--excludeLeanRuntime",
    BuilderFlag.DISABLE_TIMING_CACHE: "--noBuilderCache",
    BuilderFlag.DISABLE_COMPILATION_CACHE: "--noCompilationCache",
    BuilderFlag.ERROR_ON_TIMING_CACHE_MISS: "--errorOnTimingCacheMiss",
    BuilderFlag.SAFETY_SCOPE: "--restricted",
    BuilderFlag.WEIGHT_STREAMING: "--allowWeightStreaming",
    BuilderFlag.MONITOR_MEMORY: "--monitorMemory",
    BuilderFlag.DISTRIBUTIVE_INDEPENDENCE: "--distributiveIndependence",
}
"""Flags with an option of their own; those on precision constraints share one, and TF32 has one to switch it off."""

CONSTRAINT_WORDS: Mapping[str, BuilderFlag] = {
    "obey": BuilderFlag.OBEY_PRECISION_CONSTRAINTS,
    "prefer": BuilderFlag.PREFER_PRECISION_CONSTRAINTS,
}
"""The words of `--precisionConstraints`; `none` is for neither."""

SPARSITY_WORDS = ("disable", "enable")
"""The words of `--sparsity`; `force` overwrites weights, which is for another model: `dryfit sparsity prune`."""

FORMAT_NAMES: Mapping[str, Version] = {
    **dict.fromkeys(("LINEAR", "CHW2", "HWC8", "CHW4", "CHW16", "CHW32", "DHWC8", "CDHW32", "HWC"), OLDEST),
    **dict.fromkeys(("DLA_LINEAR", "DLA_HWC4", "DHWC"), OLDEST),
    "HWC16": (10, 0),
}
"""The formats of inputs and outputs that trtexec has words for, and the first version that has each."""

_EARLY = (DataType.INT8, frozenset({"CHW4", "CHW32"})), (DataType.HALF, frozenset({"CHW4", "CHW16"}))
_LINEAR = (
    (DataType.INT8, frozenset({"LINEAR", "CHW4", "CHW32"})),
    (DataType.HALF, frozenset({"LINEAR", "CHW4", "CHW16"})),
)
_NOW = (DataType.INT8, frozenset({"DLA_LINEAR", "CHW32"})), (DataType.HALF, frozenset({"DLA_LINEAR", "CHW16"}))

STANDALONE_FORMATS: Mapping[Version, Mapping[DataType, frozenset[str]]] = {
    (8, 2): dict(_EARLY),
    (8, 4): dict(_LINEAR),
    (8, 6): dict(_NOW),
}
"""The version from which on trtexec takes these types and formats of inputs and outputs for a loadable."""

STANDALONE_INPUT_FORMATS: Mapping[Version, frozenset[str]] = {(8, 6): frozenset({"CHW4", "DLA_HWC4"})}
"""Formats that it takes besides for inputs of both types."""


# Values of the options ------------------------------------------------------------------------------------------------


_SHAPE = re.compile(r"-?\d+(x-?\d+)*")


def pairs(text: str, option: str) -> Iterator[tuple[str, str]]:
    """Return the (name, value) pairs of a list: `conv1:fp16,conv2:int8`.

    As in trtexec, commas end entries, the last colon ends the name, single quotes are removed, spaces are significant.

    Raises:
        ConfigError: An entry has no colon.
    """
    for entry in filter(None, text.split(",")):
        name, colon, word = entry.replace("'", "").rpartition(":")
        if not colon:
            raise ConfigError(
                "The entry must be NAME:VALUE",
                where=option,
                found=repr(entry),
                allowed="NAME:WORD,...",
                remedy="Separate name and value by a colon, and entries by commas",
            )
        yield name, word


def named_pairs(text: str, option: str) -> Iterator[tuple[str, str]]:
    """Return the same pairs; as in trtexec, an entry without a colon is both name and value."""
    entries = (entry if ":" in entry else f"{entry}:{entry}" for entry in text.split(",") if entry)
    return pairs(",".join(entries), option)


def types_text(types: Mapping[str, Sequence[DataType]]) -> str:
    """Format layers and their types as one line; several types of a layer are joined by `+`."""
    words = {dtype: word for word, dtype in PRECISION_WORDS.items()}
    return layer_list((name, "+".join(words[one] for one in several)) for name, several in types.items())[0]


def parse_types(text: str, option: str) -> dict[str, tuple[DataType, ...]]:
    """Parse the layers and types of a line.

    Raises:
        ConfigError: The line contains an invalid entry.
    """
    found = {}
    for name, words in named_pairs(text, option):
        types = tuple(PRECISION_WORDS.get(word) for word in words.split("+"))
        known = tuple(dtype for dtype in types if dtype is not None)
        if len(known) != len(types):
            raise ConfigError(
                "Unknown type",
                where=option,
                found=words,
                allowed=", ".join(PRECISION_WORDS),
                remedy="Use one of these types",
            )
        found[name] = known
    return found


def shapes_text(shapes: Mapping[str, Shape]) -> str:
    """Format inputs and their shapes, or values, as one line."""
    return layer_list((name, "x".join(map(str, shape))) for name, shape in shapes.items())[0]


def parse_shapes(text: str, option: str) -> dict[str, Shape]:
    """Parse the inputs and shapes of a line; `scalar`, or nothing, is the shape of a scalar.

    Raises:
        ConfigError: The line contains an invalid entry.
    """
    found: dict[str, Shape] = {}
    for name, shape in pairs(text, option):
        if shape in ("", "scalar"):
            found[name] = ()
            continue
        if not _SHAPE.fullmatch(shape):
            raise ConfigError(
                "The shape cannot be parsed",
                where=option,
                found=repr(shape),
                allowed="numbers joined by x",
                remedy="Write a shape such as 1x3x224x224",
            )
        found[name] = tuple(int(extent) for extent in shape.split("x"))
    return found
