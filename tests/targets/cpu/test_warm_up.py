"""Compiling ahead of time: every native function is listed, and each tier is compiled in a process of its own."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

import dryfit_cpu
from dryfit.errors import ConfigError, DryfitError, UnknownNameError
from dryfit.target.cache_folder import ENVIRONMENT_VARIABLE
from dryfit.target.machine_code import listening
from dryfit_cpu import side_by_side, warm_up
from dryfit_cpu.compiler import compilation, native, object_cache, tier
from dryfit_cpu.compiler.native import NativeFunction

NOWHERE = "/dev/null/cache"


def test_every_native_function_is_compiled_ahead_of_time():
    folder = Path(dryfit_cpu.__file__).parent / "native"
    for path in folder.glob("[a-z]*.py"):
        importlib.import_module(f"dryfit_cpu.native.{path.stem}")
    modules = {name: module for name, module in sys.modules.items() if name.startswith("dryfit_cpu.native.")}
    written = {
        f"{module_name.rpartition('.')[2]}.{name}"
        for module_name, module in modules.items()
        for name, value in vars(module).items()
        if callable(value) and getattr(value, "__hash__", None) and value in compilation._NATIVE
    }
    assert written
    staged = tier.current_tier().staged_bytes
    unused = {"staging.stage_pairs"} if staged == 1 else set()  # pairs are for processors without products of bytes
    assert set(warm_up.native_names()) == written - unused


def test_what_is_kept_is_not_compiled_again(monkeypatch):
    only = {name: function for name, function in native.NATIVE_FUNCTIONS.items() if name.startswith("dispatch.")}
    monkeypatch.setattr(native, "NATIVE_FUNCTIONS", only)
    list(warm_up.compile_all())
    told = []
    with listening(told.append):
        again = list(warm_up.compile_all())
    assert told == []
    assert [(one.name, one.was_kept) for one in again] == [("dispatch.follow", True), ("dispatch.lead", True)]
    assert warm_up.missing_names() == []


def test_an_empty_folder_lacks_everything_and_gets_what_is_compiled(monkeypatch, tmp_path):
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, str(tmp_path))
    function = NativeFunction("dispatch", "lead")
    monkeypatch.setattr(native, "NATIVE_FUNCTIONS", {"dispatch.lead": function})
    assert warm_up.missing_names() == ["dispatch.lead"]
    told = []
    with listening(told.append):
        (one,) = warm_up.compile_all()
    assert not one.was_kept
    assert [function.name for function in told] == ["dispatch.lead"]
    assert warm_up.missing_names() == []
    assert [path.name for path in object_cache.folder().iterdir()] == ["dispatch.lead.o"]


def test_a_folder_that_cannot_be_written_to_is_refused_before_anything_is_compiled(monkeypatch):
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, NOWHERE)
    told = []
    with pytest.raises(ConfigError, match=r"/dev/null/cache.*DRYFIT_CACHE_DIR") as caught, listening(told.append):
        list(warm_up.compile_all())
    assert caught.value.where.startswith(NOWHERE)
    assert told == []


def test_a_tier_that_does_not_exist_is_refused():
    with pytest.raises(UnknownNameError, match=r"--tier.*'axv2'"):
        warm_up.machine_code("axv2")


def test_another_tier_is_asked_for_in_a_process_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, str(tmp_path))
    other = tier.tiers_here()[-1]
    assert other != tier.current_tier()
    code = warm_up.machine_code(other.name)
    assert code.tier == other.name
    assert sorted(code.missing()) == code.names


def test_an_error_of_the_other_process_is_told(monkeypatch):
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, NOWHERE)
    with pytest.raises(DryfitError, match=r"tier generic.*/dev/null/cache"):
        list(warm_up.machine_code("generic").compile())


def test_the_process_prints_a_line_of_json_for_each_function():
    list(warm_up.compile_all())
    command = [sys.executable, "-m", "dryfit_cpu.warm_up", "compile"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    lines = [json.loads(line) for line in printed.splitlines()]
    assert [line["name"] for line in lines] == warm_up.native_names()
    assert all(line["was_kept"] for line in lines)


def test_an_error_of_one_of_several_processes_is_told():
    with pytest.raises(DryfitError, match="Kernel compilation failed"):
        list(side_by_side.compile_in_processes(["dispatch.nothing", "dispatch.lead"], 2))


# What a schedule needs, compiled at once ------------------------------------------------------------------------------


PROCESSES_FOR = side_by_side._processes_for


@pytest.fixture
def new_functions(monkeypatch, tmp_path):
    """Native functions that this process and the cache do not have."""
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, str(tmp_path))
    monkeypatch.setattr(native, "NATIVE_FUNCTIONS", {})
    monkeypatch.setattr(side_by_side, "_processes_for", lambda functions: min(functions, 2))
    names = ["dispatch.lead", "dispatch.follow"]
    return [NativeFunction(*name.split(".")) for name in names]


def test_what_many_steps_need_is_compiled_by_several_processes_and_told(new_functions):
    told = []
    with listening(told.append):
        side_by_side.make_ready(new_functions)
    assert sorted(one.name for one in told) == sorted(one.full_name for one in new_functions)
    assert all(one.is_ready and not one.is_loaded for one in new_functions)
    kept = sorted(path.name for path in object_cache.folder().iterdir())
    assert kept == ["dispatch.follow.o", "dispatch.lead.o"]
    with listening(told.append):
        side_by_side.make_ready(new_functions)
    assert len(told) == len(new_functions)


def test_work_of_a_new_function_compiles_it_when_it_is_looked_at(new_functions):
    lead, *_ = new_functions
    work = lead.work(1, team=0, wanted=0)
    assert not lead.is_ready
    with pytest.raises(DryfitError, match=r"native function dispatch\.lead.*wanted"):
        work.descriptor  # noqa: B018
    assert lead.is_loaded
    with pytest.raises(DryfitError, match=r"native function dispatch\.lead.*wanted"):
        lead.work(1, team=0, wanted=0)


@pytest.mark.parametrize("wrong", ["few", "one processor", "no folder", "frozen", "embedded"])
def test_functions_are_left_to_their_first_use_where_processes_would_not_help(new_functions, monkeypatch, wrong):
    if wrong == "one processor":
        monkeypatch.setattr(side_by_side, "_processes_for", PROCESSES_FOR)
        monkeypatch.setattr(side_by_side, "usable_processors", lambda: 1)
    elif wrong == "no folder":
        monkeypatch.setenv(ENVIRONMENT_VARIABLE, NOWHERE)
    elif wrong == "frozen":
        monkeypatch.setattr(sys, "frozen", True, raising=False)
    elif wrong == "embedded":
        monkeypatch.setattr(sys, "executable", "/opt/acme/bin/acme-server")
    monkeypatch.setattr(side_by_side, "compile_functions", pytest.fail)
    side_by_side.make_ready(new_functions[:1] if wrong == "few" else new_functions)


def test_processes_that_fail_are_told_and_leave_the_work_to_this_one(new_functions, monkeypatch, caplog):
    monkeypatch.setattr(side_by_side, "_MODULE", "dryfit_cpu.compiler.nothing")
    side_by_side.make_ready(new_functions)
    assert "Kernel compilation failed" in caplog.text
    assert not any(one.is_ready for one in new_functions)
