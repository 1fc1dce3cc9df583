"""Edits are chosen by name, applied to a copy, and leave nothing behind that is not used."""

from __future__ import annotations

import itertools

import numpy as np
import onnx
import pytest
from tests.core.onnx.models import model, numbers

from dryfit.errors import OnnxImportError, PluginError, UnknownNameError
from dryfit.onnx import edits
from dryfit.onnx.editing import edit as edit_module
from dryfit.onnx.editing.edit import EditChoice, all_edits, apply_edits, require_places
from dryfit.onnx.external_data import ExternalData

NOWHERE = ExternalData(None)


def two_averages() -> onnx.ModelProto:
    parsed = model(
        "a = GlobalAveragePool(x) b = GlobalAveragePool(z) y = Add(a, b)",
        inputs="float[N,3,7,7] x, float[N,3,14,14] z",
        outputs="float[N,3,1,1] y",
    )
    for node, name in zip(parsed.graph.node, ("first", "second", "sum"), strict=True):
        node.name = name
    return parsed


def kinds(parsed: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in parsed.graph.node]


def test_an_edit_is_applied_everywhere_or_at_one_node() -> None:
    everywhere = apply_edits(two_averages(), NOWHERE, [EditChoice.parsed("average-pool-cascade")])
    assert everywhere.places == [["first", "second"]]
    assert kinds(everywhere.model) == ["AveragePool", "AveragePool", "AveragePool", "Add"]
    one = apply_edits(two_averages(), NOWHERE, [EditChoice.parsed(" average-pool-cascade@first ")])
    assert one.places == [["first"]]
    assert kinds(one.model) == ["AveragePool", "GlobalAveragePool", "Add"]


def test_unknown_edits_and_nodes_get_the_closest_name() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'average-pool-cascade'"):
        EditChoice.parsed("average-pool-cascades")
    with pytest.raises(UnknownNameError, match="Did you mean 'first'"):
        apply_edits(two_averages(), NOWHERE, [EditChoice.parsed("average-pool-cascade@frist")])


def test_an_edit_without_a_place_is_refused_where_places_are_required() -> None:
    choices = [EditChoice.parsed("average-pool-cascade"), EditChoice.parsed("hard-swish")]
    with pytest.raises(OnnxImportError, match="edit 'hard-swish': The edit does not apply to this model"):
        require_places(apply_edits(two_averages(), NOWHERE, choices))
    require_places(apply_edits(two_averages(), NOWHERE, choices[:1]))


def test_shapes_fix_open_extents_but_not_the_batch() -> None:
    parsed = model("y = GlobalAveragePool(x)", inputs="float[N,3,H,W] x", outputs="float[N,3,1,1] y")
    choices = [EditChoice.parsed("average-pool-cascade")]
    assert apply_edits(parsed, NOWHERE, choices).places == [[]]
    result = apply_edits(parsed, NOWHERE, choices, {"x": (1, 3, 14, 14)})
    assert result.places[0]
    dims = result.model.graph.input[0].type.tensor_type.shape.dim
    assert (dims[0].dim_param, [dim.dim_value for dim in dims[1:]]) == ("N", [3, 14, 14])


def test_constants_and_nodes_that_nothing_uses_any_more_are_removed() -> None:
    parsed = model("f = Flatten(x) y = Gemm(f, w)", inputs="float[N,3,2,2] x", outputs="float[N,4] y",
                   weights={"w": numbers(12, 4)})  # fmt: skip
    result = apply_edits(parsed, NOWHERE, [EditChoice.parsed("gemm-convolution")]).model
    used = {name for node in result.graph.node for name in node.input}
    assert {tensor.name for tensor in result.graph.initializer} <= used
    assert "Flatten" not in kinds(result)


