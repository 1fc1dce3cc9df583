"""NVIDIA's engine explorer reads the inspector's JSON and a profile, and makes its tables."""

from __future__ import annotations

import importlib
import json
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

import dryfit
from dryfit_tensorrt import memory


@pytest.fixture
def explorer(shared: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    pandas = pytest.importorskip("pandas")
    if int(pandas.__version__.partition(".")[0]) >= 3:
        pytest.skip("the engine explorer needs pandas 2")
    monkeypatch.syspath_prepend(str(shared / "clients" / "trex"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # the folder is only read
    return importlib.import_module("trex.engine_plan"), importlib.import_module("trex.lint")


def written(trt: Any, model: Path, folder: Path, *, on_dla: bool) -> int:
    """Write graph.json and profile.json of a model; returns the number of engine layers."""
    logger = trt.Logger(trt.Logger.ERROR)
    builder = trt.Builder(logger)
    network = builder.create_network(0)
    assert trt.OnnxParser(network, logger).parse_from_file(str(model))
    config = builder.create_builder_config()
    config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
    if on_dla:
        config.default_device_type = trt.DeviceType.DLA
        config.set_flag(trt.BuilderFlag.GPU_FALLBACK)
        config.set_flag(trt.BuilderFlag.FP16)
    engine = trt.Runtime(logger).deserialize_cuda_engine(builder.build_serialized_network(network, config))
    inspector = engine.create_engine_inspector()
    (folder / "graph.json").write_text(inspector.get_engine_information(trt.LayerInformationFormat.JSON))
    times = dryfit.LayerTimes()

    class Profile(trt.IProfiler):
        def __init__(self) -> None:
            trt.IProfiler.__init__(self)

        def report_layer_time(self, layer_name: str, ms: float) -> None:
            times.report_layer_time(layer_name, ms)

    context = engine.create_execution_context()
    context.profiler = Profile()
    for index in range(engine.num_io_tensors):
        name = engine.get_tensor_name(index)
        context.set_tensor_address(name, memory.allocate(4 * trt.volume(engine.get_tensor_shape(name))))
    for _ in range(2):
        assert context.execute_async_v3(0)
    (folder / "profile.json").write_text(json.dumps(times.trtexec_profile()))
    return engine.num_layers


@pytest.mark.shared
@pytest.mark.parametrize("on_dla", [False, True])
def test_the_explorer_makes_its_tables(explorer: Any, shared_models: Path, tmp_path: Path, on_dla: bool) -> None:
    engine_plan, lint = explorer
    trt = importlib.import_module("dryfit_tensorrt.trt10")
    count = written(trt, shared_models / "mobilenetv2-fp32.onnx", tmp_path, on_dla=on_dla)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # it warns of a profile that does not fit the graph
        plan = engine_plan.EnginePlan(str(tmp_path / "graph.json"), str(tmp_path / "profile.json"))
    assert len(plan.df) == count
    assert plan.total_runtime > 0
    assert "Unknown format" not in plan.df.to_string()
    assert [str(one).split(":")[0] for one in (*plan.get_bindings()[0], *plan.get_bindings()[1])] == ["input", "output"]
    assert len(lint.ReformatLinter(plan).lint()) >= 0
    if on_dla:
        assert any(name.startswith("{ForeignNode[") for name in plan.df["Name"])
    else:
        assert len(plan.get_layers_by_type("Convolution")) > 50
        assert plan.total_weights_size > 2**20
        assert len(lint.ConvLinter(plan).lint()) >= 1


@pytest.mark.shared
@pytest.mark.parametrize("on_dla", [False, True])
def test_the_explorer_draws_the_graph(explorer: Any, shared_models: Path, tmp_path: Path, on_dla: bool) -> None:
    pytest.importorskip("graphviz", reason="the engine explorer draws with the package graphviz")
    graphing = importlib.import_module("trex.graphing")
    plan = plan_of(explorer, shared_models / "mobilenetv2-fp32.onnx", tmp_path, on_dla=on_dla)
    layers = {one.name for one in plan.layers}
    drawn = graphing.PlanGraph(plan)
    assert {one.layer.name for one in drawn.layer_nodes} == layers
    # One chain of tensors joins the layers of this network: from the input to the output each is an edge's end.
    ends = {name for edge in drawn.edges_list for name in (edge.src.layer_name, edge.dst.layer_name)}
    assert layers <= ends
    for formatter in (graphing.layer_type_formatter, graphing.layer_precision_formatter):
        source = graphing.to_dot(plan, formatter).source
        assert source.count("ms</TD>") == len(layers)  # each has its latency
        assert source.count("->") >= len(layers) - 1
        assert "1x1001" in source or "[1, 1001]" in source
    if shutil.which("dot") is None:
        pytest.skip("dot of Graphviz is not installed")
    (tmp_path / "graph.dot").write_text(source, encoding="utf-8")
    command = ["dot", "-Tsvg", "graph.dot", "-o", "graph.svg"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    svg = (tmp_path / "graph.svg").read_text(encoding="utf-8")
    assert svg.count('class="node"') >= len(layers)
    assert ("ForeignNode" if on_dla else "Convolution") in svg


@pytest.mark.shared
def test_the_explorer_groups_and_cleans_its_tables(explorer: Any, shared_models: Path, tmp_path: Path) -> None:
    plan = plan_of(explorer, shared_models / "mobilenetv2-fp32.onnx", tmp_path, on_dla=False)
    misc, preprocessing = importlib.import_module("trex.misc"), importlib.import_module("trex.df_preprocessing")
    counts = misc.group_count(plan.df, "type")
    assert counts["count"].sum() == len(plan.df)
    times = misc.group_sum_attr(plan.df, grouping_attr="type", reduced_attr="latency.avg_time")
    assert times["latency.avg_time"].sum() == pytest.approx(plan.total_runtime)
    assert times.set_index("type")["latency.avg_time"]["Convolution"] > 0
    assert plan.df["latency.pct_time"].sum() == pytest.approx(100)
    shown = preprocessing.clean_for_display(plan.df)
    assert len(shown) == len(plan.df)
    convolutions = preprocessing.filter_by_layer(plan.df, "Convolution")
    # It counts them from the shapes of inputs, outputs and kernels.
    own = plan.df[plan.df["type"] == "Convolution"]["MultiplyAccumulates"]
    assert convolutions["attr.macs"].tolist() == own.tolist()
    summary = importlib.import_module("trex.engine_plan").summary_dict(plan)
    assert summary["Layers"] == str(len(plan.df))


@pytest.mark.shared
def test_the_explorer_plots_its_report_cards(
    explorer: Any, shared_models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in ("plotly", "IPython", "ipywidgets", "dtale", "xlsxwriter"):
        pytest.importorskip(package, reason=f"the engine explorer's report cards need {package}")
    figures: list[Any] = []
    objects = importlib.import_module("plotly.graph_objects")
    monkeypatch.setattr(objects.Figure, "show", lambda figure, *_, **__: figures.append(figure))
    cards = importlib.import_module("trex.report_card")
    model = shared_models / "mobilenetv2-fp32.onnx"
    for folder, on_dla in ((tmp_path / "gpu", False), (tmp_path / "dla", True)):
        folder.mkdir()
        plan = plan_of(explorer, model, folder, on_dla=on_dla)
        overview = cards.report_card_perf_overview(plan)
        for title, plot in overview.items():
            plot(title)
        assert len(figures) >= len(overview) > 5
        latencies = figures[0].data
        assert sum(sum(bar.y) for bar in latencies) == pytest.approx(100)  # in percent, of all layers
        figures.clear()
        if on_dla:
            cards.report_card_reformat_overview(plan)
        cards.layer_latency_sunburst(plan.df, "layers", do_show=True)
        assert figures
        figures.clear()


def plan_of(explorer: Any, model: Path, folder: Path, *, on_dla: bool) -> Any:
    """The explorer's plan of a model's engine and profile."""
    written(importlib.import_module("dryfit_tensorrt.trt10"), model, folder, on_dla=on_dla)
    return explorer[0].EnginePlan(str(folder / "graph.json"), str(folder / "profile.json"))


def test_a_profile_has_trtexecs_records() -> None:
    times = dryfit.LayerTimes()
    for ms in (1.0, 3.0, 2.0):
        times.report_layer_time("conv1", ms)
        times.report_layer_time("relu1", 2 * ms)
    count, first, second = times.trtexec_profile()
    assert count == {"count": 3}
    assert first == {
        "name": "conv1",
        "timeMs": 6.0,
        "averageMs": 2.0,
        "medianMs": 2.0,
        "percentage": pytest.approx(100 / 3),
    }
    assert second["percentage"] == pytest.approx(200 / 3)
    assert dryfit.LayerTimes().trtexec_profile() == [{"count": 0}]
