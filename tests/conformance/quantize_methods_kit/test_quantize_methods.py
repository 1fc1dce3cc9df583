"""The quantize methods that come with dryfit pass the kit that every quantize method is held to."""

from __future__ import annotations

import itertools

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import Activation, ActivationType
from dryfit.network.layers.convolution import FullyConnected
from dryfit.network.layers.elementwise import Elementwise, ElementWiseOperation
from dryfit.network.layers.matrix import MatrixMultiply
from dryfit.network.layers.quantization import Quantize
from dryfit.plugins.quantize_methods import quantize_method
from dryfit.testing.operator_cases.operator_case import OperatorCase, case_of
from dryfit.testing.quantize_method_checks import rule_title
from dryfit.testing.quantize_method_conformance import QuantizeMethodConformance
from dryfit_plugins.quantize_methods.tflite_weighted import VECTOR_PRODUCT, VECTOR_PRODUCTS


def _products_with_a_vector() -> list[OperatorCase]:
    """Products of a matrix, and of one matrix per sample, with one vector each."""
    random, found = np.random.default_rng(5), []
    shapes = (((1, 8, 1, 1), (5, 8), FullyConnected(num_output_channels=5)), ((2, 1, 8), (2, 8, 5), MatrixMultiply()))
    for (x_shape, w_shape, layer), dtype in itertools.product(shapes, (DataType.INT8, DataType.UINT8)):
        low, middle = int(np.iinfo(dtype.numpy).min), int(np.iinfo(dtype.numpy).min) + 128
        x, w = (random.integers(low, low + 256, shape).astype(dtype.numpy) for shape in (x_shape, w_shape))
        found.append(case_of(layer, [x, w], [(0.02, middle + 3), (0.01, middle)], (0.3, middle - 5)))
    return found


def _sums_of_far_scales() -> list[OperatorCase]:
    """Sums of two tensors, and with a constant a channel, whose second scale is less than 2**-10 of the output's."""
    random, found = np.random.default_rng(6), []
    for second_shape, dtype in itertools.product(((2, 3, 4, 4), (1, 3, 1, 1)), (DataType.INT8, DataType.UINT8)):
        low = int(np.iinfo(dtype.numpy).min)
        inputs = [random.integers(low, low + 256, one).astype(dtype.numpy) for one in ((2, 3, 4, 4), second_shape)]
        layer = Elementwise(op=ElementWiseOperation.SUM)
        found.append(case_of(layer, inputs, [(0.02, low + 131), (1e-5, low + 121)], (0.05, low + 123)))
    return found


def _relu_of_one_grid() -> OperatorCase:
    """ReLU of all INT8 codes, whose output has the input's grid."""
    layer = Activation(activation_type=ActivationType.RELU)
    return case_of(layer, [np.arange(-128, 128, dtype=np.int8)], [(0.05, -3)], (0.05, -3))


def _weights() -> OperatorCase:
    """Real weights, of a grid without a zero point."""
    numbers = np.linspace(-9, 9, 289, dtype=np.float32)
    return case_of(Quantize(to_type=DataType.INT8), [numbers], [None], (0.0625, 0), DataType.INT8)


class TestTensorFlowLite(QuantizeMethodConformance):
    method = quantize_method("tflite")


class TestTensorFlowLite214(QuantizeMethodConformance):
    method = quantize_method("tflite-2.14")


class TestTensorFlowLite25(QuantizeMethodConformance):
    method = quantize_method("tflite-2.5")
    examples = _products_with_a_vector()
    batch_matters = {
        rule_title(rule): "one vector is multiplied by a kernel of its own"
        for rule in method.rules
        if rule.case_text in (VECTOR_PRODUCT, VECTOR_PRODUCTS)
    }


class TestTensorFlowLiteRuy(QuantizeMethodConformance):
    method = quantize_method("tflite-ruy")


class TestXnnpack(QuantizeMethodConformance):
    method = quantize_method("tflite-xnnpack")
    examples = _sums_of_far_scales()


class TestOnnxRuntime(QuantizeMethodConformance):
    method = quantize_method("onnx")


class TestCaffe2(QuantizeMethodConformance):
    method = quantize_method("caffe2")
    examples = [_relu_of_one_grid()]


class TestGpu(QuantizeMethodConformance):
    method = quantize_method("gpu")


class TestCalibratedWeights(QuantizeMethodConformance):
    method = quantize_method("calibrated-weights")
    examples = [_weights()]


class TestDla8(QuantizeMethodConformance):
    method = quantize_method("dla-8")


class TestDla10(QuantizeMethodConformance):
    method = quantize_method("dla-10")
