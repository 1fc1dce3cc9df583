"""`dryfit exec`: the log, the exit codes, and each option of trtexec with the answer that the table has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from tests.core.onnx.models import model, numbers
from tests.schemas import validate

from dryfit.answers.trtexec.ranges import invent_ranges
from dryfit.answers.trtexec.run import ExecTrtexecAnswer, exec_trtexec
from dryfit.board.trtexec_options import (
    ALIAS_VERSIONS,
    API_VERSIONS,
    OPTION_ALIASES,
    TRTEXEC_OPTIONS,
    OptionAnswer,
    TrtexecOption,
)
from dryfit.engine.engine import Engine
from dryfit.errors import DryfitError
from dryfit.onnx.parser import network_from_onnx

QUICK = ("--duration=0", "--warmUp=0", "--iterations=1")


def dla_model(batch: str = "1") -> onnx.ModelProto:
    """A convolution, an activation and a pooling, all of which the DLA supports."""
    return model(
        "a = Conv<pads = [1, 1, 1, 1]>(x, w) b = Relu(a) y = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(b)",
        inputs=f"float[{batch},16,8,8] x",
        outputs=f"float[{batch},16,4,4] y",
        weights={"w": numbers(16, 16, 3, 3)},
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a static and a dynamic model, in which the test runs."""
    monkeypatch.chdir(tmp_path)
    onnx.save(dla_model(), "model.onnx")
    onnx.save(dla_model("N"), "dynamic.onnx")
    return tmp_path


# The two lines of the chapter on the DLA ------------------------------------------------------------------------------


@pytest.mark.parametrize("api", ["8.6", "10.16"])
def test_the_chapters_line_for_the_dla_runs_as_typed(dryfit_command: Any, folder: Path, api: str) -> None:
    (folder / "data" / "resnet50").mkdir(parents=True)
    onnx.save(dla_model(), "data/resnet50/ResNet50.onnx")
    line = "--onnx=data/resnet50/ResNet50.onnx --useDLACore=0 --fp16 --allowGPUFallback"
    ended = dryfit_command("exec", "--api", api, *line.split(), "--duration=0")
    assert ended.code == 0, ended.err
    assert "[DlaLayer] {ForeignNode[" in ended.out
    assert "=== Performance summary ===" in ended.out


@pytest.mark.parametrize("api", ["8.6", "10.16"])
def test_the_chapters_line_for_a_loadable_runs_as_typed(dryfit_command: Any, folder: Path, api: str) -> None:
    line = (
        "--onnx=model.onnx --saveEngine=model_loadable.bin --useDLACore=0 --fp16 --inputIOFormats=fp16:chw16 "
        "--outputIOFormats=fp16:chw16 --skipInference --safe"
    )
    ended = dryfit_command("exec", "--api", api, *line.split())
    assert ended.code == 0, ended.err
    assert (folder / "model_loadable.bin").stat().st_size > 0
    ran = dryfit_command("exec", "--api", api, "--loadEngine=model_loadable.bin", *QUICK)
    assert ran.code == 0, ran.err
    assert "Throughput: " in ran.out


# The log and the exit codes -------------------------------------------------------------------------------------------


