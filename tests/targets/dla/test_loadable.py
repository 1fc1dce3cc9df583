"""Loadables: what the builder writes for each segment of the DLA, and what is read back."""

import functools

import attrs
import numpy as np
import pytest
from tests.core.builder.networks import activation, convolution, dla_config, elu, image_network, named, weights
from tests.core.engine.forged_files import split

from dryfit.builder.config.builder_config import BuilderFlag
from dryfit.builder.config.optimization_profile import OptimizationProfile
from dryfit.building import Builder
from dryfit.engine.container import ArrayEntry, chunks, json_text
from dryfit.engine.engine import Engine
from dryfit.errors import BuildError, ConfigError, EngineFileError, UnknownNameError
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ScaleMode
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.network.layers.matrix import MatrixOperation
from dryfit.network.network import Network
from dryfit.plugins import registry
from dryfit.target.formats import LINEAR
from dryfit_dla.loadable import LoadableTensor
from dryfit_dla.loadable_export import export_segment
from dryfit_dla.loadable_file import LOADABLE, read_loadable


def small_network(maps=20):
    """Convolution, scale, ReLU, a sum with a constant, convolution: every role of weights."""
    network, x = image_network((1, 20, 6, 6))
    x = convolution(network, x, "first", maps=maps)
    scale = network.add_scale(x, ScaleMode.CHANNEL, weights(maps), np.abs(weights(maps, seed=1)))
    x = activation(network, named(scale, "scale"), "relu")
    constant = network.add_constant((1, maps, 1, 1), weights(1, maps, 1, 1))
    total = network.add_elementwise(x, constant.get_output(0), ElementWiseOperation.SUM)
    network.mark_output(convolution(network, named(total, "sum"), "last", maps=5, seed=3))
    return network


def asked(mode, network):
    config = dla_config()
    if mode == "int8":
        config.set_flag(BuilderFlag.INT8)
        for tensor in network.tensors:
            if tensor.producer is None or tensor.producer.kind != "constant":
                tensor.dynamic_range = (-20.0, 20.0)
    return config


@functools.cache
def built(mode="fp16"):
    """(the engine, the loadable's bytes) of the small network."""
    network = small_network()
    config = asked(mode, network)
    return Builder().build_engine(network, config), Builder().build_loadables(network, config).files[0]


def image(shape=(1, 20, 6, 6)):
    return np.random.default_rng(5).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("mode", ["fp16", "int8"])
def test_a_loadable_gives_the_bits_of_the_engine_that_it_is_a_segment_of(mode):
    engine, contents = built(mode)
    loadable = read_loadable(contents)
    (read,), (written,) = loadable.inputs, loadable.outputs
    x = image()
    (expected,) = engine.create_execution_context(1).run({"x": x}).values()
    stored = x.astype(np.float16) if mode == "fp16" else np.clip(np.rint(x / np.float32(read.scale)), -128, 127)
    buffer = bytearray(read.size_bytes)
    read.write(buffer, stored.astype(read.dtype.numpy))
    results = loadable.create_engine().create_execution_context(1).run({read.name: read.read(buffer)})
    found = results[written.name].astype(np.float32) * np.float32(written.scale or 1)
    np.testing.assert_array_equal(found, expected)


def test_each_segment_of_the_dla_has_a_loadable_and_chained_they_are_the_engine():
    network, x = image_network((1, 8, 6, 6))
    x = convolution(network, elu(network, convolution(network, x, "a"), "e"), "b")
    network.mark_output(x)
    config = dla_config()
    loadables = Builder().build_loadables(network, config)
    first, second = (read_loadable(loadables.files[index]) for index in sorted(loadables.files))
    assert [one.device for one in loadables.plan.segments] == ["DLA", "GPU", "DLA"]
    assert [first.segment, second.segment] == [0, 2]
    assert [first.origins[first.outputs[0].name], second.origins[second.inputs[0].name]] == ["a", "e"]
    assert [layer.name for layer in (*first.layers, *second.layers)] == ["a", "b"]


