"""Engines with 4-bit weights: packed in the file, and the same bits out of a file as before it."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import dryfit

K, C, BLOCK = 96, 256, 32


@pytest.mark.parametrize("dtype", [ml_dtypes.int4, ml_dtypes.float4_e2m1fn], ids=["INT4", "FP4"])
def test_weights_take_four_bits_in_the_file_and_compute_what_they_did_before(dtype, tmp_path):
    generator = np.random.default_rng(0)
    codes = generator.integers(-6, 7, (C, K)).astype(np.float32).astype(dtype)
    scales = generator.uniform(0.01, 0.02, (C // BLOCK, K)).astype(np.float32)
    network = dryfit.Network("four bits")
    x = network.add_input("x", dryfit.DataType.FLOAT, (3, C))
    packed = dryfit.Weights(dryfit.DataType.from_numpy(dtype), dryfit.Weights(codes).tobytes(), codes.size)
    weights = network.add_constant((C, K), packed).get_output(0)
    real = network.add_dequantize(weights, network.add_constant(scales.shape, scales).get_output(0))
    none = dryfit.MatrixOperation.NONE
    network.mark_output(network.add_matrix_multiply(x, none, real.get_output(0), none).get_output(0))
    config = dryfit.Builder().create_builder_config()
    config.default_device_type = dryfit.DeviceType.CPU
    engine = dryfit.Builder().build_engine(network, config)
    engine.save(tmp_path / "a.engine")
    size = (tmp_path / "a.engine").stat().st_size
    assert codes.size // 2 + scales.nbytes < size < codes.size // 2 + scales.nbytes + 12_000
    feeds = {"x": generator.standard_normal((3, C)).astype(np.float32)}
    (output,) = engine.create_execution_context().run(feeds).values()
    (loaded,) = dryfit.Engine.load(tmp_path / "a.engine").create_execution_context().run(feeds).values()
    np.testing.assert_array_equal(loaded, output)
    wide = codes.astype(np.float32) * np.repeat(scales, BLOCK, axis=0)
    np.testing.assert_allclose(output, feeds["x"] @ wide, rtol=1e-4, atol=1e-4)
