"""Compiling all native functions ahead of time, for the tier of this process or, in a process of its own, for another.

`python -m dryfit_cpu.warm_up compile` compiles those of its own tier, or the named ones, and prints a line of JSON for
each: a process makes code for one tier only, because the width of vectors is part of every kernel's source.
"""

from __future__ import annotations

import importlib
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence

from dryfit.errors import DryfitError
from dryfit.target.cache_folder import cache_folder, require_usable
from dryfit.target.machine_code import CompiledFunction, MachineCode
from dryfit_cpu.compiler import native, object_cache, tier


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
        names=native_names(),
        missing=missing_names if is_own else lambda: list(filter(None, _read_process(chosen.name, "missing"))),
        compile=compile_all if is_own else lambda: _compile_elsewhere(chosen.name),
    )


def usable_processors() -> int:
    """How many CPUs this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def native_names() -> list[str]:
    """Names of all native functions that kernels, the schedule and copies of arrays use."""
    for module in ("dryfit_cpu.kernels", "dryfit_cpu.schedule", "dryfit_cpu.array_copies"):
        importlib.import_module(module)
    return sorted(native.NATIVE_FUNCTIONS)


def missing_names() -> list[str]:
    """Names of those that would have to be compiled."""
    return [name for name in native_names() if not native.NATIVE_FUNCTIONS[name].is_ready]


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
    # A process takes about as long to start as two functions take to compile.
    processes = min(usable_processors(), len(missing) // 4)
    if processes < 2:
        yield from _compile_here(missing)
    else:
        yield from _compile_side_by_side(missing, processes)


def _compile_here(names: Sequence[str]) -> Iterator[CompiledFunction]:
    """Compile functions in this process, one after another."""
    for name in names:
        start = time.perf_counter()
        native.NATIVE_FUNCTIONS[name].compile()
        yield CompiledFunction(name, was_kept=False, seconds=time.perf_counter() - start)


def _compile_side_by_side(names: Sequence[str], processes: int) -> Iterator[CompiledFunction]:
    """Compile functions in several processes: Numba holds Python's lock, so that threads would not help.

    Neighbors in the list are variants of one function and take equally long, so each process takes every n-th.
    """
    tier_name = tier.current_tier().name
    told: queue.SimpleQueue[CompiledFunction | BaseException | None] = queue.SimpleQueue()

    def compile_share(share: Sequence[str]) -> None:
        try:
            for line in _read_process(tier_name, "compile", *share):
                told.put(CompiledFunction(**json.loads(line)))
        except BaseException as error:  # noqa: BLE001  raised where the functions are awaited
            told.put(error)
        told.put(None)

    running = processes
    for first in range(processes):
        threading.Thread(target=compile_share, args=(names[first::processes],), daemon=True).start()
    while running:
        one = told.get()
        if isinstance(one, BaseException):
            raise one
        if one is None:
            running -= 1
        else:
            yield one


def _compile_elsewhere(tier_name: str) -> Iterator[CompiledFunction]:
    """Compile for another tier, in a process of its own.

    Raises:
        DryfitError: the process fails; what it said is told.
    """
    for line in _read_process(tier_name, "compile"):
        yield CompiledFunction(**json.loads(line))


def _read_process(tier_name: str, *arguments: str) -> Iterator[str]:
    """What this module prints when it is run for a tier."""
    command = [sys.executable, "-m", "dryfit_cpu.warm_up", *arguments]
    environment = {**os.environ, tier.ENVIRONMENT_VARIABLE: tier_name}
    with tempfile.TemporaryFile("w+") as errors:
        with subprocess.Popen(  # noqa: S603  this interpreter and this module
            command, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as process:
            yield from (line.strip() for line in process.stdout or ())
        errors.seek(0)
        said = errors.read()
    if process.returncode:
        raise DryfitError(
            "The kernels could not be compiled",
            where=f"tier {tier_name}",
            found=said.strip().splitlines()[-1] if said.strip() else f"exit code {process.returncode}",
        )


def main() -> None:
    """Tell what is missing, or compile it, a line each; an error is one line on stderr."""
    try:
        if sys.argv[1:] == ["missing"]:
            print("\n".join(missing_names()))  # noqa: T201  read by `_read_process`
            return
        named = sys.argv[2:]
        native_names()  # imports what knows the functions
        for one in _compile_here(named) if named else compile_all():
            line = {"name": one.name, "was_kept": one.was_kept, "seconds": one.seconds}
            print(json.dumps(line), flush=True)  # noqa: T201  the same
    except DryfitError as error:
        sys.exit(str(error).replace("\n", " "))


if __name__ == "__main__":
    main()
