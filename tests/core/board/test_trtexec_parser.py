"""Lines that people write for trtexec, read as the build that they stand for."""

from __future__ import annotations

import pytest
from tests.core.board.boards import small_network

from dryfit.board.board_build import BoardBuild
from dryfit.board.trtexec_arguments import arguments_of
from dryfit.board.trtexec_parser import parse_trtexec
from dryfit.builder.config.enumerations import BuilderFlag, EngineCapability
from dryfit.builder.config.trtexec_spellings import IoFormat
from dryfit.engine.plan import ProfileShapes
from dryfit.errors import ConfigError, DryfitError
from dryfit.network.data_types import DataType
from dryfit.network.network import Network


def build_of(options: str, version: tuple[int, ...] = (10, 3), network: Network | None = None) -> BoardBuild:
    line = f"./trtexec --onnx=m.onnx {options}"
    return parse_trtexec(arguments_of(line), network or small_network(("a", "b", "ba")), version, lambda _: {"x": 1.0})[
        0
    ]


def test_the_guides_line_for_a_dla_is_read() -> None:
    build = build_of("--useDLACore=0 --fp16 --allowGPUFallback")
    assert (build.default_device, build.dla_core) == ("DLA", 0)
    assert {BuilderFlag.FP16, BuilderFlag.GPU_FALLBACK, BuilderFlag.TF32} <= build.flags


@pytest.mark.parametrize("version", [(8, 5), (8, 6), (10, 3)])
def test_the_guides_line_for_a_loadable_is_read(version: tuple[int, ...]) -> None:
    build = build_of(
        "--saveEngine=model_loadable.bin --useDLACore=0 --fp16 --inputIOFormats=fp16:chw16 "
        "--outputIOFormats=fp16:chw16 --safe",
        version,
    )
    assert build.capability is EngineCapability.DLA_STANDALONE
    assert build.input_formats == build.output_formats == (IoFormat(DataType.HALF, ("CHW16",)),)
    assert BuilderFlag.DIRECT_IO in build.flags


def test_a_published_line_that_obeys_constraints_on_a_dla_is_read() -> None:
    """The options of NVIDIA-AI-IOT/cuDLA-samples, data/model/build_dla_standalone_loadable.sh, for other layers."""
    build = build_of(
        "--useDLACore=0 --buildDLAStandalone --inputIOFormats=int8:dla_hwc4 --outputIOFormats=fp16:chw16 --int8 "
        "--fp16 --calib=scales.cache --precisionConstraints=obey --layerPrecisions=a:fp16,b:fp16"
    )
    assert build.capability is EngineCapability.DLA_STANDALONE
    assert build.precisions == {"a": DataType.HALF, "b": DataType.HALF}
    assert BuilderFlag.OBEY_PRECISION_CONSTRAINTS in build.flags
    assert BuilderFlag.PREFER_PRECISION_CONSTRAINTS not in build.flags


def test_one_star_stands_for_any_text_and_a_name_itself_wins() -> None:
    options = "--useDLACore=0 --allowGPUFallback --layerDeviceTypes=b*:GPU,b:DLA"
    assert build_of(options).devices == {"b": "DLA", "ba": "GPU"}


def test_later_entries_win_and_layers_that_do_not_exist_are_passed_over() -> None:
    options = "--layerDeviceTypes=a:DLA,a:GPU,nothing:DLA"
    assert build_of(options).devices == {"a": "GPU"}


def test_types_of_layers_mean_nothing_without_constraints() -> None:
    types = "--layerPrecisions=a:fp16 --layerOutputTypes=b:fp16"
    assert not build_of(types).has_layer_types
    assert not build_of(f"--useDLACore=0 {types}").has_layer_types
    assert build_of(f"--precisionConstraints=obey {types}").has_layer_types


def test_int8_without_a_cache_makes_scales_up() -> None:
    assert build_of("--int8").assumes_scales
    assert build_of("--int8 --calib=c.cache").scales == {"x": 1.0}
    assert build_of("--calib=c.cache").scales is None


def test_best_is_every_type_that_the_version_has() -> None:
    both = {BuilderFlag.FP16, BuilderFlag.INT8}
    assert build_of("--best", (8, 6)).flags - {BuilderFlag.TF32} == both
    assert build_of("--best").flags - {BuilderFlag.TF32} == both | {BuilderFlag.BF16}


