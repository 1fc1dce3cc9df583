"""What INT8 rounds off tensors is stored as further tensors, which the convolutions behind them read too."""

from __future__ import annotations

import attrs
import numpy as np
import onnx
import pytest
from tests.core.answers.tuned import HERE, begun, judge_of
from tests.core.onnx.models import model, numbers

import dryfit
from dryfit.answers.tuning import tuning
from dryfit.answers.tuning.judge import Candidate, multiply_accumulates
from dryfit.answers.tuning.mixed_precision import readers_of
from dryfit.answers.tuning.remainders import (
    STEPS_PER_RANGE,
    RemainderSite,
    remainder_sites,
    remainders_by_worth,
    store_remainders,
)
from dryfit.answers.tuning.tuning import candidate_with_remainders
from dryfit.answers.tuning.weights import biases_corrected_in_sequence, corrected_biases, rounded_by_effect
from dryfit.quantization.int8_weights import rounded_by_output_channel

SAMPLES = np.random.default_rng(3).standard_normal((30, 8, 6, 6)).astype(np.float32)


def coded(*shape):
    """Weights that INT8 stores exactly, so that tensors alone are rounded."""
    return rounded_by_output_channel(numbers(*shape)).astype(np.float32)


def residual():
    """An input and a tensor without activation, a depthwise convolution with padding, and a residual sum."""
    return model(
        "a = Conv(x, k, b) c = Conv(a, m) r = Clip(c, low, high) d = Conv<group=8,pads=[1,1,1,1]>(r, l) s = Relu(d) "
        "e = Conv(s, n, b) t = Add(a, e) y = Conv(t, o)",
        inputs="float[1,8,6,6] x",
        outputs="float[1,4,6,6] y",
        weights={
            "k": coded(8, 8, 1, 1),
            "b": numbers(8),
            "m": coded(8, 8, 1, 1),
            "l": coded(8, 1, 3, 3),
            "n": coded(8, 8, 1, 1),
            "o": coded(4, 8, 1, 1),
            "low": np.zeros((), np.float32),
            "high": np.float32(6.0),
        },
    )


def work_of(small):
    return multiply_accumulates(dryfit.network_from_onnx(small))


def sites_of(small, *half, rounded=None):
    """The sites of a network that is in INT8 but for some layers."""
    convolutions = [node for node in small.graph.node if node.op_type in ("Conv", "ConvTranspose")]
    every = {node.input[0]: set() for node in convolutions}
    for node in small.graph.node:
        for name in every.keys() & set(node.input):
            every[name].add(f"node_of_{node.output[0]}")
    return remainder_sites(small, HERE, work_of(small), every if rounded is None else rounded, named(*half))


def outputs(small, x):
    engine = dryfit.Builder().build_engine(dryfit.network_from_onnx(small), dryfit.BuilderConfig())
    return engine.create_execution_context().run({"x": x})["y"]


def named(*names):
    return {f"node_of_{name}" for name in names}


def test_a_model_with_remainders_computes_the_same_to_the_last_bit():
    small = residual()
    sites = sites_of(small)
    assert set(sites) == {"x", "a", "r", "s", "t"}
    ends = dict.fromkeys(sites, 4.0)
    found = store_remainders(small, HERE, sites, ends)
    onnx.checker.check_model(found.model)
    for scale in (1, 30):
        x = scale * SAMPLES[:1]
        np.testing.assert_array_equal(outputs(found.model, x), outputs(small, x))
    assert found.ranges["a"] == 4.0
    assert found.ranges["a_remainder_out"] == 4.0 / STEPS_PER_RANGE
    added = sum(work_of(found.model).values()) - sum(work_of(small).values())
    assert added == sum(site.added(work_of(small)) for site in sites.values())
    assert not any(work for name, work in work_of(found.model).items() if name in found.half), "sums and activations"