def test_a_line_that_passes_is_framed_and_ends_with_0(dryfit_command: Any, folder: Path) -> None:
    ended = dryfit_command("exec", "--onnx=model.onnx", "--saveEngine=model.engine", *QUICK)
    lines = ended.out.splitlines()
    assert ended.code == 0
    assert lines[0].startswith("&&&& RUNNING TensorRT.trtexec [dryfit ")
    assert lines[0].endswith(f"] # trtexec --onnx=model.onnx --saveEngine=model.engine {' '.join(QUICK)}")
    assert lines[-1].startswith("&&&& PASSED TensorRT.trtexec [dryfit ")
    assert "All times are of this host" in ended.out
    assert Engine.load(folder / "model.engine").num_layers > 0


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--onnx=nothing.onnx",), "The model does not exist"),
        (("--onnx=model.onnx", "--fp61"), "Did you mean '--fp16'"),
        (("--fp16",), "neither --onnx nor --loadEngine is given"),
        (("--onnx=model.onnx", "--loadEngine=a", "--saveEngine=b"), "--loadEngine and --saveEngine cannot be combined"),
        (("--onnx=model.onnx", "--shapes=x:2x16x8x8"), "A model without dynamic inputs takes no shapes"),
        (("--onnx=model.onnx", "--useDLACore=9"), "The DLA core is out of range"),
        (("--onnx=model.onnx", "--best", "--stronglyTyped"), "--best and --stronglyTyped cannot be combined"),
        (("--onnx=model.onnx", "--fp8", "--int8"), "--fp8 and --int8 cannot be combined"),
        (("--onnx=model.onnx", "--weightStreamingBudget=1"), "requires --allowWeightStreaming"),
        (("--onnx=model.onnx", "--percentile=101"), "A percentile must be between 0 and 100"),
        (("--onnx=model.onnx", "--tacticSources=CUDNN"), "--tacticSources has the entry 'CUDNN'"),
        (("--onnx=model.onnx", "--tacticSources=+CUBLAS_LT,-cublasLt"), "enables and disables CUBLASLT"),
        (("--api=11.1", "--onnx=model.onnx", "--tacticSources=-CUDNN"), "--tacticSources has the entry '-CUDNN'"),
        (("--onnx=model.onnx", "--preview=+fasterDynamicShapes0805"), "--preview has the entry"),
        (("--onnx=model.onnx", "--tempfileControls=in_memory:maybe"), "--tempfileControls has the entry"),
        (("--api=8.6", "--onnx=model.onnx", "--hardwareCompatibilityLevel=sameComputeCapability"), "has the value"),
        (("--onnx=model.onnx", "--weightStreamingBudget=101%"), "--weightStreamingBudget has the value '101%'"),
        (("--onnx=model.onnx", "--allowWeightStreaming"), "--allowWeightStreaming requires --stronglyTyped"),
        (("--onnx=model.onnx", "--maxAuxStreams=x"), "The value must be a number"),
        (("--onnx=model.onnx", "--calibProfile=1"), "The optimization profile does not exist"),
        (("--onnx=model.onnx", "--useDLACore=0", "--buildDLAStandalone", "--allowGPUFallback"), "no fallback"),
        (("--loadEngine=model.onnx",), "not a dryfit engine"),
    ],
)
def test_a_line_that_trtexec_refuses_fails_with_1_and_the_reason(
    dryfit_command: Any, folder: Path, options: tuple[str, ...], reason: str
) -> None:
    del folder
    ended = dryfit_command("exec", *options)
    assert ended.code == 1
    assert reason in ended.err
    assert "[E] " in ended.err
    assert ended.out.splitlines()[-1].startswith("&&&& FAILED TensorRT.trtexec [")


def test_without_options_and_with_help_every_option_is_listed(dryfit_command: Any) -> None:
    for arguments in ((), ("--", "--help"), ("--", "-h")):
        ended = dryfit_command("exec", *arguments)
        assert ended.code == 0
        assert "=== Reporting Options ===" in ended.out
        assert all(name in ended.out for name, one in TRTEXEC_OPTIONS.items() if (10, 16) in one.versions)


def test_json_is_the_answer_as_its_schema_promises(dryfit_command: Any, folder: Path) -> None:
    del folder
    line = ("--onnx=model.onnx", "--useDLACore=0", "--allowGPUFallback", "--fp16", "--useCudaGraph", *QUICK)
    ended = dryfit_command("exec", "--json", "--platform", "agx-orin-64", *line)
    validate(ended.json, ExecTrtexecAnswer.schema())
    assert ended.json["ignored"][0]["option"] == "--useCudaGraph"
    assert "within a factor" in ended.json["estimate"]
    assert ended.json["queries"] >= 1
    assert "&&&& PASSED" in ended.err


