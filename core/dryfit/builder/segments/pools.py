"""How much of a device's memory layers need, also before it is known which of them run as one, and parts that fit.

A segment that is too large for its pools is cut into parts in the order in which it runs. Layers that run as one stay
together, and each part is as long as it can be. What is asked of a part is only whether it fits; the length is found by
doubling and halving, so that n layers take about n log n of work.
"""

from __future__ import annotations

import heapq
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.builder.placement.target_variant import Specs, TargetVariant, known_shape
from dryfit.builder.precision.chosen import Precisions
from dryfit.engine.memory_planner import plan_memory
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.tensor import Shape, Tensor
from dryfit.plugins import registry
from dryfit.target.formats import LINEAR
from dryfit.target.memory_pools import MemoryPool, WeightsOfLayer

_KEPT_TYPES = (DataType.FLOAT, DataType.HALF, DataType.BF16, DataType.INT8)
"""Types in which the build may keep a tensor that the network has in one of them."""


@frozen
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

    def of(self, layers: Sequence[Layer], joined: Mapping[str, int] | None = None) -> dict[str, int]:
        """Pool name to bytes, for the pools that one limit a segment speaks of.

        Weights are counted as the pool keeps them, biases and scales among them. Activations are those tensors that
        only these layers see, each alive from its producer to its last reader, as if no two layers ran as one: mostly
        more than what is needed once they are joined, which `planned_cut` tells. A cache takes what of the activations
        its limit allows.

        Args:
            layers: of one segment, in execution order.
            joined: layer name to a number that it shares with the layers that run as one with it, where that is known.
        """
        return self._needs(layers, lambda pool: self._activation_bytes(layers, pool.alignment_bytes, joined or {}))

    def at_most(self, layers: Sequence[Layer]) -> dict[str, int]:
        """The same, and never less than what any plan of the segment takes.

        Every tensor that the layers read or give counts once for each type that the build may keep it in, and once more
        as it is dequantized, in the larger of the device's own format and plain rows.
        """
        tensors = {one.name: one for layer in layers for one in (*layer.inputs, *layer.outputs) if one is not None}

        def activation_bytes(pool: MemoryPool) -> int:
            total = 0
            for name, tensor in tensors.items():
                shape = known_shape(self.specs[name])
                for dtype in (DataType.FLOAT, *_KEPT_TYPES, tensor.dtype):
                    formats = (self.variant.native_format(shape, dtype), LINEAR)
                    size = max(self.variant.size_bytes(one, shape, dtype) for one in formats)
                    total += size + pool.alignment_bytes
            return total

        return self._needs(layers, activation_bytes)

    def as_planned(self, layers: Sequence[Layer], planned: Mapping[str, int]) -> dict[str, int]:
        """The same where it is known what the activations take.

        Args:
            layers: of one segment.
            planned: pool name to bytes, for pools that hold activations; none of the others.
        """
        return self._needs(layers, lambda pool: planned.get(pool.name, 0))

    def _needs(self, layers: Sequence[Layer], activations: Callable[[MemoryPool], int]) -> dict[str, int]:
        pools = [pool for pool in self.variant.target.memory_pools if pool.per == "segment"]
        held = {pool.name: activations(pool) for pool in pools if pool.holds == "activations"}
        needs: dict[str, int] = {}
        for pool in pools:
            if pool.holds == "weights":
                needs[pool.name] = self.weight_bytes(layers, pool)
            elif pool.holds == "activations":
                needs[pool.name] = held[pool.name]
            elif pool.holds == "cache":
                limit = self.variant.pool_limits.get(pool.name)
                needs[pool.name] = sum(held.values()) if limit is None else min(limit, sum(held.values()))
        return needs

    def weight_bytes(self, layers: Iterable[Layer], pool: MemoryPool) -> int:
        """Bytes in a pool of parameters and constant inputs, each constant once."""
        total = 0
        constants: dict[str, WeightsOfLayer] = {}
        for layer in layers:
            for field in layer.parameters():
                value = getattr(layer, field.name)
                if isinstance(value, np.ndarray):
                    dtype = DataType.from_numpy(value.dtype)
                    total += self._stored(pool, self._weights(layer, field.name, -1, value.shape, dtype))
            for index, tensor in enumerate(layer.inputs):
                if tensor is not None and tensor.is_constant:
                    taken = self.precisions.input_type(layer, index)
                    constants[tensor.name] = self._weights(layer, "", index, tensor.shape, taken)
        return total + sum(self._stored(pool, weights) for weights in constants.values())

    def _stored(self, pool: MemoryPool, weights: WeightsOfLayer) -> int:
        """Bytes that weights take in a pool; where the pool's own function fails, recorded, their computed bytes."""
        try:
            return operator.index(pool.bytes_of(weights))
        except (Exception, SystemExit) as error:  # noqa: BLE001  the function may be a stranger's
            registry.fail_function(self.variant.device, f"memory pool {pool.name}, stored_bytes", error)
            return weights.computed_bytes

    def _weights(self, layer: Layer, parameter: str, index: int, shape: Shape, dtype: DataType) -> WeightsOfLayer:
        precision, family = self.precisions.layers[layer.name], self.variant.platform.family
        return WeightsOfLayer(layer, parameter, index, shape, dtype, precision, family)

    def _activation_bytes(self, layers: Sequence[Layer], alignment_bytes: int, joined: Mapping[str, int]) -> int:
        step = {layer.name: index for index, layer in enumerate(layers)}
        # A tensor lives from the first step of the group that gives it to the last step of those that read it.
        first, last = dict(step), dict(step)
        groups: dict[int, list[str]] = {}
        for layer in layers:
            if layer.name in joined:
                groups.setdefault(joined[layer.name], []).append(layer.name)
        for names in groups.values():
            first.update(dict.fromkeys(names, min(step[name] for name in names)))
            last.update(dict.fromkeys(names, max(step[name] for name in names)))
        buffers = []
        for layer in layers:
            for index, tensor in enumerate(layer.outputs):
                if not stays_within(tensor, step):
                    continue
                readers = {consumer.name for consumer, _ in tensor.consumers}
                own = groups.get(joined.get(layer.name, -1), [])
                if not readers <= {*own}:
                    size = self._tensor_bytes(layer, index)
                    buffers.append((size, first[layer.name], max(last[name] for name in readers)))
        return plan_memory(buffers, alignment_bytes).total

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


