"""Nodes behind refused ones are looked at too: one import names everything that has to be changed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from dryfit.network.network import Network
from dryfit.onnx.importer import network_from_onnx
from dryfit.onnx.parser import OnnxParser
from dryfit.onnx.problems import ModelRefusedError

REFUSED = helper.make_node("NoSuchThing", ["x"], ["a"], name="first")


def refused(
    nodes: Sequence[onnx.NodeProto],
    *,
    stated: dict[str, Sequence[int | str]] | None = None,
    weights: dict[str, np.ndarray] | None = None,
    elem_type: int = TensorProto.FLOAT,
    **options: object,
) -> ModelRefusedError:
    """The refusal of these nodes; `stated` are shapes that the model gives for values in between."""
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, 8, 8])],
        [helper.make_empty_tensor_value_info(nodes[-1].output[0])],
        initializer=[onnx.numpy_helper.from_array(array, name) for name, array in (weights or {}).items()],
        value_info=[helper.make_tensor_value_info(name, elem_type, dims) for name, dims in (stated or {}).items()],
    )
    parsed = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 16)], **options)
    with pytest.raises(ModelRefusedError) as caught:
        network_from_onnx(parsed)
    return caught.value


def names(error: ModelRefusedError) -> list[str]:
    return [problem.node_name for problem in error.problems]


def test_every_offending_node_of_a_chain_is_listed() -> None:
    weights = {
        "rois": np.zeros((1, 4), np.float32),
        "batch": np.zeros(1, np.int64),
        "scales": np.ones(4, np.float32),
    }
    nodes = [
        helper.make_node("MaxRoiPool", ["x", "rois"], ["a"], name="maxima", pooled_shape=[2, 2]),
        helper.make_node(
            "Resize", ["a", "", "scales"], ["b"], name="resize", coordinate_transformation_mode="somewhere"
        ),
        helper.make_node("RoiAlign", ["b", "rois", "batch"], ["c"], name="align", mode="zzz"),
        helper.make_node("AveragePool", ["c"], ["d"], name="pool", kernel_shape=[2, 2], auto_pad="WRONG"),
        helper.make_node("MaxUnpool", ["d", "batch"], ["y"], name="back", kernel_shape=[2, 2]),
    ]
    error = refused(nodes, weights=weights)
    assert names(error) == ["maxima", "resize", "align", "pool", "back"]
    assert "'mode' is not supported (found zzz; allowed: avg, max)" in error.problems[2].reason
    assert error.half_seen_nodes == 0
    assert "could not be" not in str(error)


def test_what_cannot_be_judged_without_its_input_is_counted_in_the_last_line() -> None:
    nodes = [
        REFUSED,
        helper.make_node("Softmax", ["a"], ["b"], name="fine perhaps", axis=9),
        helper.make_node("Transpose", ["b"], ["y"], name="also", perm=[0]),
    ]
    error = refused(nodes)
    assert names(error) == ["first"]
    assert str(error).splitlines()[-1] == "  2 nodes after rejected ones could not be fully checked"
    assert str(refused(nodes[:2])).splitlines()[-1] == "  1 node after rejected ones could not be fully checked"


def test_what_the_model_states_of_a_missing_value_is_used() -> None:
    nodes = [
        REFUSED,
        helper.make_node("Relu", ["a"], ["b"], name="fine"),
        helper.make_node("Transpose", ["b"], ["c"], name="axes", perm=[0]),
        helper.make_node("MaxPool", ["b"], ["y"], name="window", kernel_shape=[9, 9]),
    ]
    error = refused(nodes, stated={"a": [1, 2, "height", 8]})
    assert names(error) == ["first", "axes", "window"]
    assert "larger than the padded input" in error.problems[2].reason
    assert error.half_seen_nodes == 0


def test_an_attribute_that_is_read_after_the_shape_is_seen_too() -> None:
    nodes = [REFUSED, helper.make_node("Pad", ["a", "pads"], ["y"], name="pad", mode="mirror")]
    error = refused(nodes, weights={"pads": np.zeros(8, np.int64)})
    assert names(error) == ["first", "pad"]
    assert "found mirror" in error.problems[1].reason


@pytest.mark.parametrize("stated", [None, {"a": [2]}])
def test_contents_that_a_refused_node_might_have_made_known_are_no_reason(stated: dict[str, list[int]] | None) -> None:
    nodes = [
        REFUSED,
        helper.make_node("Reshape", ["x", "a"], ["b"], name="reshape"),
        helper.make_node("ReduceMean", ["b"], ["c"], name="mean", axes=[3]),
        helper.make_node("Tile", ["x", "a"], ["y"], name="tile"),
    ]
    error = refused(nodes, stated=stated, elem_type=TensorProto.INT64)
    assert names(error) == ["first"]
    assert error.half_seen_nodes == 3


def test_a_dynamic_extent_that_the_model_states_is_no_reason() -> None:
    nodes = [REFUSED, helper.make_node("Conv", ["x", "a"], ["y"], name="conv")]
    error = refused(nodes, stated={"a": ["maps", 2, 3, 3]})
    assert names(error) == ["first"]
    assert error.half_seen_nodes == 1


def test_nodes_inside_a_function_behind_a_refused_node_are_listed() -> None:
    opset = [helper.make_opsetid("", 16), helper.make_opsetid("own", 1)]
    body = [
        helper.make_node("Neg", ["v"], ["w"], name="fine"),
        helper.make_node("AveragePool", ["w"], ["z"], name="pool", kernel_shape=[2, 2], auto_pad="WRONG"),
    ]
    function = helper.make_function("own", "F", ["v"], ["z"], body, opset)
    graph = helper.make_graph(
        [REFUSED, helper.make_node("F", ["a"], ["y"], name="call", domain="own")],
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, 8, 8])],
        [helper.make_empty_tensor_value_info("y")],
    )
    parsed = helper.make_model(graph, opset_imports=opset, functions=[function], ir_version=8)
    with pytest.raises(ModelRefusedError) as caught:
        network_from_onnx(parsed)
    assert names(caught.value) == ["first", "call/pool"]


def test_looking_behind_a_refused_node_adds_nothing_to_the_network() -> None:
    graph = helper.make_graph(
        [REFUSED, helper.make_node("Add", ["a", "x"], ["b"]), helper.make_node("Relu", ["b"], ["y"])],
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2])],
        [helper.make_empty_tensor_value_info("y")],
        value_info=[helper.make_tensor_value_info("a", TensorProto.FLOAT, [1, 2])],
    )
    network = Network()
    parser = OnnxParser(network)
    assert not parser.parse(helper.make_model(graph).SerializeToString())
    assert parser.num_errors == 1
    assert [tensor.name for tensor in network.tensors] == ["x"]


def test_a_window_that_is_larger_than_the_input_is_refused_with_its_node() -> None:
    weights = {"w": np.zeros((3, 2, 7), np.float32)}
    for node in (
        helper.make_node("Conv", ["x", "w"], ["y"], name="wide"),
        helper.make_node("MaxPool", ["x"], ["y"], name="wide", kernel_shape=[7]),
        helper.make_node("AveragePool", ["x"], ["y"], name="wide", kernel_shape=[7]),
        helper.make_node("LpPool", ["x"], ["y"], name="wide", kernel_shape=[7]),
    ):
        graph = helper.make_graph(
            [node],
            "net",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, 5])],
            [helper.make_empty_tensor_value_info("y")],
            initializer=[onnx.numpy_helper.from_array(array, name) for name, array in weights.items()],
        )
        with pytest.raises(ModelRefusedError, match="larger than the padded input") as caught:
            network_from_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]))
        assert names(caught.value) == ["wide"]
