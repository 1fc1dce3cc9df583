"""Code that a target compiles for this machine: what `dryfit warmup` and a first build ask for, and are told of it.

A target compiles a function when it is first needed, and keeps it. What is kept can be compiled ahead of time
(`MachineCode`), and whoever shows progress listens to what is compiled meanwhile (`listening`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

import attrs


@attrs.frozen
class CompiledFunction:
    """One function that is ready.

    Attributes:
        name: as in `MachineCode.names`.
        was_kept: whether it was there already.
        seconds: how long it took.
    """

    name: str
    was_kept: bool
    seconds: float


@attrs.frozen(eq=False)
class MachineCode:
    """All functions of a target, for one instruction set tier of this machine.

    Attributes:
        tier: name of the tier.
        tiers: names of all tiers that this machine has, best first.
        place: the folder in which compiled functions are kept.
        names: of the functions.
        missing: names of those that are not kept yet.
        compile: compiles each function that is not ready, in the order of `names`, and reports each. It raises a
            `ConfigError` where the place cannot be written to.
    """

    tier: str
    tiers: Sequence[str]
    place: str
    names: Sequence[str]
    missing: Callable[[], Sequence[str]]
    compile: Callable[[], Iterator[CompiledFunction]]


def usable_processors() -> int:
    """Return how many processors this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


Listener = Callable[[CompiledFunction], None]

_listeners: ContextVar[tuple[Listener, ...]] = ContextVar("listeners", default=())


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Tell a listener of each function that is compiled inside, by this thread."""
    before = _listeners.get()
    _listeners.set((*before, listener))
    try:
        yield
    finally:
        _listeners.set(before)


@contextmanager
def compiling(name: str) -> Iterator[None]:
    """Tell those that listen that a function has been compiled: what compiles stands inside. For targets."""
    start = time.perf_counter()
    yield
    tell_listeners(CompiledFunction(name, was_kept=False, seconds=time.perf_counter() - start))


def tell_listeners(function: CompiledFunction) -> None:
    """Tell those that listen of a function that another process has compiled for this one. For targets."""
    for listener in _listeners.get():
        listener(function)
