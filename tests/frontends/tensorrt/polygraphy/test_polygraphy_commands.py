"""Commands of Polygraphy with dryfit's modules in place of TensorRT, in each version that has the feature.

The commands of a version run one after another in one process, because Polygraphy takes longer to start than to run.
"""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

pytest.importorskip("polygraphy")
pytest.importorskip("onnxruntime")
pytest.importorskip("onnx_graphsurgeon")

OLD_POLYGRAPHY = importlib.metadata.version("polygraphy").startswith("0.49")

DRIVER = """
import contextlib, io, json, os, sys, traceback
import polygraphy.tools

found = {}
for name, arguments in json.load(open("commands.json")).items():
    sys.argv, text, code = ["polygraphy", *arguments], io.StringIO(), 0
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
        try:
            code = polygraphy.tools.main()
        except SystemExit as end:
            code = end.code
        except BaseException:
            traceback.print_exc()
            code = 1
    found[name] = {"code": code or 0, "text": text.getvalue()}
json.dump(found, open("answers.json", "w"))
"""

LOADER = """
import numpy as np

def load_data():
    random = np.random.default_rng(2)
    for index in range(4):
        print("batch", index, "of the program")
        yield {"x": random.normal(0, 1, (1, 4, 12, 12)).astype(np.float32)}
"""

COMPARED = "run model.onnx --trt --onnxrt"

COMMANDS = {
    "inspect-model": "inspect model model.onnx --display-as trt --show layers attrs",
    "convert": "convert model.onnx -o model.plan",
    "inspect-engine": "inspect model model.plan --model-type engine --show layers attrs",
    "run-engine": "run model.plan --trt --model-type engine --save-outputs engine.json",
    "run": COMPARED,
    "mark-all": f"{COMPARED} --trt-outputs mark all --onnx-outputs mark all",
    "dynamic": "run dynamic.onnx --trt --onnxrt --trt-min-shapes x:[1,4,12,12] --trt-opt-shapes x:[2,4,12,12] "
    "--trt-max-shapes x:[4,4,12,12] --input-shapes x:[3,4,12,12]",
    "int8": "convert model.onnx --int8 --data-loader-script loader.py --calibration-cache model.cache -o i1.plan",
    "int8-again": "convert model.onnx --int8 --data-loader-script loader.py --calibration-cache model.cache -o i2.plan",
    "int8-run": f"{COMPARED} --int8 --calibration-cache model.cache --data-loader-script loader.py --atol 0.1",
    "standalone": "convert model.onnx --fp16 --use-dla --engine-capability dla_standalone --tensor-dtypes x:float16 "
    "y:float16 --tensor-formats x:[dla_linear] y:[dla_linear] --convert-to trt -o model.loadable",
    "dla": f"{COMPARED} --fp16 --use-dla --allow-gpu-fallback --pool-limit dla_managed_sram:256K dla_local_dram:1M "
    "--atol 0.01 --verbosity verbose",
    "precisions": f"{COMPARED} --fp16 --layer-precisions conv1:float16 conv2:float32 --precision-constraints obey "
    "--atol 0.01 --trt-outputs c2 --onnx-outputs c2",
    "debug": "run model.onnx --trt --mark-debug r1 --verbosity verbose",
    "save-tactics": "run model.onnx --trt --save-tactics tactics.json",
    "inspect-tactics": "inspect tactics tactics.json",
    "load-tactics": "run model.onnx --trt --load-tactics tactics.json",
    "save-timings": "convert model.onnx --save-timing-cache timing.cache -o timed.plan",
    "load-timings": "convert model.onnx --load-timing-cache timing.cache -o again.plan",
    "capability": "inspect capability unsupported.onnx -o plain",
    "capability-partitioned": "inspect capability unsupported.onnx --with-partitioning -o parts",
    "capability-whole": "inspect capability model.onnx",
}
"""Name to the arguments; those of a later one may read what an earlier one wrote."""


