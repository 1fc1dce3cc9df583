import logging

import numpy as np
import pytest
from tests.core.builder.networks import activation, add, convolution, elu, image_network, named
from tests.core.engine import compiling_target

from dryfit.builder.config.builder_config import BuilderConfig, BuilderFlag
from dryfit.builder.config.optimization_profile import OptimizationProfile
from dryfit.building import Builder, assess
from dryfit.engine.engine import Engine
from dryfit.errors import BuildError, PlacementError, PluginError
from dryfit.network.data_types import DataType
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.network.layers.ranking import TopKOperation
from dryfit.network.network import Network
from dryfit.network.packed_elements import is_stand_in
from dryfit.reference.executor import run_reference


@pytest.fixture(autouse=True)
def _acme(install):
    """The compiling targets, installed."""
    install("acme_compilers", "", compiling_target.ENTRY_POINTS)
    compiling_target.seen.clear()


def config(device="ACME_COMPILER", *, fp16=False):
    made = BuilderConfig()
    made.default_device_type = device
    made.allow_fallback("GPU")
    if fp16:
        made.set_flag(BuilderFlag.FP16)
    return made


def built(network, made=None):
    return Builder().build_engine(network, made or config())


def kernels(engine):
    return [(operation.device, operation.kernel.partition(".")[2]) for operation in engine.plan.operations]


def assert_runs_as_the_reference(engine, network, tolerance=0.0, **inputs):
    for run in (engine, Engine.load(engine.serialize())):
        found = run.create_execution_context(2).run(inputs)
        for name, array in run_reference(network, inputs).items():
            np.testing.assert_allclose(found[name], array, rtol=tolerance, atol=tolerance)


def image(shape=(1, 8, 6, 6), seed=1):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def diamond():
    """c, then r and t of it, then their sum; `c` and the sum are outputs."""
    network, x = image_network()
    first = convolution(network, x, "c")
    left, right = activation(network, first, "r"), elu(network, first, "t")
    network.mark_output(first)
    network.mark_output(add(network, left, right, "sum"))
    return network


def test_a_compiled_segment_is_one_operation_with_its_program():
    engine = built(diamond())
    (operation,) = engine.plan.operations
    assert operation.kernel == "acme_compiler.segment"
    assert operation.is_compiled
    assert operation.name == "{ForeignNode[c...sum]}"
    assert operation.layers == operation.source_layers == ["c", "r", "t", "sum"]
    assert engine.plan.programs[0].startswith(compiling_target.MAGIC)


def test_a_segment_with_several_outputs_gives_all_of_them():
    assert_runs_as_the_reference(built(diamond()), diamond(), x=image())


def test_the_compiler_is_given_the_segment_and_all_that_it_needs():
    made = config()
    made.set_memory_pool_limit("ACME_WEIGHTS", 4096)
    network = diamond()
    built(network, made)
    (segment,) = compiling_target.seen
    assert (segment.device, segment.platform.name, segment.software, segment.index) == ("ACME_COMPILER", "board", (), 0)
    assert [layer.name for layer in segment.network.layers] == ["c", "r", "t", "sum"]
    assert [tensor.name for tensor in segment.network.inputs] == ["x"]
    assert [tensor.name for tensor in segment.network.outputs] == ["c", "sum"]
    np.testing.assert_array_equal(segment.network.layer("c").kernel, network.layer("c").kernel)
    assert {name: one.name for name, one in segment.input_formats.items()} == {"x": "LINEAR"}
    assert {name: one.name for name, one in segment.output_formats.items()} == {"c": "LINEAR", "sum": "LINEAR"}
    assert set(segment.precisions.values()) == {DataType.FLOAT}
    assert segment.pool_limits == {"ACME_SRAM": None, "ACME_WEIGHTS": 4096}


def test_constants_are_part_of_the_program_and_no_inputs():
    network, x = image_network()
    bias = named(network.add_constant((1, 8, 1, 1), image((1, 8, 1, 1))), "bias")
    network.mark_output(add(network, convolution(network, x, "c"), bias, "sum"))
    engine = built(network)
    (segment,) = compiling_target.seen
    assert [tensor.name for tensor in segment.network.inputs] == ["x"]
    assert "bias" in [layer.name for layer in segment.network.layers]
    assert_runs_as_the_reference(engine, network, x=image())


