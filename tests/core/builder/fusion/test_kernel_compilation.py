"""A build compiles what its engine needs, tells of it, and leaves alone what is not the host's."""

from __future__ import annotations

import contextlib
import io
import logging

import attrs
import numpy as np
import pytest
from tests.core.builder.networks import chain, dla_config
from tests.core.builder.test_stages import Recorder

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.fusion import compilation
from dryfit.builder.fusion.compilation import PHASE, CompilationPhase
from dryfit.builder.stages import Stages
from dryfit.building import Builder
from dryfit.engine.progress import TerminalProgress
from dryfit.errors import BuildError
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.network import Network
from dryfit.plugins import registry
from dryfit.target.kernels import kernel
from dryfit.target.machine_code import compiling, tell_expected


def compile_two(recorder, cancel_at=None):
    with Stages("whole", 1, recorder) as stages, CompilationPhase(stages):
        for name in ("first", "second"):
            with compiling(name):
                pass
        recorder.events.append("compiled")


@contextlib.contextmanager
def log_to(stream):
    handler, logger = logging.StreamHandler(stream), logging.getLogger("dryfit")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield
    logger.setLevel(level)
    logger.removeHandler(handler)


def test_the_first_function_begins_the_phase_and_each_is_a_step():
    recorder = Recorder()
    compile_two(recorder)
    assert recorder.events == [
        ("start", "whole", None, 1),
        ("start", PHASE, "whole", 0),
        ("step", PHASE, 0),
        ("step", PHASE, 1),
        "compiled",
        ("finish", PHASE),
        ("finish", "whole"),
    ]


def test_a_known_number_of_functions_begins_the_phase_before_the_first_is_ready():
    recorder = Recorder()
    with Stages("whole", 1, recorder) as stages, CompilationPhase(stages):
        tell_expected(1)
        recorder.events.append("waiting")
        with compiling("first"):
            pass
    assert recorder.events == [
        ("start", "whole", None, 1),
        ("start", PHASE, "whole", 1),
        "waiting",
        ("step", PHASE, 0),
        ("finish", PHASE),
        ("finish", "whole"),
    ]


def test_functions_that_become_known_later_begin_the_phase_anew_with_all_that_are_left():
    recorder = Recorder()
    with Stages("whole", 1, recorder) as stages, CompilationPhase(stages):
        tell_expected(2)
        with compiling("first"):
            pass
        tell_expected(3)
        for name in ("second", "third", "fourth", "fifth"):
            with compiling(name):
                pass
    begun = [event for event in recorder.events if PHASE in event]
    assert begun == [
        ("start", PHASE, "whole", 2),
        ("step", PHASE, 0),
        ("finish", PHASE),
        ("start", PHASE, "whole", 4),
        *(("step", PHASE, step) for step in range(4)),
        ("finish", PHASE),
    ]


def test_a_pipe_is_told_what_takes_long_and_how_much_of_it():
    stream = io.StringIO()
    with TerminalProgress(stream) as progress:
        progress.phase_start("Build", None, 3)
        progress.phase_start(PHASE, "Build", 7)
    assert stream.getvalue() == "Compiling kernels, once for this machine: 7\n"


def test_a_log_beside_the_progress_does_not_repeat_what_takes_long():
    stream = io.StringIO()
    with (
        log_to(stream),
        TerminalProgress(stream) as progress,
        Stages("whole", 1, progress) as stages,
        CompilationPhase(stages),
    ):
        tell_expected(1)
        with compiling("first"):
            pass
    assert [line.partition(" in ")[0] for line in stream.getvalue().splitlines() if "ompil" in line] == [
        "Compiling kernels, once for this machine: 1",
        "compiled first",
    ]


def test_a_build_that_compiles_nothing_has_no_such_phase():
    recorder = Recorder()
    with Stages("whole", 1, recorder) as stages, CompilationPhase(stages):
        pass
    assert not any(PHASE in event for event in recorder.events)


def test_a_monitor_cancels_when_what_compiles_is_done():
    recorder = Recorder((PHASE, 0))
    with pytest.raises(BuildError, match=r"Compiling kernels.*canceled"):
        compile_two(recorder)
    assert "compiled" in recorder.events
    assert recorder.events[-2:] == [("finish", PHASE), ("finish", "whole")]


def test_what_is_compiled_outside_is_not_told():
    recorder = Recorder()
    compile_two(recorder)
    before = list(recorder.events)
    with compiling("third"):
        pass
    assert recorder.events == before


def test_a_function_that_fails_to_compile_is_not_told():
    recorder = Recorder()
    with (
        pytest.raises(ZeroDivisionError),
        Stages("whole", 1, recorder) as stages,
        CompilationPhase(stages),
        compiling("first"),
    ):
        raise ZeroDivisionError
    assert not any(PHASE in event for event in recorder.events)


# What is bound --------------------------------------------------------------------------------------------------------

BOUND: list[str] = []


@kernel("test.relu", kinds="activation", data_types="fp32", priority=9)
def rectify(binding):
    """ReLU that tells when it is bound."""
    BOUND.append(binding.group.name)
    (x,), (y,) = binding.inputs, binding.outputs
    return lambda: np.maximum(x, 0, out=y)


def host_that_lacks(monkeypatch, missing):
    """A host of its own whose machine code is incomplete, with one kernel more."""
    host = attrs.evolve(registry.host())  # another object: what is known of the real one's kernels is kept by identity
    real, kernels = host.machine_code, (*host.kernels, rectify)
    monkeypatch.setattr(
        type(host),
        "machine_code",
        property(lambda self: lambda tier: attrs.evolve(real(tier), missing=lambda: missing)),
    )
    monkeypatch.setattr(type(host), "kernels", property(lambda self: kernels if self is host else ()))
    monkeypatch.setattr(registry, "host", lambda: host)
    monkeypatch.setattr(registry, "target", lambda device: host)
    BOUND.clear()


def build_relu():
    network = Network("net")
    layer = network.add_activation(network.add_input("x", DataType.FLOAT, (1, 2, 3, 4)), ActivationType.RELU)
    layer.name = "relu"
    network.mark_output(layer.get_output(0))
    config = BuilderConfig()
    config.default_device_type = "CPU"
    return Builder().build_plan(network, config)


def test_a_kernel_of_the_host_is_bound_once_where_code_is_missing(monkeypatch):
    host_that_lacks(monkeypatch, ["some.function"])
    build_relu()
    assert BOUND == ["relu"]


def test_nothing_is_bound_where_everything_is_kept(monkeypatch):
    host_that_lacks(monkeypatch, [])
    build_relu()
    assert BOUND == []


def test_a_group_that_memory_cannot_hold_is_left_to_the_first_run(monkeypatch, caplog):
    host_that_lacks(monkeypatch, ["some.function"])

    def no_memory(*_):
        raise compilation.ExecutionError("There is not enough memory")

    monkeypatch.setattr(compilation, "new_array", no_memory)
    with caplog.at_level("INFO", logger="dryfit.builder"):
        build_relu()
    assert any("relu is compiled by the first run" in message for message in caplog.messages)
    assert BOUND == []


def test_a_build_for_another_device_compiles_the_hosts_kernels_too():
    plan = Builder().build_plan(chain("c", "r", "e"), dla_config())
    missing = registry.host().machine_code(None).missing()
    assert plan.operations
    assert not {"convolution.convolve", "pointwise.pointwise", "dispatch.run"} & set(missing)