def test_an_int8_layer_whose_result_others_take_in_fp16_gives_fp16_itself():
    network, x = image_network((1, 8, 6, 6))
    network.mark_output(elu(network, convolution(network, x, "c"), "e"))
    config = dla_config()
    config.set_flag(BuilderFlag.INT8)
    for tensor in network.tensors:
        if tensor.name != "e":
            tensor.dynamic_range = (-3.0, 3.0)
    loadables = Builder().build_loadables(network, config)
    loadable = read_loadable(loadables.files[0])
    assert [(one.dtype, one.format) for one in (*loadable.inputs, *loadable.outputs)] == [
        (DataType.INT8, "CHW32"),
        (DataType.HALF, "CHW16"),
    ]
    values = np.random.default_rng(2).integers(-128, 128, (1, 8, 6, 6)).astype(np.int8)
    results = loadable.create_engine().create_execution_context(1).run({loadable.inputs[0].name: values})
    assert results[loadable.outputs[0].name].dtype == np.float16


def test_a_tensor_of_a_type_that_no_dla_has_is_not_written():
    planned = read_loadable(built()[1]).planned
    name = planned.network.inputs[0].name
    with pytest.raises(BuildError, match="found FP16 LINEAR; allowed: CHW16"):
        export_segment(attrs.evolve(planned, input_formats={name: LINEAR}))


def test_the_same_network_gives_the_same_bytes():
    network = small_network()
    assert Builder().build_loadables(network, asked("fp16", network)).files[0] == built()[1]


def test_weights_take_the_bytes_that_the_global_dram_was_reckoned_with():
    engine, contents = built()
    loadable = read_loadable(contents)
    assert sum(one.size_bytes for one in loadable.weights) == loadable.pools["DLA_GLOBAL_DRAM"]
    assert loadable.pools == engine.plan.segments[0].pools
    layouts = {one.name.rpartition(".")[0]: one.layout for one in loadable.weights}
    assert layouts["scale"] == "FP19_C16"
    kernel = next(one for one in loadable.weights if one.name == "first.kernel")
    assert (kernel.layout, kernel.stored, kernel.shape) == ("KERNEL_GROUPS", DataType.HALF, (20, 20, 3, 3))
    assert loadable.stored_weights("first.kernel").nbytes == kernel.size_bytes


@pytest.mark.parametrize("shape", [(300,), (3, 10, 10)])
@pytest.mark.parametrize(("mode", "expected"), [("fp16", 16 * 100 * 4), ("int8", 32 * 100 * 4)])
def test_an_elementwise_scale_is_stored_with_its_channels_filled_up(shape, mode, expected):
    network, x = image_network((1, 3, 10, 10))
    layer = network.add_scale(x, ScaleMode.ELEMENTWISE, None, weights(*shape))
    layer.precision = DataType.INT8 if mode == "int8" else None
    network.mark_output(activation(network, named(layer, "scale"), "relu"))
    config = asked(mode, network)
    loadable = read_loadable(Builder().build_loadables(network, config).files[0])
    stored = next(one for one in loadable.weights if one.layer == "scale")
    assert (stored.size_bytes, stored.shape) == (expected, (3, 10, 10))
    engine = Builder().build_engine(network, config)
    (segment,) = [one for one in engine.plan.segments if one.device == "DLA"]
    assert segment.pools["DLA_GLOBAL_DRAM"] == sum(one.size_bytes for one in loadable.weights if one.layer == "scale")


def test_strides_are_those_of_the_format_in_bytes():
    loadable = read_loadable(built()[1])
    read = loadable.input(loadable.inputs[0].name)
    # One vector of 16 channels of 2 bytes: 32 bytes from column to column.
    assert (read.format, read.strides_bytes, read.size_bytes) == ("CHW16", (2304, 1152, 192, 32), 2304)
    assert read.memory_shape == (1, 2, 6, 6, 16)


