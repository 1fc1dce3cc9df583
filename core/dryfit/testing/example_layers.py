"""A small layer of every kind, for checks on a device: benign parameters, and weights from a random generator.

Values neither vanish nor overflow, so that networks of these layers can be compared with the references.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dryfit.errors import DryfitError
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.activation import ActivationType, ScaleMode
from dryfit.network.layers.control_flow import ConditionalLayer, LoopLayer
from dryfit.network.layers.elementwise import ElementWiseOperation, UnaryOperation
from dryfit.network.layers.generators import FillOperation
from dryfit.network.layers.indexing import ScatterMode
from dryfit.network.layers.matrix import MatrixOperation
from dryfit.network.layers.movement import ReverseSequence
from dryfit.network.layers.normalization import VectorFunction
from dryfit.network.layers.ranking import TopKOperation
from dryfit.network.layers.reduction import CumulativeOperation, ReduceOperation
from dryfit.network.layers.resize import InterpolationMode, ResizeCoordinateTransformation
from dryfit.network.layers.window_layer import PoolingType
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor

Array = np.ndarray[Any, Any]
_CHANNELS_IF_DYNAMIC = 4


class Examples:
    """Adds a layer of any kind after a tensor.

    Args:
        network: network of the tensor.
        x: first input of the layer; kinds that need another input create one.
        rng: random generator for weights and choices.
    """

    def __init__(self, network: Network, x: Tensor, rng: np.random.Generator) -> None:
        self.network, self.x, self.rng = network, x, rng
        self.rank = len(x.shape)
        extent = x.shape[1] if self.rank > 1 else 1
        self.channels = extent if extent > 0 else _CHANNELS_IF_DYNAMIC

    def constant(self, values: Any, dtype: Any = np.float32) -> Tensor:
        """A constant of these values."""
        array: Array = np.asarray(values, dtype)
        return self.network.add_constant(array.shape, array).get_output(0)

    def operand(self, values: Any) -> Tensor:
        """A constant of these values that stands beside the first input: of its type where that is a float's."""
        dtype = self.x.dtype if self.x.dtype.is_floating_point else DataType.FLOAT
        return self.constant(values, dtype.numpy)

    def weights(self, *shape: int) -> Array:
        """Random weights, float32, whose sums over all but the first axis have variance 1."""
        fan_in = max(1, int(np.prod(shape[1:])))
        return np.asarray(self.rng.standard_normal(shape) / np.sqrt(fan_in), np.float32)

    def one_of(self, *choices: Any) -> Any:
        """One of the choices."""
        return choices[int(self.rng.integers(len(choices)))]

    def convolution(self) -> Layer:
        """A convolution of 1x1 or, padded, 3x3, with a bias."""
        maps, extent = self.one_of(4, 8), self.one_of(1, 3)
        kernel = self.weights(maps, self.channels, extent, extent)
        layer = self.network.add_convolution_nd(self.x, maps, (extent, extent), kernel, self.weights(maps))
        layer.padding_nd = (extent // 2, extent // 2)
        return layer

    def deconvolution(self) -> Layer:
        """A deconvolution that doubles the extents."""
        kernel = self.weights(self.channels, 4, 2, 2)
        layer = self.network.add_deconvolution_nd(self.x, 4, (2, 2), kernel, self.weights(4))
        layer.stride_nd = (2, 2)
        return layer

    def fully_connected(self) -> Layer:
        """A fully connected layer with 8 outputs."""
        volume = max(1, int(np.prod(self.x.shape[-3:])))
        return self.network.add_fully_connected(self.x, 8, self.weights(8, volume), self.weights(8))

    def matrix_multiply(self) -> Layer:
        """A product with a constant matrix."""
        columns = max(1, self.x.shape[-1])
        matrix = self.operand(self.weights(8, columns).T.reshape((1,) * (self.rank - 2) + (columns, 8)))
        return self.network.add_matrix_multiply(self.x, MatrixOperation.NONE, matrix, MatrixOperation.NONE)

    def pooling(self) -> Layer:
        """A pooling of 2x2 windows."""
        layer = self.network.add_pooling_nd(self.x, self.one_of(PoolingType.MAX, PoolingType.AVERAGE), (2, 2))
        layer.stride_nd = self.one_of((1, 1), (2, 2))
        return layer

    def scale(self) -> Layer:
        """A factor and a shift for each channel."""
        return self.network.add_scale(self.x, ScaleMode.CHANNEL, self.weights(self.channels), self._factors())

    def normalization(self) -> Layer:
        """A normalization over everything behind the channels."""
        shape = (1, self.channels) + (1,) * (self.rank - 2)
        factors, shifts = (self.constant(v.reshape(shape)) for v in (self._factors(), self.weights(self.channels)))
        return self.network.add_normalization(self.x, factors, shifts, ((1 << self.rank) - 1) & ~0b11)

    def parametric_relu(self) -> Layer:
        """A slope for each channel."""
        shape = (1, self.channels) + (1,) * (self.rank - 2)
        return self.network.add_parametric_relu(self.x, self.operand(self._factors().reshape(shape[: self.rank])))

    def resize(self) -> Layer:
        """The last two extents doubled."""
        layer = self.network.add_resize(self.x)
        layer.scales = (1.0,) * (self.rank - 2) + (2.0, 2.0)
        if self.one_of(True, False):
            layer.resize_mode = InterpolationMode.LINEAR
            layer.coordinate_transformation = ResizeCoordinateTransformation.HALF_PIXEL
        return layer

    def attention(self) -> Layer:
        """Causal, of the tensor as query and constant keys and values."""
        keys, values = (self.operand(self.rng.standard_normal(self._sequence(longer=2))) for _ in range(2))
        return self.network.add_attention(self.x, keys, values, causal=True)

    def rotary_embedding(self) -> Layer:
        """By angles that grow with the position."""
        batch, _, length, depth = self._sequence()
        angles = np.arange(length)[:, None] / np.arange(1, depth // 2 + 1)
        cos, sin = (self.operand(np.tile(function(angles), (batch, 1, 1))) for function in (np.cos, np.sin))
        return self.network.add_rotary_embedding(self.x, cos, sin)

    def kv_cache_update(self) -> Layer:
        """Written to the beginning of a cache of zeros."""
        shape = self._sequence(longer=2)
        return self.network.add_kv_cache_update(
            self.operand(np.zeros(shape)), self.x, self.constant(np.zeros(shape[0]), np.int32)
        )

    def ragged_softmax(self) -> Layer:
        """Of the first two elements of each channel."""
        rows = self.network.add_shuffle(self.x)
        rows.reshape_dims = (0, 0, -1)
        bounds = np.full((max(1, self.x.shape[0]), self.channels, 1), 2)
        return self.network.add_ragged_softmax(rows.get_output(0), self.constant(bounds, np.int32))

    def _sequence(self, longer: int = 0) -> tuple[int, ...]:
        """The extents of the tensor, brought to rank 4, with a longer sequence."""
        batch, heads, length, depth = ([max(extent, 1) for extent in self.x.shape] + [1] * 4)[:4]
        return batch, heads, length + longer, depth

    def shuffle(self) -> Layer:
        """The last two axes in the other order."""
        layer = self.network.add_shuffle(self.x)
        layer.first_transpose = (*range(self.rank - 2), self.rank - 1, self.rank - 2)
        return layer

    def slice(self) -> Layer:
        """All but the last element of the last axis."""
        extents = tuple(max(1, extent) for extent in self.x.shape)
        shape = (*extents[:-1], max(1, extents[-1] - 1))
        return self.network.add_slice(self.x, (0,) * self.rank, shape, (1,) * self.rank)

    def softmax(self) -> Layer:
        """Along the channels."""
        layer = self.network.add_softmax(self.x)
        layer.axes = 0b10
        return layer

    def concatenation(self) -> Layer:
        """The tensor beside itself, along the channels."""
        layer = self.network.add_concatenation([self.x, self.x])
        layer.axis = min(1, self.rank - 1)
        return layer

    def reduce(self) -> Layer:
        """The mean or the maximum of the last two axes."""
        operation = self.one_of(ReduceOperation.AVG, ReduceOperation.MAX)
        return self.network.add_reduce(self.x, operation, 0b11 << (self.rank - 2), keep_dims=True)

    def einsum(self) -> Layer:
        """The tensor times itself, element by element."""
        axes = string.ascii_lowercase[: self.rank]
        return self.network.add_einsum([self.x, self.x], f"{axes},{axes}->{axes}")

    def reverse_sequence(self) -> Layer:
        """The second axis reversed."""
        lengths = self.constant([self.channels] * max(1, self.x.shape[0]), np.int64)
        return self.network.add_layer(ReverseSequence(batch_axis=0, sequence_axis=1), [self.x, lengths])

    def scatter(self) -> Layer:
        """One element replaced."""
        indices, updates = self.constant([[0] * self.rank], np.int64), self.constant([1.0])
        return self.network.add_scatter(self.x, indices, updates, ScatterMode.ND)

    def nms(self) -> Layer:
        """Boxes and scores of their own."""
        boxes = self.constant(np.sort(self.rng.random((1, 6, 2, 2)), axis=2).reshape(1, 6, 4))
        return self.network.add_nms(boxes, self.constant(self.rng.random((1, 6, 2))), self.constant(3, np.int32))

    def dequantize(self) -> Layer:
        """Behind a quantize layer."""
        quantized = self.network.add_quantize(self.x, self.constant(0.05)).get_output(0)
        return self.network.add_dequantize(quantized, self.constant(0.05))

    def dynamic_quantize(self) -> Layer:
        """To FP4, along the last axis."""
        layer = self.network.add_dynamic_quantize(self.x, self.rank - 1, 16)
        layer.set_input(1, self.constant(0.01))
        return layer

    def squeeze(self) -> Layer:
        """Of an axis that was added before."""
        first = self.constant([0], np.int64)
        return self.network.add_squeeze(self.network.add_unsqueeze(self.x, first).get_output(0), first)

    def one_hot(self) -> Layer:
        """Of indices of its own."""
        indices = self.constant([0, 2, 1], np.int32)
        return self.network.add_one_hot(indices, self.constant([0.0, 1.0]), self.constant(3, np.int32), -1)

    def grid_sample(self) -> Layer:
        """At random places."""
        grid = self.rng.uniform(-1, 1, (max(1, self.x.shape[0]), 3, 3, 2))
        return self.network.add_grid_sample(self.x, self.constant(grid))

    def conditional(self) -> Layer:
        """The input, or twice the input, as a constant condition says."""
        bodies = [self._body(factor) for factor in (1, 2)]
        condition = self.constant(self.one_of(True, False), np.bool_)
        return self.network.add_layer(ConditionalLayer(then_body=bodies[0], else_body=bodies[1]), [condition, self.x])

    def loop(self) -> Layer:
        """The input, doubled twice."""
        layer = LoopLayer(body=self._body(2, is_loop=True), num_states=1)
        return self.network.add_layer(layer, [self.constant(2, np.int64), self.x])

    def _body(self, factor: int, *, is_loop: bool = False) -> Network:
        """A network that multiplies its input by a factor."""
        body = Network("body")
        if is_loop:
            body.add_input("iteration", DataType.INT64, ())
        x = body.add_input("x", self.x.dtype, self.x.shape)
        weights = np.full((1,) * self.rank, factor, np.float64).astype(self.x.dtype.numpy)
        constant = body.add_constant(weights.shape, weights).get_output(0)
        body.mark_output(body.add_elementwise(x, constant, ElementWiseOperation.PROD).get_output(0))
        return body

    def _factors(self) -> Array:
        return self.rng.uniform(0.5, 1.5, self.channels).astype(np.float32)


_RELU, _SIGMOID, _TANH = ActivationType.RELU, ActivationType.SIGMOID, ActivationType.TANH
_SUM, _PROD, _MAX = ElementWiseOperation.SUM, ElementWiseOperation.PROD, ElementWiseOperation.MAX

EXAMPLES: Mapping[str, Callable[[Examples], Layer]] = {
    "activation": lambda e: e.network.add_activation(e.x, e.one_of(_RELU, _SIGMOID, _TANH)),
    "assertion": lambda e: e.network.add_assertion(e.constant(True, np.bool_), "true"),
    "attention": Examples.attention,
    "cast": lambda e: e.network.add_cast(e.x, e.one_of(DataType.HALF, DataType.INT32, DataType.BOOL)),
    "concatenation": Examples.concatenation,
    "conditional": Examples.conditional,
    "constant": lambda e: e.network.add_constant((3,), np.arange(3, dtype=np.float32)),
    "convolution": Examples.convolution,
    "cumulative": lambda e: e.network.add_cumulative(
        e.x, e.constant(e.rank - 1, np.int64), CumulativeOperation.SUM, exclusive=False, reverse=False
    ),
    "deconvolution": Examples.deconvolution,
    "dequantize": Examples.dequantize,
    "dynamic_quantize": Examples.dynamic_quantize,
    "einsum": Examples.einsum,
    "elementwise": lambda e: e.network.add_elementwise(e.x, e.x, e.one_of(_SUM, _PROD, _MAX)),
    "fill": lambda e: e.network.add_fill((2, 3), FillOperation.RANDOM_UNIFORM),
    "fully_connected": Examples.fully_connected,
    "gather": lambda e: e.network.add_gather(e.x, e.constant([0], np.int64), e.rank - 1),
    "grid_sample": Examples.grid_sample,
    "histogram": lambda e: e.network.add_histogram(e.x),
    "identity": lambda e: e.network.add_identity(e.x),
    "kv_cache_update": Examples.kv_cache_update,
    "loop": Examples.loop,
    "lrn": lambda e: e.network.add_lrn(e.x, e.one_of(3, 5), 1e-4, 0.75, 1.0),
    "matrix_multiply": Examples.matrix_multiply,
    "nms": Examples.nms,
    "non_zero": lambda e: e.network.add_non_zero(e.x),
    "normalization": Examples.normalization,
    "one_hot": Examples.one_hot,
    "padding": lambda e: e.network.add_padding_nd(e.x, (1, 1), (1, 0)),
    "parametric_relu": Examples.parametric_relu,
    "pooling": Examples.pooling,
    "quantize": lambda e: e.network.add_quantize(e.x, e.constant(0.05)),
    "ragged_softmax": Examples.ragged_softmax,
    "reduce": Examples.reduce,
    "resize": Examples.resize,
    "reverse_sequence": Examples.reverse_sequence,
    "rotary_embedding": Examples.rotary_embedding,
    "scale": Examples.scale,
    "scatter": Examples.scatter,
    "select": lambda e: e.network.add_select(e.constant(np.full((1,) * e.rank, True), np.bool_), e.x, e.x),
    "shape": lambda e: e.network.add_shape(e.x),
    "shuffle": Examples.shuffle,
    "slice": Examples.slice,
    "softmax": Examples.softmax,
    "squeeze": Examples.squeeze,
    "top_k": lambda e: e.network.add_topk(e.x, TopKOperation.MAX, 1, 1 << (e.rank - 1)),
    "unary": lambda e: e.network.add_unary(e.x, e.one_of(UnaryOperation.ABS, UnaryOperation.NEG)),
    "unsqueeze": lambda e: e.network.add_unsqueeze(e.x, e.constant([0], np.int64)),
    "vector_function": lambda e: e.network.add_vector_function(e.x, e.one_of(*VectorFunction), e.rank - 1),
}
"""Layer kind to what adds a layer of it. `plugin` is not here: what it is a plugin says."""


def add_example(kind: str, network: Network, x: Tensor, rng: np.random.Generator) -> Layer | None:
    """Return a layer of a kind after a tensor; None if the kind does not support such a tensor."""
    try:
        layer = EXAMPLES[kind](Examples(network, x, rng))
        network.refresh_shapes()
    except DryfitError:
        return None
    return layer
