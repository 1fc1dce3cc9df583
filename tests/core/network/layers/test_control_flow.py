"""Conditional and loop layers: shapes, what is refused, and engine files."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dryfit.errors import DryfitError, ExecutionError, NetworkError
from dryfit.network.data_types import DataType
from dryfit.network.layers.bodies import DEEPEST_BODIES
from dryfit.network.layers.control_flow import ConditionalLayer, LoopLayer
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.network.network import Network
from dryfit.network.serialization import network_from_dict, network_to_dict
from dryfit.network.tensor import Shape, Tensor
from dryfit.reference.executor import run_reference

F, I, B = DataType.FLOAT, DataType.INT64, DataType.BOOL
SUM, LESS = ElementWiseOperation.SUM, ElementWiseOperation.LESS


def constant(network: Network, value: object, dtype: type = np.float32) -> Tensor:
    array = np.asarray(value, dtype)
    return network.add_constant(array.shape, array).get_output(0)


def growing_body(*, is_while: bool = False) -> Network:
    """The state with one more element, which is the iteration; the state; with a condition on its first element."""
    body = Network("body")
    number, state = body.add_input("i", I, (1,)), body.add_input("s", F, (-1,))
    if is_while:
        first = body.add_slice(state, (0,), (1,), (1,)).get_output(0)
        body.mark_output(body.add_elementwise(first, constant(body, [9]), LESS).get_output(0))
    added = body.add_cast(number, F).get_output(0)
    joined = body.add_concatenation([state, added])
    joined.axis = 0
    body.mark_output(joined.get_output(0))
    body.mark_output(added)
    return body


def loop_network(**parameters: Any) -> Network:
    network = Network("network")
    layer = LoopLayer(
        **{"name": "loop", "body": growing_body(), "num_states": 1, "output_axes": 1, "output_reverse": (False,)}
        | parameters
    )
    network.add_layer(layer, [network.add_input("n", I, ()), network.add_input("s", F, (2,))])
    for tensor in layer.outputs:
        network.mark_output(tensor)
    return network


def branch(shape: Shape = (2,), dtype: DataType = F, outputs: int = 1) -> Network:
    network = Network("branch")
    x = network.add_input("x", F, (2,))
    y = network.add_cast(x, dtype).get_output(0) if dtype is not F else network.add_identity(x).get_output(0)
    shuffle = network.add_shuffle(y)
    shuffle.reshape_dims = shape
    for _ in range(outputs):
        network.mark_output(network.add_identity(shuffle.get_output(0)).get_output(0))
    return network


def add_conditional(then_body: Network, else_body: Network, condition: DataType = B) -> ConditionalLayer:
    network = Network("network")
    layer = ConditionalLayer(name="if", then_body=then_body, else_body=else_body)
    return network.add_layer(layer, [network.add_input("c", condition, ()), network.add_input("x", F, (2,))])


# Shapes and results -----------------------------------------------------------------------------------------------


def test_an_extent_that_changes_between_iterations_is_dynamic() -> None:
    network = loop_network()
    assert [tensor.shape for tensor in network.outputs] == [(-1,), (1, -1)]
    found = run_reference(network, {"n": np.array(3), "s": np.array([7, 8], np.float32)})
    assert [array.tolist() for array in found.values()] == [[7, 8, 0, 1, 2], [[0, 1, 2]]]


def test_branches_have_in_common_what_does_not_differ() -> None:
    assert add_conditional(branch((1, 2)), branch((2, 1))).outputs[0].shape == (-1, -1)
    assert add_conditional(branch((1, 2)), branch((1, 2))).outputs[0].shape == (1, 2)


def test_the_condition_of_a_loop_is_computed_before_each_iteration() -> None:
    network = loop_network(body=growing_body(is_while=True), is_while=True)
    feeds = {"n": np.array(3), "s": np.array([9, 8], np.float32)}
    assert [array.tolist() for array in run_reference(network, feeds).values()] == [[9, 8], [[]]]
    feeds["s"][0] = 0
    assert [array.tolist() for array in run_reference(network, feeds).values()] == [[0, 8, 0, 1, 2], [[0, 1, 2]]]


def test_multiply_accumulates_count_every_iteration_and_the_larger_branch() -> None:
    def product(columns: int) -> Network:
        network = Network("product")
        network.add_input("i", I, ())
        x = network.add_input("x", F, (2, 3))
        weights = constant(network, np.ones((3, columns)))
        operation = network.add_matrix_multiply
        from dryfit.network.layers.matrix import MatrixOperation

        none = MatrixOperation.NONE
        network.mark_output(operation(x, none, weights, none).get_output(0))
        return network

    network = Network("network")
    count, x = constant(network, 5, np.int64), network.add_input("x", F, (2, 3))
    loop = network.add_layer(LoopLayer(body=product(3), num_states=1), [count, x])
    specs = {tensor.name: tensor.spec for tensor in network.tensors}
    assert loop.multiply_accumulates(specs) == 5 * 2 * 3 * 3
    layer = ConditionalLayer(then_body=product(3), else_body=product(4))
    network.add_layer(layer, [network.add_input("c", B, ()), count, x])
    assert layer.multiply_accumulates({}) == 2 * 3 * 4


# What is refused ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: add_conditional(branch(), branch((1, 2))), r"same rank and type in both branches .*\(1, 2\)"),
        (lambda: add_conditional(branch(), branch(dtype=DataType.HALF)), "FP32 .* and FP16"),
        (lambda: add_conditional(branch(), branch(outputs=2)), "same number of outputs .*1 and 2"),
        (lambda: add_conditional(branch(), branch(), I), "The condition must be one BOOL .*INT64"),
        (lambda: add_conditional(branch(), Network("empty")), "ranks and types of the inputs of its body 'empty'"),
        (lambda: loop_network(output_axes=2), "`output_axes` must be axes of the outputs .*found 2"),
        (lambda: loop_network(output_reverse=()), "`output_axes` and `output_reverse` must have the same length"),
        (lambda: loop_network(num_states=5), "States, scanned inputs and captured tensors must be connected"),
        (lambda: loop_network(num_states=0), "inputs and outputs of the body must match those of the loop"),
        (lambda: loop_network(is_while=True), "inputs and outputs of the body must match those of the loop"),
        (lambda: loop_network(body=branch()), "inputs and outputs of the body must match"),
        (lambda: loop_network(body=3), "`body` has the wrong type"),
    ],
)
def test_what_does_not_fit_is_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(NetworkError, match=message):
        make()


def test_a_loop_without_an_end_is_refused() -> None:
    network = Network("network")
    with pytest.raises(NetworkError, match="must have a trip limit, a condition or a scanned input"):
        network.add_layer(
            LoopLayer(body=growing_body(), num_states=1, output_axes=0, output_reverse=(False,)),
            [None, network.add_input("s", F, (2,))],
        )


def test_a_scan_needs_as_many_slices_as_iterations() -> None:
    body = Network("body")
    body.add_input("i", I, ())
    body.mark_output(body.add_identity(body.add_input("x", F, (2,))).get_output(0))
    network = Network("network")
    x, n = network.add_input("x", F, (-1, 2)), network.add_input("n", I, ())
    layer = LoopLayer(body=body, input_axes=0, input_reverse=(False,), output_axes=0, output_reverse=(False,))
    network.mark_output(network.add_layer(layer, [n, x]).outputs[0])
    value = np.ones((3, 2), np.float32)
    assert run_reference(network, {"n": np.array(2), "x": value})[layer.outputs[0].name].shape == (2, 2)
    with pytest.raises(ExecutionError, match="4 iterations for 3 slices"):
        run_reference(network, {"n": np.array(4), "x": value})


def test_bodies_are_nested_up_to_a_limit() -> None:
    def nested(depth: int) -> Network:
        network = Network("network")
        condition, x = network.add_input("c", B, ()), network.add_input("x", F, (2,))
        if not depth:
            network.mark_output(network.add_identity(x).get_output(0))
            return network
        layer = ConditionalLayer(then_body=nested(depth - 1), else_body=nested(0))
        network.mark_output(network.add_layer(layer, [condition, condition, x]).outputs[0])
        return network

    deep = nested(DEEPEST_BODIES)
    data, arrays = network_to_dict(deep)
    assert network_from_dict(data, arrays).layers[0].kind == "conditional"
    with pytest.raises(NetworkError, match=f"nested too deeply .*allowed: {DEEPEST_BODIES} levels"):
        nested(DEEPEST_BODIES + 1)
    for _ in range(2):
        data["layers"][0]["parameters"]["then_body"] = copy.deepcopy(data)
    with pytest.raises(NetworkError, match="nested too deeply"):
        network_from_dict(data, arrays)


# Files --------------------------------------------------------------------------------------------------------------


def test_bodies_survive_a_file() -> None:
    network = loop_network(body=growing_body(is_while=True), is_while=True)
    data, arrays = network_to_dict(network)
    again = network_from_dict(data, arrays)
    feeds = {"n": np.array(4), "s": np.array([1, 8], np.float32)}
    expected, found = run_reference(network, feeds), run_reference(again, feeds)
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array)
    assert again.layers[0].body.layers[0].name == network.layers[0].body.layers[0].name


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("body",), None),
        (("body",), {}),
        (("body",), [1]),
        (("body", "layers"), {}),
        (("body", "layers", 0, "kind"), "recurrence"),
        (("body", "layers", 0, "inputs"), ["nothing"]),
        (("body", "layers", 0, "inputs"), ["s"]),
        (("body", "layers", 0, "outputs", 0, "shape"), [3]),
        (("body", "layers", 0, "parameters"), {"x": 1}),
        (("body", "inputs", 1, "dtype"), "HALF"),
        (("body", "inputs", 1, "shape"), [-1, 2]),
        (("body", "inputs"), []),
        (("body", "outputs"), []),
        (("body", "outputs"), ["s"]),
        (("body", "outputs"), ["s", "s"]),
        (("num_states",), 2**62),
        (("num_states",), -1),
        (("num_states",), "1"),
        (("is_while",), True),
        (("is_while",), 1),
        (("output_axes",), [7]),
        (("output_axes",), [0, 0]),
        (("output_reverse",), [1]),
        (("input_axes",), [0]),
    ],
)
def test_a_forged_body_is_refused(path: tuple[str | int, ...], value: object) -> None:
    data, arrays = network_to_dict(loop_network())
    place: Any = data["layers"][0]["parameters"]
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(DryfitError):
        network_from_dict(data, arrays)