def test_reshapes_that_undo_each_other_go_and_those_of_the_model_stay() -> None:
    parsed = model(
        "a = Relu(x) b = Reshape(a, s) c = Reshape(b, t) d = Relu(c) e = Sigmoid(d) y = Tanh(e)",
        inputs="float[N,4,3] x", outputs="float[N,12] y",
        weights={"s": np.asarray([0, 3, 4], np.int64), "t": np.asarray([0, 12], np.int64)},
    )  # fmt: skip
    result = apply_edits(parsed, NOWHERE, [EditChoice.parsed("rank-four")]).model
    assert kinds(result) == ["Reshape", "Relu", "Reshape", "Relu", "Sigmoid", "Tanh", "Reshape"]


def test_names_that_the_model_has_are_not_taken() -> None:
    parsed = two_averages()
    parsed.graph.node[2].name = "first_0"
    result = apply_edits(parsed, NOWHERE, [EditChoice.parsed("average-pool-cascade")]).model
    names = [node.name for node in result.graph.node]
    assert len(set(names)) == len(names)


def test_values_that_a_branch_uses_are_kept() -> None:
    branch = onnx.helper.make_graph(
        [onnx.helper.make_node("Identity", ["a"], ["inner"])], "branch", [],
        [onnx.helper.make_tensor_value_info("inner", onnx.TensorProto.FLOAT, [1, 3, 1, 1])],
    )  # fmt: skip
    parsed = model(
        "a = GlobalAveragePool(x) y = Relu(a)", inputs="float[1,3,7,7] x, bool c", outputs="float[1,3,1,1] y"
    )
    parsed.graph.node.append(onnx.helper.make_node("If", ["c"], ["z"], then_branch=branch, else_branch=branch))
    parsed.graph.output.append(onnx.helper.make_tensor_value_info("z", onnx.TensorProto.FLOAT, [1, 3, 1, 1]))
    result = apply_edits(parsed, NOWHERE, [EditChoice.parsed("average-pool-cascade")]).model
    assert kinds(result) == ["AveragePool", "Relu", "If"]
    assert result.graph.node[0].output[0] == "a"
    onnx.checker.check_model(result, full_check=True)


def test_models_before_ir_version_4_declare_new_constants_as_inputs() -> None:
    parsed = model("y = HardSigmoid(x)", inputs="float[1,3,4,4] x", outputs="float[1,3,4,4] y", opset=8)
    parsed.ir_version = 3
    result = apply_edits(parsed, NOWHERE, [EditChoice.parsed("hard-swish")]).model
    assert {tensor.name for tensor in result.graph.initializer} <= {info.name for info in result.graph.input}
    onnx.checker.check_model(result)


def test_a_module_of_edits_without_an_edit_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    (tmp_path / "empty_edit.py").write_text('"""Nothing."""\n')  # type: ignore[operator]
    monkeypatch.setattr(edits, "__path__", [*edits.__path__, str(tmp_path)])
    edit_module.all_edits.cache_clear()
    try:
        with pytest.raises(PluginError, match=r"empty_edit.*found none"):
            all_edits()
    finally:
        edit_module.all_edits.cache_clear()


def softmaxes(count: int) -> onnx.ModelProto:
    values = ["x", *(f"v{index}" for index in range(count - 1)), "y"]
    nodes = " ".join(f"{after} = Softmax({before})" for before, after in itertools.pairwise(values))
    return model(nodes, inputs="float[1,10] x", outputs="float[1,10] y")


def test_shapes_are_inferred_once_for_each_node_however_many_are_rewritten(monkeypatch: pytest.MonkeyPatch) -> None:
    inferred: list[int] = []
    whole = onnx.shape_inference.infer_shapes

    def counted(skeleton: onnx.ModelProto, **options: bool) -> onnx.ModelProto:
        inferred.append(len(skeleton.graph.node))
        return whole(skeleton, **options)

    monkeypatch.setattr(onnx.shape_inference, "infer_shapes", counted)
    counts = []
    for count in (20, 80):
        inferred.clear()
        edited = apply_edits(softmaxes(count), NOWHERE, [EditChoice.parsed("rank-four")])
        assert len(edited.places[0]) == count
        assert kinds(edited.model).count("Reshape") < count
        counts.append(sum(inferred))
    assert counts[1] <= 4 * counts[0]
