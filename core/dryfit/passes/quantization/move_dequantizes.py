"""Dequantizations move forward, as late as they can: what they move over is computed on codes, with fewer bytes."""

from __future__ import annotations

from collections.abc import Sequence

from dryfit.network.layer import Layer
from dryfit.network.layer_copies import copy_layer
from dryfit.network.layers.quantization import Dequantize, Quantize
from dryfit.network.layers.slice import Shuffle
from dryfit.network.tensor import Tensor, TensorSpec
from dryfit.passes.quantization.commutation import Commutation, commutation_of
from dryfit.passes.quantization.moving import (
    GOAL,
    Movement,
    QuantizationPass,
    Way,
    absorb_into_dequantize,
    readers_of,
    way_by_kind,
    way_on_codes,
    way_on_the_host,
)
from dryfit.passes.quantization.scale_numbers import QuantizationNumbers, compared_scales, constant_value, numbers_of
from dryfit.quantization.rewrites import RewriteAction
from dryfit.reference.registry import evaluate


class MoveDequantizes(QuantizationPass):
    """The pass: one sweep in the order of execution, so that a dequantization moves over a whole chain at once.

    A dequantization that others read too stays for them, and a copy of it moves. Where a layer joins several tensors,
    all have to be dequantized by equal scales, or be constants that a code stands for exactly.
    """

    name = "move-dequantizes"

    def sweep(self, movement: Movement) -> None:
        """Move what can move."""
        for layer in list(movement.network.layers):
            # Other passes look at quantizations that follow a dequantization.
            if layer.is_quantization or absorb_into_dequantize(layer, movement):
                continue
            row = commutation_of(layer)
            given = [tensor.producer for _, tensor in row.data_inputs(layer)]
            moving = list(dict.fromkeys(one for one in given if isinstance(one, Dequantize)))
            if not moving:
                continue
            way = self._way(row, layer, moving, movement)
            if way:
                _move(row, layer, moving, movement)
            elif way.is_told:
                for dequantize in moving:
                    movement.record(dequantize, RewriteAction.STOPPED, [layer.name], way.stop)

    def _way(self, row: Commutation, layer: Layer, moving: Sequence[Dequantize], movement: Movement) -> Way:
        numbers = [numbers_of(one, movement.specs) for one in moving]
        if self._over is not None:
            return way_on_the_host(row, layer, numbers, movement) if self._over(layer) else GOAL
        return (
            way_by_kind(row, layer, movement)
            and _way_of_numbers(row, layer, moving, numbers, movement)
            and _way_beside_quantizes(row, layer, numbers[0], movement)
            and _way_of_gain(row, layer)
            and self._way_on_codes(row, layer, numbers[0], movement)
        )

    def _way_on_codes(self, row: Commutation, layer: Layer, numbers: QuantizationNumbers, movement: Movement) -> Way:
        inputs = row.data_inputs(layer)
        indices = [index for index, _ in inputs]
        judge = None if _is_known(row, layer, movement) else self._judge
        return way_on_codes(layer, indices, numbers.dtype, movement, judge)


def _is_known(row: Commutation, layer: Layer, movement: Movement) -> bool:
    """Whether a layer only moves constants, which is done while building."""
    return all(_codes(tensor) in movement.known for _, tensor in row.data_inputs(layer))


def _codes(tensor: Tensor) -> Tensor | None:
    """What is dequantized to a tensor; a constant itself."""
    producer = tensor.producer
    return producer.inputs[0] if isinstance(producer, Dequantize) else tensor


def _way_of_numbers(
    row: Commutation,
    layer: Layer,
    moving: Sequence[Dequantize],
    numbers: Sequence[QuantizationNumbers],
    movement: Movement,
) -> Way:
    """Whether the scales are equal, and served by the layer's output as by its inputs."""
    first = numbers[0]
    if any(one.zero_point is not None for one in numbers):
        return Way("it has a zero point, so it stays where the model has it")
    different = next((index for index, one in enumerate(numbers) if one != first), None)
    if different is not None:
        other = movement.origin(moving[different])
        return Way(f"{first.words} differs from the {numbers[different].words} of {other!r}")
    for _, tensor in row.data_inputs(layer):
        if not isinstance(tensor.producer, Dequantize) and not _has_codes(tensor, moving[0], first):
            return Way(f"its other input {tensor.name!r} is in floating point")
    if first.axis >= 0 and row.path(layer, movement.specs, first.axis) is None:
        return Way(f"its scales follow axis {first.axis}, which the layer does not keep")
    if first.block_shape and not _is_transpose(layer):
        return Way("its scales are per block, and the layer does not keep the blocks")
    return Way()


