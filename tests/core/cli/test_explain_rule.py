from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from tests.schemas import validate

import dryfit.builder
import dryfit.target
from dryfit.answers.explain_rule import RuleExplanation, RulesAnswer, all_rules, explain_rule, find_rules
from dryfit.errors import UnknownNameError
from dryfit.plugins import registry
from dryfit.quantization.lint import all_lint_rules
from dryfit.rule import Rule
from dryfit.target.rule import LimitRule


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


def test_the_closest_may_be_the_first_words_of_ids(dryfit_command: Any) -> None:
    assert "Did you mean 'dla.convolution'?" in dryfit_command("explain-rule", "dla.conv").err


def test_the_first_words_of_ids_list_the_rules_that_begin_so(dryfit_command: Any) -> None:
    listed = dryfit_command("explain-rule", "DLA.pooling", "--json").json["rules"]
    assert [one["rule"] for one in listed] == [rule for rule in every_rule_id() if rule.startswith("dla.pooling.")]
    text = dryfit_command("explain-rule", "dla.pooling").out
    assert all(any(line.split()[0] == one["rule"] for line in text.splitlines()) for one in listed)


def test_a_part_of_a_word_lists_nothing(dryfit_command: Any) -> None:
    assert dryfit_command("explain-rule", "dla.pool").code == 2


def stated_rules() -> Iterator[Rule]:
    """Every record of a rule in words that a module of the builder or of targets has, alone or in a table."""
    for package in (dryfit.builder, dryfit.target):
        for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            for value in vars(importlib.import_module(info.name)).values():
                members = value.values() if isinstance(value, dict) else value
                found = members if isinstance(value, (dict, list, tuple)) else [value]
                yield from (one for one in found if isinstance(one, Rule) and not isinstance(one, LimitRule))


def test_every_rule_in_words_is_explained_with_all_that_its_record_says(dryfit_command: Any) -> None:
    rules = {rule.id: rule for rule in stated_rules()}
    assert {"standalone.one_loadable", "standalone.no_reformats", "reformat.direct_io"} <= rules.keys()
    for rule in rules.values():
        facts = dryfit_command("explain-rule", rule.id, "--json").json
        assert {key: facts[key] for key in ("rule", "text", "source", "remedy", "number")} == {
            **{key: getattr(rule, key) for key in ("text", "source", "remedy", "number")},
            "rule": rule.id,
        }


def test_every_rule_of_sparse_weights_and_of_the_lint_is_explained(dryfit_command: Any) -> None:
    tables = [target.sparsity.rules for target in registry.targets().values() if target.sparsity is not None]
    ids = [*(rule.id for table in tables for rule in table.all_rules), *all_lint_rules()]
    assert [dryfit_command("explain-rule", one, "--json").json["rule"] for one in ids] == ids


def test_the_list_has_every_rule_once(dryfit_command: Any) -> None:
    listed = [one["rule"] for one in dryfit_command("explain-rule", "--list", "--json").json["rules"]]
    assert len(set(listed)) == len(listed)
    assert {*every_rule_id(), "standalone.one_loadable", *all_lint_rules()} <= set(listed)
    words = {line.split()[0] for line in dryfit_command("explain-rule", "--list").out.splitlines() if line.split()}
    assert set(listed) <= words


@pytest.mark.parametrize(
    ("number", "rule"),
    [("IO-03", "dla.formats.hwc4_input"), ("rf-06", "reformat.direct_io"), ("MP-02", "memory_pool.size")],
)
def test_a_number_of_one_rule_explains_it(dryfit_command: Any, number: str, rule: str) -> None:
    assert dryfit_command("explain-rule", number, "--json").json["rule"] == rule
    assert "cited as" in dryfit_command("explain-rule", number).out


def test_letters_of_numbers_list_the_rules_that_are_numbered_so(dryfit_command: Any) -> None:
    for letters in ("IO", "RF", "MP", "SA", "SS"):
        listed = dryfit_command("explain-rule", letters, "--json").json["rules"]
        expected = [
            one.rule
            for family in all_rules()
            for one in family.rules
            if any(number.startswith(f"{letters}-") for number in one.numbers)
        ]
        assert [one["rule"] for one in listed] == expected


def test_the_error_for_an_unknown_rule_counts_the_families_and_names_the_list(dryfit_command: Any) -> None:
    ended = dryfit_command("explain-rule", "standalone.one_loadabel")
    assert ended.code == 2
    assert "Did you mean 'standalone.one_loadable'" in ended.err
    counts = [f"{family.word} ({len(family.rules)})" for family in all_rules() if family.rules]
    assert ", ".join(counts) in " ".join(ended.err.split())
    assert "dryfit explain-rule --list" in " ".join(ended.err.split())
    assert len(ended.err) < 600


def test_without_a_rule_the_command_asks_for_one(dryfit_command: Any) -> None:
    for arguments in ((), ("dla.precision", "--list")):
        ended = dryfit_command("explain-rule", *arguments)
        assert ended.code == 2
        assert "Pass one RULE, or --list" in ended.err


def test_a_script_gets_the_explanation_that_the_command_prints(dryfit_command: Any) -> None:
    found = explain_rule("DLA.convolution.kernel")
    assert found.rule == "dla.convolution.kernel"
    assert found.limit is not None
    assert (found.limit.device, found.limit.boundaries.outside) == ("DLA", ["0", "33"])
    ended = dryfit_command("explain-rule", found.rule)
    assert str(found) == ended.out.rstrip("\n")
    assert dryfit_command("explain-rule", found.rule, "--json").json == found.to_dict()


def test_a_script_asks_for_one_rule_by_its_number_and_several_are_named() -> None:
    assert explain_rule("mp-02").rule == "memory_pool.size"
    with pytest.raises(UnknownNameError, match=r"memory_pool\.size, memory_pool\.segment"):
        explain_rule("memory_pool")


def test_one_rule_and_a_list_answer_as_their_schemas_promise(dryfit_command: Any) -> None:
    limit = explain_rule("dla.convolution.kernel")
    stated = explain_rule("MP-02")
    several = RulesAnswer(find_rules("dla.convolution"))
    assert stated.limit is None
    for answer, own, other in (
        (limit, RuleExplanation, RulesAnswer),
        (stated, RuleExplanation, RulesAnswer),
        (several, RulesAnswer, RuleExplanation),
    ):
        validate(answer.to_dict(), own.schema())
        assert not jsonschema.Draft202012Validator(other.schema()).is_valid(answer.to_dict())
    assert {"device", "boundaries"} <= limit.to_dict().keys()
    assert "device" not in stated.to_dict()
    wrong = {**limit.to_dict(), "device": 1}
    assert not jsonschema.Draft202012Validator(RuleExplanation.schema()).is_valid(wrong)
    assert repr(stated) == f"<RuleExplanation: memory_pool.size: {stated.text}>"
    assert "<caption>" in several._repr_html_()
