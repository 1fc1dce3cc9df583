"""Layers with a quantize method become quantized operators, together with the quantization around them.

It comes first: afterwards nothing folds, moves or fuses what the method has to compute as it is.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs
import numpy as np

from dryfit.network.layer import Layer
from dryfit.network.layers.generators import Constant
from dryfit.network.layers.quantization import Dequantize, Quantize
from dryfit.network.layers.quantized_operator import QuantizedOperator
from dryfit.network.layers.slice import SampleMode, Slice
from dryfit.network.network import Network
from dryfit.passes.claim_quantized_groups import replace_groups
from dryfit.passes.findings import LeftLayer, PassFindings, ReplacedGroups
from dryfit.passes.quantization.cancel_quantizations import CancelQuantizations
from dryfit.passes.quantization.move_dequantizes import MoveDequantizes
from dryfit.passes.quantization.move_quantizes import MoveQuantizes
from dryfit.passes.quantized_operators.grid import CODE_TYPES
from dryfit.passes.quantized_operators.lone_conversions import (
    Replacement,
    conversion,
    replace_layers,
    requantization,
)
from dryfit.passes.quantized_operators.operator_of_group import (
    Formed,
    asks_itself,
    chosen_method,
    chosen_methods,
    formed_operator,
)
from dryfit.passes.simplify import replace_by_constants
from dryfit.quantization.methods.operators import operator_of
from dryfit.quantization.quantized_group import QuantizedGroup
from dryfit.reference.registry import evaluate

if TYPE_CHECKING:
    from dryfit.quantization.methods.method import QuantizeMethod

logger = logging.getLogger("dryfit.passes")

_MOVERS = frozenset({"gather", "identity", "pooling", "reduce", "resize", "reverse_sequence"})
_MOVERS |= {"shuffle", "slice", "squeeze", "unsqueeze"}
"""Kinds of which those that commute with quantization only pick or move codes, and add none."""
_NEITHER = frozenset({"constant", "quantized_operator", "shape"})
"""Kinds that are no centre of an operator; those that quantize are none either."""


class FormQuantizedOperators:
    """The pass."""

    name = "form-quantized-operators"
    plugin = ""

    def run(self, network: Network, before: PassFindings) -> PassFindings:
        """Form every quantized operator that can be; returns what became of the layers.

        Raises:
            UnknownNameError: there is no method of a name.
            PluginError: a method cannot be loaded.
        """
        methods = chosen_methods(network)
        if not methods:
            return PassFindings()
        network.refresh_shapes()
        found = PassFindings()
        for one in (
            MoveDequantizes(over=_only_moves_codes),
            MoveQuantizes(over=_only_moves_codes),
            CancelQuantizations(),
        ):
            found = found.then(one.run(network, before.then(found)))
        forming = _Forming()
        forming.form_groups(network, methods)
        forming.form_conversions(network, methods)
        _fold_biases(network)
        network.refresh_shapes()  # and with them the order: the new layers stand at the end
        operators = ReplacedGroups(forming.causes, forming.taken, forming.left, problems=forming.problems)
        return found.then(PassFindings(bool(operators.causes), operators=operators))


class _Forming:
    """What became of layers so far, while operators are formed; see `ReplacedGroups`."""

    def __init__(self) -> None:
        self.causes: dict[str, str] = {}
        self.taken: dict[str, str] = {}
        self.left: list[LeftLayer] = []
        self.problems: list[str] = []

    def form_groups(self, network: Network, methods: dict[str, QuantizeMethod]) -> None:
        """Operators for layers between dequantizations and quantizations."""
        formed: list[Formed] = []
        ended: set[Layer] = set()
        for layer in network.layers:
            name = chosen_method(layer)
            if layer.is_quantization or layer.kind in _NEITHER or not name or layer in ended:
                continue
            found = formed_operator(layer, methods[name])
            if isinstance(found, Formed):
                formed.append(found)
                ended.update({found.group.activation} if found.group.activation is not None else ())
            else:
                self._leave(layer, name, found)
        replaced = [(_with_bias(network, one), one.operator) for one in formed]
        gone = replace_groups(network, replaced)
        for one, members in zip(formed, gone, strict=True):
            self._take(one.operator, members)
        unread = list(dict.fromkeys(one for group, _ in replaced for one in group.dequantizes if _is_unread(one)))
        readers = {one: group.layer.name for group, _ in replaced for one in group.dequantizes}
        self.taken.update({one.name: readers[one] for one in unread if one is not None})
        network.remove_layers([one for one in unread if one is not None])

    def form_conversions(self, network: Network, methods: dict[str, QuantizeMethod]) -> None:
        """Operators for what is left of quantizations and dequantizations: in a row, or at the network's border."""
        replaced: dict[Layer, Replacement] = {}
        readers: dict[Layer, Layer] = {}
        for layer in network.layers:
            name = chosen_method(layer)
            if not name or not isinstance(layer, (Quantize, Dequantize)) or _is_of_constants(layer):
                continue
            found = self._conversion(layer, methods[name])
            if isinstance(found, str):
                if asks_itself(layer) or (found and _codes_are_known_to_methods(layer)):
                    self._leave(layer, name, found or "it is between layers in floating point")
            else:
                replaced.update((one[0], one) for one in found)
                readers.update((before, found[-1][1]) for before in _before(layer))
        replace_layers(network, list(replaced.values()))
        for old, operator, _ in replaced.values():
            self._take(operator, [old])
        unread = [one for one in readers if one not in replaced and _is_unread(one)]
        self.taken.update({one.name: readers[one].name for one in unread})
        network.remove_layers(unread)

    def _conversion(self, layer: Quantize | Dequantize, method: QuantizeMethod) -> list[Replacement] | str:
        """What stands for a layer; the reason where nothing does, "" where nothing has to."""
        if isinstance(layer, Dequantize):
            is_wanted = asks_itself(layer) or layer.outputs[0].is_network_output
            found = conversion(layer, method) if is_wanted else ""
            return found if isinstance(found, str) else [found]
        before = next(iter(_before(layer)), None)
        if isinstance(before, Dequantize):
            direct = requantization(layer, method)
            if not isinstance(direct, str):
                return [direct]
            steps = [conversion(before, method), conversion(layer, method)]
            apart = [one for one in steps if not isinstance(one, str)]
            return apart if len(apart) == len(steps) else direct
        is_wanted = asks_itself(layer) or before is None
        found = conversion(layer, method) if is_wanted else ""
        return found if isinstance(found, str) else [found]

    def _leave(self, layer: Layer, method: str, reason: str) -> None:
        """Keep why a layer has no operator: an error where it asks for one, told where methods could be meant."""
        if asks_itself(layer):
            self.problems.append(f"{layer.where} asks for the quantize method {method!r}: {reason}")
        elif isinstance(layer, (Quantize, Dequantize)) or _is_usually_quantized(layer) or _is_quantized(layer):
            self.left.append(LeftLayer(layer.name, method, reason))

    def _take(self, operator: QuantizedOperator, members: Sequence[Layer]) -> None:
        self.taken.update((one.name, operator.name) for one in members)
        beside = ", ".join(repr(one.name) for one in members if one.name != operator.name)
        absorbed = f", with {beside}" if beside else ""
        self.causes[operator.name] = f"computed by the quantize method {operator.method!r}{absorbed}"
        logger.info("%s: %s", operator.name, self.causes[operator.name])