def test_the_engine_keeps_weights_once_in_the_program():
    engine = built(diamond())
    assert is_stand_in(engine.plan.network.layer("c").kernel)


def test_a_segment_may_read_and_feed_other_devices():
    network, x = image_network()
    outside = named(network.add_softmax(x), "softmax")
    first = convolution(network, x, "c")
    joined = add(network, first, outside, "joined")
    network.mark_output(named(network.add_softmax(joined), "last"))
    network.mark_output(activation(network, first, "r"))
    engine = built(network)
    assert [one for one in kernels(engine) if one[1] == "segment"] == [("ACME_COMPILER", "segment")]
    assert {device for device, _ in kernels(engine)} == {"ACME_COMPILER", "GPU"}
    assert_runs_as_the_reference(engine, network, 1e-6, x=image())


def test_two_segments_have_two_programs():
    network, x = image_network()
    middle = named(network.add_softmax(convolution(network, x, "c")), "softmax")
    network.mark_output(activation(network, middle, "r"))
    engine = built(network)
    assert sorted(engine.plan.programs) == [0, 2]
    assert_runs_as_the_reference(engine, network, 1e-6, x=image())


def test_a_type_that_is_changed_for_the_caller_and_read_again_changes_inside_the_segment():
    """c is computed in FP16; the caller gets it in FP32, and r goes on with it."""
    network, x = image_network()
    first = convolution(network, x, "c")
    network.mark_output(first)
    network.mark_output(activation(network, first, "r"))
    engine = built(network, config(fp16=True))
    compiled = [operation for operation in engine.plan.operations if operation.is_compiled]
    assert len(compiled) == 1
    assert {"c", "r"} <= set(compiled[0].layers)
    assert_runs_as_the_reference(engine, network, 3e-2, x=image())


def test_segments_in_fp16_take_and_give_fp16_in_the_devices_format():
    built(diamond(), config(fp16=True))
    (segment,) = compiling_target.seen
    assert [tensor.dtype for tensor in segment.network.inputs] == [DataType.HALF]
    assert {one.name for one in segment.input_formats.values()} == {"ROWS48"}
    assert set(segment.precisions.values()) == {DataType.HALF}


def test_the_pools_of_a_compiled_segment_are_an_upper_bound():
    pools = built(diamond()).plan.segments[0].pools
    # r and t are alive at the same time, each 1 x 8 x 6 x 6 in FP32, and nothing else stays inside.
    assert pools["ACME_SRAM"] == 2 * 8 * 6 * 6 * 4
    assert pools["ACME_WEIGHTS"] == 8 * 8 * 3 * 3 * 4


def test_the_same_network_gives_the_same_engine_bytes():
    assert built(diamond()).serialize() == built(diamond()).serialize()


def dynamic_network():
    network = Network("dynamic")
    x = network.add_input("x", DataType.FLOAT, (-1, 8, 6, 6))
    network.mark_output(activation(network, convolution(network, x, "c"), "r"))
    return network


def dynamic_config(device):
    made = config(device)
    profile = OptimizationProfile()
    profile.set_shape("x", (1, 8, 6, 6), (2, 8, 6, 6), (4, 8, 6, 6))
    made.add_optimization_profile(profile)
    return made


CAUSE = "its compiler does not support dynamic shapes: (-1, 8, 6, 6) of tensor 'x'"


def test_dynamic_shapes_fall_back_where_the_compiler_does_not_take_them():
    made = dynamic_config("ACME_COMPILER")
    engine = built(dynamic_network(), made)
    assert {device for device, _ in kernels(engine)} == {"GPU"}
    assert all(CAUSE in layer.cause for layer in engine.plan.layers)
    assert not compiling_target.seen
    assert [one.device for one in assess(dynamic_network(), made).layers] == ["GPU", "GPU"]


def test_dynamic_shapes_are_refused_where_nothing_may_fall_back():
    made = dynamic_config("ACME_COMPILER")
    made.allow_fallback(None)
    with pytest.raises(PlacementError) as caught:
        built(dynamic_network(), made)
    assert CAUSE in caught.value.found
    assert "ACME_COMPILER" in caught.value.found
    assert not assess(dynamic_network(), made).can_be_built


def test_dynamic_shapes_are_refused_by_a_fallback_device_that_does_not_take_them():
    made = dynamic_config("ACME_DYNAMIC")
    made.allow_fallback("ACME_COMPILER")
    network = dynamic_network()
    made.set_device_type(network.layer("c"), "ACME_COMPILER")
    with pytest.raises(PlacementError) as caught:
        built(network, made)
    assert CAUSE in caught.value.found


