"""Each edit keeps what a model computes, as ONNX Runtime sees it, and does nothing where it has no place."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from tests.core.onnx.edits.edit_cases import CHANGED, UNCHANGED, Case
from tests.core.onnx.models import model, numbers, run_runtime

from dryfit.onnx.editing.edit import EditChoice, all_edits, apply_edits
from dryfit.onnx.editing.equality import prove_equal
from dryfit.onnx.external_data import ExternalData
from dryfit.plugins import registry

NOWHERE = ExternalData(None)


def edited(case: Case, source: onnx.ModelProto) -> tuple[onnx.ModelProto, list[str]]:
    result = apply_edits(source, NOWHERE, [EditChoice.parsed(case.edit)])
    return result.model, list(result.places[0])


def feeds_of(source: onnx.ModelProto, batch: int) -> dict[str, np.ndarray]:
    dims = source.graph.input[0].type.tensor_type.shape.dim
    return {"x": 4 * numbers(*(dim.dim_value or batch for dim in dims), seed=batch)}


@pytest.mark.parametrize("case", CHANGED, ids=str)
def test_an_edited_model_computes_the_same(case: Case) -> None:
    source = case.model
    before = source.SerializeToString()
    result, places = edited(case, source)
    assert places
    assert source.SerializeToString() == before
    onnx.checker.check_model(result, full_check=True)
    assert tuple(sorted({node.op_type for node in result.graph.node} - {"Shape"})) == case.kinds
    for batch in (1, 3):
        feeds = feeds_of(source, batch)
        for old, new in zip(run_runtime(source, feeds), run_runtime(result, feeds), strict=True):
            assert old.shape == new.shape
            np.testing.assert_allclose(new, old, rtol=1e-4, atol=1e-5 * np.abs(old).max())
    assert prove_equal(source, result).largest_difference < 1e-5


@pytest.mark.parametrize("case", CHANGED, ids=str)
def test_an_edit_finds_nothing_in_what_it_made(case: Case) -> None:
    result, _ = edited(case, case.model)
    again, places = edited(case, result)
    assert not places
    assert again.graph.node == result.graph.node


@pytest.mark.parametrize("case", CHANGED, ids=str)
def test_inputs_and_outputs_keep_names_types_and_shapes(case: Case) -> None:
    source = case.model
    result, _ = edited(case, source)
    assert result.graph.input == source.graph.input
    assert result.graph.output == source.graph.output


@pytest.mark.parametrize("case", UNCHANGED, ids=str)
def test_a_model_without_a_place_for_an_edit_stays_as_it_is(case: Case) -> None:
    source = case.model
    result, places = edited(case, source)
    assert not places
    assert result.graph.node == source.graph.node


def test_every_edit_has_models_that_it_changes_and_models_that_it_does_not() -> None:
    assert {case.edit for case in CHANGED} == {case.edit for case in UNCHANGED} == set(all_edits())


def test_every_rule_that_an_edit_is_for_is_a_rule_of_a_device() -> None:
    known = {
        rule.id.partition(".")[2]
        for target in registry.targets().values()
        if target.limits is not None
        for rule in target.limits.all_rules
    }
    unknown = {edit.id: sorted(edit.cures - known) for edit in all_edits().values() if edit.cures - known}
    assert not unknown


@pytest.mark.parametrize("edit", all_edits().values(), ids=lambda edit: edit.id)
def test_an_edit_says_what_it_does_and_why(edit: object) -> None:
    for field in ("title", "changes", "source", "cures"):
        assert getattr(edit, field)


@pytest.mark.parametrize("extents", [(height, width) for height in (1, 8, 9, 13, 26, 31, 49, 64) for width in (5, 56)])
@pytest.mark.parametrize("which", ["Average", "Max"])
def test_every_window_of_a_cascade_is_small(which: str, extents: tuple[int, int]) -> None:
    source = model(
        f"y = Global{which}Pool(x)", inputs=f"float[1,2,{extents[0]},{extents[1]}] x", outputs="float[1,2,1,1] y"
    )
    choice = EditChoice.parsed(f"{which.lower()}-pool-cascade")
    result = apply_edits(source, NOWHERE, [choice]).model
    for node in result.graph.node:
        attributes = {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}
        assert max(attributes["kernel_shape"]) <= (8 if node.op_type.endswith("Pool") else 32)
        assert max(attributes.get("pads", [0])) <= 7
    feeds = {"x": numbers(1, 2, *extents)}
    np.testing.assert_allclose(run_runtime(result, feeds)[0], run_runtime(source, feeds)[0], rtol=1e-5, atol=1e-6)


def test_a_node_keeps_its_name_where_it_is_replaced() -> None:
    source = model("f = Flatten(x) y = Gemm(f, w)", inputs="float[N,3,2,2] x", outputs="float[N,4] y",
                   weights={"w": numbers(12, 4)})  # fmt: skip
    source.graph.node[1].name = "classifier"
    result = apply_edits(source, NOWHERE, [EditChoice.parsed("gemm-convolution")]).model
    (convolution,) = [node for node in result.graph.node if node.op_type == "Conv"]
    assert convolution.name == "classifier"


def test_sixteen_bit_models_are_edited_in_their_type() -> None:
    source = model("y = GlobalAveragePool(x)", inputs="float16[1,3,13,13] x", outputs="float16[1,3,1,1] y")
    result = apply_edits(source, NOWHERE, [EditChoice.parsed("average-pool-cascade")]).model
    assert prove_equal(source, result).largest_difference < 4e-3
