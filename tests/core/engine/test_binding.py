"""Binding: memory and kernels for one set of shapes, whatever is known of the tensors by then."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from tests.core.engine.hand_built import plan_of
from tests.core.engine.small_networks import convolution_network, named, relu_network

from dryfit.building import Builder
from dryfit.engine import resolved_operation
from dryfit.engine.engine import Engine
from dryfit.errors import EngineFileError, ExecutionError, PluginError
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.layers.elementwise import ElementWiseOperation, UnaryOperation
from dryfit.network.layers.matrix import MatrixOperation
from dryfit.network.layers.reduction import ReduceOperation
from dryfit.network.layers.window_layer import PoolingType
from dryfit.network.network import Network
from dryfit.plugins import registry
from dryfit.reference.registry import evaluate
from dryfit.target.kernels import Binding, HostLayout, Kernel

shares_memory = pytest.mark.skipif(
    "config.getoption('--guard-pages')", reason="between guard pages each array has memory of its own"
)


def run(plan, *inputs):
    return Engine(plan).create_execution_context(1).run(*inputs)


@pytest.fixture
def recording(monkeypatch):
    """A kernel `test.recording` that evaluates its group by the reference and keeps what it was bound with."""
    bindings: list[Binding] = []

    class Step:
        def __init__(self, binding):
            self.name, self.binding = binding.group.name, binding

        def run(self):
            values = dict(self.binding.arrays)
            self.binding.workspace[:] = 255
            for layer in self.binding.group.layers:
                outputs = evaluate(layer, [None if t is None else values[t.name] for t in layer.inputs])
                values.update({tensor.name: value for tensor, value in zip(layer.outputs, outputs, strict=True)})
            for tensor in self.binding.group.outputs:
                self.binding.arrays[tensor.name][...] = values[tensor.name]

    def bind(binding):
        bindings.append(binding)
        return Step(binding)

    kernel = Kernel(
        name="test.recording",
        kinds={"activation", "convolution", "elementwise", "unary", "reduce"},
        data_types=frozenset(DataType),
        bind=bind,
        fuses=lambda group, layer: True,
        workspace_bytes=lambda group, specs, num_threads: 100 * num_threads,
    )
    originals = resolved_operation._kernels
    monkeypatch.setattr(resolved_operation, "_kernels", lambda device: {**originals(device), "test.recording": kernel})
    return bindings


# Memory ---------------------------------------------------------------------------------------------------------------


def chain_network(length: int, shape=(2, 4, 5, 6)) -> Network:
    """x + 1 + 1 + ...: `length` unary layers in a row, every one alive for two steps, and x added at the end."""
    network = Network("chain")
    x = tensor = network.add_input("x", DataType.FLOAT, shape)
    for index in range(length):
        tensor = named(network, network.add_unary(tensor, UnaryOperation.NEG), f"u{index}")
    sum_ = network.add_elementwise(tensor, x, ElementWiseOperation.SUM)
    network.mark_output(named(network, sum_, "sum"))
    return network


@shares_memory
def test_kernels_get_aligned_memory_that_never_overlaps_while_alive(recording):
    x = np.random.default_rng(0).standard_normal((2, 4, 5, 6)).astype(np.float32)
    layouts = {f"u{index}_out": HostLayout.CHANNELS_LAST for index in range(0, 6, 2)}
    plan = plan_of(chain_network(6), kernel="test.recording", layouts=layouts)
    np.testing.assert_array_equal(run(plan, x)["sum_out"], 2 * x)
    assert len(recording) == 7
    for binding in recording:
        arrays = list(binding.arrays.values())
        assert all(array.ctypes.data % 64 == 0 for array in (*arrays, binding.workspace))
        assert binding.workspace.shape == (100,)
        for index, array in enumerate(arrays):
            assert not any(np.may_share_memory(array, other) for other in (*arrays[index + 1 :], binding.workspace))
        assert {name: array.shape for name, array in binding.arrays.items()} == {
            name: spec.shape for name, spec in binding.specs.items() if name in binding.arrays
        }
    distinct = {binding.arrays[f"u{i}_out"].ctypes.data for i, binding in enumerate(recording[:6])}
    assert len(distinct) < 6


def test_arrays_have_the_strides_of_their_layout(recording):
    plan = plan_of(
        chain_network(2), kernel="test.recording", layouts={"u0_out": HostLayout.CHANNELS_LAST, "x": HostLayout.ANY}
    )
    run(plan, np.zeros((2, 4, 5, 6), np.float32))
    first = recording[0].arrays
    assert first["u0_out"].strides == tuple(4 * step for step in (5 * 6 * 4, 1, 6 * 4, 4))
    assert first["x"].strides == tuple(4 * step for step in (4 * 5 * 6, 5 * 6, 6, 1))


def test_volumes_have_the_channels_of_a_point_together(recording):
    layouts = {"u0_out": HostLayout.CHANNELS_LAST}
    plan = plan_of(chain_network(2, (2, 4, 3, 5, 6)), kernel="test.recording", layouts=layouts)
    run(plan, np.zeros((2, 4, 3, 5, 6), np.float32))
    strides = recording[0].arrays["u0_out"].strides
    assert strides == tuple(4 * step for step in (3 * 5 * 6 * 4, 1, 5 * 6 * 4, 6 * 4, 4))


def test_a_layout_of_images_leaves_other_ranks_as_they_are(recording):
    layouts = dict.fromkeys(("x", "y"), HostLayout.CHANNELS_LAST)
    run(plan_of(relu_network((2, 3)), kernel="test.recording", layouts=layouts), np.zeros((2, 3), np.float32))
    assert recording[0].arrays["y"].flags.c_contiguous


def test_a_group_is_bound_as_one(recording):
    plan = plan_of(convolution_network(2), groups=[("conv", "relu")], kernel="test.recording")
    x = np.random.default_rng(0).standard_normal((2, 3, 8, 8)).astype(np.float32)
    outputs = run(plan, x)
    assert [binding.group.name for binding in recording] == ["conv + relu"]
    assert set(recording[0].arrays) == {"x", "y"}
    assert set(recording[0].specs) == {"x", "y", "conv_out"}
    np.testing.assert_array_equal(outputs["y"], run(plan_of(convolution_network(2)), x)["y"])


@shares_memory
def test_weights_are_shared_read_only_by_all_contexts(recording):
    weights = {"packed": np.arange(3, dtype=np.float32)}
    engine = Engine(plan_of(relu_network(), kernel="test.recording", weights={"relu": weights}))
    for _ in range(2):
        engine.create_execution_context(1).run(np.zeros((2, 3), np.float32))
    arrays = [binding.weights["packed"] for binding in recording]
    assert all(np.shares_memory(array, weights["packed"]) and not array.flags.writeable for array in arrays)


def test_a_network_that_needs_more_memory_than_there_is_says_so():
    network = relu_network((-1, 2**20))
    context = Engine(plan_of(network)).create_execution_context(1)
    x = np.broadcast_to(np.float32(0), (2**30, 2**20))
    with pytest.raises(
        ExecutionError, match=r"Not enough memory.*found 4503599627370496 bytes needed.*smaller batches"
    ):
        context.run(x)


# Kernels that are not there -------------------------------------------------------------------------------------------


def test_a_kernel_that_is_not_installed_is_named_before_anything_runs():
    with pytest.raises(EngineFileError) as caught:
        Engine(plan_of(relu_network(), kernel="acme.fast_relu")).create_execution_context()
    assert "engine layer 'relu'" in str(caught.value)
    assert "kernel 'acme.fast_relu'" in str(caught.value)
    assert "cpu.reference" in str(caught.value)
    assert "gpu 0.1.0 (dryfit)" in str(caught.value)


def test_a_device_that_is_not_installed_is_named():
    plan = plan_of(relu_network())
    plan = attrs.evolve(plan, operations=[attrs.evolve(plan.operations[0], device="ACME_NPU")])
    with pytest.raises(PluginError, match=r"engine layer 'relu'.*found ACME_NPU; allowed: .*CPU.*GPU"):
        Engine(plan).create_execution_context()


def test_a_kernel_that_does_not_serve_the_layer_is_refused(recording):
    network = Network("softmax")
    network.mark_output(named(network, network.add_softmax(network.add_input("x", DataType.FLOAT, (2, 3))), "s"))
    with pytest.raises(EngineFileError, match=r"found kernel 'test.recording' for softmax; allowed: activation, conv"):
        Engine(plan_of(network, kernel="test.recording")).create_execution_context()


def test_a_host_without_a_schedule_cannot_run(monkeypatch):
    host = attrs.evolve(registry.host(), create_schedule_at=None)
    monkeypatch.setattr(registry, "host", lambda: host)
    with pytest.raises(PluginError, match="CPU: The host target must have a schedule to run kernels"):
        run(plan_of(relu_network()), np.zeros((2, 3), np.float32))


# Known values ---------------------------------------------------------------------------------------------------------


def test_what_is_known_from_the_shapes_does_not_run(recording):
    network = Network("rows")
    x = network.add_input("x", DataType.FLOAT, (-1, 3))
    shape = named(network, network.add_shape(x), "shape")
    doubled = named(network, network.add_elementwise(shape, shape, ElementWiseOperation.SUM), "doubled")
    network.mark_output(doubled)
    plan = plan_of(network)
    plan = attrs.evolve(
        plan, operations=[plan.operations[0], attrs.evolve(plan.operations[1], kernel="test.recording")]
    )
    context = Engine(plan).create_execution_context(1)
    for rows in (1, 5):
        outputs = context.run(np.zeros((rows, 3), np.float32))
        np.testing.assert_array_equal(outputs["doubled_out"], [2 * rows, 6])
        outputs["doubled_out"][...] = 0
    assert recording == []


def test_constants_reach_kernels_and_outputs():
    network = Network("constants")
    x = network.add_input("x", DataType.FLOAT, (2, 3))
    constant = named(network, network.add_constant((1, 3), np.float32([[1, 2, 3]])), "c")
    network.mark_output(named(network, network.add_elementwise(x, constant, ElementWiseOperation.PROD), "p"))
    network.mark_output(constant)
    outputs = run(plan_of(network), np.full((2, 3), 2, np.float32))
    np.testing.assert_array_equal(outputs["p_out"], [[2, 4, 6]] * 2)
    np.testing.assert_array_equal(outputs["c_out"], [[1, 2, 3]])


def test_constants_need_no_operation():
    network = Network("constants")
    x = network.add_input("x", DataType.FLOAT, (2, 3))
    constant = named(network, network.add_constant((1, 3), np.float32([[1, 2, 3]])), "c")
    network.mark_output(named(network, network.add_elementwise(x, constant, ElementWiseOperation.PROD), "p"))
    plan = plan_of(network)
    plan = attrs.evolve(plan, operations=[one for one in plan.operations if one.name == "p"])
    np.testing.assert_array_equal(run(plan, np.full((2, 3), 2, np.float32))["p_out"], [[2, 4, 6]] * 2)
    assert Engine.load(Engine(plan).serialize()).num_layers == 1


def test_an_input_that_is_an_output_passes_through():
    network = Network("through")
    x = network.add_input("x", DataType.FLOAT, (2,))
    network.mark_output(x)
    np.testing.assert_array_equal(run(plan_of(network), np.float32([1, 2]))["x"], [1, 2])


def test_a_network_without_inputs_runs():
    network = Network("constant")
    network.mark_output(named(network, network.add_constant((2,), np.float32([1, 2])), "c"))
    np.testing.assert_array_equal(run(plan_of(network))["c_out"], [1, 2])
    np.testing.assert_array_equal(run(plan_of(network), {})["c_out"], [1, 2])


# Shapes that depend on data -------------------------------------------------------------------------------------------


def mixture_network() -> Network:
    """x -> negative -> RELU -> where it is not zero -> gather -> sum: known shapes, unknown shapes, known again."""
    network = Network("mixture")
    x = network.add_input("x", DataType.FLOAT, (-1,))
    negative = named(network, network.add_unary(x, UnaryOperation.NEG), "neg")
    relu = named(network, network.add_activation(negative, ActivationType.RELU), "relu")
    places = named(network, network.add_non_zero(relu), "places")
    squeezed = named(network, network.add_reduce(places, ReduceOperation.MAX, 1, keep_dims=False), "flat")
    found = named(network, network.add_gather(negative, squeezed, 0), "found")
    scaled = named(network, network.add_unary(found, UnaryOperation.NEG), "scaled")
    total = named(network, network.add_reduce(scaled, ReduceOperation.SUM, 1, keep_dims=True), "total")
    after = named(network, network.add_unary(total, UnaryOperation.ABS), "after")
    for tensor in (places, scaled, after, relu):
        network.mark_output(tensor)
    return network


@pytest.mark.parametrize("x", [[1, -2, 3, -4], [1, 2], [-1], [0, 0, 0], []])
def test_shapes_that_depend_on_data_are_those_of_the_data(x):
    x = np.float32(x)
    context = Engine(plan_of(mixture_network())).create_execution_context(2)
    for _ in range(2):
        outputs = context.run(x)
        np.testing.assert_array_equal(outputs["places_out"], np.nonzero(x < 0))
        np.testing.assert_array_equal(outputs["scaled_out"], x[x < 0])
        np.testing.assert_array_equal(outputs["after_out"], [abs(x[x < 0].sum())])
        np.testing.assert_array_equal(outputs["relu_out"], np.maximum(-x, 0))


def test_a_kernel_serves_a_group_whose_shapes_come_late(recording):
    plan = plan_of(mixture_network())
    operations = [
        attrs.evolve(one, kernel="test.recording", weights={"w": np.zeros(1)})
        if one.name in ("scaled", "after")
        else one
        for one in plan.operations
    ]
    context = Engine(attrs.evolve(plan, operations=operations)).create_execution_context(1)
    for x in ([1, -2, 3, -4], [-1, -2, -3, -5]):
        assert context.run(np.float32(x))["after_out"] == [abs(sum(value for value in x if value < 0))]
    late = [binding.arrays["scaled_out"].shape for binding in recording if binding.group.name == "scaled"]
    assert late == [(2,), (4,)]
    assert len([binding for binding in recording if binding.group.name == "after"]) == 1


def test_a_shape_that_is_an_input_decides_in_each_run():
    network = Network("reshape")
    x = network.add_input("x", DataType.FLOAT, (6,))
    shape = network.add_input("shape", DataType.INT64, (2,))
    shuffle = network.add_shuffle(x)
    shuffle.set_input(1, shape)
    network.mark_output(named(network, shuffle, "reshaped"))
    context = Engine(plan_of(network)).create_execution_context(1)
    for target in ([2, 3], [6, 1], [3, 2]):
        output = context.run({"x": np.arange(6, dtype=np.float32), "shape": np.int64(target)})["reshaped_out"]
        np.testing.assert_array_equal(output, np.arange(6).reshape(target))


def test_data_that_leads_to_impossible_shapes_names_the_layer():
    network = Network("two counts")
    a, b = (network.add_input(name, DataType.FLOAT, (4,)) for name in ("a", "b"))
    places = [network.add_non_zero(tensor).get_output(0) for tensor in (a, b)]
    network.mark_output(named(network, network.add_elementwise(*places, ElementWiseOperation.SUM), "sum"))
    context = Engine(plan_of(network)).create_execution_context(1)
    np.testing.assert_array_equal(context.run(np.float32([0, 1, 1, 0]), np.float32([1, 1, 0, 0]))["sum_out"], [[1, 3]])
    with pytest.raises(
        ExecutionError, match=r"engine layer 'sum'.*The data leads to shapes that the layer does not support"
    ):
        context.run(np.float32([0, 1, 1, 0]), np.float32([1, 1, 1, 0]))


# Empty tensors --------------------------------------------------------------------------------------------------------


def test_layers_that_a_kernel_does_not_run_as_one_are_refused():
    network = Network("pooling and gather")
    x = network.add_input("x", DataType.FLOAT, (1, 4, 8, 8))
    pooled = named(network, network.add_pooling_nd(x, PoolingType.MAX, (2, 2)), "pool")
    places = network.add_constant((3,), np.zeros(3, np.int64)).get_output(0)
    network.mark_output(named(network, network.add_gather(pooled, places, 1), "gather"))
    plan = plan_of(network, groups=[("pool", "gather")], kernel="cpu.pooling")
    plan = attrs.evolve(plan, operations=[one for one in plan.operations if len(one.layers) > 1])
    with pytest.raises(EngineFileError, match="The engine uses a kernel that does not support this fusion") as caught:
        Engine(plan).create_execution_context(1)
    assert caught.value.found == "kernel 'cpu.pooling' for pooling, gather"


def test_a_product_of_no_rows_runs_though_its_kernel_takes_some_only():
    network = Network("product")
    x = network.add_input("x", DataType.FLOAT, (-1, 4))
    weights = network.add_constant((4, 8), np.ones((4, 8), np.float32)).get_output(0)
    layer = network.add_matrix_multiply(x, MatrixOperation.NONE, weights, MatrixOperation.NONE)
    network.mark_output(layer.get_output(0))
    builder = Builder()
    config, profile = builder.create_builder_config(), builder.create_optimization_profile()
    profile.set_shape("x", (0, 4), (2, 4), (3, 4))
    config.add_optimization_profile(profile)
    engine = builder.build_engine(network, config)
    assert "cpu.matrix_multiply" in [operation.kernel for operation in engine.plan.operations]
    for rows in (0, 2):
        (product,) = engine.create_execution_context().run({"x": np.ones((rows, 4), np.float32)}).values()
        np.testing.assert_array_equal(product, np.full((rows, 8), 4.0))


def test_empty_tensors_run():
    context = Engine(plan_of(convolution_network())).create_execution_context(1)
    assert context.run(np.zeros((0, 3, 8, 8), np.float32))["y"].shape == (0, 4, 8, 8)


@pytest.mark.parametrize("kernel", ["cpu.reference", "test.recording"])
def test_something_is_made_of_nothing(kernel, recording):
    network = Network("sum of nothing")
    x = network.add_input("x", DataType.FLOAT, (-1, 2))
    total = named(network, network.add_reduce(x, ReduceOperation.SUM, 1, keep_dims=False), "total")
    network.mark_output(named(network, network.add_unary(total, UnaryOperation.EXP), "e"))
    context = Engine(plan_of(network, kernel=kernel)).create_execution_context(1)
    np.testing.assert_array_equal(context.run(np.zeros((0, 2), np.float32))["e_out"], [1, 1])
    np.testing.assert_array_equal(context.run(np.zeros((3, 2), np.float32))["e_out"], [1, 1])
    assert all(binding.arrays["total_out"].size for binding in recording)


def test_a_half_precision_chain_of_nothing_is_rounded_once():
    network = Network("chain of nothing")
    x = network.add_input("x", DataType.HALF, (-1, 2))
    total = named(network, network.add_reduce(x, ReduceOperation.SUM, 1, keep_dims=False), "total")
    network.mark_output(named(network, network.add_unary(total, UnaryOperation.COS), "c"))
    plan = plan_of(network, groups=[("total", "c")])
    output = run(plan, np.zeros((0, 2), np.float16))["c_out"]
    assert output.dtype == np.float16
    np.testing.assert_array_equal(output, [1, 1])


def test_shapes_that_no_layer_can_take_name_the_layer():
    network = Network("two inputs")
    a, b = (network.add_input(name, DataType.FLOAT, (-1, 3)) for name in ("a", "b"))
    network.mark_output(named(network, network.add_elementwise(a, b, ElementWiseOperation.SUM), "sum"))
    with pytest.raises(
        ExecutionError, match=r"engine 'two inputs'.*The network does not support these input shapes.*layer 'sum'"
    ):
        run(plan_of(network), np.zeros((2, 3), np.float32), np.zeros((4, 3), np.float32))
