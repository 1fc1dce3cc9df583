"""`dryfit doctor` shows the installation in a screen, and ends with 1 where something is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.schemas import validate

import dryfit
from dryfit.answers import installation


def test_a_good_installation_has_no_problems(dryfit_command: Any) -> None:
    ended = dryfit_command("doctor")
    assert ended.code == 0
    assert len(ended.out.splitlines()) < 24
    assert "No problems found" in ended.out
    answer = dryfit.doctor()
    assert answer.tier in answer.tiers
    assert 0 <= answer.kernels_compiled <= answer.kernels
    assert all(one.version for one in answer.packages)


def test_a_cache_folder_that_cannot_be_used_is_a_problem_with_a_remedy(
    dryfit_command: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    monkeypatch.setenv("DRYFIT_CACHE_DIR", str(folder))
    ended = dryfit_command("doctor", "--json")
    assert ended.code == 1
    (problem,) = json.loads(ended.out)["problems"]
    assert problem["subject"] == "cache"
    assert "0777" in problem["text"]
    assert "DRYFIT_CACHE_DIR" in problem["remedy"]


def test_a_package_that_is_missing_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "PACKAGES", ("numpy", "no-such-package"))
    answer = dryfit.doctor()
    assert [(one.subject, one.text) for one in answer.problems] == [("packages", "no-such-package is not installed")]


def test_a_tier_that_this_machine_lacks_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> None:
        raise dryfit.UnknownNameError("instruction set tier on this machine", "avx9", ["generic"])

    monkeypatch.setattr(installation, "_machine_code", fails)
    (problem,) = dryfit.doctor().problems
    assert problem.subject == "processor"
    assert "avx9" in problem.text


def test_the_json_fits_its_schema(dryfit_command: Any) -> None:
    validate(json.loads(dryfit_command("doctor", "--json").out), installation.InstallationAnswer.schema())