def test_padding_is_written_as_zero_and_never_read():
    read = read_loadable(built()[1]).inputs[0]
    x = image().astype(np.float16)
    buffer = bytearray(b"\xff" * read.size_bytes)
    read.write(buffer, x)
    memory = read.memory(buffer)
    assert not memory[:, 1, ..., 4:].any()
    memory[:, 1, ..., 4:] = np.nan
    np.testing.assert_array_equal(read.read(buffer), x)


def test_a_buffer_or_array_that_does_not_fit_is_refused():
    read = read_loadable(built()[1]).inputs[0]
    with pytest.raises(ConfigError, match=r"too small .*found 2303 bytes; allowed: at least 2304 bytes"):
        read.read(bytes(2303))
    with pytest.raises(ConfigError, match=r"found float32 \(1, 20, 6, 6\); allowed: float16"):
        read.write(bytearray(2304), image())


def test_what_a_loadable_lacks_is_refused_by_name():
    loadable = read_loadable(built()[1])
    for ask in (loadable.input, loadable.output, loadable.stored_weights):
        with pytest.raises(UnknownNameError, match="nothing"):
            ask("nothing")


def test_a_loadable_is_for_one_platform_and_version():
    network = small_network()
    config = asked("fp16", network)
    config.set_platform("DLA", "agx-xavier")
    config.set_software("DLA", "8.5")
    loadable = read_loadable(Builder().build_loadables(network, config).files[0])
    assert (loadable.platform, loadable.family, loadable.software) == ("agx-xavier", "xavier", (8, 5))
    assert {one.layout for one in loadable.weights} == {"KERNEL_GROUPS", "ROW_MAJOR"}
    assert "computed on this machine" in loadable.simulated


def test_a_profile_that_fixes_the_shapes_gives_a_loadable_of_these_shapes():
    network, x = image_network((-1, 8, 6, 6))
    network.mark_output(convolution(network, x, "c"))
    config = dla_config()
    profile = OptimizationProfile()
    profile.set_shape("x", (2, 8, 6, 6), (2, 8, 6, 6), (2, 8, 6, 6))
    config.add_optimization_profile(profile)
    loadable = read_loadable(Builder().build_loadables(network, config).files[0])
    assert [one.shape for one in (*loadable.inputs, *loadable.outputs)] == [(2, 8, 6, 6)] * 2


def test_a_matrix_product_has_no_loadable_and_the_refusal_says_what_to_do():
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (1, 16))
    matrix = network.add_constant((16, 8), weights(16, 8)).get_output(0)
    product = network.add_matrix_multiply(x, MatrixOperation.NONE, matrix, MatrixOperation.NONE)
    network.mark_output(product.get_output(0))
    with pytest.raises(BuildError, match=r"four axes and the tensor has shape \(1, 16\).*1x1 convolution"):
        Builder().build_loadables(network, dla_config())


def test_a_segment_without_a_host_run_is_not_written():
    planned = attrs.evolve(read_loadable(built()[1]).planned, host_run=None)
    with pytest.raises(BuildError, match="how the host runs it"):
        export_segment(planned)


def test_what_was_read_is_written_with_the_same_bytes():
    assert export_segment(read_loadable(built()[1]).planned) == built()[1]


# Files that nobody vouches for ------------------------------------------------------------------------------------


def forged(change):
    """The loadable with a changed manifest, all digests right."""
    header, manifest, contents = split(built()[1])
    names = [entry["name"] for entry in manifest["arrays"]]
    arrays = [np.frombuffer(contents[slice(*header[name]["data_offsets"])], np.uint8) for name in names]
    entries = [ArrayEntry(e["name"], e["dtype"], tuple(e["shape"]), e["sha256"]) for e in manifest["arrays"]]
    change(manifest)
    return b"".join(chunks(json_text(manifest), entries, arrays, LOADABLE))


