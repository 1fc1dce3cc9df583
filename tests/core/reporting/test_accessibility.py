"""Pages of reports are accessible: axe-core finds no serious problem in them, in the light and in the dark theme.

axe-core is a package of npm. It is installed for the test into a temporary folder; nothing of it is in the repository.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.browser import EXECUTABLE, browser

import dryfit

pytest.importorskip("vl_convert", reason="needs vl-convert: pip install 'dryfit[report]'")
pytest.importorskip("graphlay", reason="needs graphlay: pip install 'dryfit[report]'")
pytestmark = pytest.mark.skipif(EXECUTABLE is None, reason="needs Chromium")

PACKAGE = "axe-core@4.14.1"
SERIOUS = ("serious", "critical")
FOUND = """axe.run(document, {resultTypes: ['violations']}).then(found => JSON.stringify(found.violations.map(
    one => [one.impact, one.id, one.nodes.map(node => node.target.join(' ')).slice(0, 5)])))"""


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The script of axe-core."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("needs npm, which installs axe-core")
    folder = tmp_path_factory.mktemp("npm")
    command = [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(folder), PACKAGE]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip("npm does not reach its registry: no axe-core")
    if done.returncode:
        pytest.skip(f"npm could not install {PACKAGE}: {done.stderr.strip()[-200:]}")
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory, digits_model: Path) -> list[Path]:
    """A report with a matrix and parts about INT8, the index of a fleet, and a page of one answer."""
    folder = tmp_path_factory.mktemp("pages")
    options: dict[str, Any] = {"platform": "agx-orin-64", "shape": {"image": (1, 1, 8, 8)}}
    whole = dryfit.report(
        digits_model, **{**options, "platform": ["agx-orin-64", "orin-nx-16"]}, precision="fp16,int8", edits=False
    )
    whole.save(folder / "report.html")
    shutil.copyfile(digits_model, folder / "other.onnx")
    dryfit.report_all([digits_model, folder / "other.onnx"], folder, edits=False, **options)
    dryfit.check(digits_model, **options).report(folder / "check.html")
    return [folder / name for name in ("report.html", "index.html", "check.html")]


def problems(tab: Any, page: Path, axe: str, *, is_dark: bool) -> list[Any]:
    """What axe-core calls serious or critical in a page with its details open."""
    tab.open(page, is_dark=is_dark)
    tab.run("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    tab.run(f"{axe};0")
    return [one for one in json.loads(tab.run(FOUND)) if one[0] in SERIOUS]


def test_no_page_has_a_serious_problem(axe: str, pages: list[Path], tmp_path: Path) -> None:
    with browser(tmp_path) as tab:
        found = {
            (page.name, is_dark): problems(tab, page, axe, is_dark=is_dark)
            for page in pages
            for is_dark in (False, True)[: 2 if page is pages[0] else 1]  # all pages have the colors of the first
        }
    assert {page: some for page, some in found.items() if some} == {}


def test_a_page_with_a_problem_is_found(axe: str, tmp_path: Path) -> None:
    page = tmp_path / "bad.html"
    page.write_text(
        '<!DOCTYPE html><html lang="en"><title>x</title><main><h1>x</h1><p style="color:#ddd">pale</p></main>'
    )
    with browser(tmp_path / "browser") as tab:
        assert [one[1] for one in problems(tab, page, axe, is_dark=False)] == ["color-contrast"]
