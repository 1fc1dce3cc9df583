"""The cache of machine code: warm processes need no numba, and no state of the folder breaks anything."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from dryfit.target.cache_folder import ENVIRONMENT_VARIABLE
from dryfit_cpu.compiler import object_cache
from dryfit_cpu.compiler.object_cache import CompiledFunction

FUNCTION = CompiledFunction("symbol", [("source", "int"), ("alpha", "float")], b"\x00machine code\xff")

PROGRAM = """
import sys
import numpy as np
from dryfit_cpu.kernels.copying import copy_work
from dryfit_cpu.steps import NativeStep
x, y = np.arange(5, dtype=np.float32), np.zeros(5, np.float32)
NativeStep("copy", copy_work(x, y, 1)).run()
assert (x == y).all()
print("numba" in sys.modules)
"""


def run_program(cache: Path) -> bool:
    """Whether a new process that uses this cache had to import numba."""
    environment = {**os.environ, ENVIRONMENT_VARIABLE: str(cache)}
    found = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True)
    return found.stdout.strip() == "True"


def entries(cache: Path) -> list[Path]:
    return sorted(cache.rglob("*.o"))


def test_a_function_survives_being_written_and_read():
    assert CompiledFunction.from_bytes(FUNCTION.to_bytes()) == FUNCTION


@pytest.mark.parametrize("place", [0, 31, 32, 40, -1])
def test_a_changed_byte_makes_an_entry_worthless(place):
    data = bytearray(FUNCTION.to_bytes())
    data[place] ^= 1
    assert CompiledFunction.from_bytes(bytes(data)) is None


@pytest.mark.parametrize("length", [0, 5, 32, 33, 50])
def test_a_truncated_entry_is_worthless(length):
    assert CompiledFunction.from_bytes(FUNCTION.to_bytes()[:length]) is None


def test_a_second_process_does_not_import_numba(tmp_path):
    assert run_program(tmp_path)
    assert not run_program(tmp_path)


def test_a_damaged_entry_is_compiled_again(tmp_path):
    run_program(tmp_path)
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


def test_the_salt_covers_every_source_of_the_compiler_and_of_native_functions():
    root = Path(object_cache.__file__).parents[1]
    covered = {path for pattern in object_cache._SOURCES for path in root.glob(pattern)}
    assert {root / "codes.py", *(root / "compiler").glob("*.py"), *(root / "native").glob("*.py")} == covered