# Each option ----------------------------------------------------------------------------------------------------------

VALUES = {
    "FILE": "file.bin",
    "N": "1",
    "MS": "0",
    "SECONDS": "0",
    "NAME:1x3x224x224,...": "x:1x16x8x8",
    "TYPE:FORMAT[+FORMAT],...": "fp32:chw",
    "POOL:SIZE,...": "workspace:64",
    "MIB": "64",
    "NAME:TYPE,...": "b:fp32",
    "NAME:TYPE[+TYPE],...": "b:fp32",
    "NAME:GPU|DLA,...": "*:GPU",
    "TENSOR,...": "a",
    "±LIBRARY,...": "-EDGE_MASK_CONVOLUTIONS",
    "±FEATURE,...": "+profileSharing0806",
    "in_memory|temporary:allow|deny,...": "temporary:deny",
    "P,...": "90,99",
    "FOLDER": ".",
    "RATIO": "0.5",
    "SIZE": "0",
    "X": "1",
}
"""A value for each syntax; of words the first is taken."""

SPECIAL: dict[str, tuple[str, ...]] = {
    "--onnx": (),
    "--saveEngine": ("--saveEngine=made.engine",),
    "--loadEngine": ("--loadEngine=model.engine",),
    "--getPlanVersionOnly": ("--loadEngine=model.engine", "--getPlanVersionOnly"),
    "--asyncFileReader": ("--loadEngine=model.engine", "--asyncFileReader"),
    "--refitFromOnnx": ("--loadEngine=model.engine", "--refitFromOnnx=model.onnx"),
    "--minShapes": ("--minShapes=x:1x16x8x8", "--optShapes=x:2x16x8x8", "--maxShapes=x:4x16x8x8"),
    "--maxShapes": ("--minShapes=x:1x16x8x8", "--optShapes=x:2x16x8x8", "--maxShapes=x:4x16x8x8"),
    "--minShapesCalib": tuple(f"--{word}ShapesCalib=x:1x16x8x8" for word in ("min", "opt", "max")),
    "--maxShapesCalib": tuple(f"--{word}ShapesCalib=x:1x16x8x8" for word in ("min", "opt", "max")),
    "--profile": ("--profile=0", "--optShapes=x:1x16x8x8", "--profile=1", "--optShapes=x:2x16x8x8"),
    "--calibProfile": ("--calibProfile=0",),
    "--useProfile": ("--useProfile=0",),
    "--calib": ("--int8", "--calib=model.cache"),
    "--loadInputs": ("--loadInputs=x:x.bin",),
    "--allowGPUFallback": ("--useDLACore=0", "--allowGPUFallback"),
    "--useDLACore": ("--useDLACore=0", "--allowGPUFallback"),
    "--uint8AsymmetricQuantizationDLA": ("--useDLACore=0", "--allowGPUFallback", "--uint8AsymmetricQuantizationDLA"),
    "--reportCapabilityDLA": ("--useDLACore=0", "--allowGPUFallback", "--reportCapabilityDLA"),
    "--buildDLAStandalone": (
        *("--useDLACore=0", "--buildDLAStandalone", "--inputIOFormats=fp16:chw16", "--outputIOFormats=fp16:chw16"),
    ),
    "--layerPrecisions": ("--precisionConstraints=obey", "--layerPrecisions=*:fp32"),
    "--layerOutputTypes": ("--precisionConstraints=obey", "--layerOutputTypes=*:fp32"),
    "--errorOnTimingCacheMiss": ("--timingCacheFile=times.cache", "--errorOnTimingCacheMiss"),
    "--timingCacheFile": ("--timingCacheFile=new.cache",),
    "--saveDebugTensors": ("--markDebug=a", "--saveDebugTensors=a:a.bin"),
    "--saveAllDebugTensors": ("--markDebug=a", "--saveAllDebugTensors=summary,numpy,string,raw"),
    "--loadRefOutputs": ("--loadInputs=x:x.bin", "--loadRefOutputs=y:y.bin", "--accuracyThreshold=1e-3"),
    "--allowWeightStreaming": ("--stronglyTyped", "--allowWeightStreaming"),
    "--weightStreamingBudget": ("--stronglyTyped", "--allowWeightStreaming", "--weightStreamingBudget=0"),
    "--infStreams": ("--infStreams=2",),
    "--threads": ("--infStreams=2", "--threads"),
    "--timeRefit": ("--refit", "--timeRefit"),
    "--dumpRefit": ("--refit", "--dumpRefit"),
    "--exportProfile": ("--exportProfile=out.json", "--separateProfileRun"),
    "--runtimePlatform": ("--runtimePlatform=WindowsAMD64",),
}
"""Options that need others, or files."""

