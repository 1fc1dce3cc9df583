"""`dryfit export trtexec`: a line, a script and scales, for a model with options and for an engine."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest
from tests.core.board.boards import small_model
from tests.schemas import validate

from dryfit.answers.export_trtexec import ExportTrtexecAnswer
from dryfit.board.script_data import parse_script
from dryfit.board.trtexec_arguments import arguments_of
from dryfit.board.trtexec_parser import parse_trtexec
from dryfit.builder.config.enumerations import BuilderFlag
from dryfit.network.data_types import DataType
from dryfit.onnx.parser import network_from_onnx
from dryfit.quantization.calibration_cache import CalibrationCache, parse

SCALES = {"x": 0.25, "a": 0.5, "b": 0.5, "c": 0.5, "d": 0.5, "y": 1.0}
DLA = ("--device", "DLA", "--fallback", "GPU", "--software", "10.3", "--shape", "x=2x4x6x6")
CONV, RELU = "block/Conv a", "block/Relu b"


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The small model in an empty folder, which is the current one; beside it a cache of its scales."""
    monkeypatch.chdir(tmp_path)
    Path("scales.cache").write_bytes(CalibrationCache("TRT-8600-MinMaxCalibration", SCALES).to_bytes())
    path = Path("small net.onnx")
    path.write_bytes(small_model().SerializeToString())
    return path


def exported(command: Any, *arguments: object) -> Any:
    """The answer as JSON, held to its schema."""
    ended = command("export", "trtexec", *arguments, "--json")
    assert not ended.err
    answer = ended.json
    validate(answer, ExportTrtexecAnswer.schema())
    return answer


def test_the_line_is_printed_and_notes_stand_beside_it(model: Path, dryfit_command: Any) -> None:
    ended = dryfit_command(
        "export",
        "trtexec",
        model,
        *DLA,
        "--precision",
        "fp16",
        "--layer-device-types",
        f"{CONV}:GPU",
        "--useDLACore",
        1,
    )
    assert arguments_of(ended.out) == [
        *("--onnx=small net.onnx", "--saveEngine=small net.engine", "--fp16", "--useDLACore=1", "--allowGPUFallback"),
        *(f"--layerDeviceTypes={CONV}:GPU", "--optShapes=x:2x4x6x6", "--skipInference"),
    ]
    assert "Note: trtexec sets PREFER_PRECISION_CONSTRAINTS for a DLA." in ended.err
    assert sorted(Path().iterdir()) == [Path("scales.cache"), model]


def test_scales_are_written_as_the_board_takes_them(model: Path, dryfit_command: Any) -> None:
    answer = exported(dryfit_command, model, *DLA, "--int8", "--calibration-cache", "scales.cache")
    assert "--calib=small net.trtexec.cache" in answer["command"]
    assert [file["file"] for file in answer["files"]] == ["small net.trtexec.cache"]
    written = parse(Path("small net.trtexec.cache").read_bytes())
    assert written == CalibrationCache("TRT-100300-EntropyCalibration2", SCALES)


def test_the_line_and_the_script_say_the_same_build(model: Path, dryfit_command: Any) -> None:
    options = (*DLA, "--int8", "--calibration-cache", "scales.cache", "--layer-precisions", f"{RELU}:fp16")
    files = (
        "--output",
        "build.sh",
        "--script",
        "build.py",
        "--scales",
        "board.cache",
        "--timing-cache-file",
        "t.cache",
    )
    answer = exported(dryfit_command, model, *options, *files)
    assert [file["file"] for file in answer["files"]] == ["board.cache", "build.sh", "build.py"]
    network = network_from_onnx(model)
    line = Path("build.sh").read_text(encoding="utf-8").partition("set -e\n")[2]
    told, paths = parse_trtexec(
        arguments_of(line), network, (10, 3), lambda path: parse(Path(path).read_bytes()).scales
    )
    scripted, other = parse_script(
        Path("build.py").read_text(encoding="utf-8"), lambda path: parse(Path(path).read_bytes()).scales
    )
    assert paths == other
    assert (told.scales, told.precisions, told.profiles) == (scripted.scales, {RELU: DataType.HALF}, scripted.profiles)
    assert told.flags - scripted.flags == {BuilderFlag.PREFER_PRECISION_CONSTRAINTS}
    assert Path("build.sh").stat().st_mode & stat.S_IXUSR


def test_an_engine_says_what_it_was_built_with(model: Path, dryfit_command: Any) -> None:
    options = (
        *(*DLA, "--int8", "--calibration-cache", "scales.cache", "--layer-device-types", f"{CONV}:GPU"),
        *("--layer-precisions", f"{RELU}:fp16", "--mem-pool-size", "dlaSRAM:1"),
    )
    from_options = exported(dryfit_command, model, *options)
    scales = parse(Path("small net.trtexec.cache").read_bytes()).scales
    assert dryfit_command("build", model, "-o", "small.engine", *options).code == 0
    from_engine = exported(dryfit_command, "small.engine", "--onnx", model)
    assert from_engine["command"] == from_options["command"]
    again = parse(Path("small net.trtexec.cache").read_bytes()).scales
    assert {name: again[name] for name in scales} == pytest.approx(scales)


