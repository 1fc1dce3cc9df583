"""What a quantize method is: a frozen table of rules, one an operator and case, found by name.

`dryfit.quantize_methods` is the entry-point group. A method of somebody's own is such a record too: most often another
method's with some rules put before them (`attrs.evolve(TFLITE, name="mine", rules=(*mine, *TFLITE.rules))`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from dryfit.attrs_classes import frozen
from dryfit.errors import ConfigError
from dryfit.network.data_types import DataType
from dryfit.network.layers.quantized_operator import QuantizedOperator
from dryfit.network.tensor import Array
from dryfit.quantization.methods.call import OperatorCall, call_of
from dryfit.quantization.methods.requantization import Requantization
from dryfit.rule import Rule

Definition = Callable[[OperatorCall, "MethodRule"], Array]
"""From operands to the output, in numpy: the truth that kernels equal bit for bit."""


@frozen(kw_only=True)
class Requirement:
    """What must hold of scales and zero points, as the library enforces it.

    Attributes:
        text: in words, such as "the multiplier must be less than 1".
        holds: whether it does.
    """

    text: str
    holds: Callable[[OperatorCall], bool]


@frozen(eq=False, kw_only=True)
class MethodRule(Rule):
    """How a method computes an operator in one case.

    `definition` is its `finder`: the function that computes the operator, one of
    `dryfit.quantization.methods.definitions` or a plugin's own. `formula` is its `text`: the computation in one line,
    in the notation of `requantization`. The `source` says or confirms it: library, version, count of compared elements.

    Attributes:
        operator: name in `dryfit.quantization.methods.operators.OPERATORS`.
        requantization: the record that the definition reads; None where it has no such step.
        types: types of the first operand (of `quantize`: of the result) that it holds for.
        per_channel: whether weights have one scale for each output channel; None: either.
        case: further condition, such as depthwise; None: always.
        case_text: that condition in words, for the documentation.
        options: numbers of the definition, such as the bits of a fraction.
        requirements: what the library enforces.
        id: the operator and the case; made from them, and unique in a method as far as its cases are apart.
    """

    finder: Definition = attrs.field(alias="definition", repr=False)
    text: str = attrs.field(alias="formula")
    fidelity: str
    operator: str
    requantization: Requantization | None = None
    types: frozenset[DataType] = frozenset({DataType.INT8, DataType.UINT8})
    per_channel: bool | None = None
    case: Callable[[OperatorCall], bool] | None = None
    case_text: str = ""
    options: Mapping[str, Any] = attrs.field(factory=dict)
    requirements: Sequence[Requirement] = ()
    id: str = attrs.field(
        init=False, default=attrs.Factory(lambda self: f"{self.operator}: {self.case_title}", takes_self=True)
    )

    @property
    def definition(self) -> Definition:
        """The function that computes the operator."""
        return self.finder

    @property
    def formula(self) -> str:
        """What it computes, in one line."""
        return self.text

    @property
    def record(self) -> Requantization:
        """The requantization, of a rule whose definition reads one.

        Raises:
            ConfigError: it has none.
        """
        if self.requantization is None:
            raise ConfigError(f"The rule of {self.operator} must have a requantization", remedy="Add it to the rule")
        return self.requantization

    @property
    def case_title(self) -> str:
        """The types, granularity and further condition that it holds for, in words."""
        types = " and ".join(sorted(dtype.name for dtype in self.types))
        scales = {None: "", True: ", one scale per channel", False: ", one scale"}[self.per_channel]
        return f"{types}{scales}{', ' + self.case_text if self.case_text else ''}"

    @property
    def required(self) -> str:
        """What the library enforces, in words; empty for nothing."""
        return "; ".join(one.text for one in self.requirements)

    def serves(self, call: OperatorCall) -> bool:
        """Whether it is about this operator, these types and this granularity."""
        return (
            call.operator == self.operator
            and call.code_type in self.types
            and self.per_channel in (None, call.is_per_channel)
            and (self.case is None or self.case(call))
        )


@frozen(kw_only=True)
class QuantizeMethod:
    """A way to compute operators on quantized tensors.

    Attributes:
        name: that of the entry point.
        title: whose arithmetic it is, in a few words.
        library: name and version of what it was verified against; "" for a device.
        rules: the first that serves a case counts.
        source: where it is documented.
        version: changes whenever a code changes.
    """

    name: str
    title: str
    library: str = ""
    rules: Sequence[MethodRule]
    source: str
    version: str = "1"

    def rule_for(self, call: OperatorCall) -> MethodRule:
        """The rule of a case.

        Raises:
            ConfigError: there is none, or a requirement of it does not hold; says what the method has instead.
        """
        rule = next((rule for rule in self.rules if rule.serves(call)), None)
        if rule is None:
            raise ConfigError(
                f"The quantize method {self.name!r} does not have this operator",
                where=call.where,
                found=call.title,
                allowed="; ".join(sorted({one.case_title for one in self.rules if one.operator == call.operator}))
                or f"operators: {', '.join(sorted({one.operator for one in self.rules}))}",
                remedy="Choose another method for this layer, or none: layer.quantize_method",
            )
        broken = [one.text for one in rule.requirements if not one.holds(call)]
        if broken:
            raise ConfigError(
                f"The quantize method {self.name!r} does not support these scales",
                where=call.where,
                found=call.grids_text,
                allowed="; ".join(broken),
                remedy="Quantize with other scales, or choose another method",
            )
        return rule

    def evaluate(self, layer: QuantizedOperator, inputs: Sequence[Array | None]) -> list[Array]:
        """The output of a quantized operator, by the definition in numpy.

        Raises:
            ConfigError: the method does not have the operator for these types, or refuses the scales.
        """
        call = call_of(layer, inputs)
        rule = self.rule_for(call)
        return [rule.definition(call, rule)]
