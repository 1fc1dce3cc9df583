"""How much of a device's memory a set of layers needs, before it is known which of them run as one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import attrs
import numpy as np

from dryfit.builder.precisions import Precisions
from dryfit.builder.target_variant import TargetVariant
from dryfit.engine.memory_planner import plan_memory
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.tensor import Shape, Tensor, TensorSpec
from dryfit.target.memory_pools import MemoryPool

Specs = Mapping[str, TensorSpec]


def known_shape(spec: TensorSpec) -> Shape:
    """A shape to reckon with: an extent that is known only at run time counts as 1."""
    return tuple(max(extent, 1) if extent < 0 else extent for extent in spec.shape)


@attrs.frozen
class PoolNeeds:
    """Reckons for one device, at the shapes that the engine is optimised for.

    Attributes:
        variant: the device.
        specs: tensor name to spec.
        precisions: computation types.
    """

    variant: TargetVariant
    specs: Specs
    precisions: Precisions

    def of(self, layers: Sequence[Layer]) -> dict[str, int]:
        """Pool name to bytes, for the pools that one limit a segment speaks of.

        Weights are counted in the computation type, biases and scales among them. Activations are those tensors that
        only these layers see, each alive from its producer to its last reader, as if no two layers ran as one: an
        upper bound, as the device's own compiler joins layers.
        """
        needs: dict[str, int] = {}
        for pool in self.variant.target.memory_pools:
            if pool.per != "segment":
                continue
            if pool.holds == "weights":
                needs[pool.name] = self.weight_bytes(layers)
            elif pool.holds == "activations":
                needs[pool.name] = self._activation_bytes(layers, pool)
        return needs

    def weight_bytes(self, layers: Iterable[Layer]) -> int:
        """Bytes of parameters and constant inputs, each constant once."""
        total = 0
        constants: dict[str, tuple[int, DataType]] = {}
        for layer in layers:
            for field in layer.parameters():
                value = getattr(layer, field.name)
                if isinstance(value, np.ndarray):
                    total += self._bytes(layer, value.size, DataType.from_numpy(value.dtype))
            for index, tensor in enumerate(layer.inputs):
                if tensor is not None and tensor.producer is not None and tensor.producer.kind == "constant":
                    constants[tensor.name] = (math.prod(tensor.shape), self.precisions.input_type(layer, index))
        return total + sum(dtype.bytes_of(elements) for elements, dtype in constants.values())

    def _bytes(self, layer: Layer, elements: int, dtype: DataType) -> int:
        computed = self.precisions.layers[layer.name]
        is_narrowed = dtype.is_floating_point and computed.bits < dtype.bits
        return (computed if is_narrowed else dtype).bytes_of(elements)

    def _activation_bytes(self, layers: Sequence[Layer], pool: MemoryPool) -> int:
        step = {layer.name: index for index, layer in enumerate(layers)}
        buffers = [
            (self._tensor_bytes(layer, index), step[layer.name], max(step[c.name] for c, _ in tensor.consumers))
            for layer in layers
            for index, tensor in enumerate(layer.outputs)
            if stays_within(tensor, step)
        ]
        return plan_memory(buffers, pool.alignment_bytes).total

    def _tensor_bytes(self, layer: Layer, index: int) -> int:
        dtype = self.precisions.stored_type(layer, index)
        shape = known_shape(self.specs[layer.outputs[index].name])
        return self.variant.size_bytes(self.variant.native_format(shape, dtype), shape, dtype)


def stays_within(tensor: Tensor, layers: Mapping[str, object]) -> bool:
    """Whether a tensor of one of these layers is seen by no other layer and is not an output of the network."""
    return (
        bool(tensor.consumers)
        and all(consumer.name in layers for consumer, _ in tensor.consumers)
        and not tensor.is_network_output
    )
