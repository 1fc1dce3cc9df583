"""Small networks for asking about one layer, and the questions themselves."""

import numpy as np

from dryfit.builder.config.builder_config import BuilderConfig, BuilderFlag
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType, ScaleMode
from dryfit.network.layers.elementwise import ElementWiseOperation, UnaryOperation
from dryfit.network.layers.matrix import MatrixOperation
from dryfit.network.layers.reduction import ReduceOperation
from dryfit.network.layers.resize import (
    InterpolationMode,
    ResizeCoordinateTransformation,
    ResizeRoundMode,
    ResizeSelector,
)
from dryfit.network.layers.slice import SampleMode
from dryfit.network.layers.window_layer import Pooling, PoolingType
from dryfit.network.network import Network
from dryfit.plugins import registry


def zeros(*shape):
    """Weights that take no memory, whatever their shape."""
    return np.broadcast_to(np.float32(0), shape)


def network_with(shape=(1, 16, 16, 16), dtype=DataType.FLOAT):
    network = Network("question")
    return network, network.add_input("x", dtype, shape)


def convolution(shape=(1, 16, 64, 64), kernel=(3, 3), maps=8, **parameters):
    network, x = network_with(shape)
    groups = parameters.get("num_groups", 1)
    layer = network.add_convolution_nd(x, maps, kernel)
    for name, value in parameters.items():
        setattr(layer, name, value)
    layer.kernel = zeros(maps, shape[1] // groups, *kernel)
    return layer


def fully_connected(shape=(1, 16, 4, 4), outputs=10):
    network, x = network_with(shape)
    return network.add_fully_connected(x, outputs, zeros(outputs, int(np.prod(shape[-3:]))))


def pooling(shape=(1, 16, 64, 64), window=(2, 2), kind="MAX", **parameters):
    network, x = network_with(shape)
    layer = network.add_pooling_nd(x, PoolingType[kind], window)
    for name, value in parameters.items():
        setattr(layer, name, value)
    return layer


def pooling_with_indices(returns_indices):
    network, x = network_with()
    layer = Pooling(pooling_type=PoolingType.MAX, window_size_nd=(2, 2), returns_indices=returns_indices)
    return network.add_layer(layer, [x])


def activation(kind="RELU", shape=(1, 16, 8, 8), alpha=0.0, beta=0.0, dtype=DataType.FLOAT):
    network, x = network_with(shape, dtype)
    layer = network.add_activation(x, ActivationType[kind])
    layer.alpha, layer.beta = alpha, beta
    return layer


def elementwise(op="SUM", a=(1, 16, 8, 8), b=(1, 16, 8, 8), constant=None):
    network, x = network_with(a)
    if constant is None:
        y = network.add_input("y", DataType.FLOAT, b)
    else:
        y = network.add_constant(b, np.asarray(constant, np.float32)).get_output(0)
    return network.add_elementwise(x, y, ElementWiseOperation[op])


def concatenation(shapes=((1, 16, 8, 8), (1, 16, 8, 8)), axis=None):
    network = Network("question")
    layer = network.add_concatenation(
        [network.add_input(f"x{index}", DataType.FLOAT, shape) for index, shape in enumerate(shapes)]
    )
    if axis is not None:
        layer.axis = axis
    return layer


def scale(mode="CHANNEL", shape=(1, 16, 8, 8), power=None, channel_axis=1, scales=None):
    network, x = network_with(shape)
    return network.add_scale_nd(x, ScaleMode[mode], None, scales, power, channel_axis)


def softmax(shape=(1, 16, 1, 1), axis=1):
    network, x = network_with(shape)
    layer = network.add_softmax(x)
    layer.axes = 1 << axis
    return layer


def deconvolution(shape=(1, 16, 8, 8), kernel=(2, 2), maps=8, **parameters):
    network, x = network_with(shape)
    groups = parameters.get("num_groups", 1)
    layer = network.add_deconvolution_nd(x, maps, kernel)
    for name, value in {"stride_nd": kernel, **parameters}.items():
        setattr(layer, name, value)
    layer.kernel = zeros(shape[1], maps // max(groups, 1), *kernel)
    return layer


def parametric_relu(shape=(1, 16, 8, 8)):
    network, x = network_with(shape)
    slopes = network.add_constant((1,) * len(shape), np.full((1,) * len(shape), 0.25, np.float32))
    return network.add_parametric_relu(x, slopes.get_output(0))


def unary(op="ABS", shape=(1, 16, 8, 8)):
    network, x = network_with(shape)
    return network.add_unary(x, UnaryOperation[op])


def lrn(window=5, shape=(1, 16, 8, 8)):
    network, x = network_with(shape)
    return network.add_lrn(x, window, 1e-4, 0.75, 1.0)


def resize(scales=(1, 1, 2, 2), mode="NEAREST", sampling=None, shape=(1, 16, 8, 8), extents=None, **parameters):
    """A resize; `sampling` is coordinate transformation, selector and rounding in one string."""
    network, x = network_with(shape)
    layer = network.add_resize(x)
    layer.resize_mode = InterpolationMode[mode]
    layer.scales = scales or ()
    if extents is not None:
        layer.shape = extents
    words = sampling or ("ASYMMETRIC FORMULA FLOOR" if mode == "NEAREST" else "HALF_PIXEL FORMULA FLOOR")
    transformation, selector, rounding = words.split()
    layer.coordinate_transformation = ResizeCoordinateTransformation[transformation]
    layer.selector_for_single_pixel = ResizeSelector[selector]
    layer.nearest_rounding = ResizeRoundMode[rounding]
    for name, value in parameters.items():
        setattr(layer, name, value)
    return layer


def reduction(op="MAX", axes=(2, 3), shape=(1, 16, 8, 8), keep_dims=True):
    network, x = network_with(shape)
    return network.add_reduce(x, ReduceOperation[op], sum(1 << axis for axis in axes), keep_dims)


def shuffle(shape=(1, 16, 8, 8), first=(), reshape=None, second=()):
    network, x = network_with(shape)
    layer = network.add_shuffle(x)
    layer.first_transpose, layer.reshape_dims, layer.second_transpose = first, reshape, second
    return layer


def window(start=(0, 0, 0, 0), extents=(1, 16, 4, 4), stride=(1, 1, 1, 1), shape=(1, 16, 8, 8), mode="STRICT_BOUNDS"):
    """A slice."""
    network, x = network_with(shape)
    layer = network.add_slice(x, start, extents, stride)
    layer.mode = SampleMode[mode]
    return layer


def product(a=(1, 1, 4, 16), b=(1, 1, 16, 8), ops=("NONE", "NONE"), *, constant=True):
    """A matrix multiply whose second operand is a constant, or an input."""
    network, x = network_with(a)
    y = network.add_constant(b, zeros(*b)).get_output(0) if constant else network.add_input("y", DataType.FLOAT, b)
    return network.add_matrix_multiply(x, MatrixOperation[ops[0]], y, MatrixOperation[ops[1]])


def config(platform="agx-orin-64", software=None, flags=("FP16",)):
    one = BuilderConfig()
    for flag in flags:
        one.set_flag(BuilderFlag[flag])
    one.set_platform("DLA", platform)
    if software is not None:
        one.set_software("DLA", software)
    return one


def verdict(layer, **options):
    return config(**options).can_run_on(layer, "DLA")


def violated(layer, **options):
    """The ids of the rules that fail, without the device's name."""
    return [one.rule.removeprefix("dla.") for one in verdict(layer, **options).violations]


def noted(layer, **options):
    """The ids of the notes, without the device's name."""
    return [one.rule.removeprefix("dla.") for one in verdict(layer, **options).notes]


def question(layer, **options):
    return config(**options).question(layer, registry.target("DLA"))


def with_ranges(layer, **bounds):
    """The layer, each of its tensors with a dynamic range: 1, or what is given by name."""
    for tensor in (*(t for t in layer.inputs if t is not None), *layer.outputs):
        bound = bounds.get(tensor.name, bounds.get("output", 1.0) if tensor in layer.outputs else 1.0)
        tensor.set_dynamic_range(-bound, bound)
    return layer


def one_violation(answer):
    assert len(answer.violations) == 1, [one.rule for one in answer.violations]
    return answer.violations[0]