def test_shapes_of_a_run_are_shapes_of_the_build() -> None:
    shape = (2, 4, 8, 8)
    dynamic = small_network(("a",), -1)
    for option in ("--shapes", "--optShapes"):
        build = build_of(f"{option}=\\'x: y\\':2x4x8x8".replace(" y", "\\ y"), network=dynamic)
        assert build.profiles == (ProfileShapes({"x: y": (shape, shape, shape)}),)


@pytest.mark.parametrize(
    ("options", "least", "best", "largest"),
    [
        ("--minShapes={1}", 1, 1, 1),
        ("--maxShapes={4}", 4, 4, 4),
        ("--minShapes={1} --maxShapes={4}", 1, 4, 4),
        ("--minShapes={1} --optShapes={2}", 1, 2, 2),
        ("--optShapes={2} --maxShapes={4}", 2, 2, 4),
    ],
)
def test_shapes_that_are_not_given_are_copied_as_in_trtexec(options: str, least: int, best: int, largest: int) -> None:
    dynamic = small_network(("a",), -1)
    text = options.replace("{", "\\'x:\\ y\\':").replace("}", "x4x8x8")
    shapes = tuple((batch, 4, 8, 8) for batch in (least, best, largest))
    assert build_of(text, (8, 6), dynamic).profiles == (ProfileShapes({"x: y": shapes}),)


@pytest.mark.parametrize(("version", "size"), [((8, 6), 1 << 20), ((10, 0), 1 << 30)])
def test_sizes_of_pools_have_units_from_tensorrt_10_on(version: tuple[int, ...], size: int) -> None:
    assert build_of("--memPoolSize=workspace:1G", version).pools == {"WORKSPACE": size}


def test_a_type_without_a_layer_is_of_a_layer_of_that_name() -> None:
    options = "--precisionConstraints=obey --layerPrecisions=fp16"
    assert build_of(options).precisions == {}
    assert build_of(options, network=small_network(("fp16",))).precisions == {"fp16": DataType.HALF}


def test_options_of_a_run_are_passed_over() -> None:
    assert build_of("--iterations=10 --verbose --exportTimes=t.json --useCudaGraph") == build_of("")


@pytest.mark.parametrize(
    ("options", "version", "reason"),
    [
        ("--fp61", (10, 3), "Did you mean '--fp16'"),
        ("--workspace=512", (10, 3), "no --workspace .*--memPoolSize=workspace:SIZE"),
        ("--memPoolSize=workspace:512", (8, 2), "no --memPoolSize .*--workspace before 8.4"),
        ("--buildDLAStandalone --useDLACore=0", (8, 5), "--safe with --useDLACore before 8.6"),
        ("--fp16 --fp16", (10, 3), "must not be repeated"),
        ("--fp16=1", (10, 3), "takes no value"),
        ("--useDLACore", (10, 3), "takes a value"),
        ("--useDLACore=first", (10, 3), "must be a number"),
        ("--minShapes=x:1", (8, 5), "--optShapes alone, or all of"),
        ("--minShapes=x:1 --optShapes=z:1", (10, 3), "--optShapes alone, or all of"),
        ("--inputIOFormats=fp16:hwc4", (10, 3), "format: 'HWC4'.*Did you mean"),
        ("--inputIOFormats=fp16:hwc16", (8, 6), "format: 'HWC16'"),
        ("--optShapes=z:1", (10, 3), "input: 'z'"),
        ("--optShapes=x:one", (10, 3), "cannot be parsed"),
        ("--layerDeviceTypes=a:TPU", (10, 3), "device type: 'TPU'"),
        ("--layerPrecisions=a:fp61 --precisionConstraints=obey", (10, 3), "Unknown type"),
        ("--layerDeviceTypes=a", (10, 3), "The entry must be NAME:VALUE"),
        ("--sparsity=force", (10, 3), "word: 'force'"),
        ("--inputIOFormats=fp16:chw,fp16:chw", (10, 3), "The types and formats must match the model"),
        ("--profile=1", (10, 3), "numbered in order"),
        ("--useDLACore=0 --buildDLAStandalone --allowGPUFallback", (10, 3), "no fallback to the GPU"),
    ],
)
def test_what_trtexec_would_refuse_is_refused(options: str, version: tuple[int, ...], reason: str) -> None:
    with pytest.raises(DryfitError, match=reason):
        build_of(options, version)


def test_a_line_without_a_model_or_with_an_open_quote_is_refused() -> None:
    with pytest.raises(ConfigError, match="A model is required"):
        parse_trtexec(["--fp16"], small_network(), (10, 3), lambda _: {})
    for text in ("trtexec 'a", ""):
        with pytest.raises(ConfigError, match="The command line cannot be parsed"):
            arguments_of(text)
