"""Instruction set tiers: what vectors look like on this machine, and how large the register block is.

LLVM ends the process when the code names an instruction that the machine lacks. So nothing is tried: a tier is chosen
by the features of the CPU before any code is made, and code for a tier names no instruction outside it.

The features are what LLVM says of the processor. It is asked once, as asking costs a process LLVM's library; what is
kept is found by how Linux describes the processor, feature by feature. Where no such description is, LLVM is
asked in each process. Of an Arm processor the system says itself what programs may use, and LLVM is not believed.
"""

from __future__ import annotations

import contextlib
import ctypes
import enum
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

from dryfit.attrs_classes import frozen
from dryfit.errors import UnknownNameError
from dryfit.target import kept_files
from dryfit.target.cache_folder import cache_folder

ENVIRONMENT_VARIABLE = "DRYFIT_CPU_TIER"
"""Names a tier to use instead of the best one; only tiers that the machine has are taken."""


class IntegerProducts(enum.Enum):
    """What a machine adds to 32-bit sums in one instruction. The sums are the same for all of them."""

    PAIRS = "pairs of 16-bit integers"
    UNSIGNED_BYTES = "four products of an unsigned and a signed byte in each lane"
    SIGNED_BYTES = "four products of signed bytes in each lane"
    BYTE_MATRICES = "two rows by two columns of eight signed bytes in each 128 bits"


@frozen
class Tier:
    """One way of making code.

    Attributes:
        name: `avx512-vnni`, `avx512`, `avx2-vnni`, `avx2`, `neon-matrix`, `neon-dot`, `neon` or `generic`.
        lanes: FP32 values in a vector register.
        rows: pixels in a register block; a block is `rows` x 2 vectors of accumulators. Even. For pairs of 16-bit
            integers smaller ones (12, 4, 4) did not save time, measured on ResNet-50 and MobileNetV2 INT8, Zen 4.
        has_half: whether the machine converts between FP16 and FP32 itself.
        products: what it adds to sums of integers in one instruction.
        has_rounding: whether it rounds a vector to whole numbers in one instruction.
        required: LLVM's names of the CPU features that it needs; names with `|` between are alternatives.
        machines: what the architecture is called; empty for any.
        cpu: the CPU that LLVM makes code for; empty for the one that it runs on.
        lane_words: words k of a pixel that a register block loads at once, since an instruction multiplies by one lane
            of a register: 4 on Arm. 1 where each is loaded to all lanes.
    """

    name: str
    lanes: int
    rows: int
    has_half: bool
    products: IntegerProducts
    has_rounding: bool
    required: tuple[str, ...] = ()
    machines: tuple[str, ...] = ()
    cpu: str = ""
    lane_words: int = 1

    @property
    def block_channels(self) -> int:
        """Output channels of a register block."""
        return 2 * self.lanes

    @property
    def wide_channels(self) -> int:
        """Output channels of a block of one pixel; on Arm a turn of four words leaves no registers to more sums."""
        return 8 * self.lanes if self.lane_words == 1 else self.block_channels

    @property
    def short_lanes(self) -> int:
        """Lanes of a short block; as many as others have where there is none."""
        return self.lanes // 2 if self.lanes == 16 else self.lanes

    @property
    def fewer_rows(self) -> int:
        """Pixels in a smaller register block, for what whole ones leave: even, and more than half of them."""
        return self.rows // 4 * 2 + 2

    @property
    def has_byte_products(self) -> bool:
        """Whether it multiplies bytes as they are, four to a word."""
        return self.products is not IntegerProducts.PAIRS

    @property
    def has_short_sums(self) -> bool:
        """Whether it adds two products of an unsigned and a signed byte in 16 bits, which saturate (`vpmaddubsw`)."""
        return self.products is IntegerProducts.PAIRS and "avx2" in self.required

    @property
    def joins_words(self) -> bool:
        """Whether such sums of two words are joined, where they fit 16 bits. Blocks of AVX512 lack the registers."""
        return self.has_short_sums and self.lanes == 8

    @property
    def byte_shift(self) -> int:
        """How far above their values bytes of activations are multiplied, which sums begin below: 128 or 0."""
        return 128 if self.products is IntegerProducts.UNSIGNED_BYTES else 0

    @property
    def staged_bytes(self) -> int:
        """Bytes of an INT8 value as the integer register block reads it."""
        return 1 if self.has_byte_products else 2

    def missing(self, features: Mapping[str, bool]) -> list[str]:
        """What this machine lacks of it: features, or the architecture."""
        if self.machines and platform.machine().lower() not in self.machines:
            return [" or ".join(self.machines)]
        return [names for names in self.required if not any(features.get(name) for name in names.split("|"))]


_AVX2 = ("avx2", "fma", "f16c")
_AVX512 = ("avx512f", "avx512bw", "avx512dq", "avx512vl", *_AVX2)
_LEVEL_3 = ("bmi", "bmi2", "crc32", "cx16", "lzcnt", "movbe", "popcnt", "sahf", "sse4.2", "xsave")
"""What LLVM takes for granted in code for `x86-64-v3`, beside AVX2: a virtual machine may hide some of it."""
_PAIRS, _UNSIGNED_BYTES = IntegerProducts.PAIRS, IntegerProducts.UNSIGNED_BYTES
_ARM = ("aarch64", "arm64")