NEEDS_DYNAMIC = ("Shapes", "--shapes", "--profile", "--calibProfile", "--useProfile")


def words_of(option: TrtexecOption) -> tuple[str, ...]:
    if option.name in SPECIAL:
        return SPECIAL[option.name]
    if option.is_switch:
        return (option.name,)
    value = VALUES.get(option.value, option.value.removesuffix(",...").split("|")[0])
    return (f"{option.name}={value}",)


@pytest.fixture
def files(folder: Path) -> Path:
    """The files that options name."""
    x = np.linspace(-1, 1, 16 * 64, dtype=np.float32).reshape(1, 16, 8, 8)
    x.tofile("x.bin")
    answer = exec_trtexec(
        [
            *("--onnx=model.onnx", "--saveEngine=model.engine", "--refit", "--loadInputs=x:x.bin", *QUICK),
            "--timingCacheFile=times.cache",
        ]
    )
    answer.outputs["y"].tofile("y.bin")
    Path("model.cache").write_text(
        "TRT-8600-EntropyCalibration2\n" + "".join(f"{name}: 3c010a14\n" for name in "xaby"), encoding="utf-8"
    )
    return folder


CASES = [
    (name, api)
    for name, one in TRTEXEC_OPTIONS.items()
    for api, version in reversed(API_VERSIONS.items())
    if version in one.versions and name != "--help"
]
ONCE = {name: (name, api) for name, api in CASES}
"""Each option with the oldest version that has it."""


@pytest.mark.parametrize(
    ("name", "api"), [pytest.param(*one, marks=() if one in ONCE.values() else pytest.mark.nightly) for one in CASES]
)
def test_an_option_is_taken_with_the_answer_that_the_table_has(files: Path, name: str, api: str) -> None:
    del files
    option, version = TRTEXEC_OPTIONS[name], API_VERSIONS[api]
    words = list(words_of(option))
    if api == "11.1":
        words = [one.replace("fp32:chw", "chw") for one in words]
        if name == "--buildDLAStandalone" or "--useDLACore=0" in words:
            pytest.skip("TensorRT 11.1 has no DLA")
    if any(given in name for given in NEEDS_DYNAMIC):
        words.append("--onnx=dynamic.onnx")
    elif not any(one.startswith(("--onnx", "--loadEngine")) for one in words):
        words.append("--onnx=model.onnx")
    words += [one for one in QUICK if one.partition("=")[0] not in {word.partition("=")[0] for word in words}]
    if option.answer is OptionAnswer.REFUSED:
        with pytest.raises(DryfitError) as refused:
            exec_trtexec(words, api=api)
        assert option.why[1:] in str(refused.value)
        return
    answer = exec_trtexec(words, api=api)
    ignored = {one.option: one.reason for one in answer.ignored}
    assert ignored.get(name, "") == option.effect_problem(version)
    warnings = [text for severity, text in answer.lines if severity == "W"]
    assert name not in ignored or any(text.startswith(f"{name} has no effect: ") for text in warnings)


