"""A quantized plugin between two convolutions, absorbed by the builder or by hand, and what fuses around it.

`python chapter_graph.py` prints the groups that each engine runs. Square brackets are what runs as one, as in
TensorRT's "Working with Quantized Types", Q/DQ interaction with plugins.
"""

from __future__ import annotations

import numpy as np
from quantized_swish import QuantizedSwish

import dryfit
from dryfit import DataType

SHAPE = (1, 4, 8, 8)
CONV_SCALE, SWISH_SCALE, KERNEL_SCALE = 1 / 16, 1 / 32, 1 / 64


class Graph:
    """A network that grows from left to right; the methods are the chapter's words.

    Args:
        dtype: INT8 or FP8.
    """

    def __init__(self, dtype: DataType) -> None:
        self.network, self.dtype = dryfit.Network("chapter"), dtype
        self.random = np.random.default_rng(0)

    def quantize(self, x: dryfit.Tensor, name: str, scale: float) -> dryfit.Tensor:
        """Q."""
        return self._named(self.network.add_quantize(x, self._constant(np.float32(scale)), self.dtype), name)

    def dequantize(self, x: dryfit.Tensor, name: str, scale: float) -> dryfit.Tensor:
        """DQ."""
        return self._named(self.network.add_dequantize(x, self._constant(np.float32(scale))), name)

    def convolve(self, x: dryfit.Tensor, name: str) -> dryfit.Tensor:
        """Conv, with quantized weights."""
        codes = self.random.integers(-60, 60, (4, 4, 1, 1)).astype(self.dtype.numpy)
        layer = self.network.add_convolution_nd(x, 4, (1, 1))
        layer.set_input(1, self.dequantize(self._constant(codes), f"{name}.weights", KERNEL_SCALE))
        return self._named(layer, name)

    def swish(self, x: dryfit.Tensor, **fields: object) -> dryfit.Tensor:
        """The plugin."""
        return self._named(self.network.add_plugin([x], QuantizedSwish(), fields), "Swish")

    def _constant(self, values: np.ndarray | np.generic) -> dryfit.Tensor:
        return self.network.add_constant(values.shape, np.asarray(values)).get_output(0)

    def _named(self, layer: dryfit.Layer, name: str) -> dryfit.Tensor:
        self.network.rename_layer(layer, name)
        self.network.rename_tensor(layer.get_output(0), name)
        return layer.get_output(0)


def network(dtype: DataType, *, by_hand: bool) -> dryfit.Network:
    """`Input > Q -> DQ > Conv > Q -> DQ_i > Swish > Q_o -> DQ > Conv > Output`, by hand without DQ_i and Q_o."""
    graph = Graph(dtype)
    x = graph.quantize(graph.network.add_input("Input", DataType.FLOAT, SHAPE), "Q1", CONV_SCALE)
    x = graph.quantize(graph.convolve(graph.dequantize(x, "DQ1", CONV_SCALE), "Conv1"), "Q2", CONV_SCALE)
    if by_hand:
        scales = {
            "input_scales": (np.array(CONV_SCALE, np.float32),),
            "output_scales": (np.array(SWISH_SCALE, np.float32),),
        }
        x = graph.swish(x, **scales)
        graph.network.layer("Swish").set_output_type(0, dtype)
    else:
        x = graph.quantize(graph.swish(graph.dequantize(x, "DQ_i", CONV_SCALE)), "Q_o", SWISH_SCALE)
    x = graph.convolve(graph.dequantize(x, "DQ2", SWISH_SCALE), "Conv2")
    graph.network.mark_output(x)
    return graph.network


def groups(engine: dryfit.Engine) -> str:
    """What runs as one, in brackets, without what belongs to weights."""
    names = [[name for name in one.layers if not name.endswith(".weights")] for one in engine.plan.operations]
    return " ".join("[" + " ".join(one) + "]" for one in names if one)


def main() -> None:
    """Build both forms for both types, and tell how they run and whether they agree."""
    x = np.random.default_rng(1).normal(size=SHAPE).astype(np.float32)
    for dtype in (DataType.INT8, DataType.FP8):
        results = []
        for by_hand in (False, True):
            engine = dryfit.Builder().build_engine(network(dtype, by_hand=by_hand), dryfit.BuilderConfig())
            results.append(engine.create_execution_context().run({"Input": x})["Conv2"])
            print(f"{dtype.name}, {'absorbed by hand' if by_hand else 'absorbed by the builder'}: {groups(engine)}")
        print(f"{dtype.name}: the two give {'the same bits' if np.array_equal(*results) else 'different numbers'}")


if __name__ == "__main__":
    main()
