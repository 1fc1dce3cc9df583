"""Sound engines that forgeries begin with: all layer kinds and kernels, small, with everything that a kernel packed.

An engine leaves out what is packed. Here it is kept, so that the references can say what a forgery has to compute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import ml_dtypes
import numpy as np
from tests.integration.forgeries.quantized import SmallNetwork

import dryfit
from dryfit.builder import linking
from dryfit.engine.plan import Plan
from dryfit.errors import DryfitError
from dryfit.network.layers.convolution import Convolution
from dryfit.network.layers.indexing import GatherMode
from dryfit.network.layers.quantization import Quantize
from dryfit.network.layers.slice import SampleMode
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor
from dryfit.testing.example_layers import EXAMPLES, add_example

FLAGS = {"fp32": (), "fp16": ("FP16",), "bf16": ("BF16",), "int8": ("INT8",), "dla": ("INT8", "FP16", "GPU_FALLBACK")}
SHAPES = {"fp32": (2, 4, 6, 7), "fp16": (1, 16, 5, 6), "bf16": (1, 4, 5, 5), "int8": (1, 32, 8, 8), "dla": (1, 4, 8, 8)}
_KINDS_OF_NARROW = ("convolution", "elementwise", "matrix_multiply", "pooling", "softmax")
_NO_EXAMPLES_IN_INT8 = ("histogram", "nms", "non_zero", "plugin", "shape", "fill", "constant")


def sound_plans() -> dict[str, Plan]:
    """Name to plan, with all weights in the network."""
    drop, linking.drop_packed_weights = linking.drop_packed_weights, lambda network, packed: None
    try:
        return dict(_plans())
    finally:
        linking.drop_packed_weights = drop


def _plans() -> Iterator[tuple[str, Plan]]:
    for kind in EXAMPLES:
        for form in FLAGS:
            if form == "bf16" and kind not in _KINDS_OF_NARROW:
                continue
            if form in ("int8", "dla") and kind in _NO_EXAMPLES_IN_INT8:
                continue
            network = _example(kind, SHAPES[form])
            plan = None if network is None else _plan(network, form)
            if plan is not None:
                yield f"{kind} {form}", plan
    for name, make in {**_PLAIN, **_QUANTIZED}.items():
        for method in ("", "onnx", "tflite") if name in _QUANTIZED else ("",):
            network = make()
            device = "CPU" if method or name not in _QUANTIZED else "GPU"
            network.quantize_method = method
            plan = _plan(network, "fp32", device)
            if plan is not None:
                yield f"{name} {method}".rstrip(), plan


def _example(kind: str, shape: tuple[int, ...]) -> Network | None:
    network, rng = Network(kind), np.random.default_rng(len(kind))
    x = network.add_input("x", dryfit.DataType.FLOAT, shape)
    layer = add_example(kind, network, x, rng)
    if layer is None or not layer.outputs:
        return None
    value = layer.get_output(0)
    if value.dtype is dryfit.DataType.FLOAT and len(value.shape) == 4:
        value = network.add_elementwise(value, value, dryfit.ElementWiseOperation.SUM).get_output(0)
        value = network.add_activation(value, dryfit.ActivationType.RELU).get_output(0)
    network.mark_output(value)
    return network


def _plan(network: Network, form: str, device: str = "GPU") -> Plan | None:
    """What is built; None where the device has no such layer."""
    config = dryfit.BuilderConfig()
    config.default_device_type = "DLA" if form == "dla" else device
    for flag in FLAGS[form]:
        config.set_flag(dryfit.BuilderFlag[flag])
    if form in ("int8", "dla"):
        for layer in network.layers:
            for tensor in (*layer.inputs, *layer.outputs):
                if tensor is not None and tensor.dtype is dryfit.DataType.FLOAT:
                    tensor.set_dynamic_range(-4.0, 4.0)
    try:
        return dryfit.Builder().build_engine(network, config).plan
    except DryfitError:
        return None


def _one(shape: tuple[int, ...], add: Callable[[Network, Tensor], object]) -> Network:
    """A network of one layer, or a few; what is added last gives the output."""
    network = Network("one")
    layer = add(network, network.add_input("x", dryfit.DataType.FLOAT, shape))
    network.mark_output(layer.get_output(0))  # type: ignore[attr-defined]
    return network


def _constant(network: Network, values: object, dtype: type = np.int64) -> Tensor:
    array = np.asarray(values, dtype)
    return network.add_constant(array.shape, array).get_output(0)


def _gather(mode: GatherMode, shape: tuple[int, ...], indices: object, axis: int = 0) -> Network:
    def add(network: Network, x: Tensor) -> object:
        layer = network.add_gather(x, _constant(network, indices), axis)
        layer.mode = mode
        return layer

    return _one(shape, add)


def _slice(mode: SampleMode) -> Network:
    def add(network: Network, x: Tensor) -> object:
        layer = network.add_slice(x, (0, 1, -2, 1), (2, 2, 9, 5), (1, 1, 1, 2))
        layer.mode = mode
        return layer

    return _one((2, 4, 6, 7), add)


def _convolution(shape: tuple[int, ...], outputs: int, kernel: tuple[int, ...], groups: int = 1) -> Network:
    def add(network: Network, x: Tensor) -> object:
        rng = np.random.default_rng(0)
        weights = rng.standard_normal((outputs, shape[1] // groups, *kernel)).astype(np.float32)
        layer = network.add_convolution_nd(x, outputs, kernel, weights, weights.reshape(outputs, -1)[:, 0])
        layer.num_groups = groups
        layer.padding_nd = tuple(extent // 2 for extent in kernel)
        return network.add_activation(layer.get_output(0), dryfit.ActivationType.RELU)

    return _one(shape, add)


def _deconvolution(shape: tuple[int, ...], outputs: int, groups: int) -> Network:
    def add(network: Network, x: Tensor) -> object:
        extents = (3,) * (len(shape) - 2)
        weights = np.random.default_rng(0).standard_normal((shape[1], outputs // groups, *extents)).astype(np.float32)
        layer = network.add_deconvolution_nd(x, outputs, extents, weights)
        layer.num_groups, layer.stride_nd = groups, (2,) * len(extents)
        return layer

    return _one(shape, add)


def _gated(network: Network, x: Tensor) -> object:
    """`x * sigmoid(x)` as two layers, and a hard swish after it: both are forks."""
    opened = network.add_activation(x, dryfit.ActivationType.SIGMOID).get_output(0)
    value = network.add_elementwise(x, opened, dryfit.ElementWiseOperation.PROD).get_output(0)
    weights = np.random.default_rng(0).standard_normal((8, x.shape[1], 1, 1)).astype(np.float32)
    value = network.add_convolution_nd(value, 8, (1, 1), weights).get_output(0)
    opened = network.add_activation(value, dryfit.ActivationType.HARD_SIGMOID)
    opened.alpha, opened.beta = 1 / 6, 0.5
    return network.add_elementwise(value, opened.get_output(0), dryfit.ElementWiseOperation.PROD)


def _pooled_volume(network: Network, x: Tensor) -> object:
    layer = network.add_pooling_nd(x, dryfit.PoolingType.MAX, (2, 2, 2))
    layer.stride_nd = (2, 1, 2)
    return layer


def _narrow_product(dtype: type) -> Network:
    def add(network: Network, x: Tensor) -> object:
        codes = np.random.default_rng(0).integers(-4, 4, (32, 24)).astype(np.float32).astype(dtype)
        weights = network.add_constant(codes.shape, codes).get_output(0)
        real = network.add_dequantize(weights, _constant(network, np.full(24, 0.05), np.float32))
        real.axis = 1
        none = dryfit.MatrixOperation.NONE
        return network.add_matrix_multiply(x, none, real.get_output(0), none)

    return _one((3, 32), add)


def _narrow_convolution(network: Network, x: Tensor) -> object:
    rng = np.random.default_rng(0)
    codes = rng.standard_normal((12, 8, 3, 3)).astype(np.float32).astype(ml_dtypes.float8_e4m3fn)
    weights = network.add_constant(codes.shape, codes).get_output(0)
    real = network.add_dequantize(weights, _constant(network, np.float32(0.05), np.float32)).get_output(0)
    layer = Convolution(num_output_maps=12, kernel_size_nd=(3, 3))
    return network.add_layer(layer, [x, real])


def _quantize_dynamically(network: Network, x: Tensor) -> object:
    layer = network.add_dynamic_quantize(x, 1, 16)
    layer.set_input(1, _constant(network, np.float32(0.01), np.float32))
    return layer


def _round_trip(to_type: dryfit.DataType) -> Network:
    def add(network: Network, x: Tensor) -> object:
        layer = network.add_layer(Quantize(to_type=to_type), [x, _constant(network, np.float32(0.05), np.float32)])
        return network.add_dequantize(layer.get_output(0), _constant(network, np.float32(0.05), np.float32))

    return _one((2, 4, 5, 16), add)


def _codes(dtype: dryfit.DataType, shape: tuple[int, ...]) -> Network:
    """Codes that the caller gives."""
    network = Network("codes")
    value = network.add_input("x", dtype, shape)
    if dtype is dryfit.DataType.INT8:
        value = network.add_activation(value, dryfit.ActivationType.RELU).get_output(0)
    network.mark_output(network.add_dequantize(value, _constant(network, np.float32(0.05), np.float32)).get_output(0))
    return network


_PLAIN: dict[str, Callable[[], Network]] = {
    "scalar gather": lambda: _gather(GatherMode.DEFAULT, (4, 600), 1),
    "gather": lambda: _gather(GatherMode.DEFAULT, (4, 6, 8), [3, 0, 1], 1),
    "gather by a matrix": lambda: _gather(GatherMode.DEFAULT, (4, 6), [[3, 0], [1, 2]], 1),
    "gather nd": lambda: _gather(GatherMode.ND, (4, 6, 80), [[1, 2], [3, 0]]),
    "gather elements": lambda: _gather(GatherMode.ELEMENT, (4, 6), [[0, 1, 2, 3, 0, 1]]),
    **{f"slice {mode.name}": lambda mode=mode: _slice(mode) for mode in SampleMode},
    "convolution 1d": lambda: _convolution((2, 8, 33), 8, (3,)),
    "convolution 3d": lambda: _convolution((1, 4, 5, 6, 7), 8, (3, 3, 3)),
    "convolution winograd": lambda: _convolution((1, 32, 14, 14), 32, (3, 3)),
    "convolution to many": lambda: _convolution((1, 1, 9, 10), 4096, (3, 3)),
    "convolution to few": lambda: _convolution((1, 64, 9, 10), 1, (3, 3)),
    "convolution to 8": lambda: _convolution((1, 4, 9, 10), 8, (3, 3)),
    "convolution by channels": lambda: _convolution((1, 16, 9, 10), 16, (3, 3), 16),
    "convolution in groups": lambda: _convolution((1, 32, 9, 10), 32, (3, 3), 8),
    "convolution of 24 in groups": lambda: _convolution((1, 24, 9, 10), 24, (3, 3), 6),
    "deconvolution to few": lambda: _deconvolution((1, 16, 5, 6), 3, 1),
    "deconvolution to many": lambda: _deconvolution((1, 1, 5, 6), 512, 1),
    "deconvolution by channels": lambda: _deconvolution((1, 16, 5, 6), 16, 16),
    "deconvolution 3d": lambda: _deconvolution((1, 4, 3, 4, 5), 4, 1),
    "gates": lambda: _one((1, 8, 5, 6), _gated),
    "pooling 3d": lambda: _one((1, 8, 6, 7, 8), _pooled_volume),
    "reduction of channels": lambda: _one(
        (2, 3, 70, 8), lambda network, x: network.add_reduce(x, dryfit.ReduceOperation.MAX, 0b11, keep_dims=False)
    ),
    "quantized dynamically": lambda: _one((3, 64), _quantize_dynamically),
    "convolution with FP8": lambda: _one((1, 8, 7, 7), _narrow_convolution),
    **{f"round trip of {name}": lambda name=name: _round_trip(dryfit.DataType[name]) for name in ("FP8", "UINT8")},
    **{f"codes of {name}": lambda name=name: _codes(dryfit.DataType[name], (2, 4, 6)) for name in ("INT8", "UINT8")},
    "product with INT4": lambda: _narrow_product(ml_dtypes.int4),
    "product with FP8": lambda: _narrow_product(ml_dtypes.float8_e4m3fn),
    "product with FP4": lambda: _narrow_product(ml_dtypes.float4_e2m1fn),
}

_QUANTIZED: dict[str, Callable[[], Network]] = {
    "quantized convolution": lambda: SmallNetwork((1, 8, 6, 7)).convolve(24, 3, limits=(0.0, 6.0)).end(),
    "quantized pointwise": lambda: SmallNetwork((2, 16, 5, 5)).convolve(8).end(),
    "quantized winograd": lambda: SmallNetwork((1, 32, 9, 9)).convolve(32, 3).end(),
    "quantized by channels": lambda: SmallNetwork((1, 16, 6, 7)).convolve(16, 3, groups=16).end(),
    "quantized in groups": lambda: SmallNetwork((1, 16, 6, 7)).convolve(16, 3, groups=4).end(),
    "quantized to many": lambda: SmallNetwork((1, 1, 6, 7)).convolve(512, 3).end(),
    "quantized to few": lambda: SmallNetwork((1, 512, 2, 2)).convolve(8).end(),
    "quantized deconvolution": lambda: SmallNetwork((1, 8, 4, 5)).deconvolve(12).end(),
    "quantized deconvolution by channels": lambda: SmallNetwork((1, 16, 4, 5)).deconvolve(16, 16).end(),
    "quantized deconvolution to few": lambda: SmallNetwork((1, 512, 2, 2)).deconvolve(8).end(),
    "quantized layer of all": lambda: SmallNetwork((2, 8, 3, 3)).connect(20).end(),
    "quantized sum": lambda: SmallNetwork((1, 8, 5, 5)).add_itself().end(),
    "quantized residual": lambda: SmallNetwork((1, 16, 6, 6)).convolve(16).add().end(),
    "quantized maxima": lambda: SmallNetwork((1, 40, 9, 9)).pool(dryfit.PoolingType.MAX).end(),
    "quantized averages": lambda: SmallNetwork((1, 40, 9, 9)).pool(dryfit.PoolingType.AVERAGE).end(),
    "quantized means": lambda: SmallNetwork((1, 40, 5, 5)).mean().end(),
    "quantized resize": lambda: SmallNetwork((1, 8, 5, 6)).resize().end(),
    "quantized softmax": lambda: SmallNetwork((2, 40)).softmax().end(),
    "quantized sigmoid": lambda: SmallNetwork((2, 8, 5, 5)).sigmoid().end(),
    "quantized product": lambda: SmallNetwork((3, 24)).multiply(40).end(),
    "quantized matrices": lambda: SmallNetwork((2, 3, 24)).multiply_itself().end(),
    "quantized concatenation": lambda: SmallNetwork((1, 8, 4, 4)).concatenate().end(),
}
