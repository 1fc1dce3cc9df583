"""Small networks with Q/DQ pairs."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from dryfit.network.data_types import DataType
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.network.network import Network


def named(layer, name):
    """Give a layer a name, and its first output the same; return the output."""
    layer.network.rename_layer(layer, name)
    layer.network.rename_tensor(layer.get_output(0), name)
    return layer.get_output(0)


def dequantized(network, x, scale, name, **parameters):
    """The tensor in real numbers, by a constant scale."""
    return _with(network.add_dequantize(x, _constant(network, scale)), name, parameters)


def quantized(network, x, scale, name, dtype=DataType.INT8, **parameters):
    """The tensor quantized by a constant scale."""
    return _with(network.add_quantize(x, _constant(network, scale), dtype), name, parameters)


def quantized_sum(shape=(1, 4, 3, 3)):
    """y = quantize(dequantize(a) * 0.5 + dequantize(b) * 0.25), with scale 1: layers a_real, b_real, sum, y."""
    network = Network("quantized sum")
    a, b = (network.add_input(name, DataType.INT8, shape) for name in "ab")
    real = [dequantized(network, a, 0.5, "a_real"), dequantized(network, b, 0.25, "b_real")]
    total = named(network.add_elementwise(*real, ElementWiseOperation.SUM), "sum")
    network.mark_output(quantized(network, total, 1.0, "y"))
    return network


@st.composite
def networks_of_sums(draw):
    """A network of quantized sums with inputs a and b: shared, doubled and missing Q/DQ pairs, any order of outputs.

    Scales are powers of two, so that real numbers are exact.
    """
    network = Network("sums")
    narrow = [network.add_input(name, DataType.INT8, (1, 4, 3, 3)) for name in "ab"]
    real = [dequantized(network, x, draw(SCALES), f"{x.name}_real") for x in narrow]
    for number in range(draw(st.integers(1, 6))):
        operands = [draw(st.sampled_from(real)) for _ in range(2)]
        total = named(network.add_elementwise(*operands, ElementWiseOperation.SUM), f"sum{number}")
        scale = draw(SCALES)
        narrow += [quantized(network, total, scale, f"q{number}_{twin}") for twin in range(draw(st.integers(1, 2)))]
        real.append(dequantized(network, narrow[-1], draw(SCALES), f"r{number}"))
        if draw(st.integers(0, 3)) == 0:
            real.append(total)
    for tensor in draw(st.lists(st.sampled_from([*narrow[2:], *real]), min_size=1, max_size=4, unique_by=id)):
        network.mark_output(tensor)
    return network


SCALES = st.sampled_from([0.25, 0.5, 1.0, 2.0])


def _constant(network, value):
    array = np.asarray(value, np.float32)
    return network.add_constant(array.shape, array).get_output(0)


def _with(layer, name, parameters):
    for parameter, value in parameters.items():
        setattr(layer, parameter, value)
    return named(layer, name)