@pytest.mark.parametrize("name", [name for name, one in TRTEXEC_OPTIONS.items() if (11, 1) not in one.versions])
def test_an_option_that_a_version_lacks_is_unknown_there(folder: Path, name: str) -> None:
    del folder
    with pytest.raises(DryfitError, match=rf"Unknown option: trtexec of TensorRT 11\.1 has no {name}"):
        exec_trtexec([name if TRTEXEC_OPTIONS[name].is_switch else f"{name}=1"], api="11.1")


@pytest.mark.parametrize(("alias", "name"), OPTION_ALIASES.items())
def test_another_name_of_an_option_means_the_same(alias: str, name: str) -> None:
    from dryfit.board.trtexec_arguments import read_arguments

    option = TRTEXEC_OPTIONS[name]
    value = "" if option.is_switch else "=1"
    version = (8, 6) if alias in ALIAS_VERSIONS else (10, 16)
    assert read_arguments([f"{alias}{value}"], version) == read_arguments([f"{name}{value}"], version)


def test_every_option_says_what_it_does_and_why_it_does_not() -> None:
    for option in TRTEXEC_OPTIONS.values():
        assert option.text[0].isupper()
        assert not option.text.endswith(".")
        assert bool(option.why) == (option.answer is not OptionAnswer.WORKS)
        assert any(version in option.versions for version in API_VERSIONS.values()), option.name
    counts = {
        api: sum(version in one.versions for one in TRTEXEC_OPTIONS.values()) for api, version in API_VERSIONS.items()
    }
    assert all(counts[api] > 90 for api in API_VERSIONS), counts


# What single options do -----------------------------------------------------------------------------------------------


def test_exports_have_what_trtexec_writes(files: Path) -> None:
    exported = {name: f"{name}.json" for name in ("exportTimes", "exportOutput", "exportProfile", "exportLayerInfo")}
    answer = exec_trtexec(
        [
            *("--onnx=model.onnx", *QUICK, "--separateProfileRun", "--profilingVerbosity=detailed"),
            *(f"--{name}={file}" for name, file in exported.items()),
        ]
    )
    assert sorted(answer.files) == sorted(exported.values())
    data = {name: json.loads((files / file).read_text(encoding="utf-8")) for name, file in exported.items()}
    assert "latencyMs" in data["exportTimes"][0]
    assert data["exportOutput"][0]["dimensions"] == "1x16x4x4"
    assert list(data["exportProfile"][0]) == ["count"]
    assert data["exportLayerInfo"]["Bindings"] == ["x", "y"]


def test_inputs_from_a_file_are_what_the_network_computes_on(files: Path) -> None:
    x = np.fromfile(files / "x.bin", np.float32).reshape(1, 16, 8, 8)
    answer = exec_trtexec(["--loadEngine=model.engine", "--loadInputs=x:x.bin", *QUICK])
    assert np.array_equal(answer.outputs["y"], Engine.load("model.engine").create_execution_context().run(x)["y"])


def test_dynamic_inputs_without_shapes_are_1_and_a_warning_says_so(folder: Path) -> None:
    del folder
    answer = exec_trtexec(["--onnx=dynamic.onnx", *QUICK])
    assert answer.outputs["y"].shape == (1, 16, 4, 4)
    assert any("Dynamic dimensions of input 'x' have no shape: 1x16x8x8 is used" in text for _, text in answer.lines)
    answer = exec_trtexec(["--onnx=dynamic.onnx", "--shapes=x:3x16x8x8", *QUICK])
    assert answer.outputs["y"].shape == (3, 16, 4, 4)


def test_a_pool_of_gpu_kernels_is_taken_with_a_warning(folder: Path) -> None:
    del folder
    answer = exec_trtexec(["--onnx=model.onnx", "--memPoolSize=tacticSharedMem:64K,workspace:64", *QUICK])
    assert any("tacticSharedMem has no effect" in text for _, text in answer.lines)
    assert exec_trtexec(["--onnx=model.onnx", "--memPoolSize=tacticSharedMem:64K", *QUICK]).queries


