"""Conditionals and loops whose course is known become plain layers that give the same results."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import dryfit
from dryfit import DataType, ElementWiseOperation, Network, ReduceOperation
from dryfit.errors import ExecutionError
from dryfit.network.layers.control_flow import ConditionalLayer, LoopLayer
from dryfit.network.tensor import Tensor
from dryfit.passes.canonical import canonical_pipeline, specialise
from dryfit.passes.findings import PassFindings
from dryfit.passes.flatten_control_flow import MOST_ITERATIONS, MOST_LAYERS, FlattenControlFlow
from dryfit.reference.executor import run_reference

F, I, B = DataType.FLOAT, DataType.INT64, DataType.BOOL
SUM, PROD = ElementWiseOperation.SUM, ElementWiseOperation.PROD


def constant(network: Network, value: object, dtype: type = np.float32) -> Tensor:
    array = np.asarray(value, dtype)
    return network.add_constant(array.shape, array).get_output(0)


def body(num_scanned: int = 1, extra_layers: int = 0) -> Network:
    """s, x[i], c -> s + x[i] + i, (s + x[i]) * c * 2."""
    network = Network("body")
    number, state = network.add_input("i", I, ()), network.add_input("s", F, (-1,))
    slices = [network.add_input(f"x{index}", F, (-1,)) for index in range(num_scanned)]
    captured = network.add_input("c", F, (-1,))
    fixed = network.add_elementwise(captured, constant(network, [2]), PROD).get_output(0)
    total = state
    for tensor in slices:
        total = network.add_elementwise(total, tensor, SUM).get_output(0)
    for _ in range(extra_layers):
        total = network.add_elementwise(total, captured, SUM).get_output(0)
    step = network.add_shuffle(network.add_cast(number, F).get_output(0))
    step.reshape_dims = (1,)
    network.mark_output(network.add_elementwise(total, step.get_output(0), SUM).get_output(0))
    network.mark_output(network.add_elementwise(total, fixed, PROD).get_output(0))
    return network


def loop_network(
    trips: int | None,
    *,
    shape: Sequence[int] = (3, 2),
    axis: int = 0,
    reverse: bool = False,
    output_axis: int = 0,
    extra_layers: int = 0,
) -> Network:
    network = Network("network")
    x, s = network.add_input("x", F, shape), network.add_input("s", F, (2,))
    limit = None if trips is None else constant(network, trips, np.int64)
    layer = LoopLayer(
        name="loop",
        onnx_nodes=("Loop_0",),
        body=body(extra_layers=extra_layers),
        num_states=1,
        input_axes=(axis,),
        input_reverse=(reverse,),
        output_axes=(output_axis,),
        output_reverse=(reverse,),
    )
    network.add_layer(layer, [limit, s, x, None, network.add_input("c", F, (2,))])
    for tensor, name in zip(layer.outputs, ("state", "scanned"), strict=True):
        network.rename_tensor(tensor, name)
        network.mark_output(tensor)
    return network


def flattened(network: Network) -> tuple[Network, PassFindings]:
    work = specialise(network, {})
    return work, FlattenControlFlow().run(work, PassFindings())


def feeds_of(network: Network, shapes: dict[str, tuple[int, ...]] | None = None) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        tensor.name: rng.normal(size=(shapes or {}).get(tensor.name, tensor.shape)).astype(np.float32)
        for tensor in network.inputs
    }


def check_equal(network: Network, work: Network, feeds: dict[str, np.ndarray]) -> None:
    expected, found = run_reference(network, feeds), run_reference(work, feeds)
    assert list(expected) == list(found)
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype


@pytest.mark.parametrize("trips", [None, 1, 2, 3])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axes", [(0, 0), (1, 1)])
def test_a_loop_with_a_known_number_of_iterations_is_unrolled(
    trips: int | None, reverse: bool, axes: tuple[int, int]
) -> None:
    shape = (3, 2) if axes[0] == 0 else (2, 3)
    network = loop_network(trips, shape=shape, axis=axes[0], reverse=reverse, output_axis=axes[1])
    work, found = flattened(network)
    assert found.changed
    assert not any(layer.bodies for layer in work)
    assert {node for layer in work for node in layer.onnx_nodes} == {"Loop_0"}
    assert all(found.rewrites.origin(layer.name) == "loop" for layer in work if "[1]" in layer.name)
    check_equal(network, work, feeds_of(network))


def test_what_does_not_change_is_computed_once() -> None:
    work, _ = flattened(loop_network(3))
    assert [layer.name for layer in work if layer.kind == "elementwise" and layer.inputs[0].name == "c"] == [
        "(Unnamed Layer* 1) [Elementwise] [0]"
    ]


def test_a_loop_over_tensors_with_dynamic_dimensions_is_unrolled() -> None:
    network = Network("network")
    x, c = network.add_input("x", F, (3, -1)), network.add_input("c", F, (-1,))
    layer = LoopLayer(
        body=body(), num_states=1, input_axes=0, input_reverse=(False,), output_axes=1, output_reverse=(True,)
    )
    network.add_layer(layer, [None, network.add_input("s", F, (-1,)), x, None, c])
    for tensor in layer.outputs:
        network.mark_output(tensor)
    work, _ = flattened(network)
    assert not any(layer.bodies for layer in work)
    check_equal(network, work, feeds_of(network, {"x": (3, 5), "s": (5,), "c": (5,)}))


def test_long_loops_and_those_that_depend_on_data_stay() -> None:
    too_many = loop_network(None, shape=(MOST_ITERATIONS + 1, 2))
    too_large = loop_network(None, shape=(MOST_ITERATIONS, 2), extra_layers=MOST_LAYERS // MOST_ITERATIONS)
    dynamic = loop_network(None, shape=(-1, 2))
    for network in (too_many, too_large, dynamic):
        work, found = flattened(network)
        assert not found.changed
        assert [layer.kind for layer in work] == ["loop"]


def test_the_limit_of_layers_counts_for_all_loops_together() -> None:
    count = MOST_LAYERS // MOST_ITERATIONS // 2
    network = loop_network(None, shape=(MOST_ITERATIONS, 2), extra_layers=count)
    layer = network.layers[-1]
    again = LoopLayer(
        name="again",
        body=layer.body,
        num_states=1,
        input_axes=0,
        input_reverse=(False,),
        output_axes=0,
        output_reverse=(False,),
    )
    network.add_layer(again, list(layer.inputs))
    network.mark_output(again.outputs[0])
    work, _ = flattened(network)
    assert [layer.name for layer in work if layer.bodies] == ["again"]


def test_a_loop_that_a_run_would_refuse_stays() -> None:
    network = loop_network(5)
    work, found = flattened(network)
    assert not found.changed
    with pytest.raises(ExecutionError, match="5 iterations"):
        run_reference(work, feeds_of(network))


def branch(factor: float, *, passes_on: bool = False) -> Network:
    network = Network("branch")
    x = network.add_input("x", F, (2,))
    network.mark_output(x if passes_on else network.add_elementwise(x, constant(network, [factor]), PROD).get_output(0))
    return network


@pytest.mark.parametrize("value", [True, False])
def test_a_conditional_with_a_known_condition_becomes_its_branch(value: bool) -> None:
    network = Network("network")
    x = network.add_input("x", F, (2,))
    layer = ConditionalLayer(name="if", then_body=branch(3), else_body=branch(0, passes_on=True))
    network.add_layer(layer, [constant(network, value, np.bool_), x])
    network.mark_output(layer.outputs[0])
    work, found = flattened(network)
    assert found.changed
    assert not any(layer.bodies for layer in work)
    check_equal(network, work, feeds_of(network))


def test_a_conditional_inside_a_loop_is_flattened_in_each_iteration() -> None:
    """The condition depends on the iteration only, which is known once the loop is unrolled."""
    network, inside = Network("network"), Network("body")
    number, state = inside.add_input("i", I, ()), inside.add_input("s", F, (2,))
    odd = inside.add_elementwise(number, constant(inside, 1, np.int64), ElementWiseOperation.EQUAL).get_output(0)
    choice = ConditionalLayer(name="choice", then_body=branch(3), else_body=branch(5))
    inside.mark_output(inside.add_layer(choice, [odd, state]).outputs[0])
    layer = LoopLayer(body=inside, num_states=1)
    network.add_layer(layer, [constant(network, 3, np.int64), network.add_input("x", F, (2,))])
    network.mark_output(layer.outputs[0])
    work, _ = flattened(network)
    assert not any(layer.bodies for layer in work)
    assert run_reference(work, {"x": np.ones(2, np.float32)})[layer.outputs[0].name].tolist() == [75, 75]


def test_a_build_flattens_so_that_the_dla_takes_the_layers() -> None:
    network, inside = Network("network"), Network("body")
    inside.add_input("i", I, ())
    state = inside.add_input("s", F, (1, 8, 4, 4))
    inside.mark_output(inside.add_activation(state, dryfit.ActivationType.TANH).get_output(0))
    layer = LoopLayer(name="loop", body=inside, num_states=1)
    network.add_layer(layer, [constant(network, 3, np.int64), network.add_input("x", F, (1, 8, 4, 4))])
    network.mark_output(layer.outputs[0])
    config = dryfit.BuilderConfig()
    config.set_device_type(layer, "DLA")
    config.allow_fallback("GPU")
    config.set_flag(dryfit.BuilderFlag.FP16)
    engine = dryfit.Builder().build_engine(network, config)
    assert [(one.device, one.kind) for one in engine.plan.layers] == [("DLA", "activation")] * 3
    x = np.random.default_rng(0).normal(size=(1, 8, 4, 4)).astype(np.float32)
    expected = run_reference(network, {"x": x})[layer.outputs[0].name]
    found = engine.create_execution_context().run({"x": x})[layer.outputs[0].name]
    np.testing.assert_allclose(found, expected, atol=2e-3)


def test_a_reduction_over_all_iterations_is_what_it_was_before() -> None:
    """The whole pipeline keeps what a loop computes."""
    network = loop_network(None)
    total = network.add_reduce(network.outputs[1], ReduceOperation.SUM, 3, False).get_output(0)
    network.mark_output(total)
    work = specialise(network, {})
    canonical_pipeline().run(work)
    check_equal(network, work, feeds_of(network))
