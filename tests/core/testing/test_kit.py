"""What the kits have in common: replaced tests are stated, and every case is a test of its own."""

from types import SimpleNamespace

import pytest

from dryfit.errors import PluginError
from dryfit.testing.kit import ConformanceKit, all_deviations, declared, require_none


class Kit(ConformanceKit):
    cases = {"number": lambda kit: [("one", 1), ("two", 2)], "nothing": lambda kit: []}

    def test_it_works(self, number):
        pass

    def test_it_ends(self):
        pass


def test_a_subclass_that_replaces_nothing_needs_no_reason():
    assert all_deviations(type("TestMine", (Kit,), {})) == {}


@pytest.mark.parametrize("name", ["cases", "deviations"])
def test_an_attribute_of_the_kit_that_is_taken_for_something_else_is_told(name):
    with pytest.raises(PluginError, match=f"conformance kit TestMine: `{name}` is the kit's own attribute, a mapping"):
        type("TestMine", (Kit,), {name: [({}, [1])]})


def test_a_replaced_test_without_a_reason_is_refused():
    for wrong in ({}, {"test_it_works": " "}):
        with pytest.raises(PluginError) as caught:
            type("TestMine", (Kit,), {"test_it_works": None, "deviations": wrong})
        assert "conformance kit TestMine: test_it_works replaces a test of the kit" in str(caught.value)
        assert "state why in `deviations['test_it_works']`" in str(caught.value)


def test_a_test_that_another_parent_replaces_is_found_too():
    class Mixin:
        def test_it_ends(self):
            pass

    with pytest.raises(PluginError, match="test_it_ends replaces a test of the kit"):
        type("TestMine", (Mixin, Kit), {})
    stated = {"test_it_ends": "the board never stops"}
    assert all_deviations(type("TestMine", (Mixin, Kit), {"deviations": stated})) == stated


def test_the_generation_of_cases_cannot_be_replaced_silently():
    with pytest.raises(PluginError, match="pytest_generate_tests replaces a test of the kit"):
        type("TestMine", (Kit,), {"pytest_generate_tests": lambda self, metafunc: None})


@pytest.mark.parametrize("name", ["test_it_works", "test_that_never_was"])
def test_a_reason_for_a_test_that_is_not_replaced_is_refused(name):
    with pytest.raises(PluginError) as caught:
        type("TestMine", (Kit,), {"deviations": {name: "long ago"}})
    assert f"`deviations[{name!r}]` is left over" in str(caught.value)


def test_a_subclass_of_a_subclass_keeps_its_reasons_and_states_its_own():
    first = type("First", (Kit,), {"test_it_ends": lambda self: None, "deviations": {"test_it_ends": "a"}})
    second = type("Second", (first,), {"test_it_works": None, "deviations": {"test_it_works": "b"}})
    assert all_deviations(type("Third", (second,), {})) == {"test_it_ends": "a", "test_it_works": "b"}
    with pytest.raises(PluginError, match="test_it_ends replaces"):
        type("Third", (second,), {"test_it_ends": None})


def test_a_test_that_a_level_adds_is_no_deviation():
    level = type("Level", (Kit,), {"test_more": lambda self: None, "cases": {"more": lambda kit: [("m", 3)]}})
    assert all_deviations(level) == {}
    assert level().cases_for("number") == [("one", 1), ("two", 2)]
    assert level().cases_for("more") == [("m", 3)]


def test_each_case_is_a_test_of_its_own_and_no_case_is_a_test_that_says_so():
    made = {}
    metafunc = SimpleNamespace(
        fixturenames=["number", "nothing", "tmp_path"],
        parametrize=lambda name, cases: made.update({name: [(case.id, case.values) for case in cases]}),
    )
    Kit().pytest_generate_tests(metafunc)
    assert made == {"number": [("one", (1,)), ("two", (2,))], "nothing": [("none", (None,))]}


def test_all_problems_are_told_at_once():
    require_none([])
    with pytest.raises(pytest.fail.Exception, match="one\ntwo"):
        require_none(["one", "two"])


def test_what_is_not_declared_is_a_skip_with_the_reason():
    assert declared(0, "zero") == 0
    with pytest.raises(pytest.skip.Exception, match="nothing to test: there is no cost function"):
        declared(None, "cost function")
