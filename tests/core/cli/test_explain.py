"""`dryfit explain`: reasons, edits with what they save, and edited models that are proved before they are written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from tests.core.onnx.models import model, numbers, run_runtime
from tests.schemas import validate

from dryfit.answers.explain import ExplainAnswer
from dryfit.builder import build
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.engine.progress import TerminalProgress
from dryfit.network.network import Network
from dryfit.network.printing import network_text
from dryfit.onnx.editing import edit as edit_module
from dryfit.onnx.editing.edit import Edit, all_edits

ORIN = ("--device", "dla", "--platform", "orin", "--software", "10.3")
DIGITS = (*ORIN, "--shape", "image=1x1x8x8")


@pytest.fixture
def average_model(tmp_path: Path) -> Path:
    """A convolution, a global average over 14x14, and a classifier."""
    parsed = model(
        "a = Conv <pads = [1, 1, 1, 1]> (x, v) b = GlobalAveragePool(a) f = Flatten(b) y = Gemm(f, w)",
        inputs="float[N,3,14,14] x",
        outputs="float[N,4] y",
        weights={"v": numbers(6, 3, 3, 3), "w": numbers(6, 4, seed=1)},
    )
    for node, name in zip(parsed.graph.node, ("conv", "average", "flatten", "classifier"), strict=True):
        node.name = name
    path = tmp_path / "model.onnx"
    path.write_bytes(parsed.SerializeToString())
    return path


def test_the_answer_is_what_the_schema_promises(dryfit_command: Any, digits_model: Path, average_model: Path) -> None:
    for command in (
        (digits_model, *DIGITS),
        (digits_model, "softmax", *DIGITS),
        (digits_model,),
        (average_model, *ORIN),
        (digits_model, *DIGITS, "--no-edits"),
    ):
        answer = dryfit_command("explain", *command, "--json").json
        validate(answer, ExplainAnswer.schema())


def test_every_violation_of_every_layer_is_there_and_grouped_by_its_rule(
    dryfit_command: Any, digits_model: Path
) -> None:
    answer = dryfit_command("explain", digits_model, *DIGITS, "--json").json
    layers = {layer["name"]: layer for layer in answer["layers"]}
    (violation,) = layers["elu2"]["violations"]
    assert violation["rule"] == "dla.activation.type"
    assert violation["actual"] == "ELU"
    assert "RELU" in violation["allowed"]
    assert violation["source"]
    failed = {(one["rule"], name) for name, layer in layers.items() for one in layer["violations"]}
    assert failed == {(cause["rule"], name) for cause in answer["causes"] for name in cause["layers"]}
    assert answer["summary"]["layers_leaving"] == sum(layer["device"] != "DLA" for layer in layers.values())


def test_what_was_not_said_is_assumed_and_told(dryfit_command: Any, digits_model: Path) -> None:
    answer = dryfit_command("explain", digits_model, *DIGITS, "--json").json
    assert answer["assumed"] == ["--precision fp16", "--fallback GPU"]
    assert (answer["precisions"], answer["fallback"]) == (["fp16"], "GPU")
    said = dryfit_command("explain", digits_model, *DIGITS, "--precision", "fp32", "--fallback", "gpu", "--json").json
    assert not said["assumed"]
    assert {cause["rule"] for cause in said["causes"]} >= {"dla.precision"}


def test_a_standalone_loadable_has_no_fallback_by_default(dryfit_command: Any, digits_model: Path) -> None:
    answer = dryfit_command("explain", digits_model, "--device", "DLA", "--standalone", "--json").json
    assert answer["assumed"][-1] == "--fallback none"


def test_a_standalone_loadable_is_for_the_device_that_has_loadables(dryfit_command: Any, digits_model: Path) -> None:
    answer = dryfit_command("explain", digits_model, "--standalone", "--json").json
    assert answer["assumed"] == ["--device DLA", "--precision fp16", "--fallback none"]


def test_causes_are_weighed_by_multiply_accumulates(dryfit_command: Any, average_model: Path) -> None:
    everything = 6 * 14 * 14 * 3 * 9 + 6 * 4
    answer = dryfit_command("explain", average_model, *ORIN, "--shape", "x=1x3x14x14", "--json").json
    assert answer["summary"]["macs"] == everything
    assert answer["summary"]["macs_leaving"] == 0
    dynamic = dryfit_command("explain", average_model, *ORIN, "--json").json
    assert dynamic["dynamic_inputs"] == ["x"]
    assert dynamic["causes"][0]["rule"] == "dla.dynamic_dimensions"
    assert dynamic["causes"][0]["macs_share"] == 1


def test_edits_are_measured_and_the_figures_are_those_of_check(
    dryfit_command: Any, average_model: Path, tmp_path: Path
) -> None:
    shape = ("--shape", "x=1x3x14x14")
    answer = dryfit_command("explain", average_model, *ORIN, *shape, "--json").json
    edits = {edit["apply"]: edit for edit in answer["edits"]}
    assert edits["average-pool-cascade"]["nodes"] == ["average"]
    assert edits["average-pool-cascade"]["saved"]["refused_layers"] == 1
    best = answer["together"] or answer["edits"][0]
    new = tmp_path / "new.onnx"
    assert dryfit_command("explain", average_model, *ORIN, *shape, "--apply", best["apply"], "-o", new).code == 0
    for path, cost in ((average_model, best["before"]), (new, best["after"])):
        options = (*ORIN, *shape, "--precision", "fp16", "--fallback", "GPU", "--json")
        summary = dryfit_command("check", path, *options).json["summary"]
        assert summary["fallback_layers"] == cost["refused_layers"]
        assert summary["segments_by_device"]["DLA"] == cost["loadables"]
        assert summary["reformat_bytes"] == cost["border_bytes"]


def test_one_layer_is_explained_by_its_name_or_its_node(dryfit_command: Any, average_model: Path) -> None:
    shape = ("--shape", "x=1x3x14x14")
    answer = dryfit_command("explain", average_model, "average", *ORIN, *shape, "--json").json
    assert [layer["name"] for layer in answer["layers"]] == ["average"]
    assert [edit["apply"] for edit in answer["edits"]] == ["average-pool-cascade"]
    text = dryfit_command("explain", average_model, "average", *ORIN, *shape).out
    for part in ("violates dla.reduce.operation", "actual    AVG", "allowed   MAX", "remedy", "source"):
        assert part in text
    unknown = dryfit_command("explain", average_model, "averige", *ORIN, *shape)
    assert unknown.code == 2
    assert "Did you mean 'average'?" in unknown.err


def test_the_text_has_reasons_causes_and_edits(dryfit_command: Any, average_model: Path) -> None:
    text = dryfit_command("explain", average_model, *ORIN, "--shape", "x=1x3x14x14").out
    for part in (
        "Defaults: --precision fp16 --fallback GPU",
        "average (reduce): op must be MAX (found AVG) [dla.reduce.operation]",
        "dla.reduce.operation: 1 layer, 0 % of multiply-accumulates",
        "Suggested model edits (each applied alone)",
        "average-pool-cascade",
        "Apply with: --apply ",
    ):
        assert part in text


def test_a_device_that_takes_everything_has_nothing_to_explain(dryfit_command: Any, average_model: Path) -> None:
    ended = dryfit_command("explain", average_model)
    assert ended.code == 0
    assert "All layers run on GPU" in ended.out


def test_an_edited_model_computes_the_same_and_keeps_its_open_batch(
    dryfit_command: Any, average_model: Path, tmp_path: Path
) -> None:
    new = tmp_path / "new.onnx"
    ended = dryfit_command(
        "explain", average_model, "--apply", "average-pool-cascade,gemm-convolution", "-o", new, "--json"
    )
    assert [edit["nodes"] for edit in ended.json["edits"]] == [["average"], ["classifier"]]
    assert ended.json["proof"]["largest_difference"] <= ended.json["proof"]["tolerance"]
    edited, source = onnx.load(new), onnx.load(average_model)
    assert {node.op_type for node in edited.graph.node} == {"Conv", "AveragePool", "Reshape"}
    feeds = {"x": numbers(5, 3, 14, 14, seed=7)}
    np.testing.assert_allclose(run_runtime(edited, feeds)[0], run_runtime(source, feeds)[0], rtol=1e-5, atol=1e-5)


def test_a_file_is_overwritten_only_when_that_is_asked_for(
    dryfit_command: Any, average_model: Path, tmp_path: Path
) -> None:
    before = average_model.read_bytes()
    apply = ("explain", average_model, "--apply", "average-pool-cascade", "-o")
    refused = dryfit_command(*apply, average_model)
    assert refused.code == 2
    assert "--force" in refused.err
    assert average_model.read_bytes() == before
    assert dryfit_command(*apply, average_model, "--force").code == 0
    assert average_model.read_bytes() != before
    assert [path.name for path in tmp_path.iterdir()] == ["model.onnx"]


def test_an_edit_that_changes_results_is_refused_and_nothing_is_written(
    dryfit_command: Any, average_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(graph: Any, node: Any) -> bool:
        if node.op_type == "GlobalAveragePool":
            graph.replace(node, [graph.new_node("GlobalMaxPool", node.input, name="wrong", output=node.output[0])])
            return True
        return False

    edits = {**all_edits(), "wrong": Edit("wrong", "a lie", ["reduce.operation"], "average to maximum", "none", wrong)}
    monkeypatch.setattr(edit_module, "all_edits", lambda: edits)
    ended = dryfit_command("explain", average_model, "--apply", "wrong", "-o", tmp_path / "new.onnx")
    assert ended.code == 2
    assert "The outputs of the edited model differ by more than the tolerance" in ended.err
    assert "value 'b', random inputs of seed 0" in ended.err
    assert not (tmp_path / "new.onnx").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--apply", "average-pool-cascade"), "--apply and --output must be given together"),
        (("-o", "new.onnx"), "--apply and --output must be given together"),
        (
            ("average", "--apply", "average-pool-cascade", "-o", "new.onnx"),
            "--apply does not take LAYER: name a node by ID@NODE",
        ),
        (("--apply", "hard-swish", "-o", "new.onnx"), "edit 'hard-swish': The edit does not apply to this model"),
        (("--apply", "hard-swich", "-o", "new.onnx"), "Did you mean 'hard-swish'?"),
        (("--apply", ",", "-o", "new.onnx"), "must name an edit"),
        (("--apply", "average-pool-cascade@convv", "-o", "new.onnx"), "Did you mean 'conv'?"),
        (("--apply", "average-pool-cascade", "-o", "missing/new.onnx"), "cannot be written"),
        (("--shape", "x=1x3", "--apply", "average-pool-cascade", "-o", "new.onnx"), "must match the model's input"),
    ],
)
def test_a_wrong_use_is_told(
    dryfit_command: Any,
    average_model: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    arguments: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = dryfit_command("explain", average_model, *arguments)
    assert ended.code == 2
    assert message in ended.err
    assert not (tmp_path / "new.onnx").exists()


def test_an_edit_of_a_layer_that_a_placement_names_is_told_to_be_unmeasured(
    dryfit_command: Any, digits_model: Path, tmp_path: Path
) -> None:
    placement = tmp_path / "placement.json"
    placement.write_text('{"classifier/shuffle": "GPU"}')
    answer = dryfit_command("explain", digits_model, *DIGITS, "--placement", placement, "--json").json
    unmeasured = {one["id"]: one["reason"] for one in answer["unmeasured_edits"]}
    assert "'classifier/shuffle'" in unmeasured["gemm-convolution"]
    assert "average-pool-cascade" in {edit["apply"] for edit in answer["edits"]}


@pytest.mark.parametrize(
    ("name", "edits"),
    [
        pytest.param("yolox_nano_416", {"strided-slice-convolution", "max-pool-cascade"}, marks=pytest.mark.nightly),
        ("mobilenetv2-fp32", {"average-pool-cascade", "rank-four"}),
        ("squeezenet1.1-fp32", {"average-pool-cascade"}),
    ],
)
def test_edits_of_trained_networks_save_what_they_promise(
    dryfit_command: Any, shared_models: Path, name: str, edits: set[str]
) -> None:
    answer = dryfit_command("explain", shared_models / f"{name}.onnx", *ORIN, "--json").json
    assert edits <= {edit["apply"] for edit in answer["edits"]}
    assert all(edit["saved"]["refused_layers"] > 0 for edit in answer["edits"])


def test_what_is_tried_is_shown_on_a_terminal_and_nothing_elsewhere(
    dryfit_command: Any, average_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    phases: list[str] = []

    class Recorder(TerminalProgress):
        def phase_start(self, phase_name: str, parent_phase: str | None, num_steps: int) -> None:
            phases.append(phase_name)
            super().phase_start(phase_name, parent_phase, num_steps)

    monkeypatch.setattr("dryfit.engine.progress.TerminalProgress", Recorder)
    done = dryfit_command("explain", str(average_model), "--shape", "x=1x3x14x14", *ORIN)
    assert done.code == 0
    assert {"Trying formats of inputs and outputs", "Trying edits", "Trying edits together"} <= set(phases)
    assert "Trying" not in done.err


def test_the_network_as_it_is_is_designed_once(
    dryfit_command: Any, average_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    designed: list[tuple[str, ...]] = []
    whole = build.design_network

    def counted(network: Network, config: BuilderConfig, *given: Any, **options: Any) -> Any:
        tensors = (*network.inputs, *network.outputs)
        designed.append((network_text(network), *(f"{one.dtype} {one.allowed_formats}" for one in tensors)))
        return whole(network, config, *given, **options)

    monkeypatch.setattr(build, "design_network", counted)
    assert dryfit_command("explain", str(average_model), "--shape", "x=1x3x14x14", *ORIN).code == 0
    assert len(designed) == len(set(designed)) > 2


def test_a_layer_that_does_not_exist_is_answered_with_the_closest_and_not_with_all(
    dryfit_command: Any, tmp_path: Path
) -> None:
    nodes = " ".join(f"x{index + 1} = Relu (x{index})" for index in range(40))
    text = f'<ir_version: 8, opset_import: ["" : 17]> g (float[1,3,4,4] x0) => (float[1,3,4,4] x40) {{ {nodes} }}'
    path = tmp_path / "chain.onnx"
    path.write_bytes(onnx.parser.parse_model(text).SerializeToString())
    ended = dryfit_command("explain", path, "nod_of_x7", *ORIN)
    assert ended.code == 2
    assert "Did you mean 'node_of_x7'?" in ended.err
    assert len(ended.err) < 400
