"""The dispatcher: runs a table of work with as many threads as come.

A row of the table is (function, descriptor, chunks). Each thread has a share of a row's chunks, which lie next to each
other: so it mostly finds in its cache what it wrote in the row before. It runs its own share first, then what is left
of the others', and goes on to the next row when all chunks are done, whoever did them. So a thread that comes late or
is put to sleep holds up nobody but its own chunk.

The counters only ever go up, and are never set back: a row's share of n chunks is at g * n when run number g (they
count from 1) has ended. A thread that still believes in an earlier run finds every chunk of it claimed and done, walks
through the rows and leaves.
"""

from __future__ import annotations

from dryfit_cpu import codes
from dryfit_cpu.compiler.compilation import inlined, native
from dryfit_cpu.compiler.counters import (
    call_function,
    compare_and_swap,
    fetch_add,
    give_way,
    load_acquire,
    pause,
    store_release,
)
from dryfit_cpu.compiler.memory import load_int

ROW_BYTES = 8 * codes.ROW_WORDS
_PATIENCE = 2000
"""Turns of waiting for the last chunk of a row before the core is offered to other threads: about 50 microseconds."""
_ARRIVALS_A_RUN = 1 << 16


@native
def lead(entry: int, threads: int, team: int) -> None:
    """Run all rows of an entry, together with the members of a team that come.

    Ends when all is done. Only one thread may lead a team at a time.
    """
    number = load_acquire(entry + codes.NUMBER) + 1
    store_release(entry + codes.NUMBER, number)
    store_release(team + codes.CURRENT, entry)
    _run_rows(entry, number, 0, threads)


@native
def follow(patience: int, threads: int, team: int, wanted: int) -> None:
    """Take part in each run that a team begins, until none comes for so many turns, or threads are wanted elsewhere.

    In the last fifth of the turns the core is offered to other threads. What is wanted is a counter that is 0 as long
    as nobody asks. A member too many leaves at once.
    """
    if fetch_add(team + codes.MEMBERS, 1) < threads - 1:
        entry, number, turns = 0, 0, 0
        while turns < patience and (turns == 0 or load_acquire(wanted) == 0):
            current = load_acquire(team + codes.CURRENT)
            latest = load_acquire(current + codes.NUMBER) if current != 0 else 0
            if current == entry and latest == number:
                turns += 1
                _wait_a_turn(turns < patience - patience // 5)
            else:
                entry, number, turns = current, latest, 1
                place = _place(entry + codes.ARRIVALS, number)
                if place < threads:
                    _run_rows(entry, number, place, threads)
    fetch_add(team + codes.MEMBERS, -1)


@inlined
def _place(arrivals: int, number: int) -> int:
    """Which thread of a run the caller is, from 1; a large number when the run is over."""
    while True:
        value = load_acquire(arrivals)
        if value >= (number + 1) * _ARRIVALS_A_RUN:
            return _ARRIVALS_A_RUN
        following = max(value, number * _ARRIVALS_A_RUN) + 1
        if compare_and_swap(arrivals, value, following):
            return int(following - number * _ARRIVALS_A_RUN)


@inlined
def _run_rows(entry: int, number: int, place: int, threads: int) -> None:
    """Run the chunks of all rows that no other thread of the same run does."""
    table, counters = load_int(entry + codes.ENTRY_TABLE), load_int(entry + codes.ENTRY_COUNTERS)
    for _ in range(load_int(entry + codes.ENTRY_ROWS)):
        function, descriptor, chunks = load_int(table), load_int(table + 8), load_int(table + 16)
        # Layers of small networks take some ten microseconds. Waking a thread by a semaphore takes 10 to 16, a parallel
        # region of Numba's workqueue 46 to 100; spinning on a counter takes 0.13.
        done, all_done = counters + threads * codes.LINE_BYTES, number * chunks
        turns = 0
        for turn in range(threads):
            # Its own share first: neighbouring chunks are neighbouring rows, which this thread wrote in the layer
            # before.
            owner = place + turn - threads if place + turn >= threads else place + turn
            start, stop = (owner * chunks + threads - 1) // threads, ((owner + 1) * chunks + threads - 1) // threads
            claimed = 0
            chunk = start + _claim(counters + owner * codes.LINE_BYTES, number, stop - start)
            while chunk < stop:
                call_function(function, descriptor, chunk, chunks)
                claimed += 1
                chunk = start + _claim(counters + owner * codes.LINE_BYTES, number, stop - start)
            if claimed:
                fetch_add(done, claimed)
            if load_acquire(done) >= all_done:
                break
        while load_acquire(done) < all_done:
            turns += 1
            _wait_a_turn(turns < _PATIENCE)
        table += ROW_BYTES
        counters += (threads + 1) * codes.LINE_BYTES


@inlined
def _claim(counter: int, number: int, share: int) -> int:
    """The next chunk of a share, from 0; `share` or more when there is none left in this run."""
    while True:
        value = load_acquire(counter)
        chunk = value - (number - 1) * share
        if chunk >= share or compare_and_swap(counter, value, value + 1):
            return int(chunk)


@inlined
def _wait_a_turn(keeps_core: bool) -> None:
    """Pass some time by doing nothing, or by offering the core to other threads."""
    if keeps_core:
        pause()
    else:
        give_way()
