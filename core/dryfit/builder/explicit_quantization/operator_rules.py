"""By which rule of which quantize method each quantized operator of a network is computed."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from dryfit.errors import DryfitError
from dryfit.network.layers.quantized_operator import QuantizedOperator
from dryfit.network.network import Network
from dryfit.passes.quantized_operators.operator_of_group import rule_of
from dryfit.plugins.quantize_methods import quantize_method
from dryfit.quantization.methods.operators import operator_of


@attrs.frozen
class OperatorRule:
    """A quantized operator and the rule of its arithmetic.

    Attributes:
        layer: name of the operator's layer, which is that of the user's layer that it stands for.
        method: the quantize method.
        operator: name in `dryfit.quantization.methods.operators.OPERATORS`.
        formula: of the rule, in one line; "" where the method is not installed any more.
        fidelity: `documented`, `inferred` or `confirmed`; "" as above.
        source: what says or confirms it; "" as above.
    """

    layer: str
    method: str
    operator: str
    formula: str = ""
    fidelity: str = ""
    source: str = ""


def operator_rules(network: Network) -> Sequence[OperatorRule]:
    """The rules of a network's quantized operators, in its order.

    Args:
        network: as it is built, or of an engine, whose methods may be installed or not.
    """
    return [_rule(layer) for layer in network.layers if isinstance(layer, QuantizedOperator)]


def _rule(layer: QuantizedOperator) -> OperatorRule:
    specs = [None if tensor is None else tensor.spec for tensor in layer.inputs]
    try:
        rule = rule_of(layer, specs, quantize_method(layer.method))
    except DryfitError:
        return OperatorRule(layer.name, layer.method, operator_of(layer.real_layer()) or layer.computes)
    return OperatorRule(layer.name, layer.method, rule.operator, rule.formula, rule.fidelity, rule.source)
