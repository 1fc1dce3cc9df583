"""The cache of machine code: warm processes need no compiler, and no state of the folder breaks anything."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from dryfit.target import kept_files
from dryfit.target.cache_folder import ENVIRONMENT_VARIABLE
from dryfit_cpu.compiler import object_cache
from dryfit_cpu.compiler.object_cache import FunctionObject

FUNCTION = FunctionObject("symbol", [("source", "int"), ("alpha", "float")], b"\x00machine code\xff")

PROGRAM = """
import sys
import numpy as np
from dryfit_cpu.array_copies import lines_work
from dryfit_cpu.compiler.native import NativeStep
x, y = np.arange(8 * 32, dtype=np.uint8).reshape(8, 32), np.ones((8, 40), np.uint8)
NativeStep("lines", [lines_work(x, y, 1)]).run()
assert (y == np.pad(x, ((0, 0), (0, 8)))).all()
print(*{"numba", "llvmlite"} & set(sys.modules))
"""
"""Needs one function, one of those that are compiled soonest."""


@pytest.fixture(autouse=True)
def temporary(tmp_path_factory, monkeypatch) -> Path:
    """An empty folder for temporary files: that of the system may hold what an earlier test could not keep."""
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


def run_program(cache: Path) -> bool:
    """Whether a new process that uses this cache had to import the compiler, all of it or only to link."""
    environment = {**os.environ, ENVIRONMENT_VARIABLE: str(cache)}
    found = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True)
    return bool(found.stdout.strip())


def entries(cache: Path) -> list[Path]:
    return sorted(cache.rglob("*.o"))


def test_a_function_survives_being_written_and_read():
    assert FunctionObject.from_bytes(FUNCTION.to_bytes()) == FUNCTION


@pytest.mark.parametrize("place", [0, 31, 32, 40, -1])
def test_a_changed_byte_makes_an_entry_worthless(place):
    data = bytearray(kept_files.sealed(FUNCTION.to_bytes(), "a.o"))
    data[place] ^= 1
    assert kept_files.unsealed(bytes(data), "a.o") is None


@pytest.mark.parametrize("length", [0, 5, 32, 33, 50])
def test_a_truncated_entry_is_worthless(length):
    assert kept_files.unsealed(kept_files.sealed(FUNCTION.to_bytes(), "a.o")[:length], "a.o") is None


@pytest.fixture(scope="module")
def compiled(tmp_path_factory) -> Path:
    """A cache in which a process has left what the program needs."""
    folder = tmp_path_factory.mktemp("compiled")
    assert run_program(folder)
    return folder


def test_a_second_process_imports_neither_numba_nor_llvm(compiled):
    assert not run_program(compiled)


def test_a_damaged_entry_is_compiled_again(compiled, tmp_path):
    shutil.copytree(compiled, tmp_path, dirs_exist_ok=True)
    (entry,) = entries(tmp_path)
    good = entry.read_bytes()
    entry.write_bytes(good[:-100])
    assert run_program(tmp_path)
    assert len(entry.read_bytes()) == len(good)


def test_a_cache_that_is_a_file_costs_time_only(tmp_path):
    path = tmp_path / "file"
    path.write_text("not a folder")
    assert run_program(path)
    assert path.read_text() == "not a folder"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_to_costs_time_only(tmp_path):
    tmp_path.chmod(stat.S_IREAD | stat.S_IEXEC)
    assert run_program(tmp_path)


def run_told(cache: str, before: str = "") -> str:
    """What a new process that uses this cache says on stderr; it ends as it should."""
    environment = {**os.environ, ENVIRONMENT_VARIABLE: cache}
    command = [sys.executable, "-c", before + PROGRAM + TWICE]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stderr


TWICE = """
from dryfit_cpu.compiler.native import NativeFunction
assert NativeFunction("dispatch", "lead").address
"""
"""Compiles a second function."""


def test_a_folder_that_cannot_be_made_is_told_once_with_what_to_do(temporary):
    told = run_told("/dev/null/cache")
    assert told.count("cannot be kept in /dev/null/cache (Not a directory)") == 1
    assert ENVIRONMENT_VARIABLE in told
    assert str(temporary) in told


def test_only_the_first_process_compiles_where_the_folder_cannot_be_used(temporary):
    assert run_program(Path("/dev/null/cache"))
    assert not run_program(Path("/dev/null/cache"))
    (kept,) = temporary.iterdir()
    assert kept.name == f"dryfit-{os.geteuid()}"


@pytest.mark.skipif(os.name != "posix", reason="needs a limit on the size of files")
def test_a_full_disk_is_told_once_and_leaves_nothing_behind(tmp_path):
    limit = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
    told = run_told(str(tmp_path), limit)
    assert told.count("cannot be kept") == 1
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_folder_in_the_place_of_an_entry_costs_time_only(compiled, tmp_path):
    shutil.copytree(compiled, tmp_path, dirs_exist_ok=True)
    (entry,) = entries(tmp_path)
    entry.unlink()
    entry.mkdir()
    assert run_program(tmp_path)
    assert [path.name for path in entry.parent.iterdir()] == [entry.name]


HAMMER = """
import sys
from dryfit_cpu.compiler import object_cache
from dryfit_cpu.compiler.object_cache import FunctionObject
own = sys.argv[1]
found = 0
for turn in range(300):
    object_cache.write("rival", FunctionObject(own, [("a", "int")], own.encode() * (1000 + turn)))
    read = object_cache.read("rival")
    assert read is not None
    assert set(read.code.decode()) == {read.symbol}, "a mixture of two writers"
    found += read.symbol != own
