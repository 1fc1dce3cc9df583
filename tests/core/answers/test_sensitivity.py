"""`dryfit.sensitivity`: what the quantization of single layers and tensors costs."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.core.onnx.models import model, numbers

import dryfit
from dryfit.answers.sensitivity.causes import causes, few_that_explain
from dryfit.calibration.jobs import SampleCount
from dryfit.errors import CalibrationError, ConfigError

Image = pytest.importorskip("PIL.Image")

THREE = "c = Conv(x, u) r = Relu(c) d = Conv(r, v) s = Relu(d) e = Conv(s, w) y = Softmax<axis=1>(e)"


def weights(**changes):
    found = {name: numbers(8, 8, 3, 3)[:, :, 1:2, 1:2].copy() for name in "uvw"}
    return {**found, **changes}


@pytest.fixture
def place(tmp_path):
    """Three convolutions; the second one's weights have rows of which one value hides all others from INT8."""
    v = numbers(8, 8, 1, 1).copy()
    v[:, 3] *= 2000
    u = weights()["u"].copy()
    u[3] = 0  # what the large weights read is always zero
    small = model(THREE, inputs="float[1,8,6,6] x", outputs="float[1,8,6,6] y", weights=weights(u=u, v=v))
    path = tmp_path / "small.onnx"
    path.write_bytes(small.SerializeToString())
    np.save(tmp_path / "samples.npy", np.random.default_rng(2).standard_normal((4, 8, 6, 6)).astype(np.float32))
    return tmp_path


def asked(place, **options):
    return dryfit.sensitivity(place / "small.onnx", place / "samples.npy", threads=1, **options)


def test_the_layer_with_bad_weights_costs_most_and_by_its_weights(place):
    answer = asked(place)
    first = answer.layers[0]
    assert first.output == "s"
    assert first.by_weights > 0.9
    assert all(one.by_weights < 0.5 for one in answer.layers[1:])
    assert first.share == max(one.share for one in answer.layers)
    assert sum(one.share for one in answer.layers) == pytest.approx(1)
    assert {one.tensor for one in answer.tensors} >= {"x", "r"}
    assert answer.scales == "by entropy2 on these samples"


def test_processes_and_pauses_change_nothing(place):
    whole = json.loads(asked(place).to_json())

    class Stopping(SampleCount):
        @property
        def is_stopped(self):
            return self.images == 2

    with pytest.raises(KeyboardInterrupt) as stopped:
        asked(place, state=place / "kept", progress=Stopping)
    assert "2 of 4 samples were measured" in stopped.value.__notes__[0]
    resumed = json.loads(asked(place, state=place / "kept", resume=True).to_json())
    parallel = json.loads(asked(place, jobs=2).to_json())
    assert {**resumed, "state": None} == whole == parallel
    with pytest.raises(CalibrationError, match="belong to another run"):
        asked(place, state=place / "kept", resume=True, device="DLA")


def test_a_metric_of_the_user_is_measured_layer_by_layer(place):
    script = place / "mine.py"
    script.write_text("def largest(outputs, labels):\n    return float(outputs['y'].max()) + labels\n")
    answer = asked(place, metric=f"{script}:largest", labels=10.0)
    assert 10 < answer.metric_fp32 <= 11
    assert len({one.metric for one in answer.layers}) > 1


def test_labels_of_samples_beyond_the_limit_are_left_out(place):
    labels = [0, 1, 2, 3]
    few = asked(place, metric="top-1", labels=labels[:2], limit=2)
    assert asked(place, metric="top-1", labels=labels, limit=2) == few
    with pytest.raises(ConfigError, match=r"found 3; allowed: 2, or 4 for all"):
        asked(place, metric="top-1", labels=labels[:3], limit=2)