def test_transposed_convolutions_read_and_give_tensors_with_remainders():
    shapes = {"k": (8, 8, 2, 2), "m": (8, 8, 3, 3)}  # output channels first: INT8 has a scale for each
    weights = {name: np.moveaxis(coded(*shape), 0, 1) for name, shape in shapes.items()}
    small = model(
        "a = ConvTranspose<strides=[2,2]>(x, k, b) c = ConvTranspose<pads=[1,1,1,1]>(a, m) y = Conv(c, o)",
        inputs="float[1,8,6,6] x",
        outputs="float[1,4,12,12] y",
        weights={**weights, "b": numbers(8), "o": coded(4, 8, 1, 1)},
    )
    judge = judge_of(small, SAMPLES[:3])
    (sets,) = judge.range_sets([small])
    start = Candidate(small, sets["minmax"])
    sites = sites_of(small, rounded=readers_of(judge.probe(start)))
    assert set(sites) == {"x", "a"}
    found = candidate_with_remainders(start, sites, start.ranges, HERE)
    np.testing.assert_array_equal(outputs(found.model, SAMPLES[:1]), outputs(small, SAMPLES[:1]))
    assert judge.verdict(found).score > judge.verdict(start).score + 10


def test_layers_around_a_remainder_that_have_no_multiply_accumulates_are_in_fp16():
    sites = sites_of(residual())
    assert sites["a"].readers == named("c")
    assert sites["a"].half == named("r", "t"), "the activation behind the reader, and the sum that reads the tensor"
    assert sites["s"].half == named("s"), "what gives the tensor"
    assert sites["r"].half == named("r", "s")


def test_a_tensor_that_another_layer_rounds_has_no_remainder():
    weights = {"k": coded(8, 8, 1, 1), "m": coded(4, 8, 1, 1)}
    text = "a = Conv(x, k) r = Relu(a) y = Conv(r, m) z = MaxPool<kernel_shape=[2,2]>(r)"
    kinds = {"inputs": "float[1,8,6,6] x", "weights": weights}
    small = model(text, outputs="float[1,4,6,6] y, float[1,8,5,5] z", **kinds)
    assert set(sites_of(small)) == {"x"}
    assert set(sites_of(small, "z")) == {"x", "r"}, "it reads what is not rounded"
    assert set(sites_of(small, "y", "z")) == {"x"}, "no reader is left in INT8"
    rounded = {"x": named("a"), "r": named("z")}
    assert set(sites_of(small, rounded=rounded)) == {"x"}, "no convolution rounds it"
    small = model("r = Relu(x) y = Conv(r, m)", outputs="float[1,4,6,6] y, float[1,8,6,6] r", **kinds)
    assert not sites_of(small), "it is an output"


@pytest.mark.parametrize("device", ["GPU", "DLA"])
@pytest.mark.parametrize("every", [("a",), ("r",), ("x", "a", "r", "s", "t")])
def test_a_remainder_takes_the_noise_of_a_tensor_away(every, device):
    small = residual()
    judge = judge_of(small, SAMPLES[:4], device=device)
    (sets,) = judge.range_sets([small])
    # Tensors that are not asked for are not rounded: their readers are in FP16.
    rounded = readers_of(judge.probe(Candidate(small, sets["minmax"])))
    sites = {name: one for name, one in sites_of(small, rounded=rounded).items() if name in every}
    assert sites.keys() == set(every) - ({"t"} if device == "GPU" else set()), "a GPU gives an output in FP32"
    half = frozenset(layer.name for layer in judge.network(small).layers)
    half -= frozenset().union(*(one.readers for one in sites.values()))
    start = Candidate(small, sets["minmax"], half | frozenset().union(*(one.half for one in sites.values())))
    found = candidate_with_remainders(start, sites, start.ranges, HERE)
    before, after = judge.verdict(start).score, judge.verdict(found).score
    assert after > before + 9, "FP16 is what is left"
    assert len(judge.engine(found).plan.segments) == len(judge.engine(start).plan.segments)
    probe = judge.probe(found)
    assert not set(every) & set(probe.tensors), "their rounding changes nothing"
    assert all(layer.inputs.get(name, 0.0) == 0.0 for name in every for layer in probe.layers)


