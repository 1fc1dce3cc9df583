"""Checks of a quantize method: its record, and the results of its definitions for uses of their operators.

Each check returns the problems, one sentence per problem.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import numpy as np

from dryfit.errors import ConfigError, DryfitError
from dryfit.network.data_types import DataType
from dryfit.network.layer_copies import copy_layer
from dryfit.network.layers.quantized_operator import QuantizedOperator
from dryfit.plugins.quantize_methods import quantize_method
from dryfit.quantization.methods.method import MethodRule, QuantizeMethod
from dryfit.quantization.methods.operators import OPERATORS
from dryfit.rule import FIDELITIES
from dryfit.testing.operator_cases.case_table import further_cases, trial_cases
from dryfit.testing.operator_cases.operator_case import OperatorCase

Array = np.ndarray[Any, Any]
FAMILIES = ("tflite", "onnx", "caffe2")
"""Whose habits examples are drawn by: what one library refuses another takes."""
CASES_OF_A_RULE = 4
"""So many examples a rule is tried with."""

_CODE_TYPES = frozenset({DataType.INT8, DataType.UINT8, DataType.INT16})
_SEVERAL = frozenset({"bias_add", "concat", "eltwise_sum"})
"""Operators all of whose operands have the batch."""


def rule_title(rule: MethodRule) -> str:
    """Return a short title of a rule."""
    return f"{rule.operator} of {rule.case_title}"


# The record -------------------------------------------------------------------------------------------------------


def installation_problems(method: QuantizeMethod) -> list[str]:
    """Return why the method is not found by its name."""
    try:
        found = quantize_method(method.name)
    except DryfitError as error:
        return [str(error)]
    return [] if found == method else [f"the entry point {method.name!r} names another method"]


def record_problems(method: QuantizeMethod) -> list[str]:
    """Return what the record omits, and entries that can never apply."""
    found = [f"the method has no {name}" for name in ("name", "title", "source", "version") if not _text(method, name)]
    if not method.rules:
        found.append("the method has no rule")
    for rule in method.rules:
        found += [f"{rule_title(rule)}: {problem}" for problem in _rule_problems(rule, method)]
    for later, rule in enumerate(method.rules):
        before = next((one for one in method.rules[:later] if _covers(one, rule)), None)
        if before is not None:
            found.append(f"{rule_title(rule)}: never reached, since {rule_title(before)} precedes it")
    return found


def _rule_problems(rule: MethodRule, method: QuantizeMethod) -> Iterator[str]:
    if rule.operator not in OPERATORS:
        yield f"no operator is called {rule.operator!r}; there are {', '.join(OPERATORS)}"
    if not rule.types or not rule.types <= _CODE_TYPES:
        yield f"its types are {sorted(one.name for one in rule.types)}; codes are INT8, UINT8 and INT16"
    yield from (f"it has no {name}" for name in ("formula", "source") if not _text(rule, name))
    if "\n" in rule.formula:
        yield "its formula has several lines"
    if rule.fidelity not in FIDELITIES:
        yield f"its fidelity is {rule.fidelity!r}, not one of {', '.join(FIDELITIES)}"
    if rule.fidelity == "confirmed" and not method.library:
        yield "it is confirmed, and the method names no library that it was verified against"
    if rule.case is not None and not rule.case_text.strip():
        yield "it has a case without `case_text`"
    if any(not one.text.strip() for one in rule.requirements):
        yield "it has a requirement without words"


def _text(record: Any, name: str) -> str:
    return str(getattr(record, name)).strip()


def _covers(before: MethodRule, later: MethodRule) -> bool:
    """Whether an earlier rule takes every use that a later one is for."""
    return (
        before.operator == later.operator
        and before.types >= later.types
        and before.per_channel in (None, later.per_channel)
        and (before.case is None or before.case is later.case)
    )


# Uses of operators ------------------------------------------------------------------------------------------------


@functools.cache
def drawn_examples(operator: str) -> Sequence[OperatorCase]:
    """Return uses of an operator in all forms and types, with grids of several libraries; always the same."""
    by_family = [trial_cases(operator, family, count=4, is_exhaustive=False) for family in FAMILIES]
    further = [further_cases(operator, family, count=4) for family in FAMILIES]
    rows = itertools.chain(itertools.zip_longest(*by_family), itertools.zip_longest(*further))
    return [case for row in rows for case in row if case is not None]


def cases_of(method: QuantizeMethod, rule: MethodRule, more: Sequence[OperatorCase] = ()) -> list[OperatorCase]:
    """Return some uses that a method computes by a rule.

    Args:
        method: method with the rule.
        rule: one of its rules.
        more: examples in addition to the generated ones.
    """
    drawn = drawn_examples(rule.operator) if rule.operator in OPERATORS else ()
    reaching = (case for case in (*more, *drawn) if _reaches(method, rule, case))
    return list(itertools.islice(reaching, CASES_OF_A_RULE))


def _reaches(method: QuantizeMethod, rule: MethodRule, case: OperatorCase) -> bool:
    try:
        return method.rule_for(case.call) is rule
    except ConfigError:
        return False


def evaluation_problems(method: QuantizeMethod, cases: Sequence[OperatorCase]) -> list[str]:
    """Return outputs of a wrong type or shape, modified inputs, and results that differ between runs."""
    found = []
    for case in cases:
        given = attrs.evolve(case, inputs=tuple(None if array is None else array.copy() for array in case.inputs))
        (first,) = _evaluated(method, given)
        is_changed = any(map(_is_unlike, case.inputs, given.inputs))
        (second,) = _evaluated(method, given)
        call = case.call
        if first.dtype != call.to_type.numpy or first.shape != call.output_shape:
            wanted = f"{call.to_type.numpy} {call.output_shape}"
            found.append(f"{case.title}: gives {first.dtype} {first.shape}, not {wanted}")
        if first.tobytes() != second.tobytes():
            found.append(f"{case.title}: gives a different result the second time")
        if is_changed:
            found.append(f"{case.title}: changes what it is given")
    return found


def limit_problems(method: QuantizeMethod, cases: Sequence[OperatorCase]) -> list[str]:
    """Return codes beyond a fused activation's limits, by more than the rounding of a limit."""
    found = []
    for case in cases:
        call = case.call
        if call.output_scale is None or call.output_zero_point is None:
            continue
        low, high = (
            limit / np.float64(call.output_scale) + call.output_zero_point if np.isfinite(limit) else limit
            for limit in call.limits
        )
        (codes,) = _evaluated(method, case)
        type_low, type_high = call.code_range
        beyond = (codes < max(min(low, type_high) - 1, type_low)) | (codes > min(max(high, type_low) + 1, type_high))
        if beyond.any():
            found.append(f"{case.title}: {np.count_nonzero(beyond)} codes are beyond the limits")
    return found


