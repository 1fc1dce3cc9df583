"""The form of a quantized model that TensorRT asks for: nothing is quantized between layers that run as one.

Source: TensorRT 10, "Q/DQ Layer-Placement Recommendations": quantize the inputs of weighted layers, do not quantize
their outputs by default, do not simulate the fusion with ReLU, quantize the residual input of additions.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import onnx

WEIGHTED = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})
ACTIVATIONS = frozenset({"Relu", "Clip"})
POOLS = frozenset({"MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"})
READ_THROUGH = frozenset({"Reshape", "Flatten", "Squeeze", "Unsqueeze", "QuantizeLinear", "DequantizeLinear"})
INTEGER_READERS = WEIGHTED | POOLS | {"Add", "Concat"}
"""What reads quantized values: for others, such as Softmax, rounding only costs accuracy."""


@attrs.frozen(eq=False)
class Pair:
    """A quantization and the dequantization behind it: only it reads what is quantized, and only it is what is read.

    Attributes:
        before: what gives the real values.
        quantize: the first node.
        dequantize: the second.
        readers: of the result.
    """

    before: onnx.NodeProto
    quantize: onnx.NodeProto
    dequantize: onnx.NodeProto
    readers: list[onnx.NodeProto]


class _Graph:
    """Who gives and who reads each value."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        self.nodes = list(graph.node)
        self.outputs = {tensor.name for tensor in graph.output}
        self.producers = {name: node for node in self.nodes for name in node.output}
        self.readers: dict[str, list[onnx.NodeProto]] = {}
        for node in self.nodes:
            for name in node.input:
                self.readers.setdefault(name, []).append(node)

    def pair(self, quantize: onnx.NodeProto) -> Pair | None:
        """The pair that begins with a quantization; None where others read what goes into it or out of it."""
        source, readers = quantize.input[0], self.readers.get(quantize.output[0], [])
        if source not in self.producers or self.readers[source] != [quantize] or source in self.outputs:
            return None
        if [node.op_type for node in readers] != ["DequantizeLinear"]:
            return None
        return Pair(self.producers[source], quantize, readers[0], self.readers.get(readers[0].output[0], []))

    def is_read_quantized(self, name: str) -> bool:
        """Whether a layer that runs in integers reads a value, behind what only reshapes or rounds it."""
        return any(
            node.op_type in INTEGER_READERS | ACTIVATIONS
            or (node.op_type in READ_THROUGH and self.is_read_quantized(node.output[0]))
            for node in self.readers.get(name, [])
        )


def tensorrt_form(model: onnx.ModelProto) -> onnx.ModelProto:
    """A model with Q and DQ around every layer, without those inside what TensorRT runs as one layer.

    A pair is left out, and its scales with it, where it stands

    * between a weighted layer, or an addition that one is fused with, and RELU or CLIP;
    * between a weighted layer and an addition whose other addend stays quantized: the residual;
    * where no layer that runs in integers reads the result: before Softmax, and at the end.

    All other scales stay as they were calibrated.
    """
    graph, left_out = _Graph(model.graph), dict[str, str]()
    for pair in _pairs_to_leave_out(graph):
        left_out[pair.dequantize.output[0]] = pair.quantize.input[0]
    dropped = {graph.producers[name].output[0] for name in left_out}
    dropped |= {graph.producers[name].input[0] for name in left_out}
    kept = [node for node in graph.nodes if node.output[0] not in dropped]
    for node in kept:
        for position, name in enumerate(node.input):
            node.input[position] = left_out.get(name, name)
        for position, name in enumerate(node.output):  # an output of the model keeps its name
            node.output[position] = next((end for end in graph.outputs if left_out.get(end) == name), name)
    del model.graph.node[:], model.graph.value_info[:]
    model.graph.node.extend(kept)
    return model


def _pairs_to_leave_out(graph: _Graph) -> Iterator[Pair]:
    pairs = [pair for node in graph.nodes if node.op_type == "QuantizeLinear" and (pair := graph.pair(node))]
    # Of two addends that could both be real, the one that is computed last stays so: the layer that runs with the sum.
    fused: dict[str, Pair] = {}
    for pair in pairs:
        if pair.before.op_type in WEIGHTED and [node.op_type for node in pair.readers] == ["Add"]:
            fused[pair.readers[0].output[0]] = pair
    yield from fused.values()
    for pair in pairs:
        is_layer = pair.before.op_type in WEIGHTED or pair.before.output[0] in fused
        is_fused = is_layer and len(pair.readers) == 1 and pair.readers[0].op_type in ACTIVATIONS
        if is_fused or not graph.is_read_quantized(pair.dequantize.output[0]):
            yield pair
