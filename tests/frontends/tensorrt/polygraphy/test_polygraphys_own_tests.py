"""Polygraphy's own tests pass with dryfit's modules in place of TensorRT, except for those that a list names.

They run in a Python of their own if DRYFIT_POLYGRAPHY_PYTHON names one, with dryfit, Polygraphy 0.49.26 or newer, ONNX
GraphSurgeon, ONNX Runtime, pytest and torch; else in the Python of this run, without the files that need torch if that
is not installed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from tests.frontends.tensorrt.polygraphy.expected_failures import EXPECTED, Cause, expected_failures, reason_of

PYTHON = os.environ.get("DRYFIT_POLYGRAPHY_PYTHON") or sys.executable

LEAST_SHARE = 0.9
"""Share of the tests that must pass of those that need neither a GPU nor other versions."""

_FACTS = """
import importlib.metadata, importlib.util, json
found = {}
for name in ("polygraphy", "torch", "onnx_graphsurgeon", "onnxruntime", "dryfit"):
    there = importlib.util.find_spec(name) is not None
    found[name] = importlib.metadata.version(name) if there else ""
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def versions() -> Mapping[str, str]:
    """Name of a package to its version; "" where it is not installed."""
    done = subprocess.run([PYTHON, "-c", _FACTS], capture_output=True, text=True, check=True)
    found: dict[str, str] = json.loads(done.stdout)
    missing = [name for name in ("polygraphy", "onnx_graphsurgeon", "onnxruntime", "dryfit") if not found[name]]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}, which {PYTHON} does not have")
    if tuple(map(int, found["polygraphy"].split(".")[:3])) < (0, 49, 26):
        pytest.skip(f"needs Polygraphy 0.49.26 or newer, found {found['polygraphy']}")
    return found


@pytest.fixture
def suite(shared: Path, tmp_path: Path) -> Path:
    """A copy of Polygraphy's tests: they write files, and pytest 9 refuses a mark that they give to a fixture."""
    source = shared / "clients" / "polygraphy-tests" / "tests"
    if not source.is_dir():
        pytest.skip("needs Polygraphy's tests in ../shared/clients, which are not there")
    copy = tmp_path / "tests"
    shutil.copytree(source, copy)
    for path in (tmp_path, *tmp_path.rglob("*")):
        path.chmod(path.stat().st_mode | 0o200)
    conftest = copy / "conftest.py"
    head, mark, rest = conftest.read_text(encoding="utf-8").partition("@pytest.mark.skipif(")
    conftest.write_text(head + rest[rest.index(")\ndef ") + 2 :] if mark else head, encoding="utf-8")
    return tmp_path


def outcomes(suite: Path, api: str, arguments: Sequence[str]) -> dict[str, str]:
    """Name of each test to its outcome: passed, failed or skipped; one that Polygraphy expects to fail is skipped."""
    report = suite / "report.xml"
    command = ("-m", "dryfit_tensorrt", "--api", api, "--", "python", "-m", "pytest", "-q", "-p", "no:cacheprovider")
    options = ("--continue-on-collection-errors", "--tb=line", f"--junitxml={report}", *arguments)
    # The tests leave hundreds of temporary files behind.
    temporary = suite / "temporary"
    temporary.mkdir(exist_ok=True)
    own = {"POLYGRAPHY_INTERNAL_CORRECTNESS_CHECKS": "1", "OPENBLAS_NUM_THREADS": "1", "TMPDIR": str(temporary)}
    environment = {**os.environ, **own}
    done = subprocess.run(
        [PYTHON, *command, *options], cwd=suite, env=environment, capture_output=True, text=True, check=False
    )
    assert report.is_file(), done.stdout + done.stderr
    found: dict[str, str] = {}
    for case in ET.parse(report).iter("testcase"):  # noqa: S314  pytest wrote it just now
        name = ".".join(filter(None, (case.get("classname"), case.get("name")))).removeprefix("tests.")
        kinds = {child.tag for child in case}
        found[name] = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
    return found


def of_torch(suite: Path) -> list[Path]:
    """Files that use torch."""
    return sorted(path for path in suite.rglob("test_*.py") if "torch" in path.read_text(encoding="utf-8"))


def check(found: Mapping[str, str], api: str, polygraphy: str, *, is_whole: bool) -> None:
    """Compare outcomes with the list."""
    reasons = {name: reason_of(name, api, polygraphy) for name in found}
    failed = {name for name, outcome in found.items() if outcome == "failed"}
    unexpected = sorted(name for name in failed if reasons[name] is None)
    assert not unexpected
    passed = sorted(
        name
        for name, reason in reasons.items()
        if found[name] == "passed" and reason is not None and reason.cause is not Cause.CLOCK
    )
    assert not passed, "these pass now: remove them from the list"
    if is_whole:
        met = {reason.tests for reason in reasons.values() if reason is not None}
        assert not {one.tests for one in expected_failures(api, polygraphy)} - met, "no such test"
    missing = [name for name in failed if (reason := reasons[name]) and reason.cause is Cause.MISSING]
    good = sum(outcome == "passed" for outcome in found.values())
    assert good >= LEAST_SHARE * (good + len(missing))


@pytest.mark.parametrize(
    "api",
    [pytest.param("8.6", marks=pytest.mark.nightly), "10.16", pytest.param("11.1", marks=pytest.mark.nightly)],
)
def test_those_without_torch_pass_except_for_the_list(api: str, suite: Path, versions: Mapping[str, str]) -> None:
    _require(api, versions)
    ignored = [f"--ignore={path}" for path in of_torch(suite)]
    found = outcomes(suite, api, ["tests", *ignored])
    assert len(found) > 100
    check(found, api, versions["polygraphy"], is_whole=False)


@pytest.mark.slow
@pytest.mark.parametrize("api", ["8.6", "10.16", "11.1"])
def test_all_pass_except_for_the_list(api: str, suite: Path, versions: Mapping[str, str]) -> None:
    _require(api, versions)
    if not versions["torch"]:
        pytest.skip("needs torch: name a Python that has it in DRYFIT_POLYGRAPHY_PYTHON")
    # Those marked serial read the log, which others switch off.
    found = outcomes(suite, api, ["tests", "-m", "not serial"])
    assert len(found) > 300
    found |= outcomes(suite, api, ["tests", "-m", "serial"])
    check(found, api, versions["polygraphy"], is_whole=True)


def _require(api: str, versions: Mapping[str, str]) -> None:
    if api == "11.1" and versions["polygraphy"].startswith("0.49"):
        pytest.skip("Polygraphy 0.49 reads members that TensorRT 11 removed: it cannot build with it")


def test_each_expected_failure_has_a_reason() -> None:
    assert all(one.reason and one.tests for one in EXPECTED)
