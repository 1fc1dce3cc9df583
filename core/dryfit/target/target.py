"""The record that defines a device: everything that dryfit knows about it, as data."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from dryfit.attrs_classes import frozen
from dryfit.errors import ConfigError, PluginError, UnknownNameError
from dryfit.network.data_types import DataType
from dryfit.target.declared_object import declared_object
from dryfit.target.overlays import Overlay, overlaid_limits, overlaid_parameters, with_parameters
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


@frozen(eq=False)
class Target:
    """A device as dryfit models it.

    Fields that end in `_at` name a `module:attribute` that is imported on first use, so that targets can be listed
    without loading numpy or numba. Omitted fields are inherited from the host's target (see `inherited`): its formats,
    arithmetic and precisions, and its kernels for everything for which the target has no kernel.

    Attributes:
        device: the name in the open device registry: `GPU`, `DLA`, `CPU`, `ACME_NPU`.
        title: one-line description for people.
        platforms: variants of the device; the first is the default.
        software_versions: software versions that the rules cover; the last is the default. Empty: one rule set for all.
        precisions: computation types, best first. Empty: those of the host. The rule `<device>.precision`, which tables
            need not declare, rejects a layer that would be computed in another type.
        default_precision: the computation type if no flag requests another. None: a precision flag is required (DLA
            requires FP16 or INT8).
        limits_at: location of the `LimitTable`.
        input_formats_at, output_formats_at: locations of the mappings from data type to tensor formats.
        memory_pools_at: location of the sequence of `MemoryPool`.
        arithmetic_at: location of the mapping from data type to `Arithmetic`.
        fusions_at: location of the sequence of `Fusion`. Default: layers are fused wherever a kernel supports it.
        kernels_at: location of the sequence of `Kernel`.
        compile_segment_at: location of the function that compiles a `PlannedSegment` to a program.
        load_segment_at: location of the function that creates a `LoadedSegment` from a program. Required for a target
            with a segment compiler; not allowed otherwise.
        export_segment_at: location of the function that writes a `PlannedSegment` as a file for the device's own
            runtime. For targets without a segment compiler; a compiler's programs are such files themselves.
        exported_format: the format name in the header of such a file; "" for none.
        import_segment_at: location of the function that creates an engine from such a file: `(path) -> Engine`.
        estimate_cost_at: location of the function that estimates the cost of a segment: `(CostQuestion) ->
            CostEstimate`.
        estimate_transfer_at: location of the function that estimates the cost of a tensor that crosses a segment
            boundary: `(TransferQuestion) -> CostEstimate`.
        cost_parameters_at: location of the mapping from platform to the record of its cost model's parameters, which
            the questions of the two functions carry. Overlays replace its numbers by name.
        sparsity_at: location of the `Sparsity`, which defines the zeros of weights that the device skips. Default:
            none.
        create_schedule_at: location of the function that creates a schedule of steps. Host only.
        machine_code_at: location of the function that lists the code that the target compiles for this machine: `(tier)
            -> MachineCode`, with None for the best tier. Host only.
        copy_array_at: location of the function that copies an array to one with another memory layout: `(source,
            destination) -> bool`, False if numpy is as fast. Extra elements of the destination are set to zero. Host
            only.
        segment_rules: rules that partitioning follows for this device.
        simulated: one sentence on what is simulated of the device, printed with every result.
        boards_without: lower-case name to title, for boards that users look for and that lack the device.
        overlays: what boards showed: it changes the limits and the cost parameters. Targets declare none; see
            `dryfit.target.overlays.overlaid`.

    Raises:
        PluginError: The target has a segment compiler without a loader, or a loader without a compiler. The properties
            that import the objects named by the fields also raise it if the import fails.
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
    cost_parameters_at: str | None = None
    sparsity_at: str | None = None
    create_schedule_at: str | None = None
    machine_code_at: str | None = None
    copy_array_at: str | None = None
    segment_rules: SegmentRules = attrs.field(factory=SegmentRules)
    simulated: str = ""
    boards_without: Mapping[str, str] = attrs.field(factory=dict)
    overlays: Sequence[Overlay] = ()

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
        """The table of rules, including the rule on `precisions`. None: everything is supported."""
        table = self._load("limits_at")
        return None if table is None else _full_table(table, tuple(self.precisions), tuple(self.overlays))

    @property
    def input_formats(self) -> Mapping[DataType, Sequence[TensorFormat]]:
        """Data type to the formats allowed for a segment input, in order of preference."""
        return self._load("input_formats_at") or {}

    @property
    def output_formats(self) -> Mapping[DataType, Sequence[TensorFormat]]:
        """Data type to the formats allowed for a segment output, in order of preference."""
        return self._load("output_formats_at") or {}

    @property
    def memory_pools(self) -> Sequence[MemoryPool]:
        """Memory pools of the device."""
        return self._load("memory_pools_at") or ()

    @property
    def arithmetic(self) -> Mapping[DataType, Arithmetic]:
        """Computation type to its arithmetic."""
        return self._load("arithmetic_at") or {}

    @property
    def fusions(self) -> Sequence[Fusion] | None:
        """Chains of layers that run as one. None: any chain that a kernel supports."""
        return self._load("fusions_at")  # type: ignore[no-any-return]

    @property
    def kernels(self) -> Sequence[Kernel]:
        """The target's own host kernels; the CPU target's kernels serve all other layers."""
        return self._load("kernels_at") or ()

    @property
    def compile_segment(self) -> CompileSegment | None:
        """Function that compiles a segment to a program. None: kernels run the segments."""
        return self._load("compile_segment_at")  # type: ignore[no-any-return]

    @property
    def load_segment(self) -> LoadSegment | None:
        """Function that loads a program to run on this machine. None: kernels run the segments."""
        return self._load("load_segment_at")  # type: ignore[no-any-return]

    @property
    def export_segment(self) -> ExportSegment | None:
        """Function that writes a segment for the device's own runtime. None: no such exporter."""
        return self._load("export_segment_at")  # type: ignore[no-any-return]

    @property
    def import_segment(self) -> Callable[..., Any] | None:
        """Function that creates an engine from a file of the exporter. None: not supported."""
        return self._load("import_segment_at")  # type: ignore[no-any-return]

    @property
    def has_loadables(self) -> bool:
        """Whether a segment becomes one program, a loadable, in which the device itself converts types."""
        return self.export_segment_at is not None or self.compile_segment_at is not None

    @property
    def estimate_cost(self) -> EstimateCost | None:
        """Function that estimates the cost of layers that run as one segment. None: no estimates."""
        return self._with_parameters(self._load("estimate_cost_at"))  # type: ignore[no-any-return]

    @property
    def estimate_transfer(self) -> EstimateTransfer | None:
        """Function that estimates the cost of a tensor that crosses a segment boundary. None: no estimates."""
        return self._with_parameters(self._load("estimate_transfer_at"))  # type: ignore[no-any-return]

    @property
    def cost_parameters(self) -> Mapping[str, Any]:
        """Platform to the parameters of its cost model; empty for a target without any."""
        records: Mapping[str, Any] = self._load("cost_parameters_at") or {}
        return overlaid_parameters(records, self) if self.overlays else records

    def _with_parameters(self, function: Any) -> Any:
        if function is None or self.cost_parameters_at is None:
            return function
        return with_parameters(function, self.cost_parameters)

    @property
    def sparsity(self) -> Sparsity | None:
        """Rules for weights whose zeros the device skips. None: it skips no zeros."""
        return self._load("sparsity_at")  # type: ignore[no-any-return]

    @property
    def create_schedule(self) -> Callable[..., Any] | None:
        """Function `(steps, num_threads) -> Schedule`; only the CPU target has one."""
        return self._load("create_schedule_at")  # type: ignore[no-any-return]

    @property
    def machine_code(self) -> Callable[[str | None], MachineCode] | None:
        """Function `(tier) -> MachineCode`. None: the target compiles nothing for this machine."""
        return self._load("machine_code_at")  # type: ignore[no-any-return]

    @property
    def copy_array(self) -> CopyArray | None:
        """Function that copies between layouts. None: numpy copies."""
        return self._load("copy_array_at")  # type: ignore[no-any-return]

    def _load(self, field: str) -> Any:
        place: str | None = getattr(self, field)
        return None if place is None else declared_object(place, self.device, field)

    # Parts by name ---------------------------------------------------------------------------------------------------

    def format(self, name: str) -> TensorFormat:
        """Return a tensor format of the device by name.

        Raises:
            UnknownNameError: The format is not supported for inputs or outputs of the device.
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
        """Return a memory pool of the device by name.

        Raises:
            UnknownNameError: The device has no such pool.
        """
        known = {pool.name: pool for pool in self.memory_pools}
        if name.upper() not in known:
            raise UnknownNameError(f"{self.device} memory pool", name, known)
        return known[name.upper()]

    def verdict(self, question: Question) -> Verdict:
        """Return whether the layer of a question can run on the device. Without limits, every layer can."""
        return Verdict.support(question) if self.limits is None else self.limits.evaluate(question)

    def repeated_verdicts(self) -> Callable[[Question], Verdict]:
        """Return `verdict` for the layers of one unchanged network, evaluating equal layers only once."""
        return Verdict.support if self.limits is None else self.limits.repeated()

    def platform(self, name: str | None) -> Platform:
        """Return a platform by name or alias, ignoring case. None: the default platform.

        Raises:
            UnknownNameError: The device has no such platform.
            ConfigError: The board is known to lack the device.
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
        """Return a software version as a tuple. None: the newest version that the platform supports.

        Raises:
            ConfigError: The version is malformed, or is not supported by the platform or by the rules of the device.
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
def _full_table(table: LimitTable, precisions: tuple[DataType, ...], overlays: tuple[Overlay, ...]) -> LimitTable:
    """A target's limits, with the rule on the types that it computes in, and as overlays have them."""
    full = attrs.evolve(table, precisions=precisions)
    return overlaid_limits(full, overlays) if overlays else full


def platform_key(name: str) -> str:
    """Return the lookup key of a platform name: `orin-nx` for `Orin NX` and for `Jetson Orin NX`."""
    return re.sub(r"[\s_]+", "-", name.strip().lower()).removeprefix("jetson-")


def inherited(target: Target, host: Target) -> Target:
    """Return a target whose omitted fields are filled from the host: formats, arithmetic and precisions.

    Limits, memory pools, fusions, the segment compiler and the cost function are never inherited. Kernels need not be
    filled in: the host's kernels serve every layer for which a device has none.
    """
    filled = ("input_formats_at", "output_formats_at", "arithmetic_at", "precisions")
    return attrs.evolve(target, **{name: getattr(target, name) or getattr(host, name) for name in filled})
