from __future__ import annotations

from typing import Any

import pytest

from dryfit.plugins import registry


def every_rule_id() -> list[str]:
    tables = [target.limits for target in registry.targets().values() if target.limits is not None]
    return [rule.id for table in tables for rule in table.all_rules]


@pytest.mark.parametrize("rule_id", every_rule_id())
def test_every_rule_has_words_a_source_and_a_fidelity(dryfit_command: Any, rule_id: str) -> None:
    facts = dryfit_command("explain-rule", rule_id, "--json").json
    assert facts["rule"] == rule_id
    assert facts["text"]
    assert facts["source"]
    assert facts["fidelity"] in {"documented", "inferred", "confirmed"}
    assert facts["severity"] in {"violation", "warning", "note"}


def test_a_range_is_told_with_the_values_on_both_sides(dryfit_command: Any) -> None:
    facts = dryfit_command("explain-rule", "dla.convolution.kernel", "--json").json
    assert facts["boundaries"] == {"inside": ["1", "32"], "outside": ["0", "33"]}
    text = dryfit_command("explain-rule", "DLA.convolution.kernel").out
    assert "just inside   1, 32" in text
    assert "just outside  0, 33" in text


def test_an_unknown_rule_is_an_error_that_names_the_closest(dryfit_command: Any) -> None:
    ended = dryfit_command("explain-rule", "dla.convolution.kernal")
    assert ended.code == 2
    assert "Did you mean 'dla.convolution.kernel'?" in ended.err


def test_the_first_words_of_ids_list_the_rules_that_begin_so(dryfit_command: Any) -> None:
    listed = dryfit_command("explain-rule", "DLA.pooling", "--json").json["rules"]
    assert [one["rule"] for one in listed] == [rule for rule in every_rule_id() if rule.startswith("dla.pooling.")]
    text = dryfit_command("explain-rule", "dla.pooling").out
    assert all(any(line.split()[0] == one["rule"] for line in text.splitlines()) for one in listed)


def test_a_part_of_a_word_lists_nothing(dryfit_command: Any) -> None:
    assert dryfit_command("explain-rule", "dla.pool").code == 2
