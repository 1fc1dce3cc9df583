"""The names that a target is declared with exist, are complete and are on the page of public names."""

import importlib

import pytest
from docs.pages.reference import python_page

from dryfit.target import STABLE_NAMES
from dryfit.target.declared_object import _DECLARATIONS

NAMES = [(module, name) for module, names in STABLE_NAMES.items() for name in names]


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_a_stable_name_exists_and_says_what_it_is(module, name):
    value = getattr(importlib.import_module(module), name)
    assert value.__doc__
    assert getattr(value, "__module__", module).startswith("dryfit.")


def test_whatever_a_record_names_is_made_of_stable_names():
    needed = {tuple(place.split(":")) for _, place, _ in _DECLARATIONS.values()}
    assert needed <= set(NAMES)


def test_the_page_lists_each_of_them():
    page = python_page()
    for module, names in STABLE_NAMES.items():
        section = page.partition(f"\n## {module}\n")[2].partition("\n## ")[0]
        assert [name for name in names if f"| `{name}" not in section] == []
