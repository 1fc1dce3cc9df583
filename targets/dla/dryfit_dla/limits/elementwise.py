"""Elementwise layers on the DLA: broadcasting, constants, comparisons and the cast after a comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from dryfit.network.data_types import DataType
from dryfit.plugins import registry
from dryfit.target.checks import at_least, check, each, equals, one_of, parameter
from dryfit.target.limits import Finding, Question, rule, rules
from dryfit_dla import quantities
from dryfit_dla.limits import int8
from dryfit_dla.limits.documents import FALL_BACK, HEADERS, HEADERS_7_1, INT8, LAYERS, OPERATORS, REPORTS, RESHAPE
from dryfit_dla.quantities import (
    has_equal_values,
    is_comparison,
    operand_type,
)

if TYPE_CHECKING:
    from dryfit.network.layer import Layer

_ELEMENTWISE = f"{LAYERS}: ElementWise layer"
_COMPARISON = f"{LAYERS}: Comparison operations"
_ARITHMETIC = ("SUM", "SUB", "PROD", "MAX", "MIN")
_compares = parameter("op", one_of(*quantities.COMPARISONS))


@check("shape of the operands")
def broadcast_is_supported(question: Question) -> Finding | None:
    """Both operands must have the result's NCHW shape, or one of them NC11 or N111."""
    shapes = [question.spec(tensor).shape for tensor in question.inputs]
    if any(len(shape) < 3 or min(shape) < 0 for shape in shapes):
        return None
    full = question.spec(question.outputs[0]).shape
    allowed = (full, (*full[:-2], 1, 1), (*full[:-3], 1, 1, 1))
    if full in shapes and all(shape in allowed for shape in shapes):
        return None
    return Finding(" and ".join(map(str, shapes)), " or ".join(map(str, dict.fromkeys(allowed))))


def _operands(question: Question) -> str:
    return ", ".join(
        [
            f"{tensor.name!r}: {operand_type(question, tensor).text}"
            + (" constant" if question.is_constant(tensor) else "")
            for tensor in question.inputs
        ]
    )


@check("operand type")
def division_types_are_supported(question: Question) -> Finding | None:
    """The dividend must be INT8, FP16 or an FP32 constant, and the divisor INT8 or an FP32 constant."""
    dividend, divisor = question.inputs
    holds = _is_type(question, dividend, DataType.INT8, DataType.HALF) and _is_type(question, divisor, DataType.INT8)
    return None if holds else Finding(_operands(question), "INT8 or FP16 / INT8, or an FP32 constant for either")


def _is_type(question: Question, tensor: Any, *types: DataType) -> bool:
    dtype = operand_type(question, tensor)
    return dtype is DataType.FLOAT if question.is_constant(tensor) else dtype in types


@check("constant operand")
def constant_operand_is_uniform(question: Question) -> Finding | None:
    """A constant operand must hold one repeated value, and the other must be a computed INT8 tensor."""
    constants = [tensor for tensor in question.inputs if question.is_constant(tensor)]
    others = [tensor for tensor in question.inputs if not question.is_constant(tensor)]
    if not constants:
        return None
    holds = (
        len(others) == 1
        and all(has_equal_values(question, tensor) for tensor in constants)
        and operand_type(question, others[0]) is DataType.INT8
    )
    return None if holds else Finding(_with_values(question), "one repeated value, and an INT8 tensor")


def _with_values(question: Question) -> str:
    different = [repr(t.name) for t in question.inputs if question.is_constant(t) and not has_equal_values(question, t)]
    return _operands(question) + (f"; different values in {', '.join(different)}" if different else "")


@check("operand")
def power_operands_are_supported(question: Question) -> Finding | None:
    """One operand must be an FP32 constant with one repeated value, the other an INT8 tensor."""
    constants = [tensor for tensor in question.inputs if question.is_constant(tensor)]
    if not constants or operand_type(question, constants[0]) is not DataType.FLOAT:
        return Finding(_operands(question), "an FP32 constant and an INT8 tensor")
    return constant_operand_is_uniform(question)


