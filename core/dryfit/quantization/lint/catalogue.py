"""All rules of the lint, and a network held against them."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping

from dryfit.network.network import Network
from dryfit.quantization.lint import activations, outputs, scales, weights
from dryfit.quantization.lint.network_view import SEVERITIES, Hit, LintFinding, NetworkView
from dryfit.rule import Rule


@functools.cache
def all_lint_rules() -> Mapping[str, Rule]:
    """Id to rule: errors first, then warnings and notes, each in the order of the ids."""
    modules = (activations, outputs, scales, weights)
    rules = [value for module in modules for value in vars(module).values() if isinstance(value, Rule)]
    return {one.id: one for one in sorted(rules, key=lambda one: (SEVERITIES.index(one.severity), one.id))}


def lint_network(network: Network) -> list[LintFinding]:
    """What all rules find in a network as it was built or imported, before any pass; rule by rule.

    Example:
        >>> [(one.rule, one.layer) for one in lint_network(network)]
        [('qdq.weights.per_tensor', 'conv')]
    """
    view = NetworkView(network)
    return [finding for rule in all_lint_rules().values() for finding in findings_of(rule, view)]


def findings_of(rule: Rule, view: NetworkView) -> list[LintFinding]:
    """What one rule finds, in the order of the network."""
    hits: Iterable[Hit] = rule.finder(view)
    return [
        LintFinding(rule.id, rule.severity, layer.name, layer.kind, layer.onnx_nodes, tensor.name, found)
        for layer, tensor, found in hits
    ]
