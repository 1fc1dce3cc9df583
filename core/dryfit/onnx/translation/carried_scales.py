"""The scales of an implicit network from those that a Q/DQ model stated: what carries over to other tensors, and how.

A scale carries over only where that changes nothing: forward over a layer that moves or picks values which are on the
scale's grid already, and backward over one after which rounding gives what rounding before it gives, to a tensor that
nobody else reads. Which layers these are is the table that the explicit optimizer moves Q/DQ by
(`dryfit.passes.quantization.commutation`), and beside it a clip backward: where Q does not fall, rounding before and
after a clip is rounding after it. A tensor that the model left in real numbers, such as an output, gets none.

TensorRT gives the tensors around a concatenation one scale, and the DLA demands it: where the model stated several the
largest is taken, so that nothing is cut off, or the model is refused.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence

from dryfit.attrs_classes import frozen
from dryfit.network.layer import Layer
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor
from dryfit.passes.quantization.commutation import COMMUTATIONS
from dryfit.quantization.int8_steps import is_limiting
from dryfit.quantization.scale_table import RangeOrigin


class UnequalScales(enum.Enum):
    """What is done where the model stated several scales for tensors that share one."""

    LARGEST = "largest"
    REFUSE = "refuse"
    KEEP = "keep"


@frozen
class CarriedScale:
    """The scale of one tensor.

    Attributes:
        tensor: its name.
        scale: a binary32 number; None where it is missing.
        origin: stated by the model (`CALIBRATED`), `PROPAGATED`, `SHARED` or `MISSING`.
        source: name of the tensor that it comes from, for propagated and shared ones.
        rule: the kind of layer by which it follows, for these.
        stated: the scale that the model stated, where it was replaced.
    """

    tensor: str
    scale: float | None
    origin: RangeOrigin
    source: str = ""
    rule: str = ""
    stated: float | None = None


@frozen
class CarriedConflict:
    """Two scales of which implicit quantization has one.

    Attributes:
        tensor: name of the tensor with the smaller scale.
        scale: that scale.
        other: name of the tensor with the largest.
        other_scale: that scale.
        rule: what joins them.
    """

    tensor: str
    scale: float
    other: str
    other_scale: float
    rule: str

    def __str__(self) -> str:
        return (
            f"tensor {self.tensor!r} was quantized by {self.scale:.7g}, and {self.other!r}, which shares its scale by "
            f"{self.rule}, by {self.other_scale:.7g}"
        )


@frozen
class CarriedScales:
    """The scales of a network.

    Attributes:
        entries: tensor to its scale, for every floating-point tensor that is not a constant, in the network's order.
        on_grid: names of the tensors whose values are multiples of their scale in the Q/DQ model, as all who read them
            find them.
        conflicts: scales that differ where TensorRT has one.
    """

    entries: Mapping[str, CarriedScale]
    on_grid: frozenset[str]
    conflicts: Sequence[CarriedConflict]

    @property
    def scales(self) -> dict[str, float]:
        """Tensor to scale, for those that have one."""
        return {name: one.scale for name, one in self.entries.items() if one.scale is not None}

    def has_scale(self, tensor: str) -> bool:
        """Whether a tensor has a scale."""
        return tensor in self.entries and self.entries[tensor].scale is not None


def carried_scales(
    network: Network,
    stated: Mapping[str, Sequence[float]],
    dequantized: Mapping[str, frozenset[str]],
    *,
    unequal: UnequalScales = UnequalScales.LARGEST,
) -> CarriedScales:
    """Carry the scales of a model over its network, in time linear in layers.

    Args:
        network: of the model without Q/DQ.
        stated: value to the scales that the model stated for it; the largest counts where there are several.
        dequantized: node name to the values that it read through a pair.
        unequal: what happens around concatenations; `REFUSE` is as `KEEP`, for the caller to refuse the conflicts.
    """
    return _Carrier(network, stated, dequantized).carried(unequal)


def reads_dequantized(layer: Layer, tensor: Tensor, dequantized: Mapping[str, frozenset[str]]) -> bool:
    """Whether the node of a layer read a tensor, or what was only moved of it, through a pair."""
    values = frozenset[str]().union(*(dequantized.get(name, frozenset()) for name in layer.onnx_nodes))
    if tensor.name in values or not values:
        return tensor.name in values
    data = [one for one in layer.connected_inputs if one.dtype.is_floating_point and not one.is_constant]
    # A fully connected layer reads what its node had flattened; what comes from its own node is no input of that.
    is_own = tensor.producer is not None and bool(set(tensor.producer.onnx_nodes) & set(layer.onnx_nodes))
    return len(data) == 1 and not is_own


class _Carrier:
    """Fills in the scales of one network."""

    def __init__(
        self, network: Network, stated: Mapping[str, Sequence[float]], dequantized: Mapping[str, frozenset[str]]
    ) -> None:
        self._network = network
        self._dequantized = dequantized
        self._specs = {tensor: tensor.spec for tensor in network.tensors}
        self._found: dict[str, CarriedScale] = {}
        self._conflicts: list[CarriedConflict] = []
        for name, scales in stated.items():
            self._found[name] = CarriedScale(name, max(scales), RangeOrigin.CALIBRATED)
            self._conflicts += [
                CarriedConflict(name, one, name, max(scales), "two quantizations of one tensor")
                for one in scales
                if one != max(scales)
            ]
        self._on_grid: set[str] = set()

    def carried(self, unequal: UnequalScales) -> CarriedScales:
        for layer in self._network.layers:
            self._carry_forward(layer)
        for layer in reversed(self._network.layers):
            self._carry_backward(layer)
        self._share(unequal)
        entries = {}
        for tensor in self._network.tensors:
            if tensor.dtype.is_floating_point and not tensor.is_constant:
                missing = CarriedScale(tensor.name, None, RangeOrigin.MISSING)
                entries[tensor.name] = self._found.get(tensor.name, missing)
        return CarriedScales(entries, frozenset(self._on_grid), self._conflicts)

    def _carry_forward(self, layer: Layer) -> None:
        data = self._moved(layer)
        if not data or not all(self._is_on_grid(layer, tensor) for tensor in data):
            return
        scales = {self._found[tensor.name].scale for tensor in data if tensor.name in self._found}
        if len(scales) != 1:
            return
        for output in layer.outputs:
            if not output.dtype.is_floating_point:
                continue
            own = self._found.get(output.name)
            if own is None and not output.is_network_output:
                self._take(output, data[0], layer.kind)
            if own is None or own.scale in scales:
                self._on_grid.add(output.name)

    def _carry_backward(self, layer: Layer) -> None:
        sources = self._moved(layer)
        if is_limiting(layer):
            sources = [tensor for tensor in layer.inputs[:1] if tensor is not None]
        known = [self._found[output.name] for output in layer.outputs if output.name in self._found]
        if not known:
            return
        for tensor in sources:
            is_free = tensor.name not in self._found and not tensor.is_constant and not tensor.is_network_output
            if is_free and len(tensor.consumers) == 1:
                self._take(tensor, layer.outputs[0], layer.kind)

    def _moved(self, layer: Layer) -> list[Tensor]:
        """The inputs whose values the layer's output has, where it commutes; a constant keeps it from doing so."""
        row = COMMUTATIONS.get(layer.kind)
        if row is None or not row.commutes or row.obstacle(layer, self._specs):
            return []
        tensors = [tensor for _, tensor in row.data_inputs(layer)]
        return [] if any(one.is_constant or not one.dtype.is_floating_point for one in tensors) else tensors

    def _is_on_grid(self, layer: Layer, tensor: Tensor) -> bool:
        return tensor.name in self._on_grid or reads_dequantized(layer, tensor, self._dequantized)

    def _take(self, tensor: Tensor, source: Tensor, rule: str) -> None:
        scale = self._found[source.name].scale
        self._found[tensor.name] = CarriedScale(tensor.name, scale, RangeOrigin.PROPAGATED, source.name, rule)

    # Concatenations -----------------------------------------------------------------------------------------------

    def _share(self, unequal: UnequalScales) -> None:
        """Give the tensors around concatenations one scale, and with them what only moves their values."""
        for names in self._groups():
            known = [self._found[name] for name in names if name in self._found]
            largest = max(known, key=lambda one: one.scale or 0.0, default=None)
            if largest is None or largest.scale is None:
                continue
            for one in known:
                if one.scale is None or one.scale == largest.scale:
                    continue
                self._conflicts.append(
                    CarriedConflict(one.tensor, one.scale, largest.tensor, largest.scale, "concatenation")
                )
                if unequal is UnequalScales.LARGEST:
                    self._found[one.tensor] = CarriedScale(
                        one.tensor, largest.scale, RangeOrigin.SHARED, largest.tensor, "concatenation", one.scale
                    )

    def _groups(self) -> list[list[str]]:
        """Names of the tensors that concatenations join, also through layers that move or pick values."""
        home: dict[str, list[str]] = {}
        joined: set[int] = set()
        for layer in self._network.layers:
            around = [*self._moved(layer), *layer.outputs]
            if len(around) == len(layer.outputs) or layer.kind == "activation":
                continue
            sets = {id(home[one.name]): home[one.name] for one in around if one.name in home}
            largest = max(sets.values(), key=len, default=list[str]())
            is_joined = layer.kind == "concatenation" or any(key in joined for key in sets)
            for other in sets.values():
                if other is not largest:
                    largest += other
                    home.update(dict.fromkeys(other, largest))
            fresh = [one.name for one in around if one.name not in home]
            largest += fresh
            home.update(dict.fromkeys(fresh, largest))
            if is_joined:
                joined.add(id(largest))
        groups = {id(members): members for members in home.values()}
        return [members for key, members in groups.items() if key in joined]