@check("operand type")
def comparison_is_int8(question: Question) -> Finding | None:
    """The layer's precision must be set to INT8; operands must be INT8, or FP32 constants with one repeated value."""
    holds = question.layer.precision is DataType.INT8 and all(
        (operand_type(question, tensor) is DataType.FLOAT and has_equal_values(question, tensor))
        if question.is_constant(tensor)
        else operand_type(question, tensor) is DataType.INT8
        for tensor in question.inputs
    )
    if holds:
        return None
    precision = question.layer.precision.text if question.layer.precision else "not set"
    return Finding(f"precision {precision}; {_with_values(question)}", "precision INT8; INT8 operands")


@check("consumer")
def comparison_feeds_a_cast(question: Question) -> Finding | None:
    """The only consumer must be a cast or identity to FP16 or INT8; both need precision INT8 and device DLA set."""
    output = question.outputs[0]
    kinds = [layer.kind for layer, _ in output.consumers]
    if kinds not in (["cast"], ["identity"]) or output.is_network_output:
        found = ", ".join(kinds) or "none"
        return Finding(f"{found}{', and a network output' if output.is_network_output else ''}", "one cast or identity")
    return _pair_finding(question, question.layer, output.consumers[0][0])


@check("producer")
def cast_ends_a_comparison(question: Question) -> Finding | None:
    """It must follow a comparison and output FP16 or INT8; both need precision INT8 and device DLA set."""
    producer = question.inputs[0].producer if question.inputs else None
    if not is_comparison(producer):
        return Finding(f"{producer.kind if producer else 'network input'} before it", _PAIR)
    return _pair_finding(question, producer, question.layer)


_PAIR = "a comparison followed by a cast to FP16 or INT8, both with precision INT8 and device DLA set"


def _pair_finding(question: Question, comparison: Any, cast: Layer) -> Finding | None:
    """What a comparison and the cast after it lack; they run on the DLA together or not at all."""
    found = []
    if cast.get_output_type(0) not in (DataType.HALF, DataType.INT8):
        found.append(f"{cast.get_output_type(0).text} after the cast")
    # Another rule looks at the comparison's own precision.
    typed = (cast,) if question.layer is comparison else (comparison, cast)
    found += [f"precision of {one.name!r} not set to INT8" for one in typed if one.precision is not _INT8]
    found += [f"device of {one.name!r} not set" for one in (comparison, cast) if not _is_put_here(question, one)]
    return Finding("; ".join(found), _PAIR) if found else None


def _is_put_here(question: Question, layer: Layer) -> bool:
    return question.explicit_device if layer is question.layer else question.is_put_here(layer)


@check("other layer of the comparison")
def other_layer_is_supported(question: Question) -> Finding | None:
    """The cast after a comparison, and the comparison before a cast, must be supported too."""
    if is_comparison(question.layer):
        others = [layer for layer, _ in question.outputs[0].consumers]
    else:
        producers = [tensor.producer for tensor in question.inputs]
        others = [layer for layer in producers if layer is not None and is_comparison(layer)]
    # Either layer reports the rules on the pair itself; the options keep the two from asking one another.
    if len(others) != 1 or question.options.get(_ASKED_BY_PAIR):
        return None
    options = {**question.options, _ASKED_BY_PAIR: True}
    explicit = question.is_put_here(others[0])
    asked = attrs.evolve(question, layer=others[0], precision=_INT8, explicit_device=explicit, options=options)
    verdict = question.verdict or registry.target(question.device).verdict
    violations = verdict(asked).violations
    refused = [one.rule for one in violations if one.rule not in _PAIR_RULES]
    return Finding(f"{others[0].name!r} refused by {', '.join(refused)}", "both supported") if refused else None


_INT8 = DataType.INT8
_ASKED_BY_PAIR = "is_asked_by_pair"
_PAIR_RULES = ("dla.elementwise.comparison_consumer", "dla.cast.follows_comparison")


@check("compilation")
def compiles_for_sure(question: Question) -> Finding | None:
    """The build may fail, even with fallback, because a loadable with a comparison may not compile."""
    op: Any = question.layer
    return Finding(op.op.name, "no comparison", message=f"a loadable with {op.op.name} may fail to compile")


