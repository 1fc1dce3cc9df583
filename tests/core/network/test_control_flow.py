"""Loops and conditionals that are written with TensorRT's boundary layers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import dryfit
from dryfit import DataType, ElementWiseOperation, LoopOutput, Network, NetworkError, ReduceOperation, TripLimit
from dryfit.network.control_flow import collected
from dryfit.network.tensor import Tensor
from dryfit.reference.executor import run_reference

F, I, B = DataType.FLOAT, DataType.INT32, DataType.BOOL
SUM, PROD, LESS = ElementWiseOperation.SUM, ElementWiseOperation.PROD, ElementWiseOperation.LESS
LAST, JOINED, REVERSED = LoopOutput.LAST_VALUE, LoopOutput.CONCATENATE, LoopOutput.REVERSE
Feeds = dict[str, np.ndarray]


def constant(network: Network, value: object, dtype: type = np.float32) -> Tensor:
    array = np.asarray(value, dtype)
    return network.add_constant(array.shape, array).get_output(0)


def elementwise(network: Network, a: Tensor, op: ElementWiseOperation, b: Tensor) -> Tensor:
    return network.add_elementwise(a, b, op).get_output(0)


def results(network: Network, feeds: Feeds, device: str = "CPU") -> list[np.ndarray]:
    """The outputs by the references, which those of an engine that was read from its file equal."""
    expected = list(run_reference(network, feeds).values())
    config = dryfit.BuilderConfig()
    config.default_device_type = device
    profile = dryfit.OptimizationProfile()
    for tensor in network.inputs:
        if -1 in tensor.shape:
            profile.set_shape(tensor.name, *[feeds[tensor.name].shape] * 3)
    if profile:
        config.add_optimization_profile(profile)
    engine = dryfit.Runtime().deserialize_cuda_engine(dryfit.Builder().build_engine(network, config).serialize())
    found = engine.create_execution_context().run(feeds)
    assert list(found) == [tensor.name for tensor in network.outputs]
    for one, other in zip(found.values(), expected, strict=True):
        np.testing.assert_array_equal(one, other)
    return expected


def summing_loop(network: Network, count: Tensor, x: Tensor) -> tuple[dryfit.Loop, Tensor, Tensor, Tensor]:
    """A loop that adds `x` to itself; returns it with the state, its next value and `x`."""
    loop = network.add_loop()
    loop.name = "summing"
    loop.add_trip_limit(count, TripLimit.COUNT)
    state = loop.add_recurrence(x)
    following = elementwise(network, state.get_output(0), SUM, x)
    state.set_input(1, following)
    return loop, state.get_output(0), following, x


# Loops ----------------------------------------------------------------------------------------------------------------


def test_a_loop_gives_last_values_and_concatenations() -> None:
    network = Network("n")
    x, count = network.add_input("x", F, (2,)), network.add_input("count", I, ())
    loop, state, following, _ = summing_loop(network, count, x)
    length = constant(network, 4, np.int32)
    network.mark_output(loop.add_loop_output(state, LAST).get_output(0))
    for tensor, kind, axis in ((state, JOINED, 0), (following, JOINED, 1), (following, REVERSED, 0)):
        output = loop.add_loop_output(tensor, kind, axis)
        output.set_input(1, length)
        network.mark_output(output.get_output(0))
    assert [tensor.shape for tensor in network.outputs] == [(2,), (4, 2), (2, 4), (4, 2)]
    kinds = [layer.type for layer in network]
    assert kinds.count("LOOP_OUTPUT") == 4
    assert {"TRIP_LIMIT", "RECURRENCE"} <= set(kinds)
    last, before, after, reversed_ = results(
        network, {"x": np.array([1, 2], np.float32), "count": np.array(3, np.int32)}
    )
    assert last.tolist() == [4, 8]
    assert before.tolist() == [[1, 2], [2, 4], [3, 6], [0, 0]]
    assert after.tolist() == [[2, 3, 4, 0], [4, 6, 8, 0]]
    assert reversed_.tolist() == [[4, 8], [3, 6], [2, 4], [0, 0]]
    layer = collected(network).layer("summing")
    assert [tensor.name for tensor in layer.inputs if tensor][:2] == ["count", "x"]


def test_a_loop_ends_when_its_condition_is_false() -> None:
    network = Network("n")
    x, limit = network.add_input("x", F, (1,)), network.add_input("limit", F, (1,))
    loop = network.add_loop()
    state = loop.add_recurrence(x)
    less = elementwise(network, state.get_output(0), LESS, limit)
    loop.add_trip_limit(network.add_shuffle(less).get_output(0), TripLimit.WHILE)
    state.set_input(1, elementwise(network, state.get_output(0), SUM, state.get_output(0)))
    network.mark_output(loop.add_loop_output(state.get_output(0), LAST).get_output(0))
    feeds = {"x": np.array([1], np.float32)}
    for limit_value, expected in ((0.5, 1), (100, 128)):
        (last,) = results(network, {**feeds, "limit": np.array([limit_value], np.float32)})
        assert last.tolist() == [expected]


def test_a_loop_iterates_over_tensors_along_an_axis_and_from_the_end() -> None:
    network = Network("n")
    x = network.add_input("x", F, (-1, 2))
    loop = network.add_loop()
    loop.add_trip_limit(constant(network, 3, np.int32), TripLimit.COUNT)
    rows = loop.add_iterator(x).get_output(0)
    columns = loop.add_iterator(network.add_input("y", F, (2, 3)), 1, True).get_output(0)
    assert (rows.shape, columns.shape) == ((2,), (2,))
    output = loop.add_loop_output(elementwise(network, rows, PROD, columns), JOINED)
    output.set_input(1, constant(network, 3, np.int32))
    network.mark_output(output.get_output(0))
    rng = np.random.default_rng(0)
    x_value, y_value = rng.normal(size=(3, 2)).astype(np.float32), rng.normal(size=(2, 3)).astype(np.float32)
    (found,) = results(network, {"x": x_value, "y": y_value})
    np.testing.assert_array_equal(found, x_value * y_value.T[::-1])


def test_the_last_value_of_any_tensor_can_be_an_output() -> None:
    network = Network("n")
    x = network.add_input("x", F, (2,))
    loop, state, following, _ = summing_loop(network, constant(network, 2, np.int32), x)
    square = elementwise(network, following, PROD, state)
    for tensor in (following, square):
        network.mark_output(loop.add_loop_output(tensor, LAST).get_output(0))
    found = results(network, {"x": np.array([1, 3], np.float32)})
    assert [one.tolist() for one in found] == [[3, 9], [6, 54]]


def nested(network: Network, x: Tensor, outer_count: Tensor, inner_count: Tensor) -> Tensor:
    """s = x; for i: for j: s = s * 2 if sum(s) < 50 else s - x."""
    outer = network.add_loop()
    outer.add_trip_limit(outer_count, TripLimit.COUNT)
    s = outer.add_recurrence(x)
    inner = network.add_loop()
    inner.add_trip_limit(inner_count, TripLimit.COUNT)
    t = inner.add_recurrence(s.get_output(0))
    value = t.get_output(0)
    total = network.add_reduce(value, ReduceOperation.SUM, 1, False).get_output(0)
    conditional = network.add_if_conditional()
    conditional.set_condition(elementwise(network, total, LESS, constant(network, 50)))
    inside = conditional.add_input(value).get_output(0)
    minus = network.add_elementwise(inside, conditional.add_input(x).get_output(0), ElementWiseOperation.SUB)
    chosen = conditional.add_output(elementwise(network, inside, SUM, inside), minus.get_output(0)).get_output(0)
    t.set_input(1, chosen)
    s.set_input(1, inner.add_loop_output(value, LAST).get_output(0))
    return outer.add_loop_output(s.get_output(0), LAST).get_output(0)


def test_conditionals_in_loops_in_loops() -> None:
    network = Network("n")
    x, n = network.add_input("x", F, (3,)), network.add_input("n", I, ())
    result = nested(network, x, n, constant(network, 3, np.int32))
    network.mark_output(result)
    assert result.shape == (3,)
    value = np.array([1, 2, 3], np.float32)
    for count in (0, 1, 4):
        expected = value
        for _ in range(count * 3):
            expected = expected * 2 if expected.sum() < 50 else expected - value
        (found,) = results(network, {"x": value, "n": np.array(count, np.int32)})
        np.testing.assert_array_equal(found, expected)
    (outer,) = [layer for layer in collected(network) if layer.kind == "loop"]
    (inner,) = [layer for layer in outer.body.layers if layer.kind == "loop"]
    assert "conditional" in [layer.kind for layer in inner.body.layers]


def test_loops_after_each_other_are_two_layers() -> None:
    network = Network("n")
    x, count = network.add_input("x", F, (2,)), network.add_input("count", I, ())
    loop, state, _, _ = summing_loop(network, count, x)
    second, state, _, _ = summing_loop(network, count, loop.add_loop_output(state, LAST).get_output(0))
    network.mark_output(second.add_loop_output(state, LAST).get_output(0))
    (found,) = results(network, {"x": np.array([1, 2], np.float32), "count": np.array(1, np.int32)})
    assert found.tolist() == [4, 8]
    assert [layer.kind for layer in collected(network)] == ["loop", "loop"]


# Conditionals ---------------------------------------------------------------------------------------------------------


def test_a_conditional_runs_one_branch() -> None:
    network = Network("n")
    flag, x = network.add_input("flag", B, ()), network.add_input("x", F, (2,))
    conditional = network.add_if_conditional()
    conditional.name = "choice"
    conditional.set_condition(flag)
    inside = conditional.add_input(x).get_output(0)
    doubled = elementwise(network, inside, SUM, inside)
    network.mark_output(conditional.add_output(doubled, inside).get_output(0))
    network.mark_output(conditional.add_output(inside, elementwise(network, doubled, PROD, inside)).get_output(0))
    assert [layer.type for layer in network][:2] == ["CONDITION", "CONDITIONAL_INPUT"]
    value = np.array([1, 3], np.float32)
    expected = {True: [[2, 6], [1, 3]], False: [[1, 3], [2, 18]]}
    for condition, wanted in expected.items():
        found = results(network, {"flag": np.array(condition), "x": value})
        assert [one.tolist() for one in found] == wanted
    layer = collected(network).layer("choice")
    assert [len(body.layers) for body in layer.bodies] == [1, 2]


def test_a_loop_inside_a_branch() -> None:
    network = Network("n")
    flag, x = network.add_input("flag", B, ()), network.add_input("x", F, (2,))
    conditional = network.add_if_conditional()
    conditional.set_condition(flag)
    inside = conditional.add_input(x).get_output(0)
    loop, state, _, _ = summing_loop(network, constant(network, 2, np.int32), inside)
    looped = loop.add_loop_output(state, LAST).get_output(0)
    network.mark_output(conditional.add_output(looped, inside).get_output(0))
    value = np.array([1, 3], np.float32)
    for condition, wanted in ((True, [3, 9]), (False, [1, 3])):
        (found,) = results(network, {"flag": np.array(condition), "x": value})
        assert found.tolist() == wanted


# What is refused ------------------------------------------------------------------------------------------------------


def looping() -> tuple[Network, dryfit.Loop, Tensor, Tensor]:
    network = Network("n")
    x = network.add_input("x", F, (2,))
    loop, state, following, _ = summing_loop(network, network.add_input("count", I, ()), x)
    return network, loop, state, following


def test_a_tensor_inside_that_is_used_outside_is_refused() -> None:
    network, loop, state, following = looping()
    network.mark_output(loop.add_loop_output(state, LAST).get_output(0))
    outside = network.add_identity(following).get_output(0)
    outside.name = "outside"
    network.mark_output(outside)
    with pytest.raises(NetworkError, match=r"tensor 'outside': .*inside of loop 'summing'.*loop\.add_loop_output"):
        dryfit.Builder().build_engine(network, dryfit.BuilderConfig())


def second_recurrence(network: Network, loop: dryfit.Loop, state: Tensor) -> None:
    del network
    recurrence = loop.add_recurrence(state)
    recurrence.set_input(1, recurrence.get_output(0))


def unconnected(network: Network, loop: dryfit.Loop, state: Tensor) -> None:
    del state
    recurrence = loop.add_recurrence(network.inputs[0])
    network.mark_output(loop.add_loop_output(recurrence.get_output(0), LAST).get_output(0))


def without_length(network: Network, loop: dryfit.Loop, state: Tensor) -> None:
    network.mark_output(loop.add_loop_output(state, JOINED).get_output(0))


def other_type(network: Network, loop: dryfit.Loop, state: Tensor) -> None:
    del state
    recurrence = loop.add_recurrence(network.inputs[0])
    recurrence.set_input(1, network.add_cast(recurrence.get_output(0), DataType.HALF).get_output(0))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (second_recurrence, "Input 0 must come from outside of loop 'summing'"),
        (unconnected, "Input 1, the value for the next iteration, is not connected"),
        (without_length, "Input 1, the length of the concatenation, is not connected"),
        (other_type, "Both inputs of a recurrence must have the same rank and type"),
    ],
)
def test_boundary_layers_that_are_connected_wrongly_are_refused(
    change: Callable[[Network, dryfit.Loop, Tensor], None], message: str
) -> None:
    network, loop, state, _ = looping()
    network.mark_output(loop.add_loop_output(state, LAST).get_output(0))
    change(network, loop, state)
    with pytest.raises(NetworkError, match=message):
        collected(network)


def test_loops_that_overlap_are_refused() -> None:
    network, loop, state, following = looping()
    second, other_state, other_following, _ = summing_loop(network, network.inputs[1], network.inputs[0])
    mixed = elementwise(network, following, SUM, other_following)
    for one, tensor in ((loop, state), (second, other_state)):
        recurrence = one.add_recurrence(network.inputs[0])
        recurrence.set_input(1, mixed)
        network.mark_output(one.add_loop_output(tensor, LAST).get_output(0))
    with pytest.raises(NetworkError, match="must not overlap"):
        collected(network)


def test_a_conditional_without_a_condition_is_refused() -> None:
    network = Network("n")
    inside = (conditional := network.add_if_conditional()).add_input(network.add_input("x", F, (2,))).get_output(0)
    network.mark_output(conditional.add_output(inside, inside).get_output(0))
    with pytest.raises(NetworkError, match="has no condition"):
        collected(network)


def test_limits_and_conditions_must_have_their_types() -> None:
    network, loop, state, _ = looping()
    with pytest.raises(NetworkError, match="must be one BOOL"):
        loop.add_trip_limit(state, TripLimit.WHILE)
    with pytest.raises(NetworkError, match="at most one trip limit of each kind"):
        loop.add_trip_limit(network.inputs[1], TripLimit.COUNT)
    with pytest.raises(NetworkError, match="must be one integer"):
        network.add_loop().add_trip_limit(state, TripLimit.COUNT)
    with pytest.raises(NetworkError, match="must be one BOOL"):
        network.add_if_conditional().set_condition(state)
