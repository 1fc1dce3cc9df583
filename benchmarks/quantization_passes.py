"""How the time of the passes over Q/DQ grows with the network: synthetic networks of 100 to 10,000 Q/DQ layers.

A slope of 1 (ten times the layers, ten times the time) is linear; the smallest networks are left out of it, since fixed
costs rule there. Run: `python benchmarks/quantization_passes.py`.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.layers.convolution import Convolution
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.network.layers.window_layer import PoolingType
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor
from dryfit.passes.canonical import own_passes
from dryfit.passes.pipeline import Pipeline

SIZES = (100, 1_000, 10_000)
"""Quantize and dequantize layers, about."""
REPEATS = 2
CHANNELS = 4


class QuantizedNetwork:
    """A network that grows by quantized layers; tensors are `[1, 4, 4, 4]`."""

    def __init__(self) -> None:
        self.network = Network("benchmark")
        self.x = self.network.add_input("x", DataType.FLOAT, (1, CHANNELS, 4, 4))

    def constant(self, values: object) -> Tensor:
        """FP32 values."""
        array = np.asarray(values, np.float32)
        return self.network.add_constant(array.shape, array).get_output(0)

    def pair(self, x: Tensor, scale: float = 0.1) -> Tensor:
        """A tensor quantized and dequantized, each by a scale constant of its own."""
        quantize = self.network.add_quantize(x, self.constant(scale))
        return self.network.add_dequantize(quantize.get_output(0), self.constant(scale)).get_output(0)

    def convolution(self, x: Tensor) -> Tensor:
        """A 1x1 convolution with weights that are quantized and dequantized."""
        weights = self.pair(self.constant(np.ones((CHANNELS, CHANNELS, 1, 1))), 0.01)
        layer = Convolution(num_output_maps=CHANNELS, kernel_size_nd=(1, 1))
        return self.network.add_layer(layer, [x, weights]).get_output(0)

    def pooling(self, x: Tensor) -> Tensor:
        """Maximum pooling that keeps the extents."""
        layer = self.network.add_pooling_nd(x, PoolingType.MAX, (3, 3))
        layer.padding_nd = (1, 1)
        return layer.get_output(0)

    def transpose(self, x: Tensor) -> Tensor:
        """Rows for columns."""
        layer = self.network.add_shuffle(x)
        layer.first_transpose = (0, 1, 3, 2)
        return layer.get_output(0)

    def finished(self, x: Tensor) -> Network:
        """The network, with this output."""
        self.network.mark_output(x)
        self.network.refresh_shapes()
        return self.network


def residual_blocks(count: int) -> Network:
    """Like ResNet: a convolution, a ReLU, and a sum with what went before, all quantized."""
    made = QuantizedNetwork()
    x = made.pair(made.x)
    for _ in range(count // 6):
        y = made.convolution(x)
        total = made.network.add_elementwise(made.pair(y, 0.2), x, ElementWiseOperation.SUM).get_output(0)
        x = made.pair(made.network.add_activation(total, ActivationType.RELU).get_output(0))
    return made.finished(x)


def chain_of_moves(count: int) -> Network:
    """One pair over one layer after another: each dequantization moves over all layers up to the end."""
    made = QuantizedNetwork()
    x = made.pair(made.x)
    for _ in range(count // 2):
        x = made.transpose(made.pooling(x))
    return made.finished(x)


def pairs_with_moves(count: int) -> Network:
    """Pairs of one scale with a pooling between: all but the first quantization cancel."""
    made = QuantizedNetwork()
    x = made.x
    for _ in range(count // 2):
        x = made.transpose(made.pooling(made.pair(x)))
    return made.finished(x)


def moves_before_one_pair(count: int) -> Network:
    """A chain of layers and one pair after them: the quantization moves over all of them, to a convolution."""
    made = QuantizedNetwork()
    x = made.convolution(made.x)
    for _ in range(count):
        x = made.pooling(x)
    return made.finished(made.pair(x))


def fan_outs(count: int) -> Network:
    """A tensor that many read, each through a pair of its own, joined again."""
    made = QuantizedNetwork()
    branches = [made.pooling(made.pair(made.x)) for _ in range(count // 2)]
    joined = made.network.add_concatenation(branches)
    joined.axis = 1
    return made.finished(made.pair(joined.get_output(0)))


def splits(count: int) -> Network:
    """A tensor of which many take a part and quantize it: all become one quantization before the parts are taken."""
    made = QuantizedNetwork()
    x, parts = made.convolution(made.x), []
    for number in range(count // 2):
        start, shape = (0, number % CHANNELS, 0, 0), (1, 1, 4, 4)
        parts.append(made.pair(made.network.add_slice(x, start, shape, (1, 1, 1, 1)).get_output(0)))
    joined = made.network.add_concatenation(parts)
    joined.axis = 1
    return made.finished(joined.get_output(0))


def ladder(count: int) -> Network:
    """Each step joins what came before with a pooling of it: dequantizations are copied at each."""
    made = QuantizedNetwork()
    x = made.pair(made.x)
    for _ in range(count // 2):
        half = made.network.add_slice(x, (0, 0, 0, 0), (1, CHANNELS // 2, 4, 4), (1, 1, 1, 1)).get_output(0)
        joined = made.network.add_concatenation([half, made.pair(half)])
        joined.axis = 1
        x = joined.get_output(0)
    return made.finished(made.convolution(x))


NETWORKS: tuple[Callable[[int], Network], ...] = (
    residual_blocks,
    chain_of_moves,
    pairs_with_moves,
    moves_before_one_pair,
    fan_outs,
    splits,
    ladder,
)


def seconds(make: Callable[[int], Network], size: int) -> dict[str, float]:
    """The best times of a few, by pass."""
    best: dict[str, float] = {}
    for _ in range(REPEATS):
        network = make(size)
        reports = Pipeline(own_passes()).run(network).reports
        spent = {report.name: report.seconds for report in reports}
        if not best or sum(spent.values()) < sum(best.values()):
            best = spent
    return best


def main() -> None:
    """Print a table: the time of all passes, and the slope of the pass that grows fastest."""
    logging.getLogger("dryfit.passes").setLevel(logging.ERROR)
    print(f"{'network':24}" + "".join(f"{size:>9,} Q/DQ" for size in SIZES) + "   slope   steepest pass")
    for make in NETWORKS:
        results = [seconds(make, size) for size in SIZES]
        totals = [sum(result.values()) for result in results]
        slopes = {
            name: math.log(results[-1][name] / results[-2][name], SIZES[-1] / SIZES[-2])
            for name in results[0]
            if results[-1][name] > totals[-1] / 20
        }
        steepest = max(slopes, key=lambda name: slopes[name])
        slope = math.log(totals[-1] / totals[-2], SIZES[-1] / SIZES[-2])
        times = "".join(f"{total:12.3f} s" for total in totals)
        print(f"{make.__name__:24}{times}   {slope:5.2f}   {steepest} {slopes[steepest]:.2f}", flush=True)


if __name__ == "__main__":
    main()
