"""`dryfit sparsity`, and `--sparsity` of the other commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from tests.core.builder.sparse_networks import pruned_by_hand
from tests.core.onnx.models import model, numbers
from tests.schemas import validate

from dryfit.answers.json_data import json_schema
from dryfit.answers.pruned_model import PruneAnswer
from dryfit.answers.sparsity import SparsityAnswer

SCHEMA = json_schema(SparsityAnswer | PruneAnswer, "dryfit sparsity --json")

KERNELS = {"w0": numbers(32, 68, 1, 1), "w1": numbers(64, 32, 1, 1, seed=1), "w2": numbers(67, 68, 1, 1, seed=2)}


def saved(path: Path, **kernels: np.ndarray) -> Path:
    """Three convolutions: one that can run sparse, one of too few channels, one of a wrong number of maps."""
    parsed = model(
        "c0 = Conv(x, w0) c1 = Conv(c0, w1) c2 = Conv(x, w2) y = Relu(c1) z = Relu(c2)",
        inputs="float[1,68,4,4] x",
        outputs="float[1,64,4,4] y, float[1,67,4,4] z",
        weights=KERNELS | kernels,
    )
    for node in parsed.graph.node:
        node.name = node.output[0]
    path.write_bytes(parsed.SerializeToString())
    return path


@pytest.fixture
def dense(tmp_path: Path) -> Path:
    return saved(tmp_path / "dense.onnx")


@pytest.fixture
def sparse(tmp_path: Path) -> Path:
    return saved(tmp_path / "sparse.onnx", w0=pruned_by_hand(KERNELS["w0"]))


def layers(answer: Any) -> dict[str, Any]:
    return {one["name"]: one for one in answer.json["layers"]}


def test_the_answers_are_what_the_schema_promises(dryfit_command: Any, dense: Path, tmp_path: Path) -> None:
    for arguments in (("check", dense), ("prune", dense, "-o", tmp_path / "out.onnx")):
        answer = dryfit_command("sparsity", *arguments, "--json").json
        validate(answer, SCHEMA)


def test_check_says_of_each_layer_what_it_is_and_why(dryfit_command: Any, sparse: Path) -> None:
    answer = dryfit_command("sparsity", "check", sparse, "--json")
    assert (answer.code, answer.json["device"], answer.json["pattern"]) == (0, "DLA", "2:4")
    found = {
        name: (one["eligible"], one["has_pattern"], one["sparse"], [v["rule"] for v in one["violations"]])
        for name, one in layers(answer).items()
    }
    assert found == {
        "c0": (True, True, True, []),
        "c1": (False, False, False, ["dla.sparsity.input_channels_newer", "dla.sparsity.pattern"]),
        "c2": (False, False, False, ["dla.sparsity.pattern", "dla.sparsity.output_maps"]),
    }
    macs = {"c0": 32 * 68 * 16, "c1": 64 * 32 * 16, "c2": 67 * 68 * 16}
    assert {name: one["macs"] for name, one in layers(answer).items()} == macs
    summary = answer.json["summary"]
    assert (summary["layers"], summary["eligible"], summary["unpruned"], summary["sparse"]) == (3, 1, 0, 1)
    assert summary["sparse_macs_share"] == pytest.approx(macs["c0"] / sum(macs.values()))


def test_the_table_has_a_line_a_layer_and_each_reason_once(dryfit_command: Any, dense: Path) -> None:
    printed = dryfit_command("sparsity", "check", dense).out
    rows = [line.split(maxsplit=6) for line in printed.splitlines() if line.startswith("  c")]
    assert [(row[0], *row[3:6]) for row in rows] == [
        ("c0", "yes", "no", "no"),
        ("c1", "no", "no", "no"),
        ("c2", "no", "no", "no"),
    ]
    assert rows[1][6] == "input_channels_newer, pattern"
    assert printed.count("dla.sparsity.pattern:") == 1
    assert "(c0 and 2 other layers)" in printed
    assert "dense kernels, bit for bit" in printed
    assert "dla.sparsity.full_gain" not in printed
    assert "dla.sparsity.full_gain" in dryfit_command("sparsity", "check", dense, "--verbose").out


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("unpruned", 0),
        ("ineligible>1", 1),
        ("ineligible>2", 0),
        ("dense>60%", 1),
        ("dense>80%", 0),
        ("dla.sparsity.output_maps", 1),
        ("dla.sparsity.platform", 0),
        ("dla", 1),
    ],
)
def test_conditions_decide_the_exit_code(dryfit_command: Any, sparse: Path, condition: str, code: int) -> None:
    assert dryfit_command("sparsity", "check", sparse, "--fail-on", condition).code == code


def test_a_device_without_rules_is_told(dryfit_command: Any, sparse: Path) -> None:
    answer = dryfit_command("sparsity", "check", sparse, "--device", "GPU", "--json")
    assert answer.json["pattern"] is None
    assert {one["asked"] for one in answer.json["layers"]} == {None}
    printed = dryfit_command("sparsity", "check", sparse, "--device", "GPU").out
    assert "which skips no zeros" in printed
    assert "GPU does not skip zeros" in printed


def test_prune_writes_a_copy_and_leaves_the_model(dryfit_command: Any, dense: Path, tmp_path: Path) -> None:
    before, out = dense.read_bytes(), tmp_path / "out.onnx"
    answer = dryfit_command("sparsity", "prune", dense, "-o", out, "--json")
    assert answer.code == 0
    assert dense.read_bytes() == before
    stored = {one.name: onnx.numpy_helper.to_array(one) for one in onnx.load(str(out)).graph.initializer}
    np.testing.assert_array_equal(stored["w0"], pruned_by_hand(KERNELS["w0"]))
    for name in ("w1", "w2"):
        np.testing.assert_array_equal(stored[name], KERNELS[name])
    assert [(one["name"], one["layers"], one["zeroed"]) for one in answer.json["pruned"]] == [("w0", ["c0"], 32 * 34)]
    assert (answer.json["before"]["sparse"], answer.json["after"]["sparse"]) == (0, 1)
    assert "measure the accuracy" in answer.json["note"]


def test_prune_overwrites_only_with_force_and_never_the_model(dryfit_command: Any, dense: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.onnx"
    out.write_bytes(b"mine")
    assert "The file already exists" in dryfit_command("sparsity", "prune", dense, "-o", out).err
    assert out.read_bytes() == b"mine"
    assert dryfit_command("sparsity", "prune", dense, "-o", out, "--force").code == 0
    before = dense.read_bytes()
    ended = dryfit_command("sparsity", "prune", dense, "-o", dense, "--force")
    assert (ended.code, dense.read_bytes()) == (2, before)
    assert "The output must not be the model itself" in ended.err


def test_a_forced_build_is_the_build_of_a_pruned_copy(dryfit_command: Any, dense: Path, tmp_path: Path) -> None:
    options = ("--device", "DLA", "--int8", "--precision", "fp16", "--ranges", _ranges(tmp_path), "--fallback", "GPU")
    pruned, before = tmp_path / "pruned.onnx", dense.read_bytes()
    assert dryfit_command("sparsity", "prune", dense, "-o", pruned, *options).code == 0
    forced = dryfit_command("build", dense, "-o", tmp_path / "forced.engine", "--sparsity", "force", *options)
    assert forced.code == 0, forced.err
    assert "1,088 of 2,176 weights of 1 layer were set to 0 in a copy" in forced.err
    dryfit_command("build", pruned, "-o", tmp_path / "pruned.engine", "--sparsity", "enable", *options)
    assert (tmp_path / "forced.engine").read_bytes() == (tmp_path / "pruned.engine").read_bytes()
    assert dense.read_bytes() == before


def _ranges(folder: Path) -> Path:
    path = folder / "ranges.txt"
    path.write_text("".join(f"{name}: 6\n" for name in ("x", "c0", "c1", "c2", "y", "z")))
    return path


def test_an_estimate_counts_the_zeros_that_are_enabled(dryfit_command: Any, sparse: Path, dense: Path) -> None:
    def cycles(path: Path, mode: str) -> int:
        answer = dryfit_command("estimate", path, "--platform", "agx-orin-64", "--int8", "--sparsity", mode, "--json")
        return sum(one["mac_cycles"] for one in answer.json["layers"])

    assert cycles(sparse, "enable") < cycles(sparse, "disable")
    assert cycles(dense, "enable") == cycles(dense, "disable")
    assert cycles(dense, "force") == cycles(sparse, "enable")


@pytest.mark.parametrize(("words", "found"), [("SS-05", "dla.sparsity.output_maps"), ("ss-03", "dla.sparsity.pattern")])
def test_a_rule_is_explained_by_the_number_that_cites_it(dryfit_command: Any, words: str, found: str) -> None:
    printed = dryfit_command("explain-rule", words).out
    assert printed.startswith(f"{found}: ")
    assert "zero weights are not skipped; the layer runs anyway" in printed
    assert dryfit_command("explain-rule", words, "--json").json["number"] == words.upper()


def test_a_number_of_several_rules_lists_them(dryfit_command: Any) -> None:
    listed = [one["rule"] for one in dryfit_command("explain-rule", "SS-01", "--json").json["rules"]]
    assert listed == [f"dla.sparsity.{word}" for word in ("kind", "platform", "precision", "input_format")]
