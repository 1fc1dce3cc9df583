"""Every layer kind has its reference in the file that the package's docstring names."""

from __future__ import annotations

import inspect
import re

import dryfit.reference
from dryfit.reference import registry


def test_the_docstring_lists_every_kind_under_the_file_that_has_its_reference():
    registry._load()
    rows = re.findall(r"^    (\w+) +(\w.*)$", dryfit.reference.__doc__, re.MULTILINE)
    listed = {kind: f"dryfit.reference.{file}" for file, kinds in rows for kind in kinds.split(", ")}
    actual = {kind: inspect.getmodule(function).__name__ for kind, function in registry._REFERENCES.items()}
    assert listed == {kind: module for kind, module in actual.items() if module.startswith("dryfit.reference.")}
