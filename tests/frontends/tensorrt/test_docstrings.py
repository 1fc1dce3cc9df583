"""The examples in the docstrings of the frontend run."""

import doctest
import importlib
import pkgutil

import pytest

import dryfit_tensorrt

MODULES = [
    one.name
    for one in pkgutil.walk_packages(dryfit_tensorrt.__path__, "dryfit_tensorrt.")
    if not one.name.endswith(("__main__", "sitecustomize"))
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_give_what_they_show(name):
    module = importlib.import_module(name)
    result = doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert not result.failed


def test_there_are_examples():
    finder = doctest.DocTestFinder()
    found = [one for name in MODULES for one in finder.find(importlib.import_module(name)) if one.examples]
    assert found
