"""Files that are damaged, foreign, or made to deceive: each is refused, by name, before anything in it is used."""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import tracemalloc

import attrs
import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given
from hypothesis import strategies as st
from tests.core.engine.forged_files import forged, split, with_header
from tests.core.engine.hand_built import plan_of
from tests.core.engine.small_networks import convolution_network, named, relu_network

from dryfit.building import Builder
from dryfit.engine import container_reader, engine_file
from dryfit.engine.binding import BoundEngine, specs_for
from dryfit.engine.engine import Engine
from dryfit.engine.resolved_operation import resolve_operations
from dryfit.errors import DryfitError, EngineFileError, ExecutionError
from dryfit.network.data_types import DataType
from dryfit.network.network import Network
from dryfit.plugins import registry

PLAN = plan_of(
    convolution_network(), groups=[("conv", "relu")], profiles=[{"x": ((1, 3, 8, 8), (2, 3, 8, 8), (4, 3, 8, 8))}]
)
DATA = engine_file.serialize(PLAN)


def assert_refused(data: bytes, *words: str) -> EngineFileError:
    with pytest.raises(EngineFileError) as caught:
        engine_file.load(data)
    for word in words:
        assert word in str(caught.value)
    return caught.value


# Damage ---------------------------------------------------------------------------------------------------------------


def test_every_byte_of_a_file_is_guarded():
    data = bytearray(
        engine_file.serialize(plan_of(relu_network(), weights={"relu": {"w": np.arange(3, dtype=np.int8)}}))
    )
    for position in range(len(data)):
        data[position] ^= 1 << position % 8
        with pytest.raises(EngineFileError):
            engine_file.load(data)
        data[position] ^= 1 << position % 8
    engine_file.load(data)


@given(st.integers(0, len(DATA) - 1), st.integers(1, 255))
def test_a_changed_byte_is_refused(position, change):
    data = bytearray(DATA)
    data[position] ^= change
    assert_refused(data)


@given(st.integers(0, len(DATA) - 1))
def test_a_truncated_file_is_refused(length):
    assert_refused(DATA[:length])


@given(st.integers(0, len(DATA) - 1), st.integers(0, len(DATA)), st.binary(max_size=20))
def test_a_piece_that_is_replaced_is_refused(start, end, piece):
    data = DATA[:start] + piece + DATA[max(start, end) :]
    if data != DATA:
        assert_refused(data)


@given(st.binary(max_size=300))
def test_noise_is_refused(noise):
    assert_refused(noise)


def test_a_file_that_goes_on_is_refused():
    assert_refused(DATA + b"\0", "The file continues after its last array", f"{len(DATA)} by its manifest")


def test_a_truncated_file_says_so():
    assert_refused(DATA[:-64], "truncated", f"found {len(DATA) - 64} bytes", f"{len(DATA)} by its manifest", "Save")
    assert_refused(DATA[:100], "truncated", "found 100 bytes")
    assert_refused(b"", "too short", "0 bytes")


def test_a_damaged_array_is_named():
    data = bytearray(DATA)
    data[-256] ^= 1
    assert_refused(data, "array 'network/conv.", "does not match its digest")


def test_digests_that_several_threads_compute_refuse_the_same(monkeypatch):
    monkeypatch.setattr(container_reader, "_LEAST_SHARED_BYTES", 0)
    engine_file.load(bytes(DATA))
    test_a_damaged_array_is_named()


def test_what_fails_in_a_thread_that_computes_digests_fails_the_load(monkeypatch):
    def refuse(*_):
        raise MemoryError("no room")

    monkeypatch.setattr(container_reader, "_LEAST_SHARED_BYTES", 0)
    monkeypatch.setattr(container_reader, "_digest", refuse)
    with pytest.raises(MemoryError, match="no room"):
        engine_file.load(bytes(DATA))


# Foreign files --------------------------------------------------------------------------------------------------------


def test_foreign_files_are_told_apart(tmp_path):
    assert_refused(b"\x08\x07\x12\x04onnx" + bytes(1000), "not a dryfit engine", "built with dryfit")
    assert_refused(pickle.dumps({"a": 1}) + bytes(100), "not a dryfit engine")
    assert_refused(b"ptrt" + bytes(1000), "not a dryfit engine")
    assert_refused(
        safetensors.numpy.save({"a": np.zeros(3)}), "a safetensors file, but not a dryfit engine", "no metadata"
    )
    other = safetensors.numpy.save({"a": np.zeros(3)}, {"format": "pt"})
    assert_refused(other, "not a dryfit engine", "'pt'", "dryfit-engine")