def test_a_size_of_the_dlas_sram_is_rounded_with_a_warning(folder: Path) -> None:
    del folder
    answer = exec_trtexec(["--onnx=model.onnx", "--memPoolSize=dlaSRAM:3", *QUICK])
    assert any("rounded down to 2097152, a power of two" in text for _, text in answer.lines)


def test_int8_without_a_cache_has_the_ranges_that_trtexec_invents(folder: Path) -> None:
    del folder
    network = network_from_onnx("model.onnx")
    invent_ranges(network)
    limits = {tensor.name: tensor.dynamic_range for tensor in network.tensors if tensor.dtype.is_floating_point}
    # Layers read x, a and b; y is the output of a pooling.
    assert {name: limits[name] for name in "xaby"} == dict.fromkeys("xaby", (-2.0, 2.0))
    answer = exec_trtexec(["--onnx=model.onnx", "--int8", *QUICK])
    assert any("INT8 ranges are invented" in text for _, text in answer.lines)


def test_int8_inputs_and_outputs_have_ranges_without_the_flag_int8(files: Path) -> None:
    del files
    line = ["--onnx=model.onnx", "--inputIOFormats=int8:chw", "--outputIOFormats=int8:chw", *QUICK]
    invented = exec_trtexec(line)
    assert invented.outputs["y"].dtype == np.int8
    assert any("INT8 ranges are invented" in text for _, text in invented.lines)
    cached = exec_trtexec([*line, "--calib=model.cache"])
    assert cached.outputs["y"].dtype == np.int8
    assert not any("INT8 ranges are invented" in text for _, text in cached.lines)


def test_a_calibration_cache_that_is_missing_is_replaced_by_a_random_batch(folder: Path) -> None:
    answer = exec_trtexec(["--onnx=dynamic.onnx", "--int8", "--calib=none.cache", "--shapes=x:2x16x8x8", *QUICK])
    assert any(
        "none.cache does not exist: scales are calibrated with one random batch" in text for _, text in answer.lines
    )
    assert not (folder / "none.cache").exists()


def test_a_stripped_engine_is_not_run_until_it_is_refitted(folder: Path) -> None:
    del folder
    answer = exec_trtexec(["--onnx=model.onnx", "--stripWeights", "--saveEngine=model.engine", *QUICK])
    assert not answer.queries
    assert any("has no weights and is not run" in text for _, text in answer.lines)
    refitted = exec_trtexec(["--loadEngine=model.engine", "--refitFromOnnx=model.onnx", *QUICK])
    assert refitted.queries


def test_an_output_that_differs_from_its_reference_fails(files: Path) -> None:
    del files
    same = ["--loadEngine=model.engine", "--loadInputs=x:x.bin", "--loadRefOutputs=y:y.bin", "--accuracyThreshold=1e-6"]
    assert exec_trtexec([*same, *QUICK], api="11.1").queries
    (np.fromfile("y.bin", np.float32) + 1).tofile("y.bin")
    for word in ("l0", "l1", "l2", "lInf"):
        with pytest.raises(DryfitError, match="The accuracy loss is too large"):
            exec_trtexec([*same, *QUICK, f"--accuracyAlgorithm={word}"], api="11.1")


def test_debug_tensors_are_written(folder: Path) -> None:
    line = ["--onnx=model.onnx", "--markDebug=a", "--saveDebugTensors=a:a.bin", "--saveAllDebugTensors=summary,numpy"]
    answer = exec_trtexec([*line, *QUICK])
    assert set(answer.files) == {"a.bin", "0000_a.npy", "tensor_summary.json"}
    array = np.load(folder / "0000_a.npy")
    assert (folder / "a.bin").read_bytes() == array.tobytes()
    summary = json.loads((folder / "tensor_summary.json").read_text(encoding="utf-8"))
    assert summary["tensors"][0]["shape"] == [1, 16, 8, 8]
    assert summary["tensors"][0]["statistics"]["max"] == pytest.approx(float(array.max()))
