"""Names, metadata, borders and reasons: what an import keeps, and what it says when it cannot be done."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from tests.core.onnx.models import assert_agrees, model, numbers, run

from dryfit.errors import OnnxImportError
from dryfit.network.data_types import DataType
from dryfit.onnx.importer import network_from_onnx
from dryfit.onnx.problems import ErrorCode, ModelRefusedError
from dryfit.reference.executor import run_reference


def named(
    nodes: list[onnx.NodeProto], outputs: list[str], inputs: tuple[str, ...] = ("x",), **options: object
) -> onnx.ModelProto:
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 2, 4, 4]) for name in inputs]
    graph = helper.make_graph(nodes, "net", infos, [helper.make_empty_tensor_value_info(name) for name in outputs])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], **options)


def test_layers_and_tensors_have_the_names_of_nodes_and_values() -> None:
    network = network_from_onnx(
        named(
            [
                helper.make_node("Relu", ["x"], ["first"], name="relu one"),
                helper.make_node("Sigmoid", ["first"], ["second"]),
                helper.make_node("HardSwish", ["second"], ["y"], name="swish"),
            ],
            ["y"],
        )
    )
    assert [layer.name for layer in network] == ["relu one", "node_of_second", "swish/activation", "swish"]
    assert [layer.onnx_nodes for layer in network] == [("relu one",), ("node_of_second",), ("swish",), ("swish",)]
    assert network.layers[0].metadata == "[ONNX Layer: relu one]"
    assert [layer.outputs[0].name for layer in network][:2] == ["first", "second"]
    assert network.outputs[0].name == "y"
    assert network.name == "net"


def test_two_nodes_of_one_name_are_told_apart() -> None:
    nodes = [helper.make_node("Relu", ["x"], ["a"], name="n"), helper.make_node("Tanh", ["a"], ["y"], name="n")]
    assert [layer.name for layer in network_from_onnx(named(nodes, ["y"]))] == ["n", "n_1"]


def test_metadata_of_model_and_nodes_are_kept() -> None:
    node = helper.make_node("Relu", ["x"], ["y"], name="r")
    node.metadata_props.append(onnx.StringStringEntryProto(key="scope", value="encoder"))
    parsed = named([node], ["y"], producer_name="trainer", producer_version="2.1")
    parsed.metadata_props.append(onnx.StringStringEntryProto(key="licence", value="CC0"))
    network = network_from_onnx(parsed)
    assert network.layers[0].metadata == "[ONNX Layer: r] [scope: encoder]"
    assert network.metadata == {"onnx_producer": "trainer 2.1", "onnx_opsets": "ai.onnx 13", "licence": "CC0"}


def test_outputs_that_are_inputs_or_other_outputs_keep_their_names() -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("Dropout", ["a"], ["b"]),
        helper.make_node("Dropout", ["x"], ["c"]),
    ]
    parsed = named(nodes, ["a", "b", "c", "x"])
    network = network_from_onnx(parsed)
    assert [tensor.name for tensor in network.inputs] == ["x"]
    assert [tensor.name for tensor in network.outputs] == ["a", "b", "c", "x"]
    assert [layer.kind for layer in network] == ["activation", "identity", "identity"]
    x = numbers(1, 2, 4, 4)
    for output, expected in zip(run(parsed, {"x": x}), [np.maximum(x, 0), np.maximum(x, 0), x, x], strict=True):
        np.testing.assert_array_equal(output, expected)


def test_an_output_that_is_known_is_a_constant() -> None:
    parsed = model("y = Constant<value_floats=[1.0, 2.0]>()", inputs="", outputs="float[2] y")
    assert [layer.kind for layer in network_from_onnx(parsed)] == ["constant"]
    np.testing.assert_array_equal(run(parsed, {})[0], np.array([1, 2], np.float32))


def test_nodes_in_any_order_are_imported() -> None:
    nodes = [
        helper.make_node("Tanh", ["b"], ["y"]),
        helper.make_node("Sigmoid", ["a"], ["b"]),
        helper.make_node("Relu", ["x"], ["a"]),
    ]
    assert [layer.name for layer in network_from_onnx(named(nodes, ["y"]))] == ["node_of_a", "node_of_b", "node_of_y"]


def test_layers_that_nothing_uses_are_left_out() -> None:
    nodes = [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Tanh", ["x"], ["unused"])]
    assert [layer.kind for layer in network_from_onnx(named(nodes, ["y"]))] == ["activation"]


def test_a_shared_constant_becomes_one_layer() -> None:
    parsed = model(
        "a = Add(x, w) b = Mul(a, w) y = Sub(b, w)",
        inputs="float[3] x",
        outputs="float[3] y",
        weights={"w": numbers(3)},
    )
    network = network_from_onnx(parsed)
    assert [layer.kind for layer in network] == ["constant", "elementwise", "elementwise", "elementwise"]
    assert (network.layers[0].name, network.layers[0].outputs[0].name) == ("w", "w")


def test_an_input_can_be_fixed() -> None:
    parsed = model("y = Reshape(x, s)", inputs="float[2,6] x, int64[2] s", outputs="float[?,?] y")
    assert [tensor.name for tensor in network_from_onnx(parsed).inputs] == ["x", "s"]
    network = network_from_onnx(parsed, constants={"s": np.array([3, -1])})
    assert [tensor.name for tensor in network.inputs] == ["x"]
    assert network.outputs[0].shape == (3, 4)


def test_functions_of_the_model_are_written_out() -> None:
    opset = [helper.make_opsetid("", 13), helper.make_opsetid("own", 1)]
    leaky = helper.make_node("LeakyRelu", ["a"], ["b"])
    leaky.attribute.append(onnx.AttributeProto(name="alpha", type=onnx.AttributeProto.FLOAT, ref_attr_name="slope"))
    inner = helper.make_function("own", "Inner", ["a"], ["b"], [leaky], opset, attributes=["slope"])
    outer = helper.make_function(
        "own",
        "Outer",
        ["a", "c"],
        ["d"],
        [helper.make_node("Inner", ["a"], ["b"], domain="own", slope=0.25), helper.make_node("Add", ["b", "c"], ["d"])],
        opset,
    )
    graph = helper.make_graph(
        [helper.make_node("Outer", ["x", "x"], ["y"], domain="own", name="call")],
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])],
    )
    parsed = helper.make_model(graph, opset_imports=opset, functions=[inner, outer], ir_version=8)
    assert_agrees(parsed, {"x": numbers(4)})
    network = network_from_onnx(parsed)
    assert network.layers[0].name == "call/node_of_b/node_of_b"
    assert [layer.outputs[0].name for layer in network] == ["call/b", "y"]


@pytest.mark.parametrize("attributes", [{}, {"periodic": 0}])
def test_an_operator_without_importer_is_written_out_as_onnx_defines_it(attributes: dict[str, int]) -> None:
    size = helper.make_node("Constant", [], ["size"], value_int=8)
    window = helper.make_node("HannWindow", ["size"], ["window"], **attributes)
    add = helper.make_node("Add", ["x", "window"], ["y"])
    graph = helper.make_graph(
        [size, window, add],
        "windowed",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [8])],
    )
    network = network_from_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))
    steps = np.arange(8) / (8 if attributes.get("periodic", 1) else 7)
    found = run_reference(network, {"x": np.zeros(8, np.float32)})["y"]
    np.testing.assert_allclose(found, np.sin(np.pi * steps) ** 2, atol=1e-6)


def test_names_inside_a_function_do_not_meet_names_outside() -> None:
    opset = [helper.make_opsetid("", 13), helper.make_opsetid("own", 1)]
    body = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Neg", ["a"], ["y"])]
    function = helper.make_function("own", "F", ["x"], ["y"], body, opset)
    nodes = [
        helper.make_node("Tanh", ["x"], ["a"], name="outside"),
        helper.make_node("F", ["a"], ["b"], domain="own", name="one"),
        helper.make_node("F", ["b"], ["y"], domain="own", name="two"),
    ]
    parsed = named(nodes, ["y"], functions=[function], ir_version=8)
    parsed.opset_import.append(helper.make_opsetid("own", 1))
    assert [layer.outputs[0].name for layer in network_from_onnx(parsed)] == ["a", "one/a", "b", "two/a", "y"]


def test_outputs_that_nobody_wants_may_be_left_out() -> None:
    nodes = [helper.make_node("Dropout", ["x"], ["a", ""]), helper.make_node("TopK", ["a", "k"], ["", "i"], axis=3)]
    nodes.append(helper.make_node("Cast", ["i"], ["y"], to=TensorProto.FLOAT))
    parsed = named(nodes, ["y"])
    parsed.graph.initializer.append(onnx.numpy_helper.from_array(np.array([2]), "k"))
    assert [layer.kind for layer in network_from_onnx(parsed)] == ["top_k", "cast", "cast"]


def test_an_operator_that_onnx_defines_by_others_is_written_out() -> None:
    parsed = model(
        'y = SoftmaxCrossEntropyLoss<reduction="mean">(x, t)',
        inputs="float[3,5] x, int64[3] t",
        outputs="float y",
    )
    assert_agrees(parsed, {"x": numbers(3, 5), "t": np.array([0, 4, 2])})


# Reasons --------------------------------------------------------------------------------------------------------------


def problems_of(parsed: onnx.ModelProto) -> ModelRefusedError:
    with pytest.raises(ModelRefusedError) as caught:
        network_from_onnx(parsed)
    return caught.value


def test_every_node_that_cannot_be_imported_is_listed() -> None:
    nodes = [
        helper.make_node("NoSuchThing", ["x"], ["a"], name="first"),
        helper.make_node("Relu", ["x"], ["b"], name="fine"),
        helper.make_node("Transpose", ["b"], ["c"], name="axes", perm=[0]),
        helper.make_node("Other", ["b"], ["d"], name="foreign", domain="their.domain"),
        helper.make_node("AlsoUnknown", ["a"], ["y"], name="behind"),
    ]
    error = problems_of(named(nodes, ["y"]))
    assert isinstance(error, OnnxImportError)
    found = [(problem.node_name, problem.node_operator, problem.node) for problem in error.problems]
    assert found == [
        ("first", "NoSuchThing", 0),
        ("axes", "Transpose", 2),
        ("foreign", "their.domain.Other", 3),
        ("behind", "AlsoUnknown", 4),
    ]
    text = str(error)
    assert "for 4 reasons" in text
    assert "node 'first' (NoSuchThing): The operator is not supported (found ai.onnx opset 13)" in text
    assert error.problems[0].code is ErrorCode.UNSUPPORTED_NODE


def test_a_value_that_must_be_known_is_named() -> None:
    parsed = model("y = Squeeze(x, a)", inputs="float[1,3] x, int64[1] a", outputs="float[3] y")
    (problem,) = problems_of(parsed).problems
    assert "The axes must be known when the model is imported (found 'a' is computed at run time)" in problem.reason
    assert problem.needs_constants == {"a"}
    assert problem.code is ErrorCode.UNSUPPORTED_NODE_INPUT


def test_a_cycle_is_refused() -> None:
    nodes = [helper.make_node("Add", ["x", "b"], ["a"]), helper.make_node("Relu", ["a"], ["b"])]
    assert "produced by another node, without a cycle (found b)" in str(problems_of(named(nodes, ["b"])))


def test_a_value_from_nowhere_is_refused() -> None:
    (problem,) = problems_of(named([helper.make_node("Relu", ["nowhere"], ["y"])], ["y"])).problems
    assert "Every input must be produced by" in problem.reason
    assert "nowhere" in problem.reason


def test_an_output_from_nowhere_is_refused() -> None:
    (problem,) = problems_of(named([helper.make_node("Relu", ["x"], ["y"])], ["y", "z"])).problems
    assert "output 'z'" in problem.reason


def test_a_value_with_two_producers_is_refused() -> None:
    nodes = [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Tanh", ["x"], ["y"])]
    assert "Every value must be produced by exactly one node (found y)" in str(problems_of(named(nodes, ["y"])))


@pytest.mark.parametrize(
    ("node", "reason"),
    [
        (
            helper.make_node("Softmax", ["x"], ["y"], axis=9),
            r"must be an axis of the input \(found 9; allowed: -4 to 3\)",
        ),
        (
            helper.make_node("Softmax", ["x"], ["y"], axis=0.5),
            r"'axis' has the wrong type \(found FLOAT; allowed: INT\)",
        ),
        (helper.make_node("MaxPool", ["x"], ["y"]), "'kernel_shape' is required"),
        (
            helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2], pads=[1]),
            r"'pads'.*found \(1,\); allowed: 4 values",
        ),
        (
            helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2], auto_pad="ANY"),
            r"'auto_pad'.*found ANY; allowed: NOTSET",
        ),
        (
            helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[9, 9]),
            "window must not be larger than the padded input",
        ),
        (helper.make_node("Add", ["x"], ["y"]), "Required input 1 is missing"),
        (helper.make_node("Transpose", ["x"], ["y"], perm=[0, 0, 1, 2]), "permutation of the axes"),
        (helper.make_node("Cast", ["x"], ["y"], to=TensorProto.STRING), "element type is not supported.*STRING"),
        (
            helper.make_node("SequenceMap", ["x"], ["y"], body=helper.make_graph([], "g", [], [])),
            "Operators with subgraphs",
        ),
        (
            helper.make_node("If", ["x"], ["y"], then_branch=helper.make_graph([], "g", [], [])),
            "Required attribute 'else_branch' is missing",
        ),
        (helper.make_node("Relu", ["x"], ["y", "z"]), r"output of the node is not supported \(found z; "),
    ],
    ids=lambda value: value.op_type if isinstance(value, onnx.NodeProto) else "",
)
def test_a_wrong_node_is_told_what_is_wrong(node: onnx.NodeProto, reason: str) -> None:
    error = problems_of(named([node], ["y"]))
    assert len(error.problems) == 1
    with pytest.raises(ModelRefusedError, match=reason):
        raise error


def test_inputs_that_are_no_tensors_are_refused() -> None:
    parsed = named([helper.make_node("Relu", ["x"], ["y"])], ["y"])
    parsed.graph.input[0].type.CopyFrom(helper.make_sequence_type_proto(helper.make_tensor_type_proto(1, [1])))
    (problem,) = problems_of(parsed).problems
    assert "input 'x': Inputs must be tensors (found sequence_type)" in problem.reason


def test_sparse_initializers_are_refused() -> None:
    parsed = named([helper.make_node("Relu", ["x"], ["y"])], ["y"])
    values = helper.make_tensor("s", TensorProto.FLOAT, [1], [1.0])
    indices = helper.make_tensor("i", TensorProto.INT64, [1], [1])
    parsed.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [3]))
    assert "tensor 's': Sparse initializers are not supported" in str(problems_of(parsed))


def test_a_layer_plugin_of_the_operators_name_is_used() -> None:
    from dryfit.network.layer_plugin import LayerPlugin
    from dryfit.network.plugin_table import register_layer_plugin
    from dryfit.network.tensor import TensorSpec

    class Doubling(LayerPlugin):
        plugin_name, plugin_version, plugin_namespace = "TestOnlyTimes", "2", "mine"

        def output_specs(self, fields, inputs):
            assert fields == {"times": 3, "word": "w", "list": (1, 2)}
            return [TensorSpec(inputs[0].shape, DataType.FLOAT)]

        def enqueue(self, fields, inputs):
            return [inputs[0] * fields["times"]]

    register_layer_plugin(Doubling())
    node = helper.make_node("TestOnlyTimes", ["x"], ["y"], domain="their.own", times=3, word="w", list=[1, 2])
    node.attribute.append(helper.make_attribute("plugin_version", "2"))
    node.attribute.append(helper.make_attribute("plugin_namespace", "mine"))
    parsed = named([node], ["y"])
    parsed.opset_import.append(helper.make_opsetid("their.own", 1))
    x = numbers(1, 2, 4, 4)
    np.testing.assert_array_equal(run(parsed, {"x": x})[0], 3 * x)
