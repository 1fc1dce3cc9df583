"""The record that makes a device: everything that dryfit knows of it, as data."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from dryfit.errors import ConfigError, PluginError, UnknownNameError
from dryfit.network.data_types import DataType
from dryfit.target.declared_object import declared_object
from dryfit.target.platform import Platform, SegmentRules
from dryfit.target.question import Question
from dryfit.target.verdict import Verdict

if TYPE_CHECKING:
    from dryfit.target.arithmetic import Arithmetic
    from dryfit.target.copying import CopyArray
    from dryfit.target.cost import EstimateCost, EstimateTransfer
    from dryfit.target.formats import TensorFormat
    from dryfit.target.fusions import Fusion
    from dryfit.target.kernels import Kernel
    from dryfit.target.limits import LimitTable
    from dryfit.target.machine_code import MachineCode
    from dryfit.target.memory_pools import MemoryPool
    from dryfit.target.segments import CompileSegment, ExportSegment, LoadSegment
    from dryfit.target.sparsity import Sparsity

__all__ = ["Platform", "SegmentRules", "Target", "inherited"]


@attrs.frozen(eq=False)
class Target:
    """A device as dryfit knows it.

    The fields that end in `_at` name a `module:attribute` that is imported at first use, so that targets can be listed
    without loading numpy or numba. What is left out is inherited from the host's target (see `inherited`): its
    formats, arithmetic and precisions, and the kernels for all that the target has no kernel of its own for.

    Attributes:
        device: the name in the open device registry: `GPU`, `DLA`, `CPU`, `ACME_NPU`.
        title: one line for people.
        platforms: variants; the first is the default.
        software_versions: versions the rules know; the last is the default. Empty when there is one rule set.
        precisions: computation types, best first; empty means the host's. The rule `<device>.precision`, which no table
            has to state, refuses a layer that would be computed in another type.
        default_precision: the type a layer is computed in when no flag asks for another; None means that a precision
            flag has to be given (as DLA needs FP16 or INT8).
        limits_at: where the `LimitTable` stands.
        input_formats_at, output_formats_at: where the mappings from data type to tensor formats stand.
        memory_pools_at: where the sequence of `MemoryPool` stands.
        arithmetic_at: where the mapping from data type to `Arithmetic` stands.
        fusions_at: where the sequence of `Fusion` stands. Without it layers run as one wherever a kernel can do that.
        kernels_at: where the sequence of `Kernel` stands.
        compile_segment_at: where the function stands that makes a program of a `PlannedSegment`.
        load_segment_at: where the function stands that makes a `LoadedSegment` of a program; for a target with a
            compiler, and only for one.
        export_segment_at: where the function stands that writes a `PlannedSegment` as a file for the device's own
            runtime; for a target without a compiler, whose programs are those files.
        exported_format: what the header of such a file names as its format; "" for none.
        import_segment_at: where the function stands that makes an engine of such a file: `(path) -> Engine`.
        estimate_cost_at: where the function stands that estimates the cost of a segment: `(CostQuestion) ->
            CostEstimate`.
        estimate_transfer_at: where the function stands that estimates what a tensor costs that crosses the border of a
            segment: `(TransferQuestion) -> CostEstimate`.
        sparsity_at: where the `Sparsity` stands: which zeros of weights the device skips. Without it there are none.
        create_schedule_at: where the function stands that makes a schedule of steps; for the host only.
        machine_code_at: where the function stands that lists the code that the target compiles for this machine:
            `(tier) -> MachineCode`, with None for the best tier; for the host only.
        copy_array_at: where the function stands that copies an array to one that lies otherwise: `(source, destination)
            -> bool`, False where numpy is as quick; what the destination has more of becomes zero; for the host only.
        segment_rules: how partition treats this device.
        simulated: what of the device is simulated here, in one sentence, printed with every result.
        boards_without: names, in lower case, of boards that people look for and that lack the device, to their titles.

    Raises:
        PluginError: there is a segment compiler and no loader, or a loader and no compiler. The properties that import
            what a field names raise one where that fails.
    """

    device: str
    title: str
    platforms: Sequence[Platform]
    software_versions: Sequence[tuple[int, ...]] = ()
    precisions: Sequence[DataType] = ()
    default_precision: DataType | None = DataType.FLOAT
    limits_at: str | None = None
    input_formats_at: str | None = None
    output_formats_at: str | None = None
    memory_pools_at: str | None = None
    arithmetic_at: str | None = None
    fusions_at: str | None = None
    kernels_at: str | None = None
    compile_segment_at: str | None = None
    load_segment_at: str | None = None
    export_segment_at: str | None = None
    exported_format: str = ""
    import_segment_at: str | None = None
    estimate_cost_at: str | None = None
    estimate_transfer_at: str | None = None
    sparsity_at: str | None = None
    create_schedule_at: str | None = None
    machine_code_at: str | None = None
    copy_array_at: str | None = None
    segment_rules: SegmentRules = attrs.field(factory=SegmentRules)
    simulated: str = ""
    boards_without: Mapping[str, str] = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        if (self.compile_segment_at is None) != (self.load_segment_at is None):
            raise PluginError(
                "A target must have both a segment compiler and a loader, or neither",
                where=f"target {self.device}",
                found=f"compile_segment_at={self.compile_segment_at!r}, load_segment_at={self.load_segment_at!r}",
                allowed="both or neither",
                remedy="Set both `compile_segment_at` and `load_segment_at`, or leave both out",
            )

    # What the fields that end in `_at` name -------------------------------------------------------------------------

    @property
    def limits(self) -> LimitTable | None:
        """The table of rules, with the rule on the types of `precisions`; None where everything is supported."""
        table = self._load("limits_at")
        return None if table is None else _with_precisions(table, tuple(self.precisions))

    @property
    def input_formats(self) -> Mapping[DataType, Sequence[TensorFormat]]:
        """Data type to formats that an input of a segment may have, preferred first."""
        return self._load("input_formats_at") or {}

    @property
    def output_formats(self) -> Mapping[DataType, Sequence[TensorFormat]]:
        """Data type to formats that an output of a segment may have, preferred first."""
        return self._load("output_formats_at") or {}

    @property
    def memory_pools(self) -> Sequence[MemoryPool]:
        """The device's memories."""
        return self._load("memory_pools_at") or ()

    @property
    def arithmetic(self) -> Mapping[DataType, Arithmetic]:
        """Computation type to its arithmetic."""
        return self._load("arithmetic_at") or {}

    @property
    def fusions(self) -> Sequence[Fusion] | None:
        """The chains of layers that run as one; None where any do that a kernel takes."""
        return self._load("fusions_at")  # type: ignore[no-any-return]

    @property
    def kernels(self) -> Sequence[Kernel]:
        """The target's own host kernels; the CPU target's serve what these do not."""
        return self._load("kernels_at") or ()

    @property
    def compile_segment(self) -> CompileSegment | None:
        """Makes a program of a segment; None where segments are run by kernels."""
        return self._load("compile_segment_at")  # type: ignore[no-any-return]

    @property
    def load_segment(self) -> LoadSegment | None:
        """Makes of a program what runs here; None where segments are run by kernels."""
        return self._load("load_segment_at")  # type: ignore[no-any-return]

    @property
    def export_segment(self) -> ExportSegment | None:
        """Writes a segment for the device's own runtime; None where the target has no such exporter."""
        return self._load("export_segment_at")  # type: ignore[no-any-return]

    @property
    def import_segment(self) -> Callable[..., Any] | None:
        """Makes an engine of a file that the exporter wrote; None where the target has no such function."""
        return self._load("import_segment_at")  # type: ignore[no-any-return]

    @property
    def has_loadables(self) -> bool:
        """Whether a segment becomes one program: a loadable, inside which the device converts types itself."""
        return self.export_segment_at is not None or self.compile_segment_at is not None

    @property
    def estimate_cost(self) -> EstimateCost | None:
        """Estimates the cost of layers that run as one segment; None where the target estimates none."""
        return self._load("estimate_cost_at")  # type: ignore[no-any-return]

    @property
    def estimate_transfer(self) -> EstimateTransfer | None:
        """Estimates what a tensor costs that crosses the border of a segment; None where the target estimates none."""
        return self._load("estimate_transfer_at")  # type: ignore[no-any-return]

    @property
    def sparsity(self) -> Sparsity | None:
        """The weights whose zeros the device skips; None where it skips none."""
        return self._load("sparsity_at")  # type: ignore[no-any-return]

    @property
    def create_schedule(self) -> Callable[..., Any] | None:
        """`(steps, num_threads) -> Schedule`; only the CPU target has one."""
        return self._load("create_schedule_at")  # type: ignore[no-any-return]

    @property
    def machine_code(self) -> Callable[[str | None], MachineCode] | None:
        """`(tier) -> MachineCode`; None where the target compiles nothing for this machine."""
        return self._load("machine_code_at")  # type: ignore[no-any-return]

    @property
    def copy_array(self) -> CopyArray | None:
        """Copies between layouts; None where numpy does that."""
        return self._load("copy_array_at")  # type: ignore[no-any-return]

    def _load(self, field: str) -> Any:
        place: str | None = getattr(self, field)
        return None if place is None else declared_object(place, self.device, field)

    # Parts by name ---------------------------------------------------------------------------------------------------

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

    def verdict(self, question: Question) -> Verdict:
        """Whether the layer of a question can run here; always, where there are no limits."""
        return Verdict.support(question) if self.limits is None else self.limits.evaluate(question)

    def repeated_verdicts(self) -> Callable[[Question], Verdict]:
        """`verdict` for the layers of one network as it stands, at the cost of those that differ."""
        return Verdict.support if self.limits is None else self.limits.repeated()

    def platform(self, name: str | None) -> Platform:
        """A platform by name or alias, in any case; the default for None.

        Raises:
            UnknownNameError: the device has no such platform.
            ConfigError: this board is known to have no such device.
        """
        if name is None:
            return self.platforms[0]
        names = {n.lower(): p for p in self.platforms for n in (p.name, *p.aliases)}
        asked = platform_key(name)
        if asked in self.boards_without:
            raise ConfigError(
                f"{self.boards_without[asked]} has no {self.device}",
                where=f"platform {name}",
                allowed=", ".join(platform.name for platform in self.platforms if platform.cores),
                remedy="For its GPU, use --device GPU without --platform",
            )
        if asked not in names:
            raise UnknownNameError(f"{self.device} platform", name, names)
        return names[asked]

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
            raise ConfigError(
                "A software version must be numbers with dots",
                where="software",
                found=version,
                remedy="Write it like 8.6 or 10.3",
            ) from None
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
                remedy="Choose one of these versions, or another platform",
            )
        return asked


@functools.lru_cache(maxsize=64)
def _with_precisions(table: LimitTable, precisions: tuple[DataType, ...]) -> LimitTable:
    """A target's limits, with the rule on the types that it computes in."""
    return attrs.evolve(table, precisions=precisions)


def platform_key(name: str) -> str:
    """A platform's name as it is looked up: `orin-nx` of `Orin NX` and of `Jetson Orin NX`."""
    return re.sub(r"[\s_]+", "-", name.strip().lower()).removeprefix("jetson-")


def inherited(target: Target, host: Target) -> Target:
    """A target with what it leaves out filled in from the host's: formats, arithmetic and precisions.

    Limits, memory pools, fusions, the segment compiler and the cost function are a device's own: without them it has
    none. Kernels need no filling in: the host's serve whatever a device has no kernel for.
    """
    filled = ("input_formats_at", "output_formats_at", "arithmetic_at", "precisions")
    return attrs.evolve(target, **{name: getattr(target, name) or getattr(host, name) for name in filled})
