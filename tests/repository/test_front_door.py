"""The public names of `dryfit`: written once, imported at first use, and found in every kind of install."""

from __future__ import annotations

import ast
import compileall
import importlib
import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dryfit

USE = """
import sys, dryfit
before = set(sys.modules)
assert "dryfit.errors" in before and "dryfit.network.network" not in before
assert dryfit.__file__.startswith({folder!r}), dryfit.__file__
assert dryfit.Network.__module__ == "dryfit.network.network"
assert dir(dryfit) == dryfit.__all__ and "Builder" in dir(dryfit)
from dryfit import *
assert Network is dryfit.Network
try:
    dryfit.Bilder
except AttributeError as error:
    print(error)
"""
TOLD = (
    "module 'dryfit' has no attribute 'Bilder' (allowed: {count} names; call dir() to list them). "
    "Did you mean 'Builder'?"
)


def packed(repository: Path, folder: Path, kind: str) -> Path:
    """The core as a wheel unpacks it, as a zip file, or without its sources, as freezers ship it."""
    shutil.copytree(repository / "core" / "dryfit", folder / "dryfit")  # with what is compiled, which takes longest
    if kind == "zipped":
        return Path(shutil.make_archive(str(folder / "zipped"), "zip", folder, "dryfit"))
    if kind == "without sources":
        compileall.compile_dir(folder / "dryfit", quiet=1)
        for path in [*(folder / "dryfit").rglob("*.py"), *(folder / "dryfit").rglob("*.pyi")]:
            if path.suffix == ".py":
                Path(importlib.util.cache_from_source(path)).rename(path.with_suffix(".pyc"))
            path.unlink()
    return folder


@pytest.mark.parametrize("kind", ["unpacked", "zipped", "without sources"])
def test_the_names_are_found_in_every_kind_of_install(repository: Path, tmp_path: Path, kind: str) -> None:
    place = packed(repository, tmp_path, kind)
    code = f"import sys; sys.path.insert(0, {str(place)!r})\n{USE.format(folder=str(place))}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.startswith(TOLD.format(count=len(dryfit.__all__))), done.stderr


@pytest.mark.parametrize("package", ["dryfit", "dryfit.testing"])
def test_each_public_name_is_written_once_and_type_checkers_read_the_same(repository: Path, package: str) -> None:
    folder = repository / "core" / package.replace(".", "/")
    source, stub = (ast.parse((folder / name).read_text(encoding="utf-8")) for name in ("__init__.py", "__init__.pyi"))
    (table,) = (node for node in ast.walk(source) if isinstance(node, ast.Dict))
    written = [name for value in table.values for name in ast.literal_eval(value).split()]
    imports = [node for node in ast.walk(stub) if isinstance(node, ast.ImportFrom)]
    module = importlib.import_module(package)
    assert sorted(written) == sorted(alias.name for node in imports for alias in node.names)
    assert module.__all__ == sorted(set(written) - {"__version__"})
    assert len(set(written)) == len(written)
    for node in imports:
        for alias in node.names:
            assert alias.asname == alias.name
            assert getattr(module, alias.name) is getattr(importlib.import_module(node.module or ""), alias.name)


def test_a_type_checker_knows_the_names_and_refuses_a_misspelt_one(repository: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import dryfit\n\nreveal_type(dryfit.Builder())\ndryfit.Bilder()\n", encoding="utf-8")
    # In the repository it finds what `make types` has learned of the modules.
    command = [sys.executable, "-m", "mypy", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=repository)
    assert 'note: Revealed type is "dryfit.building.Builder"' in done.stdout, done.stdout + done.stderr
    assert 'error: Module has no attribute "Bilder"' in done.stdout


def test_the_door_changes_nothing_of_the_import_system() -> None:
    code = "import builtins; real = builtins.__import__; import dryfit; assert builtins.__import__ is real"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_importing_dryfit_loads_neither_numpy_nor_numba() -> None:
    code = "import sys, dryfit, dryfit.testing; print(*sorted({'numpy', 'numba', 'onnx'} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"
