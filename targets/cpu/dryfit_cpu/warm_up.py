"""Compiling all native functions ahead of time, for the tier of this process or, in a process of its own, for another.

`python -m dryfit_cpu.warm_up compile` compiles those of its own tier and prints a line of JSON for each: a process
makes code for one tier only, because the width of vectors is part of every kernel's source.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import attrs

from dryfit.errors import DryfitError
from dryfit.target.cache_folder import cache_folder, require_usable
from dryfit.target.machine_code import CompiledFunction, MachineCode
from dryfit_cpu import side_by_side
from dryfit_cpu.compiler import native, object_cache, tier

MODULE = "dryfit_cpu.warm_up"


def machine_code(name: str | None = None) -> MachineCode:
    """All native functions for a tier; for None, for the tier of this process.

    Raises:
        UnknownNameError: this machine does not have the tier.
    """
    chosen = tier.current_tier() if name is None else tier.find_tier(name, "--tier")
    is_own = chosen == tier.current_tier()
    return MachineCode(
        tier=chosen.name,
        tiers=[one.name for one in tier.tiers_here()],
        place=str(cache_folder() / object_cache.FOLDER),
        names=native_names() if is_own else list(side_by_side.read_process(MODULE, chosen.name, "names")),
        missing=missing_names
        if is_own
        else lambda: [name for name in side_by_side.read_process(MODULE, chosen.name, "missing") if name],
        compile=compile_all if is_own else lambda: _compile_elsewhere(chosen.name),
    )


def native_names() -> list[str]:
    """Names of all native functions that kernels, the schedule and copies of arrays use on this process' tier."""
    for module in ("dryfit_cpu.kernels", "dryfit_cpu.schedule", "dryfit_cpu.array_copies"):
        importlib.import_module(module)
    return sorted(native.NATIVE_FUNCTIONS)


_SEEN: set[tuple[Path, str]] = set()
"""Names of functions that were found in a cache folder: each build asks for all of them, and to read one takes time."""


def missing_names() -> list[str]:
    """Names of those that would have to be compiled."""
    folder = cache_folder()
    _SEEN.update(
        (folder, name)
        for name in native_names()
        if (folder, name) not in _SEEN and native.NATIVE_FUNCTIONS[name].is_ready
    )
    return [name for name in native_names() if (folder, name) not in _SEEN]


def compile_all() -> Iterator[CompiledFunction]:
    """Compile what is not kept, on all CPUs; what is kept comes first, the others as they are ready.

    Raises:
        ConfigError: the folder cannot be written to, or others can write to it.
        DryfitError: a process that compiles fails; what it said is told.
    """
    require_usable()
    missing = []
    for name in native_names():
        start = time.perf_counter()
        if object_cache.read(name) is None:
            missing.append(name)
        else:
            yield CompiledFunction(name, was_kept=True, seconds=time.perf_counter() - start)
    yield from side_by_side.compile_functions(missing)


def _compile_elsewhere(tier_name: str) -> Iterator[CompiledFunction]:
    """Compile for another tier, in a process of its own.

    Raises:
        DryfitError: the process fails; what it said is told.
    """
    for line in side_by_side.read_process(MODULE, tier_name, "compile"):
        yield CompiledFunction(**json.loads(line))


def main() -> None:
    """Tell all names, tell which are missing, or compile these, a line each; an error is one line on stderr."""
    try:
        told = {"names": native_names, "missing": missing_names}.get(sys.argv[1])
        if told is not None:
            print("\n".join(told()))  # noqa: T201  read by `_read_process`
            return
        for one in compile_all():
            print(json.dumps(attrs.asdict(one)), flush=True)  # noqa: T201  the same
    except DryfitError as error:
        sys.exit(str(error).replace("\n", " "))


if __name__ == "__main__":
    main()
