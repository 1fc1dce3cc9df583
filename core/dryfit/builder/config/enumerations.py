"""The enumerations of a builder config, with the names and numbers of TensorRT 10, and names of software releases."""

from __future__ import annotations

import enum
import numbers
import re
from collections.abc import Mapping
from typing import TypeVar

from dryfit.errors import ConfigError, UnknownNameError

EnumT = TypeVar("EnumT", bound=enum.IntEnum)


def member(kind: type[EnumT], value: object, what: str) -> EnumT:
    """Convert a member, or its TensorRT number, to the member of an enumeration.

    Raises:
        ConfigError: The value is neither a member nor a TensorRT number.
    """
    if isinstance(value, kind):
        return value
    if isinstance(value, int) and not isinstance(value, (bool, enum.Enum)) and value in set(kind):
        return kind(value)
    name = value if isinstance(value, str) else getattr(value, "name", None)
    meant = str(name).upper() if str(name).upper() in kind.__members__ else None
    raise ConfigError(
        f"Unknown {what}",
        found=repr(value),
        allowed=", ".join(f"{kind.__name__}.{each}" for each in kind.__members__),
        remedy=f"Did you mean {kind.__name__}.{meant}?" if meant else None,
    )


def whole_number(value: object, what: str) -> int:
    """Convert an integer, including numpy integers, to int.

    Raises:
        ConfigError: The value is not an integer; a bool is not accepted.
    """
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        return int(value)
    raise ConfigError(
        f"The {what} must be an integer", found=repr(value), allowed="an integer", remedy="Pass a Python int"
    )


class DeviceType(enum.StrEnum):
    """The devices included in dryfit. The registry is open: the name of any installed target can be used instead."""

    GPU = "GPU"
    DLA = "DLA"
    CPU = "CPU"


class BuilderFlag(enum.IntEnum):
    """Build flags; TensorRT 10's `BuilderFlag`. In `BuilderConfig.flags`, each one is the bit `1 << flag`."""

    __hash__ = int.__hash__  # Enum's own is a Python function, and each layer looks for three flags

    FP16 = 0
    INT8 = 1
    DEBUG = 2
    GPU_FALLBACK = 3
    REFIT = 4
    DISABLE_TIMING_CACHE = 5
    TF32 = 6
    SPARSE_WEIGHTS = 7
    SAFETY_SCOPE = 8
    OBEY_PRECISION_CONSTRAINTS = 9
    PREFER_PRECISION_CONSTRAINTS = 10
    DIRECT_IO = 11
    REJECT_EMPTY_ALGORITHMS = 12
    VERSION_COMPATIBLE = 13
    EXCLUDE_LEAN_RUNTIME = 14
    FP8 = 15
    ERROR_ON_TIMING_CACHE_MISS = 16
    BF16 = 17
    DISABLE_COMPILATION_CACHE = 18
    STRIP_PLAN = 19
    WEIGHTLESS = 19
    REFIT_IDENTICAL = 20
    WEIGHT_STREAMING = 21
    INT4 = 22
    REFIT_INDIVIDUAL = 23
    STRICT_NANS = 24
    MONITOR_MEMORY = 25
    FP4 = 26
    EDITABLE_TIMING_CACHE = 27
    DISTRIBUTIVE_INDEPENDENCE = 28


FLAGS_WITH_EFFECT: Mapping[BuilderFlag, str] = {
    BuilderFlag.FP16: "permits FP16 as a computation type",
    BuilderFlag.BF16: "permits BF16 as a computation type",
    BuilderFlag.INT8: "permits INT8 as a computation type of layers with scales",
    BuilderFlag.GPU_FALLBACK: "sends layers that cannot run on their device to the GPU",
    BuilderFlag.REFIT: "builds an engine whose weights can be refitted; it stores the network with them",
    BuilderFlag.REFIT_IDENTICAL: "builds an engine that can be refitted only with the weights it was built with",
    BuilderFlag.REFIT_INDIVIDUAL: "builds an engine in which only the weights marked in the network can be refitted",
    BuilderFlag.STRIP_PLAN: "leaves the weights out of the engine, which must be refitted before it runs; implies "
    "REFIT_IDENTICAL unless another refit flag is set",
    BuilderFlag.TF32: "set in a new config; permits TF32, which no device here supports, so it has no effect",
    BuilderFlag.SPARSE_WEIGHTS: "lets estimates skip zero weights that match the device's pattern, such as "
    "2:4; results do not change",
    BuilderFlag.OBEY_PRECISION_CONSTRAINTS: "makes it an error if a precision or output type cannot be used",
    BuilderFlag.PREFER_PRECISION_CONSTRAINTS: "uses the requested precisions and output types where possible, "
    "and warns otherwise; this is the default",
    BuilderFlag.DIRECT_IO: "forbids copies at the network's inputs and outputs",
    BuilderFlag.DISABLE_TIMING_CACHE: "measures kernels again without a timing cache",
    BuilderFlag.ERROR_ON_TIMING_CACHE_MISS: "makes it an error if the timing cache lacks a kernel",
    BuilderFlag.STRICT_NANS: "excludes kernels that spread a NaN or an infinity to results that do not depend on it, "
    "such as Winograd convolution",
    BuilderFlag.EDITABLE_TIMING_CACHE: "makes the timing cache editable; every timing cache here already is",
}
"""What each flag does here. A build warns of a flag that is on and not in this table: it changes nothing."""


