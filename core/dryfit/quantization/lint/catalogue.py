"""All rules of the lint, and a network held against them."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Mapping

from dryfit.errors import PluginError
from dryfit.network.network import Network
from dryfit.quantization.lint import rules
from dryfit.quantization.lint.network_view import NetworkView
from dryfit.quantization.lint.rule import SEVERITIES, LintFinding, LintRule


@functools.cache
def all_lint_rules() -> Mapping[str, LintRule]:
    """Id to rule: errors first, then warnings and notes, each in the order of the ids.

    Raises:
        PluginError: a module of `dryfit.quantization.lint.rules` has no rule or two, or two have one id.
    """
    found: dict[str, LintRule] = {}
    for module_info in pkgutil.iter_modules(rules.__path__):
        module = importlib.import_module(f"{rules.__name__}.{module_info.name}")
        declared = [value for value in vars(module).values() if isinstance(value, LintRule)]
        if len(declared) != 1 or declared[0].id in found:
            raise PluginError(
                "A module of lint rules declares one rule, whose id no other has",
                where=f"module {module.__name__!r}",
                found=", ".join(one.id for one in declared) or "none",
            )
        found[declared[0].id] = declared[0]
    ordered = sorted(found.values(), key=lambda one: (SEVERITIES.index(one.severity), one.id))
    return {one.id: one for one in ordered}


def lint_network(network: Network) -> list[LintFinding]:
    """What all rules find in a network as it was built or imported, before any pass; rule by rule.

    Example:
        >>> [(one.rule.id, one.layer) for one in lint_network(network)]
        [('qdq.weights.per_tensor', 'conv')]
    """
    view = NetworkView(network)
    return [finding for rule in all_lint_rules().values() for finding in rule.findings(view)]