def test_samples_are_added_to_kept_results_only_where_ranges_do_not_depend_on_them(place):
    asked(place, state=place / "kept", limit=2)
    with pytest.raises(CalibrationError, match="ranges, which are of all samples without --calibration-cache"):
        asked(place, state=place / "kept", resume=True)
    scales = place / "scales.cache"
    dryfit.calibrate(place / "small.onnx", place / "samples.npy", output=scales)
    asked(place, state=place / "other", limit=2, calibration_cache=scales)
    resumed = asked(place, state=place / "other", resume=True, calibration_cache=scales)
    assert resumed.layers == asked(place, calibration_cache=scales).layers


def test_pictures_get_the_shape_that_is_asked_for(tmp_path):
    kernels = {"u": numbers(8, 3, 1, 1), "v": numbers(8, 8, 1, 1)}
    nodes, shape = "c = Conv(x, u) r = Relu(c) d = Conv(r, v) y = Softmax<axis=1>(d)", "float[N,8,H,W] y"
    small = model(nodes, inputs="float[N,3,H,W] x", outputs=shape, weights=kernels)
    (tmp_path / "small.onnx").write_bytes(small.SerializeToString())
    pictures = np.random.default_rng(3).integers(0, 256, (2, 10, 12, 3), dtype=np.uint8)
    for index, picture in enumerate(pictures):
        Image.fromarray(picture).save(tmp_path / f"{index}.png")
    answer = dryfit.sensitivity(tmp_path / "small.onnx", tmp_path, threads=1, shape={"x": (1, 3, 8, 8)})
    assert answer.samples == 2
    assert {one.output for one in answer.layers} >= {"r"}


def test_a_model_with_q_dq_nodes_is_measured_with_its_own_scales(place):
    scales = place / "scales.cache"
    dryfit.calibrate(place / "small.onnx", place / "samples.npy", output=scales)
    implicit = asked(place, calibration_cache=scales)
    dryfit.translate(place / "small.onnx", place / "qdq.onnx", to="qdq", samples=0, calibration_cache=scales)
    explicit = dryfit.sensitivity(place / "qdq.onnx", place / "samples.npy", threads=1)
    assert explicit.scales == "of the model's Q/DQ nodes"
    assert {one.layer for one in explicit.layers} <= {one.layer for one in implicit.layers}
    ends = {one.tensor: one.threshold for one in implicit.tensors}
    assert explicit.tensors
    for one in explicit.tensors:
        assert one.threshold == pytest.approx(ends[one.tensor], rel=1e-6)
    assert all(one.by_weights == 0 for one in explicit.layers), "its weights are codes as they are"


def test_zero_points_and_quantize_methods_are_refused(place):
    text = "q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z) y = Relu(d)"
    constants = {"s": np.float32(0.1), "z": np.int8(3)}
    small = model(text, inputs="float[1,8,6,6] x", outputs="float[1,8,6,6] y", weights=constants)
    with pytest.raises(ConfigError, match="zero point"):
        dryfit.sensitivity(small, place / "samples.npy", threads=1, device="CPU", precision="int8")
    with pytest.raises(ConfigError, match=r"judged alone in the arithmetic of a device \(found tflite\)"):
        asked(place, quantize_method="tflite")


def test_a_device_without_int8_layers_is_refused(place):
    with pytest.raises(ConfigError, match="No layer runs in INT8"):
        asked(place, precision="fp16")


def test_causes_are_told_apart():
    def statistics(largest, error=0.0, squared=1.0, clipped=0.0):
        count = len(largest)
        return np.array([largest, *(np.full(count, one) for one in (error, squared, clipped))])

    assert causes(statistics([1.0] * 32), 100, 1.0) == []
    assert "clipped range: values beyond 0.5" in causes(statistics([1.0] * 32, clipped=0.9), 100, 0.5)[0]
    assert "outlier channels: 0 reach 9" in causes(statistics([9.0] + [1.0] * 31), 100, 9.0)[0]
    assert "unequal channels" in causes(statistics([9.0] * 8 + [0.5] * 24), 100, 9.0)[0]
    assert "shifted mean: 64 %" in causes(statistics([1.0] * 32, error=8.0), 100, 1.0)[0]
    assert few_that_explain([5.0, 90.0, 5.0], 0.9) == 1