def split_problems(method: QuantizeMethod, cases: Sequence[OperatorCase]) -> list[str]:
    """Return the samples of a batch whose results differ from those computed alone."""
    found = []
    for case in cases:
        batched = [index for index, array in enumerate(case.inputs) if array is not None and _has_batch(case, index)]
        parts = [case, _reversed(case, batched)]
        joined = attrs.evolve(case, layer=_of_two(case), inputs=_joined(parts, batched))
        try:
            (whole,) = _evaluated(method, joined)
        except DryfitError as error:
            found.append(f"{case.title}: refused for a larger batch: {error}")
            continue
        alone = np.concatenate([_evaluated(method, part)[0] for part in parts])
        if whole.tobytes() != alone.tobytes():
            differing = np.count_nonzero(whole != alone) if whole.shape == alone.shape else whole.size
            found.append(f"{case.title}: {differing} elements differ in a larger batch")
    return found


def _has_batch(case: OperatorCase, index: int) -> bool:
    """Whether an input has the samples of the output along its first axis."""
    call, array = case.call, case.inputs[index]
    if array is None or array.ndim == 0:
        return False
    if index == 0 and call.operator not in _SEVERAL:
        return True
    is_repeated = call.operator == "bias_add" and array.shape != call.output_shape
    return call.operator in _SEVERAL and not is_repeated


def is_divisible(case: OperatorCase) -> bool:
    """Return whether the first axis of an example is its batch, with no concatenation, softmax or constant along it."""
    call = case.call
    if call.operator == "softmax":
        return case.call.operand(0).values.ndim > 1 and not int(getattr(call.layer, "axes", 2)) & 1
    if call.operator == "concat":
        return int(getattr(call.layer, "axis", 1)) != 0
    is_product = call.operator == "inner_product" and call.layer.kind == "matrix_multiply"
    return not (is_product and call.operand(1).values.ndim > 2)


def _reversed(case: OperatorCase, batched: Sequence[int]) -> OperatorCase:
    """The same use with other codes in the same places."""
    inputs = list(case.inputs)
    for index in batched:
        array = inputs[index]
        if array is not None:
            inputs[index] = np.ascontiguousarray(array.reshape(-1)[::-1].reshape(array.shape))
    return attrs.evolve(case, inputs=tuple(inputs))


def _of_two(case: OperatorCase) -> QuantizedOperator:
    """The operator for twice the samples, where it states the output's shape."""
    layer = copy_layer(case.layer)
    shape = layer.fields.get("shape")
    if isinstance(shape, tuple) and case.call.operator == "resize_bilinear":
        layer.fields["shape"] = (2 * shape[0], *shape[1:])
    return layer


def _joined(parts: Sequence[OperatorCase], batched: Sequence[int]) -> tuple[Array | None, ...]:
    first = parts[0].inputs
    return tuple(
        np.concatenate([array for part in parts if (array := part.inputs[index]) is not None])
        if index in batched
        else first[index]
        for index in range(len(first))
    )


def _evaluated(method: QuantizeMethod, case: OperatorCase) -> list[Array]:
    layer = copy_layer(case.layer)
    layer.method = method.name
    return method.evaluate(layer, case.inputs)


def _is_unlike(array: Array | None, other: Array | None) -> bool:
    return array is not None and other is not None and array.tobytes() != other.tobytes()
