"""What a stranger's target raises when it is asked costs the answer to that question, and never the whole command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.core.cli.test_plugins import dryfit
from tests.core.plugins.packages import install
from tests.integration.failing_target import PARTS, modules

from dryfit.plugins.discovery import TARGETS

REPORTED = {
    "estimate_cost": "estimate_cost: RuntimeError",
    "stored_bytes": "memory pool ACME_WEIGHTS, stored_bytes: RuntimeError",
    "fusion": "fusion convolution-scale, where: RuntimeError",
    "cost_module": "No module named 'no_such_module'",
}
"""What a note at the end of `check` reports. What a rule raises stands in the answer instead."""

REFUSING = {
    "rule": "acme_npu.activation.any",
    "rule_when": "acme_npu.activation.tuesday",
    "quantity": "acme_npu.activation.inputs",
    "shown": "acme_npu.activation.inputs",
}


def run(folder: Path, broken: tuple[str, ...], *arguments: str) -> Any:
    install(folder, "acme", {TARGETS: {"acme-npu": "acme:TARGET"}}, modules(broken))
    command, model, *others = arguments
    where = ("--device", "acme_npu", "--fallback", "CPU", "--shape", "image=1x1x8x8")
    return dryfit(folder, command, model, *where, *others)


@pytest.mark.parametrize("part", PARTS)
def test_check_answers_whatever_one_function_raises(tmp_path: Path, digits_model: Path, part: str) -> None:
    done = run(tmp_path, (part,), "check", str(digits_model), "--json")
    assert done.returncode == 0, done.stderr
    placed = {one["name"]: one for one in json.loads(done.stdout)["layers"]}
    assert placed["conv1"]["device"] == "ACME_NPU"
    assert placed["relu1"]["device"] == ("CPU" if part in REFUSING else "ACME_NPU")
    if part in REFUSING:
        [found] = placed["relu1"]["verdicts"]["ACME_NPU"]["violations"]
        assert found["rule"] == REFUSING[part]
        assert f"RuntimeError: {part} is broken ({tmp_path / 'acme.py'}:" in found["message"]
    assert REPORTED.get(part, "") in done.stderr
    assert len(done.stderr.splitlines()) == (part in REPORTED)


@pytest.mark.parametrize("command", ["explain", "estimate"])
def test_other_commands_answer_whatever_all_functions_raise(tmp_path: Path, digits_model: Path, command: str) -> None:
    done = run(tmp_path, PARTS, command, str(digits_model), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)
    assert "Traceback" not in done.stderr


def test_a_build_needs_kernels_and_nothing_else(tmp_path: Path, digits_model: Path) -> None:
    broken = tuple(part for part in PARTS if not part.startswith("kernel"))
    done = run(tmp_path, broken, "build", str(digits_model), "-o", str(tmp_path / "digits.engine"))
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("memory pool ACME_WEIGHTS, stored_bytes: RuntimeError") == 1


def test_place_names_the_cost_function_that_failed(tmp_path: Path, digits_model: Path) -> None:
    done = run(tmp_path, ("estimate_cost",), "place", str(digits_model), "--objective", "latency")
    assert done.returncode == 2
    assert "cost function failed: RuntimeError: estimate_cost is broken" in done.stderr
    assert "--platform" not in done.stderr