@pytest.mark.parametrize("device", ["GPU", "DLA"])
def test_remainders_bring_accuracy_in_int8(device, tmp_path):
    path, samples = tmp_path / "small.onnx", tmp_path / "samples.npy"
    onnx.save(residual(), path)
    np.save(samples, SAMPLES)
    options = {"device": device, "fallback": "GPU", "threads": 1, "target": 80.0}
    steps = ["remainders", "channel-splitting"]
    answer = dryfit.tune(path, samples, tmp_path / "plan", steps=steps, max_added_macs=2.0, max_macs=0.0, **options)
    step = next(one for one in answer.steps if one.step == "remainders")
    assert step.is_taken, step.what
    assert f"remainders of {5 if device == 'DLA' else 4} tensors stored" in step.what
    assert step.fp32_sqnr_db is None, "FP32 computes the same to the last bit"
    assert answer.gain_db > 10
    assert answer.half_macs == 0
    assert 0 < answer.added_macs <= 2
    assert "remainders are stored" in next(one for one in answer.steps if one.step == "channel-splitting").what
    few = dryfit.tune(path, samples, steps=["remainders"], max_added_macs=0.3, max_macs=0.0, **options)
    assert 0 < few.added_macs <= 0.3
    assert 1 < few.gain_db < answer.gain_db
    assert not dryfit.tune(path, samples, steps=["remainders"], max_added_macs=0.0, **options).steps[-1].is_taken
    reached = dryfit.tune(path, samples, steps=["remainders"], **{**options, "target": 1.0})
    assert reached.steps[-1].what == "the metric is reached without"