print(found)
"""


def test_writers_of_several_processes_never_show_each_other_half_an_entry(tmp_path):
    environment = {**os.environ, ENVIRONMENT_VARIABLE: str(tmp_path)}
    writers = [
        subprocess.Popen([sys.executable, "-c", HAMMER, own], env=environment, stdout=subprocess.PIPE, text=True)
        for own in "abcd"
    ]
    found = [int(writer.communicate()[0]) for writer in writers]
    assert [writer.returncode for writer in writers] == [0] * 4
    assert sum(found) > 0, "no writer ever met another's entry"
    assert [path.name for path in entries(tmp_path)] == ["rival.o"]
    assert len(list(entries(tmp_path)[0].parent.iterdir())) == 1


def test_processes_that_start_at_once_on_an_empty_cache_all_get_right_results(tmp_path):
    environment = {**os.environ, ENVIRONMENT_VARIABLE: str(tmp_path)}
    started = [subprocess.Popen([sys.executable, "-c", PROGRAM], env=environment) for _ in range(2)]
    assert [process.wait() for process in started] == [0] * 2
    assert not run_program(tmp_path)


def test_the_key_depends_on_tier_versions_and_sources(monkeypatch):
    def salt(*change: object) -> str:
        with monkeypatch.context() as patch:
            if change:
                patch.setattr(*change)
            return object_cache.salt.__wrapped__()

    here = salt()
    version = importlib.metadata.version
    keys = [
        salt(importlib.metadata, "version", lambda name, newer=package: version(name) + (name == newer) * ".1")
        for package in ("dryfit", "numba", "llvmlite")
    ]
    keys.append(salt(object_cache, "machine_description", lambda: "another machine"))
    keys.append(salt(object_cache, "_SOURCES", ("codes.py",)))
    assert here == salt()
    assert len({here, *keys}) == 6


def test_the_salt_covers_every_source_of_the_compiler_and_of_native_functions():
    root = Path(object_cache.__file__).parents[1]
    covered = {path for pattern in object_cache._SOURCES for path in root.glob(pattern)}
    assert {
        root / "codes.py",
        root / "descriptors.py",
        *(root / "compiler").glob("*.py"),
        *(root / "native").glob("*.py"),
    } == covered