REFIT_FLAGS = (BuilderFlag.REFIT, BuilderFlag.REFIT_IDENTICAL, BuilderFlag.REFIT_INDIVIDUAL, BuilderFlag.STRIP_PLAN)
"""Flags of engines that are given other weights, or are stored without them."""


class QuantizationFlag(enum.IntEnum):
    """Flags of implicit quantization; TensorRT 10's `QuantizationFlag`."""

    CALIBRATE_BEFORE_FUSION = 0


class EngineCapability(enum.IntEnum):
    """The kind of engine to build; TensorRT's `EngineCapability`."""

    STANDARD = 0
    SAFETY = 1
    DLA_STANDALONE = 2


class MemoryPoolType(enum.StrEnum):
    """The memory pools of GPU and DLA; TensorRT's `MemoryPoolType`. Pools of other devices are referred to by name."""

    WORKSPACE = "WORKSPACE"
    DLA_MANAGED_SRAM = "DLA_MANAGED_SRAM"
    DLA_LOCAL_DRAM = "DLA_LOCAL_DRAM"
    DLA_GLOBAL_DRAM = "DLA_GLOBAL_DRAM"


class ProfilingVerbosity(enum.IntEnum):
    """The level of detail that the engine reports about its layers; TensorRT's `ProfilingVerbosity`."""

    LAYER_NAMES_ONLY = 0
    NONE = 1
    DETAILED = 2


RELEASES: Mapping[str, Mapping[str, str]] = {
    "jetpack": {
        "4.6": "8.2",
        "5.0": "8.4",
        "5.1": "8.5.2",
        "6.0": "8.6.2",
        "6.1": "10.3",
        "6.2": "10.3",
    },
    "drive-os": {
        "6.0.6.0": "8.5.10",
        "6.0.7.0": "8.6.10",
        "6.0.8.0": "8.6.11",
        "6.0.8.1": "8.6.11",
        "6.0.9.0": "8.6.12",
        "6.0.9.1": "8.6.12",
    },
}
"""Product to its releases and the TensorRT version of each."""
_TENSORRT = frozenset({"tensorrt", "trt"})
_NAME = re.compile(r"(?P<product>[a-z]+(?:[-_ ][a-z]+)?)[-_ ]?(?P<release>\d+(?:\.\d+)*)")
_NUMBERS = re.compile(r"\d+(\.\d+)*")


def software_version(name: object, where: str) -> str:
    """Return the TensorRT version of a name: `10.3`, `TensorRT-10.3`, `jetpack-6.1` or `jetpack6`.

    A partial release number means the newest matching release; an update of a release counts as that release.

    Raises:
        ConfigError: The text is not a version or the name of one.
        UnknownNameError: The product does not have this release.
    """
    text = name.strip().lower() if isinstance(name, str) else ""
    if _NUMBERS.fullmatch(text):
        return text
    match = _NAME.fullmatch(text)
    product = match["product"].replace(" ", "-").replace("_", "-") if match else ""
    product = {"driveos": "drive-os", "jp": "jetpack"}.get(product, product)
    if match is None or product not in RELEASES.keys() | _TENSORRT:
        raise ConfigError(
            "A software version must be numbers with dots or the name of a release",
            where=where,
            found=repr(name),
            allowed=f"such as 10.3, TensorRT-10.3, {', '.join(_known('jetpack'))}, {', '.join(_known('drive-os'))}",
            remedy="Write the version in one of these forms",
        )
    release = match["release"]
    if product in _TENSORRT:
        return release
    # `6` means the newest 6.x, and `5.1.2` is an update of 5.1.
    fitting = [known for known in RELEASES[product] if _begins(known, release) or _begins(release, known)]
    if not fitting:
        raise UnknownNameError("release", text, _known(product), where=where)
    return RELEASES[product][fitting[-1]]


def _begins(longer: str, shorter: str) -> bool:
    return f"{longer}.".startswith(f"{shorter}.")


def _known(product: str) -> list[str]:
    return [f"{product}-{release}" for release in RELEASES[product]]
