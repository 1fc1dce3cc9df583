"""Compiling several functions at a time, each in one of several processes.

Numba holds Python's lock, so that threads would not help. `python -m dryfit_cpu.side_by_side NAME...` compiles
the named functions of this process's tier and prints a line of JSON for each; what it makes is kept in the cache, where
the others find it.
"""

from __future__ import annotations

import json
import logging
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import attrs

from dryfit.errors import ConfigError, DryfitError
from dryfit.target.cache_folder import require_usable
from dryfit.target.machine_code import CompiledFunction, tell_expected, tell_listeners, usable_processors
from dryfit_cpu.compiler import tier
from dryfit_cpu.compiler.native import NativeFunction

_LOG = logging.getLogger("dryfit.cpu")
_MODULE = "dryfit_cpu.side_by_side"
_MOST_PROCESSES = 8
"""Our choice: a process takes 0.2 GiB of memory, and the functions of a network keep no more than eight busy."""


def make_ready(functions: Iterable[NativeFunction]) -> None:
    """Compile what this process or the cache does not have yet, on all processors; what is left compiles at its use.

    Where the cache cannot be written to, processes could not hand over what they compile: nothing is done.
    """
    new = {one.full_name: one for one in functions if not one.is_loaded}
    missing = [name for name, function in new.items() if not function.is_ready]
    if missing:
        tell_expected(len(missing))
    if _processes_for(len(missing)) < 2 or not _can_start_processes():
        return
    try:
        for one in compile_functions(missing):
            tell_listeners(one)
    except DryfitError as error:
        _LOG.warning("Kernels are compiled one after another: %s", error)


def compile_functions(names: Sequence[str]) -> Iterator[CompiledFunction]:
    """Compile functions, in processes where that is faster; each is yielded when it is ready.

    Raises:
        DryfitError: a process fails; its error is part of the message.
    """
    processes = _processes_for(len(names))
    if processes < 2:
        yield from _compile_here(names)
    else:
        yield from compile_in_processes(names, processes)


def compile_in_processes(names: Sequence[str], processes: int) -> Iterator[CompiledFunction]:
    """Compile functions in so many processes. Raises what `compile_functions` does.

    Neighbors in the list are variants of one function and take equally long, so each process takes every n-th.
    """
    tier_name = tier.current_tier().name
    finished: queue.SimpleQueue[CompiledFunction | BaseException | None] = queue.SimpleQueue()

    def compile_share(share: Sequence[str]) -> None:
        try:
            for line in read_process(_MODULE, tier_name, *share):
                finished.put(CompiledFunction(**json.loads(line)))
        except BaseException as error:  # noqa: BLE001  raised where the functions are awaited
            finished.put(error)
        finished.put(None)

    running = processes
    for first in range(processes):
        threading.Thread(target=compile_share, args=(names[first::processes],), daemon=True).start()
    while running:
        one = finished.get()
        if isinstance(one, BaseException):
            raise one
        if one is None:
            running -= 1
        else:
            yield one


def read_process(module: str, tier_name: str, *arguments: str) -> Iterator[str]:
    """The lines that a module prints when it is run for a tier.

    Raises:
        DryfitError: the process fails; the last line of its error is part of the message.
    """
    command = [sys.executable, "-m", module, *arguments]
    environment = {**os.environ, tier.ENVIRONMENT_VARIABLE: tier_name}
    with tempfile.TemporaryFile("w+") as errors:
        with subprocess.Popen(  # noqa: S603  this interpreter and a module of ours
            command, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as process:
            yield from (line.strip() for line in process.stdout or ())
        errors.seek(0)
        text = errors.read().strip()
    if process.returncode:
        raise DryfitError(
            "Kernel compilation failed",
            where=f"tier {tier_name}",
            found=text.splitlines()[-1] if text else f"exit code {process.returncode}",
            remedy="Check that numba and llvmlite work (`dryfit doctor`), or choose another tier",
        )


def _compile_here(names: Sequence[str]) -> Iterator[CompiledFunction]:
    for name in names:
        start = time.perf_counter()
        NativeFunction(*name.split(".")).compile()
        yield CompiledFunction(name, was_kept=False, seconds=time.perf_counter() - start)


def _processes_for(functions: int) -> int:
    """How many processes are worth starting: one takes about as long to start as a function or two to compile."""
    return min(usable_processors(), functions // 3, _MOST_PROCESSES)


def _can_start_processes() -> bool:
    """Whether this interpreter can be started again, and hand over what it compiles.

    An application that embeds Python, or is frozen, names itself as the interpreter: it must not be started.
    """
    if getattr(sys, "frozen", False) or not Path(sys.executable or "").name.lower().startswith(("python", "pypy")):
        return False
    try:
        require_usable()
    except ConfigError:
        return False
    return True


def main() -> None:
    """Compile the named functions and print a line for each; an error is one line on stderr."""
    try:
        for one in _compile_here(sys.argv[1:]):
            print(json.dumps(attrs.asdict(one)), flush=True)  # noqa: T201  read by `read_process`
    except DryfitError as error:
        sys.exit(str(error).replace("\n", " "))


if __name__ == "__main__":
    main()
