"""Grouping of a segment's layers into the steps that a device runs as one, by layer kind; used by cost estimates.

This models how a device works inside a segment. Fusion on this machine is defined by `dryfit.builder.fusion.fuse`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from dryfit.attrs_classes import define, frozen

if TYPE_CHECKING:
    from dryfit.network.layer import Layer
    from dryfit.network.tensor import Tensor


@define(eq=False)
class LayerStep:
    """Layers that run as one.

    Attributes:
        layers: the layers, in execution order.
        inputs: data inputs of the step, each with the layer that reads it.
        adds: whether the step already reads a second tensor.
    """

    layers: list[Layer]
    inputs: list[tuple[Layer, Tensor]]
    adds: bool

    @property
    def outputs(self) -> Sequence[Tensor]:
        """Tensors that the step writes."""
        return self.layers[-1].outputs


@frozen
class StepRules:
    """Rules by which a device joins layers into steps.

    Attributes:
        leads: whether other layers can follow a layer in the same step.
        follows: whether a layer joins the step whose result it alone reads. It can also begin a step.
        is_free: whether a layer costs nothing, such as one that only renames a tensor.
    """

    leads: Callable[[Layer], bool]
    follows: Callable[[Layer], bool]
    is_free: Callable[[Layer], bool]


def layer_steps(layers: Sequence[Layer], rules: StepRules) -> list[LayerStep]:
    """Return the steps of a segment, in execution order.

    A sum of two branches joins the later branch, when the other operand is available; a step reads at most one such
    operand. Layers without work are in no step.

    Args:
        layers: layers of a segment, in execution order.
        rules: step rules of the device.
    """
    joining = _Joining(rules)
    for layer in layers:
        joining.add(layer)
    return joining.steps


class _Joining:
    """Joins one layer after another."""

    def __init__(self, rules: StepRules) -> None:
        self._rules = rules
        self._stands_for: dict[str, Tensor] = {}
        self._place_of: dict[int, int] = {}
        self.steps: list[LayerStep] = []

    def add(self, layer: Layer) -> None:
        read = data_inputs(layer)
        if is_without_work(layer):
            if read:
                self._stands_for[layer.outputs[0].name] = self._origin(read[0])
        elif not self._rules.is_free(layer):
            step = self._to_join(layer, read)
            if step is None:
                self.steps.append(LayerStep([layer], [(layer, one) for one in read], len(read) > 1))
                self._place_of[id(layer.outputs[0])] = len(self.steps) - 1
            else:
                made = step.outputs[0]
                self._place_of[id(layer.outputs[0])] = self._place_of.pop(id(made))
                step.inputs += [(layer, one) for one in read if self._origin(one) is not made]
                step.adds = step.adds or len(read) > 1
                step.layers.append(layer)

    def _origin(self, tensor: Tensor) -> Tensor:
        """The tensor that holds the same numbers, before its type was changed."""
        return self._stands_for.get(tensor.name, tensor)

    def _to_join(self, layer: Layer, read: Sequence[Tensor]) -> LayerStep | None:
        if not self._rules.follows(layer):
            return None
        later = max((self._place_of.get(id(self._origin(one)), -1) for one in read), default=-1)
        if later < 0:
            return None
        step = self.steps[later]
        made = step.outputs[0]
        can_be_followed = self._rules.leads(step.layers[0]) or self._rules.follows(step.layers[0])
        is_only_reader = [*itertools.islice(_readers(made), 2)] == [layer] and not made.is_network_output
        return step if can_be_followed and is_only_reader and not (step.adds and len(read) > 1) else None


def _readers(tensor: Tensor) -> Iterator[Layer]:
    """The layers that read a tensor's numbers; those that only change its type are looked through."""
    for reader, _ in tensor.consumers:
        if is_without_work(reader) and not reader.outputs[0].is_network_output:
            yield from _readers(reader.outputs[0])
        else:
            yield reader


def data_inputs(layer: Layer) -> Sequence[Tensor]:
    """Return the data inputs of a layer: neither its weights nor dimensions nor other constants."""
    return [
        tensor
        for index, tensor in enumerate(layer.inputs)
        if tensor is not None and index in layer.flowing_inputs and not tensor.is_constant
    ]


def is_without_work(layer: Layer) -> bool:
    """Return whether a layer only declares the type in which a tensor is stored."""
    return layer.is_conversion or layer.kind in ("constant", "identity")
