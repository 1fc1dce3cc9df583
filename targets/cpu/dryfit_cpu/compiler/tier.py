"""Instruction set tiers: what vectors look like on this machine, and how large the register block is.

LLVM ends the process when the code names an instruction that the machine lacks. So nothing is tried: a tier is chosen
by the features of the CPU before any code is made, and code for a tier names no instruction outside it.

The features are what LLVM says of the processor. It is asked once, as asking costs a process LLVM's library; what is
kept is found by how Linux describes the processor, feature by feature. Where no such description is, LLVM is
asked in each process.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import json
import os
import platform
import sys
from collections.abc import Mapping
from pathlib import Path

import attrs

from dryfit.errors import UnknownNameError
from dryfit.target import kept_files
from dryfit.target.cache_folder import cache_folder

ENVIRONMENT_VARIABLE = "DRYFIT_CPU_TIER"
"""Names a tier to use instead of the best one; only tiers that the machine has are taken."""


@attrs.frozen
class Tier:
    """One way of making code.

    Attributes:
        name: `avx512-vnni`, `avx512`, `avx2-vnni`, `avx2`, `neon` or `generic`.
        lanes: FP32 values in a vector register.
        rows: pixels in a register block; a block is `rows` x 2 vectors of accumulators. Even. Pairs of 16-bit
            integers need a register more than FP32 does, and spill some sums at this size; smaller blocks (12, 4, 4)
            do not, without being faster: measured on ResNet-50 and MobileNetV2 INT8, Zen 4.
        has_half: whether the machine converts between FP16 and FP32 itself.
        has_byte_products: whether it adds four products of an unsigned and a signed byte to a 32-bit sum in one
            instruction. The others multiply pairs of 16-bit integers; the sums are the same.
        has_rounding: whether it rounds a vector to whole numbers in one instruction.
        required: LLVM's names of the CPU features that it needs; names with `|` between are alternatives.
        machines: what the architecture is called; empty for any.
        cpu: the CPU that LLVM makes code for; empty for the one that it runs on.
    """

    name: str
    lanes: int
    rows: int
    has_half: bool
    has_byte_products: bool
    has_rounding: bool
    required: tuple[str, ...] = ()
    machines: frozenset[str] = frozenset()
    cpu: str = ""

    @property
    def block_channels(self) -> int:
        """Output channels of a register block."""
        return 2 * self.lanes

    @property
    def fewer_rows(self) -> int:
        """Pixels in a smaller register block, for what whole ones leave: even, and more than half of them."""
        return self.rows // 4 * 2 + 2

    @property
    def staged_bytes(self) -> int:
        """Bytes of an INT8 value as the integer register block reads it."""
        return 1 if self.has_byte_products else 2

    def missing(self, features: Mapping[str, bool]) -> list[str]:
        """What this machine lacks of it: features, or the architecture."""
        if self.machines and platform.machine().lower() not in self.machines:
            return [" or ".join(sorted(self.machines))]
        return [names for names in self.required if not any(features.get(name) for name in names.split("|"))]


_AVX2 = ("avx2", "fma", "f16c")
_AVX512 = ("avx512f", "avx512bw", "avx512dq", "avx512vl", *_AVX2)

TIERS = (
    Tier("avx512-vnni", 16, 14, True, True, True, (*_AVX512, "avx512vnni")),
    Tier("avx512", 16, 14, True, False, True, _AVX512),
    Tier("avx2-vnni", 8, 6, True, True, True, (*_AVX2, "avxvnni|avx512vl", "avxvnni|avx512vnni")),
    Tier("avx2", 8, 6, True, False, True, _AVX2, cpu="x86-64-v3"),
    Tier("neon", 4, 14, True, False, True, machines=frozenset({"aarch64", "arm64"})),
    Tier("generic", 4, 6, False, False, False, cpu="x86-64"),
)
"""Best first. `generic` is plain LLVM vectors: SSE2 on x86, whatever the target has elsewhere.

