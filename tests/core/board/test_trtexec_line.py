"""trtexec's spelling in each version, what it adds on its own, and what it cannot be told."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from tests.core.board.boards import small_network

from dryfit.board.board_build import BoardBuild, BoardFiles
from dryfit.board.trtexec_line import TrtexecLine, trtexec_line
from dryfit.board.versions import Versions
from dryfit.builder.config.enumerations import BuilderFlag, EngineCapability, QuantizationFlag
from dryfit.builder.config.trtexec_spellings import IoFormat
from dryfit.engine.plan import ProfileShapes
from dryfit.errors import ConfigError
from dryfit.network.data_types import DataType

FILES = BoardFiles("m.onnx", "m.engine", "m.cache")
DLA = BoardBuild((10, 3), frozenset({BuilderFlag.FP16, BuilderFlag.GPU_FALLBACK}), "DLA", 1)
CHW16 = (IoFormat(DataType.HALF, ("CHW16",)),)
LOADABLE = attrs.evolve(
    DLA,
    flags=frozenset({BuilderFlag.FP16, BuilderFlag.TF32}),
    capability=EngineCapability.DLA_STANDALONE,
    input_formats=CHW16,
    output_formats=CHW16,
)


def line_of(build: BoardBuild, **changes: Any) -> TrtexecLine:
    changed = attrs.evolve(build, **changes)
    return trtexec_line(changed, FILES, small_network(("a", "b"), -1 if changed.profiles else 2))


def reasons(build: BoardBuild, **changes: Any) -> str:
    """Why trtexec cannot be told of a build."""
    with pytest.raises(ConfigError) as refused:
        line_of(build, **changes)
    assert "--script" in str(refused.value)
    return str(refused.value.found)


def test_a_dla_with_fallback_is_told_by_three_options() -> None:
    line = line_of(DLA)
    assert line.arguments == (
        *("--onnx=m.onnx", "--saveEngine=m.engine", "--fp16", "--noTF32"),
        *("--useDLACore=1", "--allowGPUFallback", "--skipInference"),
    )
    assert line.notes == ("trtexec sets PREFER_PRECISION_CONSTRAINTS for a DLA",)


def test_what_trtexec_adds_for_a_dla_is_part_of_the_build_and_told() -> None:
    line = line_of(DLA, flags=frozenset(), dla_core=-1)
    added = {BuilderFlag.FP16, BuilderFlag.DIRECT_IO, BuilderFlag.PREFER_PRECISION_CONSTRAINTS}
    assert (line.build.flags, line.build.dla_core, len(line.notes)) == (added, 0, 4)
    assert {"--fp16", "--directIO", "--useDLACore=0"} <= set(line.arguments)


def test_types_of_layers_count_only_with_precision_constraints() -> None:
    types = {"precisions": {"a": DataType.HALF}, "output_types": {"b": (DataType.FLOAT,)}}
    line = line_of(BoardBuild((8, 4)), **types)
    expected = ("--precisionConstraints=prefer", "--layerPrecisions=a:fp16", "--layerOutputTypes=b:fp32")
    assert line.arguments[2:5] == expected
    assert BuilderFlag.PREFER_PRECISION_CONSTRAINTS in line.build.flags
    obeying = line_of(BoardBuild((8, 4), frozenset({BuilderFlag.OBEY_PRECISION_CONSTRAINTS})), **types)
    assert "--precisionConstraints=obey" in obeying.arguments


@pytest.mark.parametrize("capability", [EngineCapability.STANDARD, EngineCapability.DLA_STANDALONE])
def test_constraints_are_obeyed_on_a_dla_though_trtexec_asks_to_prefer_them(capability: EngineCapability) -> None:
    flags = frozenset({BuilderFlag.FP16, BuilderFlag.DIRECT_IO, BuilderFlag.OBEY_PRECISION_CONSTRAINTS})
    borders = {"input_formats": CHW16, "output_formats": CHW16}
    line = line_of(DLA, flags=flags, precisions={"a": DataType.HALF}, capability=capability, **borders)
    assert {"--precisionConstraints=obey", "--layerPrecisions=a:fp16"} <= set(line.arguments)
    assert line.build.flags == flags
    assert any("constraints are obeyed all the same" in note for note in line.notes)


@pytest.mark.parametrize(
    ("version", "option"),
    [((8, 2), "--safe"), ((8, 5, 10), "--safe"), ((8, 6), "--buildDLAStandalone"), ((10, 3), "--buildDLAStandalone")],
)
def test_a_loadable_is_spelt_as_the_version_has_it(version: tuple[int, ...], option: str) -> None:
    arguments = line_of(LOADABLE, software=version).arguments
    assert {option, "--directIO", "--inputIOFormats=fp16:chw16"} <= set(arguments)
    assert len({"--safe", "--buildDLAStandalone"} & set(arguments)) == 1


@pytest.mark.parametrize(
    ("version", "limit", "option"),
    [
        ((8, 2), 1 << 30, "--workspace=1024"),
        ((8, 4), 1 << 30, "--memPoolSize=workspace:1024"),
        ((10, 3), 1 << 12, "--memPoolSize=workspace:0.00390625"),
    ],
)
def test_the_workspace_is_spelt_as_the_version_has_it(version: tuple[int, ...], limit: int, option: str) -> None:
    assert option in line_of(BoardBuild(version), pools={"WORKSPACE": limit}).arguments


@pytest.mark.parametrize(("version", "option"), [((8, 5, 10), "--buildOnly"), ((8, 6), "--skipInference")])
def test_a_build_without_a_run_is_spelt_as_the_version_has_it(version: tuple[int, ...], option: str) -> None:
    assert line_of(BoardBuild(version)).arguments[-1] == option


def test_several_profiles_are_numbered_and_equal_shapes_are_written_once() -> None:
    def shapes(*batches: int) -> ProfileShapes:
        return ProfileShapes({"x: y": tuple((batch, 4, 8, 8) for batch in batches)})

    assert "--optShapes=x: y:2x4x8x8" in line_of(DLA, profiles=(shapes(2, 2, 2),)).arguments
    told = line_of(DLA, profiles=(shapes(1, 2, 4), shapes(8, 8, 8))).arguments
    assert [one for one in told if "Shapes" in one or "profile" in one] == [
        *("--profile=0", "--minShapes=x: y:1x4x8x8", "--optShapes=x: y:2x4x8x8", "--maxShapes=x: y:4x4x8x8"),
        *("--profile=1", "--optShapes=x: y:8x4x8x8"),
    ]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"software": (8, 5), "devices": {"a": "GPU"}}, "8.5 has no --layerDeviceTypes (TensorRT 8.6 and later)"),
        ({"software": (8, 2), "precisions": {"a": DataType.HALF}}, "8.2 has no --layerPrecisions (TensorRT 8.4"),
        ({"software": (8, 2), "pools": {"DLA_LOCAL_DRAM": 4096}}, "8.2 has no limit of memory pool DLA_LOCAL_DRAM"),
        ({"software": (8, 2), "pools": {"WORKSPACE": 4096}}, "--workspace is in whole MiB"),
        ({"pools": {"DLA_MANAGED_SRAM": 1 << 31}}, "no more than 1073741824 bytes for DLA_MANAGED_SRAM"),
        ({"pools": {"ACME_TILE": 1 << 20}}, "TensorRT has no memory pool ACME_TILE"),
        ({"flags": frozenset({BuilderFlag.STRICT_NANS})}, "no option for the flag STRICT_NANS"),
        ({"software": (8, 6), "flags": frozenset({BuilderFlag.BF16})}, "8.6 has no flag BF16 (TensorRT 10.0"),
        (
            {"flags": frozenset({BuilderFlag.OBEY_PRECISION_CONSTRAINTS, BuilderFlag.PREFER_PRECISION_CONSTRAINTS})},
            "OBEY_PRECISION_CONSTRAINTS and PREFER_PRECISION_CONSTRAINTS cannot be combined",
        ),
        ({"flags": frozenset({BuilderFlag.INT8})}, "it invents scales for --int8 without --calib"),
        ({"default_device": "GPU", "devices": {"a": "DLA"}}, "put 'a' there by --device DLA"),
        ({"software": (8, 6), "precisions": {"a": DataType.BF16}}, "8.6 has no type BF16"),
        ({"precisions": {"a": DataType.FP8}}, "it does not support the type FP8 of layer 'a'"),
        ({"devices": {"a,b": "GPU"}}, "--layerDeviceTypes cannot have the name 'a,b'"),
        ({"precisions": {"it's": DataType.HALF}}, "--layerPrecisions cannot have the name"),
        ({"devices": {"*": "GPU"}}, "would also match 'a'"),
        ({"is_strongly_typed": True}, "a strongly typed network excludes FP16"),
        ({"is_strongly_typed": True, "software": (8, 6)}, "8.6 has no strongly typed networks"),
        ({"quantization_flags": frozenset({QuantizationFlag.CALIBRATE_BEFORE_FUSION})}, "CALIBRATE_BEFORE_FUSION"),
        ({"capability": EngineCapability.SAFETY}, "the engine capability DLA_STANDALONE"),
        ({"software": (8, 5), "optimization_level": 5}, "8.5 has no builder optimization level"),
        ({"software": (8, 6), "profiles": (ProfileShapes({}),) * 2}, "8.6 has no --profile"),
        ({"profiles": (ProfileShapes({}, {"n": ((1,),) * 3}),)}, "takes 1 for the dynamic dimensions of input 'x: y'"),
        ({"profiles": (ProfileShapes({"x": ((1,),) * 3}, {"x": ((1,),) * 3}),)}, "both shapes and values"),
    ],
)
def test_what_trtexec_cannot_be_told_is_refused_with_its_reason(changes: dict[str, Any], reason: str) -> None:
    assert reason in reasons(DLA, **changes)


def test_every_reason_is_listed_at_once() -> None:
    found = reasons(DLA, software=(8, 4), devices={"a,b": "GPU"}, optimization_level=1)
    assert found.count("; ") == 2


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"flags": DLA.flags}, "a loadable has no fallback to the GPU"),
        ({"default_device": "GPU"}, "a loadable is for the DLA"),
        ({"input_formats": ()}, "inputs have one of int8:chw32, int8:chw4, int8:dla_hwc4, int8:dla_linear, fp16:chw16"),
        ({"output_formats": (IoFormat(DataType.HALF, ("DLA_HWC4",)),)}, "and here fp16:dla_hwc4"),
        ({"output_formats": (IoFormat(DataType.HALF, ("CHW16", "DLA_LINEAR")),)}, "and here fp16:chw16+dla_linear"),
        (
            {"software": (8, 4), "input_formats": (IoFormat(DataType.HALF, ("DLA_LINEAR",)),)},
            "fp16:chw, and here fp16:dla_linear",
        ),
    ],
)
def test_a_loadable_that_trtexec_would_refuse_is_refused(changes: dict[str, Any], reason: str) -> None:
    assert reason in reasons(LOADABLE, **changes)


@pytest.mark.parametrize("version", [(7, 2), (8, 1), (11, 0), (11,)])
def test_no_build_is_written_for_versions_that_nothing_is_known_of(version: tuple[int, ...]) -> None:
    from dryfit.board.from_config import board_build
    from dryfit.builder.config.builder_config import BuilderConfig

    with pytest.raises(ConfigError, match=r"TensorRT version must be 8\.2 to 10"):
        board_build(small_network(), BuilderConfig(), version)


def test_versions_have_their_first_and_not_their_end() -> None:
    versions = Versions((8, 4), (10,))
    found = [one in versions for one in ((8, 2), (8, 4), (8, 5, 10), (10, 0))]
    assert found == [False, True, True, False]
