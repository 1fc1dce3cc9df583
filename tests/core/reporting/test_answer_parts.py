"""An answer shown in a notebook is its part of the report: the same pictures, tables and sentences."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dryfit
from dryfit.answers.text import html_text
from dryfit.reporting.answer_parts import parts_of_answer

pytest.importorskip("vl_convert", reason="needs vl-convert: pip install 'dryfit[report]'")
pytest.importorskip("graphlay", reason="needs graphlay: pip install 'dryfit[report]'")

OPTIONS: dict[str, Any] = {"platform": "agx-orin-64", "shape": {"image": (1, 1, 8, 8)}}


@pytest.fixture(scope="module")
def whole(digits_model: Path) -> Any:
    return dryfit.report(digits_model, edits=False, **OPTIONS)


def same_parts(answer: Any, whole: Any, *names: str) -> list[Any]:
    """The parts of an answer; they are those of the report, and in the HTML of a notebook."""
    parts = parts_of_answer(answer)
    assert [one.name for one in parts] == list(names)
    text = answer._repr_html_()
    of_whole = {one.name: one for one in whole.parts}
    for one in parts:
        assert [figure.name for figure in one.figures] == [figure.name for figure in of_whole[one.name].figures]
        assert one.figures
        assert one.finding.partition(";")[0].rstrip(".") in of_whole[one.name].finding
        assert text.count("<svg") == sum(len(part.figures) for part in parts)
        assert all(table.title in text for table in one.blocks if hasattr(table, "columns"))
    return parts


def test_a_placement_is_the_outcome_and_the_graph(whole: Any, digits_model: Path) -> None:
    _, graph = same_parts(dryfit.check(digits_model, **OPTIONS), whole, "outcome", "graph")
    assert graph == next(one for one in whole.parts if one.name == "graph")


def test_an_estimate_is_the_timeline_and_the_cost(whole: Any, digits_model: Path) -> None:
    parts = same_parts(dryfit.estimate(digits_model, **OPTIONS), whole, "timeline", "cost")
    assert parts == [one for one in whole.parts if one.name in ("timeline", "cost")]


def test_an_explanation_is_the_reasons(whole: Any, digits_model: Path) -> None:
    (reasons,) = same_parts(dryfit.explain(digits_model, edits=False, **OPTIONS), whole, "reasons")
    own = next(one for one in whole.parts if one.name == "reasons")
    assert reasons.numbers["layers_share"] == own.numbers["layers_share"]


def test_numbers_have_their_parts(digits_model: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "one.npz", image=np.ones((1, 1, 8, 8), np.float32))
    compared = dryfit.compare(
        digits_model,
        data=str(tmp_path),
        against=["fp32"],
        device="DLA",
        precision="fp16",
        fallback="GPU",
        shape=OPTIONS["shape"],
    )
    assert [one.name for one in parts_of_answer(compared)] == ["arithmetic"]
    assert "<svg" in compared._repr_html_()
    explained = dryfit.explain_quantization(digits_model, **OPTIONS, precision="int8", assume_scales=True)
    assert [one.name for one in parts_of_answer(explained)] == ["int8"]
    assert "are assumed" in explained._repr_html_()


def test_cells_of_a_notebook_share_no_anchors_and_keep_their_style(digits_model: Path) -> None:
    cells = [dryfit.check(digits_model, **{**OPTIONS, "platform": one}) for one in ("agx-orin-64", "orin-nx-16")]
    found = [set(re.findall(r' id="([^"]+)"', one._repr_html_())) for one in cells]
    assert all(found)
    assert not found[0] & found[1]
    text = cells[0]._repr_html_()
    links = re.findall(r'href="#([^"]+)"', text)
    assert links
    assert set(links) <= found[0]
    style = text[text.index("<style>") : text.index("</style>")]
    assert all(".dryfit" in rule for rule in re.findall(r"([^{}]+)\{", style) if "@media" not in rule)
    assert "<script" not in text


def test_answers_without_a_part_are_their_tables() -> None:
    answer = dryfit.targets()
    assert answer._repr_html_() == html_text(answer.blocks())


def test_without_the_packages_an_answer_is_its_tables_and_says_so(
    digits_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    text = dryfit.check(digits_model, **OPTIONS)._repr_html_()
    assert "<table>" in text
    assert "<svg" not in text
    assert "pip install &#x27;dryfit[report]&#x27;" in text


def test_an_answer_writes_its_page(digits_model: Path, tmp_path: Path) -> None:
    answer = dryfit.check(digits_model, **OPTIONS)
    answer.report(tmp_path / "check.html")
    text = (tmp_path / "check.html").read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>")
    assert all(one.finding in text for one in parts_of_answer(answer))
    dryfit.targets().report(tmp_path / "targets.html")
    assert "dla" in (tmp_path / "targets.html").read_text(encoding="utf-8").lower()
