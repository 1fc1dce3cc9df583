"""The plugin passes the kit for layer plugins, on real numbers and codes, and computes what the Q/DQ around it mean."""

from __future__ import annotations

import numpy as np
import pytest
from quantized_swish import LARGEST, QuantizedSwish, swish, table_of

import dryfit
from dryfit import DataType
from dryfit.reference.executor import run_reference
from dryfit.testing.layer_plugin_conformance import LayerPluginConformance

SCALES = {"input_scales": (np.array(0.05, np.float32),), "output_scales": (np.array(0.03, np.float32),)}
CODES = np.arange(256, dtype=np.uint8).reshape(1, 4, 8, 8)


class TestQuantizedSwish(LayerPluginConformance):
    plugin = QuantizedSwish()
    examples = [
        ({}, [np.linspace(-8, 8, 24, dtype=np.float32).reshape(1, 2, 3, 4)]),
        ({"beta": 0.5}, [np.linspace(-8, 8, 6, dtype=np.float16)]),
        ({"beta": 2.0, **SCALES}, [CODES.view(np.int8)]),
        ({"beta": 2.0, **SCALES}, [CODES.view(DataType.FP8.numpy)]),
    ]

    def oracle(self, fields, inputs):
        (x,) = inputs
        real = x.astype(np.float32)
        if not fields["input_scales"]:
            return [real / (1 + np.exp(-fields["beta"] * real.astype(np.float64)))]
        real = real * fields["input_scales"][0]
        real = (real / (1 + np.exp(-fields["beta"] * real))) / fields["output_scales"][0]
        dtype = DataType.from_numpy(x.dtype)
        return [np.clip(np.rint(real) if dtype is DataType.INT8 else real, *LARGEST[dtype]).astype(x.dtype)]


@pytest.mark.parametrize("dtype", list(LARGEST))
def test_the_table_is_what_dequantize_swish_and_quantize_give_for_every_code(dtype):
    network = dryfit.Network("pair")
    x = network.add_input("x", dtype, CODES.shape)
    scales = [network.add_constant((), scale).get_output(0) for (scale,) in SCALES.values()]
    real = network.add_dequantize(x, scales[0]).get_output(0)
    layer = network.add_plugin([real], QuantizedSwish(), {"beta": 1.5})
    network.mark_output(network.add_quantize(layer.get_output(0), scales[1], dtype).get_output(0))
    codes = CODES.view(dtype.numpy)
    (expected,) = run_reference(network, {"x": codes}).values()
    engine = dryfit.Builder().build_engine(network, dryfit.BuilderConfig())
    assert [one.kind for one in engine.plan.network.layers] == ["plugin"]
    (found,) = engine.create_execution_context().run({"x": codes}).values()
    np.testing.assert_array_equal(found.view(np.uint8), expected.view(np.uint8))


def test_a_scale_a_channel_is_refused():
    fields = {**SCALES, "input_scales": (np.ones((1, 4, 1, 1), np.float32),)}
    network = dryfit.Network()
    with pytest.raises(dryfit.NetworkError, match="one scale for the whole input"):
        network.add_plugin([network.add_input("x", DataType.INT8, (1, 4, 2, 2))], QuantizedSwish(), fields)


def test_swish_of_large_numbers_is_finite():
    np.testing.assert_array_equal(swish(np.array([-1e4, 0, 1e4]), 1.0), [0, 0, 1e4])
    assert table_of(DataType.INT8, 1.0, np.float32(1e3), np.float32(1))[127] == 127