def model(batch: int | str, *, is_supported: bool = True) -> onnx.ModelProto:
    """Two convolutions with a ReLU between them and a softmax, and perhaps an operator that nobody has."""
    random = np.random.default_rng(1)
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["c1"], name="conv1", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c1"], ["r1"], name="relu1"),
        helper.make_node("Conv", ["r1", "w2"], ["c2"], name="conv2"),
        helper.make_node("Softmax", ["c2"], ["y"], name="softmax1", axis=1),
    ]
    if not is_supported:
        nodes.append(helper.make_node("NoSuchOperator", ["y"], ["unknown"], name="unknown1"))
        nodes.append(helper.make_node("Relu", ["unknown"], ["z"], name="relu2"))
    weights = [
        numpy_helper.from_array(random.normal(0, 0.3, shape).astype(np.float32), name)
        for name, shape in (("w1", (16, 4, 3, 3)), ("w2", (8, 16, 1, 1)))
    ]

    def info(name: str, channels: int) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, [batch, channels, 12, 12])

    graph = helper.make_graph(
        nodes,
        "small",
        [info("x", 4)],
        [info("y" if is_supported else "z", 8)],
        weights,
        value_info=[] if is_supported else [info("y", 8), info("unknown", 8)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


@attrs.frozen
class Answers:
    """What the commands of a version printed, and the folder where they ran."""

    api: str
    folder: Path
    _found: Mapping[str, Mapping[str, object]]

    def of(self, name: str) -> str:
        """Output of a command that must have succeeded."""
        answer = self._found[name]
        assert answer["code"] == 0, answer["text"]
        return str(answer["text"])

    def failure(self, name: str) -> str:
        """Output of a command that must have failed."""
        answer = self._found[name]
        assert answer["code"] != 0, answer["text"]
        return str(answer["text"])


@pytest.fixture(scope="module", params=[pytest.param("8.6", marks=pytest.mark.nightly), "10.16", "11.1"])
def answers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Answers:
    if request.param == "11.1" and OLD_POLYGRAPHY:
        pytest.skip("Polygraphy 0.49 reads members that TensorRT 11 removed")
    folder = tmp_path_factory.mktemp("commands")
    onnx.save(model(1), folder / "model.onnx")
    onnx.save(model("n"), folder / "dynamic.onnx")
    onnx.save(model(1, is_supported=False), folder / "unsupported.onnx")
    (folder / "loader.py").write_text(LOADER, encoding="utf-8")
    return ran(folder, request.param, {name: line.split() for name, line in COMMANDS.items()})


def ran(folder: Path, api: str, commands: Mapping[str, Sequence[str]]) -> Answers:
    """Run commands of Polygraphy, by name, in a folder."""
    (folder / "driver.py").write_text(DRIVER, encoding="utf-8")
    (folder / "commands.json").write_text(json.dumps(commands), encoding="utf-8")
    done = tensorrt_run(folder, api, ["driver.py"])
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((folder / "answers.json").read_text(encoding="utf-8"))
    return Answers(api, folder, found)


def tensorrt_run(folder: Path, api: str, program: Sequence[str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dryfit_tensorrt", "--api", api, "--platform", "agx-orin-64", "--", *program]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def without_11(answers: Answers) -> None:
    if answers.api == "11.1":
        pytest.skip("TensorRT 11 removed it")


def test_a_command_runs_in_a_process_of_its_own(tmp_path: Path) -> None:
    onnx.save(model(1), tmp_path / "model.onnx")
    done = tensorrt_run(tmp_path, "10.16", ["polygraphy", *COMPARED.split()])
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PASSED | Runtime" in done.stdout


def test_the_network_of_a_model_is_shown(answers: Answers) -> None:
    text = answers.of("inspect-model")
    assert "4 Layer(s)" in text
    assert "conv1 [Op: LayerType.CONVOLUTION]" in text
    assert "conv1.padding_nd = (1, 1)" in text
    assert "softmax1 [Op: LayerType.SOFTMAX]" in text


def test_a_model_becomes_an_engine_whose_layers_are_shown(answers: Answers) -> None:
    answers.of("convert")
    assert (answers.folder / "model.plan").stat().st_size > 0
    text = answers.of("inspect-engine")
    assert "{x [dtype=float32, shape=(1, 4, 12, 12)]}" in text
    assert "conv1 + relu1" in text
    assert "softmax1" in text
    answers.of("run-engine")
    assert "y" in (answers.folder / "engine.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["run", "mark-all", "dynamic"])
def test_outputs_equal_those_of_onnx_runtime(answers: Answers, name: str) -> None:
    text = answers.of(name)
    assert "Pass Rate: 100.00%" in text
    assert ("PASSED | Output: 'c1'" in text) == (name == "mark-all")


def test_a_calibrator_is_asked_for_batches_and_not_again_with_its_cache(answers: Answers) -> None:
    if answers.api == "11.1":
        for name in ("int8", "int8-again", "int8-run"):
            assert "IInt8EntropyCalibrator2" in answers.failure(name)
        return
    assert answers.of("int8").count("of the program") == 4
    assert answers.of("int8-again").count("of the program") == 0
    cache = (answers.folder / "model.cache").read_text(encoding="utf-8")
    assert cache.splitlines()[0].endswith("-EntropyCalibration2")
    assert {line.partition(":")[0] for line in cache.splitlines()[1:]} >= {"x", "y"}
    assert "Pass Rate: 100.00%" in answers.of("int8-run")


def test_layers_run_on_the_dla_within_its_pools_and_fall_back(answers: Answers) -> None:
    without_11(answers)
    text = answers.of("dla")
    assert "Default Device Type: DeviceType.DLA, Core: 0" in text
    assert "DLA_MANAGED_SRAM: 0.25 MiB, DLA_LOCAL_DRAM: 1.00 MiB" in text
    assert "Layers Running on DLA" in text
    assert "[DlaLayer] {ForeignNode[" in text
    assert "Pass Rate: 100.00%" in text


def test_a_loadable_is_built_where_the_whole_network_fits_the_dla(answers: Answers) -> None:
    without_11(answers)
    answers.of("standalone")
    assert (answers.folder / "model.loadable").stat().st_size > 0


def test_layers_get_the_precision_that_is_obeyed(answers: Answers) -> None:
    without_11(answers)
    assert "OBEY_PRECISION_CONSTRAINTS" in answers.of("precisions")
    assert "PASSED | Output: 'c2'" in answers.of("precisions")


def test_marked_tensors_reach_the_listener(answers: Answers) -> None:
    if answers.api == "8.6":
        assert "mark_debug" in answers.failure("debug"), "TensorRT has it since 10"
        return
    text = answers.of("debug")
    assert "r1 [dtype=float32, shape=(1, 16, 12, 12)]" in text
    assert "PASSED | Runtime" in text


def test_the_choice_of_kernels_is_saved_and_replayed(answers: Answers) -> None:
    if answers.api == "11.1":
        assert "not available on TensorRT version 11.1" in answers.failure("save-tactics")
        return
    assert "Saving tactic replay file" in answers.of("save-tactics")
    assert "Layer: conv1 + relu1" in answers.of("inspect-tactics")
    assert "PASSED | Runtime" in answers.of("load-tactics")


def test_a_timing_cache_is_saved_and_loaded(answers: Answers) -> None:
    assert "Saving" in answers.of("save-timings")
    assert (answers.folder / "timing.cache").stat().st_size > 0
    assert "Loading" in answers.of("load-timings")
    assert (answers.folder / "again.plan").read_bytes() == (answers.folder / "timed.plan").read_bytes()


def test_unsupported_operators_are_reported(answers: Answers) -> None:
    assert "fully supported" in answers.of("capability-whole")
    if answers.api == "8.6":
        assert "local_function_stack" in answers.failure("capability"), "a member that TensorRT has since 10"
        return
    text = answers.of("capability")
    assert "NoSuchOperator" in text
    assert "unknown1" in text
    assert (answers.folder / "plain" / "results.txt").is_file()


def test_a_model_is_cut_into_supported_and_unsupported_parts(answers: Answers) -> None:
    text = answers.of("capability-partitioned")
    assert "NoSuchOperator" in text
    parts = sorted(path.name for path in (answers.folder / "parts").glob("*.onnx"))
    assert any(name.startswith("supported") for name in parts)
    assert any(name.startswith("unsupported") for name in parts)
    for name in parts:
        nodes = [node.op_type for node in onnx.load(answers.folder / "parts" / name).graph.node]
        assert ("NoSuchOperator" in nodes) == name.startswith("unsupported")


PUBLISHED = {
    "8.6": ["squeezenet1.1-fp32"],
    "10.16": ["mnist-8", "squeezenet1.1-fp32", "super-resolution-10", "mnist_vit_fp32", "yunet_n_320"],
    "11.1": ["mnist_vit_fp32"],
}


@pytest.mark.parametrize("api", [pytest.param("8.6", marks=pytest.mark.nightly), "10.16", "11.1"])
def test_published_models_give_the_outputs_of_onnx_runtime(shared_models: Path, tmp_path: Path, api: str) -> None:
    if api == "11.1" and OLD_POLYGRAPHY:
        pytest.skip("Polygraphy 0.49 reads members that TensorRT 11 removed")
    close = ("--trt", "--onnxrt", "--atol", "1e-3", "--rtol", "1e-3")
    commands = {name: ("run", str(shared_models / f"{name}.onnx"), *close) for name in PUBLISHED[api]}
    answers = ran(tmp_path, api, commands)
    for name in PUBLISHED[api]:
        assert "Pass Rate: 100.00%" in answers.of(name)
