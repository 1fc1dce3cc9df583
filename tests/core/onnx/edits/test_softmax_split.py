"""What a split softmax is made of, and how the edit meets other ranks and types."""

from __future__ import annotations

import onnx
from tests.core.onnx.models import model

from dryfit.onnx.editing.edit import EditChoice, apply_edits
from dryfit.onnx.editing.equality import prove_equal
from dryfit.onnx.external_data import ExternalData


def test_each_part_has_one_position_and_the_shorter_axis_gives_the_rows() -> None:
    source = model("y = Softmax <axis = 2> (x)", inputs="float[N,2,1100,3] x", outputs="float[N,2,1100,3] y")
    result = apply_edits(source, ExternalData(None), [EditChoice.parsed("softmax-split")]).model
    inferred = onnx.shape_inference.infer_shapes(result)
    shapes = {
        info.name: [dim.dim_value for dim in info.type.tensor_type.shape.dim][1:] for info in inferred.graph.value_info
    }
    parts = [node for node in result.graph.node if node.op_type == "Softmax"]
    assert [shapes[node.input[0]] for node in parts] == [[1, 1, 1100]] * 6
    rows = [list(node.input) for node in result.graph.node if node.op_type == "Concat"]
    outputs = [node.output[0] for node in parts]
    assert rows[:2] == [outputs[:3], outputs[3:]]
    assert all(len(shape) == 3 for shape in shapes.values())


def test_a_softmax_of_rank_three_is_split_once_it_is_lifted() -> None:
    source = model("y = Softmax <axis = 2> (x)", inputs="float[N,3,1100] x", outputs="float[N,3,1100] y")
    choices = [EditChoice.parsed(text) for text in ("rank-four", "softmax-split")]
    edited = apply_edits(source, ExternalData(None), choices)
    assert all(edited.places)
    assert sum(node.op_type == "Softmax" for node in edited.model.graph.node) == 3
    assert prove_equal(source, edited.model).largest_difference < 1e-5


def test_sixteen_bit_softmaxes_are_split_in_their_type() -> None:
    source = model("y = Softmax(x)", inputs="float16[1,3,1,1100] x", outputs="float16[1,3,1,1100] y")
    result = apply_edits(source, ExternalData(None), [EditChoice.parsed("softmax-split")]).model
    assert prove_equal(source, result).largest_difference < 1e-3