def _neon(name: str, products: IntegerProducts, *required: str) -> Tier:
    # Eight pixels by two vectors: 16 sums keep four multipliers of a latency of four cycles busy, and leave 16 of the
    # 32 registers to eight vectors of weights and as many of pixels, so that four words k take twelve loads.
    return Tier(name, 4, 8, True, products, True, required, _ARM, "generic", lane_words=4)


TIERS = (
    Tier("avx512-vnni", 16, 14, True, _UNSIGNED_BYTES, True, (*_AVX512, "avx512vnni")),
    Tier("avx512", 16, 14, True, _PAIRS, True, _AVX512),
    Tier("avx2-vnni", 8, 6, True, _UNSIGNED_BYTES, True, (*_AVX2, "avxvnni|avx512vl", "avxvnni|avx512vnni")),
    Tier("avx2", 8, 6, True, _PAIRS, True, (*_AVX2, *_LEVEL_3), cpu="x86-64-v3"),
    _neon("neon-matrix", IntegerProducts.BYTE_MATRICES, "i8mm", "dotprod"),
    _neon("neon-dot", IntegerProducts.SIGNED_BYTES, "dotprod"),
    _neon("neon", _PAIRS),
    Tier("generic", 4, 6, False, _PAIRS, False, cpu="x86-64"),
)
"""Best first. `generic` is plain LLVM vectors: SSE2 on x86, NEON on Arm.

A processor with AVX512-VNNI has the 256-bit form of its instruction too, so that it can run `avx2-vnni`, by another
encoding. Every 64-bit Arm processor has NEON. Code for Arm is made for any such processor, with what its tier requires
and nothing else: by its name LLVM would give a processor instructions (SVE) that a virtual machine may hide.
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


def is_arm() -> bool:
    """Whether this machine is an Arm of 64 bits."""
    return platform.machine().lower() in _ARM


FOLDER = "processors"
"""In the folder of all caches."""
_DESCRIPTION = Path("/proc/cpuinfo")
_FEATURES = frozenset({"flags", "Features"})
_TELLING = _FEATURES | {
    *("vendor_id", "cpu family", "model", "model name", "stepping"),
    *("CPU implementer", "CPU architecture", "CPU variant", "CPU part"),
}
"""Lines of the description that do not change from minute to minute: of x86, and of Arm."""


@frozen
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
    # An emulator shows its host's description, so that capabilities belong to the key.
    process = (importlib.metadata.version("llvmlite"), platform.machine(), sys.maxsize, *_arm_features().items())
    key = hashlib.sha256(repr((process, telling)).encode()).hexdigest()[:32]
    return cache_folder() / FOLDER / f"{key}.json"


def _ask_llvm() -> Processor:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    try:
        features = dict(llvm.get_host_cpu_features())
    except RuntimeError:
        features = {}
    features.update(_arm_features())
    version = ".".join(map(str, llvm.llvm_version_info))
    return Processor(version, llvm.get_process_triple(), llvm.get_host_cpu_name(), features)


_CAPABILITIES = {"dotprod": (16, 20), "i8mm": (26, 13)}
"""LLVM's name of a feature -> entry of the auxiliary vector (AT_HWCAP, AT_HWCAP2), and bit in it.

Source: Linux, arch/arm64/include/uapi/asm/hwcap.h and include/uapi/linux/auxvec.h.
"""
_SYSTEM_CONTROLS = {"dotprod": b"hw.optional.arm.FEAT_DotProd", "i8mm": b"hw.optional.arm.FEAT_I8MM"}
"""The same, as macOS names them. Source: Apple, Determining instruction set characteristics."""


def _arm_features() -> dict[str, bool]:
    """The features of tiers that this Arm processor lets programs use; empty elsewhere, or where the system is silent.

    LLVM reads a description of the processor, which an emulator may take from its host and a sandbox may lack. The
    kernel's own word is handed to each process, without what a virtual machine hides.
    """
    if not is_arm():
        return {}
    with contextlib.suppress(AttributeError, OSError):
        if sys.platform == "linux":
            return {name: bool(_auxiliary_value(entry) >> bit & 1) for name, (entry, bit) in _CAPABILITIES.items()}
        if sys.platform == "darwin":
            return {name: _system_control(control) for name, control in _SYSTEM_CONTROLS.items()}
    return {}


def _auxiliary_value(entry: int) -> int:
    """A word that Linux hands to each process; 0 for one that it does not know."""
    read = ctypes.CDLL(None).getauxval
    read.argtypes, read.restype = [ctypes.c_ulong], ctypes.c_ulong
    return int(read(entry))


def _system_control(name: bytes) -> bool:
    """A flag of macOS; False for one that it does not know."""
    value = ctypes.c_int(0)
    size = ctypes.c_size_t(ctypes.sizeof(value))
    failed = ctypes.CDLL(None).sysctlbyname(name, ctypes.byref(value), ctypes.byref(size), None, 0)
    return not failed and bool(value.value)
