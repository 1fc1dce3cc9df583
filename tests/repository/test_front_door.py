"""The public names of `dryfit`: written once, imported at first use, and found in every kind of install."""

from __future__ import annotations

import ast
import compileall
import re
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
TOLD = "module 'dryfit' has no attribute 'Bilder' (allowed: {count} names, which dir() lists). Did you mean 'Builder'?"


def packed(repository: Path, folder: Path, kind: str) -> Path:
    """The core as a wheel unpacks it, as a zip file, or without its sources, as freezers ship it."""
    shutil.copytree(repository / "core" / "dryfit", folder / "dryfit", ignore=shutil.ignore_patterns("__pycache__"))
    if kind == "zipped":
        return Path(shutil.make_archive(str(folder / "zipped"), "zip", folder, "dryfit"))
    if kind == "without sources":
        compileall.compile_dir(folder / "dryfit", legacy=True, quiet=1)
        for path in (folder / "dryfit").rglob("*.py*"):
            if path.suffix in {".py", ".pyi"}:
                path.unlink()
    return folder


@pytest.mark.parametrize("kind", ["unpacked", "zipped", "without sources"])
def test_the_names_are_found_in_every_kind_of_install(repository: Path, tmp_path: Path, kind: str) -> None:
    place = packed(repository, tmp_path, kind)
    code = f"import sys; sys.path.insert(0, {str(place)!r})\n{USE.format(folder=str(place))}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.startswith(TOLD.format(count=len(dryfit.__all__))), done.stderr


def test_each_public_name_is_written_once_in_the_front_door(repository: Path) -> None:
    text = (repository / "core" / "dryfit" / "__init__.py").read_text(encoding="utf-8")
    lines = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
    names = [alias.name for node in lines for alias in node.names]
    for name in dryfit.__all__:
        assert names.count(name) == 1
        assert len(re.findall(rf"\b{name} as {name}$", text, re.MULTILINE)) == 1


def test_imports_of_other_modules_go_on_while_the_names_are_noted() -> None:
    code = """
import builtins, sys
real = builtins.__import__
import dryfit.front_door
with dryfit.front_door.public_names("dryfit"):
    exec("from dryfit.network.network import Network as Network", vars(dryfit))
    assert "dryfit.network.network" not in sys.modules
    exec("import colorsys; from wave import Error", {"__name__": "other"})
    assert "colorsys" in sys.modules and "wave" in sys.modules
assert builtins.__import__ is real
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
