"""Networks small enough to build twice, once for each set of weights."""

from __future__ import annotations

import numpy as np

from dryfit.builder.config.builder_config import BuilderConfig, BuilderFlag
from dryfit.builder.refit.refitter import Refitter
from dryfit.building import Builder
from dryfit.engine.engine import Engine
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType, ScaleMode
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.network.layers.matrix import MatrixOperation
from dryfit.network.layers.window_layer import PoolingType
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor
from dryfit.network.weights_role import weights_of

FLOAT = np.float32


def named(network: Network, layer, name: str) -> Tensor:
    """Give a layer a name, and its first output the same; return the output."""
    network.rename_layer(layer, name)
    network.rename_tensor(layer.get_output(0), f"{name}_out")
    return layer.get_output(0)


def weights(seed: int) -> dict[str, np.ndarray]:
    """Weights of the networks below by name."""
    rng = np.random.default_rng(seed)
    return {
        "kernel": rng.standard_normal((8, 4, 3, 3)).astype(FLOAT),
        "bias": rng.standard_normal(8).astype(FLOAT),
        "scale": rng.uniform(0.5, 2, 8).astype(FLOAT),
        "shift": rng.standard_normal(8).astype(FLOAT),
        "matrix": rng.standard_normal((8, 5)).astype(FLOAT),
        "addend": rng.standard_normal((1, 5)).astype(FLOAT),
    }


def float_network(values: dict[str, np.ndarray]) -> Network:
    """x[1, 4, 8, 8] -> convolution, batch normalization, ReLU, reshape, product with a folded matrix, sum -> y."""
    network = Network("float")
    x = network.add_input("x", DataType.FLOAT, (1, 4, 8, 8))
    convolution = network.add_convolution_nd(x, 8, (3, 3), values["kernel"], values["bias"])
    convolution.padding_nd = (1, 1)
    norm = network.add_scale(
        named(network, convolution, "conv"), ScaleMode.CHANNEL, values["shift"], values["scale"], None
    )
    relu = network.add_activation(named(network, norm, "norm"), ActivationType.RELU)
    pool = network.add_pooling_nd(named(network, relu, "relu"), PoolingType.AVERAGE, (8, 8))
    flat = network.add_shuffle(named(network, pool, "pool"))
    flat.reshape_dims = (1, 8)
    # The transposition is folded while building, and so has to be repeated by a refit.
    transposed = network.add_constant((5, 8), np.ascontiguousarray(values["matrix"].T))
    straight = network.add_shuffle(named(network, transposed, "matrix"))
    straight.first_transpose = (1, 0)
    product = network.add_matrix_multiply(
        named(network, flat, "flat"), MatrixOperation.NONE, named(network, straight, "straight"), MatrixOperation.NONE
    )
    addend = network.add_constant((1, 5), values["addend"])
    total = network.add_elementwise(
        named(network, product, "product"), named(network, addend, "addend"), ElementWiseOperation.SUM
    )
    network.mark_output(named(network, total, "total"))
    network.rename_tensor(total.get_output(0), "y")
    return network


def quantized_network(
    values: dict[str, np.ndarray], *, scales: dict[str, float], weights_in_int8: bool = False
) -> Network:
    """x -> Q, DQ -> convolution (weights with Q, DQ) -> two Q, DQ -> concatenation -> y.

    Args:
        values: weights.
        scales: of the tensors `x`, `left` and `right`, whose quantizations read the same tensor.
        weights_in_int8: whether the kernel is given in INT8 already.
    """
    network = Network("quantized")
    x = network.add_input("x", DataType.FLOAT, (1, 4, 8, 8))
    kernel_scale = (np.abs(values["kernel"]).reshape(8, -1).max(axis=1) / 127).astype(FLOAT)
    taken = _quantized(network, x, "x", scales["x"])
    if weights_in_int8:
        codes = np.rint(values["kernel"] / kernel_scale[:, None, None, None]).astype(np.int8)
        start = named(network, network.add_constant((8, 4, 3, 3), codes), "codes")
    else:
        real = named(network, network.add_constant((8, 4, 3, 3), values["kernel"]), "kernel")
        scale = named(network, network.add_constant((8,), kernel_scale), "kernel_scale")
        quantize = network.add_quantize(real, scale)
        quantize.axis = 0
        start = named(network, quantize, "quantize_kernel")
    scale = named(network, network.add_constant((8,), kernel_scale), "kernel_scale_2")
    dequantize = network.add_dequantize(start, scale)
    dequantize.axis = 0
    real_kernel = named(network, dequantize, "dequantize_kernel")
    convolution = network.add_convolution_nd(taken, 8, (3, 3), None, values["bias"])
    convolution.set_input(1, real_kernel)
    out = named(network, convolution, "conv")
    parts = [_quantized(network, out, name, scales[name]) for name in ("left", "right")]
    joined = named(network, network.add_concatenation(parts), "joined")
    pool = network.add_pooling_nd(joined, PoolingType.MAX, (2, 2))
    pool.stride_nd = (2, 2)
    network.mark_output(named(network, pool, "pool"))
    network.rename_tensor(pool.get_output(0), "y")
    return network


def _quantized(network: Network, tensor: Tensor, name: str, scale: float) -> Tensor:
    scales = named(network, network.add_constant((), np.array(scale, FLOAT)), f"{name}_scale")
    codes = named(network, network.add_quantize(tensor, scales), f"quantize_{name}")
    return named(network, network.add_dequantize(codes, scales), f"dequantize_{name}")


def built(network: Network, *flags: BuilderFlag, device: str = "GPU", **settings) -> Engine:
    """An engine of a network; kernels are not measured, so that two builds choose alike."""
    config = BuilderConfig()
    config.default_device_type = device
    config.builder_optimization_level = 0
    for flag in flags:
        config.set_flag(flag)
    for name, value in settings.items():
        setattr(config, name, value)
    return Builder().build_engine(network, config)


def outputs(engine: Engine, seed: int = 7) -> dict[str, np.ndarray]:
    """What an engine gives for one random input."""
    x = np.random.default_rng(seed).standard_normal((1, 4, 8, 8)).astype(FLOAT)
    return engine.create_execution_context(1).run({"x": x})


def give_all(refitter: Refitter, network: Network) -> None:
    """Give a refitter the weights of a network, by layer and role."""
    places = set(zip(*refitter.get_all(), strict=True))
    for layer in network.layers:
        for role, array in weights_of(layer):
            if (layer.name, role) in places:
                assert refitter.set_weights(layer.name, role, array)


def same(first: dict[str, np.ndarray], second: dict[str, np.ndarray]) -> bool:
    """Whether two sets of outputs are equal to the bit."""
    return first.keys() == second.keys() and all(first[name].tobytes() == second[name].tobytes() for name in first)


SCALES = {"x": 0.02, "left": 0.05, "right": 0.05}

NETWORKS = {
    "float": float_network,
    "weights quantized by the engine": lambda values: quantized_network(values, scales=SCALES),
    "weights quantized before": lambda values: quantized_network(values, scales=SCALES, weights_in_int8=True),
}
"""What it is, to what makes it of weights."""