ELEMENTWISE = rules(
    "elementwise",
    rule(
        "elementwise.operation",
        parameter("op", one_of(*_ARITHMETIC, "DIV", "POW", *quantities.COMPARISONS)),
        source=_ELEMENTWISE,
        remedy=FALL_BACK,
    ),
    rule(
        "elementwise.operation_xavier",
        parameter("op", one_of(*_ARITHMETIC)),
        families="xavier",
        source=f"{OPERATORS}: the other operations need Orin",
        remedy="Choose an Orin platform, or let this layer run on a fallback device",
    ),
    rule(
        "elementwise.operation_8_6_11",
        parameter("op", one_of(*_ARITHMETIC)),
        families="orin",
        until="8.6.11",
        source=f"{OPERATORS}: the other operations were added in TensorRT 8.6.12",
        remedy="Use software 8.6.12 or newer",
    ),
    rule(
        "elementwise.operation_8_1",
        parameter("op", one_of("SUM", "PROD", "MAX", "MIN")),
        until="8.1",
        source=f"{HEADERS_7_1} and 8.2, IElementWiseLayer: SUB was added in 8.2",
        remedy="Multiply by -1 and add, or use software 8.2 or newer",
    ),
    rule("elementwise.rank", each(quantities.ranks, at_least(4)), source=_ELEMENTWISE, remedy=RESHAPE),
    rule(
        "elementwise.broadcast",
        broadcast_is_supported,
        source=_ELEMENTWISE,
        remedy="Tile the smaller operand to one of these shapes",
    ),
    rule(
        "elementwise.div_types",
        division_types_are_supported,
        when=parameter("op", equals("DIV")),
        source=f"{_ELEMENTWISE}: Div",
        remedy="If the divisor is constant, multiply by its reciprocal",
    ),
    rule(
        "elementwise.div_constant",
        constant_operand_is_uniform,
        when=parameter("op", equals("DIV")),
        source=f"{_ELEMENTWISE}: Div",
        remedy="If the divisor is constant, multiply by its reciprocal",
    ),
    rule(
        "elementwise.pow_operands",
        power_operands_are_supported,
        when=parameter("op", equals("POW")),
        source=f"{_ELEMENTWISE}: Pow",
        remedy="Write small integer powers as products",
    ),
    rule(
        "elementwise.comparison_types",
        comparison_is_int8,
        when=_compares,
        source=_COMPARISON,
        remedy="Set the layer's precision to INT8, and give its inputs scales",
    ),
    rule(
        "elementwise.comparison_consumer",
        comparison_feeds_a_cast,
        when=_compares,
        source=_COMPARISON,
        remedy="Use the result only in a cast to FP16 or INT8; set precision INT8 and device DLA on both layers",
    ),
    rule(
        "elementwise.comparison_cast",
        other_layer_is_supported,
        when=_compares,
        source=_COMPARISON,
        remedy="Let both layers run on a fallback device, or fix what the cast violates",
    ),
    rule(
        "elementwise.comparison_risk",
        compiles_for_sure,
        when=_compares,
        source=_COMPARISON,
        severity="warning",
        remedy="If the build fails, reset the device type and precision of this layer and of the cast after it",
    ),
    rule(
        "elementwise.ranges",
        int8.inputs_are_equal,
        families="xavier",
        precisions=INT8,
        source=f"{HEADERS} since 7.1, IElementWiseLayer; {REPORTS}: Orin accepts different scales",
        fidelity="inferred",
        remedy="Set both inputs to the larger of their dynamic ranges",
    ),
)

CAST = rules(
    ("cast", "identity"),
    rule(
        "cast.follows_comparison",
        cast_ends_a_comparison,
        source=_COMPARISON,
        remedy="Remove the layer, or let it run on a fallback device",
    ),
    rule(
        "cast.comparison",
        other_layer_is_supported,
        source=_COMPARISON,
        remedy="Let both layers run on a fallback device, or fix what the comparison violates",
    ),
)
