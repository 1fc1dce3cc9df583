"""Quantizations move backward, as early as they can: what they move over is computed on codes, with fewer bytes.

An activation on codes goes back before the quantization that gives them. A dequantization that moved over an activation
leaves it alone between a quantization and what follows. Before the quantization it is part of the group of the layer
that gives the real numbers, and costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from dryfit.network.layer import Layer
from dryfit.network.layers.quantization import Dequantize, Quantize
from dryfit.network.tensor import Tensor, TensorSpec
from dryfit.passes.quantization.axis_paths import axis_before
from dryfit.passes.quantization.commutation import Commutation, commutation_of
from dryfit.passes.quantization.moving import (
    GOAL,
    Judge,
    LayerTest,
    Movement,
    QuantizationPass,
    Way,
    absorb_into_quantizes,
    is_reading_data,
    readers_of,
    way_by_kind,
    way_on_codes,
    way_on_the_host,
)
from dryfit.passes.quantization.scale_numbers import QuantizationNumbers, compared_scales, constant_value, numbers_of
from dryfit.quantization.rewrites import RewriteAction


class MoveActivations(QuantizationPass):
    """The pass. The quantization may serve nobody else."""

    name = "move-activations"

    def sweep(self, movement: Movement) -> None:
        """Move what can move."""
        for layer in list(movement.network.layers):
            quantize = _quantization_of_its_own(layer, movement)
            if quantize is not None:
                _move(layer, quantize, movement)


def _quantization_of_its_own(layer: Layer, movement: Movement) -> Quantize | None:
    """What quantizes the input of a layer that ends groups, for this layer alone."""
    row = commutation_of(layer)
    source = layer.inputs[0] if row.ends_groups else None
    producer = source.producer if source is not None else None
    if source is None or not isinstance(producer, Quantize) or row.obstacle(layer, movement.specs):
        return None
    is_private = len(source.consumers) == 1 and source not in movement.outputs
    is_symmetric = numbers_of(producer, movement.specs).zero_point is None
    before = producer.inputs[0].producer if producer.inputs[0] is not None else None
    is_taken = before is not None and commutation_of(before).is_quantizable
    return producer if is_private and is_symmetric and is_taken else None


def _move(layer: Layer, quantize: Quantize, movement: Movement) -> None:
    """Let the layer read real numbers, and quantize what it gives."""
    output, source = layer.outputs[0], quantize.connected_input(0)
    codes, readers = movement.specs[output], list(output.consumers)
    layer.set_input(0, source)
    movement.specs[output] = TensorSpec(codes.shape, movement.specs[source].dtype)
    after = movement.add_copy(quantize, f"after {layer.name}", output, codes)
    movement.redirect(readers, output, after.outputs[0])
    movement.hand_name(output, after.outputs[0], f"{layer.name} of {source.name}")
    reason = f"{commutation_of(layer).reason}; there it ends the group of the layer before"
    movement.record(quantize, RewriteAction.MOVED, [layer.name], reason)
    movement.retire(quantize, after)


class MoveQuantizes(QuantizationPass):
    """The pass: one sweep against the order of execution, so that a quantization moves over a whole chain at once.

    Everyone who reads what the layer gives has to quantize it, by equal scales. Over a layer that joins several
    tensors, a quantization moves to each of them; where one that does the same is there already, that one serves.
    """

    name = "move-quantizes"

    def sweep(self, movement: Movement) -> None:
        """Move what can move."""
        sweep = _Sweep(movement, self._judge, self._over)
        for layer in reversed(list(movement.network.layers)):
            if len(layer.outputs) == 1:
                sweep.meet(layer)


class _Sweep:
    """Looks at one layer after another, from the last to the first."""

    def __init__(self, movement: Movement, judge: Judge, over: LayerTest | None = None) -> None:
        self._movement = movement
        self._judge = judge
        self._over = over
        self._quantizes: dict[Tensor, list[Quantize]] = {}
        self._taken: dict[tuple[Tensor, QuantizationNumbers], bool] = {}
        for layer in movement.network.layers:
            source = layer.inputs[0] if isinstance(layer, Quantize) else None
            if isinstance(layer, Quantize) and source is not None:
                self._quantizes.setdefault(source, []).append(layer)

    def meet(self, layer: Layer) -> None:
        """Move the quantizations of what a layer gives over it, if that can be."""
        output = layer.outputs[0]
        quantizes = self._quantizes.get(output, [])
        row = commutation_of(layer)
        if not quantizes or layer.kind in ("constant", "dequantize"):
            return
        source = layer.get_input(0)
        absorbing = absorb_into_quantizes(layer, quantizes, self._movement)
        if absorbing and source is not None:
            self._quantizes.setdefault(source, []).extend(absorbing)
            return
        way = self._way(row, layer, quantizes)
        if way:
            self._move(row, layer, quantizes)
        elif way.is_told:
            for quantize in quantizes:
                self._movement.record(quantize, RewriteAction.STOPPED, [layer.name], way.stop)

    def _way(self, row: Commutation, layer: Layer, quantizes: Sequence[Quantize]) -> Way:
        numbers = [numbers_of(one, self._movement.specs) for one in quantizes]
        if self._over is not None:
            return (
                GOAL
                if not self._over(layer) or constant_value(quantizes[0].inputs[1]) is None
                else way_on_the_host(row, layer, numbers, self._movement)
                and self._way_of_readers(layer.outputs[0], quantizes)
            )
        return (
            way_by_kind(row, layer, self._movement)
            and self._way_of_readers(layer.outputs[0], quantizes)
            and self._way_of_numbers(row, layer, quantizes, numbers)
            and self._way_of_gain(row, layer, numbers[0])
            and self._way_on_codes(row, layer, numbers[0])
        )

    def _way_of_readers(self, output: Tensor, quantizes: Sequence[Quantize]) -> Way:
        """Whether nobody takes the real numbers."""
        others = [one for one in readers_of(output) if not is_reading_data(one, output)]
        if output in self._movement.outputs:
            return Way(f"{output.name!r} is an output of the network in floating point")
        if others:
            return Way(f"{others[0].name!r} reads {output.name!r} in floating point")
        named = [one for one in quantizes if one.outputs[0] in self._movement.outputs]
        return Way("two network outputs have these codes, each with its own name") if len(named) > 1 else Way()

    def _way_of_numbers(
        self, row: Commutation, layer: Layer, quantizes: Sequence[Quantize], numbers: Sequence[QuantizationNumbers]
    ) -> Way:
        """Whether the scales are equal and known, and served by the layer's inputs as by its output."""
        first = numbers[0]
        if any(one.zero_point is not None for one in numbers):
            return Way("it has a zero point, so it stays where the model has it")
        different = next((index for index, one in enumerate(numbers) if one != first), None)
        if different is not None:
            other = self._movement.origin(quantizes[different])
            return Way(f"{first.words} differs from the {numbers[different].words} of {other!r}")
        if any(one.saturate != quantizes[0].saturate for one in quantizes):
            return Way("not all quantizations of the tensor saturate")
        if constant_value(quantizes[0].inputs[1]) is None:
            return Way("its scale is computed at run time")
        if first.block_shape:
            return Way("its scales are per block, and the layer does not keep the blocks")
        if first.axis >= 0 and axis_before(row.path, layer, self._movement.specs, first.axis) is None:
            return Way(f"its scales follow axis {first.axis}, which the layer does not keep")
        return Way()

    def _way_of_gain(self, row: Commutation, layer: Layer, numbers: QuantizationNumbers) -> Way:
        """Whether anything is gained by the move."""
        inputs = row.data_inputs(layer)
        producers = [tensor.producer for _, tensor in inputs]
        if row.requantizes and all(isinstance(one, Dequantize) for one in producers):
            return GOAL
        if row.ends_groups and not any(one is not None and self._can_go_on(one) for one in producers):
            return GOAL
        given = _elements(self._movement.specs[layer.outputs[0]])
        for _, tensor in inputs:
            is_larger = 0 <= given < _elements(self._movement.specs[tensor])
            if is_larger and constant_value(tensor) is None and not self._is_taken(tensor, numbers):
                return Way(f"{tensor.name!r} has more elements than are needed, and would be quantized apart")
        return Way()

    def _is_taken(self, tensor: Tensor, numbers: QuantizationNumbers) -> bool:
        """Whether a quantization of a tensor serves all who read it, and does not stand alone behind its producer."""
        if tensor.producer is None or not _takes_quantization(tensor.producer):
            return False
        if (tensor, numbers) not in self._taken:
            self._taken[tensor, numbers] = tensor not in self._movement.outputs and all(
                self._is_quantized(reader, tensor, numbers) for reader in readers_of(tensor)
            )
        return self._taken[tensor, numbers]

    def _is_quantized(self, reader: Layer, tensor: Tensor, numbers: QuantizationNumbers) -> bool:
        """Whether a reader quantizes a tensor by these numbers, or all who read what it gives do."""
        if isinstance(reader, Quantize):
            return reader.inputs[0] is tensor and numbers_of(reader, self._movement.specs) == numbers
        if len(reader.outputs) != 1 or not commutation_of(reader).commutes:
            return False
        output = reader.outputs[0]
        quantizes = [one for one in readers_of(output) if isinstance(one, Quantize) and one.inputs[0] is output]
        is_only_quantized = len(quantizes) == len(readers_of(output)) and output not in self._movement.outputs
        return is_only_quantized and all(numbers_of(one, self._movement.specs) == numbers for one in quantizes)

    def _can_go_on(self, layer: Layer) -> bool:
        """Whether a layer before one that ends groups commutes itself, and does not end them."""
        row = commutation_of(layer)
        is_read_once = len(layer.outputs) == 1 and len(layer.outputs[0].consumers) == 1
        return is_read_once and not row.ends_groups and bool(way_by_kind(row, layer, self._movement))

    def _way_on_codes(self, row: Commutation, layer: Layer, numbers: QuantizationNumbers) -> Way:
        indices = [index for index, _ in row.data_inputs(layer)]
        return way_on_codes(layer, indices, numbers.dtype, self._movement, self._judge)

    def _move(self, row: Commutation, layer: Layer, quantizes: Sequence[Quantize]) -> None:
        """Let a layer read codes, and give them under the name of what was quantized."""
        movement, output = self._movement, layer.outputs[0]
        # What has the name of an output keeps it.
        ordered = sorted(quantizes, key=lambda one: one.outputs[0] not in movement.outputs)
        numbers = numbers_of(ordered[0], movement.specs)
        before = [self._before(row, layer, index, ordered[0], numbers) for index, _ in row.data_inputs(layer)]
        for (index, _), quantize in zip(row.data_inputs(layer), before, strict=True):
            layer.set_input(index, quantize.outputs[0])
        compared = compared_scales(*ordered)
        for one in ordered:
            movement.redirect(one.outputs[0].consumers, one.outputs[0], output)
        movement.specs[output] = TensorSpec(movement.specs[output].shape, numbers.dtype)
        movement.hand_name(ordered[0].outputs[0], output, f"{output.name} [{numbers.dtype.name}]")
        movement.record(ordered[0], RewriteAction.MOVED, [layer.name], row.reason, compared)
        for other in ordered[1:]:
            reason = f"it quantizes {output.name!r} by an equal scale"
            movement.record(other, RewriteAction.MERGED, [movement.origin(ordered[0])], reason, compared)
        is_new = movement.origin(before[0]) == movement.origin(ordered[0])
        movement.retire(ordered[0], before[0] if is_new else None)
        for other in ordered[1:]:
            movement.retire(other)

    def _before(
        self, row: Commutation, layer: Layer, index: int, quantize: Quantize, numbers: QuantizationNumbers
    ) -> Quantize:
        """The quantization of one input of a layer: a copy, or one that is there already."""
        movement = self._movement
        tensor = layer.connected_input(index)
        axis = -1 if numbers.axis < 0 else axis_before(row.path, layer, movement.specs, numbers.axis)
        wanted = QuantizationNumbers(numbers.dtype, numbers.scale, None, -1 if axis is None else axis, ())
        present = self._quantizes.setdefault(tensor, [])
        for one in present:
            if numbers_of(one, movement.specs) == wanted and one.saturate == quantize.saturate:
                if movement.origin(one) != movement.origin(quantize):
                    reason = f"it quantizes {tensor.name!r} by an equal scale"
                    compared = compared_scales(quantize, one)
                    movement.record(quantize, RewriteAction.MERGED, [movement.origin(one)], reason, compared)
                return one
        spec = TensorSpec(movement.specs[tensor].shape, numbers.dtype)
        place = f"before {layer.name}" + (f" input {index}" if len(row.data_inputs(layer)) > 1 else "")
        added = movement.add_copy(quantize, place, tensor, spec)
        added.axis = wanted.axis
        movement.network.rename_tensor(
            added.outputs[0], movement.network.free_tensor_name(f"{tensor.name} [{numbers.dtype.name}]")
        )
        present.append(added)
        return added


def _takes_quantization(layer: Layer) -> bool:
    """Whether a quantization behind a layer does not stand alone: computed with it, moved on over it, or cancelled."""
    row = commutation_of(layer)
    return row.is_quantizable or row.commutes or layer.kind == "dequantize"


def _elements(spec: TensorSpec) -> int:
    """How many; -1 where it is not known."""
    return math.prod(spec.shape) if spec.is_static else -1
