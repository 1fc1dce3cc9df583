"""`dryfit.tune`: steps that give a network its accuracy back in INT8, and the files of the plan."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace

import attrs
import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.answers.tuned import HERE, begun, judge_of
from tests.core.onnx.models import model, numbers

import dryfit
from dryfit.answers.sample_gains import (
    LARGEST_DB,
    Probability,
    Verdict,
    by_sample_db,
    divided,
    gain,
    jackknife_error,
    probability_outputs,
    student_quantile,
    whole_db,
)
from dryfit.answers.sensitivity.measurement import MeasuredLayer
from dryfit.answers.tuning import tuning
from dryfit.answers.tuning.centering import center, centered_tensors
from dryfit.answers.tuning.equalization import channel_tensors, equalize
from dryfit.answers.tuning.intervals import intervals
from dryfit.answers.tuning.judge import MOVES, Candidate, DeviceRuns, Judge, moved_samples, multiply_accumulates
from dryfit.answers.tuning.mixed_precision import Noise, choices, readers_of, sums_past_int8
from dryfit.answers.tuning.normalization import (
    _clipped_mean,
    analytic_biases,
    fold_batch_normalizations,
    scaled,
    shifted,
)
from dryfit.answers.tuning.scale_centering import center_by_scales, scalable_tensors
from dryfit.answers.tuning.splitting import BLOCK, Site, divisible_tensors, next_division, split
from dryfit.answers.tuning.tuning import divided_candidate
from dryfit.answers.tuning.weights import (
    Corrections,
    _descended,
    biases_corrected_in_sequence,
    corrected_biases,
    parameters_of,
    rounded_by_effect,
    with_corrections,
)
from dryfit.calibration.jobs import SampleCount
from dryfit.cli.main import dryfit as dryfit_command
from dryfit.errors import CalibrationError, ConfigError, UnknownNameError
from dryfit.plugins.metrics import metric as metric_of
from dryfit.quantization.cache_forms import read_ranges
from dryfit.quantization.int8_weights import int8_weights, rounded_by_output_channel
from dryfit.quantization.metric import worst_sqnr_db
from dryfit.quantization.rounding import RoundingMode

SPREAD = np.array([1, 1, 1, 1, 0.02, 0.01, 0.01, 0.003], np.float32).reshape(8, 1, 1, 1)


def session_of(model):
    onnxruntime = pytest.importorskip("onnxruntime", reason="ONNX Runtime is the oracle of this test")
    return onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])


def four(activation, extent=6):
    """Convolutions whose channels have unequal ranges: 1x1, depthwise, 1x1, 1x1."""
    start = f"a = Conv(x, k, b) r = {activation} d = Conv<group=8>(r, l)"
    return model(
        f"{start} s = Relu(d) e = Conv(s, m) t = Relu(e) y = Conv(t, n)",
        inputs=f"float[1,8,{extent},{extent}] x",
        outputs=f"float[1,8,{extent},{extent}] y",
        weights={
            "k": numbers(8, 8, 1, 1) * SPREAD,
            "b": numbers(8) * SPREAD.reshape(8),
            "l": numbers(8, 1, 1, 1),
            "m": numbers(8, 8, 1, 1) / SPREAD.reshape(1, 8, 1, 1),
            "n": numbers(8, 8, 1, 1),
            **({"low": np.zeros((), np.float32), "high": np.float32(6.0)} if "low" in activation else {}),
        },
    )


@pytest.fixture
def samples(tmp_path):
    path = tmp_path / "samples.npy"
    np.save(path, np.random.default_rng(5).standard_normal((20, 8, 6, 6)).astype(np.float32))
    return path


def run_both(small, x):
    """What ONNX Runtime and dryfit give."""
    session = session_of(small.SerializeToString())
    engine = dryfit.Builder().build_engine(dryfit.network_from_onnx(small), dryfit.BuilderConfig())
    return session.run(None, {"x": x})[0], engine.create_execution_context().run({"x": x})["y"]


def largest_of(small, x):
    every = onnx.ModelProto()
    every.CopyFrom(small)
    for name in channel_tensors(small, HERE):
        if name not in ("x", "y"):
            every.graph.output.append(onnx.helper.make_tensor_value_info(name, 1, None))
    session = session_of(every.SerializeToString())
    names = [one.name for one in session.get_outputs()]
    arrays = dict(zip(names, session.run(None, {"x": x}), strict=True)) | {"x": x}
    return {name: np.abs(arrays[name]).max(axis=(0, 2, 3)) for name in channel_tensors(small, HERE)}


def test_models_that_compute_with_shapes_are_tuned(tmp_path, samples):
    small = model(
        "s = Shape(x) f = Cast<to=1>(s) k = ReduceMax<keepdims=0>(f) a = Conv(x, v) b = Div(a, k) r = Relu(b) "
        "y = Conv(r, w)",
        inputs="float[N,8,H,W] x",
        outputs="float[N,8,H,W] y, float k",
        weights={"v": numbers(8, 8, 1, 1) * SPREAD, "w": numbers(8, 8, 1, 1)},
    )
    (tmp_path / "open.onnx").write_bytes(small.SerializeToString())
    answer = dryfit.tune(tmp_path / "open.onnx", samples, tmp_path / "plan", steps=["scales"], threads=1, device="GPU")
    assert "scales" in [one.step for one in answer.steps]
    ranges = read_ranges(tmp_path / "plan" / "model.cache")
    assert {"x", "r"} <= set(ranges)
    assert "f" not in ranges


def test_an_equalized_model_computes_the_same_and_has_equal_channels():
    small, x = four("Relu(a)"), numbers(1, 8, 6, 6)
    found = equalize(small, HERE, largest_of(small, x), 0.5)
    assert (found.proved, "r" in found.factors) == (0, True)
    for before, after in zip(run_both(small, x * 9), run_both(found.model, x * 9), strict=True):
        np.testing.assert_allclose(after, before, atol=1e-5 * np.abs(before).max())
    ends = largest_of(found.model, x)["r"]
    assert ends.max() / ends[ends > 0].min() == pytest.approx(1, rel=1e-4), "only a depthwise layer reads it"
    assert (ends.max() / largest_of(small, x)["r"].max()) == pytest.approx(1, rel=1e-4), "the range stays"


def test_a_channel_before_a_relu6_is_scaled_only_if_it_cannot_reach_the_bound():
    small, x = four("Clip(a, low, high)"), numbers(1, 8, 6, 6)
    seen = largest_of(small, x)
    assert "r" not in equalize(small, HERE, seen, 0.5).factors, "nothing is known of the input"
    found = equalize(small, HERE, seen, 0.5, {"x": 2.0})
    most = intervals(small, HERE, {"x": 2.0})["a"][1]
    moved = found.factors["r"] > 1
    assert found.proved > 0
    assert (most[moved] < 6).all()
    for wide in (x, np.full_like(x, 2), np.sign(x) * 2):
        for before, after in zip(run_both(small, wide), run_both(found.model, wide), strict=True):
            np.testing.assert_allclose(after, before, atol=1e-5 * np.abs(before).max())


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=10, deadline=None)
def test_no_value_lies_outside_its_interval(seed):
    rng = np.random.default_rng(seed)
    small = model(
        "a = Conv<pads=[1,1,1,1]>(x, k, b) r = Clip(a, low, high) p = MaxPool<kernel_shape=[2,2]>(r) "
        "c = Conv<group=2>(p, l) d = Add(c, p) y = Concat<axis=1>(d, c)",
        inputs="float[1,3,5,5] x",
        outputs="float[1,4,4,4] y, float[1,2,5,5] a, float[1,2,5,5] r, float[1,2,4,4] d",
        weights={
            "k": rng.standard_normal((2, 3, 3, 3)).astype(np.float32),
            "b": rng.standard_normal(2).astype(np.float32),
            "low": np.float32(-0.5),
            "high": np.float32(3.0),
            "l": rng.standard_normal((2, 1, 1, 1)).astype(np.float32),
        },
    )
    known = intervals(small, HERE, {"x": 1.5})
    session = session_of(small.SerializeToString())
    names = [one.name for one in session.get_outputs()]
    for x in (rng.uniform(-1.5, 1.5, (1, 3, 5, 5)), rng.choice([-1.5, 1.5], (1, 3, 5, 5))):
        for name, values in zip(names, session.run(None, {"x": x.astype(np.float32)}), strict=True):
            low, high = (end.reshape(1, -1, 1, 1) for end in known[name])
            assert ((values >= low) & (values <= high)).all(), name
    assert (known["r"][0] >= -0.5).all()
    assert (known["r"][1] <= 3.0).all()


def centerable(activation="Relu(a)", **extra):
    """1x1 convolutions with all that keeps a shift, and a padded convolution that does not."""
    text = (
        f"a = Conv(x, k, b) r = {activation} p = MaxPool<kernel_shape=[2,2],strides=[2,2]>(r) c = Conv(p, m) "
        "d = Conv(p, n) e = Conv(d, m) s = Add(c, e) f = Conv(s, n) t = Concat<axis=1>(f, c) g = Conv(t, w) "
        "q = Conv<pads=[1,1,1,1]>(g, v) h = GlobalAveragePool(q) y = Conv(h, n)"
    )
    rng = np.random.default_rng(11)
    shapes = {"k": (4, 3, 1, 1), "b": (4,), "m": (4, 4, 1, 1), "n": (4, 4, 1, 1), "w": (4, 8, 1, 1), "v": (4, 4, 3, 3)}
    weights = {name: (rng.standard_normal(shape) + 0.3).astype(np.float32) for name, shape in shapes.items()}
    return model(text, inputs="float[1,3,6,6] x", outputs="float[1,4,1,1] y", weights={**weights, **extra})


def ends_of(small, x):
    names = centered_tensors(small, HERE)
    every = onnx.ModelProto()
    every.CopyFrom(small)
    every.graph.output.extend(onnx.helper.make_tensor_value_info(name, 1, None) for name in names)
    session = session_of(every.SerializeToString())
    arrays = dict(zip([one.name for one in session.get_outputs()], session.run(None, {"x": x}), strict=True))
    low, high = ({name: end(arrays[name], axis=(0, 2, 3)) for name in names} for end in (np.min, np.max))
    return low, high


@pytest.mark.parametrize("activation", ["Relu(a)", "Clip(a, low, high)"])
def test_a_centered_model_computes_the_same_for_all_inputs(activation):
    bounds = {"low": np.zeros((), np.float32), "high": np.float32(2.0)} if "Clip" in activation else {}
    small, x = centerable(activation, **bounds), numbers(1, 3, 6, 6)
    found = center(small, HERE, *ends_of(small, x))
    assert {"a", "r", "p", "c", "d", "e", "s", "f", "t", "q", "h"} == set(found.shifts), "all that no padding reads"
    for before, after in zip(run_both(small, x * 5), run_both(found.model, x * 5), strict=True):
        np.testing.assert_allclose(after, before, atol=1e-5 * np.abs(before).max())
    low, high = ends_of(found.model, x)
    np.testing.assert_allclose(low["s"], -high["s"], atol=1e-4)
    assert found.ranges["r"] == found.ranges["p"]
    assert low["r"].min() == pytest.approx(-found.ranges["r"]), "what the ReLU cuts off is a code"
    assert high["r"].max() == pytest.approx(found.ranges["r"], rel=1e-5)


def test_weights_that_absorb_a_shift_can_be_codes_of_int8():
    small, x = centerable(), numbers(1, 3, 6, 6)
    found = center(small, HERE, *ends_of(small, x), rounds=True)
    for before, after in zip(run_both(found.origin, x * 5), run_both(found.model, x * 5), strict=True):
        np.testing.assert_allclose(after, before, atol=1e-5 * np.abs(before).max())
    arrays = {one.name: onnx.numpy_helper.to_array(one) for one in found.model.graph.initializer}
    absorbing = [node for node in found.model.graph.node if node.op_type == "Conv" and node.input[0] in found.shifts]
    assert len(absorbing) == 6
    for node in absorbing:
        weights = arrays[node.input[1]].astype(np.float64)
        codes = weights / (np.abs(weights).max(axis=(1, 2, 3), keepdims=True) / 127)
        np.testing.assert_allclose(codes, np.rint(codes), atol=1e-4)
    assert any(len(node.input) > 1 and node.input[1] == "k" for node in found.model.graph.node), "others keep theirs"


def test_a_tensor_that_a_padded_convolution_reads_is_shifted_only_with_a_sum_for_the_border():
    small, x = centerable(), numbers(1, 3, 6, 6)
    ends = ends_of(small, x)
    assert "g" not in center(small, HERE, *ends).shifts
    found = center(small, HERE, *ends, borders=True)
    assert "g" in found.shifts
    assert found.half == {"node_of_q_border"}
    for before, after in zip(run_both(small, x * 5), run_both(found.model, x * 5), strict=True):
        np.testing.assert_allclose(after, before, atol=1e-5 * np.abs(before).max())


@pytest.mark.parametrize(
    "padding", ["pads=[1,1,1,1],strides=[2,2]", "pads=[0,2,1,0],dilations=[2,1]", "pads=[2,0,0,1],group=2"]
)
def test_the_sum_for_a_border_is_exact_for_any_padding(padding):
    text = f"a = Conv(x, k, b) d = Conv<{padding}>(a, l, c) r = Relu(d) y = Conv(r, n)"
    weights = {
        "k": numbers(8, 3, 1, 1),
        "b": numbers(8) + 3,
        "l": numbers(8, 4 if "group" in padding else 8, 3, 3),
        "c": numbers(8),
        "n": numbers(4, 8, 1, 1),
    }
    small, x = model(text, inputs="float[1,3,7,6] x", outputs="float[1,4,p,q] y", weights=weights), numbers(1, 3, 7, 6)
    found = center(small, HERE, *ends_of(small, x), borders=True)
    assert {"a", "r"} <= set(found.shifts)
    assert found.half == {"node_of_d_border", "node_of_r"}, "the activation has to read what is not rounded"
    for before, after in zip(run_both(small, x * 3), run_both(found.model, x * 3), strict=True):
        np.testing.assert_allclose(after, before, atol=1e-5 * np.abs(before).max())


@pytest.mark.parametrize("rounds", [False, True])
def test_scale_layers_center_what_convolutions_without_padding_read(rounds):
    small, x = centerable(), numbers(1, 3, 6, 6)
    names = scalable_tensors(small, HERE)
    assert names == ["p", "s", "t", "h"], "what a convolution gives is shifted by its bias"
    judge = judge_of(small, np.repeat(x, 6, axis=0))
    lowest, highest = judge.ends_per_channel(small, names)
    found = center_by_scales(small, HERE, lowest, highest, rounds=rounds)
    assert "p_shift" in found.layers
    assert found.ranges["p_centered"] == pytest.approx(highest["p"].max() / 2 - lowest["p"].min() / 2)
    for before, after in zip(run_both(found.origin, x * 5), run_both(found.model, x * 5), strict=True):
        np.testing.assert_allclose(after, before, atol=1e-5 * np.abs(before).max())
    assert (found.origin.SerializeToString() == small.SerializeToString()) != rounds


@pytest.mark.parametrize("activation", ["", "Relu(%s)"])
@pytest.mark.parametrize("count", [2, 3])
def test_tensors_that_scale_layers_center_are_divided_before_these(activation, count):
    small, x = divisible(activation=activation), numbers(1, 3, 6, 6)
    judge = judge_of(small, np.repeat(x, 6, axis=0))
    shifted_one = center_by_scales(small, HERE, *judge.ends_per_channel(small, scalable_tensors(small, HERE)))
    assert set(shifted_one.ranges) == {"s_centered"}, "a convolution with padding reads the others"
    assert "s_centered" in divisible_tensors(shifted_one.model, HERE, shifted_one.ranges)
    found = split(shifted_one.model, HERE, {"s_centered": count}, shifted_one.ranges)
    whole = shifted_one.ranges["s_centered"] if activation else 3.0
    assert found.ranges["s_centered"] == pytest.approx(whole / count)
    parts = {name for name, origin in found.origins.items() if origin == "s_shift"}
    assert parts == {"node_of_s_joined", *(f"node_of_s_piece_{index}" for index in range(1, count))}, "in FP16 too"
    for before, after in zip(run_both(small, x * 3), run_both(found.model, x * 3), strict=True):
        np.testing.assert_allclose(after, before, atol=1e-5 * np.abs(before).max())


@pytest.mark.parametrize(("end", "bounds"), [(1000.0, 125.0), (1.0, 1.0), (4.0, 2.0)])
def test_pieces_end_at_bounds_that_a_dla_supports(end, bounds):
    small, x = divisible(activation="Relu(%s)"), numbers(1, 3, 6, 6)
    found = split(small, HERE, {"s": 2}, {"s": end, "d": 3 * end})
    assert found.ranges["s"] == bounds
    assert found.ranges.get("d", 3 * end) == 6 * bounds
    for before, after in zip(run_both(small, x * 3), run_both(found.model, x * 3), strict=True):
        np.testing.assert_allclose(after, before, atol=1e-5 * np.abs(before).max())


def test_layers_are_selected_after_channels_were_divided_too(samples, monkeypatch):
    small = four("Relu(a)")
    tuner = begun(small, np.load(samples)[:6], 99.0, 0.1)
    first, before = tuner._verdict, tuner.now
    half = attrs.evolve(before, half=frozenset({"node_of_e"}))
    monkeypatch.setattr(tuner, "_mixed", lambda: tuning._Proposal(half, "1 layer in FP16"))
    better = [attrs.evolve(first, by_sample=first.by_sample + gained) for gained in (1.0, 2.0, 3.0)]
    with monkeypatch.context() as patch:
        patch.setattr(Judge, "verdict", lambda *_: better[0])
        tuner.take("mixed-precision")
    assert tuner.now is half
    divided_ones = {half: better[1], before: better[0]}
    monkeypatch.setattr(
        tuner, "_split_from", lambda start: tuning._Mixture(start, "1 tensor divided", 1, divided_ones[start])
    )
    monkeypatch.setattr(
        tuner, "_mixed_further", lambda one: attrs.evolve(one, verdict=better[2]) if one.candidate is before else one
    )
    monkeypatch.setattr(tuner, "_ended", lambda mixture: mixture)
    found = tuner._split()
    assert found.candidate is before
    assert found.what == "1 tensor divided, divided before layers were selected"
    monkeypatch.setattr(tuner, "_split_from", lambda _: None)
    assert tuner._split().what == "no channels can be divided"


def test_a_tensor_without_activation_is_divided_by_clips():
    text = "a = Conv(x, k, b) d = Conv(a, l) r = Relu(d) y = Conv(r, n)"
    weights = {"k": numbers(6, 3, 1, 1), "b": numbers(6), "l": numbers(5, 6, 1, 1), "n": numbers(4, 5, 1, 1)}
    small, x = model(text, inputs="float[1,3,6,6] x", outputs="float[1,4,6,6] y", weights=weights), numbers(1, 3, 6, 6)
    assert "a" in divisible_tensors(small, HERE, {"a": 1.5})
    for count in (2, 3, 4):
        found = split(small, HERE, {"a": count}, {"a": 1.5})
        assert found.ranges["a"] == 1.5 / count
        for before, after in zip(run_both(small, x * 3), run_both(found.model, x * 3), strict=True):
            np.testing.assert_allclose(after, before, atol=1e-5 * np.abs(before).max(), err_msg="beyond the range too")


def test_what_a_sum_for_a_border_gives_is_divided_without_another_convolution():
    small, x = divisible(), numbers(1, 3, 6, 6)
    moved = center(small, HERE, *ends_of(small, x), borders=True)
    assert "node_of_d_border" in moved.half
    before = multiply_accumulates_of(moved.model)
    found = split(moved.model, HERE, {"s": 2}, {})
    assert multiply_accumulates_of(found.model) == {**before, "node_of_e": 2 * before["node_of_e"]}
    for one, other in zip(run_both(small, x * 3), run_both(found.model, x * 3), strict=True):
        np.testing.assert_allclose(other, one, atol=1e-5 * np.abs(one).max())


def test_the_cache_of_a_plan_has_only_tensors_of_its_model(samples, tmp_path):
    small = four("Relu(a)")
    onnx.save(small, tmp_path / "small.onnx")
    answer = dryfit.tune(tmp_path / "small.onnx", samples, steps=[], target=1.0, threads=1)
    plan = Candidate(small, {"a": 2.0, "replaced": 1.0})
    written = tuning._written(answer, judge_of(small, np.load(samples)[:6]), plan, tmp_path / "plan", None)
    assert set(read_ranges(written.files["Calibration cache"])) == {"a"}


def test_layers_in_fp16_center_tensors_only_if_that_is_more_than_chance(samples, monkeypatch):
    small = four("Relu(a)")
    tuner = begun(small, np.load(samples)[:6], 99.0, 0.1)
    first, plain = tuner._verdict, tuner.now
    half = attrs.evolve(plain, half=frozenset({"node_of_d_border"}))
    monkeypatch.setattr(tuner, "_centerings", lambda *_: [(half, "borders, ", None), (plain, "plain, ", None)])
    monkeypatch.setattr(Judge, "range_sets", lambda _, models: [{"minmax": plain.ranges} for _ in models])
    spread = np.linspace(-1, 1, len(first.by_sample))
    for gained, expected in ((0.5 * spread + 0.1, plain), (0.01 * spread + 0.1, half)):
        better = attrs.evolve(first, by_sample=first.by_sample + gained)
        monkeypatch.setattr(
            Judge, "verdicts", lambda _, ones, better=better: [better if one.half else first for one in ones]
        )
        found = tuner._centered()
        assert (found.candidate.half, found.tries) == (expected.half, 2)


def test_ranges_are_widened_unless_that_costs_much(samples, monkeypatch):
    small = four("Relu(a)")
    tuner = begun(small, np.load(samples)[:12], 99.0, 0.1)
    tuner.widen()
    assert len(tuner.steps) == 2, "the ranges of a model as it was are those of a calibrator"
    tuner.take("weight-rounding")
    now = tuner.now = attrs.evolve(tuner.now, ranges={name: end / 2 for name, end in tuner.now.ranges.items()})
    tuner.steps[-1] = attrs.evolve(tuner.steps[-1], is_taken=True)
    loss = np.linspace(0.9, 1.1, len(tuner._verdict.by_sample))
    worse = attrs.evolve(tuner._verdict, by_sample=tuner._verdict.by_sample - loss)
    monkeypatch.setattr(Judge, "verdict", lambda *_: worse)
    tuner.widen()
    assert (tuner.now, tuner.steps[-1].is_taken) == (now, False)
    little = attrs.evolve(tuner._verdict, by_sample=tuner._verdict.by_sample - 0.4 * loss)
    monkeypatch.setattr(Judge, "verdict", lambda *_: little)
    tuner.widen()
    assert (tuner.steps[-1].step, tuner.steps[-1].is_taken) == ("scales", True)
    (sets,) = tuner._judge.range_sets([now.model])
    assert tuner.now.ranges == sets["minmax"]


@pytest.mark.parametrize("device", ["GPU", "DLA"])
def test_activations_are_centered_only_where_the_device_clips_below_zero(device, tmp_path):
    path, samples = tmp_path / "small.onnx", tmp_path / "samples.npy"
    onnx.save(centerable(), path)
    np.save(samples, np.random.default_rng(3).standard_normal((10, 3, 6, 6)).astype(np.float32))
    answer = dryfit.tune(path, samples, device=device, fallback="GPU", steps=["centering"], threads=1)
    step = answer.steps[-1]
    assert step.step == "centering"
    assert (", 0 of them behind activations" in step.what) == (device == "DLA")
    assert answer.segments[1] <= answer.segments[0]
    if step.is_taken:
        assert step.fp32_sqnr_db is None or step.fp32_sqnr_db > 90


def test_a_plan_without_steps_is_calibrated_on_all_samples_but_those_that_report(samples, tmp_path):
    path, others = tmp_path / "four.onnx", tmp_path / "others.npy"
    onnx.save(four("Relu(a)"), path)
    answer = dryfit.tune(path, samples, tmp_path / "plan", steps=(), threads=1)
    used = [int(name.rpartition("[")[2][:-1]) for name in sorted({*answer.samples, *answer.held_back})]
    np.save(others, np.load(samples)[sorted(used)])
    dryfit.calibrate(path, others, calibrator="entropy2", output=tmp_path / "other.cache", threads=1)
    assert [one.step for one in answer.steps] == ["calibration", "calibration"]
    assert any("all samples but those that report" in note for note in answer.notes)
    found, other = (read_ranges(each) for each in (answer.files["Calibration cache"], tmp_path / "other.cache"))
    assert not answer.steps[1].is_taken, "the ranges are those of entropy2"
    for name in ("r", "s", "t"):
        assert found[name] == other[name]


def test_an_edit_that_is_not_exact_is_not_taken(samples, tmp_path, monkeypatch):
    path = tmp_path / "four.onnx"
    onnx.save(four("Relu(a)"), path)
    monkeypatch.setattr(tuning, "LEAST_EXACT_DB", 1000.0)
    answer = dryfit.tune(path, samples, steps=["equalization"], threads=1)
    assert not answer.steps[-1].is_taken
    assert "too far for an exact edit" in answer.steps[-1].what


def test_choices_for_fp16_take_the_noise_of_the_worst_output_first():
    """Two outputs; the layer that the worse one depends on costs as much as the other."""
    layers = [MeasuredLayer(name, [name], "GPU", {f"in {name}": 1.0}, f"out {name}", 1.0) for name in ("one", "two")]
    probe = SimpleNamespace(tensors={"in one": 1.0, "in two": 1.0}, layers=layers)
    shapes = [SimpleNamespace(name=f"{way} {name}", shape=(1, 8)) for way in ("in", "out") for name in ("one", "two")]
    noise = Noise([frozenset(["one"]), frozenset(["two"])], np.array([[0.1, 0.0], [0.0, 0.2]]))
    macs = {"one": 100, "two": 100, "rest": 800}
    fake = SimpleNamespace(tensors=shapes)
    names = [one.tensor for one in choices(fake, probe, noise, macs, frozenset(), 200)]
    assert names == ["in two", "in one"]
    assert [one.tensor for one in choices(fake, probe, noise, macs, frozenset(), 100)] == ["in two"]
    assert not choices(fake, probe, noise, macs, frozenset(), 99)


def test_a_network_of_many_layers_without_multiply_accumulates_has_them_all_in_fp16():
    """The sigmoids of a detector cost no multiply-accumulates, and are more than a hundred."""
    names = [f"sigmoid{index}" for index in range(120)]
    layers = [MeasuredLayer(name, [name], "GPU", {f"in {name}": 1.0}, f"out {name}", 1.0) for name in names]
    probe = SimpleNamespace(tensors={f"in {name}": 1.0 for name in names}, layers=layers)
    shapes = [SimpleNamespace(name=f"{way} {name}", shape=(1, 8)) for way in ("in", "out") for name in names]
    noise = Noise([frozenset([name]) for name in names], 0.001 * np.arange(1, 121).reshape(120, 1))
    found = choices(SimpleNamespace(tensors=shapes), probe, noise, {"conv": 1000}, frozenset(), 100)
    assert [one.tensor for one in found] == [f"in {name}" for name in reversed(names)]


def test_choices_for_fp16_cost_what_the_device_is_estimated_to_take_longer():
    """The layer with fewer multiply-accumulates is the slower one, such as a depthwise one on a DLA."""
    layers = [MeasuredLayer(name, [name], "DLA", {f"in {name}": 1.0}, f"out {name}", 1.0) for name in ("one", "two")]
    probe = SimpleNamespace(tensors={"in one": 1.0, "in two": 1.0}, layers=layers)
    shapes = [SimpleNamespace(name=f"{way} {name}", shape=(1, 8)) for way in ("in", "out") for name in ("one", "two")]
    noise = Noise([frozenset(["one"]), frozenset(["two"])], np.array([[0.1], [0.1]]))
    asked = SimpleNamespace(tensors=shapes), probe, noise, {"one": 10, "two": 100}, frozenset(), 1000
    assert [one.tensor for one in choices(*asked)] == ["in one", "in two"]
    times = {"in one": 20.0, "in two": 1.0}
    assert [(one.tensor, one.cost) for one in choices(*asked, times)] == [("in two", 1.0), ("in one", 20.0)]
    assert choices(*asked, {"in one": 20.0, "in two": -1.0})[0].cost > 0, "no time is added"


@pytest.mark.parametrize("device", ["GPU", "DLA"])
def test_the_time_that_fp16_adds_is_the_estimate_of_the_device(samples, device):
    judge = judge_of(four("Relu(a)"), np.load(samples), device=device)
    candidate = Candidate(four("Relu(a)"), judge.range_sets([four("Relu(a)")])[0]["minmax"])
    readers = readers_of(judge.probe(candidate))
    assert readers["s"] == {"node_of_e", "node_of_t"}
    added = judge.added_microseconds(candidate, readers)
    assert set(added) == set(readers)
    assert min(added.values()) > -0.001, "a conversion may go"
    assert max(added.values()) > 0
    half = attrs.evolve(candidate, half=readers[max(added, key=lambda name: added[name])])
    assert judge.latency_microseconds(half) > judge.latency_microseconds(candidate)


def test_layers_are_chosen_by_the_limit_where_the_cheapest_do_not_reach_the_metric(samples, monkeypatch):
    small = four("Relu(a)")
    tuner = begun(small, np.load(samples)[:6], 25.0, 0.5, ["mixed-precision"])
    asked = []

    def mixed(judge, start, affordable, is_enough):
        asked.append([one.cost for one in affordable])
        found = attrs.evolve(start, half=frozenset({"node_of_y"} if len(asked) == 1 else {"node_of_e"}))
        is_enough(found)
        return found

    monkeypatch.setattr(tuning, "mixed", mixed)
    monkeypatch.setattr(Judge, "added_microseconds", lambda _, __, readers: dict.fromkeys(readers, 0.5))
    for best, reaches, count in (("node_of_y", True, 1), ("node_of_y", False, 2), ("node_of_e", True, 2)):
        asked.clear()

        def verdict(_, candidate, best=best, reaches=reaches):
            value = candidate.half == {best}
            return Verdict(20.0, 30.0 if value and reaches else 20.0, 20 + value + np.arange(6.0))

        monkeypatch.setattr(Judge, "verdict", verdict)
        assert tuner._mixed_from(tuner.now).candidate.half == {best}
        assert len(asked) == count
        assert set(asked[0]) == {0.5}
        assert count == 1 or min(asked[1]) > 100, "multiply-accumulates"


def test_mean_errors_that_fp16_leaves_are_taken_back(samples, monkeypatch):
    small = four("Relu(a)")
    tuner = begun(small, np.load(samples)[:6], 25.0, 0.1)
    start = attrs.evolve(tuner.now, half=frozenset({"node_of_y"}))
    better = attrs.evolve(start, model=four("Relu(a)"))
    found = tuning._Mixture(start, "1 layer in FP16", 3, Verdict(20.0, 20.0, np.arange(6.0)))
    monkeypatch.setattr(tuner, "_corrected", lambda *_: tuning._Proposal(better, "biases of 2 layers corrected"))
    every = attrs.evolve(found, candidate=attrs.evolve(start, half=frozenset(f"node_of_{name}" for name in "ardsety")))
    assert tuner._corrected_mixture(every) is every, "nothing is left in INT8"
    for sqnr, brought, is_taken in ((20.0, 1.0, True), (20.0, 0.01, False), (19.0, 1.0, False)):
        verdict = Verdict(sqnr, sqnr, np.arange(6.0) + brought)
        monkeypatch.setattr(Judge, "verdict", lambda *_, verdict=verdict: verdict)
        after = tuner._corrected_mixture(found)
        assert (after.candidate is better) == is_taken
        assert after.what == f"1 layer in FP16{', biases of 2 layers corrected' if is_taken else ''}"
        assert after.tries == 3 + is_taken


def test_a_way_of_correction_replaces_the_one_before_only_by_more_than_chance(samples, monkeypatch):
    small = four("Relu(a)")
    tuner = tuning._Tuner(judge_of(small, np.load(samples)[:6]), small, 25.0, 0.1)
    verdicts = [Verdict(20.0, 20.0, np.array(one, np.float64)) for one in ([0] * 6, [9, 1, 0, 2, -1, 1])]
    monkeypatch.setattr(Judge, "verdicts", lambda *_: verdicts)
    tried = [tuning._Proposal(tuner.now, name) for name in ("alone", "by one sample")]
    found = tuner._best(tried, prefers_first=True)
    assert (found.what, found.tries) == ("alone, the best of 2", 2)
    assert tuner._best(tried).what == "by one sample, the best of 2"
    verdicts[1] = Verdict(20.0, 20.0, np.array([1.8, 2.0, 1.9, 2.1, 2.0, 1.8]))
    assert tuner._best(tried, prefers_first=True).what == "by one sample, the best of 2"


def test_one_sample_of_a_share_does_not_outweigh_a_gain(samples):
    small = four("Relu(a)")
    judge = attrs.evolve(judge_of(small, np.load(samples)[:6]), metric=metric_of("agreement"))
    tuner = tuning._Tuner(judge, small, 97.0, 0.1)

    def share(right):
        values = np.array([100.0] * right + [0.0] * (17 - right))
        without = [np.delete(values, index).mean() for index in range(17)]
        return Verdict(20.0, float(values.mean()), np.zeros(17), jackknife_error(without))

    assert tuner._is_harmless(share(17), share(16))
    assert tuner._is_harmless(share(14), share(15))
    assert not tuner._is_harmless(share(17), share(14))


def test_an_int8_layer_whose_readers_are_in_fp16_is_judged_too(samples):
    """Its sums are converted to FP16, so that no tensor of the engine has the name of its output."""
    judge = judge_of(four("Relu(a)"), np.load(samples))
    ranges = judge.range_sets([four("Relu(a)")])[0]["minmax"]
    probe = judge.probe(Candidate(four("Relu(a)"), ranges, half=frozenset({"node_of_y", "node_of_s", "node_of_e"})))
    assert {"d", "r"} <= {layer.output for layer in probe.layers}


def test_ranges_are_chosen_anew_for_what_fp16_leaves_in_int8(samples, monkeypatch):
    small = four("Relu(a)")
    tuner = begun(small, np.load(samples)[:6], 25.0, 0.1, ["mixed-precision"])
    tuner.now = attrs.evolve(tuner.now, fixed={"s": 1.5})
    monkeypatch.setattr(Judge, "latency_microseconds", lambda *_: None)
    starts = []
    spread = 0.1

    def verdict(candidate):
        value = 30.0 if candidate.ranges["r"] == 2.0 else 20.0
        return Verdict(value, value, value + (value - 20.0) * spread * np.arange(-2.5, 3.0))

    def mixed_from(start):
        starts.append(start)
        candidate = attrs.evolve(start, half=frozenset({"node_of_y"}))
        return tuning._Mixture(candidate, "1 layer in FP16", 3, verdict(candidate))

    sets = {"wide": {"r": 9.0, "s": 9.0}, "close": {"r": 2.0, "s": 2.0}}
    monkeypatch.setattr(Judge, "range_sets", lambda *_: [sets])
    monkeypatch.setattr(Judge, "verdicts", lambda _, candidates: [verdict(one) for one in candidates])
    monkeypatch.setattr(tuner, "_mixed_from", mixed_from)
    found = tuner._mixed()
    assert found.what == "1 layer in FP16, ranges by close"
    assert found.candidate.ranges == {"r": 2.0, "s": 1.5}, "what centering fixed stays"
    assert found.tries == 3 + 2 + 3
    assert [one.ranges["r"] for one in starts] == [tuner.now.ranges["r"], 2.0]
    spread = 2.0
    assert tuner._mixed().what == "1 layer in FP16", "what differs between samples as much is chance"
    spread = 0.1
    starts.clear()
    tuner._wanted = 20.0
    assert tuner._mixed().what == "1 layer in FP16"
    assert len(starts) == 1, "what reaches the metric is not searched for again"


def test_copies_of_a_sample_have_moved_pictures_and_all_else():
    x, scale = np.arange(2 * 40 * 50, dtype=np.float32).reshape(1, 2, 40, 50), np.ones((1, 4), np.float32)
    (moved,) = moved_samples([{"x": x, "scale": scale}], 1, -2)
    np.testing.assert_array_equal(moved["x"][:, :, 1:, :-2], x[:, :, :-1, 2:])
    np.testing.assert_array_equal(moved["x"][:, :, 0, :-2], x[:, :, 0, 2:])
    np.testing.assert_array_equal(moved["x"][:, :, 1:, -1], x[:, :, :-1, -1])
    assert moved["scale"] is scale
    tokens, tiny = np.zeros((1, 64, 64), np.float32), np.zeros((1, 1, 28, 28), np.float32)
    assert not moved_samples([{"x": one} for one in (tokens, tiny, x.astype(np.int32))], 1, -2)
    assert not moved_samples([{"x": x}, {"x": tiny}], 1, -2), "each sample has copies, or none has"


def test_a_sample_counts_by_the_mean_over_its_copies_and_the_metric_without_them():
    small = four("Relu(a)", extent=40)
    values = np.random.default_rng(3).standard_normal((3, 8, 40, 40)).astype(np.float32)
    judge = judge_of(small, values)
    assert len(judge.moved) == len(judge.moved_exact) == 3 * len(MOVES)
    candidate = Candidate(small, judge.range_sets([small])[0]["minmax"])
    verdict, without = judge.verdict(candidate), attrs.evolve(judge, moved=(), moved_exact=()).verdict(candidate)
    assert (verdict.sqnr_db, verdict.metric) == (without.sqnr_db, without.metric)
    copies = [
        attrs.evolve(judge, held=held, exact=exact, moved=(), moved_exact=()).verdict(candidate).by_sample
        for first in range(0, len(judge.moved), 3)
        for held, exact in [(judge.moved[first : first + 3], judge.moved_exact[first : first + 3])]
    ]
    np.testing.assert_allclose(verdict.by_sample, np.mean([without.by_sample, *copies], axis=0))


def test_a_metric_falls_by_what_copies_show_too():
    """A step changes the class of one sample out of three, and of none of its nine copies."""
    small = four("Relu(a)", extent=40)
    judge = judge_of(small, np.random.default_rng(3).standard_normal((3, 8, 40, 40)).astype(np.float32))
    count = len(judge.held)
    metric = attrs.evolve(
        metric_of("sqnr"), name="least", measure=lambda found, _: float(found["y"].min(axis=(1, 2, 3)).mean())
    )
    judge = attrs.evolve(judge, metric=metric, exact=judge.exact, moved_exact=judge.moved_exact)
    outputs = [{"y": np.full((1, 8, 40, 40), float(index), np.float32)} for index in range(4 * count)]
    assert judge.measured(outputs[:count]) == 1.0
    assert judge.measured(outputs) == pytest.approx(5.5)
    # Without sample 0 and its copies 3, 6 and 9 the mean is 6, then 5.5 and 5.
    assert judge._error(outputs) == pytest.approx(jackknife_error([6.0, 5.5, 5.0]))
    tuner = tuning._Tuner(judge, small, 97.0, 0.1)
    before, after = Verdict(20.0, 100.0, np.zeros(3)), Verdict(20.0, 66.7, np.zeros(3), copies_metric=95.0)
    assert not tuner._is_harmless(before, attrs.evolve(after, copies_metric=60.0))
    assert tuner._is_harmless(before, attrs.evolve(after, copies_error=6.0))


def residual():
    return model(
        "a = Conv(x, k) b = Conv(a, l) c = Add(a, b) d = Relu(c) e = Conv(d, l) f = Add(d, e) y = Conv(f, k)",
        inputs="float[1,8,6,6] x",
        outputs="float[1,8,6,6] y",
        weights={"k": np.eye(8, dtype=np.float32).reshape(8, 8, 1, 1), "l": numbers(8, 8, 1, 1) / 50},
    )


def test_sums_that_read_sums_past_int8_layers_are_found():
    """A chain of residual blocks: the first sum reads a convolution, the second one the first with its activation."""
    network = dryfit.network_from_onnx(residual())
    give = {layer.outputs[0].name: layer.name for layer in network.layers}
    chain = {give[name] for name in "cdf"}
    assert sums_past_int8(network, set()) == chain
    assert sums_past_int8(network, {give["f"]}) == chain - {give["f"]}
    assert sums_past_int8(network, set(), kept={give["c"]}) == chain - {give["c"]}
    assert sums_past_int8(network, {give["a"]}) == chain
    assert not sums_past_int8(dryfit.network_from_onnx(four("Relu(a)")), {"node_of_e"})


def test_sums_are_in_fp16_where_that_brings_more_than_chance(samples, monkeypatch):
    tuner = begun(residual(), np.load(samples), 99.0, 0.1, ["mixed-precision"])
    found = tuning._Mixture(tuner.now, "no layer in FP16", 2, tuner._verdict)
    more = tuner._with_real_sums(found)
    assert more.candidate.half == sums_past_int8(dryfit.network_from_onnx(residual()), set())
    assert (more.what, more.tries) == ("no layer in FP16, and 3 more for sums", 3)
    assert more.verdict.score > found.verdict.score + 0.1, "the sum reads what no code rounds"
    monkeypatch.setattr(Judge, "verdict", lambda *_: tuner._verdict)
    assert tuner._with_real_sums(found) is found


@pytest.mark.parametrize(
    ("device", "most", "expected"), [("DLA", 0.5, {"node_of_y"}), ("DLA", 0.1, ()), ("GPU", 1, ())]
)
def test_layers_that_give_outputs_in_int8_are_in_fp16_where_the_limit_has_room(device, most, expected, samples):
    small = residual()
    judge = judge_of(small, np.load(samples), device=device)
    tuner = tuning._Tuner(judge, small, 99.0, most)
    tuner.begin()
    found = tuning._Mixture(tuner.now, "as it was", 1, tuner._verdict)
    more = tuner._with_real_outputs(found)
    assert more.candidate.half == set(expected)
    assert (more is found) or more.what == "as it was, and 1 layer more for outputs"
    assert more.verdict.score - found.verdict.score > (0.3 if expected else -1e-9)
    said = tuning._Mixture(attrs.evolve(tuner.now, said={"node_of_y": dryfit.DataType.INT8}), "", 1, tuner._verdict)
    assert tuner._with_real_outputs(said) is said, "what the user sets stays"
    every = frozenset(layer.name for layer in judge.network(small).layers)
    whole = tuning._Mixture(attrs.evolve(tuner.now, half=every), "", 1, tuner._verdict)
    assert tuner._with_real_outputs(whole) is whole, "there is nothing in INT8"


def test_fp16_is_tried_without_the_layers_that_shift_inputs_too(samples, monkeypatch):
    small = four("Relu(a)")
    tuner = begun(small, np.load(samples)[:6], 99.0, 0.1, ["input-centering"])
    before, first = tuner.now, tuner._verdict
    shifted = attrs.evolve(before, half=frozenset({"x_shift"}))
    better = Verdict(first.sqnr_db, first.metric, first.by_sample + 1)
    monkeypatch.setattr(tuner, "_with_centered_inputs", lambda _: tuning._Proposal(shifted, "1 input shifted"))
    monkeypatch.setattr(Judge, "verdict", lambda *_: better)
    tuner.take("input-centering")
    assert tuner.now is shifted
    worth = {id(shifted): better, id(before): attrs.evolve(better, by_sample=first.by_sample + 2)}
    monkeypatch.setattr(tuner, "_mixed_from", lambda start: tuning._Mixture(start, "none", 1, worth[id(start)]))
    monkeypatch.setattr(tuner, "_ranged_anew", lambda candidate, _: (candidate, "", 0))
    monkeypatch.setattr(Judge, "latency_microseconds", lambda *_: None)
    found = tuner._mixed()
    assert (found.candidate, found.what, found.tries) == (before, "none, without shifted inputs", 2)
    tuner.now, starts = before, []
    monkeypatch.setattr(tuner, "_split_from", starts.append)
    tuner._split()
    assert starts[1].half == before.half, "channels are divided in what has no such layer either"


def test_fp16_is_tried_with_layers_that_shift_inputs_that_were_not_worth_it_before(samples, monkeypatch):
    small = four("Relu(a)")
    tuner = begun(small, np.load(samples)[:6], 99.0, 0.1, ["input-centering"])
    before, first = tuner.now, tuner._verdict
    shifted_one = attrs.evolve(before, half=frozenset({"x_shift"}))
    monkeypatch.setattr(tuner, "_with_centered_inputs", lambda _: tuning._Proposal(shifted_one, "1 input shifted"))
    better = attrs.evolve(first, by_sample=first.by_sample + 1)
    worth = {id(shifted_one): better, id(before): first}
    monkeypatch.setattr(tuner, "_mixed_from", lambda start: tuning._Mixture(start, "none", 1, worth[id(start)]))
    monkeypatch.setattr(tuner, "_ranged_anew", lambda candidate, _: (candidate, "", 0))
    monkeypatch.setattr(Judge, "latency_microseconds", lambda *_: None)
    found = tuner._mixed()
    assert (found.candidate, found.what, found.tries) == (shifted_one, "none, with input-centering", 2)
    tuner._steps = ["mixed-precision"]
    assert tuner._mixed().candidate is before, "the user does not want it"


def test_inputs_are_tried_again_where_fp16_does_not_reach_the_metric(samples, monkeypatch):
    small = four("Relu(a)")
    tuner = begun(small, np.load(samples)[:6], 99.0, 0.1)
    better = [Verdict(value, value, tuner._verdict.by_sample + value) for value in (20.0, 40.0, 60.0)]
    monkeypatch.setattr(Judge, "verdict", lambda *_: better.pop(0))
    for name in ("_mixed", "_split", "_with_centered_inputs"):
        monkeypatch.setattr(tuner, name, lambda *_: tuning._Proposal(attrs.evolve(tuner.now), "changed"))
    tuner.take("mixed-precision")
    assert [one.step for one in tuner.steps[2:]] == ["mixed-precision", "input-centering"]
    tuner.take("channel-splitting")
    assert tuner.steps[-1].step == "channel-splitting", "what was taken is not tried again"


def parameters(small):
    """Weights and biases by name of the convolution."""
    return parameters_of(small, HERE, {node.name or f"node_of_{node.output[0]}" for node in small.graph.node})


def rounded_centering(samples, *, device="GPU"):
    """A network whose convolutions absorb shifts with rounded weights, and its judge."""
    small = four("Relu(a)")
    judge = judge_of(small, np.load(samples), device=device)
    ends = judge.ends_per_channel(small, centered_tensors(small, HERE))
    real, found = (center(small, HERE, *ends, rounds=rounds) for rounds in (False, True))
    ranges = {**judge.range_sets([found.model])[0]["minmax"], **found.ranges}
    return judge, Candidate(found.model, ranges, fixed=found.ranges, real=real.model)


def test_layers_in_fp16_have_the_weights_and_biases_of_before(samples):
    judge, candidate = rounded_centering(samples)
    real, now = parameters(candidate.real), parameters(candidate.model)
    half = judge.with_half(candidate, frozenset({"node_of_e"}))
    found = parameters(half.model)
    for kind in ("kernels", "biases"):
        for name, values in getattr(found, kind).items():
            expected = getattr(real if name == "node_of_e" else now, kind)[name]
            np.testing.assert_array_equal(values, expected, err_msg=f"{kind} of {name}")
    assert (real.kernels["node_of_e"] != now.kernels["node_of_e"]).any()
    assert not parameters(four("Relu(a)")).biases["node_of_y"].any(), "it has none"
    assert half.half == {"node_of_e"}
    whole = judge.with_half(candidate, frozenset(real.kernels))
    exact = worst_sqnr_db(judge.exact, judge.real_outputs(whole.model))
    assert exact > tuning.LEAST_EXACT_DB > worst_sqnr_db(judge.exact, judge.real_outputs(candidate.model))


def test_weights_are_rounded_by_their_effect_behind_centering_too(samples):
    judge, candidate = rounded_centering(samples)
    start = candidate.uncorrected
    network, real = judge.network(start.model), judge.probe(start)
    found = rounded_by_effect(network, real, judge.collected)
    assert set(found.kernels) == set(found.biases) == {f"node_of_{name}" for name in "ade"}
    rounded = candidate.with_corrected(with_corrections(candidate.model, HERE, found))
    assert rounded.real is candidate.real
    kernels = parameters(candidate.real).kernels
    for name, values in found.kernels.items():
        largest = np.abs(kernels[name]).max(axis=(1, 2, 3), keepdims=True)
        codes = values.astype(np.float64) / (largest / 127)
        np.testing.assert_allclose(codes, np.rint(codes), atol=1e-3)
        assert np.abs(values - kernels[name]).max() < 1.01 * (largest / 127).max(), (
            "no code is further than its neighbor"
        )
    assert judge.verdict(rounded).score > judge.verdict(candidate).score


def test_what_is_done_to_a_model_with_corrections_is_done_to_the_one_before_too(samples):
    """Pixels that are all positive, and a padded convolution between activations that can be divided."""
    small = divisible()
    x = np.abs(np.random.default_rng(3).standard_normal((6, 3, 6, 6))).astype(np.float32)
    judge = judge_of(small, x)
    other = Corrections({"node_of_e": parameters(small).kernels["node_of_e"] * 1.5}, {})
    start = Candidate(small, judge.range_sets([small])[0]["minmax"])
    start = start.with_corrected(with_corrections(small, HERE, other))
    tuner = tuning._Tuner(judge, small, 99.0, 1.0)
    tuner.now, tuner._verdict, tuner.segments = start, judge.verdict(start), 9
    shifted = tuner._with_centered_inputs(start).candidate
    found = tuning.divided_candidate(shifted, {"r": 2, "s": 2}, HERE)
    assert worst_sqnr_db(judge.exact, judge.real_outputs(found.model)) < 20
    assert worst_sqnr_db(judge.exact, judge.real_outputs(found.real)) > tuning.LEAST_EXACT_DB


def test_fp16_is_tried_without_corrections_for_other_layers(samples, monkeypatch):
    small = four("Relu(a)")
    tuner = begun(small, np.load(samples)[:6], 99.0, 0.1, ["weight-rounding"])
    before, first = tuner.now, tuner._verdict
    alone, corrected = (attrs.evolve(tuner.now, ranges={**tuner.now.ranges, "y": end}) for end in (1.0, 2.0))
    monkeypatch.setattr(tuner, "_with_rounded_weights", lambda _: tuning._Proposal(corrected, "rounded", alone=alone))
    better = Verdict(first.sqnr_db, first.metric, first.by_sample + 1)
    monkeypatch.setattr(Judge, "verdict", lambda *_: better)
    tuner.take("weight-rounding")
    assert tuner.now is corrected
    monkeypatch.setattr(tuner, "_mixed_from", lambda start: tuning._Mixture(start, "none", 1, worth[id(start)]))
    monkeypatch.setattr(tuner, "_ranged_anew", lambda candidate, _: (candidate, "", 0))
    monkeypatch.setattr(tuner, "_ended", lambda found: found)
    worth = {id(corrected): better, id(before): better, id(alone): attrs.evolve(better, by_sample=first.by_sample + 2)}
    found = tuner._mixed()
    assert (found.candidate, found.tries) == (alone, 2)
    assert found.what == "none, without corrections for other layers in INT8"
    worth[id(before)] = attrs.evolve(better, by_sample=first.by_sample + 3)
    assert tuner._mixed().candidate is before, "nor with any"


def test_large_networks_are_judged_on_fewer_samples(samples):
    small = four("Relu(a)")
    judge = judge_of(small, np.load(samples))
    tuner = tuning._Tuner(judge, small, 25.0, 0.1)
    network = judge.network(small)
    half = sum(tuning.multiply_accumulates(network).values()) / 2
    for most, expected in ((100, 8), (5, 5), (1, 2)):
        count = int(tuning.MOST_WORK / (most * half))
        chosen = tuner._few_samples(network, count)
        assert len(chosen) == min(expected, len(judge.collected))


def test_weights_rounded_by_effect_are_those_that_the_device_quantizes_them_to():
    rng = np.random.default_rng(7)
    kernel = rng.standard_normal((6, 5, 1, 1)) * 0.1
    inputs = rng.standard_normal((5, 2)) @ rng.standard_normal((2, 300))  # five channels that hold two signals
    products = (inputs @ inputs.T)[np.newaxis]
    found = _descended(kernel, products, 1, kernel.reshape(1, 6, 5) @ products)
    network = dryfit.Network()
    x = network.add_input("x", dryfit.DataType.FLOAT, (1, 5, 3, 3))
    layer = network.add_convolution_nd(x, 6, (1, 1), found.astype(np.float32))
    stored = int8_weights(layer, found.astype(np.float32), RoundingMode.HALF_TO_EVEN)
    real = stored.values * stored.scales.reshape(6, 1, 1, 1)
    nearest = int8_weights(layer, kernel.astype(np.float32), RoundingMode.HALF_TO_EVEN)
    np.testing.assert_array_equal(stored.scales, nearest.scales)
    np.testing.assert_allclose(real, found, atol=1e-6)

    def error(weights):
        gap = (weights - kernel).reshape(6, 5)
        return float(np.einsum("kd,de,ke", gap, products[0], gap))

    assert error(real) < 0.5 * error(nearest.values * nearest.scales.reshape(6, 1, 1, 1))


def test_a_corrected_bias_is_stored_also_where_there_was_none():
    small = four("Relu(a)")
    names = [node.name or f"node_of_{node.output[0]}" for node in small.graph.node]
    found = with_corrections(small, HERE, Corrections({}, {names[2]: np.ones(8, np.float32)}))
    zeros = np.zeros((1, 8, 6, 6), np.float32)
    before, after = largest_of(small, zeros), largest_of(found, zeros)
    assert (before["d"] != after["d"]).any()


def test_a_plan_brings_accuracy_and_its_files_hold_it(samples, tmp_path):
    path = tmp_path / "four.onnx"
    onnx.save(four("Relu(a)"), path)
    answer = dryfit.tune(path, samples, tmp_path / "plan", target=100.0, max_macs=0.3, threads=1, device="GPU")
    first, last = answer.steps[0], answer.result
    assert last.sqnr_db > first.sqnr_db + 3
    assert {one.step for one in answer.steps} >= {"equalization", "weight-rounding", "mixed-precision"}
    assert len({*answer.samples, *answer.held_back, *answer.reporting}) == 20
    assert answer.expected.sqnr_db > answer.before.sqnr_db + 3, "also on samples that no choice saw"
    assert answer.gain_db > 3 * answer.gain_error_db
    assert f"SQNR {answer.before.sqnr_db:.1f} dB -> {answer.expected.sqnr_db:.1f} dB" in answer.summary_line()
    assert answer.half_macs <= 0.3
    assert not answer.is_reached
    # The files alone give the same accuracy.
    values = np.load(samples)
    held = [values[int(name.rpartition("[")[2][:-1])][np.newaxis] for name in answer.held_back]
    config = dryfit.BuilderConfig()
    for flag in ("INT8", "FP16", "PREFER_PRECISION_CONSTRAINTS"):
        config.set_flag(dryfit.BuilderFlag[flag])
    config.calibration_cache = answer.files["Calibration cache"]
    config.builder_optimization_level = 0
    network = dryfit.network_from_onnx(answer.files["Model"])
    for layer in network.layers:
        if layer.name in answer.half_layers:
            layer.precision = dryfit.DataType.HALF
    context = dryfit.Builder().build_engine(network, config).create_execution_context(1)
    exact = [run_both(onnx.load(path), x)[1] for x in held]
    noise = sum(
        float(((context.run({"x": x})["y"] - y).astype(np.float64) ** 2).sum())
        for x, y in zip(held, exact, strict=True)
    )
    signal = sum(float((y.astype(np.float64) ** 2).sum()) for y in exact)
    assert 10 * np.log10(signal / noise) == pytest.approx(last.sqnr_db, abs=0.1)
    assert json.loads(answer.files["Plan"].read_text())["half_layers"] == list(answer.half_layers)
    assert answer.export_line.startswith(f"dryfit export trtexec {answer.files['Model']}")


def files_of(folder):
    """The contents of a plan's files; its own paths aside."""
    return {one.name: one.read_bytes().replace(str(folder).encode(), b"") for one in sorted(folder.iterdir())}


