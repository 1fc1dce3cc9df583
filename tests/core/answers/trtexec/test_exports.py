"""Files and texts about an inference, read back by the names that their readers use."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from tests.core.engine.hand_built import plan_of
from tests.core.engine.small_networks import convolution_network, relu_network

from dryfit.answers.asked import asked
from dryfit.answers.trtexec import exports
from dryfit.answers.trtexec.exports import (
    layer_information_json,
    layer_information_lines,
    optimization_profile_lines,
    output_lines,
    outputs_json,
    profile_json,
    profile_lines,
    times_json,
    write_export,
    write_raw_bindings,
)
from dryfit.answers.trtexec.inference import (
    EngineRunner,
    InferenceSettings,
    InferenceTimes,
    QueryTimes,
    measure,
)
from dryfit.answers.trtexec.inputs import inference_inputs
from dryfit.builder.config.enumerations import ProfilingVerbosity
from dryfit.building import Builder
from dryfit.engine.engine import Engine
from dryfit.engine.profiler import LayerTimes
from dryfit.engine.tensorrt_layers import engine_information
from dryfit.errors import ConfigError

TIMES = InferenceTimes(
    [QueryTimes(0, 0.0, 1.0, 3.0, 3.5), QueryTimes(1, 4.0, 5.25, 8.0, 8.5), QueryTimes(0, 9.0, 9.125, 9.5, 10.0)], 1
)


def layer_times() -> LayerTimes:
    times = LayerTimes()
    for conv, pool in ((3.0, 1.0), (1.0, 1.0), (2.0, 1.0)):
        times.report_layer_time('conv "1" + relu', conv)
        times.report_layer_time("pool", pool)
        times.report_layer_time("nothing", 0.0)
    return times


def digits_engine(model: Path, verbosity: str) -> Engine:
    subject = asked(model, None, {"shape": {"image": (1, 1, 8, 8)}})
    subject.config.profiling_verbosity = ProfilingVerbosity[verbosity]
    return Builder().build_engine(subject.network, subject.config)


@pytest.fixture(scope="module")
def engine(digits_model) -> Engine:
    return digits_engine(digits_model, "DETAILED")


# Times ----------------------------------------------------------------------------------------------------------------


def test_times_have_the_members_of_trtexec():
    records = json.loads("".join(times_json(TIMES)))
    assert records == [
        {
            "startEnqMs": 5.25,
            "endEnqMs": 8,
            "startH2dMs": 4,
            "endH2dMs": 5.25,
            "startComputeMs": 5.25,
            "endComputeMs": 8,
            "startD2hMs": 8,
            "endD2hMs": 8.5,
            "h2dMs": 1.25,
            "computeMs": 2.75,
            "d2hMs": 0.5,
            "latencyMs": 4.5,
        },
        {
            "startEnqMs": 9.125,
            "endEnqMs": 9.5,
            "startH2dMs": 9,
            "endH2dMs": 9.125,
            "startComputeMs": 9.125,
            "endComputeMs": 9.5,
            "startD2hMs": 9.5,
            "endD2hMs": 10,
            "h2dMs": 0.125,
            "computeMs": 0.375,
            "d2hMs": 0.5,
            "latencyMs": 1,
        },
    ]


def test_no_times_are_an_empty_list():
    assert json.loads("".join(times_json(InferenceTimes([])))) == []


def test_times_of_a_long_inference_keep_their_digits():
    query = QueryTimes(0, 1234567.000001, 1234567.000002, 1234567.5, 1234567.5)
    (record,) = json.loads("".join(times_json(InferenceTimes([query]))))
    assert record["startH2dMs"] == 1234567.000001
    assert record["h2dMs"] == pytest.approx(1e-6, abs=5e-7)


# Profile --------------------------------------------------------------------------------------------------------------


def test_a_profile_has_the_members_of_trtexec():
    count, *layers = json.loads("".join(profile_json(layer_times())))
    assert count == {"count": 3}
    assert [one["name"] for one in layers] == ['conv "1" + relu', "pool", "nothing"]
    assert layers[0] == {
        "name": 'conv "1" + relu',
        "timeMs": 6,
        "averageMs": 2,
        "medianMs": 2,
        "percentage": pytest.approx(66.6667, abs=1e-3),
    }


def test_a_profile_is_filtered_by_size_as_the_engine_explorer_does():
    records = json.loads("".join(profile_json(layer_times())))
    assert [one["name"] for one in records if len(one) in (4, 5)] == ['conv "1" + relu', "pool", "nothing"]


def test_the_profile_table_has_the_columns_of_trtexec():
    assert profile_lines(layer_times()) == [
        "",
        "=== Profile (3 iterations ) ===",
        "The times of the layers are those of this host's CPU, which emulates the devices.",
        "   Time(ms)     Avg.(ms)   Median(ms)   Time(%)   Layer",
        '       6.00       2.0000       2.0000      66.7   conv "1" + relu',
        "       3.00       1.0000       1.0000      33.3   pool",
        "       9.00       3.0000       3.0000     100.0   Total",
        "",
    ]


def test_the_profile_table_of_version_8_begins_with_the_names():
    assert profile_lines(layer_times(), major=8)[3:-1] == [
        "           Layer   Time (ms)   Avg. Time (ms)   Median Time (ms)   Time %",
        ' conv "1" + relu        6.00           2.0000             2.0000     66.7',
        "            pool        3.00           1.0000             1.0000     33.3",
        "           Total        9.00           3.0000             3.0000    100.0",
    ]


def test_a_profile_without_runs_has_no_layers():
    assert json.loads("".join(profile_json(LayerTimes()))) == [{"count": 0}]
    assert profile_lines(LayerTimes())[-2] == "       0.00       0.0000       0.0000       0.0   Total"


# Outputs --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dtype",
    [
        *(np.float16, np.float32, np.float64, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2),
        *(np.int8, np.uint8, np.int16, np.int32, np.int64, np.uint64, np.bool_, ml_dtypes.int4, ml_dtypes.uint4),
    ],
)
def test_outputs_are_read_back_exactly(dtype):
    values = np.random.default_rng(0).standard_normal((3, 5)) * 3
    array = (np.abs(values) if np.dtype(dtype).name.startswith("u") else values).astype(dtype)
    (record,) = json.loads("".join(outputs_json({"y": array})))
    assert (record["name"], record["dimensions"]) == ("y", "3x5")
    assert np.array_equal(np.array(record["values"]).astype(dtype).reshape(3, 5), array)


def test_extreme_values_are_read_back_exactly():
    array = np.array([0.0, -0.0, 1e-45, 3.4e38, 16777216.0, 0.1, np.float32(1) / 3], np.float32)
    (record,) = json.loads("".join(outputs_json({"y": array})))
    read = np.array(record["values"], np.float32)
    assert read.tobytes() == array.tobytes()


def test_values_that_are_not_finite_are_read_by_python():
    (record,) = json.loads("".join(outputs_json({"y": np.array([np.nan, np.inf, -np.inf], np.float16)})))
    assert np.isnan(record["values"][0])
    assert record["values"][1:] == [float("inf"), float("-inf")]
    assert "".join(output_lines({"y": np.array([np.nan, np.inf], np.float16)})) == "Output Tensors:\ny: (2)\nnan inf\n"


def test_names_scalars_and_empty_outputs_are_kept():
    outputs = {'a "b"\\c': np.float32(2.5).reshape(()), "none": np.zeros((0, 4), np.int32)}
    assert json.loads("".join(outputs_json(outputs))) == [
        {"name": 'a "b"\\c', "dimensions": "", "values": [2.5]},
        {"name": "none", "dimensions": "0x4", "values": []},
    ]
    assert json.loads("".join(outputs_json({}))) == []


def test_the_text_of_outputs_is_that_of_trtexec():
    outputs = {"y": np.float32([[1, 2.5]]), "mask": np.array([True, False])}
    assert "".join(output_lines(outputs)) == "Output Tensors:\ny: (1x2)\n1 2.5\nmask: (2)\n1 0\n"


def test_outputs_that_are_views_are_written_in_the_order_of_their_elements():
    array = np.arange(6).reshape(2, 3).T
    assert json.loads("".join(outputs_json({"y": array})))[0]["values"] == [0, 3, 1, 4, 2, 5]


def test_a_large_output_is_written_in_pieces():
    array = np.arange(3 * exports.CHUNK + 1, dtype=np.float32)
    pieces = list(outputs_json({"y": array}))
    assert max(map(len, pieces)) < 16 * exports.CHUNK
    (record,) = json.loads("".join(pieces))
    assert np.array_equal(record["values"], array)


def test_an_export_is_written_whole_or_not_at_all(tmp_path):
    write_export(tmp_path / "out.json", outputs_json({"Größe": np.zeros(1)}), "--exportOutput")
    assert json.loads((tmp_path / "out.json").read_text("utf-8"))[0]["name"] == "Größe"
    with pytest.raises(ConfigError, match=r"--exportOutput=.*No such file or directory") as raised:
        write_export(tmp_path / "missing" / "out.json", ["[]"], "--exportOutput")
    assert raised.value.remedy


# Raw bindings ---------------------------------------------------------------------------------------------------------


def test_raw_bindings_are_named_as_by_trtexec(tmp_path):
    engine = Engine(plan_of(relu_network()))
    x = np.float32([[-1, 2, 3], [4, -5, 6]])
    lines = write_raw_bindings(engine, {"x": x}, {"y": np.maximum(x, 0)}, tmp_path)
    assert lines == [
        "Dumping I/O Bindings to RAW Files:",
        "Writing file for input binding x (with datatype fp32 and dimensions 2.3) to x.input.2.3.fp32.raw",
        "Writing file for output binding y (with datatype fp32 and dimensions 2.3) to y.output.2.3.fp32.raw",
    ]
    assert sorted(one.name for one in tmp_path.iterdir()) == ["x.input.2.3.fp32.raw", "y.output.2.3.fp32.raw"]
    assert (tmp_path / "x.input.2.3.fp32.raw").read_bytes() == x.tobytes()
    read = np.fromfile(tmp_path / "y.output.2.3.fp32.raw", np.float32).reshape(2, 3)
    assert np.array_equal(read, np.maximum(x, 0))


def test_raw_bindings_that_cannot_be_written_are_refused(tmp_path):
    engine = Engine(plan_of(relu_network()))
    with pytest.raises(ConfigError, match="--dumpRawBindingsToFile"):
        write_raw_bindings(engine, {"x": np.zeros((2, 3), np.float32)}, {}, tmp_path / "missing")


# Layers ---------------------------------------------------------------------------------------------------------------


def test_layer_information_has_the_layers_and_bindings(engine):
    found = json.loads(layer_information_json(engine))
    assert list(found) == ["Layers", "Bindings"]
    assert found["Bindings"] == ["image", "probabilities"]
    assert all({"Name", "LayerType", "Inputs", "Outputs", "TacticName"} <= set(layer) for layer in found["Layers"])
    assert all("Format/Datatype" in tensor for layer in found["Layers"] for tensor in layer["Inputs"])


def test_layer_information_of_version_11_has_the_io_tensors(engine):
    found = engine_information(engine, major=11)
    assert list(found) == ["Layers", "I/O Tensors"]
    assert found["I/O Tensors"][0] == {
        "Name": "image",
        "IOMode": "Input",
        "DataType": "FLOAT",
        "Dimensions": [1, 1, 8, 8],
        "Location": "Device",
        "IsShapeInferenceIO": False,
        "ProfileInfo": [
            {
                "MinShape": [1, 1, 8, 8],
                "OptShape": [1, 1, 8, 8],
                "MaxShape": [1, 1, 8, 8],
                "Format": engine.get_tensor_format_desc("image"),
            }
        ],
    }
    tensors = [tensor for layer in found["Layers"] for tensor in (*layer["Inputs"], *layer["Outputs"])]
    assert tensors
    assert all({"Format", "Datatype"} <= set(one) and "Format/Datatype" not in one for one in tensors)
    assert {one["Datatype"] for one in tensors} <= {"FP32", "FP16", "Int8", "INT8"}


@pytest.mark.parametrize(("verbosity", "is_named"), [("LAYER_NAMES_ONLY", True), ("NONE", False)])
def test_layers_are_names_unless_the_build_was_detailed(digits_model, verbosity, is_named):
    engine = digits_engine(digits_model, verbosity)
    layers = engine_information(engine)["Layers"]
    assert len(layers) == engine.num_layers
    assert all(isinstance(one, str) and bool(one) == is_named for one in layers)
    assert layer_information_lines(engine)[2 : 2 + len(layers)] == layers


def test_the_text_of_layers_ends_with_the_bindings(engine):
    lines = layer_information_lines(engine)
    assert lines[:2] == ["Layer Information:", "Layers:"]
    assert lines[-4:] == ["", "Bindings:", "image", "probabilities"]
    assert len(lines) == 2 + engine.num_layers + 4


def test_layer_information_has_the_shapes_of_a_context():
    engine = Engine(plan_of(convolution_network()))
    context = engine.create_execution_context(1)
    context.set_input_shape("x", (5, 3, 8, 8))
    tensors = engine_information(engine, context, major=11)["I/O Tensors"]
    assert [one["Dimensions"] for one in tensors] == [[5, 3, 8, 8], [5, 4, 8, 8]]


def test_optimization_profiles_have_a_line_per_input():
    assert optimization_profile_lines(Engine(plan_of(relu_network()))) == [
        "Optimization Profile Information:",
        "Model input x (profile 0): min=2x3, opt=2x3, max=2x3",
    ]


# DLA ------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def dla_engine(digits_model) -> Engine:
    said = {"device": "DLA", "fallback": "GPU", "precision": "fp16", "input_io_formats": "fp16:chw16"}
    subject = asked(digits_model, None, {"shape": {"image": (1, 1, 8, 8)}, **said})
    subject.config.profiling_verbosity = ProfilingVerbosity.DETAILED
    return Builder().build_engine(subject.network, subject.config)


def test_a_dla_loadable_is_one_layer_under_the_same_name_in_layers_and_profile(dla_engine):
    settings = InferenceSettings(iterations=2, warm_up_ms=0, duration_s=0, profile=True)
    inputs = inference_inputs(dla_engine, {}, {}).arrays
    times = measure(EngineRunner(dla_engine, num_threads=1), inputs, settings)
    layers = engine_information(dla_engine)["Layers"]
    names = [one["name"] for one in json.loads("".join(profile_json(times.layers)))[1:]]
    assert names == [one["Name"] for one in layers]
    assert {"{ForeignNode[conv1...norm2]}", "{ForeignNode[classifier]}"} <= set(names)
    assert [one["LayerType"] for one in layers if one["Name"].startswith("{")] == ["DLA"] * 3
    assert all(len(reported) == 2 for reported in times.layers.milliseconds.values())
    assert "DLA(Name: {ForeignNode[conv1...norm2]}" in "\n".join(layer_information_lines(dla_engine))


def test_raw_bindings_have_the_format_of_the_device_and_are_loaded_again(dla_engine, tmp_path):
    """What `--dumpRawBindingsToFile` wrote is what `--loadInputs` reads."""
    inputs = inference_inputs(dla_engine, {}, {}).arrays
    write_raw_bindings(dla_engine, inputs, {}, tmp_path)
    path = tmp_path / "image.input.1.1.8.8.fp16.raw"
    assert path.stat().st_size == dla_engine.tensor_bytes("image", (1, 1, 8, 8)) == 16 * 8 * 8 * 2
    loaded = inference_inputs(dla_engine, {"image": path}, {}).arrays
    assert np.array_equal(loaded["image"], inputs["image"])


# Readers --------------------------------------------------------------------------------------------------------------


def test_the_exports_of_an_engine_are_read_as_tables(engine, tmp_path):
    """pandas reads the files into the columns that the engine explorer uses."""
    pytest.importorskip("pandas")
    settings = InferenceSettings(iterations=4, warm_up_ms=0, duration_s=0, profile=True, separate_profile_run=True)
    times = measure(EngineRunner(engine, num_threads=1), {"image": np.zeros((1, 1, 8, 8), np.float32)}, settings)
    write_export(tmp_path / "times.json", times_json(times), "--exportTimes")
    write_export(tmp_path / "profile.json", profile_json(times.layers), "--exportProfile")
    write_export(tmp_path / "layers.json", [layer_information_json(engine)], "--exportLayerInfo")
    script = """
import json, sys, pandas
folder = sys.argv[1]
times = pandas.read_json(f"{folder}/times.json")
assert len(times) == 4 and (times["latencyMs"] > 0).all()
assert (times["latencyMs"] - times[["h2dMs", "computeMs", "d2hMs"]].sum(axis=1)).abs().max() < 1e-5
profile = pandas.DataFrame(json.load(open(f"{folder}/profile.json"))[1:])
layers = pandas.DataFrame(json.load(open(f"{folder}/layers.json"))["Layers"])
joined = layers.merge(profile, left_on="Name", right_on="name")
assert len(joined) == len(profile) and abs(profile["percentage"].sum() - 100) < 1e-6
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