def _only_moves_codes(layer: Layer) -> bool:
    """Whether a layer gives codes that it was given, where its kind commutes at all."""
    return layer.kind in _MOVERS and not (isinstance(layer, Slice) and layer.mode is SampleMode.FILL)


def _with_bias(network: Network, formed: Formed) -> QuantizedGroup:
    """The group with its bias as an integer constant of the network."""
    if formed.bias is None:
        return formed.group
    name = f"{formed.group.layer.name} bias"
    constant = network.add_layer(Constant(name=name, weights=formed.bias, shape=formed.bias.shape), [])
    return attrs.evolve(formed.group, constants={2: constant.outputs[0]})


def _is_unread(layer: Layer | None) -> bool:
    """Whether a layer that is still in the network gives what nobody needs."""
    if layer is None or layer.network is None:
        return False
    return not layer.outputs[0].consumers and not layer.outputs[0].is_network_output


def _is_of_constants(layer: Layer) -> bool:
    """Whether a layer converts a constant, which is not left to a method unless it asks for one."""
    if asks_itself(layer):
        return False
    return any(before.kind == "constant" or _is_weight_quantization(before) for before in _before(layer))


def _is_weight_quantization(layer: Layer) -> bool:
    return isinstance(layer, Quantize) and any(before.kind == "constant" for before in _before(layer))


def _before(layer: Layer) -> list[Layer]:
    """The layer that gives what a layer reads first, if one does."""
    source = layer.inputs[0]
    return [] if source is None or source.producer is None else [source.producer]


def _codes_are_known_to_methods(layer: Quantize | Dequantize) -> bool:
    source = layer.inputs[0]
    codes = layer.to_type if isinstance(layer, Quantize) else None if source is None else source.dtype
    return codes in CODE_TYPES


_OFTEN_IN_REAL_NUMBERS = frozenset(
    {
        "comparison",
        "eltwise_difference",
        "eltwise_extreme",
        "eltwise_quotient",
        "eltwise_product",
        "function",
        "parametric_relu",
        "reduce",
    }
)
"""Operators that are told of only between quantizations: composites in real numbers are made of them."""


def _is_usually_quantized(layer: Layer) -> bool:
    return operator_of(layer) is not None and operator_of(layer) not in _OFTEN_IN_REAL_NUMBERS


def _is_quantized(layer: Layer) -> bool:
    """Whether a layer stands between quantizations, and is none that only moves codes or bounds them."""
    before = [tensor.producer for tensor in layer.connected_inputs]
    behind = [reader for tensor in layer.outputs for reader, _ in tensor.consumers]
    return any(isinstance(one, Dequantize) for one in before) or any(isinstance(one, Quantize) for one in behind)


def _fold_biases(network: Network) -> None:
    """Make real numbers of the integers of biases whose layers stay in real numbers, as the importer does elsewhere."""
    folded: list[Layer] = []
    values = {}
    for layer in network.layers:
        contents = [None if tensor is None else tensor.spec.value for tensor in layer.inputs]
        is_known = all(value is not None for value in contents)
        if (
            isinstance(layer, Dequantize)
            and is_known
            and contents[0] is not None
            and contents[0].dtype in (np.int32, np.int64)
        ):
            folded.append(layer)
            values[layer.outputs[0].name] = evaluate(layer, contents)[0]
    replace_by_constants(network, folded, values)
