"""`dryfit report` of several models: a page each, an index, and what changed since the last run."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest
from tests.schemas import validate

import dryfit
from dryfit.errors import ConfigError
from dryfit.reporting.fleet import FleetAnswer

pytest.importorskip("vl_convert", reason="needs vl-convert: pip install 'dryfit[report]'")

OPTIONS = {"shape": {"image": (1, 1, 8, 8)}, "edits": False}


@pytest.fixture
def models(digits_model: Any, tmp_path: Any) -> list[str]:
    """Two that can be read, and one that cannot."""
    paths = [tmp_path / f"{name}.onnx" for name in ("first", "second", "broken")]
    for path in paths[:2]:
        shutil.copy(digits_model, path)
    paths[2].write_bytes(b"no model")
    return [str(path) for path in paths]


def test_each_model_has_its_page_or_its_error(models: Any, tmp_path: Any) -> None:
    found = dryfit.report_all(models, tmp_path / "site", platform="agx-orin-64", **OPTIONS)
    assert [one.page for one in found.models] == ["first.html", "second.html", ""]
    assert [one.model for one in found.failed] == models[2:]
    assert {one.name for one in (tmp_path / "site").iterdir()} == {
        "first.html",
        "second.html",
        "index.html",
        "index.json",
    }
    index = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    check = dryfit.check(models[0], platform="agx-orin-64", shape=OPTIONS["shape"])
    assert found.models[0].latency_text in index
    assert f"{check.summary.fallback_layers} of {check.summary.layers}" in index
    validate(found.to_dict(), FleetAnswer.schema())


def test_a_second_run_tells_what_changed(models: Any, tmp_path: Any) -> None:
    first = dryfit.report_all(models[:1], tmp_path, platform="agx-orin-64", **OPTIONS)
    assert not first.has_previous
    again = dryfit.report_all(models[:1], tmp_path, platform="agx-orin-64", **OPTIONS)
    assert (again.has_previous, again.models[0].changes) == (True, [])
    other = dryfit.report_all(models[:2], tmp_path, platform="agx-xavier", **OPTIONS)
    assert other.models[0].changes[0] == "agx-orin-64 10.16 fp16 -> agx-xavier 8.5.10 fp16"
    assert other.models[1].changes == ["new"]


def test_a_record_that_is_not_ours_is_no_last_run(models: Any, tmp_path: Any) -> None:
    (tmp_path / "index.json").write_text(json.dumps([1, 2]))
    assert not dryfit.report_all(models[:1], tmp_path, **OPTIONS).has_previous


def test_processes_write_the_same_pages(models: Any, tmp_path: Any) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder, jobs in zip(folders, (1, 2), strict=True):
        dryfit.report_all(models[:2], folder, jobs=jobs, platform="agx-orin-64", command="dryfit report", **OPTIONS)
    for name in ("first.html", "second.html", "index.html"):
        assert (folders[0] / name).read_bytes() == (folders[1] / name).read_bytes()


def test_models_of_one_name_are_refused(models: Any, tmp_path: Any) -> None:
    with pytest.raises(ConfigError, match=r"first\.html"):
        dryfit.report_all([models[0], models[0]], tmp_path)
