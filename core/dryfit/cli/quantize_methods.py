"""`dryfit quantize-methods`: which quantize methods there are, and how one computes each operator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from dryfit.cli.console import json_option, print_json, print_line, print_table

if TYPE_CHECKING:
    from dryfit.quantization.methods.method import QuantizeMethod


@click.command(name="quantize-methods")
@click.argument("name", required=False)
@click.option("--operator", metavar="NAME", help="Only this operator, such as convolution.")
@json_option
def quantize_methods(name: str | None, operator: str | None, as_json: bool) -> None:
    """List the quantize methods that are installed, or the rules of the one called NAME.

    A method is the arithmetic of a library or a device for operators on quantized tensors; `--quantize-method` chooses
    one. Formulas are in the notation of the reference page "Quantize methods".
    """
    from dryfit.errors import UnknownNameError
    from dryfit.plugins import quantize_methods as installed
    from dryfit.quantization.methods.operators import OPERATORS

    if operator is not None and operator not in OPERATORS:
        raise UnknownNameError("operator", operator, OPERATORS, where="--operator")
    found = [installed.quantize_method(name)] if name else list(installed.quantize_methods().values())
    if as_json:
        print_json({"methods": [_method_data(method, operator) for method in found]})
    elif name or operator:
        for method in found:
            print_line(f"{method.name}: {method.title}{f', held against {method.library}' if method.library else ''}")
            rules = _method_data(method, operator)["rules"]
            columns = ("operator", "case", "formula", "requires", "fidelity", "source")
            print_table("", columns, [[rule[column] for column in columns] for rule in rules])
    else:
        rows = [(one.name, one.title, one.library, len({rule.operator for rule in one.rules})) for one in found]
        print_table("", ["method", "whose arithmetic", "held against", "operators"], rows)


def _method_data(method: QuantizeMethod, operator: str | None) -> dict[str, Any]:
    """A method as plain data, with all rules or those of one operator."""
    return {
        "name": method.name,
        "title": method.title,
        "library": method.library,
        "version": method.version,
        "source": method.source,
        "rules": [
            {
                "operator": rule.operator,
                "case": rule.case_title,
                "formula": rule.formula,
                "requires": rule.required,
                "fidelity": rule.fidelity,
                "source": rule.source,
            }
            for rule in method.rules
            if operator in (None, rule.operator)
        ],
    }