def test_a_plan_is_the_same_for_any_number_of_processes_and_after_a_pause(samples, tmp_path, monkeypatch):
    path = tmp_path / "four.onnx"
    onnx.save(four("Relu(a)"), path)

    def tuned(name, **options):
        options = {"target": 100.0, "max_macs": 0.3, "steps": ["equalization", "mixed-precision"], **options}
        return dryfit.tune(path, samples, tmp_path / name, threads=1, **options), files_of(tmp_path / name)

    class Stopping(SampleCount):
        @property
        def is_stopped(self):
            return next(asked, 0) == 0

    _, whole = tuned("whole")
    assert {"model.onnx", "model.cache", "plan.json"} <= set(whole)
    assert tuned("processes", jobs=2)[1] == whole
    asked = iter([1] * 12)
    with pytest.raises(KeyboardInterrupt) as stopped:
        tuned("stopped", state=tmp_path / "kept", progress=Stopping)
    assert re.match(r"\d+ trials were run. They are kept in .*kept; add --resume", stopped.value.__notes__[0])
    kept = (tmp_path / "kept").read_bytes()
    run = []
    monkeypatch.setattr(DeviceRuns, "outputs", lambda *given, own=DeviceRuns.outputs: (run.append(1), own(*given))[1])
    answer, resumed = tuned("resumed", state=tmp_path / "kept", resume=True)
    assert resumed == whole
    first = len(run)
    assert re.fullmatch(r"[1-9]\d* of \d+ trials are of an earlier run", answer.notes[-1])
    answer, again = tuned("again", state=tmp_path / "kept", resume=True)
    assert again == whole
    assert len(run) == first, "nothing is run twice"
    (tmp_path / "kept").write_bytes(kept)
    with pytest.raises(CalibrationError, match="belong to another run"):
        tuned("other", state=tmp_path / "kept", resume=True, device="DLA")
    (tmp_path / "kept").write_bytes(kept[: len(kept) // 2])
    with pytest.raises(CalibrationError, match="cannot be read"):
        tuned("damaged", state=tmp_path / "kept", resume=True)


@pytest.mark.parametrize(("step", "text"), [("equalization", "scaled by channel"), ("centering", "tensors centered")])
def test_the_edited_model_of_a_plan_computes_the_same_in_onnx_runtime(step, text, samples, tmp_path, monkeypatch):
    path = tmp_path / "four.onnx"
    onnx.save(four("Relu(a)"), path)
    monkeypatch.setattr(tuning._Tuner, "_is_taken", lambda self, verdict, brought: True)  # whatever it brings
    answer = dryfit.tune(path, samples, tmp_path / "plan", steps=[step], threads=1)
    assert text in answer.steps[-1].what
    before, after = (session_of(each) for each in (path, answer.files["Model"]))
    noise = signal = 0.0
    for x in np.load(samples)[:, np.newaxis]:
        (exact,), (found,) = (each.run(None, {"x": x}) for each in (before, after))
        noise += float(((found.astype(np.float64) - exact) ** 2).sum())
        signal += float((exact.astype(np.float64) ** 2).sum())
    rounds = "weights rounded to INT8 before" in answer.steps[-1].what
    assert 10 * np.log10(signal / noise) > (tuning.LEAST_EXACT_DB if not rounds else 30)


def divisible(opset=13, high=6.0, activation=""):
    """A dense, a depthwise and a dense convolution, each before an activation, and a strided padded one."""
    activation = activation or ("Clip<min=0.0,max=6.0>(%s)" if opset < 11 else "Clip(%s, low, high)")
    text = (
        f"a = Conv(x, k, b) r = {activation % 'a'} "
        "d = Conv<group=8,pads=[1,1,1,1]>(r, l, c) "
        f"s = {activation % 'd'} e = Conv(s, m) t = {activation % 'e'} "
        "y = Conv<strides=[2,2],pads=[0,0,1,1]>(t, n)"
    )
    weights = {
        "k": 0.7 * numbers(8, 3, 1, 1),
        "b": numbers(8) + 3,
        "l": 0.3 * numbers(8, 1, 3, 3),
        "c": numbers(8) + 3,
        "m": 0.3 * numbers(6, 8, 1, 1),
        "n": numbers(4, 6, 2, 2),
    }
    if "low" in text:
        weights |= {"low": np.zeros((), np.float32), "high": np.float32(high)}
    return model(text, inputs="float[1,3,6,6] x", outputs="float[1,4,3,3] y", weights=weights, opset=opset)


@pytest.mark.parametrize("opset", [9, 13])
@pytest.mark.parametrize("pieces", [{"r": 2}, {"s": 4}, {"t": 3}, {"r": 4, "s": 2, "t": 2}])
def test_divided_channels_compute_the_same(opset, pieces):
    small, x = divisible(opset), numbers(1, 3, 6, 6)
    assert set(divisible_tensors(small, HERE, {})) == {"r", "s", "t"}
    found = split(small, HERE, pieces, {})
    for before, after in zip(run_both(small, x * 3), run_both(found.model, x * 3), strict=True):
        np.testing.assert_allclose(after, before, atol=1e-5 * np.abs(before).max())
    assert all(found.ranges[name] == 6.0 / count for name, count in pieces.items())
    grown = dict.fromkeys(multiply_accumulates_of(small), 1)
    for name, count in pieces.items():
        for layer, factor in divisible_tensors(small, HERE, {})[name].factors(count).items():
            grown[layer] *= factor
    now = dict.fromkeys(grown, 0)
    for name, work in multiply_accumulates_of(found.model).items():
        now[found.origins.get(name, name)] += work
    assert now == {name: grown[name] * work for name, work in multiply_accumulates_of(small).items()}


@pytest.mark.parametrize("pieces", [{"s": 2}, {"s": 4, "t": 3}])
def test_divided_channels_behind_a_relu_compute_the_same_beyond_its_range(pieces):
    small, x = divisible(activation="Relu(%s)"), numbers(1, 3, 6, 6)
    assert not divisible_tensors(small, HERE, {}), "nobody knows where to divide"
    ends = {"r": 5.0, "s": 4.0, "t": 3.0}
    assert set(divisible_tensors(small, HERE, ends)) == {"s", "t"}, "the depthwise one needs pieces side by side"
    found = split(small, HERE, pieces, ends)
    assert np.max(run_both(small, x * 3)[0]) > 6.0
    for before, after in zip(run_both(small, x * 3), run_both(found.model, x * 3), strict=True):
        np.testing.assert_allclose(after, before, atol=1e-5 * np.abs(before).max())
    assert all(found.ranges[name] == ends[name] / count for name, count in pieces.items())


def multiply_accumulates_of(small):
    found = multiply_accumulates(dryfit.network_from_onnx(small))
    return {name: work for name, work in found.items() if work}


def test_a_tensor_that_is_centered_is_divided_around_zero():
    bounds = {"low": np.zeros((), np.float32), "high": np.float32(2.0)}
    small, x = centerable("Clip(a, low, high)", **bounds), numbers(1, 3, 6, 6)
    moved = center(small, HERE, *ends_of(small, x)).model
    assert not divisible_tensors(moved, HERE, {}), "a pooling reads it"
    small = divisible()
    moved = center(small, HERE, *ends_of(small, x)).model
    found = split(moved, HERE, {"r": 2, "s": 2}, {})
    assert (found.ranges["r"], found.ranges["s"]) == (3.0, pytest.approx(1.5)), "padding keeps one from being centered"
    for before, after in zip(run_both(small, x * 3), run_both(found.model, x * 3), strict=True):
        np.testing.assert_allclose(after, before, atol=1e-5 * np.abs(before).max())


def test_the_division_that_brings_most_for_its_work_comes_first():
    sites = {"a": Site("p", "c", {"q": 1}), "b": Site("q", "d", {"r": BLOCK})}
    macs = {"p": 100, "q": 100, "r": 100}
    noise = {"a": np.array([1.0]), "b": np.array([3.0])}
    asked = {"sites": sites, "noise": noise, "others": np.zeros(1), "macs": macs}
    first = next_division(**asked, pieces={}, most_added=10.0)
    assert first == {"a": 2}, "1 for 200 is more than 3 for 800"
    assert next_division(**asked, pieces=first, most_added=10.0) == {"a": 2, "b": 2}
    assert next_division(**asked, pieces={}, most_added=0.6) is None
    assert next_division(**asked, pieces={}, most_added=10.0, half={"p"}, most_half=0.3) == {"b": 2}


@pytest.mark.parametrize(("device", "activation"), [("GPU", ""), ("DLA", "Relu(%s)")])
def test_divided_channels_bring_accuracy_in_int8(device, activation, tmp_path):
    path, samples = tmp_path / "small.onnx", tmp_path / "samples.npy"
    small = divisible(activation=activation)
    for tensor in small.graph.initializer:
        if len(tensor.dims) == 4:  # codes of INT8, so that activations make the noise
            weights = rounded_by_output_channel(onnx.numpy_helper.to_array(tensor)).astype(np.float32)
            tensor.CopyFrom(onnx.numpy_helper.from_array(weights, tensor.name))
    onnx.save(small, path)
    np.save(samples, np.random.default_rng(3).standard_normal((30, 3, 6, 6)).astype(np.float32))
    options = {"device": device, "fallback": "GPU", "steps": ["channel-splitting"], "threads": 1, "target": 60.0}
    answer = dryfit.tune(path, samples, tmp_path / "plan", max_added_macs=9.0, **options)
    step = answer.steps[-1]
    assert step.is_taken, step.what
    assert " divided, " in step.what
    assert answer.gain_db > 2 * answer.gain_error_db
    assert 0 < answer.added_macs <= 9
    assert f"add {100 * answer.added_macs:.1f} % to the multiply-accumulates" in str(answer)
    if device == "GPU":
        assert not dryfit.tune(path, samples, max_added_macs=0.0, **options).steps[-1].is_taken


def test_more_layers_are_in_fp16_where_divided_channels_leave_room(samples, monkeypatch):
    small = four("Relu(a)")
    tuner = begun(small, np.load(samples)[:6], 99.0, 0.3)
    first = tuner._verdict
    better = attrs.evolve(first, by_sample=first.by_sample + 1)
    found = tuning._Mixture(tuner.now, "channels of 1 tensor divided", 3, first)
    more = tuning._Mixture(tuner._judge.with_half(tuner.now, frozenset({"node_of_e"})), "1 layer in FP16", 2, better)
    monkeypatch.setattr(tuner, "_split_from", lambda _: found)
    monkeypatch.setattr(tuner, "_mixed_from", lambda start: more if start is tuner.now else None)
    monkeypatch.setattr(tuner, "_ended", lambda mixture: mixture)
    assert tuner._split().what == "1 layer in FP16, channels of 1 tensor divided"
    assert tuner._split().tries == 5
    more = attrs.evolve(more, verdict=first)
    assert tuner._split() is found, "it brings nothing"
    tuner._steps = ["channel-splitting"]
    more = None
    assert tuner._split() is found, "the user wants no layers in FP16"


def test_tensors_whose_division_cuts_segments_are_left_out(monkeypatch):
    small = divisible()
    judge = judge_of(small, np.random.default_rng(3).standard_normal((6, 3, 6, 6)).astype(np.float32))
    tuner = tuning._Tuner(judge, small, 99.0, 0.0, max_added_macs=3.0)
    tuner.begin()
    start = tuner.now
    sites = divisible_tensors(small, HERE, start.ranges)
    noise = {name: np.array([share]) for name, share in zip(sites, (4.0, 2.0, 1.0), strict=True)}
    macs = multiply_accumulates(judge.network(small))
    every = tuner._divisions(start, sites, noise, np.array([9.0]), macs)
    assert {"s", "t"} <= set(every[-1])

    def keeps(candidate):
        before, now = (parameters(one).kernels["node_of_e"].shape[1] for one in (small, candidate.model))
        return before == now  # whether `s`, which this layer reads, is in one piece

    monkeypatch.setattr(tuner, "_keeps_segments", keeps)
    found = tuner._divisions(start, sites, noise, np.array([9.0]), macs)
    assert "s" not in found[-1]
    assert found[-1]["t"] > 1
    monkeypatch.setattr(tuner, "_keeps_segments", lambda _: False)
    assert tuner._divisions(start, sites, noise, np.array([9.0]), macs) == []


def test_divided_channels_are_not_tried_where_the_metric_is_reached(tmp_path):
    path, samples = tmp_path / "small.onnx", tmp_path / "samples.npy"
    onnx.save(divisible(), path)
    np.save(samples, np.random.default_rng(3).standard_normal((10, 3, 6, 6)).astype(np.float32))
    answer = dryfit.tune(path, samples, steps=["channel-splitting"], target=1.0, threads=1)
    assert answer.steps[-1].what == "the metric is reached without"


def test_layers_of_a_divided_layer_in_fp16_are_in_fp16_too():
    small = divisible()
    names = [node.name or f"node_of_{node.output[0]}" for node in small.graph.node]
    start = Candidate(small, {"d": 9.0, "s": 6.0}, half=frozenset(names[2:4]))
    found = divided_candidate(start, {"s": 2}, HERE)
    assert len(found.half) == 2 + 3, "a convolution, an activation and a concatenation"
    added = [name for name, end in found.ranges.items() if name not in start.ranges]
    assert sorted(found.ranges[name] for name in added) == [3.0, 3.0, 9.0]


def test_what_cannot_be_tuned_is_refused(samples):
    with pytest.raises(UnknownNameError, match="weight-rounding"):
        dryfit.tune(four("Relu(a)"), samples, steps=["rounding"])
    with pytest.raises(ConfigError, match="is not supported for a metric"):
        dryfit.tune(four("Relu(a)"), samples, max_loss=1.0)
    with pytest.raises(ConfigError, match="cannot be combined"):
        dryfit.tune(four("Relu(a)"), samples, max_loss=1.0, target=1.0)
    with pytest.raises(ConfigError, match=r"--target: The value must be finite \(found nan\)"):
        dryfit.tune(four("Relu(a)"), samples, target=float("nan"))


@pytest.mark.parametrize(
    ("labels", "limit", "said"),
    [
        ([0] * 7, None, r"found 7; allowed: 20\)"),
        ([0] * 7, 10, r"found 7; allowed: 10, or 20 for all\)"),
        ({"a": 1}, None, "found no list; allowed: 20"),
    ],
)
def test_labels_must_be_as_many_as_the_samples(labels, limit, said, samples):
    with pytest.raises(ConfigError, match=f"one label for each sample.*{said}"):
        dryfit.tune(four("Relu(a)"), samples, metric="top-1", labels=labels, limit=limit)


def test_a_plan_for_dynamic_shapes_is_written_with_q_dq_nodes_and_a_line_that_runs(samples, tmp_path):
    small = four("Relu(a)")
    for value in (*small.graph.input, *small.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "N"
    path = tmp_path / "four.onnx"
    onnx.save(small, path)
    options = {"device": "DLA", "platform": "orin-nx-16", "software": "10.3"}
    steps = ["mixed-precision"]
    answer = dryfit.tune(path, samples, tmp_path / "plan", target=100.0, steps=steps, qdq=True, threads=1, **options)
    translated = onnx.load(answer.files["Q/DQ model"])
    assert "QuantizeLinear" in {node.op_type for node in translated.graph.node}
    words = answer.export_line.split()
    assert words[-6:] == ["--platform", "orin-nx-16", "--software", "10.3", "--shape", "x=1x8x6x6"]
    found = CliRunner().invoke(dryfit_command, [*words[1:], "--scales", str(tmp_path / "board.cache")])
    assert (found.exit_code, "--optShapes=x:1x8x6x6" in found.output) == (0, True), found.output


def test_a_plan_for_a_quantize_method_is_judged_in_its_arithmetic(samples, tmp_path):
    path = tmp_path / "four.onnx"
    onnx.save(four("Relu(a)"), path)
    method = {"quantize_method": "tflite"}
    steps = ["equalization"]
    answer = dryfit.tune(path, samples, tmp_path / "plan", target=99.0, steps=steps, qdq=True, threads=1, **method)
    assert (answer.device, answer.quantize_methods) == ("CPU", ["tflite"])
    assert not any("export trtexec" in getattr(one, "text", "") for one in answer.blocks())
    # The model with Q/DQ nodes, computed by the method, has what the answer expects.
    network = dryfit.network_from_onnx(answer.files["Q/DQ model"], quantize_method="tflite")
    config = dryfit.BuilderConfig()
    config.default_device_type = "CPU"
    config.set_flag(dryfit.BuilderFlag.INT8)
    engine = dryfit.Builder().build_engine(network, config)
    assert any("quantized_convolution" in str(one.kernel) for one in engine.plan.operations)
    context = engine.create_execution_context(1)
    values = np.load(samples)
    chosen = [values[int(name.rpartition("[")[2][:-1])][np.newaxis] for name in answer.reporting]
    exact = [{"y": run_both(onnx.load(path), x)[1]} for x in chosen]
    found = [context.run({"x": x}) for x in chosen]
    assert tuning.worst_sqnr_db(exact, found) == pytest.approx(answer.expected.sqnr_db, abs=1e-6)
    plain = dryfit.tune(path, samples, target=99.0, steps=steps, threads=1, device="CPU")
    assert plain.before.sqnr_db != answer.before.sqnr_db


@pytest.mark.parametrize("device", ["GPU", "DLA"])
def test_corrected_biases_take_mean_errors_back(samples, device):
    """Also where an activation and a wide range make most of what a channel holds round to zero."""
    small = model(
        "a = Conv(x, k, b) r = Relu(a) e = Conv(r, m, c) t = Relu(e) y = Conv(t, n)",
        inputs="float[1,8,6,6] x",
        outputs="float[1,8,6,6] y",
        weights={
            "k": numbers(8, 8, 1, 1) * SPREAD,
            "b": numbers(8) * SPREAD.reshape(8),
            "m": numbers(8, 8, 1, 1) / SPREAD.reshape(1, 8, 1, 1),
            "c": np.full(8, 200, np.float32),  # so that the second activation lets all through
            "n": numbers(8, 8, 1, 1),
        },
    )
    judge = judge_of(small, np.load(samples), device=device)
    candidate = Candidate(small, judge.range_sets([small])[0]["minmax"])
    found = corrected_biases(judge.network(small), judge.probe(candidate), judge.collected)
    # The second layer alone, so that the first one gives it the same inputs: by the device's own kernel.
    second = Corrections({}, {"node_of_e": found.biases["node_of_e"]})
    alone = attrs.evolve(candidate, model=with_corrections(small, HERE, second))

    def outputs(one):
        probe = judge.probe(one)
        (layer,) = [each for each in probe.layers if "node_of_e" in each.layers]
        for feeds in judge.collected:
            probe.run(feeds)
            yield probe.exact(layer.output).copy(), probe.quantized(layer)

    exact, _ = (np.concatenate(each) for each in zip(*outputs(candidate), strict=True))
    before, after = (
        np.abs((np.concatenate([one for _, one in outputs(each)]) - exact).mean(axis=(0, 2, 3)))
        for each in (candidate, alone)
    )
    assert before.max() > 2
    assert after.max() < 0.1 * before.max()


def test_biases_are_corrected_in_sequence_where_layers_before_shift_the_mean(samples):
    """A ReLU behind a coarse range shifts the mean of what follows, which layers that are judged alone do not see."""
    judge = judge_of(four("Relu(a)"), np.load(samples))
    ranges = judge.range_sets([four("Relu(a)")])[0]["minmax"]
    candidate = Candidate(four("Relu(a)"), {**ranges, "r": 0.4 * ranges["r"]})  # it cuts off what is large
    network, probe = judge.network(candidate.model), judge.probe(candidate)

    def shift(found):
        """The mean error of each output channel, in the device's arithmetic."""
        after = attrs.evolve(candidate, model=with_corrections(candidate.model, HERE, found))
        outputs = judge.runs.outputs(after, judge.held)
        errors = [one["y"] - other["y"] for one, other in zip(outputs, judge.exact, strict=True)]
        return np.abs(np.mean(errors, axis=(0, 1, 3, 4))).max()

    before = shift(Corrections({}, {}))
    alone = shift(corrected_biases(network, probe, judge.collected))
    in_sequence = shift(biases_corrected_in_sequence(network, probe, judge.collected))
    assert in_sequence < 0.2 * before
    assert in_sequence < 0.7 * alone


def normalized():
    """Two convolutions, each with a batch normalization, of which the second one has coarse weights."""
    rng = np.random.default_rng(21)
    coarse = rng.uniform(0.3, 0.5, (8, 8, 1, 1))
    coarse[:, 0] = 30  # next to these, all others have a code of 1 or 2
    numbers_of = {"k": (8, 8, 1, 1), "s": (8,), "m": (8,), "n": (8, 8, 1, 1)}
    weights = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in numbers_of.items()}
    weights |= {"l": coarse.astype(np.float32), "g": np.full(8, 0.5, np.float32), "v": np.full(8, 4.0, np.float32)}
    return model(
        "a = Conv(x, k) b = BatchNormalization(a, g, s, m, v) r = Relu(b) c = Conv(r, l) "
        "d = BatchNormalization(c, g, s, m, v) t = Relu(d) y = Conv(t, n)",
        inputs="float[1,8,6,6] x",
        outputs="float[1,8,6,6] y",
        weights=weights,
    )


def test_batch_normalizations_are_folded_and_tell_their_means():
    found = fold_batch_normalizations(normalized(), HERE)
    assert [node.op_type for node in found.model.graph.node] == ["Conv", "Relu", "Conv", "Relu", "Conv"]
    x = numbers(1, 8, 6, 6)
    for before, after in zip(run_both(normalized(), x), run_both(found.model, x), strict=True):
        np.testing.assert_allclose(after, before, atol=1e-5 * np.abs(before).max())
    arrays = {one.name: onnx.numpy_helper.to_array(one) for one in normalized().graph.initializer}
    mean, deviation = found.statistics["b"]
    np.testing.assert_array_equal(mean, arrays["s"])
    np.testing.assert_array_equal(deviation, arrays["g"])
    assert fold_batch_normalizations(four("Relu(a)"), HERE).statistics == {}


@pytest.mark.parametrize(("low", "high"), [(0.0, np.inf), (-0.4, 1.1), (-np.inf, 0.2)])
def test_the_mean_of_a_clipped_normal_value_is_that_of_many_drawn(low, high):
    drawn = np.random.default_rng(8).normal(0.3, 0.7, 400_000)
    assert _clipped_mean(0.3, 0.7, low, high) == pytest.approx(np.clip(drawn, low, high).mean(), abs=0.004)
    assert _clipped_mean(0.3, 0.0, low, high) == pytest.approx(np.clip(0.3, low, high))


def test_biases_by_batch_normalization_take_back_what_rounded_weights_add():
    """Drawn from just the distribution that the normalization says, and equalized and centered on the way."""
    folded = fold_batch_normalizations(normalized(), HERE)
    found = analytic_biases(folded.model, HERE, folded.statistics)
    (second,) = [node for node in folded.model.graph.node if node.input[0] == "r"]
    arrays = {one.name: onnx.numpy_helper.to_array(one).astype(np.float64) for one in folded.model.graph.initializer}
    weights, bias = (arrays[name] for name in second.input[1:])
    mean, deviation = (each.reshape(8, 1) for each in folded.statistics["b"])
    inputs = np.maximum(np.random.default_rng(4).standard_normal((8, 50_000)) * deviation + mean, 0)
    exact = weights.reshape(8, 8) @ inputs + bias[:, np.newaxis]
    coded = rounded_by_output_channel(weights).reshape(8, 8) @ inputs
    name = second.name or f"node_of_{second.output[0]}"
    before = np.abs((coded + bias[:, np.newaxis] - exact).mean(axis=1))
    after = np.abs((coded + found.biases[name].astype(np.float64)[:, np.newaxis] - exact).mean(axis=1))
    assert before.max() > 0.005
    assert after.max() < 0.05 * before.max()
    factors, shifts = {"b": np.full(8, 2.0)}, {"b": np.ones(8)}
    np.testing.assert_allclose(shifted(scaled(folded.statistics, factors), shifts)["b"][0], 2 * mean[:, 0] - 1)


def test_a_model_with_batch_normalizations_is_tuned_without_them(samples, tmp_path):
    path = tmp_path / "normalized.onnx"
    onnx.save(normalized(), path)
    answer = dryfit.tune(path, samples, tmp_path / "plan", steps=["bias-correction"], threads=1)
    assert "2 batch normalizations folded into convolutions" in answer.steps[0].what
    assert answer.steps[-1].what.startswith("biases of 2 layers corrected by ")
    assert "the best of 3" in answer.steps[-1].what, "one of them by batch normalization"
    x = np.load(samples)[:1]
    written = onnx.load(tmp_path / "plan" / "model.onnx")
    assert not any(node.op_type == "BatchNormalization" for node in written.graph.node)
    if not answer.steps[-1].is_taken:
        for before, after in zip(run_both(normalized(), x), run_both(written, x), strict=True):
            np.testing.assert_allclose(after, before, atol=1e-4 * np.abs(before).max())


def test_precisions_that_the_user_sets_stay_and_are_in_the_files(samples, tmp_path):
    path = tmp_path / "normalized.onnx"
    onnx.save(normalized(), path)
    first, second, *_ = (layer.name for layer in dryfit.network_from_onnx(path).layers if layer.kind == "convolution")
    rules = f"{first}:fp16,{second}:int8"
    steps = ["bias-correction", "mixed-precision"]
    answer = dryfit.tune(
        path, samples, tmp_path / "plan", steps=steps, target=100.0, layer_precisions=rules, max_macs=1
    )
    assert answer.files["Layer precisions"].read_text().startswith(f"{first}:fp16,")
    assert f",{second}:int8" in answer.files["Layer precisions"].read_text()
    assert first in answer.half_layers, "counted as FP16"
    assert second not in answer.half_layers, "never chosen for FP16"
    assert "folded" not in answer.steps[0].what, "layers with a rule keep their names"
    scales = {"calibration_cache": answer.files["Calibration cache"], "precision": "int8,fp16"}
    listed = f"@{answer.files['Layer precisions']}"
    checked = dryfit.check(answer.files["Model"], layer_precisions=listed, precision_constraints="prefer", **scales)
    assert {first, second} <= {layer.name for layer in checked.layers}, "rules for unknown layers would be refused"


@pytest.mark.parametrize("device", ["GPU", "DLA"])
def test_corrected_biases_raise_the_sqnr(samples, device):
    small = four("Relu(a)")
    judge = judge_of(small, np.load(samples), device=device)
    candidate = Candidate(small, judge.range_sets([small])[0]["minmax"])
    found = corrected_biases(judge.network(small), judge.probe(candidate), judge.collected)
    better = attrs.evolve(candidate, model=with_corrections(small, HERE, found))
    assert judge.verdict(better).sqnr_db > judge.verdict(candidate).sqnr_db + 1


def test_a_mean_error_that_samples_do_not_agree_on_is_left(samples):
    judge = judge_of(four("Relu(a)"), np.load(samples)[:1])
    candidate = Candidate(four("Relu(a)"), judge.range_sets([four("Relu(a)")])[0]["minmax"])
    found = corrected_biases(judge.network(candidate.model), judge.probe(candidate), judge.collected)
    assert not found.biases, "one sample tells no standard error"


# What is selected by --------------------------------------------------------------------------------------------------


def test_parts_have_nothing_in_common_and_are_spread():
    names = [str(index) for index in range(64)]
    parts = divided(names)
    assert sorted([*parts.learning, *parts.selecting, *parts.reporting], key=int) == names
    assert [len(one) for one in (parts.learning, parts.selecting, parts.reporting)] == [35, 17, 12]
    for part in (parts.selecting, parts.reporting):
        assert int(part[0]) < 8
        assert int(part[-1]) > 55
    assert [len(one) for one in attrs.astuple(divided(names[:5]))] == [2, 2, 1]
    with pytest.raises(CalibrationError, match="at least five"):
        divided(names[:4])


def verdict(values):
    return Verdict(0.0, 0.0, np.array(values, np.float64))


def test_a_gain_convinces_by_its_standard_error_and_the_number_of_tries():
    before = verdict([20, 25, 30, 18, 22, 27])
    steady = gain(before, verdict(before.by_sample + np.array([0.9, 1.1, 1.0, 1.2, 0.8, 1.0])))
    assert steady.is_convincing
    assert steady.mean == pytest.approx(1)
    by_one = verdict(before.by_sample + np.array([9, 0, -1, 0.5, -0.5, -2]))
    assert gain(before, by_one).mean == pytest.approx(1)
    assert not gain(before, by_one).is_convincing, "one sample makes all of the gain"
    between = verdict(before.by_sample + np.array([2, 1, 0, 1.5, 0, 1.5]))
    assert gain(before, between).is_convincing
    assert not gain(before, between, tries=40).is_convincing, "the best of forty"
    assert not gain(verdict([20]), verdict([30])).is_convincing
    assert not gain(before, verdict(before.by_sample + 0.01)).is_convincing, "sure, but worth nothing"


def test_few_samples_do_not_reach_a_metric_by_chance():
    assert Verdict(20.1, 20.1, np.zeros(17)).reaches(20.0, is_share=False)
    assert not Verdict(20.1, 20.1, np.zeros(17), metric_error=0.2).reaches(20.0, is_share=False)
    assert Verdict(20.1, 20.1, np.zeros(17), metric_error=0.05).reaches(20.0, is_share=False)
    assert not Verdict(30.0, 100.0, np.zeros(17)).reaches(97.0, is_share=True), "17 of 17 may be 18 of 19"
    assert Verdict(30.0, 100.0, np.zeros(32)).reaches(97.0, is_share=True)


def test_the_error_of_a_mean_by_the_jackknife_is_its_standard_error():
    drawn = np.random.default_rng(2).normal(20, 3, 17)
    without = [np.delete(drawn, index).mean() for index in range(17)]
    assert jackknife_error(without) == pytest.approx(drawn.std(ddof=1) / np.sqrt(17))
    assert jackknife_error([np.inf, np.inf]) == 0
    assert jackknife_error([]) == 0


def test_labels_reach_each_sample_that_a_metric_judges(samples, tmp_path):
    path = tmp_path / "four.onnx"
    onnx.save(four("Relu(a)"), path)
    values = np.load(samples)
    exact = [run_both(four("Relu(a)"), one[np.newaxis])[1] for one in values]
    labels = [int(one.argmax()) for one in exact]
    answer = dryfit.tune(path, samples, metric="top-1", labels=labels, steps=["mixed-precision"], threads=1)
    assert answer.metric_fp32 == 100
    assert 0 < answer.before.metric <= 100


def test_a_search_without_gains_rarely_finds_one():
    random = np.random.default_rng(3)
    before, taken = verdict(np.zeros(12)), 0
    for _ in range(400):
        best = max((verdict(random.standard_normal(12)) for _ in range(8)), key=lambda one: one.score)
        taken += gain(before, best, tries=8).is_convincing
    assert taken < 0.08 * 400


@pytest.mark.parametrize(("freedom", "exact"), [(4, 2.1318), (9, 1.8331), (30, 1.6973)])
def test_the_quantile_is_that_of_published_tables(freedom, exact):
    assert student_quantile(0.95, freedom) == pytest.approx(exact, rel=0.02)


def test_probabilities_count_by_their_logits():
    logits = np.array([[4.0, 1.0, -2.0, 0.5]])
    exact = np.exp(logits) / np.exp(logits).sum()
    softmax = {"p": Probability.SOFTMAX}
    # The same factor for all: the logits differ by a constant.
    assert by_sample_db([{"p": exact}], [{"p": 0.5 * exact}], softmax) == pytest.approx(LARGEST_DB, abs=1e-6)
    moved = exact.copy()
    moved[0, 2] *= 2
    (found,) = by_sample_db([{"p": exact}], [{"p": moved}], softmax)
    gap = np.array([0, 0, np.log(2), 0]) - np.log(2) / 4
    centred = logits - logits.mean()
    assert found == pytest.approx(10 * np.log10((centred**2).sum() / (gap**2).sum()))
    (plain,) = by_sample_db([{"p": exact}], [{"p": moved}], {})
    assert plain > found + 20, "the energy of probabilities is that of the likely ones"


def test_a_cell_without_an_object_counts_as_one_with_an_object():
    """A constant that sigmoids are off by is an error, other than for a softmax."""
    logits = np.array([[-9.0, -6.0, -7.0, 2.0]])

    def sigmoid(values):
        return 1 / (1 + np.exp(-values))

    def found(changed):
        (one,) = by_sample_db([{"p": sigmoid(logits)}], [{"p": sigmoid(changed)}], {"p": Probability.SIGMOID})
        return one

    cells = [found(logits + 0.25 * np.eye(4)[[index]]) for index in range(4)]
    assert cells == pytest.approx([cells[0]] * 4)
    assert found(logits + 0.125) == pytest.approx(cells[0])
    far = np.array([[12.0, 0.0]])
    exact, rounded = [{"p": sigmoid(far)}], [{"p": sigmoid(far).astype(np.float16)}]
    assert by_sample_db(exact, rounded, {"p": Probability.SIGMOID}) > 60, "FP16 has no value between this and 1"


def test_probabilities_are_found_behind_moves_of_values():
    several = model(
        "s = Sigmoid(x) a = Transpose<perm=[0,2,1]>(s) p = Softmax<axis=1>(x) b = Reshape(p, shape) c = Relu(s)",
        inputs="float[1,4,6] x",
        outputs="float[1,6,4] a, float[1,24] b, float[1,4,6] c",
        weights={"shape": np.array([1, 24], np.int64)},
    )
    network = dryfit.network_from_onnx(several.SerializeToString())
    assert probability_outputs(network) == {"a": Probability.SIGMOID, "b": Probability.SOFTMAX}


def test_a_step_that_lowers_the_sqnr_of_all_samples_together_is_not_taken(samples, monkeypatch):
    small = four("Relu(a)")
    judge = judge_of(small, np.load(samples)[:6])
    tuner = tuning._Tuner(judge, small, 100.0, 0.1)
    tuner.begin()
    before = tuner._verdict
    other = attrs.evolve(tuner.now, half=frozenset({"node_of_y"}))
    for loss, is_taken in ((0.4, True), (0.6, False)):
        verdict = Verdict(before.sqnr_db - loss, 0.0, before.by_sample + 1 + 0.01 * np.arange(6))
        monkeypatch.setattr(Judge, "verdict", lambda self, candidate, verdict=verdict: verdict)
        monkeypatch.setattr(tuner, "_mixed", lambda: tuning._Proposal(other, "one layer in FP16"))
        tuner._verdict = before
        tuner.take("mixed-precision")
        assert tuner.steps[-1].is_taken == is_taken
    assert tuner.steps[-1].what.endswith("the sqnr over all samples falls too far")


def test_a_step_is_not_refused_for_probabilities_that_hardly_any_sample_has():
    """The energy of a sigmoid is that of the cells that see an object: in samples without one, of nothing."""
    logits = np.array([[-9.0, -8.0, -7.0, -5.0]] * 3)
    exact, found, better = (
        [{"p": 1 / (1 + np.exp(-each))[None]} for each in logits + change]
        for change in (0.0, 0.3, [0.2, 0.2, 0.2, 0.31])
    )
    kinds = {"p": Probability.SIGMOID}
    assert whole_db(exact, better, kinds) > whole_db(exact, found, kinds)
    assert whole_db(exact, better, {}) < whole_db(exact, found, {})
    assert whole_db(exact, exact, kinds) == np.inf
    small = four("Relu(a)")
    tuner = tuning._Tuner(judge_of(small, numbers(6, 8, 6, 6)), small, 100.0, 0.1)
    before, after = Verdict(2.5, 2.5, np.zeros(6), logit_db=12.5), Verdict(1.0, 1.0, np.ones(6), logit_db=14.1)
    assert tuner._is_harmless(before, after)
    assert not tuner._is_harmless(after, before)


def test_a_model_of_another_format_is_refused(repository, tmp_path):
    pytest.importorskip("tflite")
    with pytest.raises(ConfigError, match="Tuning requires an ONNX model") as refused:
        dryfit.tune(repository / "examples" / "tflite" / "words.tflite", tmp_path)
    assert refused.value.found == "a TFLite model"
