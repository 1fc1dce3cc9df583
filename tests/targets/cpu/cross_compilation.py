"""Machine code for processors that this machine is not: as text for tests of inner loops, or into a kernel cache.

    python -m tests.targets.cpu.cross_compilation assembly neon-dot integer_convolution.convolve
    python -m tests.targets.cpu.cross_compilation fill neon-dot processor.json

The second one compiles all native functions for the processor that a file describes, as `dryfit_cpu.compiler.tier`
finds it there, into the folder that `DRYFIT_CACHE_DIR` names. An emulator then compiles nothing.

Nothing of the compiler is different but what it is told of the processor. So this is a process of its own: what is made
here does not run here.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path

import llvmlite.binding as llvm

TRIPLES = {"aarch64": "aarch64-unknown-linux-gnu", "x86_64": "x86_64-unknown-linux-gnu"}

CPUS = {"avx512-vnni": "sapphirerapids", "avx512": "skylake-avx512", "avx2-vnni": "alderlake"}
"""Tier -> a processor whose best tier it is, as LLVM names it; for other tiers code is made for any processor."""


def pretend(tier_name: str, described: dict[str, object] | None = None) -> None:
    """Make this process compile for a tier: of a processor that is described, or of one that has just this tier."""
    from dryfit_cpu.compiler import tier

    chosen = next(one for one in tier.TIERS if one.name == tier_name)
    machine = chosen.machines[0] if chosen.machines else "x86_64"
    platform.machine = lambda: machine
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    if described is None:
        features = dict.fromkeys((names.split("|")[0] for names in chosen.required), True)
        if tier_name == "avx2-vnni":
            features = {name: True for name in features if "512" not in name} | {"avxvnni": True}
        cpu = CPUS.get(tier_name, "generic" if chosen.machines else "x86-64")
        described = {"llvm": ".".join(map(str, llvm.llvm_version_info)), "triple": TRIPLES[machine], "cpu": cpu}
        described["features"] = features
    processor = tier.Processor(**described)
    tier.this_processor = lambda: processor
    llvm.get_process_triple = lambda: processor.triple
    os.environ[tier.ENVIRONMENT_VARIABLE] = tier_name
    # Numba's own target machine optimizes on x86.
    os.environ["NUMBA_CPU_NAME"] = processor.cpu
    os.environ["NUMBA_CPU_FEATURES"] = tier.feature_string(processor.features)


def print_assembly(functions: Sequence[str]) -> None:
    """Print native functions (`convolution.convolve`) and their assembly as a JSON object."""
    from dryfit_cpu.compiler.compilation import assembly

    json.dump({function: assembly(*function.split(".")) for function in functions}, sys.stdout)


def main(command: str, tier_name: str, *rest: str) -> None:
    """Print the assembly of functions, or fill a cache."""
    if command == "assembly":
        pretend(tier_name)
        print_assembly(rest)
        return
    pretend(tier_name, json.loads(Path(rest[0]).read_text()))
    from dryfit_cpu import warm_up

    for name in warm_up.missing_names():
        warm_up.native.NATIVE_FUNCTIONS[name].compile()


if __name__ == "__main__":
    main(*sys.argv[1:])
