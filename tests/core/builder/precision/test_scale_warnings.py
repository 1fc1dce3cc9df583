"""What is told of scales that are probably wrong."""

import logging

import numpy as np
import pytest
from tests.core.builder.designs import designed
from tests.core.builder.networks import chain, image_network, weights
from tests.core.builder.precision.test_int8_choice import int8_config, ranged

from dryfit.building import Builder, assess
from dryfit.network.data_types import DataType

X = (1, 8, 6, 6)


def scale_warnings(network, config):
    return list(designed(network, config).network_scales.warnings)


@pytest.mark.parametrize(("bound", "is_told"), [(6e-5, True), (7e-5, False), (65504, False), (65600, True)])
def test_a_range_that_fp16_does_not_hold_is_a_warning(bound, is_told):
    network = ranged(chain("c", "r", "c"))
    network.tensor("r1").dynamic_range = (-bound, bound)
    found = scale_warnings(network, int8_config())
    assert ["'r1'" in text for text in found] == [True] * is_told
    assert all(text in assess(network, int8_config()).warnings for text in found)


class Stream:
    """A calibrator of TensorRT's interface with one batch after the other."""

    def __init__(self, batches, batch_size):
        self.batches, self.batch_size = list(batches), batch_size

    def get_batch_size(self):
        return self.batch_size

    def get_batch(self, names):
        assert names == ["x"]
        return [self.batches.pop(0)] if self.batches else None

    def get_algorithm(self):
        return 2

    def read_calibration_cache(self):
        return None

    def write_calibration_cache(self, cache):
        assert cache


@pytest.mark.parametrize(("largest", "is_told"), [(128, False), (200, True)])
def test_calibration_data_that_an_int8_input_cannot_hold_are_a_warning(largest, is_told):
    network = chain("c", "r")
    network.inputs[0].dtype = DataType.INT8
    config = int8_config()
    config.int8_calibrator = Stream([np.linspace(-largest, largest, 288, dtype=np.float32).reshape(X)], 1)
    found = scale_warnings(network, config)
    assert [("'x'" in text, f"{largest}" in text) for text in found] == [(True, True)] * is_told


@pytest.mark.parametrize(("sizes", "told"), [([2, 2], ""), ([2, 1], "batch 1"), ([4, 4], "batch 0")])
def test_a_batch_of_another_size_than_the_calibrator_says_is_a_warning(sizes, told, caplog):
    network = chain("c", "r", shape=(-1, *X[1:]))
    config = int8_config()
    profile = Builder().create_optimization_profile()
    profile.set_shape("x", (1, *X[1:]), (2, *X[1:]), (4, *X[1:]))
    config.add_optimization_profile(profile)
    config.int8_calibrator = Stream([weights(size, *X[1:]) for size in sizes], 2)
    with caplog.at_level(logging.WARNING, "dryfit.builder"):
        designed(network, config)
    found = [record.getMessage() for record in caplog.records if "get_batch_size" in record.getMessage()]
    assert len(found) == bool(told)
    assert all(told in text for text in found)


@pytest.mark.parametrize(("axis", "is_told"), [(0, False), (1, True)])
def test_scales_of_weights_along_another_axis_than_k_are_a_warning(axis, is_told):
    network, x = image_network((1, 8, 6, 6))
    one = network.add_constant((), np.array(0.05, np.float32)).get_output(0)
    data = network.add_dequantize(network.add_quantize(x, one).get_output(0), one).get_output(0)
    kernel = network.add_constant((4, 8, 3, 3), weights(4, 8, 3, 3)).get_output(0)
    count = (4, 8)[axis]
    scales = network.add_constant((count,), np.full(count, 0.02, np.float32)).get_output(0)
    quantize = network.add_quantize(kernel, scales)
    quantize.axis = axis
    dequantize = network.add_dequantize(quantize.get_output(0), scales)
    dequantize.axis = axis
    layer = network.add_convolution_nd(data, 4, (3, 3))
    layer.name = "conv"
    layer.set_input(1, dequantize.get_output(0))
    network.mark_output(layer.get_output(0))
    found = scale_warnings(network, int8_config())
    assert [("'conv'" in text, "axis 1" in text) for text in found] == [(True, True)] * is_told