def test_files_that_cannot_be_read_are_named(tmp_path):
    with pytest.raises(EngineFileError, match=r"none\.engine.*cannot be read.*No such file"):
        engine_file.load(tmp_path / "none.engine")
    with pytest.raises(EngineFileError, match="a folder or device"):
        engine_file.load(tmp_path)
    (tmp_path / "empty.engine").touch()
    with pytest.raises(EngineFileError, match="an empty file"):
        engine_file.load(tmp_path / "empty.engine")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_named_pipe_is_refused_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(EngineFileError, match="a folder or device"):
        engine_file.load(tmp_path / "pipe")


def test_another_schema_version_says_what_to_do():
    data = with_header(DATA, lambda header: header["__metadata__"].update(schema="1"))
    assert_refused(data, "file has an unsupported schema version", "found 1", "allowed: 7", "Build the engine again")


# Lies -----------------------------------------------------------------------------------------------------------------


def test_a_header_length_beyond_the_file_commits_no_memory():
    assert_refused((10**8).to_bytes(8, "little") + DATA[8:], "truncated")
    assert_refused((2**63).to_bytes(8, "little") + DATA[8:], "not a dryfit engine")


def test_a_header_that_disagrees_with_its_manifest_is_refused():
    def swap(header):
        names = [name for name in header if name.startswith("network/")]
        header[names[0]]["data_offsets"], header[names[1]]["data_offsets"] = (
            header[names[1]]["data_offsets"],
            header[names[0]]["data_offsets"],
        )

    def retype(header):
        header["network/conv.kernel"]["dtype"] = "I32"

    def overlap(header):
        header["network/conv.bias"]["data_offsets"] = [0, 16]

    for change in (swap, retype, overlap):
        assert_refused(with_header(DATA, change), "header does not agree with its manifest")


def test_a_key_that_stands_twice_is_refused():
    length = int.from_bytes(DATA[:8], "little")
    text = DATA[8 : 8 + length].rstrip().replace(b'{"__metadata__"', b'{"network/conv.bias":{},"__metadata__"', 1)
    text += b" " * (-(8 + len(text)) % 64)
    assert_refused(len(text).to_bytes(8, "little") + text + DATA[8 + length :], "'network/conv.bias' occurs twice")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b'{"a":NaN}', "NaN is not a JSON number"),
        (b'{"a":1e999}', "1e999 is not a JSON number"),
        (b'{"a":' + b"[" * 100_000, "invalid JSON"),
        (b'{"a":' + b"9" * 5000 + b"}", "invalid JSON"),
        (b'{"a":"\xff"}', "invalid JSON"),
        (b"{}", "no metadata"),
    ],
)
def test_headers_that_are_no_sound_json_are_refused(text, words):
    assert_refused(len(text).to_bytes(8, "little") + text + bytes(100), words)


def change_array(**changes):
    def change(manifest):
        manifest["arrays"][0].update(changes)

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (change_array(shape=[2**62]), "larger than the file"),
        (change_array(shape=[2**40, 2**40, 2**40]), "larger than the file"),
        (change_array(shape=[0, 2**62]), "larger than the file"),
        (change_array(shape=[-1]), "shape is invalid"),
        (change_array(shape=[1] * 40), "shape is invalid"),
        (change_array(shape=[4, 3, 3, 2]), "header does not agree"),
        (change_array(shape=[4, 3, 9]), "header does not agree"),
        (change_array(shape=[4.0]), "int expected, float found"),
        (change_array(shape=[True]), "int expected, bool found"),
        (change_array(shape="4333"), "list expected, str found"),
        (change_array(dtype="INT32"), "header does not agree"),
        (change_array(dtype="INT8"), "header does not agree"),
        (change_array(dtype="COMPLEX"), "The array's type is unknown"),
        (change_array(name="../x y"), "name is not allowed"),
        (change_array(name="padding/7"), "name is not allowed"),
        (change_array(sha256="00"), "does not match its digest"),
        (lambda manifest: manifest["arrays"].pop(), "header does not agree"),
        (lambda manifest: manifest["arrays"].append(manifest["arrays"][0]), "must be unique"),
        (lambda manifest: manifest["network_arrays"].update({"conv.kernel": "nothing"}), "no array 'nothing'"),
        (lambda manifest: manifest["network_arrays"].pop("conv.kernel"), "no array with this name"),
        (
            lambda manifest: manifest["network_arrays"].update({"conv.kernel": "network/conv.bias"}),
            "kernel has the wrong shape",
        ),
        (lambda manifest: manifest.pop("segments"), "without segments"),
        (lambda manifest: manifest.update(more=1), "with more"),
        (lambda manifest: manifest.update(network=[]), "manifest.network: dict expected"),
        (lambda manifest: manifest["network"]["layers"][0].update(kind="exec"), "Unknown layer kind"),
        (lambda manifest: manifest["operations"][0].update(layers=["conv"]), "Every layer must belong to an operation"),
        (
            lambda manifest: manifest["operations"][0].update(layers=["relu", "conv"]),
            "The layers of an operation must be a chain",
        ),
        (
            lambda manifest: manifest["operations"][0].update(layers=["conv", "relu", "conv"]),
            "A layer must run only once",
        ),
        (lambda manifest: manifest["operations"][0].update(layers=["conv", "other"]), "do not exist"),
        (lambda manifest: manifest["operations"][0].update(layers=[]), "do not exist"),
        (lambda manifest: manifest["operations"][0].update(segment=1), "segment that does not exist"),
        (lambda manifest: manifest["operations"][0].update(segment=True), "int expected, bool found"),
        (lambda manifest: manifest["operations"][0].update(precision="FP64"), "'FP64' is not one of FLOAT, HALF"),
        (lambda manifest: manifest["operations"][0].update(weights={"w": "nothing"}), "no array 'nothing'"),
        (lambda manifest: manifest["placements"]["x"].update(offset=-64), "A placement must begin inside its pool"),
        (lambda manifest: manifest["placements"]["x"].update(tensor="y"), "A placement must name its own tensor"),
        (lambda manifest: manifest["placements"]["x"].update(host_layout="SPIRAL"), "not one of LINEAR, CHANNELS_LAST"),
        (
            lambda manifest: manifest["profiles"][0]["shapes"].update(z=[[1], [1], [1]]),
            "must match the network's inputs",
        ),
        (lambda manifest: manifest["profiles"][0]["shapes"]["x"].pop(), "3 items expected, 2 found"),
        (lambda manifest: manifest["profiles"][0]["shapes"]["x"][0].__setitem__(0, 3), "must match the network's"),
        (lambda manifest: manifest["profiles"][0]["shapes"]["x"][2].__setitem__(1, 4), "must match the network's"),
        (
            lambda manifest: manifest["pool_sizes"].update({"GPU/WORKSPACE": -1}),
            "A memory pool size must not be negative",
        ),
    ],
)
def test_a_manifest_that_lies_is_refused_though_its_digests_are_right(change, words):
    assert_refused(forged(DATA, change), words)