def _way_beside_quantizes(row: Commutation, layer: Layer, numbers: QuantizationNumbers, movement: Movement) -> Way:
    """Whether anything is gained where quantizations follow."""
    readers = readers_of(layer.outputs[0])
    quantizes = [one for one in readers if isinstance(one, Quantize)]
    if not row.requantizes or not quantizes or len(quantizes) != len(readers):
        return Way()
    is_equal = all(numbers_of(one, movement.specs) == numbers for one in quantizes)
    return Way() if is_equal else GOAL


def _way_of_gain(row: Commutation, layer: Layer) -> Way:
    """Whether anything is gained beyond a layer that ends groups: another one that is computed on codes."""
    if not row.ends_groups:
        return Way()
    readers = [commutation_of(one) for one in readers_of(layer.outputs[0])]
    return Way() if any(one.is_quantizable or one.commutes for one in readers) else GOAL


def _has_codes(tensor: Tensor, dequantize: Dequantize, numbers: QuantizationNumbers) -> bool:
    """Whether a tensor is a constant whose values the dequantization gives for some codes, bit for bit."""
    value, scale = constant_value(tensor), constant_value(dequantize.inputs[1])
    if value is None or scale is None or not numbers.is_per_tensor or value.dtype != dequantize.to_type.numpy:
        return False
    (codes,) = evaluate(Quantize(to_type=numbers.dtype), [value, scale])
    (again,) = evaluate(Dequantize(to_type=dequantize.to_type), [codes, scale])
    return again.tobytes() == value.tobytes()


def _is_transpose(layer: Layer) -> bool:
    return isinstance(layer, Shuffle) and layer.reshape_dims is None and layer.get_input(1) is None


def _move(row: Commutation, layer: Layer, moving: Sequence[Dequantize], movement: Movement) -> None:
    """Let a layer read codes, and dequantize what it gives."""
    first, output = moving[0], layer.outputs[0]
    numbers = numbers_of(first, movement.specs)
    readers, shape = list(output.consumers), movement.specs[output].shape
    if _is_known(row, layer, movement):
        movement.known.add(output)
    for index, tensor in row.data_inputs(layer):
        layer.set_input(index, _codes_input(tensor, first, numbers, movement))
    movement.specs[output] = TensorSpec(shape, numbers.dtype)
    real = TensorSpec(shape, first.to_type)
    others = [_moved_scale(layer, first, numbers, movement)] if numbers.block_shape else []
    after = movement.add_copy(first, f"after {layer.name}", output, real, others)
    if numbers.axis >= 0:
        after.axis = row.path(layer, movement.specs, numbers.axis) or 0
    if isinstance(layer, Shuffle) and first.block_shape:
        after.block_shape = _transposed(layer, first.block_shape)
    movement.redirect(readers, output, after.outputs[0])
    movement.hand_name(output, after.outputs[0], f"{output.name} [{numbers.dtype.name}]")
    compared = compared_scales(*moving)
    movement.record(first, RewriteAction.MOVED, [layer.name], row.reason, compared)
    for other in moving[1:]:
        reason = f"its scale is equal, so one dequantization is enough for what {layer.name!r} joins"
        movement.record(other, RewriteAction.MERGED, [movement.origin(first)], reason, compared)
    for one in moving:
        if movement.is_unread(one.outputs[0]):
            movement.retire(one, after if one is first else None)


def _codes_input(tensor: Tensor, like: Dequantize, numbers: QuantizationNumbers, movement: Movement) -> Tensor | None:
    """What a layer reads in the place of a dequantized tensor; a constant is quantized, which is computed later."""
    if isinstance(tensor.producer, Dequantize):
        return tensor.producer.inputs[0]
    quantize = Quantize(to_type=numbers.dtype, name=f"{movement.origin(like)} of {tensor.name}")
    spec = TensorSpec(movement.specs[tensor].shape, numbers.dtype)
    added = movement.network.add_layer(quantize, [tensor, like.inputs[1]], [spec])
    movement.specs[added.outputs[0]] = spec
    return added.outputs[0]


def _transposed(layer: Shuffle, extents: Sequence[int]) -> tuple[int, ...]:
    """Extents of axes in the order that a transpose gives them."""
    for order in (layer.first_transpose, layer.second_transpose):
        extents = [extents[axis] for axis in order] if order else extents
    return tuple(extents)


def _moved_scale(
    layer: Layer, dequantize: Dequantize, numbers: QuantizationNumbers, movement: Movement
) -> Tensor | None:
    """The scales of blocks, transposed as the data is."""
    scale = dequantize.inputs[1]
    if scale is None or not isinstance(layer, Shuffle):
        return scale
    found = movement.specs[scale]
    shuffle = copy_layer(layer)
    shuffle.name = f"{layer.name} of {scale.name}"
    spec = TensorSpec(_transposed(layer, found.shape), found.dtype)
    added = movement.network.add_layer(shuffle, [scale], [spec])
    movement.specs[added.outputs[0]] = spec
    del numbers
    return added.outputs[0]