def test_every_layer_can_be_told_its_device(model: Path, dryfit_command: Any) -> None:
    options = (*DLA, "--precision", "fp16", "--layer-device-types", f"{CONV}:GPU")
    answer = exported(dryfit_command, model, *options, "--every-layer")
    listed = next(one for one in answer["command"] if one.startswith("--layerDeviceTypes=")).partition("=")[2]
    devices = dict(entry.rsplit(":", 1) for entry in listed.split(","))
    checked = dryfit_command("check", model, *options, "--json").json["layers"]
    nodes = [layer["onnx_nodes"][0] for layer in checked if layer["onnx_nodes"]]
    on = {node: {one["device"] for one in checked if one["onnx_nodes"] == [node]} for node in nodes}
    assert devices == {node: found.pop() for node, found in on.items() if len(found) == 1}
    assert {"DLA", "GPU"} == set(devices.values())
    assert any("is left to the builder on the board" in note for note in answer["notes"]) == any(
        len(found) == 2 for found in on.values()
    )
    assert dryfit_command("build", model, "-o", "small.engine", *options).code == 0
    assert exported(dryfit_command, "small.engine", "--onnx", model, "--every-layer")["command"] == answer["command"]


def test_an_engine_of_another_model_and_options_beside_one_are_refused(
    model: Path, digits_model: Path, dryfit_command: Any
) -> None:
    assert dryfit_command("build", model, "-o", "small.engine", "--shape", "x=1x4x6x6").code == 0
    ended = dryfit_command("export", "trtexec", "small.engine", "--onnx", digits_model)
    assert (ended.code, "The model must be the one that the engine was built from" in ended.err) == (2, True)
    ended = dryfit_command("export", "trtexec", "small.engine", "--onnx", model, "--device", "DLA", "--int8")
    assert (ended.code, "options for device, precision" in ended.err) == (2, True)


def test_a_name_that_no_list_can_have_goes_into_a_script(model: Path, dryfit_command: Any) -> None:
    parsed = small_model()
    parsed.graph.node[0].name = "a, b"
    model.write_bytes(parsed.SerializeToString())
    options = (*DLA, "--precision", "fp16", "--placement", "place.txt")
    Path("place.txt").write_text("a, b = GPU\n", encoding="utf-8")
    ended = dryfit_command("export", "trtexec", model, *options)
    assert (ended.code, "--script FILE" in ended.err) == (2, True)
    assert dryfit_command("export", "trtexec", model, *options, "--script", "build.py").code == 0
    build, _ = parse_script(Path("build.py").read_text(encoding="utf-8"), lambda _: {})
    assert build.devices == {"a, b": "GPU"}


def test_a_limit_that_a_build_lowers_is_exported_as_lowered(model: Path, dryfit_command: Any) -> None:
    options = (*DLA, "--precision", "fp16", "--mem-pool-size")
    answer = exported(dryfit_command, model, *options, "dlaSRAM:4,dlaLocalDRAM:64")
    assert "--memPoolSize=dlaLocalDRAM:64,dlaSRAM:1" in answer["command"]
    (lowered,) = (note for note in answer["notes"] if "is lowered to 1048576 bytes" in note)
    assert lowered in dryfit_command("check", model, *options, "dlaSRAM:4", "--json").json["warnings"]
    assert "--memPoolSize=dlaSRAM:0.5" in exported(dryfit_command, model, *options, "dlaSRAM:0.5")["command"]


def test_notes_are_comments_in_the_scripts_and_lines_on_stderr(model: Path, dryfit_command: Any) -> None:
    options = (*DLA, "--precision", "fp16", "--mem-pool-size", "dlaSRAM:4", "-o", "build.sh", "--script", "build.py")
    ended = dryfit_command("export", "trtexec", model, *options)
    words = "the limit of 4194304 bytes for DLA_MANAGED_SRAM is lowered to 1048576 bytes"
    assert words in ended.err
    for name in ("build.sh", "build.py"):
        lines = Path(name).read_text(encoding="utf-8").splitlines()
        assert words in " ".join(line.strip("# ") for line in lines if line.startswith("#"))
    build, _ = parse_script(Path("build.py").read_text(encoding="utf-8"), lambda _: {})
    assert build.pools == {"DLA_MANAGED_SRAM": 1 << 20}


def test_a_loadable_is_exported_for_a_xavier(model: Path, dryfit_command: Any) -> None:
    answer = exported(
        dryfit_command,
        *(model, "--device", "DLA", "--platform", "agx-xavier", "--shape", "x=1x4x6x6", "--standalone"),
        *("--input-io-formats", "fp16:chw16", "--output-io-formats", "fp16:chw16", "--trtexec", "/opt/trt exec"),
    )
    assert (answer["tensorrt"], answer["command"][0]) == ("8.5.10", "/opt/trt exec")
    assert {"--safe", "--directIO", "--inputIOFormats=fp16:chw16", "--buildOnly"} <= set(answer["command"])


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--sparsity", "force"), "dryfit sparsity prune"),
        (("--tensorrt", "new"), "numbers with dots"),
        (("--tensorrt", "11.0"), "TensorRT version must be 8.2 to 10"),
        (("--int8",), "invents scales"),
        (("--script", "no/such/folder.py"), "cannot be written"),
        (("--device", "CPU"), "the default device is CPU"),
    ],
)
def test_what_cannot_be_exported_is_refused_and_writes_nothing(
    model: Path, dryfit_command: Any, options: tuple[str, ...], reason: str
) -> None:
    ended = dryfit_command("export", "trtexec", model, "--shape", "x=1x4x6x6", *options)
    assert (ended.code, reason in ended.err) == (2, True)
    assert sorted(Path().iterdir()) == [Path("scales.cache"), model]
