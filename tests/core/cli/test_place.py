"""`dryfit place`: what it tells, and that the file it writes is the placement that it proposes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.core.answers.placement_search import acme_costs
from tests.integration.failing_target import modules
from tests.schemas import validate

from dryfit.answers.place import PlaceAnswer
from dryfit.answers.place_text import rules_text
from dryfit.estimate_text import duration
from dryfit.plugins.discovery import TARGETS

SHAPE = ("--shape", "image=1x1x8x8")
ACME = ("--device", "acme_fast", "--fallback", "acme_plain")


@pytest.fixture
def acme(install: Any) -> None:
    """Two devices with stated costs, installed."""
    install("acme_costs", acme_costs.module(), {"dryfit.targets": acme_costs.ENTRY_POINTS})


def model_of(path: Any, names: tuple[str, ...]) -> Any:
    """A model of a convolution, an ELU, a ReLU, an ELU and a convolution with these names."""
    kernel = numpy_helper.from_array(np.ones((8, 8, 1, 1), np.float32), "kernel")
    kinds = ("Conv", "Elu", "Relu", "Elu", "Conv")
    nodes = [
        helper.make_node(kind, [f"t{index}", *(["kernel"] if kind == "Conv" else [])], [f"t{index + 1}"], name=name)
        for index, (kind, name) in enumerate(zip(kinds, names, strict=True))
    ]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (1, 8, 6, 6)) for name in ("t0", "t5")]
    graph = helper.make_graph(nodes, "small", ends[:1], ends[1:], [kernel])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


NAMES = ("first", "elu", "relu", "other", "last")


@pytest.mark.parametrize("suffix", ["txt", "json"])
@pytest.mark.usefixtures("acme")
def test_the_file_gives_a_build_the_proposed_placement(dryfit_command: Any, tmp_path: Any, suffix: str) -> None:
    model, file = model_of(tmp_path / "m.onnx", NAMES), tmp_path / f"placement.{suffix}"
    answer = dryfit_command("place", model, *ACME, "--precision", "fp32", "-o", file, "--json").json
    validate(answer, PlaceAnswer.schema())
    assert answer["placement"] == {"relu": "ACME_PLAIN"}
    checked = dryfit_command("check", model, *ACME, "--placement", file, "--json").json
    devices = [layer["device"] for layer in checked["layers"]]
    assert devices == ["ACME_FAST", "ACME_PLAIN", "ACME_PLAIN", "ACME_PLAIN", "ACME_FAST"]
    after = next(one for one in answer["options"] if one["is_chosen"])
    assert after["segments_by_device"] == checked["summary"]["segments_by_device"]


@pytest.mark.usefixtures("acme")
def test_tables_show_what_changes_why_and_the_figures_before_and_after(dryfit_command: Any, tmp_path: Any) -> None:
    model = model_of(tmp_path / "m.onnx", NAMES)
    answer = dryfit_command("place", model, *ACME, "--precision", "fp32", "--json").json
    before, after = (next(one for one in answer["options"] if one[which]) for which in ("is_before", "is_chosen"))
    printed = dryfit_command("place", model, *ACME, "--precision", "fp32").out
    assert "1 layer from ACME_FAST to ACME_PLAIN (relu): if they stayed, latency would be an estimated" in printed
    (row,) = (line for line in printed.splitlines() if line.strip().startswith("latency"))
    assert [text in row for text in (duration(before["value"]), duration(after["value"]))] == [True, True]
    assert "error not stated" in row
    assert before["value"] > after["value"]
    words = " ".join(printed.split())
    assert "All times, rates and energies are estimates by the targets' formulas; nothing was measured." in words
    assert "on a chain of layers, dynamic programming" in words


@pytest.mark.usefixtures("acme")
def test_an_output_that_exists_is_kept_without_force(dryfit_command: Any, tmp_path: Any) -> None:
    model, file = model_of(tmp_path / "m.onnx", NAMES), tmp_path / "placement.txt"
    file.write_text("mine", encoding="utf-8")
    ended = dryfit_command("place", model, *ACME, "-o", file)
    assert (ended.code, file.read_text(encoding="utf-8")) == (2, "mine")
    assert "already exists" in ended.err
    assert dryfit_command("place", model, *ACME, "--precision", "fp32", "-o", file, "--force").code == 0
    assert file.read_text(encoding="utf-8").startswith("# Devices for latency on ACME_FAST")


@pytest.mark.usefixtures("acme")
def test_a_name_that_rules_cannot_write_goes_into_json(dryfit_command: Any, tmp_path: Any) -> None:
    odd = "relu #1"
    model = model_of(tmp_path / "m.onnx", ("first", "elu", odd, "other", "last"))
    ended = dryfit_command("place", model, *ACME, "--precision", "fp32", "-o", tmp_path / "p.txt")
    assert ended.code == 2
    assert f"{odd!r}" in ended.err
    assert "suffix .json" in ended.err
    assert not (tmp_path / "p.txt").exists()
    assert dryfit_command("place", model, *ACME, "--precision", "fp32", "-o", tmp_path / "p.json").code == 0
    assert json.loads((tmp_path / "p.json").read_text(encoding="utf-8")) == {odd: "ACME_PLAIN"}


@pytest.mark.usefixtures("acme")
def test_a_script_is_not_written(dryfit_command: Any, tmp_path: Any) -> None:
    ended = dryfit_command("place", model_of(tmp_path / "m.onnx", NAMES), *ACME, "-o", tmp_path / "p.py")
    assert ended.code == 2
    assert "a suffix other than .py" in ended.err


def test_the_devices_of_a_placement_file_are_kept_in_the_new_one(
    dryfit_command: Any, digits_model: Any, tmp_path: Any
) -> None:
    given = tmp_path / "given.txt"
    given.write_text("conv1 = GPU\n", encoding="utf-8")
    options = (*SHAPE, "--objective", "dla-coverage", "--placement", given)
    answer = dryfit_command("place", digits_model, *options, "--json").json
    assert answer["placement"]["conv1"] == "GPU"


def test_without_a_device_it_is_asked_about_the_accelerator_and_says_so(dryfit_command: Any, digits_model: Any) -> None:
    answer = dryfit_command("place", digits_model, *SHAPE, "--json").json
    validate(answer, PlaceAnswer.schema())
    assert (answer["device"], answer["platform"], answer["fallback"]) == ("DLA", "agx-orin-64", "GPU")
    assert answer["assumed"] == ["--device DLA", "--precision int8,fp16", "--fallback GPU", "--assume-scales"]
    values = {one["title"]: one["value"] for one in answer["options"]}
    assert min(values.values()) == next(one["value"] for one in answer["options"] if one["is_chosen"])


@pytest.mark.usefixtures("acme")
def test_energy_is_told_where_targets_estimate_it(dryfit_command: Any, tmp_path: Any) -> None:
    model = model_of(tmp_path / "m.onnx", NAMES)
    answer = dryfit_command("place", model, *ACME, "--precision", "fp32", "--objective", "energy", "--json").json
    assert all(one["energy"] == {"amount": pytest.approx(one["value"]), "unit": "joules"} for one in answer["options"])
    assert "joules" in dryfit_command("place", model, *ACME, "--precision", "fp32", "--objective", "energy").out


def test_energy_without_joules_is_told_in_a_unit_with_its_basis(dryfit_command: Any, digits_model: Any) -> None:
    asked = ("place", digits_model, *SHAPE, "--power-mode", "15W", "--objective", "energy")
    answer = dryfit_command(*asked, "--json").json
    validate(answer, PlaceAnswer.schema())
    assert answer["unit"] == "DLA us of agx-orin-64 in 15W"
    assert all(
        one["energy"] == {"amount": pytest.approx(one["value"]), "unit": answer["unit"]} for one in answer["options"]
    )
    before, after = (next(one for one in answer["options"] if one[which]) for which in ("is_before", "is_chosen"))
    assert after["value"] < before["value"]
    told = {one["of"]: one for one in answer["bases"]}
    assert {"energy of DLA", "energy of GPU", "energy of copies"} <= told.keys()
    assert "no watts are published" in told["energy of DLA"]["basis"]
    assert "DLA Performance per Watt" in told["energy of GPU"]["source"]
    assert "joules" not in dryfit_command(*asked).out


@pytest.mark.usefixtures("acme")
def test_where_nothing_is_better_nothing_changes(dryfit_command: Any, tmp_path: Any) -> None:
    model = model_of(tmp_path / "m.onnx", NAMES)
    given, file = tmp_path / "given.txt", tmp_path / "new.txt"
    given.write_text("relu = ACME_PLAIN\n", encoding="utf-8")
    printed = dryfit_command("place", model, *ACME, "--precision", "fp32", "--placement", given, "-o", file).out
    assert "No change" in printed
    assert "before and after" not in printed
    assert file.read_text(encoding="utf-8").splitlines()[-1] == "relu = ACME_PLAIN"


def test_energy_is_refused_where_no_energy_is_estimated(dryfit_command: Any, digits_model: Any) -> None:
    ended = dryfit_command("place", digits_model, *SHAPE, "--platform", "agx-xavier", "--objective", "energy")
    assert ended.code == 2
    assert "device DLA (Jetson AGX Xavier)" in ended.err
    assert "requires energy estimates" in ended.err
    assert "--objective latency, --objective throughput, --objective dla-coverage" in ended.err
    words = " ".join(ended.err.split())
    assert "`energy` in each `CostEstimate`" in words
    assert "a budget for the whole board" in words


def test_a_target_without_costs_is_told_to_declare_them(dryfit_command: Any, digits_model: Any, install: Any) -> None:
    without = re.sub("estimate_cost_at=.*,", "", modules(())["acme"])
    install("acme", without, {TARGETS: {"acme-npu": "acme:TARGET"}})
    asked = ("place", digits_model, *SHAPE, "--device", "acme_npu", "--fallback", "CPU", "--objective", "latency")
    ended = dryfit_command(*asked)
    assert ended.code == 2
    assert "Declare `estimate_cost_at` in the target ACME_NPU" in " ".join(ended.err.split())
    assert "--platform" not in ended.err


def test_rules_are_one_a_line_below_a_comment() -> None:
    assert rules_text({"a": "GPU", "b = c": "DLA"}, "one\ntwo") == "# one\n# two\na = GPU\nb = c = DLA\n"


@pytest.mark.usefixtures("acme")
@pytest.mark.parametrize("objective", ["latency", "throughput"])
def test_a_strangers_device_is_compared_with_the_host(dryfit_command: Any, tmp_path: Any, objective: str) -> None:
    model = model_of(tmp_path / "m.onnx", NAMES)
    asked = ("--device", "ACME_FAST", "--fallback", "CPU", "--precision", "fp32", "--objective", objective)
    answer = dryfit_command("place", model, *asked, "--json").json
    validate(answer, PlaceAnswer.schema())
    assert (answer["device"], answer["fallback"]) == ("ACME_FAST", "CPU")
    assert all(one["value"] > 0 for one in answer["options"])
    bases = {one["of"]: one["basis"] for one in answer["bases"]}
    assert "roofline of this machine" in bases["CPU"]
    assert answer["lower_bounds"]["devices"] == ["CPU"]


@pytest.mark.parametrize("fallback", ["CPU", "GPU"])
def test_the_example_of_a_target_can_be_placed_by_cost(
    dryfit_command: Any,
    install: Any,
    repository: Path,
    digits_model: Any,
    monkeypatch: pytest.MonkeyPatch,
    fallback: str,
) -> None:
    monkeypatch.syspath_prepend(repository / "examples/dryfit-npu")
    install("npu_shown", "from dryfit_npu import TARGET", {"dryfit.targets": {"acme-npu": "npu_shown:TARGET"}})
    asked = (digits_model, *SHAPE, "--device", "acme_npu", "--fallback", fallback, "--precision", "fp16")
    answer = dryfit_command("place", *asked, "--objective", "latency", "--json").json
    validate(answer, PlaceAnswer.schema())
    assert {"ACME_NPU", fallback} <= {one["of"] for one in answer["bases"]}
    estimated = dryfit_command("estimate", *asked, "--json").json
    assert estimated["network"]["latency_text"].startswith("at least ")
    assert estimated["network"]["lower_bounds"] == sorted(["ACME_NPU", fallback])
