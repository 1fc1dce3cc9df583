"""The Python script sets what the config says: it is run against a stand-in of TensorRT's module, in each version."""

from __future__ import annotations

import py_compile
import runpy
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import attrs
import pytest
from hypothesis import given
from tests.core.board.boards import expressible_builds, small_model
from tests.core.board.tensorrt_stand_in import recorded_build, tensorrt_stand_in
from tests.core.onnx.models import model

from dryfit.board.board_build import BoardBuild, BoardFiles
from dryfit.board.python_script import python_script
from dryfit.board.script_data import parse_script
from dryfit.builder.config.enumerations import BuilderFlag, EngineCapability, ProfilingVerbosity, QuantizationFlag
from dryfit.builder.config.trtexec_spellings import IoFormat
from dryfit.engine.plan import ProfileShapes
from dryfit.errors import ConfigError
from dryfit.network.data_types import DataType

CONV, RELU, GEMM = "block/Conv a", "block/Relu b", "block/Gemm y"
CHW = IoFormat(DataType.HALF, ("CHW16", "DLA_LINEAR"))
SHAPES = ProfileShapes({"x": ((1, 4, 6, 6), (2, 4, 6, 6), (8, 4, 6, 6))})

OLD = BoardBuild(
    (8, 2), frozenset({BuilderFlag.FP16, BuilderFlag.GPU_FALLBACK}), "DLA", 1, pools={"WORKSPACE": 1 << 28}
)
BUILDS = [
    OLD,
    attrs.evolve(OLD, software=(8, 4), precisions={CONV: DataType.HALF}, devices={RELU: "GPU"}, profiles=(SHAPES,)),
    attrs.evolve(OLD, software=(8, 6), devices={CONV: "GPU", GEMM: "GPU"}, output_types={RELU: (DataType.FLOAT,)}),
    BoardBuild(
        (10, 3),
        frozenset({BuilderFlag.INT8, BuilderFlag.TF32, BuilderFlag.STRICT_NANS, BuilderFlag.REFIT_IDENTICAL}),
        scales={"x": 0.5, "y": 0.0},
        pools={"DLA_MANAGED_SRAM": 1 << 20, "DLA_LOCAL_DRAM": 1 << 29},
        input_formats=(CHW,),
        output_formats=(CHW,),
        quantization_flags=frozenset({QuantizationFlag.CALIBRATE_BEFORE_FUSION}),
        profiling_verbosity=ProfilingVerbosity.DETAILED,
        optimization_level=5,
    ),
    BoardBuild((10, 3), is_strongly_typed=True, profiles=(SHAPES, SHAPES)),
    attrs.evolve(OLD, software=(10, 7), capability=EngineCapability.DLA_STANDALONE, input_formats=(CHW,)),
]


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """`board(build, ...)` runs the script of a build in an empty folder with the model; returns TensorRT's stand-in."""
    (tmp_path / "m.onnx").write_bytes(small_model().SerializeToString())
    monkeypatch.chdir(tmp_path)

    def run(build: BoardBuild, *options: str, timing_cache: str = "", version: tuple[int, ...] = ()) -> ModuleType:
        scales = "" if build.scales is None else "m.cache"
        cache = build.calibration_cache
        if cache is not None:
            Path(scales).write_bytes(cache.to_bytes())
        text = python_script(build, BoardFiles("m.onnx", "m.engine", scales, timing_cache))
        Path("build.py").write_text(text, encoding="utf-8")
        py_compile.compile("build.py", doraise=True)
        module = tensorrt_stand_in(version or build.software)
        monkeypatch.setitem(sys.modules, "tensorrt", module)
        monkeypatch.setattr(sys, "argv", ["build.py", *options])
        runpy.run_path("build.py", run_name="__main__")
        return module

    return run


