"""The collection of boards: each contributed file has its form, and speaks of rules and probes that exist."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from docs.pages import boards
from tests.schemas import validate

import dryfit
from dryfit.plugins import registry

REPORTS = boards.reports()


OVERLAY = """schema = 1
name = "{name}"
platform = "orin-nx-16"
software = "10.3"
author = "a test"
source = "two builds"

[rules."dla.pooling.window"]
limits = {{ high = {high} }}
layers = 2
"""


def test_each_contributed_overlay_is_sound() -> None:
    names = {path.name for path in (boards.FOLDER / "overlays").iterdir()}
    assert len(boards.overlays()) == len(names - {"README.txt"})


def test_contributed_overlays_are_listed_and_may_agree(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.toml").write_text(OVERLAY.format(name=name, high=10))
    page = boards._overlays(boards.overlays(tmp_path))
    assert "| `dla.pooling.window` | high = 10 | orin-nx-16, TensorRT 10.3 | 2 | two by a test: two builds |" in page


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (OVERLAY.format(name="two", high=11), "contradict each other"),
        (
            OVERLAY.format(name="two", high=10).replace("dla.pooling.window", "dla.pooling.windo"),
            "'dla.pooling.window'?",
        ),
        (OVERLAY.format(name="two", high=10).replace("orin-nx-16", "orin-nx-17"), "orin-nx-17"),
        (OVERLAY.format(name="two", high=10).replace('"a test"', '""'), "author"),
        (OVERLAY.format(name="two", high='"much"').replace("layers = 2", "layers = -2"), "layers"),
        ("schema = 2", "schema"),
    ],
)
def test_a_contributed_overlay_that_is_not_sound_is_refused(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text(OVERLAY.format(name="one", high=10))
    (tmp_path / "two.toml").write_text(text)
    with pytest.raises(dryfit.DryfitError) as caught:
        boards.overlays(tmp_path)
    assert words in str(caught.value)


def test_each_report_fits_the_published_schema() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    for path in sorted((boards.FOLDER / "reports").glob("*.toml")):
        validate(tomllib.loads(path.read_text()), boards.report_schema())
    with pytest.raises(jsonschema.ValidationError):
        validate({"schema": 1}, boards.report_schema())


def test_there_are_reports_of_ten_or_more_threads_with_a_source_each() -> None:
    assert len({one.source for one in REPORTS}) == len(REPORTS) >= 10
    assert all(one.words and one.layers and one.source.startswith("https://") for one in REPORTS)


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
    assert "for 0 of them the rules predict what the board did" in boards._compared([wrong])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("schema = 1", "Fields of the report are missing"),
        ("schema = 1\nsofware = '8.5'", "Did you mean 'software'?"),
        ("x", "not valid TOML"),
        (
            (boards.FOLDER / "reports" / "sample-cudla.toml").read_text().replace("https://", ""),
            "an address where everybody can read it",
        ),
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
