"""Models are read from paths, bytes and messages, and written."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from tests.core.onnx.models import model

from dryfit.errors import DryfitError, OnnxImportError
from dryfit.onnx import model_file
from dryfit.onnx.external_data import ExternalData
from dryfit.onnx.functions import nodes_written_out
from dryfit.onnx.importer import network_from_onnx
from dryfit.onnx.model_file import SHARED_ELEMENTS, SharedModel, read_model, shared_model, write_model


def small_model() -> onnx.ModelProto:
    return model(
        "y = Add(x, w)", inputs="float[2,3] x", outputs="float[2,3] y", weights={"w": np.ones((2, 3), np.float32)}
    )


def mixed_model() -> onnx.ModelProto:
    """Weights, attributes of several types, metadata and two nodes, in few bytes."""
    parsed = model(
        'a = Add(left, right) y = AveragePool<kernel_shape=[1, 2], auto_pad="VALID", ceil_mode=0>(a)',
        inputs="float[1,2,3,4] left",
        outputs="float[1,2,3,3] y",
        weights={"right": np.ones((2, 1, 4), np.float32)},
    )
    parsed.producer_name = "tester"
    parsed.graph.node[0].name = "the node"
    parsed.metadata_props.append(onnx.StringStringEntryProto(key="licence", value="CC0"))
    return parsed


def test_a_path_bytes_and_a_message_give_the_same_network(tmp_path: Path) -> None:
    parsed = small_model()
    path = tmp_path / "model.onnx"
    path.write_bytes(parsed.SerializeToString())
    for source in (path, str(path), path.read_bytes(), parsed):
        assert [layer.kind for layer in network_from_onnx(source)] == ["constant", "elementwise"]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(OnnxImportError, match=r"nothing\.onnx.*cannot be read.*No such file"):
        network_from_onnx(tmp_path / "nothing.onnx")


@pytest.mark.parametrize("data", [b"", b"\x89PNG\r\n\x1a\n" + bytes(100), b"just some text", bytes(1000)])
def test_a_file_that_is_no_model_is_refused(data: bytes) -> None:
    with pytest.raises(OnnxImportError, match="not an ONNX model"):
        network_from_onnx(data)


def test_a_model_that_is_cut_off_anywhere_is_refused() -> None:
    data = small_model().SerializeToString()
    for length in range(len(data)):
        with pytest.raises(OnnxImportError):
            network_from_onnx(data[:length])


@pytest.mark.parametrize("mask", [0x80, 0xFF, 0x01, 0x40])
def test_a_model_with_a_flipped_byte_is_imported_or_refused_but_never_crashes(mask: int) -> None:
    data = mixed_model().SerializeToString()
    refused = 0
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= mask
        try:
            network_from_onnx(bytes(damaged))
        except DryfitError:  # anything else ends the test
            refused += 1
    assert refused > len(data) // 10


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (b"the node", "graph.node[0].name"),
        (b"left", "graph.input[0].name"),
        (b"right", "graph.initializer[0].name"),
        (b"kernel_shape", "graph.node[1].attribute[0].name"),
        (b"AveragePool", "graph.node[1].op_type"),
        (b"tester", "producer_name"),
    ],
)
def test_a_text_that_is_not_utf_8_is_refused_with_its_place(text: bytes, place: str) -> None:
    data = mixed_model().SerializeToString()
    assert text in data
    broken = b"\xff" + text[1:]
    at = data.rindex(text)  # a name stands last where its value is declared
    with pytest.raises(OnnxImportError, match="A string in the model is not valid UTF-8") as caught:
        network_from_onnx(data[:at] + broken + data[at + len(text) :])
    assert caught.value.found.endswith(f" is {broken!r}")
    assert caught.value.found.startswith(place)


def test_a_file_that_is_too_large_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.onnx"
    with path.open("wb") as file:
        os.truncate(file.fileno(), 2**31)
    with pytest.raises(OnnxImportError, match="too large") as caught:
        network_from_onnx(path)
    assert "2147483648 bytes" in str(caught.value)
    assert "external data" in str(caught.value)


def test_extents_without_the_bytes_are_refused_before_memory_is_taken() -> None:
    parsed = small_model()
    parsed.graph.initializer[0].dims[0] = 2**50
    with pytest.raises(OnnxImportError, match="number of bytes does not match"):
        network_from_onnx(parsed)


@pytest.mark.parametrize("dims", [[0, 2**62, 2**62], [1] * 100], ids=["too large", "too many"])
def test_an_initializer_of_an_impossible_shape_is_refused(dims: list[int]) -> None:
    parsed = small_model()
    tensor = parsed.graph.initializer[0]
    tensor.dims[:] = dims
    tensor.raw_data = bytes(0 if 0 in dims else 4)
    with pytest.raises(OnnxImportError, match="tensor 'w': This shape is not supported"):
        network_from_onnx(parsed)


@pytest.mark.parametrize("shape", [[2**40, 2**40], [2**62], [-5]])
def test_a_constant_of_an_impossible_shape_is_refused(shape: list[int]) -> None:
    parsed = model("y = ConstantOfShape(s)", inputs="", outputs="float[?] y", weights={"s": np.array(shape, np.int64)})
    with pytest.raises(OnnxImportError, match="This shape is not supported"):
        network_from_onnx(parsed)


def test_a_product_of_huge_constants_is_not_computed_when_it_is_imported() -> None:
    parsed = model(
        "a = ConstantOfShape(s) b = ConstantOfShape(t) y = MatMul(a, b)",
        inputs="",
        outputs="float[?,?] y",
        weights={"s": np.array([1, 2**31], np.int64), "t": np.array([2**31, 1], np.int64)},
    )
    assert [layer.kind for layer in network_from_onnx(parsed)] == ["constant", "constant", "matrix_multiply"]


def test_a_range_without_end_is_refused() -> None:
    parsed = model(
        "y = Range(a, b, c)",
        inputs="",
        outputs="float[?] y",
        weights={name: np.array(value, np.float32) for name, value in (("a", 0), ("b", 1e30), ("c", 1))},
    )
    with pytest.raises(OnnxImportError, match="too long"):
        network_from_onnx(parsed)


def functions_that_call_the_last_twice(levels: int, deepest: str = "Neg") -> onnx.ModelProto:
    opset = [onnx.helper.make_opsetid("", 18), onnx.helper.make_opsetid("own", 1)]
    functions = []
    for level in range(levels):
        called, domain = (f"F{level - 1}", "own") if level else (deepest, "" if deepest == "Neg" else "own")
        inner = [onnx.helper.make_node(called, [a], [b], domain=domain) for a, b in ("ab", "bc")]
        functions.append(onnx.helper.make_function("own", f"F{level}", ["a"], ["c"], inner, opset))
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node(f"F{levels - 1}", ["x"], ["y"], domain="own")],
        "functions",
        [value("x", onnx.TensorProto.FLOAT, [1])],
        [value("y", onnx.TensorProto.FLOAT, [1])],
    )
    return onnx.helper.make_model(graph, opset_imports=opset, functions=functions)


@pytest.mark.parametrize(
    "parsed",
    [
        pytest.param(functions_that_call_the_last_twice(30), id="two to the thirtieth"),
        pytest.param(functions_that_call_the_last_twice(2000), id="two thousand deep"),
        pytest.param(functions_that_call_the_last_twice(3, deepest="F2"), id="a circle"),
        pytest.param(functions_that_call_the_last_twice(1, deepest="F0"), id="itself"),
    ],
)
def test_functions_that_multiply_are_refused_before_any_is_expanded(
    parsed: onnx.ModelProto, monkeypatch: pytest.MonkeyPatch
) -> None:
    expanded: list[object] = []
    monkeypatch.setattr("dryfit.onnx.importer.bound_body", lambda *call: expanded.append(call) or [])
    with pytest.raises(OnnxImportError, match="too many nodes"):
        network_from_onnx(parsed)
    assert not expanded


def test_functions_are_counted_as_they_are_expanded() -> None:
    parsed = functions_that_call_the_last_twice(5)
    functions = {(one.domain, one.name): one for one in parsed.functions}
    # The call itself, then 2 + 4 + ... + 32 nodes.
    assert nodes_written_out(parsed.graph.node, functions, 1000) == 63
    assert nodes_written_out(parsed.graph.node, functions, 63) == 63
    assert nodes_written_out(parsed.graph.node, functions, 20) == 21
    assert len(network_from_onnx(parsed).layers) == 32


def test_a_newer_opset_is_refused_with_what_is_allowed() -> None:
    parsed = small_model()
    parsed.opset_import[0].version = 99
    with pytest.raises(OnnxImportError, match=r"Opset 99 is not supported.*7 to 28"):
        network_from_onnx(parsed)


def test_an_older_opset_is_imported_where_its_operators_are_the_same() -> None:
    parsed = model("y = Tanh(x)", inputs="float[2] x", outputs="float[2] y", opset=6)
    assert [layer.kind for layer in network_from_onnx(parsed)] == ["activation"]
    parsed = small_model()
    parsed.opset_import[0].version = 6
    with pytest.raises(OnnxImportError, match=r"\(Add\).*before opset 7"):
        network_from_onnx(parsed)


WEIGHTS = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.fixture
def with_external_data(tmp_path: Path) -> Path:
    parsed = model("y = Add(x, w)", inputs="float[3,4] x", outputs="float[3,4] y", weights={"w": WEIGHTS})
    tensor = parsed.graph.initializer[0]
    onnx.external_data_helper.set_external_data(tensor, "w.bin")
    tensor.ClearField("raw_data")
    (tmp_path / "w.bin").write_bytes(WEIGHTS.tobytes())
    path = tmp_path / "model.onnx"
    path.write_bytes(parsed.SerializeToString())
    return path


def weights_of(path: Path) -> np.ndarray:
    (constant,) = [layer for layer in network_from_onnx(path) if layer.kind == "constant"]
    return np.asarray(constant.weights)


def test_external_data_stay_outside_in_the_same_folder(with_external_data: Path) -> None:
    folder, new = with_external_data.parent, with_external_data.with_name("new.onnx")
    source, external = read_model(with_external_data)
    write_model(source, new, external, folder)
    assert onnx.load(new, load_external_data=False).graph.initializer[0].data_location == onnx.TensorProto.EXTERNAL
    np.testing.assert_array_equal(weights_of(new), WEIGHTS)


def test_external_data_go_into_a_file_of_another_folder(with_external_data: Path) -> None:
    (with_external_data.parent / "other").mkdir()
    new = with_external_data.parent / "other" / "new.onnx"
    source, external = read_model(with_external_data)
    write_model(source, new, external, with_external_data.parent)
    np.testing.assert_array_equal(weights_of(new), WEIGHTS)


def test_a_model_that_is_too_large_for_a_file_is_refused_before_it_is_read(
    with_external_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (with_external_data.parent / "other").mkdir()
    new = with_external_data.parent / "other" / "new.onnx"
    source, external = read_model(with_external_data)
    monkeypatch.setattr(model_file, "LARGEST_FILE_BYTES", 100)
    with pytest.raises(OnnxImportError, match="at most 100 bytes"):
        write_model(source, new, external, with_external_data.parent)
    assert not new.exists()


def test_a_folder_that_does_not_exist_is_named(with_external_data: Path) -> None:
    source, external = read_model(with_external_data)
    with pytest.raises(OnnxImportError, match=r"nowhere/new\.onnx.*cannot be written"):
        write_model(source, with_external_data.parent / "nowhere" / "new.onnx", external, with_external_data.parent)


def large_model() -> onnx.ModelProto:
    """Weights of several types that are shared, and some that are not."""
    parsed = mixed_model()
    rng = np.random.default_rng(5)
    for name, dtype in {"float": np.float32, "half": np.float16, "codes": np.int8}.items():
        values = rng.integers(-9, 9, (3, SHARED_ELEMENTS)).astype(dtype)
        parsed.graph.initializer.append(onnx.numpy_helper.from_array(values, name))
    inside = onnx.helper.make_tensor(
        "numbers", onnx.TensorProto.FLOAT, (SHARED_ELEMENTS + 1,), [1.5] * (SHARED_ELEMENTS + 1)
    )
    parsed.graph.initializer.append(inside)
    return parsed


def test_a_shared_model_is_small_and_becomes_whole_again() -> None:
    parsed = large_model()
    before = parsed.SerializeToString(deterministic=True)
    shared = shared_model(parsed)
    assert shared.model.ByteSize() < parsed.ByteSize() - 7 * 3 * SHARED_ELEMENTS + 500
    assert shared.whole().SerializeToString(deterministic=True) == before
    assert read_model(shared)[0].SerializeToString(deterministic=True) == before
    assert parsed.SerializeToString(deterministic=True) == before


def test_networks_of_a_shared_model_and_its_copies_have_the_same_arrays() -> None:
    weights = np.random.default_rng(5).standard_normal((1, 4096)).astype(np.float32)
    parsed = model("y = Add(x, w)", inputs="float[1,4096] x", outputs="float[1,4096] y", weights={"w": weights})
    shared = shared_model(parsed)
    copy = onnx.ModelProto()
    copy.CopyFrom(shared.model)
    first, second = (network_from_onnx(one) for one in (shared, SharedModel(copy, shared.external)))
    constants = [next(layer for layer in one if layer.kind == "constant").weights for one in (first, second)]  # type: ignore[attr-defined]
    assert constants[0] is constants[1]
    np.testing.assert_array_equal(constants[0], weights)


def test_a_file_cannot_name_contents_in_memory() -> None:
    parsed = large_model()
    own = shared_model(parsed)
    stranger = onnx.ModelProto()
    stranger.CopyFrom(own.model)
    with pytest.raises(OnnxImportError, match="stores weights in another file"):
        network_from_onnx(stranger)
    with pytest.raises(OnnxImportError):
        network_from_onnx(SharedModel(stranger, ExternalData(Path())))
