"""What a target states of sparse weights."""

import attrs
import numpy as np
import pytest
from tests.targets.dla.questions import convolution, question

from dryfit.errors import UnknownNameError
from dryfit.plugins import registry
from dryfit.quantization.int8_weights import SparsePattern
from dryfit.target.checks import at_least, parameter
from dryfit.target.limits import LimitTable, rule, rules
from dryfit.target.sparsity import Sparsity, zeros_follow
from dryfit.testing.record_checks import declaration_problems

PATTERN = SparsePattern(1, 2)
TABLE = LimitTable(
    "GPU",
    rules(
        "convolution",
        rule("pattern", zeros_follow(PATTERN), source="Acme manual"),
        rule("maps", parameter("num_output_maps", at_least(8)), source="Acme manual"),
    ),
)
ACME = Sparsity(PATTERN, TABLE, "gpu.pattern")


def asked(maps, weights=None):
    return attrs.evolve(question(convolution((1, 4, 8, 8), (1, 1), maps)), weights=weights)


def test_a_layer_is_eligible_where_only_its_zeros_are_wrong():
    ones = np.ones((8, 4, 1, 1))
    assert ACME.is_eligible(asked(8, ones))
    assert not ACME.verdict(asked(8, ones)).supported
    assert ACME.verdict(asked(8, PATTERN.pruned(ones))).supported
    assert not ACME.is_eligible(asked(7))


def test_the_rule_on_the_pattern_is_one_of_the_table():
    with pytest.raises(UnknownNameError, match=r"gpu\.patterns"):
        Sparsity(PATTERN, TABLE, "gpu.patterns")


def test_rules_of_another_device_are_found():
    dla = registry.target("DLA")
    assert declaration_problems(dla) == []
    wrong = attrs.evolve(dla, sparsity_at=f"{__name__}:ACME")
    assert declaration_problems(wrong) == ["the rules on sparse weights are of the device 'GPU'"]


def test_a_target_without_a_statement_skips_no_zeros():
    assert registry.target("GPU").sparsity is None
