"""`dryfit.compare` and `dryfit.compare_methods`: records of models, networks and engines."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.onnx.models import model, numbers

import dryfit


@pytest.fixture
def sums():
    """A convolution and a ReLU, whose results FP16 rounds."""
    parsed = model(
        "c = Conv(x, w) y = Relu(c)",
        inputs="float[1,4,6,6] x",
        outputs="float[1,4,6,6] y",
        weights={"w": numbers(4, 4, 1, 1)},
    )
    for node in parsed.graph.node:
        node.name = f"the_{node.output[0]}"
    return parsed


def test_a_model_in_fp16_differs_from_its_definition(sums):
    answer = dryfit.compare(
        sums, data={"x": numbers(1, 4, 6, 6)}, precision="fp16", device="DLA", fallback="GPU", fail_below=1000
    )
    (side,) = answer.sides
    assert (side.name, side.differing > 0, side.first_error is not None) == ("fp32", True, True)
    (output,) = (one for one in answer.tensors if one.is_output)
    assert output.differences["fp32"].error > 0
    assert [one.failed for one in answer.conditions] == [True]
    assert answer.summary_line() == f"{side.differing} of {side.compared} tensors differ from fp32"
    assert "Against fp32" in str(answer)


def test_an_engine_is_compared_as_it_is_and_takes_no_options(sums):
    network = dryfit.network_from_onnx(sums)
    engine = dryfit.Builder().build_engine(network, dryfit.BuilderConfig())
    feeds = [{"x": numbers(1, 4, 6, 6, seed=seed)} for seed in range(2)]
    answer = dryfit.compare(engine, data=feeds)
    assert (answer.samples, answer.device) == (["sample 0", "sample 1"], "GPU")
    with pytest.raises(dryfit.ConfigError, match="Build options cannot be changed for a built engine"):
        dryfit.compare(engine, data=feeds, precision="fp16")


def test_a_config_stays_as_it_was(sums):
    config = dryfit.BuilderConfig()
    dryfit.compare(dryfit.network_from_onnx(sums), config, data={"x": numbers(1, 4, 6, 6)})
    assert not config.get_flag(dryfit.BuilderFlag.REFIT)


def test_methods_give_records_of_codes():
    parsed = model(
        "q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z) w = DequantizeLinear(k, t, z) c = Conv(d, w) "
        "r = QuantizeLinear(c, u, z) y = DequantizeLinear(r, u, z)",
        inputs="float[1,4,6,6] x",
        outputs="float[1,4,6,6] y",
        weights={
            "k": np.random.default_rng(0).integers(-100, 100, (4, 4, 1, 1)).astype(np.int8),
            **{name: np.float32(value) for name, value in {"s": 0.05, "t": 0.01, "u": 0.1}.items()},
            "z": np.int8(0),
        },
    )
    answer = dryfit.compare_methods(parsed, ["tflite", "onnx"], data={"x": numbers(1, 4, 6, 6)})
    assert [one.name for one in answer.methods] == ["tflite", "onnx"]
    assert answer.layers[0].differences["onnx"].elements == 4 * 36
    assert answer.summary_line().startswith("onnx: ")
    with pytest.raises(dryfit.ConfigError, match="Leave out --device"):
        dryfit.compare_methods(parsed, ["tflite", "onnx"], data={}, device="DLA")
