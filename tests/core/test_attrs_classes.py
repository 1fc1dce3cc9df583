"""attrs classes whose methods are generated at their first use are what attrs makes at once, but for slots."""

from __future__ import annotations

import copy
import inspect
import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import attrs
import pytest

from dryfit.attrs_classes import define, frozen, generate_later


@frozen
class _Point:
    x: int
    y: int = 0


@frozen(order=True)
class _Version:
    number: int = attrs.field(converter=int)


@define
class _List:
    items: list[int] = attrs.field(factory=list)


@frozen(kw_only=True)
class _Named(_Point):
    name: str

    def __repr__(self) -> str:
        return self.name


@frozen
class _Counted:
    value: int

    def __hash__(self) -> int:
        return 5

    def __attrs_post_init__(self) -> None:
        if self.value < 0:
            raise ValueError(self.value)


def test_values_are_compared_hashed_ordered_and_printed() -> None:
    assert _Point(1) == _Point(1, 0) != _Point(2)
    assert len({_Point(1), _Point(1, 0), _Point(1, 1)}) == 2
    assert sorted([_Version(3), _Version(1)]) == [_Version(1), _Version(3)]
    assert repr(_Point(1, 2)) == "_Point(x=1, y=2)"


def test_own_methods_stay() -> None:
    assert repr(_Named(x=1, name="one")) == "one"
    assert hash(_Counted(1)) == 5
    with pytest.raises(ValueError, match="-1"):
        _Counted(-1)


def test_frozen_ones_cannot_be_changed_and_others_can() -> None:
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        _Point(1).x = 2  # type: ignore[misc]
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        del _Named(x=1, name="one").name  # type: ignore[misc]
    changed = _List()
    changed.items = [1]
    assert changed == _List([1])
    with pytest.raises(TypeError, match="unhashable"):
        hash(changed)


def test_they_are_matched_evolved_copied_and_pickled() -> None:
    match _Point(3, 4):
        case _Point(x, y):
            assert (x, y) == (3, 4)
    assert attrs.evolve(_Named(x=1, name="one"), y=7) == _Named(x=1, y=7, name="one")
    assert copy.deepcopy(_Version(2)) == pickle.loads(pickle.dumps(_Version(2))) == _Version(2)  # noqa: S301  just made


def test_fields_and_signatures_are_known_before_the_first_object_is_made() -> None:
    @frozen
    class Unused(_Point):
        z: int = 3

    assert not inspect.isfunction(vars(Unused)["__init__"])
    assert list(inspect.signature(Unused).parameters) == ["x", "y", "z"]
    assert [field.name for field in attrs.fields(Unused)] == ["x", "y", "z"]


def test_threads_that_make_the_first_object_of_a_class_at_once_all_get_one() -> None:
    for _ in range(20):

        @frozen
        class Made:
            x: int

        found, start = [], threading.Barrier(4)

        def make(made: type[Made] = Made, found: list[int] = found, start: threading.Barrier = start) -> None:
            start.wait()
            found.append(hash(made(1)))

        threads = [threading.Thread(target=make) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [hash(Made(1))] * 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_fork_waits_for_what_another_thread_generates() -> None:
    class Made:
        value = 0

    begun = threading.Event()

    def generate(cls: type) -> None:
        begun.set()
        time.sleep(0.2)
        Made.value = 1

    generate_later(Made, ["value"], generate)
    thread = threading.Thread(target=lambda: Made.value)
    thread.start()
    begun.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        os._exit(Made.value)
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1


def test_a_command_generates_a_part_of_what_it_imports() -> None:
    code = (
        "import dryfit.answers.check, dryfit.attrs_classes as classes\n"
        "waiting = len(classes._GENERATORS)\n"
        "print(waiting > 100)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "True"
