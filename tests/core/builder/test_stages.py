import logging
from collections import Counter

import pytest
from tests.core.builder.networks import chain, dla_config

from dryfit.builder import cut_and_try
from dryfit.builder.fusion.compilation import PHASE
from dryfit.builder.stages import Stages
from dryfit.building import Builder
from dryfit.engine.progress import ProgressMonitor
from dryfit.errors import BuildError


class Recorder(ProgressMonitor):
    def __init__(self, cancel_at=None):
        self.events = []
        self.cancel_at = cancel_at

    def phase_start(self, phase_name, parent_phase, num_steps):
        self.events.append(("start", phase_name, parent_phase, num_steps))

    def step_complete(self, phase_name, step):
        self.events.append(("step", phase_name, step))
        return (phase_name, step) != self.cancel_at

    def phase_finish(self, phase_name):
        self.events.append(("finish", phase_name))


def build(monitor, directory=None):
    config = dla_config()
    config.progress_monitor = monitor
    builder = Builder()
    builder.dump_stages_directory = directory
    return builder.build_plan(chain("c", "r", "e"), config)


def test_a_monitor_is_told_of_every_stage_and_of_each_layer_that_is_packed():
    recorder = Recorder()
    plan = build(recorder)
    (_, whole, parent, stages), *_ = recorder.events
    assert (whole, parent) == ("Building net", None)
    assert [event[2] for event in recorder.events if event[:2] == ("step", whole)] == list(range(stages))
    assert ("start", "Packing weights", whole, len(plan.operations)) in recorder.events
    assert recorder.events[-1] == ("finish", whole)


def test_phases_are_finished_innermost_first():
    recorder = Recorder()
    build(recorder)
    names = [event[1] for event in recorder.events if event[0] == "finish" and event[1] != PHASE]
    assert names == ["Packing weights", "Building net"]


@pytest.mark.parametrize("cancel_at", [("Building net", 0), ("Building net", 4), ("Packing weights", 1)])
def test_a_monitor_can_cancel_and_all_phases_are_finished(cancel_at):
    recorder = Recorder(cancel_at)
    with pytest.raises(BuildError, match="canceled"):
        build(recorder)
    opened = [event[1] for event in recorder.events if event[0] == "start"]
    closed = [event[1] for event in recorder.events if event[0] == "finish"]
    assert sorted(opened) == sorted(closed)


def test_each_stage_leaves_a_text_in_the_dump_directory(tmp_path):
    build(None, tmp_path / "stages")
    texts = {path.name: path.read_text() for path in (tmp_path / "stages").iterdir()}
    assert sorted(texts)[:4] == ["01-verify.txt", "02-canonicalise.txt", "03-find-scales.txt", "04-place.txt"]
    assert "segment 0 on DLA" in texts["05-cut-and-try.txt"]
    assert "e2: GPU ('e2' cannot run on DLA" in texts["04-place.txt"]


def test_stages_and_fallbacks_are_logged(caplog):
    with caplog.at_level(logging.INFO, logger="dryfit.builder"):
        build(None)
    assert "stage 4 of 10 done: place" in caplog.messages
    warnings = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == 1
    assert warnings[0].startswith("'e2' cannot run on DLA: ")


def test_a_stage_that_fails_finishes_its_phase():
    recorder = Recorder()
    with pytest.raises(ZeroDivisionError), Stages("whole", 1, recorder) as stages:
        stages.run("divide", lambda: 1 / 0)
    assert recorder.events[-1] == ("finish", "whole")


def test_a_build_goes_on_from_the_cut_that_fits_and_plans_nothing_again(monkeypatch):
    counts = Counter()
    for name in ("lower_network", "fuse_layers", "choose_formats", "memory_contents"):
        function = getattr(cut_and_try, name)
        monkeypatch.setattr(
            cut_and_try,
            name,
            lambda *given, _name=name, _function=function: counts.update([_name]) or _function(*given),
        )
    build(None)
    assert dict(counts) == {"lower_network": 1, "fuse_layers": 1, "choose_formats": 1, "memory_contents": 1}


def test_the_dump_of_the_cut_that_fits_has_segments_types_copies_groups_and_the_network_of_the_engine(tmp_path):
    build(None, tmp_path)
    text = (tmp_path / "05-cut-and-try.txt").read_text()
    assert "  c0 (convolution): HALF" in text
    assert "r1: DLA HALF" in text
    assert "as one: c0 + r1" in text
    assert "Reformatting CopyNode for Input Tensor 0 to c0" in text