Unit = Sequence[Layer]
"""Layers that run as one."""


def parts_that_fit(units: Sequence[Unit], fits: Callable[[Sequence[Layer]], bool]) -> list[list[Layer]]:
    """The units in parts, each as long as fits; a unit that does not fit alone is a part of its own.

    Where all fit together, they are cut in the middle: the estimate was too small, and they are to become less.

    Args:
        units: in execution order.
        fits: whether layers fit their pools as one segment, by estimate; what is longer never fits where its beginning
            does not.
    """
    if len(units) > 1 and fits(_joined(units)):
        middle = len(units) // 2
        return [_joined(units[:middle]), _joined(units[middle:])]
    parts: list[list[Layer]] = []
    begin = 0
    while begin < len(units):
        end = _longest(begin, len(units), lambda first, last: fits(_joined(units[first:last])))
        parts.append(_joined(units[begin:end]))
        begin = end
    return parts


def _longest(begin: int, count: int, fits: Callable[[int, int], bool]) -> int:
    """The end of the longest part from `begin` that fits; at least one unit."""
    good, step = begin + 1, 1
    while good < count and fits(begin, min(good + step, count)):
        good, step = min(good + step, count), 2 * step
    bad = min(good + step, count + 1)
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if fits(begin, middle) else (good, middle)
    return good


def units_in_order(
    layers: Sequence[Layer], joined: Iterable[Iterable[str]], edges: Iterable[tuple[str, str]]
) -> list[Unit]:
    """The layers of a segment as units, in an order in which they can run.

    Args:
        layers: of the segment, in execution order.
        joined: names of layers that run as one; a layer that runs with several of them joins these.
        edges: names of layers, the first of which gives what the second needs; also of layers of other segments.
    """
    number = {layer.name: index for index, layer in enumerate(layers)}
    parents = list(range(len(layers)))

    def root(index: int) -> int:
        while parents[index] != index:
            parents[index] = index = parents[parents[index]]
        return index

    for names in joined:
        members = sorted(root(number[name]) for name in names if name in number)
        for member in members[1:]:
            low, high = sorted((root(members[0]), root(member)))
            parents[high] = low
    members_of: dict[int, list[int]] = {}
    for index in range(len(layers)):
        members_of.setdefault(root(index), []).append(index)
    before = {(root(number[one]), root(number[other])) for one, other in edges if one in number and other in number}
    order = _in_order(members_of, {pair for pair in before if pair[0] != pair[1]})
    if order is None:  # units wait for each other, so that only the layers can be put in order
        return [[layer] for layer in layers]
    return [[layers[index] for index in members_of[unit]] for unit in order]


def _in_order(units: Iterable[int], edges: Iterable[tuple[int, int]]) -> list[int] | None:
    """The units in the order of their first layers, as far as the edges allow; None where there is no order."""
    after: dict[int, list[int]] = {unit: [] for unit in units}
    waits = dict.fromkeys(after, 0)
    for source, target in sorted(edges):
        after[source].append(target)
        waits[target] += 1
    ready = [unit for unit, count in waits.items() if not count]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        order.append(heapq.heappop(ready))
        for target in after[order[-1]]:
            waits[target] -= 1
            if not waits[target]:
                heapq.heappush(ready, target)
    return order if len(order) == len(after) else None


def _joined(units: Iterable[Unit]) -> list[Layer]:
    return [layer for unit in units for layer in unit]