A processor with AVX512-VNNI has the 256-bit form of its instruction too, so that it can run `avx2-vnni`, by another
encoding. Every 64-bit Arm processor has NEON, and LLVM cannot tell features on all of its systems.
"""


@functools.cache
def current_tier() -> Tier:
    """The best tier that this machine has, or the one that `DRYFIT_CPU_TIER` names.

    Raises:
        UnknownNameError: the variable names a tier that does not exist, or that this machine lacks.
    """
    return find_tier(os.environ.get(ENVIRONMENT_VARIABLE) or None, ENVIRONMENT_VARIABLE)


def find_tier(name: str | None, where: str) -> Tier:
    """A tier of this machine by name; the best for None.

    Raises:
        UnknownNameError: it does not exist, or this machine lacks it.
    """
    here = {tier.name: tier for tier in tiers_here()}
    if name is None:
        return next(iter(here.values()))
    if name not in here:
        raise UnknownNameError("instruction set tier on this machine", name, here, where=where)
    return here[name]


def tiers_here() -> list[Tier]:
    """The tiers that this machine has, best first."""
    features = host_features()
    return [tier for tier in TIERS if not tier.missing(features)]


def host_features() -> Mapping[str, bool]:
    """LLVM's names of CPU features, and whether this machine has them; empty where LLVM cannot tell."""
    return this_processor().features


def is_x86() -> bool:
    """Whether this machine is an x86 of 64 bits."""
    return platform.machine().lower() in {"x86_64", "amd64"}


FOLDER = "processors"
"""In the folder of all caches."""
_DESCRIPTION = Path("/proc/cpuinfo")
_FEATURES = frozenset({"flags", "Features"})
_TELLING = _FEATURES | {
    *("vendor_id", "cpu family", "model", "model name", "stepping"),
    *("CPU implementer", "CPU architecture", "CPU variant", "CPU part"),
}
"""Lines of the description that do not change from minute to minute: of x86, and of Arm."""


@attrs.frozen
class Processor:
    """The machine that code is made for, in LLVM's words.

    Attributes:
        llvm: version of LLVM.
        triple: architecture, vendor and system.
        cpu: name of the processor.
        features: name to whether the processor has it; empty where LLVM cannot tell.
    """

    llvm: str
    triple: str
    cpu: str
    features: Mapping[str, bool]

    def __str__(self) -> str:
        return f"{self.llvm} {self.triple} {self.cpu} {feature_string(self.features)}"


def feature_string(features: Mapping[str, bool]) -> str:
    """Features as LLVM takes them: `+` or `-` and a name, with commas between, sorted."""
    return ",".join(f"{'+' if has else '-'}{name}" for name, has in sorted(features.items()))


@functools.cache
def this_processor() -> Processor:
    """The processor of this machine."""
    path = _path()
    contents = kept_files.read(path) if path else None
    if contents is not None:
        return Processor(**json.loads(contents))
    found = _ask_llvm()
    if path:
        # It is asked again then. The cache of machine code tells of a folder that cannot be written to.
        with contextlib.suppress(OSError):
            kept_files.write(path, json.dumps(attrs.asdict(found)).encode())
    return found


def _path() -> Path | None:
    """Where it is kept; None when there is nothing to tell processors apart by."""
    try:
        lines = _DESCRIPTION.read_text(errors="replace").splitlines()
    except OSError:
        return None
    pairs = {(name.strip(), value.strip()) for name, _, value in (line.partition(":") for line in lines)}
    telling = sorted(pair for pair in pairs if pair[0] in _TELLING)
    if not _FEATURES & {name for name, _ in telling}:
        return None
    process = (importlib.metadata.version("llvmlite"), platform.machine(), sys.maxsize)
    key = hashlib.sha256(repr((process, telling)).encode()).hexdigest()[:32]
    return cache_folder() / FOLDER / f"{key}.json"


def _ask_llvm() -> Processor:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    try:
        features = dict(llvm.get_host_cpu_features())
    except RuntimeError:
        features = {}
    version = ".".join(map(str, llvm.llvm_version_info))
    return Processor(version, llvm.get_process_triple(), llvm.get_host_cpu_name(), features)
