"""Progress of runs over many inputs, and its display."""

from __future__ import annotations

import io

import numpy as np
import pytest
from tests.core.engine.hand_built import plan_of
from tests.core.engine.small_networks import relu_network

from dryfit.engine.engine import Engine
from dryfit.engine.progress import ProgressMonitor, TerminalProgress, run_many, stepped
from dryfit.errors import ExecutionError


class Recorder(ProgressMonitor):
    def __init__(self, cancel_at: int = -1):
        self.events: list[tuple] = []
        self.cancel_at = cancel_at

    def phase_start(self, phase_name, parent_phase, num_steps):
        self.events.append(("start", phase_name, parent_phase, num_steps))

    def step_complete(self, phase_name, step):
        self.events.append(("step", phase_name, step))
        return step != self.cancel_at

    def phase_finish(self, phase_name):
        self.events.append(("finish", phase_name))


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def context():
    return Engine(plan_of(relu_network((2,)))).create_execution_context(1)


def inputs(count: int) -> list[np.ndarray]:
    return [np.float32([value, -value]) for value in range(1, count + 1)]


def test_many_inputs_run_one_after_the_other(context):
    assert [list(outputs["y"]) for outputs in run_many(context, inputs(3))] == [[1, 0], [2, 0], [3, 0]]


def test_each_run_is_a_step(context):
    recorder = Recorder()
    assert len(list(run_many(context, [{"x": x} for x in inputs(2)], recorder))) == 2
    assert recorder.events == [
        ("start", "Running", None, 2),
        ("step", "Running", 0),
        ("step", "Running", 1),
        ("finish", "Running"),
    ]


def test_inputs_without_a_length_are_taken(context):
    recorder = Recorder()
    assert len(list(run_many(context, iter(inputs(2)), recorder, "Validating"))) == 2
    assert recorder.events[0] == ("start", "Validating", None, 0)


def test_a_monitor_cancels_the_run_and_the_phase_is_finished(context):
    recorder = Recorder(cancel_at=1)
    runs = run_many(context, inputs(5), recorder)
    assert [list(next(runs)["y"]) for _ in range(2)] == [[1, 0], [2, 0]]
    with pytest.raises(ExecutionError, match=r"phase 'Running'.*The progress monitor canceled the run.*found step 1"):
        next(runs)
    assert recorder.events[-1] == ("finish", "Running")


def test_a_failing_run_finishes_its_phase(context):
    recorder = Recorder()
    with pytest.raises(ExecutionError, match="The array must have the type of the input"):
        list(run_many(context, [np.zeros(2)], recorder))
    assert recorder.events[-1] == ("finish", "Running")


def test_each_item_of_long_work_is_a_step_that_is_done_when_the_next_is_asked_for():
    recorder = Recorder()
    seen = [(item, len(recorder.events)) for item in stepped("ab", "Working", recorder)]
    assert seen == [("a", 1), ("b", 2)]
    assert recorder.events == [
        ("start", "Working", None, 2),
        ("step", "Working", 0),
        ("step", "Working", 1),
        ("finish", "Working"),
    ]
    assert list(stepped("ab", "Working", None)) == ["a", "b"]


def test_a_monitor_cancels_long_work_and_the_phase_is_finished():
    recorder = Recorder(cancel_at=0)
    with pytest.raises(ExecutionError, match="The progress monitor canceled the work"):
        list(stepped("ab", "Working", recorder))
    assert recorder.events[-1] == ("finish", "Working")


def test_where_there_is_no_terminal_nothing_is_shown(context):
    stream = io.StringIO()
    with TerminalProgress(stream) as progress:
        list(run_many(context, inputs(3), progress))
    assert stream.getvalue() == ""


def test_a_terminal_shows_nested_phases_and_is_clean_after(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    stream = Terminal()
    with TerminalProgress(stream) as progress:
        progress.phase_start("Building", None, 2)
        progress.phase_start("Packing weights", "Building", 0)
        assert progress.step_complete("Packing weights", 0)
        progress.phase_finish("Packing weights")
        assert progress.step_complete("Building", 0)
        progress._progress.refresh()
    shown = stream.getvalue()
    assert "Building" in shown
    assert "  Packing weights" in shown
    assert "1/2" in shown
    assert not progress._progress.live.is_started


def test_a_display_is_taken_down_when_the_work_fails():
    progress = TerminalProgress(Terminal())

    def work():
        with progress:
            progress.phase_start("Building", None, 2)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        work()
    assert not progress._progress.live.is_started


def test_phases_that_were_never_started_are_ignored():
    progress = TerminalProgress(io.StringIO())
    assert progress.step_complete("unknown", 0)
    progress.phase_finish("unknown")