@pytest.mark.parametrize("build", BUILDS, ids=lambda build: ".".join(map(str, build.software)))
def test_the_script_sets_what_the_build_says(build: BoardBuild, board: Any) -> None:
    assert recorded_build(board(build), build.software) == build
    assert Path("m.engine").read_bytes() == b"engine"


def test_all_layers_of_a_node_are_reached_where_the_parser_says_from_which_they_came(board: Any) -> None:
    build = attrs.evolve(OLD, software=(8, 6), devices={GEMM: "GPU"})
    _, config = board(build).built
    assert sorted(layer.name == GEMM for layer in config.devices) == [False, True]
    _, config = board(attrs.evolve(build, software=(8, 5))).built
    assert [layer.name for layer in config.devices] == [GEMM]


def test_made_up_ranges_are_those_of_trtexec(board: Any) -> None:
    build = BoardBuild((10, 3), frozenset({BuilderFlag.INT8}), assumes_scales=True)
    network, _ = board(build).built
    ranges = {name: tensor.dynamic_range for name, tensor in network.tensors.items()}
    # The first layer that touches a tensor decides: what reads it 2 or, as a concatenation, 4; what writes it 4, or 2.
    assert (ranges["x"], ranges["a"], ranges["c"], ranges["d"]) == ((-2, 2), (-4, 4), (-4, 4), (-2, 2))
    parsed = model("y = Concat<axis = 1>(x, z)", inputs="float[1,4] x, float[1,4] z", outputs="float[1,8] y")
    Path("m.onnx").write_bytes(parsed.SerializeToString())
    network, _ = board(build).built
    assert {tensor.dynamic_range for tensor in network.tensors.values()} == {(-4, 4)}


def test_names_that_the_network_does_not_have_are_told(board: Any, capsys: pytest.CaptureFixture[str]) -> None:
    board(attrs.evolve(OLD, software=(8, 6), devices={"gone": "GPU"}))
    assert "DEVICES: the network has no layer named 'gone'" in capsys.readouterr().err


def test_a_timing_cache_is_read_and_written_back(board: Any) -> None:
    board(OLD, timing_cache="t.cache")
    board(OLD, timing_cache="t.cache")
    assert Path("t.cache").read_bytes() == b"++"


def test_paths_can_be_changed_on_the_board(board: Any) -> None:
    board(OLD, "--engine", "other.engine")
    assert Path("other.engine").exists()
    with pytest.raises(SystemExit, match="error 0: no such model"):
        board(OLD, "--onnx", "missing.onnx")


def test_another_version_of_tensorrt_is_refused(board: Any) -> None:
    with pytest.raises(SystemExit, match=r"for TensorRT 8\.2, and here is 8\.6\.0"):
        board(OLD, version=(8, 6))


@given(expressible_builds())
def test_the_constants_of_a_script_are_the_whole_build(build: BoardBuild) -> None:
    files = BoardFiles('it\'s a "model".onnx', "m.engine", "" if build.scales is None else "m.cache", "t.cache")
    text = python_script(build, files)
    compile(text, "build.py", "exec")
    assert parse_script(text, lambda _: build.scales or {}) == (build, files)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"flags": frozenset({BuilderFlag.BF16})}, "no flag BF16"),
        ({"pools": {"DLA_LOCAL_DRAM": 4096}}, "no limit of memory pool DLA_LOCAL_DRAM"),
        ({"is_strongly_typed": True}, "no strongly typed networks"),
        ({"precisions": {CONV: DataType.BF16}}, "no type BF16"),
        ({"output_types": {CONV: (DataType.DOUBLE,)}}, "TensorRT has no type DOUBLE"),
    ],
)
def test_what_the_version_cannot_build_is_refused(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        python_script(attrs.evolve(OLD, **changes), BoardFiles("m.onnx"))


@pytest.mark.parametrize("text", ["x = (", "ONNX = 'm.onnx'\n", "TENSORRT = open('f')\n"])
def test_other_scripts_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="The generated script is not valid"):
        parse_script(text, lambda _: {})
