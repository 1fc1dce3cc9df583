"""The record that makes a device: everything that dryfit knows of it, as data."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from dryfit.errors import ConfigError, UnknownNameError
from dryfit.network.data_types import DataType
from dryfit.target.question import Question
from dryfit.target.verdict import Verdict

if TYPE_CHECKING:
    from dryfit.target.arithmetic import Arithmetic
    from dryfit.target.formats import TensorFormat
    from dryfit.target.kernels import Kernel
    from dryfit.target.limits import LimitTable
    from dryfit.target.memory_pools import MemoryPool


@attrs.frozen
class Platform:
    """One variant of a device.

    Attributes:
        name: such as `agx-orin-64`.
        family: what rules compare with, such as `orin`.
        title: for people, such as `Jetson AGX Orin 64 GB`.
        cores: how many of the device it has.
        software: (first, last) version of the software that supports it; None for no bound.
        aliases: other names, such as `orin`.
        source: document and section.
    """

    name: str
    family: str
    title: str
    cores: int = 1
    software: tuple[tuple[int, ...] | None, tuple[int, ...] | None] = (None, None)
    aliases: Sequence[str] = ()
    source: str = ""


@attrs.frozen
class SegmentRules:
    """How partition treats a device.

    Attributes:
        same_batch: all layers of a segment have the same batch (the product of all but the last three dimensions).
        max_segments: software version from which it holds, to the largest number of segments a core can load; further
            segments move to the fallback device. Empty means no limit.
        is_host: whether this is the CPU that emulates the others.
        source: document and section.
    """

    same_batch: bool = False
    max_segments: Mapping[tuple[int, ...], int] = attrs.field(factory=dict)
    is_host: bool = False
    source: str = ""

    def segment_limit(self, software: tuple[int, ...]) -> int | None:
        """The largest number of segments for a software version; None for no limit."""
        fitting = [limit for since, limit in sorted(self.max_segments.items()) if software >= since]
        return fitting[-1] if fitting else None


@attrs.frozen(eq=False)
class Target:
    """A device as dryfit knows it.

    The fields that end in `_at` name a `module:attribute` that is imported at first use, so that targets can be listed
    without loading numpy or numba. What is left out is inherited: no limits means that every layer is supported, no
    kernels means the CPU target's.

    Attributes:
        device: the name in the open device registry: `GPU`, `DLA`, `CPU`, `ACME_NPU`.
        title: one line for people.
        platforms: variants; the first is the default.
        software_versions: versions the rules know; the last is the default. Empty when there is one rule set.
        precisions: computation types, best first.
        default_precision: the type a layer is computed in when no flag asks for another; None means that a precision
            flag has to be given (as DLA needs FP16 or INT8).
        limits_at: where the `LimitTable` stands.
        input_formats_at, output_formats_at: where the mappings from data type to tensor formats stand.
        memory_pools_at: where the sequence of `MemoryPool` stands.
        arithmetic_at: where the mapping from data type to `Arithmetic` stands.
        kernels_at: where the sequence of `Kernel` stands.
        create_schedule_at: where the function stands that makes a schedule of steps; for the host only.
        segment_rules: how partition treats this device.
        simulated: what of the device is simulated here, in one sentence, printed with every result.
    """

    device: str
    title: str
    platforms: Sequence[Platform]
    software_versions: Sequence[tuple[int, ...]] = ()
    precisions: Sequence[DataType] = (DataType.FLOAT,)
    default_precision: DataType | None = DataType.FLOAT
    limits_at: str | None = None
    input_formats_at: str | None = None
    output_formats_at: str | None = None
    memory_pools_at: str | None = None
    arithmetic_at: str | None = None
    kernels_at: str | None = None
    create_schedule_at: str | None = None
    segment_rules: SegmentRules = attrs.field(factory=SegmentRules)
    simulated: str = ""

    @property
    def limits(self) -> LimitTable | None:
        """The table of rules; None where everything is supported."""
        return _load(self.limits_at)  # type: ignore[no-any-return]

    @property
    def input_formats(self) -> Mapping[DataType, Sequence[TensorFormat]]:
        """Data type to formats that an input of a segment may have, preferred first."""
        return _load(self.input_formats_at) or {}

    @property
    def output_formats(self) -> Mapping[DataType, Sequence[TensorFormat]]:
        """Data type to formats that an output of a segment may have, preferred first."""
        return _load(self.output_formats_at) or {}

    def format(self, name: str) -> TensorFormat:
        """A tensor format of the device by name.

        Raises:
            UnknownNameError: neither its inputs nor its outputs have such a format.
        """
        known = {
            one.name: one
            for formats in (*self.input_formats.values(), *self.output_formats.values())
            for one in formats
        }
        if name.upper() not in known:
            raise UnknownNameError(f"{self.device} tensor format", name, known)
        return known[name.upper()]

    def memory_pool(self, name: str) -> MemoryPool:
        """A memory pool of the device by name.

        Raises:
            UnknownNameError: the device has no such pool.
        """
        known = {pool.name: pool for pool in self.memory_pools}
        if name.upper() not in known:
            raise UnknownNameError(f"{self.device} memory pool", name, known)
        return known[name.upper()]

    @property
    def memory_pools(self) -> Sequence[MemoryPool]:
        """The device's memories."""
        return _load(self.memory_pools_at) or ()

    @property
    def arithmetic(self) -> Mapping[DataType, Arithmetic]:
        """Computation type to its arithmetic."""
        return _load(self.arithmetic_at) or {}

    @property
    def kernels(self) -> Sequence[Kernel]:
        """The target's own host kernels; the CPU target's serve what these do not."""
        return _load(self.kernels_at) or ()

    @property
    def create_schedule(self) -> Callable[..., Any] | None:
        """`(steps, num_threads) -> Schedule`; only the CPU target has one."""
        return _load(self.create_schedule_at)  # type: ignore[no-any-return]

    def verdict(self, question: Question) -> Verdict:
        """Whether the layer of a question can run here; always, where there are no limits."""
        return Verdict.support(question) if self.limits is None else self.limits.evaluate(question)

    def platform(self, name: str | None) -> Platform:
        """A platform by name or alias, in any case; the default for None.

        Raises:
            UnknownNameError: the device has no such platform.
        """
        if name is None:
            return self.platforms[0]
        names = {n.lower(): p for p in self.platforms for n in (p.name, *p.aliases)}
        if name.lower() not in names:
            raise UnknownNameError(f"{self.device} platform", name, names)
        return names[name.lower()]

    def software(self, version: str | None, platform: Platform) -> tuple[int, ...]:
        """A software version as a tuple; the newest that the platform has for None.

        Raises:
            ConfigError: the version is malformed, or the platform or the device's rules do not have it.
        """
        first, last = platform.software
        known = [v for v in self.software_versions if (first is None or v >= first) and (last is None or v <= last)]
        if version is None:
            return known[-1] if known else ()
        try:
            asked = tuple(int(part) for part in version.split("."))
        except ValueError:
            raise ConfigError("A software version is numbers with dots", where="software", found=version) from None
        if (
            known
            and not any(v[: len(asked)] == asked or asked[: len(v)] == v for v in known)
            and not (known[0] <= asked <= (*known[-1], 9999))
        ):
            raise ConfigError(
                f"{self.device} on {platform.name} has no rules for this software version",
                where="software",
                found=version,
                allowed=", ".join(".".join(map(str, v)) for v in known),
                source=platform.source or None,
            )
        return asked


def _load(place: str | None) -> Any:
    if place is None:
        return None
    module, _, attribute = place.partition(":")
    return getattr(importlib.import_module(module), attribute)
