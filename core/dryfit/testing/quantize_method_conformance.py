"""The conformance kit of quantize methods: a third party subclasses it in one file, and pytest runs the tests.

The checks of engines that compute with a method come first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pytest

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.building import Builder
from dryfit.network.network import Network
from dryfit.plugins import registry
from dryfit.quantization.methods.method import MethodRule, QuantizeMethod
from dryfit.testing import quantize_method_checks
from dryfit.testing.integer_networks import add_operator_case
from dryfit.testing.kit import Cases, ConformanceKit, require_none
from dryfit.testing.operator_cases.operator_case import OperatorCase

Array = np.ndarray[Any, Any]


def engine_problems(method: QuantizeMethod, cases: Sequence[OperatorCase]) -> list[str]:
    """Return the elements of an engine's output that differ from the definition.

    Args:
        method: the method, which must be found by its name.
        cases: that the method supports; each becomes an operator of one network.
    """
    network = Network()
    feeds: dict[str, Array] = {}
    for number, case in enumerate(cases):
        feeds |= add_operator_case(network, case, method.name, f"operator{number}")
    config = BuilderConfig()
    config.default_device_type = registry.host().device
    outputs = Builder().build_engine(network, config).create_execution_context().run(feeds)
    found = []
    for number, case in enumerate(cases):
        given = outputs[f"operator{number}_output"]
        (layer,) = (one for one in network.layers if one.name == f"operator{number}")
        (wanted,) = method.evaluate(layer, case.inputs)  # type: ignore[arg-type]
        if given.dtype != wanted.dtype or given.tobytes() != wanted.tobytes():
            differing = np.count_nonzero(given != wanted)
            found.append(f"{case.title}: {differing} of {wanted.size} elements of the engine differ")
    return found


_cases_of_rules: dict[tuple[type[ConformanceKit], int], list[OperatorCase]] = {}
"""Kit and identity of a rule to the cases of its tests, which are the same in each and take long to find."""


class QuantizeMethodConformance(ConformanceKit):
    """Tests for every quantize method. They do not prove equivalence with a library, which requires its oracle.

    Attributes:
        method: the method record; the only required attribute of a subclass.
        examples: uses of operators in addition to those that the kit generates; required for a rule that none of these
            reaches.
        batch_matters: title of each rule whose results depend on the number of samples -> the reason.

    Example:
        >>> from dryfit.testing.quantize_method_conformance import QuantizeMethodConformance
        >>> class TestMine(QuantizeMethodConformance):
        ...     method = METHOD
    """

    method: ClassVar[QuantizeMethod]
    examples: ClassVar[Sequence[OperatorCase]] = ()
    batch_matters: ClassVar[Mapping[str, str]] = {}

    cases: ClassVar[Mapping[str, Callable[[Any], Cases]]] = {"rule": lambda kit: _labelled(kit.method.rules)}

    def test_the_method_is_found_by_its_name(self) -> None:
        """The method has an entry point."""
        require_none(quantize_method_checks.installation_problems(self.method))

    def test_the_record_is_complete(self) -> None:
        """Every rule has a purpose, a formula and a source, and is reachable."""
        require_none(quantize_method_checks.record_problems(self.method))

    def test_a_rule_computes_what_it_is_for(self, rule: MethodRule) -> None:
        """Outputs have the declared type and shape, are reproducible, and leave the inputs unchanged."""
        require_none(quantize_method_checks.evaluation_problems(self.method, self._cases(rule)))

    def test_results_keep_the_limits_of_an_activation(self, rule: MethodRule) -> None:
        """Codes are within the limits of a fused activation."""
        require_none(quantize_method_checks.limit_problems(self.method, self._cases(rule)))

    def test_batches_do_not_matter(self, rule: MethodRule) -> None:
        """A sample has the same result alone and in a batch."""
        reason = self.batch_matters.get(quantize_method_checks.rule_title(rule))
        if reason is not None:
            pytest.skip(f"the kit's class states that the batch matters: {reason}")
        divisible = [case for case in self._cases(rule) if quantize_method_checks.is_divisible(case)]
        require_none(quantize_method_checks.split_problems(self.method, divisible))

    def test_engines_compute_as_the_definition_does(self, rule: MethodRule) -> None:
        """The kernels of an engine give the bits of the definition."""
        require_none(engine_problems(self.method, self._cases(rule)))

    def _cases(self, rule: MethodRule) -> list[OperatorCase]:
        """Examples of a rule; the test fails where there is none, since nothing would be tested."""
        key = type(self), id(rule)
        found = _cases_of_rules.get(key)
        if found is None:
            found = _cases_of_rules[key] = quantize_method_checks.cases_of(self.method, rule, self.examples)
        if not found:
            title = quantize_method_checks.rule_title(rule)
            require_none([f"{title}: no example reaches this rule; give one in `examples`"])
        return found


def _labelled(rules: Sequence[MethodRule]) -> Cases:
    """Rules with what tests of them are called."""
    titles = [quantize_method_checks.rule_title(rule) for rule in rules]
    counts = Counter(titles)
    return [
        (title if counts[title] == 1 else f"{title} {index}", rule)
        for index, (title, rule) in enumerate(zip(titles, rules, strict=True))
    ]
