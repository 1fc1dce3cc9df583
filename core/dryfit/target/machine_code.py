"""Code that a target compiles for this machine, as used by `dryfit warmup` and the first build.

A target compiles a function when it is first needed, and caches it. Cached functions can be compiled ahead of time
(`MachineCode`), and progress displays listen to the functions that are compiled (`listening`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from dryfit.attrs_classes import frozen


@frozen
class CompiledFunction:
    """A function that is ready to run.

    Attributes:
        name: name, as in `MachineCode.names`.
        was_kept: whether it was already cached.
        seconds: time that it took.
    """

    name: str
    was_kept: bool
    seconds: float


@frozen(eq=False)
class MachineCode:
    """All functions of a target, for one instruction set tier of this machine.

    Attributes:
        tier: name of the tier.
        tiers: names of all tiers that this machine supports, best first.
        place: cache folder of compiled functions.
        names: names of the functions.
        missing: names of the functions that are not cached yet.
        compile: function that compiles each function that is not ready, in the order of `names`, and reports each.
            Raises `ConfigError` if the folder is not writable.
    """

    tier: str
    tiers: Sequence[str]
    place: str
    names: Sequence[str]
    missing: Callable[[], Sequence[str]]
    compile: Callable[[], Iterator[CompiledFunction]]


def usable_processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


Listener = Callable[[CompiledFunction], None]
Expecting = Callable[[int], None]

_listeners: ContextVar[tuple[tuple[Listener, Expecting | None], ...]] = ContextVar("listeners", default=())


@contextmanager
def listening(listener: Listener, expecting: Expecting | None = None) -> Iterator[None]:
    """Report to a listener each function that this thread compiles within the context.

    Args:
        listener: receives each function once it is compiled.
        expecting: receives how many functions are about to be compiled, where that is known before.
    """
    before = _listeners.get()
    _listeners.set((*before, (listener, expecting)))
    try:
        yield
    finally:
        _listeners.set(before)


@contextmanager
def compiling(name: str) -> Iterator[None]:
    """Report to listeners that the code within the context compiled a function. For targets."""
    start = time.perf_counter()
    yield
    tell_listeners(CompiledFunction(name, was_kept=False, seconds=time.perf_counter() - start))


def tell_listeners(function: CompiledFunction) -> None:
    """Report to listeners a function that another process compiled for this one. For targets."""
    for listener, _ in _listeners.get():
        listener(function)


def tell_expected(functions: int) -> None:
    """Report to listeners how many functions are about to be compiled. For targets."""
    for _, expecting in _listeners.get():
        if expecting is not None:
            expecting(functions)
