"""Instruction set tiers: what vectors look like on this machine, and how large the register block is.

LLVM ends the process when the code names an instruction that the machine lacks. So nothing is tried: a tier is chosen
by the features of the CPU before any code is made, and code for a tier names no instruction outside it.
"""

from __future__ import annotations

import functools
import os
import platform
from collections.abc import Mapping
from typing import cast

import attrs
import llvmlite.binding as llvm

from dryfit.errors import UnknownNameError

ENVIRONMENT_VARIABLE = "DRYFIT_CPU_TIER"
"""Names a tier to use instead of the best one; only tiers that the machine has are taken."""


@attrs.frozen
class Tier:
    """One way of making code.

    Attributes:
        name: `avx512`, `avx2`, `neon` or `generic`.
        lanes: FP32 values in a vector register.
        rows: pixels in a register block; a block is `rows` x 2 vectors of accumulators. Even.
        has_half: whether the machine converts between FP16 and FP32 itself.
        required: LLVM's names of the CPU features that it needs.
        cpu: the CPU that LLVM makes code for; empty for the one that it runs on.
    """

    name: str
    lanes: int
    rows: int
    has_half: bool
    required: tuple[str, ...] = ()
    cpu: str = ""

    @property
    def block_channels(self) -> int:
        """Output channels of a register block."""
        return 2 * self.lanes


TIERS = (
    Tier("avx512", 16, 14, True, ("avx512f", "avx512bw", "avx512dq", "avx512vl", "avx2", "fma", "f16c")),
    Tier("avx2", 8, 6, True, ("avx2", "fma", "f16c"), "x86-64-v3"),
    Tier("neon", 4, 14, True, ("neon", "fp-armv8")),
    Tier("generic", 4, 6, False, (), "x86-64"),
)
"""Best first. `generic` is plain LLVM vectors: SSE2 on x86, whatever the target has elsewhere."""


@functools.cache
def current_tier() -> Tier:
    """The best tier that this machine has, or the one that `DRYFIT_CPU_TIER` names.

    Raises:
        UnknownNameError: the variable names a tier that does not exist, or that this machine lacks.
    """
    features = host_features()
    here = {tier.name: tier for tier in TIERS if all(features.get(name) for name in tier.required)}
    asked = os.environ.get(ENVIRONMENT_VARIABLE)
    if not asked:
        return next(iter(here.values()))
    if asked not in here:
        raise UnknownNameError("instruction set tier on this machine", asked, here, where=ENVIRONMENT_VARIABLE)
    return here[asked]


def host_features() -> Mapping[str, bool]:
    """LLVM's names of CPU features, and whether this machine has them; empty where LLVM cannot tell."""
    try:
        return cast("Mapping[str, bool]", llvm.get_host_cpu_features())
    except RuntimeError:
        return {}


def is_x86() -> bool:
    """Whether this machine is an x86 of 64 bits."""
    return platform.machine().lower() in {"x86_64", "amd64"}
