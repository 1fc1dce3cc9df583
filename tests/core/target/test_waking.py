"""Threads that sleep are kept off their leader's processor, and get all of theirs back while they work."""

from __future__ import annotations

import os
import threading

import pytest

from dryfit.target import waking
from dryfit.target.waking import WakingElsewhere

pytestmark = pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity"), reason="the system does not let a thread choose its processors"
)


def _in_a_thread(work: object) -> None:
    thread = threading.Thread(target=work)  # type: ignore[arg-type]
    thread.start()
    thread.join()


def test_sleeps_off_the_leaders_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two jobs; during the second it may use all processors again."""
    usable = os.sched_getaffinity(0)
    leader = min(usable)
    monkeypatch.setattr(waking, "_current_processor", lambda: leader)
    elsewhere, found = WakingElsewhere(), list[set[int]]()

    def work() -> None:
        for _ in range(2):
            with elsewhere.works():
                found.append(os.sched_getaffinity(0))
            found.append(os.sched_getaffinity(0))

    elsewhere.leads()
    _in_a_thread(work)
    asleep = usable - {leader} or usable
    assert found == [usable, asleep, usable, asleep]


def test_changes_nothing_without_a_leader() -> None:
    """Nobody has woken the thread yet, or the C library does not say which processor the leader has."""
    usable, found = os.sched_getaffinity(0), list[set[int]]()
    elsewhere = WakingElsewhere()

    def work() -> None:
        with elsewhere.works():
            pass
        found.append(os.sched_getaffinity(0))

    _in_a_thread(work)
    assert found == [usable]


def test_a_single_processor_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a thread may use only its leader's processor it keeps that."""
    only = min(os.sched_getaffinity(0))
    monkeypatch.setattr(waking, "_current_processor", lambda: only)
    elsewhere, found = WakingElsewhere(), list[set[int]]()

    def work() -> None:
        os.sched_setaffinity(0, {only})
        with elsewhere.works():
            pass
        found.append(os.sched_getaffinity(0))

    elsewhere.leads()
    _in_a_thread(work)
    assert found == [{only}]
