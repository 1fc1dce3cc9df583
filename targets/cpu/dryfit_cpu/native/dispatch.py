"""The dispatcher: runs a table of work with as many threads as come.

A row of the table is (function, descriptor, chunks). Each row has two counters, each in a cache line of its own: the
next chunk, tagged with the number of the run (its generation), and the chunks that are done. Threads claim chunks until
none is left, and go on to the next row when all are done, whoever did them. So a thread that comes late or is put to
sleep holds up nobody but its own chunk, and one that comes after the run has ended, or while the next one runs, finds a
foreign generation and leaves.
"""

from __future__ import annotations

from dryfit_cpu.compiler.atomics import (
    call_function,
    compare_and_swap,
    fetch_add,
    give_way,
    load_acquire,
    pause,
    store_release,
)
from dryfit_cpu.compiler.compilation import inlined, native
from dryfit_cpu.compiler.memory import load_int

ROW_BYTES = 24
COUNTER_BYTES = 128
DONE = 64
"""Bytes from a row's claim counter to its done counter."""

_EXHAUSTED, _STALE = -1, -2
_PATIENCE = 2000
"""Turns of the waiting loop before the core is offered to other threads: about 20 microseconds."""


@native
def run(generation: int, threads: int, table: int, rows: int, counters: int) -> None:
    """Run all rows: alone when `threads` is 1, else together with others of the same generation."""
    for row in range(rows):
        entry = table + row * ROW_BYTES
        function, descriptor, chunks = load_int(entry), load_int(entry + 8), load_int(entry + 16)
        if threads == 1:
            call_function(function, descriptor, 0, 1)
        else:
            counter = counters + row * COUNTER_BYTES
            chunk = _claim(counter, generation, chunks)
            while chunk >= 0:
                call_function(function, descriptor, chunk, chunks)
                fetch_add(counter + DONE, 1)
                chunk = _claim(counter, generation, chunks)
            if chunk == _STALE or _wait(counter, generation, chunks) == _STALE:
                return


@native
def prepare(generation: int, _threads: int, rows: int, counters: int) -> None:
    """Set the counters for a run; threads of earlier runs may still be looking at them."""
    for row in range(rows):
        counter = counters + row * COUNTER_BYTES
        store_release(counter + DONE, 0)
        store_release(counter, generation << 32)


@inlined
def _claim(counter: int, generation: int, chunks: int) -> int:
    """The next chunk of this generation, or why there is none."""
    while True:
        value = load_acquire(counter)
        if value >> 32 != generation:
            return _STALE
        chunk = value & 0xFFFFFFFF
        if chunk >= chunks:
            return _EXHAUSTED
        if compare_and_swap(counter, value, value + 1):
            return int(chunk)


@inlined
def _wait(counter: int, generation: int, chunks: int) -> int:
    """Wait until all chunks are done: 0, or `_STALE` when the run has ended meanwhile."""
    turns = 0
    while load_acquire(counter + DONE) < chunks:
        if load_acquire(counter) >> 32 != generation:
            return _STALE
        turns += 1
        if turns < _PATIENCE:
            pause()
        else:
            give_way()
    return 0
