"""The kits as pytest runs them: what it tells, what it skips, and that it is silent for everybody else."""

import subprocess
import sys

import pytest

from dryfit.plugins.discovery import TARGETS

pytest_plugins = ["pytester"]

PLUGIN = "dryfit.testing.pytest_plugin"
KIT = """
from dryfit.testing.kit import ConformanceKit, declared

class Kit(ConformanceKit):
    cases = {"number": lambda kit: [("one", 1), ("two", 2)], "nothing": lambda kit: []}

    def test_it_works(self, number):
        assert number == 1

    def test_it_ends(self, nothing):
        declared(nothing, "end")
"""


@pytest.fixture
def run(pytester, monkeypatch):
    """A function that runs pytest, with this plugin alone, on a file with a kit and more."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")

    def ran(text, *arguments):
        pytester.makepyfile(kit=KIT, test_mine=text)
        return pytester.runpytest_subprocess("-p", PLUGIN, *arguments)

    return ran


def test_a_kit_is_one_import_and_one_class(run):
    result = run("from kit import Kit\nclass TestMine(Kit): pass\n", "-v", "-rs")
    result.assert_outcomes(passed=1, failed=1, skipped=1)
    result.stdout.fnmatch_lines_random(
        [
            "*TestMine::test_it_works[[]one] PASSED*",
            "*TestMine::test_it_works[[]two] FAILED*",
            "dryfit plugins: *cpu * (dryfit)*",
            "SKIPPED*nothing to test: there is no end*",
        ]
    )
    assert "deviations" not in result.stdout.str()


def test_deviations_are_listed_with_their_reasons(run):
    text = """
        from kit import Kit

        class TestMine(Kit):
            deviations = {"test_it_works": "the board counts from two"}

            def test_it_works(self):
                pass
    """
    result = run(text, "-q")
    result.stdout.fnmatch_lines(["*deviations from the conformance kits*", "TestMine.test_it_works: the board counts*"])


def test_a_deviation_without_a_reason_ends_the_collection_with_a_message(run):
    result = run("from kit import Kit\nclass TestMine(Kit):\n    def test_it_ends(self): pass\n")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*conformance kit TestMine: test_it_ends replaces a test of the kit: state why*"])


def test_nothing_is_told_where_no_kit_is_used(run):
    result = run("def test_it(): pass\n")
    result.assert_outcomes(passed=1)
    assert "dryfit" not in result.stdout.str().replace(PLUGIN, "")


def test_loading_the_plugin_imports_nothing_heavy():
    heavy = "{'numpy', 'numba', 'onnx', 'hypothesis', 'click', 'attr'}"
    code = (
        f"import pytest, sys; before = set(sys.modules); import {PLUGIN}; print(({heavy} & set(sys.modules)) - before)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"


def test_an_assert_in_a_kit_tells_its_values(pytester, monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    text = """
        import dryfit.testing.target_limits as module

        def test_it():
            assert type(module.__loader__).__name__ == "AssertionRewritingHook"
    """
    pytester.makepyfile(text)
    pytester.runpytest_subprocess("-p", PLUGIN, "-W", "error").assert_outcomes(passed=1)


def test_a_test_can_do_without_the_plugins_of_strangers(pytester, monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    stranger = pytester.mkdir("stranger-1.0.dist-info")
    (stranger / "METADATA").write_text("Metadata-Version: 2.1\nName: stranger\nVersion: 1.0\n")
    (stranger / "entry_points.txt").write_text(f"[{TARGETS}]\nSTRANGER = nowhere:TARGET\n")
    monkeypatch.syspath_prepend(pytester.path)
    text = """
        from dryfit.plugins import registry

        def test_alone(only_dryfit_plugins):
            assert "CPU" in registry.device_names()
            assert "STRANGER" not in registry.device_names()

        def test_with_all():
            assert "STRANGER" in registry.device_names()
    """
    pytester.makepyfile(text)
    pytester.runpytest_subprocess("-p", PLUGIN).assert_outcomes(passed=2)