def test_absurd_sizes_commit_no_memory():
    data = forged(DATA, change_array(shape=[2**50]))
    tracemalloc.start()
    assert_refused(data, "larger than the file")
    assert tracemalloc.get_traced_memory()[1] < 2_000_000
    tracemalloc.stop()


def test_a_bool_that_is_neither_true_nor_false_is_refused():
    data = engine_file.serialize(plan_of(relu_network(), weights={"relu": {"w": np.array([True, False])}}))
    header, _, contents = split(data)
    begin = header["operations/0/w"]["data_offsets"][0]
    changed = contents[:begin] + b"\x02" + contents[begin + 1 :]
    digest = hashlib.sha256(b"\x02\x00").hexdigest()
    lie = forged(data, lambda manifest: manifest["arrays"][0].update(sha256=digest))
    assert_refused(lie[: -len(contents)] + changed, "A BOOL element must be 0 or 1")


leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5),
)
values = st.recursive(
    leaves, lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=5), children, max_size=3)
)


def paths(value, prefix=()):
    """All places in plain data."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*prefix, key)
        yield from paths(item, (*prefix, key))


PATHS = [path for path in paths(split(DATA)[1]) if path[0] not in ("settings", "written_by")]


@given(st.sampled_from(PATHS), values)
def test_whatever_stands_in_a_manifest_it_is_refused_or_runs(path, value):
    def change(manifest):
        place = manifest
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value

    try:
        plan = engine_file.load(forged(DATA, change))
    except EngineFileError:
        return
    with contextlib.suppress(DryfitError):
        outputs = Engine(plan).create_execution_context(1).run(np.zeros((2, 3, 8, 8), np.float32))
        assert [array.shape for array in outputs.values()] == [(2, 4, 8, 8)]
        assert [layer.name for operation in plan.operations for layer in map(plan.network.layer, operation.layers)]


# Sizes that cannot be -------------------------------------------------------------------------------------------------


def point_network() -> Network:
    """x[2, 3, 8, 8] -> convolution `conv` of 1x1 -> y: its shapes do not depend on the dilation."""
    network = Network("point")
    x = network.add_input("x", DataType.FLOAT, (2, 3, 8, 8))
    convolution = network.add_convolution_nd(x, 4, (1, 1), np.ones((4, 3, 1, 1), np.float32), np.zeros(4, np.float32))
    network.mark_output(named(network, convolution, "conv"))
    return network


def built_bytes(network: Network) -> bytes:
    builder = Builder()
    return builder.build_serialized_network(network, builder.create_builder_config())


@pytest.mark.parametrize("dilation", [2**31, 2**48, 2**62, 2**63, 2**70])
@pytest.mark.parametrize("kernel", [None, "cpu.reference"])
def test_an_absurd_dilation_is_refused_or_means_nothing(dilation, kernel):
    def change(manifest):
        manifest["network"]["layers"][0]["parameters"]["dilation_nd"] = [dilation, dilation]
        if kernel is not None:
            manifest["operations"][0]["kernel"] = kernel

    data = built_bytes(point_network()) if kernel is None else engine_file.serialize(plan_of(point_network()))
    try:
        (y,) = (
            Engine.load(forged(data, change))
            .create_execution_context(1)
            .run(np.ones((2, 3, 8, 8), np.float32))
            .values()
        )
    except DryfitError:
        return
    assert np.array_equal(y, np.full((2, 4, 8, 8), 3, np.float32))


@pytest.mark.parametrize("batch", [2**42, 2**56, 2**58, 2**60, 2**62])
def test_a_batch_beyond_all_memory_is_refused_before_memory_is_taken(batch):
    def change(manifest):
        for tensor in [*manifest["network"]["inputs"], *manifest["network"]["layers"][0]["outputs"]]:
            tensor["shape"][0] = batch

    plan = engine_file.load(forged(built_bytes(point_network()), change))
    operations = resolve_operations(plan)
    tracemalloc.start()
    with pytest.raises(ExecutionError, match=r"tensor 'x': Not enough memory") as caught:
        BoundEngine(plan, operations, specs_for(plan, {"x": (batch, 3, 8, 8)}), 1)
    assert tracemalloc.get_traced_memory()[1] < 2_000_000
    tracemalloc.stop()
    assert caught.value.found == f"{batch * 768} bytes needed, for FP32 ({batch}, 3, 8, 8)"


@pytest.mark.parametrize("bytes_needed", [-1, 2**48 + 1, 2**63])
def test_a_workspace_that_no_memory_has_is_refused(monkeypatch, bytes_needed):
    kernel = attrs.evolve(
        next(one for one in registry.host().kernels if one.name == "cpu.reference"),
        workspace_bytes=lambda group, specs, num_threads: bytes_needed,
    )
    context = Engine(plan_of(relu_network())).create_execution_context(1)
    context._operations = [attrs.evolve(one, kernel=kernel) for one in context._operations]
    with pytest.raises(ExecutionError, match=r"Not enough memory.*the workspace of cpu\.reference"):
        context.run(np.zeros((2, 3), np.float32))


# Kernels --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["cpu.nothing", "", "os.system", "cpu.softmax" * 9])
def test_a_kernel_that_does_not_exist_is_named(kernel):
    data = forged(DATA, lambda manifest: manifest["operations"][0].update(kernel=kernel))
    with pytest.raises(EngineFileError, match="The engine uses a kernel that is not installed") as caught:
        Engine.load(data).create_execution_context(1)
    assert caught.value.found == f"kernel {kernel!r}"


def test_no_other_kernel_of_the_host_does_harm_in_place_of_the_right_one():
    data = built_bytes(point_network())
    x = np.random.default_rng(0).random((2, 3, 8, 8), np.float32)
    right = Engine.load(data).create_execution_context(1).run(x)["conv_out"]
    for kernel in registry.host().kernels:
        lie = forged(data, lambda manifest, name=kernel.name: manifest["operations"][0].update(kernel=name))
        try:
            found = Engine.load(lie).create_execution_context(1).run(x)["conv_out"]
        except DryfitError:
            continue
        np.testing.assert_allclose(found, right, rtol=1e-5)


def test_a_kernel_that_does_not_serve_the_types_is_named():
    kernel = next(one for one in registry.host().kernels if "activation" in one.kinds and one.name != "cpu.reference")
    strange = next(dtype for dtype in (DataType.DOUBLE, DataType.BF16) if dtype not in kernel.data_types)
    with pytest.raises(EngineFileError, match="The engine uses a kernel that does not support these types") as caught:
        Engine(plan_of(relu_network(dtype=strange), kernel=kernel.name)).create_execution_context(1)
    assert kernel.name in caught.value.found


# Values of profiles ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "values", [{"x": [[1], [1], [1]]}, {"z": [[1], [1], [1]]}, {"n": [[2], [1], [3]]}, {"n": [[1], [1, 1], [1]]}]
)
def test_values_of_a_profile_that_fit_no_input_are_refused(values):
    network = relu_network()
    n = network.add_input("n", DataType.INT64, (1,))
    network.mark_output(named(network, network.add_identity(n), "copy"))
    data = engine_file.serialize(plan_of(network, profiles=[{}]))
    lie = forged(data, lambda manifest: manifest["profiles"][0].update(values=values))
    assert_refused(lie, "must match the network's inputs", f"values of input '{next(iter(values))}'")
