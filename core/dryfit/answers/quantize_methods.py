"""List the quantize methods, and how each one computes each operator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import attrs

from dryfit.answers.text import Answer, Block, Line, Table
from dryfit.attrs_classes import frozen
from dryfit.errors import UnknownNameError
from dryfit.plugins import quantize_methods as installed
from dryfit.quantization.methods.method import QuantizeMethod
from dryfit.quantization.methods.operators import OPERATORS


@frozen
class OperatorArithmetic:
    """The arithmetic of an operator in one case; the first rule of the method whose case applies is used.

    Attributes:
        operator: operator, such as `convolution`.
        case: when the rule applies.
        formula: formula in the notation of the reference page "Quantize methods".
        requires: requirements on the operands.
        fidelity: `documented`, `inferred` or `confirmed`.
        source: document or library that states or confirms it.
    """

    operator: str
    case: str
    formula: str
    requires: str
    fidelity: str
    source: str


@frozen
class MethodAnswer:
    """A quantize method.

    Attributes:
        name: name of the method, as used by `quantize_method`.
        title: library or device whose arithmetic the method reproduces.
        library: library that the method was verified against; empty for none.
        version: version of the library.
        source: document and section.
        rules: rules by operator and case.
    """

    name: str
    title: str
    library: str
    version: str
    source: str
    rules: Sequence[OperatorArithmetic]


@frozen(repr=False)
class QuantizeMethodsAnswer(Answer):
    """The installed quantize methods, or one of them.

    Attributes:
        methods: the methods with their rules.
        shows_rules: whether the text includes the rules.
    """

    COMMAND: ClassVar[str] = "quantize-methods"

    methods: Sequence[MethodAnswer]
    _shows_rules: bool = False

    def blocks(self, *, verbose: bool = False) -> Iterator[Block]:
        """Return one line per method; with rules, one table per method."""
        if not (self._shows_rules or verbose):
            rows = [
                (one.name, one.title, one.library, len({rule.operator for rule in one.rules})) for one in self.methods
            ]
            yield Table("", ["method", "arithmetic", "verified against", "operators"], rows)
            return
        columns = [field.name for field in attrs.fields(OperatorArithmetic)]
        for method in self.methods:
            yield Line(
                f"{method.name}: {method.title}{f', verified against {method.library}' if method.library else ''}"
            )
            yield Table("", columns, [attrs.astuple(rule) for rule in method.rules])

    def summary_line(self) -> str:
        """Return the names of the methods."""
        return ", ".join(one.name for one in self.methods)


def quantize_methods(name: str | None = None, operator: str | None = None) -> QuantizeMethodsAnswer:
    """Return the installed quantize methods, or one of them, with the arithmetic of each library or device.

    Args:
        name: name of a method; None for all.
        operator: operator to list, such as `convolution`; None for all.

    Raises:
        UnknownNameError: The method or operator does not exist.

    Example:
        >>> dryfit.quantize_methods("tflite", "relu").methods[0].title
        'TensorFlow Lite, reference kernels of LiteRT'
    """
    if operator is not None and operator not in OPERATORS:
        raise UnknownNameError("operator", operator, OPERATORS, where="--operator")
    found = [installed.quantize_method(name)] if name else installed.quantize_methods().values()
    return QuantizeMethodsAnswer([_method(one, operator) for one in found], shows_rules=bool(name or operator))


def _method(method: QuantizeMethod, operator: str | None) -> MethodAnswer:
    return MethodAnswer(
        name=method.name,
        title=method.title,
        library=method.library,
        version=method.version,
        source=method.source,
        rules=[
            OperatorArithmetic(rule.operator, rule.case_title, rule.formula, rule.required, rule.fidelity, rule.source)
            for rule in method.rules
            if operator in (None, rule.operator)
        ],
    )
