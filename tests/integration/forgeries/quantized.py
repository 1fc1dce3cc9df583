"""Small networks of Q/DQ, one layer or two each."""

from __future__ import annotations

from typing import Self

import numpy as np

import dryfit
from dryfit.network.layers.convolution import Convolution, Deconvolution, FullyConnected
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor

_SCALE = 0.05


class SmallNetwork:
    """A network that grows at its end. Every layer reads a quantized value.

    Args:
        shape: of the input.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.network = Network("quantized")
        self.value = self.network.add_input("x", dryfit.DataType.FLOAT, shape)
        self._rng = np.random.default_rng(0)

    def end(self) -> Network:
        """The network, which gives its last value in real numbers."""
        self.network.mark_output(self._quantized())
        return self.network

    def convolve(
        self, outputs: int, kernel: int = 1, *, groups: int = 1, limits: tuple[float, float] | None = None
    ) -> Self:
        """A convolution with padding that keeps the extents, and a clip."""
        sides = (kernel // 2, kernel // 2)
        weights = self._weights(0, outputs, self.value.shape[1] // groups, kernel, kernel)
        layer = Convolution(
            num_output_maps=outputs,
            kernel_size_nd=(kernel, kernel),
            num_groups=groups,
            pre_padding=sides,
            post_padding=sides,
        )
        self.value = self.network.add_layer(layer, [self._quantized(), weights]).get_output(0)
        if limits is not None:
            clip = self.network.add_activation(self.value, dryfit.ActivationType.CLIP)
            clip.alpha, clip.beta = limits
            self.value = clip.get_output(0)
        return self

    def deconvolve(self, outputs: int, groups: int = 1) -> Self:
        """A deconvolution with a stride of 2."""
        weights = self._weights(None, self.value.shape[1], outputs // groups, 3, 3)
        layer = Deconvolution(num_output_maps=outputs, kernel_size_nd=(3, 3), num_groups=groups, stride_nd=(2, 2))
        self.value = self.network.add_layer(layer, [self._quantized(), weights]).get_output(0)
        return self

    def connect(self, outputs: int) -> Self:
        """A fully connected layer."""
        weights = self._weights(0, outputs, int(np.prod(self.value.shape[1:])))
        layer = FullyConnected(num_output_channels=outputs)
        self.value = self.network.add_layer(layer, [self._quantized(), weights]).get_output(0)
        return self

    def add_itself(self) -> Self:
        """Twice the value, as a sum."""
        value = self._quantized()
        other = self._pair(self.network.inputs[0])
        self.value = self.network.add_elementwise(value, other, dryfit.ElementWiseOperation.SUM).get_output(0)
        return self

    def add(self) -> Self:
        """The sum with the input."""
        shortcut = self._pair(self.network.inputs[0])
        self.value = self.network.add_elementwise(self.value, shortcut, dryfit.ElementWiseOperation.SUM).get_output(0)
        return self

    def pool(self, kind: dryfit.PoolingType) -> Self:
        """A pooling of 3x3 windows."""
        layer = self.network.add_pooling_nd(self._quantized(), kind, (3, 3))
        layer.stride_nd, layer.padding_nd = (2, 2), (1, 1)
        self.value = layer.get_output(0)
        return self

    def mean(self) -> Self:
        """The average over each image."""
        layer = self.network.add_reduce(self._quantized(), dryfit.ReduceOperation.AVG, 0b1100, keep_dims=True)
        self.value = layer.get_output(0)
        return self

    def resize(self) -> Self:
        """Doubled extents."""
        layer = self.network.add_resize(self._quantized())
        layer.scales = (1.0, 1.0, 2.0, 2.0)
        self.value = layer.get_output(0)
        return self

    def softmax(self) -> Self:
        """Along the last axis."""
        layer = self.network.add_softmax(self._quantized())
        layer.axes = 1 << (len(self.value.shape) - 1)
        self.value = layer.get_output(0)
        return self

    def sigmoid(self) -> Self:
        """A sigmoid."""
        self.value = self.network.add_activation(self._quantized(), dryfit.ActivationType.SIGMOID).get_output(0)
        return self

    def multiply(self, columns: int) -> Self:
        """A product with a constant."""
        weights, none = self._weights(1, self.value.shape[-1], columns), dryfit.MatrixOperation.NONE
        self.value = self.network.add_matrix_multiply(self._quantized(), none, weights, none).get_output(0)
        return self

    def multiply_itself(self) -> Self:
        """A product with itself, transposed."""
        value, operations = self._quantized(), dryfit.MatrixOperation
        layer = self.network.add_matrix_multiply(value, operations.NONE, value, operations.TRANSPOSE)
        self.value = layer.get_output(0)
        return self

    def concatenate(self) -> Self:
        """Beside itself, along the channels."""
        value = self._quantized()
        layer = self.network.add_concatenation([value, value])
        layer.axis = 1
        self.value = layer.get_output(0)
        return self

    def _quantized(self) -> Tensor:
        self.value = self._pair(self.value)
        return self.value

    def _pair(self, tensor: Tensor) -> Tensor:
        scale = self._constant(np.array(_SCALE, np.float32))
        codes = self.network.add_quantize(tensor, scale).get_output(0)
        return self.network.add_dequantize(codes, scale).get_output(0)

    def _weights(self, axis: int | None, *shape: int) -> Tensor:
        """INT8 weights, and their dequantization along an axis, or by one scale."""
        codes = self._constant(self._rng.integers(-127, 128, shape).astype(np.int8))
        scales = np.array(0.01, np.float32)
        if axis is not None:
            scales = self._rng.uniform(0.005, 0.02, shape[axis]).astype(np.float32)
        real = self.network.add_dequantize(codes, self._constant(scales))
        if axis is not None:
            real.axis = axis
        return real.get_output(0)

    def _constant(self, values: np.ndarray) -> Tensor:
        return self.network.add_constant(values.shape, values).get_output(0)
