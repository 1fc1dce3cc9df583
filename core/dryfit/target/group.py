"""Layer groups: what a device runs as one, such as a convolution with its bias, residual and activation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from dryfit.network.layer import Layer
from dryfit.network.tensor import Tensor


def _in_order(layers: Iterable[Layer]) -> tuple[Layer, ...]:
    return tuple(layers)


@attrs.frozen(eq=False)
class LayerGroup:
    """A chain of layers that run as one kernel. The first is the main layer, the others its epilogue.

    Inside the group nothing is rounded to the tensor's type and nothing is stored: the chain is computed in the
    accumulator's type (FP32 for floating point) and rounded once, at the end.

    Attributes:
        layers: in order; each but the first consumes the output of the one before, which nobody else uses.
    """

    layers: tuple[Layer, ...] = attrs.field(converter=_in_order)

    @property
    def main(self) -> Layer:
        """The first layer, which decides the kernel."""
        return self.layers[0]

    @property
    def epilogue(self) -> Sequence[Layer]:
        """The layers after the first."""
        return self.layers[1:]

    @property
    def name(self) -> str:
        """The user's layer names, joined as TensorRT joins them."""
        return " + ".join(layer.name for layer in self.layers)

    @property
    def outputs(self) -> Sequence[Tensor]:
        """The outputs of the last layer."""
        return self.layers[-1].outputs

    @property
    def inputs(self) -> list[Tensor]:
        """Tensors that come from outside, in the order of layers and inputs, each once."""
        inner = {output.name for layer in self.layers for output in layer.outputs}
        found = {
            tensor.name: tensor
            for layer in self.layers
            for tensor in layer.inputs
            if tensor is not None and tensor.name not in inner
        }
        return list(found.values())


class SegmentGroup(LayerGroup):
    """All layers of a segment that a target compiled: a graph of any form, with any number of outputs.

    Its name is the one that TensorRT gives to what another compiler took over: `{ForeignNode[first...last]}`.
    """

    @property
    def name(self) -> str:
        """The user's names of the first and the last layer."""
        names = dict.fromkeys((self.layers[0].name, self.layers[-1].name))
        return f"{{ForeignNode[{'...'.join(names)}]}}"

    @property
    def outputs(self) -> Sequence[Tensor]:
        """What others read, and outputs of the network, in the order of layers."""
        members = {layer.name for layer in self.layers}
        return [
            tensor
            for layer in self.layers
            for tensor in layer.outputs
            if tensor.is_network_output or any(reader.name not in members for reader, _ in tensor.consumers)
        ]
