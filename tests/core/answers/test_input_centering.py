"""Inputs from 0 up are stored on both sides of zero, so that INT8 has a code for each level."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import onnx
import pytest
from tests.core.onnx.models import model, numbers

import dryfit
from dryfit.answers.tuning.input_centering import center_inputs
from dryfit.answers.tuning.judge import Judge
from dryfit.onnx.external_data import ExternalData
from dryfit.quantization.cache_forms import read_ranges

HERE = ExternalData(None)
PIXELS = np.random.default_rng(2).integers(0, 256, (12, 3, 10, 10)).astype(np.float32)


def reading(pads="pads=[1,1,1,1]", second=None, **extra):
    """A picture that one or two convolutions read."""
    text = f"a = Conv<{pads}>(x, k, b) r = Relu(a) y = Conv(r, n) "
    if second is not None:
        text += f"z = {second}"
    return model(
        text,
        inputs="float[1,3,10,10] x",
        outputs="float[1,4,p,q] y" if second is None else "float[1,4,p,q] y, float[1,4,r,s] z",
        weights={"k": numbers(4, 3, 3, 3) / 400, "b": numbers(4), "n": numbers(4, 4, 1, 1), **extra},
    )


def outputs(small, x):
    onnxruntime = pytest.importorskip("onnxruntime", reason="ONNX Runtime is the oracle of this test")
    session = onnxruntime.InferenceSession(small.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})


@pytest.mark.parametrize("pads_below_kernel", [False, True])
@pytest.mark.parametrize(
    "pads", ["pads=[1,1,1,1]", "pads=[0,1,2,0],strides=[2,2]", "pads=[0,0,0,0]", 'auto_pad="VALID"']
)
def test_a_model_with_centered_inputs_computes_the_same(pads, pads_below_kernel):
    small = reading(pads)
    found = center_inputs(small, HERE, {"x": (0.0, 255.0)}, pads_below_kernel=pads_below_kernel)
    assert found.layers == {"x_shift"}
    for before, after in zip(outputs(small, PIXELS[:1]), outputs(found.model, PIXELS[:1]), strict=True):
        np.testing.assert_allclose(after, before, atol=1e-5 * np.abs(before).max())


def test_each_level_of_a_picture_has_a_code_of_its_own():
    for low, high in ((0.0, 255.0), (0.0, 1.0), (16.0, 235.0)):
        found = center_inputs(reading(), HERE, {"x": (low, high)})
        ((tensor, end),) = found.ranges.items()
        every = onnx.ModelProto()
        every.CopyFrom(found.model)
        every.graph.output.append(onnx.helper.make_tensor_value_info(tensor, 1, None))
        levels = low + (high - low) / 255 * PIXELS[:1]
        codes = outputs(every, levels)[-1] / (end / 127)
        inside = codes[:, :, 1:-1, 1:-1]
        np.testing.assert_allclose(inside, PIXELS[:1] - 128, atol=1e-3)


def test_kernels_can_be_larger_than_their_padding():
    found = center_inputs(reading("pads=[0,1,2,0]"), HERE, {"x": (0.0, 255.0)}, pads_below_kernel=True)
    (shift,) = [layer for layer in dryfit.network_from_onnx(found.model).layers if layer.name == "x_shift"]
    assert shift.kernel.shape == (3, 1, 3, 2)
    for size, *sides in zip(shift.kernel_size_nd, shift.pre_padding, shift.post_padding, strict=True):
        assert max(sides) < size


def test_padding_that_strides_do_not_reach_makes_no_kernel_larger():
    small = reading("pads=[1,1,1,1],strides=[2,2]")
    found = center_inputs(small, HERE, {"x": (0.0, 255.0)}, pads_below_kernel=True)
    (shift,) = [layer for layer in dryfit.network_from_onnx(found.model).layers if layer.name == "x_shift"]
    assert shift.kernel.shape == (3, 1, 2, 2), "of 10 rows, the last sum reads rows 7 to 9"
    for size, *sides in zip(shift.kernel_size_nd, shift.pre_padding, shift.post_padding, strict=True):
        assert max(sides) < size
    np.testing.assert_allclose(outputs(found.model, PIXELS[:1])[0], outputs(small, PIXELS[:1])[0], atol=1e-3)


@pytest.mark.parametrize(
    ("small", "ends"),
    [
        (reading(), (-1.0, 1.0)),
        (reading(), (-0.75, 1.0)),
        (reading(), (0.0, 0.0)),
        (reading('auto_pad="SAME_UPPER"'), (0.0, 255.0)),
        (reading(second="Relu(x)"), (0.0, 255.0)),
        (reading(second="Conv<pads=[0,0,0,0]>(x, k)"), (0.0, 255.0)),
        (reading(second="Conv<pads=[1,1,1,1]>(x, x)"), (0.0, 255.0)),
    ],
)
def test_an_input_that_nothing_can_absorb_a_shift_of_or_that_gains_little_stays(small, ends):
    found = center_inputs(small, HERE, {"x": ends})
    assert not found.layers
    assert not found.ranges


def test_an_input_is_shifted_once_for_several_convolutions():
    small = reading(second="Conv<pads=[1,1,1,1],strides=[2,2]>(x, k)")
    found = center_inputs(small, HERE, {"x": (0.0, 255.0)})
    for before, after in zip(outputs(small, PIXELS[:1]), outputs(found.model, PIXELS[:1]), strict=True):
        np.testing.assert_allclose(after, before, atol=1e-5 * np.abs(before).max())
    assert sum(node.op_type == "Conv" for node in found.model.graph.node) == 4


@pytest.mark.parametrize("device", ["GPU", "DLA"])
def test_an_input_of_pixels_around_zero_gets_the_codes_of_its_values(device, tmp_path):
    path, samples = tmp_path / "small.onnx", tmp_path / "samples.npy"
    codes = np.random.default_rng(1).integers(-126, 127, (4, 3, 3, 3))
    codes[:, 0, 0, 0] = 127
    onnx.save(reading(k=codes.astype(np.float32) / 1000), path)
    # Another range than that of 127 steps puts these values halfway between two codes.
    pixels = np.random.default_rng(0).integers(-68, -60, (12, 3, 10, 10))
    pixels[:, :, 0, 0], pixels[:, :, 1, 1] = 128, -127
    np.save(samples, (pixels / 127.5).astype(np.float32))
    answer = dryfit.tune(path, samples, tmp_path / "tuned", device=device, fallback="GPU", steps=["input-centering"])
    (step,) = answer.steps[2:]
    assert step.is_taken, step.what
    assert step.what == "1 input with codes for its 8-bit values"
    assert not answer.half_layers
    assert read_ranges(tmp_path / "tuned" / "model.cache")["x"].threshold == pytest.approx(127 / 127.5, rel=1e-5)


@pytest.mark.parametrize(
    "values", [np.linspace(-1, 1, 999), np.arange(-127.5, 128), np.arange(-3.0, 4), np.arange(256.0), np.zeros(9)]
)
def test_other_inputs_have_no_grid_that_int8_holds(values):
    judge = SimpleNamespace(collected=[{"x": values.astype(np.float32)}])
    assert Judge.input_grids(judge) == {}


@pytest.mark.parametrize(("device", "kernel"), [("GPU", 1), ("DLA", 3)])
def test_a_plan_keeps_the_layer_that_shifts_in_fp16(device, kernel, tmp_path):
    path, samples = tmp_path / "small.onnx", tmp_path / "samples.npy"
    onnx.save(reading(), path)
    # Dark pictures with one bright pixel: half of their levels are lost without a shift.
    dark = PIXELS % 8
    dark[:, :, 0, 0], dark[:, :, 1, 1] = 255, 0
    np.save(samples, dark)
    steps = ["input-centering"]
    answer = dryfit.tune(path, samples, tmp_path / "tuned", device=device, fallback="GPU", steps=steps, max_macs=0.5)
    (step,) = answer.steps[2:]
    assert step.is_taken, step.what
    assert step.what.startswith("1 input shifted in FP16")
    assert answer.half_layers == ["x_shift"]
    assert answer.segments[1] <= answer.segments[0]
    (shift,) = [
        one for one in dryfit.network_from_onnx(tmp_path / "tuned" / "model.onnx").layers if one.name == "x_shift"
    ]
    assert shift.kernel_size_nd == (kernel, kernel)
    without = dryfit.tune(path, samples, device=device, fallback="GPU", steps=steps, max_macs=0.01)
    assert without.steps[-1].what == "the layers that shift in FP16 exceed the limit of multiply-accumulates"
