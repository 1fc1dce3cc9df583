"""Ten packages that are broken, each in its own way, installed beside dryfit: it works as if they were not there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.core.cli.test_plugins import dryfit
from tests.core.plugins.packages import install, target_module

from dryfit.plugins import API_LEVEL
from dryfit.plugins.discovery import HOOKS, LAYERS, TARGETS

NO_RULES = """
    from dryfit.target.target import Platform, Target
    TARGET = Target(device="NO_RULES", title="Promises everything", platforms=[Platform("one", "one", "One")])
"""

REASONS = {
    "no-import": "ModuleNotFoundError: No module named 'a_driver_that_is_not_there'",
    "no-syntax": "SyntaxError: '(' was never closed (no_syntax.py, line 1)",
    "no-target": "The entry point must name a target (found dict; allowed: a Target record)",
    "no-layer": "layer plugin",
    "exits": "it exits while it is imported (SystemExit: 7)",
    "endless": "its import takes longer than 1 s of CPU time, or 6 s",
    "first-claim": "TWICE is claimed by TWICE 1.2 (second-claim) and twice 1.2 (first-claim)",
    "second-claim": "TWICE is claimed by TWICE 1.2 (second-claim) and twice 1.2 (first-claim)",
    "misspelled": "dryfit has no hook vote_on_placment; did you mean vote_on_placement?",
    "newer": f"needs dryfit with plugin API level {API_LEVEL + 1}; this one has {API_LEVEL}; upgrade dryfit",
    "no-rules": "The target NO_RULES declares no limit rules (found no `limits_at`)",
    "malformed": "malformed entry point: 'cpu dryfit_cpu' = ''",
}
"""Package to what is to be said of it."""


@pytest.fixture(scope="module")
def broken_packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all of them."""
    folder = tmp_path_factory.mktemp("broken")

    def target(package: str, text: str, name: str | None = None) -> None:
        module = package.replace("-", "_")
        install(folder, package, {TARGETS: {name or package: f"{module}:TARGET"}}, {module: text})

    target("no-import", "import a_driver_that_is_not_there")
    target("no-syntax", "TARGET = (")
    target("no-target", "TARGET = {}")
    install(folder, "no-layer", {LAYERS: {"acme::Swish": "no_layer:SWISH"}}, {"no_layer": "SWISH = 'swish'"})
    target("exits", "import sys\nsys.exit(7)")
    target("endless", "import time\nwhile True:\n    time.sleep(1)")
    target("first-claim", target_module("first_claim", "TWICE")["first_claim"], "twice")
    target("second-claim", target_module("second_claim", "TWICE")["second_claim"], "TWICE")
    misspelled = "import dryfit\n@dryfit.hookimpl\ndef vote_on_placment(layer): raise SystemExit"
    install(folder, "misspelled", {HOOKS: {"misspelled": "misspelled_hooks"}}, {"misspelled_hooks": misspelled})
    newer = f"DRYFIT_API_LEVEL = {API_LEVEL + 1}\nfrom dryfit import something_of_tomorrow"
    install(folder, "newer", {HOOKS: {"newer": "newer_hooks"}}, {"newer_hooks": newer})
    target("no-rules", NO_RULES)
    install(folder, "malformed", "[dryfit.targets]\ncpu dryfit_cpu\n", {})
    return folder


def placement(folder: Path, model: Path, *options: str) -> tuple[dict[str, Any], str]:
    """The answer of `check`, and what it says on stderr."""
    arguments = ("--device", "DLA", "--precision", "fp16", "--fallback", "GPU", "--shape", "image=2x1x8x8", "--json")
    done = dryfit(folder, *options, "check", str(model), *arguments)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer, done.stderr


def test_check_answers_as_if_they_were_not_there(broken_packages: Path, tmp_path: Path, digits_model: Path) -> None:
    alone, nothing = placement(tmp_path, digits_model)
    beside, left_out = placement(broken_packages, digits_model)
    own, foreign = set(alone.pop("plugins")), set(beside.pop("plugins"))
    assert json.dumps(beside) == json.dumps(alone)
    assert nothing == ""
    # Only modules of hooks were looked at, since any of them may have a say in a placement.
    told = sorted(line.split(" in ")[0] for line in left_out.splitlines())
    assert told == ["Skipped: misspelled 1.2 (misspelled)", "Skipped: newer 1.2 (newer)"]
    assert own <= foreign
    assert not {one for one in foreign if "misspelled" in one or "newer" in one or "TWICE" in one.upper()}


def test_without_plugins_the_answer_is_the_same_to_the_byte(
    broken_packages: Path, tmp_path: Path, digits_model: Path
) -> None:
    assert placement(broken_packages, digits_model, "--no-plugins") == placement(tmp_path, digits_model)


def test_doctor_names_each_with_its_own_reason(broken_packages: Path) -> None:
    done = dryfit(broken_packages, "plugins", "doctor", "--timeout", "1", "--json", DRYFIT_DISABLE_PLUGINS="dryfit")
    assert done.returncode == 1
    found = {one["distribution"]: one for one in json.loads(done.stdout)["findings"]}
    assert set(found) == set(REASONS)
    for package, reason in REASONS.items():
        assert reason in found[package]["message"], package
        assert found[package]["version"] == "1.2"
        assert found[package]["remedy"]


def test_list_shows_each_and_imports_none(broken_packages: Path) -> None:
    done = dryfit(broken_packages, "plugins", "list", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    states = {one["distribution"]: one["state"] for one in json.loads(done.stdout)["plugins"]}
    assert {package: states.get(package) for package in REASONS} == {
        **dict.fromkeys(REASONS, "available"),
        **dict.fromkeys(("first-claim", "second-claim"), "duplicate"),
        "malformed": "failed",
    }


def test_targets_list_shows_the_devices_that_work_and_why_the_others_do_not(broken_packages: Path) -> None:
    done = dryfit(broken_packages, "targets", "list", "--json", DRYFIT_PLUGIN_TIMEOUT="0.2")
    answer = json.loads(done.stdout)
    assert [one["device"] for one in answer["targets"]] == ["CPU", "DLA", "GPU"]
    failures = {one["distribution"]: one["message"] for one in answer["failures"]}
    not_targets = {"no-layer", "misspelled", "newer"}
    assert set(failures) == set(REASONS) - not_targets
    assert failures["endless"] == "its import takes longer than 0.2 s of CPU time, or 1.2 s"


def test_asking_for_a_broken_device_names_its_package_and_what_is_wrong(
    broken_packages: Path, digits_model: Path
) -> None:
    done = dryfit(broken_packages, "check", str(digits_model), "--device", "no-import")
    assert done.returncode == 2
    assert done.stderr.startswith(
        "Error: no-import 1.2: The plugin of the device NO_IMPORT could not be loaded "
        f"(found {REASONS['no-import']}). `dryfit plugins doctor` shows the whole traceback and what to do\n"
    )
