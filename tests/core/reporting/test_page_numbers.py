"""All numbers that a report shows are in its JSON: read from the page in a browser, with their units."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.browser import EXECUTABLE, Tab, browser
from tests.core.reporting.page_numbers import JsonNumbers, numbers_of_page

import dryfit

pytest.importorskip("vl_convert", reason="needs vl-convert: pip install 'dryfit[report]'")
pytest.importorskip("graphlay", reason="needs graphlay: pip install 'dryfit[report]'")
pytestmark = pytest.mark.skipif(EXECUTABLE is None, reason="needs Chromium")

OPTIONS: dict[str, Any] = {"shape": {"image": (1, 1, 8, 8)}}
BOARDS = ["agx-orin-64", "orin-nx-16"]


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with browser(tmp_path_factory.mktemp("browser")) as tab:
        yield tab


def samples(tmp_path: Path) -> str:
    """A folder of samples of digits."""
    generator = np.random.default_rng(3)
    folder = tmp_path / "samples"
    folder.mkdir()
    for number in range(3):
        np.savez(folder / f"{number}.npz", image=generator.random((1, 1, 8, 8), np.float32) * 16)
    return str(folder)


def lacking(tab: Tab, tmp_path: Path, answer: Any) -> tuple[int, list[str]]:
    """How many numbers the page has, and those that its JSON lacks."""
    answer.save(tmp_path / "report.html")
    data = json.loads(answer.to_json())
    known = JsonNumbers(data)
    found = list(numbers_of_page(tab, tmp_path / "report.html", data))
    return len(found), [f"{one.part}: {one.text}: {one.sentence[:120]}" for one in found if one not in known]


def test_placement_cost_memory_and_edits(tab: Tab, tmp_path: Path, digits_model: Path) -> None:
    answer = dryfit.report(digits_model, platform=BOARDS, precision="fp16", **OPTIONS)
    count, missing = lacking(tab, tmp_path, answer)
    assert missing == []
    assert count > 300


def test_int8_with_samples(tab: Tab, tmp_path: Path, digits_model: Path) -> None:
    answer = dryfit.report(
        digits_model, platform=BOARDS[0], precision="fp16,int8", data=samples(tmp_path), edits=False, **OPTIONS
    )
    count, missing = lacking(tab, tmp_path, answer)
    assert missing == []
    assert count > 500
    assert {"int8", "arithmetic"} <= {one.name for one in answer.parts}


def test_numbers_that_were_changed_in_the_page_are_found(tab: Tab, tmp_path: Path, digits_model: Path) -> None:
    answer = dryfit.report(digits_model, platform=BOARDS[0], precision="fp16", edits=False, **OPTIONS)
    page, data = tmp_path / "report.html", json.loads(answer.to_json())
    changed = re.sub(r"\d+(?:\.\d)?(?=(?: |&nbsp;)(?:KiB|us|%))", "7777.7", answer.to_html())
    page.write_text(changed, encoding="utf-8")
    known = JsonNumbers(data)
    wrong = [one for one in numbers_of_page(tab, page, data) if one not in known]
    assert {one.kind for one in wrong} >= {"bytes", "time", "share"}
