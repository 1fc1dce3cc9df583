"""`dryfit compare --against DEVICES` without samples: placement and estimates of each device."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

OPTIONS = ("--precision", "fp16", "--shape", "image=1x1x8x8")


def test_devices_are_compared_where_there_are_no_samples(dryfit_command: Any, digits_model: Path) -> None:
    told = dryfit_command("compare", digits_model, "--against", "dla,cpu", *OPTIONS)
    assert told.code == 0
    for words in ("9 of 13", "13 of 13", "dla.activation.type", "found ELU"):
        assert words in told.out
    told = dryfit_command("compare", digits_model, "--against", "dla,cpu", *OPTIONS, "--json")
    assert [one["name"] for one in json.loads(told.out)["sides"]] == ["dla", "cpu"]


def test_without_samples_devices_must_be_named(dryfit_command: Any, digits_model: Path) -> None:
    told = dryfit_command("compare", digits_model, *OPTIONS)
    assert told.code == 2
    assert "or devices to compare with --against" in told.err
    told = dryfit_command("compare", digits_model, "--against", "dla", "--fail-below", "3", *OPTIONS)
    assert "require samples" in told.err