def test_dynamic_shapes_are_compiled_where_the_target_declares_it():
    engine = built(dynamic_network(), dynamic_config("ACME_DYNAMIC"))
    assert compiling_target.seen[0].network.inputs[0].shape == (-1, 8, 6, 6)
    for batch in (1, 3):
        assert_runs_as_the_reference(engine, dynamic_network(), x=image((batch, 8, 6, 6)))


def test_dimensions_that_are_computed_outside_are_inputs_of_a_segment():
    network = Network("dimensions")
    x = network.add_input("x", DataType.FLOAT, (-1, 8, 6, 6))
    extents = named(network.add_shape(x), "shape")
    doubled = named(network.add_elementwise(extents, extents, ElementWiseOperation.SUM), "doubled")
    flat = network.add_shuffle(convolution(network, x, "c"))
    flat.set_input(1, named(network.add_elementwise(doubled, extents, ElementWiseOperation.SUB), "back"))
    network.mark_output(activation(network, named(flat, "flat"), "r"))
    engine = built(network, dynamic_config("ACME_DYNAMIC"))
    assert [tensor.name for tensor in compiling_target.seen[0].network.inputs] == ["x", "back"]
    for batch in (1, 3):
        assert_runs_as_the_reference(engine, network, x=image((batch, 8, 6, 6)))


def test_a_segment_that_needs_a_dimension_of_its_own_output_is_refused():
    network = Network("circle")
    x = network.add_input("x", DataType.FLOAT, (-1, 8, 6, 6))
    first = convolution(network, x, "c")
    extents = named(network.add_shape(first), "shape")
    doubled = named(network.add_elementwise(extents, extents, ElementWiseOperation.SUM), "doubled")
    flat = network.add_shuffle(activation(network, first, "r"))
    flat.set_input(1, named(network.add_elementwise(doubled, extents, ElementWiseOperation.SUB), "back"))
    network.mark_output(named(flat, "flat"))
    with pytest.raises(BuildError, match="A compiled segment must not depend on its own outputs") as caught:
        built(network, dynamic_config("ACME_DYNAMIC"))
    assert "ForeignNode" in caught.value.found


def test_shapes_that_follow_from_data_are_not_compiled():
    network = Network("data")
    x = network.add_input("x", DataType.FLOAT, (4, 4))
    found = named(network.add_non_zero(x), "found")
    values = named(network.add_cast(found, DataType.FLOAT), "values")
    network.mark_output(activation(network, values, "r"))
    with pytest.raises(BuildError, match="A compiled segment must not have data-dependent shapes"):
        built(network, config("ACME_DYNAMIC"))


def test_a_compiler_that_stumbles_ends_the_build_and_is_named():
    with pytest.raises(BuildError) as caught:
        built(diamond(), config("ACME_REFUSING"))
    assert caught.value.where == "segment 0 of ACME_REFUSING"
    assert "KeyError: 'no code for convolution'" in caught.value.found


def test_a_compiler_that_gives_no_bytes_is_named():
    with pytest.raises(PluginError, match="must return bytes") as caught:
        built(diamond(), config("ACME_TEXT"))
    assert (caught.value.found, "compiling_target:as_text" in caught.value.where) == ("str", True)


def test_an_output_that_nobody_reads_is_not_stored():
    network = Network("top")
    x = network.add_input("x", DataType.FLOAT, (2, 9))
    network.mark_output(named(network.add_topk(x, TopKOperation.MAX, 3, 2), "top"))
    engine = built(network)
    (segment,) = compiling_target.seen
    assert [tensor.name for tensor in segment.network.outputs] == ["top"]
    assert_runs_as_the_reference(engine, network, x=image((2, 9)))


def test_the_log_tells_that_a_segment_is_compiled(tmp_path, caplog):
    builder = Builder()
    builder.dump_stages_directory = tmp_path / "stages"
    with caplog.at_level(logging.INFO, logger="dryfit.builder"):
        builder.build_engine(diamond(), config())
    (dump,) = (tmp_path / "stages").glob("*choose-kernels.txt")
    assert "{ForeignNode[c...sum]}: acme_compiler.segment on ACME_COMPILER" in dump.read_text()
