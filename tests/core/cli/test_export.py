"""`dryfit export loadables`, and `dryfit build` of a standalone loadable."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from dryfit_dla.loadable_file import read_loadable


@pytest.fixture
def model(tmp_path):
    """conv, elu (which no DLA has), conv."""

    def kernel(name, seed):
        values = np.random.default_rng(seed).standard_normal((8, 8, 3, 3)).astype(np.float32)
        return numpy_helper.from_array(values, name)

    def convolution(name, source, result):
        return helper.make_node("Conv", [source, f"{name}.kernel"], [result], name=name, pads=[1, 1, 1, 1])

    def saved(nodes, result):
        values = [helper.make_tensor_value_info(one, TensorProto.FLOAT, [1, 8, 6, 6]) for one in ("x", result)]
        kernels = [kernel(f"{name}.kernel", seed) for seed, name in enumerate(("first", "second"))]
        graph = helper.make_graph(
            nodes, "g", values[:1], values[1:], kernels[: sum(n.op_type == "Conv" for n in nodes)]
        )
        path = tmp_path / f"{result}.onnx"
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
        return path

    first = convolution("first", "x", "y")
    elu = helper.make_node("Elu", ["y"], ["e"], name="elu")
    return {"alone": saved([first], "y"), "split": saved([first, elu, convolution("second", "e", "z")], "z")}


@pytest.fixture
def wide_model(tmp_path):
    """One convolution of 64 channels, whose kernel takes 9216 bytes in FP16."""
    kernel = numpy_helper.from_array(np.ones((8, 64, 3, 3), np.float32), "kernel")
    node = helper.make_node("Conv", ["x", "kernel"], ["y"], name="wide", pads=[1, 1, 1, 1])
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, c, 6, 6]) for n, c in (("x", 64), ("y", 8)))
    path = tmp_path / "wide.onnx"
    graph = helper.make_graph([node], "g", [x], [y], [kernel])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


DLA = ("--device", "DLA", "--precision", "fp16")
FORMATS = ("--inputIOFormats=fp16:chw16", "--outputIOFormats=fp16:chw16")


def test_each_segment_of_the_dla_becomes_one_file(dryfit_command, model, tmp_path):
    folder = tmp_path / "new" / "folder"
    ended = dryfit_command("export", "loadables", model["split"], "-o", folder, *DLA, "--fallback", "GPU")
    assert ended.code == 0, ended.err
    assert "DLA segments: 2 of 2 accepted; total memory:" in ended.out
    assert sorted(one.name for one in folder.iterdir()) == ["z.segment0.loadable", "z.segment2.loadable"]
    assert [layer.name for layer in read_loadable(folder / "z.segment2.loadable").layers] == ["second"]


def test_json_names_the_files_and_what_they_need(dryfit_command, model, tmp_path):
    ended = dryfit_command("export", "loadables", model["split"], "-o", tmp_path, *DLA, "--fallback", "GPU", "--json")
    (offloading,) = ended.json["offloading"]
    loadables = ended.json["loadables"]
    assert [(one["id"], one["layers"]) for one in loadables] == [(0, ["first"]), (2, ["second"])]
    assert offloading["pools"]["DLA_GLOBAL_DRAM"] == sum(one["pools"]["DLA_GLOBAL_DRAM"] for one in loadables)
    assert all((tmp_path / f"z.segment{one['id']}.loadable").stat().st_size == one["bytes"] for one in loadables)


def test_loadables_of_an_earlier_export_are_replaced_by_force_only(dryfit_command, model, tmp_path):
    folder = tmp_path / "loadables"
    asked = ("export", "loadables", model["split"], "-o", folder, *DLA, "--fallback", "GPU")
    assert dryfit_command(*asked).code == 0
    stale, others = folder / "z.segment7.loadable", [folder / "y.segment7.loadable", folder / "notes.txt"]
    for path in (stale, *others):
        path.write_bytes(b"left")
    ended = dryfit_command(*asked)
    assert ended.code == 2
    assert "z.segment0.loadable" in ended.err
    assert "--force" in ended.err
    assert stale.exists()
    assert dryfit_command(*asked, "--force").code == 0
    assert not stale.exists()
    assert all(path.read_bytes() == b"left" for path in others)
    assert read_loadable(folder / "z.segment0.loadable").layers


def test_a_model_without_such_segments_is_an_error(dryfit_command, model, tmp_path):
    ended = dryfit_command("export", "loadables", model["split"], "-o", tmp_path / "none")
    assert ended.code == 2
    assert "No segment was exported" in ended.err
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    "spelling",
    [
        ("--engine-capability", "dla_standalone", "--direct-io", "--precision", "fp16"),
        ("--standalone",),
        ("--buildDLAStandalone",),
        ("--safe", "--precision", "fp16"),
    ],
)
def test_a_standalone_loadable_is_built_by_each_spelling(dryfit_command, model, tmp_path, spelling):
    path = tmp_path / "model_loadable.bin"
    ended = dryfit_command("build", model["alone"], "-o", path, "--device", "DLA", *spelling, *FORMATS)
    assert ended.code == 0, ended.err
    assert str(path) in ended.out
    loadable = read_loadable(path)
    assert [one.format for one in (*loadable.inputs, *loadable.outputs)] == ["CHW16", "CHW16"]


def test_what_is_no_standalone_loadable_is_told_by_rule(dryfit_command, model, tmp_path):
    path = tmp_path / "no"
    ended = dryfit_command("build", model["alone"], "-o", path, "--device", "DLA", "--safe", "--fallback", "GPU")
    assert ended.code == 2
    assert "[standalone.fallback]" in ended.err
    assert "[standalone.formats]" in ended.err
    assert not path.exists()


def test_a_pool_that_falls_short_is_told_by_check_build_and_inspect(dryfit_command, wide_model, tmp_path):
    asked = (wide_model, *DLA, "--fallback", "GPU", "--memPoolSize=dlaGlobalDRAM:4K")
    path = tmp_path / "x.engine"
    for words in (("check", *asked), ("build", *asked, "-o", path), ("inspect", path)):
        ended = dryfit_command(*words)
        assert ended.code == 0, ended.err
        assert "DLA segments: 0 of 1 accepted" in ended.out
        assert "it needs 9216 bytes of DLA_GLOBAL_DRAM, whose limit is 4096 bytes" in ended.out
        assert "It would fit with DLA_GLOBAL_DRAM of 16.0 KiB (--mem-pool-size)" in ended.out
        (one,) = dryfit_command(*words, "--json").json["offloading"]
        (lost,) = one["rejected"]
        assert lost["short_of"] == [{"pool": "DLA_GLOBAL_DRAM", "needed": 9216, "limit": 4096}]
        assert lost["fallback"] == "GPU"


def test_a_limit_that_no_dla_takes_names_the_next_power_of_two(dryfit_command, wide_model):
    ended = dryfit_command("check", wide_model, *DLA, "--mem-pool-size", "dlaLocalDRAM:0.3")
    assert (ended.code, "Set it to 524288 bytes, the next power of two" in ended.err) == (2, True)


def test_check_counts_what_falls_short_without_fallback_as_unplaced(dryfit_command, wide_model):
    asked = (wide_model, *DLA, "--fallback", "none", "--mem-pool-size", "dlaGlobalDRAM:4K")
    ended = dryfit_command("check", *asked, "--fail-on", "unplaced,fallback")
    assert ended.code == 1
    assert "DLA segments: 0 of 1 accepted" in ended.out
    assert "1 layer: none placed, 1 unplaced; 0 segments" in ended.out
    assert dryfit_command("check", *asked, "--json").json["summary"]["unplaced_layers"] == 1


def test_managed_sram_beyond_the_core_is_lowered_by_check_place_build_and_export(dryfit_command, model, tmp_path):
    asked = (model["split"], *DLA, "--platform", "agx-orin-64", "--fallback", "GPU", "--mem-pool-size", "dlaSRAM:4")
    for words in (
        ("check", *asked),
        ("place", *asked),
        ("build", *asked, "-o", tmp_path / "x.engine"),
        ("export", "loadables", *asked, "-o", tmp_path / "loadables"),
    ):
        ended = dryfit_command(*words)
        assert ended.code == 0, ended.err
        lowered = "the limit of 4194304 bytes for DLA_MANAGED_SRAM is lowered to 1048576 bytes"
        assert ended.err.count(lowered) == 1, words


def test_the_rules_of_standalone_mode_are_explained(dryfit_command):
    assert "DLA Standalone Mode" in dryfit_command("explain-rule", "standalone.direct_io").out
    assert "standalone.formats" in dryfit_command("explain-rule", "standalone").out


@pytest.fixture
def matrix_model(tmp_path):
    """A convolution, and products of matrices of rank 2 behind an average that the GPU runs; or products alone."""

    def weights(name, *shape):
        values = np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)
        return numpy_helper.from_array(values, name)

    def saved(name, nodes, shape):
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
        y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 13])
        constants = [weights("k", 24, 3, 3, 3), weights("m", 24, 40), weights("n", 40, 13)]
        used = {one for node in nodes for one in node.input}
        graph = helper.make_graph(nodes, name, [x], [y], [one for one in constants if one.name in used])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / f"{name}.onnx")
        return tmp_path / f"{name}.onnx"

    products = [
        helper.make_node("MatMul", ["f", "m"], ["a"], name="first"),
        helper.make_node("Relu", ["a"], ["b"], name="relu"),
        helper.make_node("MatMul", ["b", "n"], ["y"], name="last"),
    ]
    head = [
        helper.make_node("Conv", ["x", "k"], ["c"], name="conv"),
        helper.make_node("GlobalAveragePool", ["c"], ["p"], name="average"),
        helper.make_node("Flatten", ["p"], ["f"], name="flatten"),
    ]
    products[0].input[0] = "x"
    alone = saved("products", products, [1, 24])
    products[0].input[0] = "f"
    return {"products": alone, "behind": saved("behind", [*head, *products], [1, 3, 8, 8])}


def test_segments_that_can_be_written_are_and_others_are_told_with_their_reasons(
    dryfit_command, matrix_model, tmp_path
):
    asked = (matrix_model["behind"], *DLA, "--fallback", "GPU")
    checked = dryfit_command("check", *asked, "--json").json
    ended = dryfit_command("export", "loadables", *asked, "-o", tmp_path / "out", "--json")
    assert ended.code == 0, ended.err
    on_dla = {one["id"]: one["layers"] for one in checked["segments"] if one["device"] == "DLA"}
    written = {one["id"]: one["layers"] for one in ended.json["loadables"]}
    refused = {one["segment"]: one["reason"] for one in ended.json["refused"]}
    assert written == {0: ["conv"]}
    assert {**dict.fromkeys(refused), **dict.fromkeys(written)}.keys() == on_dla.keys()
    assert all("1x1 convolution" in reason for reason in refused.values())
    assert sorted(one.name for one in (tmp_path / "out").iterdir()) == ["behind.segment0.loadable"]
    told = dryfit_command("export", "loadables", *asked, "-o", tmp_path / "out", "--force")
    assert told.code == 0
    assert told.err.count("No loadable: segment") == len(refused) == 2


def test_a_check_says_of_the_same_layers_that_they_have_no_loadable(dryfit_command, matrix_model):
    checked = dryfit_command("check", matrix_model["behind"], *DLA, "--fallback", "GPU", "--json").json
    warned = {
        layer["name"]
        for layer in checked["layers"]
        for one in layer["verdicts"].get("DLA", {}).get("warnings", ())
        if one["rule"] == "dla.matrix_multiply.rank" and "has no loadable" in one["remedy"]
    }
    assert warned == {"first", "last"}


def test_where_no_segment_can_be_written_each_reason_is_told_and_nothing_is_made(
    dryfit_command, matrix_model, tmp_path
):
    asked = (matrix_model["products"], *DLA, "--fallback", "GPU")
    ended = dryfit_command("export", "loadables", *asked, "-o", tmp_path / "out")
    assert ended.code == 2
    assert "No segment can be exported" in ended.err
    assert all(f"segment {index} of DLA" in ended.err for index in (0, 2))
    assert not (tmp_path / "out").exists()