def test_a_loadable_is_read_from_a_file(tmp_path):
    path = tmp_path / "x.loadable"
    path.write_bytes(built()[1])
    assert read_loadable(path).layers == read_loadable(built()[1]).layers
    with pytest.raises(EngineFileError, match="loadable file cannot be read"):
        read_loadable(tmp_path / "other")


def test_engines_and_loadables_are_told_apart():
    engine, contents = built()
    with pytest.raises(EngineFileError, match="not a dryfit loadable"):
        read_loadable(engine.serialize())
    with pytest.raises(EngineFileError, match="not a dryfit engine"):
        Engine.load(contents)


def test_no_byte_can_change_unnoticed():
    contents = built()[1]
    for position in np.linspace(0, len(contents) - 1, 60, dtype=int):
        changed = bytearray(contents)
        changed[position] ^= 1
        with pytest.raises(EngineFileError):
            read_loadable(changed)


def set_in(path, value):
    """A change of a manifest: the entry at this path."""

    def change(manifest):
        *folders, last = path
        for key in folders:
            manifest = manifest[key]
        manifest[last] = value

    return change


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("device",), "GPU", "for another device"),
        (("platform",), "nowhere", "nowhere"),
        (("inputs", 0, "format"), "CHW32", "unsupported format.*found CHW32 for FP16; allowed: CHW16"),
        (("inputs", 0, "size_bytes"), 1, "does not match its format"),
        (("inputs", 0, "strides_bytes"), [1, 1, 1, 1], "does not match its format"),
        (
            ("outputs", 0, "name"),
            "y",
            r"inputs and outputs do not match its layers .found .'y'.; allowed: .'Reformatted Output",
        ),
        (("weights", 0, "shape"), [2**40, 2**20], "size of the weights does not match their shape"),
        (("weights", 0, "shape"), [-1], "whole bytes and a valid shape"),
        (("weights", 0, "layout"), "ZIGZAG", "layout of the weights is unknown .found ZIGZAG; allowed: ROW_MAJOR"),
        (("weights", 0, "name"), "other", r"cannot read the loadable's manifest .found no weights .*Constant"),
        (("weights",), [], "weights must match the arrays in its file .found 5 arrays"),
        (("software",), ["10"], "int expected"),
    ],
)
def test_a_manifest_that_contradicts_itself_is_refused(path, value, words):
    with pytest.raises(EngineFileError, match=words):
        read_loadable(forged(set_in(path, value)))


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("kernel", "cpu.missing", "host kernel that is not installed.*Unknown kernel: 'cpu.missing'"),
        ("kernel", "cpu.softmax", "The segment uses a host kernel that does not support its layers"),
        ("kernel", "cpu.depthwise_convolution", "it does not support the layer's parameters or shapes"),
        ("kernel", "cpu.grouped_convolution", "it does not support the layer's parameters or shapes"),
        ("layers", ["nobody"], "refers to unknown layers .found .*nobody"),
        ("layers", [], "refers to unknown layers"),
    ],
)
def test_a_host_run_that_does_not_fit_is_refused_when_it_is_to_run(key, value, words):
    loadable = read_loadable(forged(set_in(("host_run", "operations", 0, key), value)))

    def run():
        context = loadable.create_engine().create_execution_context(1)
        context.run({loadable.inputs[0].name: image().astype(np.float16)})

    with pytest.raises(EngineFileError, match=words):
        run()


def test_a_layout_that_the_host_does_not_have_is_refused():
    def change(manifest):
        layouts = manifest["host_run"]["layouts"]
        layouts.update(dict.fromkeys(layouts, "SPIRAL"))

    with pytest.raises(EngineFileError, match="found SPIRAL"):
        read_loadable(forged(change)).create_engine()


def test_a_format_of_another_type_is_no_format_of_a_loadables_tensor():
    linear = registry.target("DLA").format("DLA_LINEAR")
    with pytest.raises(ConfigError, match="not supported for this tensor"):
        LoadableTensor.of("x", DataType.FLOAT, (1, 3, 4, 4), linear, "orin")
