"""`dryfit warmup`, with a host that compiles two functions of its own."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from tests.schemas import validate

from dryfit.answers.warmup import WarmupAnswer, warmup
from dryfit.engine.progress import ProgressMonitor
from dryfit.errors import ConfigError, ExecutionError, UnknownNameError
from dryfit.plugins import registry
from dryfit.target.machine_code import CompiledFunction, MachineCode

FUNCTIONS = {"convolution.convolve": False, "pooling.pool": True}
"""Name to whether it was kept."""


def machine_code(tier: str | None) -> MachineCode:
    if tier not in {None, "avx2"}:
        raise UnknownNameError("instruction set tier on this machine", tier, ["avx2"])
    return MachineCode(
        tier=tier or "best",
        tiers=["best", "avx2"],
        place="/cache/kernels",
        names=list(FUNCTIONS),
        missing=lambda: [name for name, kept in FUNCTIONS.items() if not kept],
        compile=lambda: iter([CompiledFunction(name, kept, 2.25) for name, kept in FUNCTIONS.items()]),
    )


def unwritable(tier: str | None) -> MachineCode:
    def compile_nothing():
        raise ConfigError("Compiled kernels cannot be kept", where="/cache/kernels", found="read-only")
        yield

    return attrs.evolve(machine_code(tier), compile=compile_nothing)


@pytest.fixture
def host_of(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that gives this process a host with other machine code; None for none."""

    def change(function: Any) -> None:
        place = None if function is None else f"{__name__}:{function.__name__}"
        host = attrs.evolve(registry.host(), machine_code_at=place)
        monkeypatch.setattr(registry, "host", lambda: host)
        monkeypatch.setattr(type(host), "machine_code", property(lambda self: function))

    return change


def test_what_was_compiled_and_what_was_there_are_told(dryfit_command: Any, host_of: Any) -> None:
    host_of(machine_code)
    ended = dryfit_command("warmup")
    assert ended.code == 0
    assert "convolution.convolve  2.2" in ended.out
    assert "pooling.pool" not in ended.out
    assert "best: 1 functions compiled in" in ended.out
    assert "1 were already compiled" in ended.out
    assert "/cache/kernels" in ended.out
    assert ended.err == ""


def test_the_answer_in_json_fits_its_schema(dryfit_command: Any, host_of: Any) -> None:
    host_of(machine_code)
    answer = dryfit_command("warmup", "--tier", "avx2", "--json").json
    validate(answer, WarmupAnswer.schema())
    assert answer["tier"] == "avx2"
    assert [(one["name"], one["compiled"]) for one in answer["functions"]] == [
        ("convolution.convolve", True),
        ("pooling.pool", False),
    ]


def test_an_unknown_tier_is_a_usage_error_that_names_those_that_exist(dryfit_command: Any, host_of: Any) -> None:
    host_of(machine_code)
    ended = dryfit_command("warmup", "--tier", "avx3")
    assert ended.code == 2
    assert "avx3" in ended.err
    assert "allowed: avx2" in ended.err


def test_a_folder_that_cannot_be_written_to_is_an_error(dryfit_command: Any, host_of: Any) -> None:
    host_of(unwritable)
    ended = dryfit_command("warmup")
    assert ended.code == 2
    assert "cannot be kept" in ended.err
    assert "/cache/kernels" in ended.err


def test_a_host_that_compiles_nothing_says_so(dryfit_command: Any, host_of: Any) -> None:
    host_of(None)
    ended = dryfit_command("warmup")
    assert ended.code == 2
    assert "The host has no kernels to compile on this machine" in ended.err


def test_a_script_gets_what_was_compiled_and_may_cancel(host_of: Any) -> None:
    host_of(machine_code)
    answer = warmup("avx2")
    assert [one.name for one in answer.compiled] == ["convolution.convolve"]
    assert answer.functions[0].seconds == 2.25
    assert repr(answer).startswith("<WarmupAnswer: avx2: 1 functions compiled in ")

    class Cancelling(ProgressMonitor):
        def phase_start(self, phase_name: str, parent_phase: str | None, num_steps: int) -> None:
            assert num_steps == len(FUNCTIONS)

        def step_complete(self, phase_name: str, step: int) -> bool:
            return False

        def phase_finish(self, phase_name: str) -> None:
            pass

    with pytest.raises(ExecutionError, match="The progress monitor canceled the work"):
        warmup(progress=Cancelling())