@pytest.mark.parametrize("device", ["GPU", "DLA"])
def test_onnx_runtime_finds_the_same_accuracy_in_the_model_with_q_dq_nodes(device, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime", reason="ONNX Runtime is the oracle of this test")
    path, samples = tmp_path / "small.onnx", tmp_path / "samples.npy"
    onnx.save(residual(), path)
    np.save(samples, SAMPLES)
    options = {"device": device, "fallback": "GPU", "threads": 1, "target": 80.0, "max_added_macs": 2.0}
    answer = dryfit.tune(path, samples, tmp_path / "plan", steps=["remainders"], qdq=True, **options)
    as_written = onnxruntime.SessionOptions()
    as_written.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    providers = ["CPUExecutionProvider"]
    session = onnxruntime.InferenceSession(answer.files["Q/DQ model"], as_written, providers=providers)
    (found,), exact = session.run(None, {"x": SAMPLES[:1]}), outputs(residual(), SAMPLES[:1])
    assert 10 * np.log10((exact**2).sum() / ((found - exact) ** 2).sum()) > 60


def test_the_remainder_that_brings_most_for_what_it_adds_comes_first():
    sites = {
        "a": RemainderSite(frozenset({"p"}), frozenset({"sum"}), 10),
        "b": RemainderSite(frozenset({"q"}), frozenset(), 10),
        "c": RemainderSite(frozenset({"r"}), frozenset(), 10),
    }
    asked = {
        "sites": sites,
        "readers": {"a": frozenset({"p"}), "b": frozenset({"q"}), "c": frozenset({"r"}), "s": frozenset({"sum"})},
        "noise": {name: np.array([share]) for name, share in (("a", 1.0), ("b", 2.0), ("c", 1.0), ("s", 0.5))},
        "others": np.zeros(1),
        "macs": {"p": 90, "q": 90, "r": 190},
        "half": (),
    }
    assert remainders_by_worth(**asked, most_added=1000) == ["b", "a", "c"]
    assert remainders_by_worth(**asked, most_added=250) == ["b", "a"]
    assert remainders_by_worth(**asked, most_added=150) == ["b"]
    asked["noise"]["s"] = np.array([1.5])
    assert remainders_by_worth(**asked, most_added=1000) == ["a", "b", "c"], "what the sum reads is not rounded either"


def test_remainders_are_tried_without_layers_in_fp16_and_corrections_too(monkeypatch):
    small = residual()
    tuner = begun(small, SAMPLES[:5], 99.0, 0.3)
    first = tuner._verdict
    better = attrs.evolve(first, by_sample=first.by_sample + 1)
    before = attrs.evolve(tuner.now)
    found = {tuner.now: first, before: better}
    monkeypatch.setattr(
        tuner, "_remainders_from", lambda start: tuning._Mixture(start, "remainders stored", 2, found[start])
    )
    monkeypatch.setattr(tuner, "_ended", lambda mixture: mixture)
    monkeypatch.setattr(tuner, "_mixed_further", lambda mixture: mixture)
    assert tuner._with_remainders().candidate is tuner.now
    tuner._unmixed = before
    proposed = tuner._with_remainders()
    assert proposed.candidate is before
    assert (proposed.what, proposed.tries) == ("remainders stored, before layers were selected", 4)
    tuner._unmixed, tuner._uncorrected = None, before
    assert tuner._with_remainders().what == "remainders stored, without corrections"
    found[before] = first
    assert tuner._with_remainders().candidate is tuner.now


def test_remainders_that_cut_segments_are_left_out(monkeypatch):
    small = residual()
    tuner = begun(small, SAMPLES[:5], 99.0, 0.0, max_added_macs=9.0)
    monkeypatch.setattr(tuner, "_keeps_segments", lambda candidate: not candidate.whole & {"a", "s"})
    assert tuner._remainders_from(tuner.now).candidate.whole <= {"x", "r", "t"}
    monkeypatch.setattr(tuner, "_keeps_segments", lambda _: False)
    assert tuner._remainders_from(tuner.now) is None


def test_ranges_of_tensors_with_remainders_have_room_for_larger_values():
    small = residual()
    tuner = begun(small, SAMPLES[:5], 99.0, 0.0, max_added_macs=9.0)
    found = tuner._remainders_from(tuner.now).candidate
    _, highest = tuner._judge.ends_per_channel(small, ["s"])
    assert found.ranges["s"] >= tuning.REMAINDER_MARGIN * highest["s"].max()
    assert {"s", "s_rounded_out", "s_remainder_out"} <= set(found.fixed), "other ranges would not fit the remainder"


def test_errors_that_remainders_take_back_are_not_corrected():
    small = residual()
    judge = judge_of(small, np.abs(SAMPLES[:6]))
    (sets,) = judge.range_sets([small])
    start = Candidate(small, {**sets["minmax"], "s": 100.0})
    site = {"s": sites_of(small)["s"]}
    found = candidate_with_remainders(start, site, start.ranges, HERE)
    given = {}
    for name, one in (("before", start), ("after", found)):
        network, probe = judge.network(one.model), judge.probe(one)
        alone = corrected_biases(network, probe, judge.collected)
        in_sequence = biases_corrected_in_sequence(network, probe, judge.collected)
        given[name] = alone.biases, in_sequence.biases
    assert all("node_of_e" in one for one in given["before"])
    assert "node_of_e" not in given["after"][0]
    kernels = rounded_by_effect(judge.network(found.model), judge.probe(found), judge.collected).kernels
    assert "s_rounded" not in kernels, "a channel's only weight is its largest one"


def test_inputs_with_remainders_keep_their_ranges():
    small = residual()
    values = np.random.default_rng(2).integers(-100, 101, (6, 8, 6, 6)).astype(np.float32)
    tuner = begun(small, values, 99.0, 0.0)
    now = attrs.evolve(tuner.now, ranges={**tuner.now.ranges, "x": 90.0})
    assert tuner._with_centered_inputs(now).candidate.ranges["x"] == 127.0
    assert tuner._with_centered_inputs(attrs.evolve(now, whole=frozenset("x"))).candidate is None


def test_the_ends_of_inputs_alone_are_those_of_the_samples():
    judge = judge_of(residual(), SAMPLES[:5])
    lowest, highest = judge.ends_per_channel(residual(), ["x"])
    np.testing.assert_array_equal(lowest["x"], SAMPLES[:5].min(axis=(0, 2, 3)).astype(np.float64))
    np.testing.assert_array_equal(highest["x"], SAMPLES[:5].max(axis=(0, 2, 3)).astype(np.float64))
    assert judge.ends_per_channel(residual(), []) == ({}, {})
