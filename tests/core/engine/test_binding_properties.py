"""Random networks: whatever is known when, an engine gives what the layers give one after the other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.engine.hand_built import plan_of

from dryfit.engine.engine import Engine
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.layers.elementwise import ElementWiseOperation, UnaryOperation
from dryfit.network.layers.movement import Concatenation
from dryfit.network.layers.reduction import ReduceOperation
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor
from dryfit.reference.executor import run_reference
from dryfit.target.kernels import HostLayout

CHANNELS = 3


def step_negate(network: Network, tensors: list[Tensor], pick) -> Tensor:
    return network.add_unary(pick(tensors), UnaryOperation.NEG).get_output(0)


def step_relu(network: Network, tensors: list[Tensor], pick) -> Tensor:
    return network.add_activation(pick(tensors), ActivationType.RELU).get_output(0)


def step_join(network: Network, tensors: list[Tensor], pick) -> Tensor:
    return network.add_layer(Concatenation(axis=0), [pick(tensors), pick(tensors)]).get_output(0)


def step_total(network: Network, tensors: list[Tensor], pick) -> Tensor:
    """Add the sum over the rows: the shape of one operand is known whatever that of the other is."""
    x = pick(tensors)
    total = network.add_reduce(x, ReduceOperation.SUM, 1, keep_dims=True).get_output(0)
    return network.add_elementwise(x, total, ElementWiseOperation.SUM).get_output(0)


def step_positive_rows(network: Network, tensors: list[Tensor], pick) -> Tensor:
    """The rows whose sum is positive: how many there are depends on the data."""
    x = pick(tensors)
    sums = network.add_reduce(x, ReduceOperation.SUM, 0b1110, keep_dims=False).get_output(0)
    positive = network.add_activation(sums, ActivationType.RELU).get_output(0)
    places = network.add_non_zero(positive).get_output(0)
    rows = network.add_reduce(places, ReduceOperation.SUM, 1, keep_dims=False).get_output(0)
    return network.add_gather(x, rows, 0).get_output(0)


def step_total_only(network: Network, tensors: list[Tensor], pick) -> Tensor:
    """One row, whatever came before: shapes are known again."""
    return network.add_reduce(pick(tensors), ReduceOperation.SUM, 1, keep_dims=True).get_output(0)


def step_reshape_by_shape(network: Network, tensors: list[Tensor], pick) -> Tensor:
    """A reshape to the tensor's own shape, which is computed when the network runs."""
    x = pick(tensors)
    shuffle = network.add_shuffle(x)
    shuffle.set_input(1, network.add_shape(x).get_output(0))
    return shuffle.get_output(0)


STEPS = [
    step_negate,
    step_relu,
    step_join,
    step_total,
    step_positive_rows,
    step_total_only,
    step_reshape_by_shape,
]


@st.composite
def networks(draw) -> tuple[Network, dict[str, HostLayout]]:
    """A network of random steps on x[rows, CHANNELS, 2, 2], and layouts for its tensors."""
    network = Network("random")
    tensors = [network.add_input("x", DataType.FLOAT, (-1, CHANNELS, 2, 2))]

    def pick(candidates: list[Tensor]) -> Tensor:
        return candidates[draw(st.integers(0, len(candidates) - 1))]

    for step in draw(st.lists(st.sampled_from(STEPS), min_size=1, max_size=7)):
        tensors.append(step(network, tensors, pick))
    for tensor in tensors[1:]:
        if not tensor.consumers or draw(st.booleans()):
            network.mark_output(tensor)
    layouts = {tensor.name: draw(st.sampled_from(HostLayout)) for tensor in network.tensors}
    return network, layouts


@given(networks(), st.lists(st.integers(0, 3), min_size=1, max_size=4), st.integers(1, 2))
def test_an_engine_gives_what_its_layers_give(drawn, batches, threads):
    network, layouts = drawn
    context = Engine(plan_of(network, layouts=layouts)).create_execution_context(threads)
    rng = np.random.default_rng(0)
    for rows in batches:
        x = rng.integers(-3, 4, (rows, CHANNELS, 2, 2)).astype(np.float32)
        found, expected = context.run(x), run_reference(network, {"x": x})
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            np.testing.assert_array_equal(found[name], value)


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_every_step_is_one_that_runs_alone(rows):
    """The steps above mean something: each changes a network's output or its shape."""
    x = np.random.default_rng(1).standard_normal((rows, CHANNELS, 2, 2)).astype(np.float32)
    for step in STEPS:
        network = Network("one step")
        tensor = network.add_input("x", DataType.FLOAT, (-1, CHANNELS, 2, 2))
        network.mark_output(step(network, [tensor], lambda candidates: candidates[0]))
        (found,) = Engine(plan_of(network)).create_execution_context(1).run(x).values()
        (expected,) = run_reference(network, {"x": x}).values()
        np.testing.assert_array_equal(found, expected)
