"""The collection of boards: each contributed file has its form, and speaks of rules and probes that exist."""

from __future__ import annotations

from pathlib import Path

import pytest
from docs.pages import boards

import dryfit
from dryfit.plugins import registry

REPORTS = boards.reports()


def test_each_contributed_overlay_speaks_of_rules_that_exist_and_none_contradicts_another() -> None:
    for one in boards.overlays():
        dryfit.BuilderConfig().overlays = [one]
        assert one.source
        assert one.author


def test_there_are_reports_of_ten_or_more_threads_with_a_source_each() -> None:
    assert len({one.source for one in REPORTS}) == len(REPORTS) >= 10
    assert all(one.words and one.layers for one in REPORTS)


def test_the_rules_that_reports_name_exist() -> None:
    table = registry.target("DLA").limits
    assert table is not None
    for report in REPORTS:
        for layer in report.layers:
            assert not layer.named or table.rule(layer.named)


def test_a_report_that_the_rules_contradict_is_shown_as_such() -> None:
    [report] = [one for one in REPORTS if one.name == "sample-cudla"]
    [layer] = report.layers
    wrong = boards.Prediction(report, layer, ["dla.batch"])
    assert not wrong.agrees
    assert "**differs**" in boards._compared([wrong])
    assert "the rules say of 0 what the board did" in boards._compared([wrong])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("schema = 1", "Fields of the report are missing"),
        ("schema = 1\nsofware = '8.5'", "Did you mean 'software'?"),
        ("x", "not valid TOML"),
    ],
)
def test_a_report_of_another_form_is_refused(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text(text)
    with pytest.raises(dryfit.DryfitError) as caught:
        boards.read_report(tmp_path / "one.toml")
    assert words in str(caught.value)


def test_a_report_names_probes_and_verdicts_that_exist(tmp_path: Path) -> None:
    text = (boards.FOLDER / "reports" / "sample-cudla.toml").read_text()
    for before, after, words in (
        ('probe = "elementwise_add"', 'probe = "elementwise_ad"', "'elementwise_add'?"),
        ('verdict = "accepted"', 'verdict = "accept"', "'accepted'?"),
    ):
        (tmp_path / "one.toml").write_text(text.replace(before, after))
        with pytest.raises(dryfit.UnknownNameError) as caught:
            boards.read_report(tmp_path / "one.toml")
        assert words in str(caught.value)
