"""Which layers of a segment a device runs as one, told by their kinds: what estimates of cost are made from.

It speaks of how a device works inside a segment. What is run as one on this machine is `dryfit.builder.fusion.fuse`'s.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from dryfit.network.layer import Layer
    from dryfit.network.tensor import Tensor


@attrs.define(eq=False)
class LayerStep:
    """Layers that run as one.

    Attributes:
        layers: in execution order.
        inputs: the data that the step reads, each with the layer that reads it.
        adds: whether it takes in a second tensor already.
    """

    layers: list[Layer]
    inputs: list[tuple[Layer, Tensor]]
    adds: bool

    @property
    def outputs(self) -> Sequence[Tensor]:
        """What it writes."""
        return self.layers[-1].outputs


@attrs.frozen
class StepRules:
    """How a device joins layers.

    Attributes:
        leads: whether others can follow a layer in one step.
        follows: whether a layer joins the step whose result it alone reads. It can begin a step, too.
        is_free: whether a layer takes nothing, such as one that only renames a tensor.
    """

    leads: Callable[[Layer], bool]
    follows: Callable[[Layer], bool]
    is_free: Callable[[Layer], bool]


def layer_steps(layers: Sequence[Layer], rules: StepRules) -> list[LayerStep]:
    """Return the steps of a segment, in execution order.

    A sum of two branches joins the later of them, as the other operand is there by then; a step takes in one such
    operand. Layers without work are in no step.

    Args:
        layers: of a segment, in execution order.
        rules: of the device.
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
    """Return the inputs that flow through a layer: neither its weights nor dimensions nor other constants."""
    return [
        tensor
        for index, tensor in enumerate(layer.inputs)
        if tensor is not None and index in layer.flowing_inputs and not tensor.is_constant
    ]


def is_without_work(layer: Layer) -> bool:
    """Return whether a layer only says in which type a tensor is kept."""
    return layer.is_conversion or layer.kind in ("constant", "identity")
