import numpy as np
import pytest
from tests.core.builder.networks import (
    activation,
    add,
    chain,
    convolution,
    dla_config,
    elu,
    fp16_config,
    image_network,
    named,
)

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.building import Builder
from dryfit.engine.memory_planner import largest_live_set
from dryfit.plugins import registry


def build(network, config):
    return Builder().build_plan(network, config)


def lives(plan):
    """Tensor to (first, last) operation, from the plan alone."""
    life = {}
    for step, operation in enumerate(plan.operations):
        for name in operation.layers:
            layer = plan.network.layer(name)
            for tensor in layer.inputs:
                if tensor is not None and tensor.name in life:
                    life[tensor.name][1] = step
            for tensor in layer.outputs:
                life[tensor.name] = [step, step]
    return life


def overlaps(plan):
    life = lives(plan)
    inside = [one for one in plan.placements.values() if one.pool]
    return [
        (a.tensor, b.tensor)
        for index, a in enumerate(inside)
        for b in inside[:index]
        if (a.device, a.pool) == (b.device, b.pool)
        and (a.pool == "ACTIVATIONS" or segment_of(plan, a.tensor) == segment_of(plan, b.tensor))
        and life[a.tensor][0] <= life[b.tensor][1]
        and life[b.tensor][0] <= life[a.tensor][1]
        and a.offset < b.offset + b.size
        and b.offset < a.offset + a.size
    ]


def segment_of(plan, tensor):
    producer = plan.network.tensor(tensor).producer
    return next(one.segment for one in plan.operations if producer.name in one.layers)


def branching():
    network, x = image_network((1, 8, 12, 12))
    tensors = [convolution(network, x, "stem")]
    for index in range(12):
        make = [convolution, elu, activation][index % 3]
        tensors.append(make(network, tensors[-1 - index % 2], f"t{index}"))
    total = tensors[3]
    for index, tensor in enumerate(tensors[4:]):
        total = add(network, total, tensor, f"sum{index}")
    network.mark_output(total)
    return network


@pytest.mark.parametrize("config", [BuilderConfig(), fp16_config(), dla_config()], ids=["fp32", "fp16", "dla"])
def test_tensors_that_live_together_never_overlap_in_a_device_pool(config):
    plan = build(branching(), config)
    assert overlaps(plan) == []
    for one in plan.placements.values():
        if one.pool:
            assert one.offset + one.size <= plan.pool_sizes[f"{one.device}/{one.pool}"]


def test_every_tensor_that_is_stored_has_a_place_and_no_other():
    plan = build(chain("c", "r", "e", "c", "r"), dla_config())
    inner = {
        tensor.name
        for operation in plan.operations
        for name in operation.layers[:-1]
        for tensor in plan.network.layer(name).outputs
    }
    assert inner
    assert plan.placements.keys() == {tensor.name for tensor in plan.network.tensors} - inner


def test_sizes_are_those_of_the_device_formats_and_offsets_are_aligned():
    plan = build(branching(), dla_config())
    for name, place in plan.placements.items():
        tensor = plan.network.tensor(name)
        layout = registry.target(place.device).format(place.format)
        assert place.size == layout.size_bytes(tensor.shape, tensor.dtype, "orin")
        assert place.offset % 64 == 0
    assert {place.format for place in plan.placements.values() if place.device == "DLA"} == {"CHW16"}


def test_what_one_segment_alone_sees_lies_in_the_devices_pool_and_the_rest_in_the_boards():
    plan = build(chain("c", "c", "e"), dla_config())
    assert plan.placements["c0"].pool == "DLA_LOCAL_DRAM"
    assert plan.placements["c1"].pool == "ACTIVATIONS"
    assert (plan.placements["x"].pool, plan.placements["e2"].pool) == ("", "")
    assert plan.pool_sizes["DLA/DLA_LOCAL_DRAM"] == plan.placements["c0"].size
    assert plan.segments[0].pools["DLA_LOCAL_DRAM"] == plan.placements["c0"].size


def test_weights_are_counted_for_pools_that_hold_them():
    plan = build(chain("c", "c", "e", "c"), dla_config())
    each = 8 * 8 * 3 * 3 * 2
    assert [segment.pools.get("DLA_GLOBAL_DRAM") for segment in plan.segments] == [2 * each, None, each]
    assert plan.pool_sizes["DLA/DLA_GLOBAL_DRAM"] == 3 * each


def test_inputs_and_outputs_take_no_room_in_pools():
    plan = build(chain("r"), BuilderConfig())
    assert plan.pool_sizes == {}
    assert {place.pool for place in plan.placements.values()} == {""}


def test_a_dynamic_network_is_laid_out_for_the_optimum_of_its_first_profile():
    network, x = image_network((-1, 8, 6, 6))
    first = elu(network, x, "first")
    network.mark_output(convolution(network, first, "second"))
    builder, config = Builder(), BuilderConfig()
    profile = builder.create_optimization_profile()
    profile.set_shape("x", (1, 8, 6, 6), (3, 8, 6, 6), (9, 8, 6, 6))
    config.add_optimization_profile(profile)
    plan = builder.build_plan(network, config)
    assert plan.placements["first"].size == 3 * 8 * 6 * 6 * 4
    assert plan.placements["x"].size == 3 * 8 * 6 * 6 * 4


def test_copies_of_one_type_take_room_although_the_engines_network_has_no_tensor_for_them():
    plan = build(chain("c", "e", "e"), dla_config())
    copies = sum(one.size for one in plan.reformats if one.tensor == "c0")
    first = plan.placements["e1"].size
    assert plan.pool_sizes["GPU/ACTIVATIONS"] >= copies + first


def test_the_peak_is_the_largest_live_set():
    plan = build(branching(), BuilderConfig())
    life = lives(plan)
    buffers = [(one.size, *life[one.tensor]) for one in plan.placements.values() if one.pool]
    assert plan.pool_sizes["GPU/ACTIVATIONS"] <= 1.05 * largest_live_set(buffers, 256)


def test_a_shape_computation_that_feeds_data_has_no_place_on_a_device():
    network, x = image_network((-1, 4))
    shape = named(network.add_shape(x), "shape")
    floats = named(network.add_cast(shape, x.dtype), "floats")
    shuffle = network.add_shuffle(floats)
    shuffle.reshape_dims = (1, 2)
    twice = named(network.add_concatenation([named(shuffle, "row"), shuffle.get_output(0)]), "twice")
    twice.producer.axis = 1
    from dryfit.network.layers.elementwise import ElementWiseOperation

    network.mark_output(named(network.add_elementwise(x, twice, ElementWiseOperation.SUM), "sum"))
    builder, config = Builder(), fp16_config()
    profile = builder.create_optimization_profile()
    profile.set_shape("x", (1, 4), (2, 4), (4, 4))
    config.add_optimization_profile(profile)
    engine = builder.build_engine(network, config)
    assert "floats" not in engine.plan.placements
    output = engine.create_execution_context().run({"x": np.zeros((3, 4), np.float32)})["sum"]
    np.testing.assert_array_equal(output, [[3, 4, 3, 4]] * 3)
