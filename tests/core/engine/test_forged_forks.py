"""Forged plans with forks: only a whole fork that nothing else reads is an operation, by a kernel that supports it."""

import contextlib
import functools

import attrs
import numpy as np
import pytest
from tests.core.builder.networks import activation, convolution, image_network, named

from dryfit.builder import linking
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.building import Builder
from dryfit.engine.engine import Engine
from dryfit.engine.plan_check import check_plan
from dryfit.errors import DryfitError, EngineFileError
from dryfit.network.layers.activation import ActivationType
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.plugins import registry
from dryfit.target.group import LayerGroup


def gate(network, x, name, kind=ActivationType.SIGMOID):
    """`x * sigmoid(x)`, as two layers, or hard swish."""
    opened = activation(network, x, f"{name}.opened", kind)
    return named(network.add_elementwise(x, opened, ElementWiseOperation.PROD), f"{name}.gated")


def built(add, read=()):
    """The plan of a network, with all weights in it; other tensors may be outputs too."""
    network, x = image_network()
    network.mark_output(add(network, x))
    for name in read:
        network.mark_output(network.find_tensor(name))
    config = BuilderConfig()
    config.default_device_type = "CPU"
    drop, linking.drop_packed_weights = linking.drop_packed_weights, lambda network, packed: None
    try:
        return Builder().build_engine(network, config).plan
    finally:
        linking.drop_packed_weights = drop


def gated_convolution(network, x, kind=ActivationType.SIGMOID):
    return gate(network, convolution(network, x, "c"), "g", kind)


def regrouped(plan, *groups, kernel="cpu.reference"):
    """The plan with other operations for its layers; `kernel` runs those that have more than one, and packs them."""
    first = plan.operations[0]
    operations = []
    for names in groups:
        used = next(one for one in registry.host().kernels if one.name == (kernel if names[1:] else "cpu.reference"))
        weights, group = {}, LayerGroup(tuple(plan.network.layer(name) for name in names))
        with contextlib.suppress(Exception):  # kernels that cannot pack these layers
            weights = used.pack(group)
        changes = {"name": " + ".join(names), "layers": names, "kernel": used.name, "weights": weights}
        operations.append(attrs.evolve(first, **changes))
    return attrs.evolve(plan, operations=operations)


def image(plan):
    shape = [abs(extent) for extent in plan.network.inputs[0].shape]
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def results(plan):
    return Engine(plan).create_execution_context(1).run(image(plan))


WHOLE = ("c", "g.opened", "g.gated")


@pytest.fixture(scope="module")
def plan():
    made = built(gated_convolution)
    assert ("g.opened", "g.gated") in [tuple(operation.layers) for operation in made.operations]
    return made


def test_a_whole_fork_may_be_an_operation(plan):
    check_plan(regrouped(plan, WHOLE))
    check_plan(regrouped(plan, ("c",), ("g.opened", "g.gated")))


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([("c", "g.gated", "g.opened")], "must be a chain"),
        ([("g.opened", "c", "g.gated")], "must be a chain"),
        ([("c", "g.opened"), ("g.gated",)], "must be a chain"),
        ([("c", "g.gated")], "must be a chain"),
        ([("c",), ("g.gated",)], "must run after its inputs"),
        ([("c",), ("g.opened",)], "Every layer must belong to an operation"),
        ([("c", "g.opened", "g.opened", "g.gated")], "A layer must run only once"),
    ],
)
def test_layers_of_a_fork_in_another_order_or_left_out_are_refused(plan, groups, message):
    with pytest.raises(EngineFileError, match=message):
        check_plan(regrouped(plan, *groups))


@pytest.mark.parametrize("read", ["c", "g.opened"])
def test_a_fork_whose_inner_tensor_is_an_output_is_refused(read):
    made = built(gated_convolution, read=[read])
    with pytest.raises(EngineFileError, match="must be a chain"):
        check_plan(regrouped(made, WHOLE))


@pytest.mark.parametrize("read", ["c", "g.opened"])
def test_a_fork_whose_inner_tensor_another_operation_reads_is_refused(read):
    def add(network, x):
        value = gated_convolution(network, x)
        network.mark_output(activation(network, network.find_tensor(read), "other"))
        return value

    with pytest.raises(EngineFileError, match="must be a chain"):
        check_plan(regrouped(built(add), WHOLE, ("other",)))


def test_a_fork_that_begins_at_another_tensor_than_the_one_before_it_is_refused():
    def add(network, x):
        activation(network, x, "unread")
        return gate(network, convolution(network, x, "c"), "g")

    made = built(add, read=["unread"])
    made.network.unmark_output(made.network.find_tensor("unread"))
    with pytest.raises(EngineFileError, match="must be a chain"):
        check_plan(regrouped(made, ("c",), ("unread", "g.opened", "g.gated")))


@pytest.mark.parametrize("kind", [ActivationType.SIGMOID, ActivationType.HARD_SIGMOID])
@pytest.mark.parametrize("groups", [[WHOLE], [("c",), ("g.opened", "g.gated")]])
def test_each_kernel_refuses_a_fork_or_computes_it(kind, groups):
    plan = built(functools.partial(gated_convolution, kind=kind))
    right = results(plan)["g.gated"]
    refusing = []
    for kernel in registry.host().kernels:
        forged = regrouped(plan, *groups, kernel=kernel.name)
        try:
            found = results(forged)["g.gated"]
        except DryfitError:
            refusing.append(kernel.name)
            continue
        np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-6)
    assert 0 < len(refusing) < len(registry.host().kernels)


def test_a_layer_and_the_sum_of_its_output_and_its_input_are_no_fork(monkeypatch):
    network, x = image_network()
    channels = x.shape[1]
    layer = network.add_convolution_nd(x, channels, (3, 3), np.ones((channels, 1, 3, 3), np.float32))
    layer.num_groups, layer.padding_nd = channels, (1, 1)
    total = network.add_elementwise(x, layer.get_output(0), ElementWiseOperation.SUM)
    network.mark_output(total.get_output(0))
    config = BuilderConfig()
    config.default_device_type = "CPU"
    plan = Builder().build_engine(network, config).plan
    assert [(len(one.layers), one.kernel) for one in plan.operations] == [(2, "cpu.depthwise_convolution")]
    forkless = {kernel.name: attrs.evolve(kernel, fuses_forks=False) for kernel in registry.host().kernels}
    monkeypatch.setattr("dryfit.engine.resolved_operation._kernels", lambda target: forkless)
    assert len(results(plan)) == 1


def test_a_kernel_that_supports_no_forks_is_given_none(plan, monkeypatch):
    taking_all = [
        attrs.evolve(kernel, fuses_forks=False, fuses=lambda group, layer: True) for kernel in registry.host().kernels
    ]
    monkeypatch.setattr(
        "dryfit.engine.resolved_operation._kernels", lambda target: {kernel.name: kernel for kernel in taking_all}
    )
    forgery = regrouped(plan, WHOLE, kernel="cpu.convolution")
    with pytest.raises(EngineFileError, match="The engine uses a kernel that does not support forks"):
        Engine(forgery).create_execution_context(1)
