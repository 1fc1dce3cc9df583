"""Layer groups that a device runs as one, such as a convolution with its bias, residual and activation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from dryfit.network.layer import Layer
from dryfit.network.layers.quantized_operator import WEIGHTS_INPUT, QuantizedOperator
from dryfit.network.tensor import Tensor


def _in_order(layers: Iterable[Layer]) -> tuple[Layer, ...]:
    found = tuple(layers)
    return found if len(found) == 1 else tuple(dict.fromkeys(found))


def is_repeatable(layer: Layer) -> bool:
    """Return whether groups may each hold a copy of the layer: a dequantization is free where it is read."""
    return layer.kind == "dequantize"


@attrs.frozen(eq=False)
class LayerGroup:
    """Layers that run as one kernel: dequantizations of the inputs, the main layer, and its epilogue.

    Without quantize layers, no intermediate result is stored or rounded to a tensor's type: the group is computed in
    the accumulator's type (FP32 for floating point) and rounded once, at the end. A quantize layer inside a group
    rounds as it does outside.

    Attributes:
        layers: the layers in a valid execution order, each once. The outputs of every layer except the last are used
            only by later layers of the group; a dequantization may be part of several groups, and is then repeated in
            each.
    """

    layers: tuple[Layer, ...] = attrs.field(converter=_in_order)

    @property
    def main(self) -> Layer:
        """The first layer that does more than dequantize, which selects the kernel; otherwise the first layer."""
        first = self.layers[0]
        if first.kind != "dequantize":  # most groups
            return first
        return next((one for one in self.layers if not is_repeatable(one)), first)

    @property
    def prologue(self) -> Sequence[Layer]:
        """Dequantizations before the main layer."""
        return self.layers[: self.layers.index(self.main)] if is_repeatable(self.layers[0]) else ()

    @property
    def epilogue(self) -> Sequence[Layer]:
        """Layers after the main layer."""
        return self.layers[self.layers.index(self.main) + 1 :]

    @property
    def name(self) -> str:
        """Layer names, joined as in TensorRT."""
        return " + ".join(layer.name for layer in self.layers)

    @property
    def outputs(self) -> Sequence[Tensor]:
        """Outputs of the last layer."""
        return self.layers[-1].outputs

    @property
    def inputs(self) -> list[Tensor]:
        """Tensors from outside the group, in the order of layers and inputs, each once."""
        inner = {output.name for layer in self.layers[:-1] for output in layer.outputs}
        found = {
            tensor.name: tensor
            for layer in self.layers
            for tensor in layer.connected_inputs
            if tensor.name not in inner
        }
        return list(found.values())

    @property
    def codes_read(self) -> tuple[Layer, int] | None:
        """The layer that reads the codes of the main layer's weights and the number of that input.

        None if there is no such layer, or if the group also reads the weights as values, as a product of weights by
        themselves does: then packed codes do not replace them.
        """
        main = self.main
        if isinstance(main, QuantizedOperator):
            return main, WEIGHTS_INPUT
        tensor = main.inputs[1] if len(main.inputs) > 1 else None
        producer = None if tensor is None else tensor.producer
        if producer is None or producer not in self.prologue:
            return None
        reads = sum(read is tensor for layer in self.layers for read in layer.inputs)
        return (producer, 0) if reads == 1 else None


class SegmentGroup(LayerGroup):
    """All layers of a segment compiled by a target: any graph, with any number of outputs.

    Its name is the one that TensorRT gives to layers handed to another compiler: `{ForeignNode[first...last]}`.
    """

    @property
    def name(self) -> str:
        """Names of the first and the last layer."""
        names = dict.fromkeys((self.layers[0].name, self.layers[-1].name))
        return f"{{ForeignNode[{'...'.join(names)}]}}"

    @property
    def outputs(self) -> Sequence[Tensor]:
        """Tensors that other layers read, and network outputs, in the order of layers."""
        members = {layer.name for layer in self.layers}
        return [
            tensor
            for layer in self.layers
            for tensor in layer.outputs
            if tensor.is_network_output or any(reader.name not in members for reader, _ in tensor.consumers)
        ]
