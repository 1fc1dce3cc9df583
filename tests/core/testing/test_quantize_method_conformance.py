"""The kit of quantize methods itself: a sound one passes, and a wrong one fails a test for its own reason."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
import pytest

from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import Activation, ActivationType
from dryfit.plugins.quantize_methods import quantize_method
from dryfit.quantization.methods.call import OperatorCall
from dryfit.quantization.methods.method import MethodRule, QuantizeMethod, Requirement
from dryfit.testing.operator_cases.operator_case import case_of
from dryfit.testing.quantize_method_conformance import QuantizeMethodConformance as Kit

Failed = pytest.fail.Exception
TFLITE = quantize_method("tflite")
RELU = next(rule for rule in TFLITE.rules if rule.operator == "relu")
SOUND = attrs.evolve(TFLITE, rules=(RELU,))


def failures(method: QuantizeMethod, test: Callable[..., None], **attributes: Any) -> str:
    """The messages of one test of the kit, over all its cases."""
    kit = type("TestAcme", (Kit,), {"method": method, **attributes})()
    cases = [[rule] for rule in method.rules] if len(inspect.signature(test).parameters) > 1 else [[]]
    found = []
    for case in cases:
        try:
            test(kit, *case)
        except Failed as failure:
            found.append(str(failure))
    return "\n".join(found)


def relu(**changes: Any) -> QuantizeMethod:
    """A method of one rule, as the sound one but for this."""
    return attrs.evolve(SOUND, rules=(attrs.evolve(RELU, **changes),))


def computing(change: Callable[[np.ndarray[Any, Any], OperatorCall], Any]) -> QuantizeMethod:
    """The sound method, whose codes are changed."""

    def definition(call: OperatorCall, rule: MethodRule) -> Any:
        return change(RELU.definition(call, rule), call)

    return relu(definition=definition)


def every_test() -> list[Callable[..., None]]:
    return [value for name, value in vars(Kit).items() if name.startswith("test_")]


@pytest.mark.parametrize("test", every_test(), ids=lambda test: test.__name__)
def test_a_sound_method_passes(test: Callable[..., None]) -> None:
    method = TFLITE if test is Kit.test_the_method_is_found_by_its_name else SOUND
    assert failures(method, test) == ""


RECORDS = [
    (attrs.evolve(SOUND, title=" "), "the method has no title"),
    (attrs.evolve(SOUND, rules=()), "the method has no rule"),
    (attrs.evolve(SOUND, rules=(RELU, RELU)), "never reached, since"),
    (attrs.evolve(SOUND, library=""), "it is confirmed, and the method names no library"),
    (relu(operator="rectify"), "no operator is called 'rectify'"),
    (relu(types=frozenset({DataType.FLOAT})), "codes are INT8, UINT8 and INT16"),
    (relu(formula=""), "it has no formula"),
    (relu(formula="one\ntwo"), "its formula has several lines"),
    (relu(fidelity="certain"), "its fidelity is 'certain', not one of documented, inferred, confirmed"),
    (relu(case=lambda call: True, case_text=""), "it has a case without `case_text`"),
    (relu(requirements=(Requirement(text="", holds=lambda call: True),)), "it has a requirement without words"),
]


@pytest.mark.parametrize(("method", "message"), RECORDS, ids=[message for _, message in RECORDS])
def test_a_record_that_leaves_something_open_is_told(method: QuantizeMethod, message: str) -> None:
    assert message in failures(method, Kit.test_the_record_is_complete)


def test_a_method_without_an_entry_point_or_with_anothers_name_is_told() -> None:
    unknown = attrs.evolve(SOUND, name="acme")
    assert "acme" in failures(unknown, Kit.test_the_method_is_found_by_its_name)
    assert "names another method" in failures(SOUND, Kit.test_the_method_is_found_by_its_name)


def _second_time_otherwise() -> QuantizeMethod:
    times = iter(range(1000))
    return computing(lambda codes, call: np.bitwise_xor(codes, codes.dtype.type(next(times) % 2)))


def _changing() -> QuantizeMethod:
    def change(codes: np.ndarray[Any, Any], call: OperatorCall) -> np.ndarray[Any, Any]:
        call.operand(0).values.reshape(-1)[0] ^= 1
        return codes

    return computing(change)


def _by_place(codes: np.ndarray[Any, Any], call: OperatorCall) -> np.ndarray[Any, Any]:
    """The last element of the whole tensor is another code."""
    flat = codes.reshape(-1).copy()
    flat[-1] ^= 1
    return flat.reshape(codes.shape)


WRONG = [
    (Kit.test_a_rule_computes_what_it_is_for, lambda: computing(lambda codes, call: codes.astype(np.int32)), "int32"),
    (Kit.test_a_rule_computes_what_it_is_for, lambda: computing(lambda codes, call: codes.reshape(-1)[:3]), "(3,)"),
    (Kit.test_a_rule_computes_what_it_is_for, _second_time_otherwise, "gives a different result the second time"),
    (Kit.test_a_rule_computes_what_it_is_for, _changing, "changes what it is given"),
    (Kit.test_batches_do_not_matter, lambda: computing(_by_place), "1 elements differ in a larger batch"),
    (
        Kit.test_engines_compute_as_the_definition_does,
        lambda: computing(lambda codes, call: np.bitwise_xor(codes, codes.dtype.type(1))),
        "elements of the engine differ",
    ),
]


@pytest.mark.parametrize(("test", "make", "message"), WRONG)
def test_a_wrong_definition_fails_its_test(
    test: Callable[..., None], make: Callable[[], QuantizeMethod], message: str
) -> None:
    assert message in failures(make(), test)


def test_codes_beyond_the_limits_of_an_activation_are_told() -> None:
    sums = next(rule for rule in TFLITE.rules if rule.operator == "eltwise_sum")

    def unlimited(call: OperatorCall, rule: MethodRule) -> Any:
        return sums.definition(attrs.evolve(call, limits=(-np.inf, np.inf)), rule)

    method = attrs.evolve(TFLITE, rules=(attrs.evolve(sums, definition=unlimited),))
    assert "codes are beyond the limits" in failures(method, Kit.test_results_keep_the_limits_of_an_activation)


def test_a_rule_that_no_example_reaches_fails_until_it_is_given_one() -> None:
    def is_of_seven(call: OperatorCall) -> bool:
        return call.operand(0).values.size == 7

    method = relu(case=is_of_seven, case_text="of seven elements")
    test = Kit.test_a_rule_computes_what_it_is_for
    assert "no example reaches this rule; give one in `examples`" in failures(method, test)
    layer = Activation(activation_type=ActivationType.RELU)
    example = case_of(layer, [np.arange(-3, 4, dtype=np.int8)], [(0.5, 0)], (0.25, 3))
    assert failures(method, test, examples=[example]) == ""
