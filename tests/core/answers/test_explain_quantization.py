"""`dryfit.explain_quantization`: precisions, scales and paths of Q/DQ as fields."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.core.onnx.models import model

import dryfit
from dryfit.answers.traced_quantization import QuantizationOutcome
from dryfit.builder.precision.chosen import PrecisionCause
from dryfit.errors import UnknownNameError
from dryfit.quantization.scale_table import RangeOrigin

OPTIONS: Any = {"shape": {"image": (1, 1, 8, 8)}}


def test_a_model_without_scales_is_asked_about_int8_and_misses_them(digits_model: Path) -> None:
    answer = dryfit.explain_quantization(digits_model, **OPTIONS)
    assert answer.assumed == ["--device GPU", "--precision int8", "--fallback none"]
    assert {entry.origin for entry in answer.tensors} == {RangeOrigin.MISSING}
    (first,) = (one for one in answer.layers if one.name == "conv1")
    assert (first.precision, first.cause) == ("FLOAT", PrecisionCause.NO_SCALES)
    assert "image" in first.missing_scales
    assert answer.to_dict()["tensors"][0]["origin"] == "missing"


def test_a_network_and_a_config_have_their_own_ranges(digits_model: Path) -> None:
    network = dryfit.network_from_onnx(digits_model)
    network.inputs[0].shape = (1, 1, 8, 8)
    network.inputs[0].dynamic_range = (-127.0, 127.0)
    config = dryfit.BuilderConfig()
    config.set_flag(dryfit.BuilderFlag.INT8)
    by_config = dryfit.explain_quantization(network, config=config)
    by_options = dryfit.explain_quantization(network, precision="int8")
    for answer in (by_config, by_options):
        (image,) = (entry for entry in answer.tensors if entry.tensor == "image")
        assert (image.scale, image.range, image.origin) == (1.0, (-127.0, 127.0), RangeOrigin.BY_HAND)
    assert by_config.layers == by_options.layers


def test_each_quantization_says_where_it_went() -> None:
    parsed = model(
        "q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z) y = Relu(d)",
        inputs="float[1,4,8,8] x",
        outputs="float[1,4,8,8] y",
        weights={"s": np.float32(0.5), "z": np.int8(0)},
    )
    answer = dryfit.explain_quantization(parsed)
    (quantize, dequantize) = answer.quantizations
    assert (quantize.tensor, quantize.type, quantize.scale) == ("x", "INT8", 0.5)
    assert (quantize.outcome, quantize.path_text) == (
        QuantizationOutcome.ALONE,
        "the caller gives 'x' in floating point",
    )
    assert dequantize.granularity == "per tensor"
    assert answer.tensors == []
    assert answer.summary.quantizations == 2


def test_one_layer_and_a_name_that_does_not_exist(digits_model: Path) -> None:
    answer = dryfit.explain_quantization(digits_model, "conv1", **OPTIONS)
    assert [one.name for one in answer.layers] == ["conv1"]
    assert answer.summary.layers == 1
    with pytest.raises(UnknownNameError, match="Did you mean 'conv1'"):
        dryfit.explain_quantization(digits_model, "convo1", **OPTIONS)
