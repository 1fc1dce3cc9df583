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

WITHOUT_WORK = frozenset({"cast", "constant", "dequantize", "identity", "quantize"})
"""Kinds that only say in which type a tensor is kept."""

WEIGHTED_KINDS = frozenset({"convolution", "deconvolution", "fully_connected"})
"""Kinds whose inputs after the first are weights."""

_READ_FIRST_ONLY = WEIGHTED_KINDS | {"resize", "shuffle", "slice"}


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
        first: kinds that others can follow in one step.
        following: kinds that join the step whose result they alone read. They can begin a step, too.
        is_free: whether a layer takes nothing, such as one that only names a tensor anew.
    """

    first: frozenset[str]
    following: frozenset[str]
    is_free: Callable[[Layer], bool]


def layer_steps(layers: Sequence[Layer], rules: StepRules) -> list[LayerStep]:
    """The steps of a segment, in execution order.

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
        if layer.kind in WITHOUT_WORK:
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
        if layer.kind not in self._rules.following:
            return None
        later = max((self._place_of.get(id(self._origin(one)), -1) for one in read), default=-1)
        if later < 0:
            return None
        step = self.steps[later]
        made = step.outputs[0]
        can_be_followed = step.layers[0].kind in self._rules.first | self._rules.following
        is_only_reader = [*itertools.islice(_readers(made), 2)] == [layer] and not made.is_network_output
        return step if can_be_followed and is_only_reader and not (step.adds and len(read) > 1) else None


def _readers(tensor: Tensor) -> Iterator[Layer]:
    """The layers that read a tensor's numbers; those that only change its type are looked through."""
    for reader, _ in tensor.consumers:
        if reader.kind in WITHOUT_WORK and not reader.outputs[0].is_network_output:
            yield from _readers(reader.outputs[0])
        else:
            yield reader


def data_inputs(layer: Layer) -> Sequence[Tensor]:
    """The inputs that flow through a layer: neither its weights nor dimensions nor other constants."""
    connected = [tensor for tensor in layer.inputs if tensor is not None]
    if layer.kind in _READ_FIRST_ONLY:
        connected = connected[:1]
    return [tensor for tensor in connected if not is_constant(tensor)]


def is_constant(tensor: Tensor) -> bool:
    """Whether a tensor is a constant of the network."""
    return tensor.producer is not None and tensor.producer.kind == "constant"
