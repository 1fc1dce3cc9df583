"""`dryfit explain-rule`: everything that is known of one rule, of whatever table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from dryfit.cli.console import json_option, print_json, print_line, print_table
from dryfit.cli.explain_lint_rule import lint_rule_ids, told_of_lint
from dryfit.cli.explain_mode_rule import mode_rules, told_of_mode
from dryfit.cli.explain_reformat_rule import reformat_rules, told_of_reformat
from dryfit.errors import UnknownNameError

if TYPE_CHECKING:
    from dryfit.target.limits import Rule
    from dryfit.target.target import Target


@click.command()
@click.argument("rule_id", metavar="RULE")
@json_option
def explain_rule(rule_id: str, as_json: bool) -> None:
    """Explain one limit RULE, such as dla.convolution.kernel: what it says, where it holds, who says so.

    The first words of ids, such as dla.convolution, list the rules that begin so. Rules of `dryfit qdq lint` begin
    with qdq, those on modes with explicit, strongly_typed or standalone, reasons for copies with reformat. A number by
    which documents cite rules, such as SS-02, finds them too.
    """
    if any(told(rule_id, as_json) for told in (told_of_lint, told_of_mode, told_of_reformat)):
        return
    listed = rules_below(rule_id)
    if listed:
        print_rules(listed, as_json)
        return
    target, rule = find_rule(rule_id)
    facts = rule_facts(target, rule)
    if as_json:
        print_json(facts)
        return
    print_line(f"{rule.id}: {rule.text}")
    shown = {
        "cited as": rule.number,
        "device": target.device,
        "layer kinds": ", ".join(facts["kinds"]) or "every kind",
        "looks at": facts["parameter"],
        "holds for": rule.scope or "every platform, version and precision",
        "just inside": ", ".join(facts["boundaries"]["inside"]),
        "just outside": ", ".join(facts["boundaries"]["outside"]),
        "when it fails": _consequence(target, rule),
        "what to do": facts["remedy"],
        "fidelity": facts["fidelity"],
        "source": facts["source"],
    }
    for label, value in shown.items():
        if value:
            print_line(f"  {label:<13} {value}")


def rules_below(words: str) -> list[tuple[Target, Rule]]:
    """The rules whose ids begin with these words, or that are cited so, and their targets.

    None where the words are an id themselves, or cite one rule only.
    """
    every = _rules_for(words)
    if words.lower() in every:
        return []
    cited = _cited(words, every)
    below = [one for name, one in every.items() if name.startswith(f"{words.lower()}.")]
    return below or (cited if len(cited) > 1 else [])


def print_rules(listed: list[tuple[Target, Rule]], as_json: bool) -> None:
    """Several rules: all facts as JSON, or one line each."""
    if as_json:
        print_json({"rules": [rule_facts(target, rule) for target, rule in listed]})
        return
    rows = [(rule.id, rule.text, rule.scope or "everywhere", rule.severity) for _, rule in listed]
    print_table("", ["rule", "what it says", "holds for", "when it fails"], rows)


def find_rule(rule_id: str) -> tuple[Target, Rule]:
    """The rule of an id, and the target that has it.

    Raises:
        UnknownNameError: no installed target has such a rule.
    """
    rules = _rules_for(rule_id)
    cited = _cited(rule_id, rules)
    if len(cited) == 1:
        return cited[0]
    if rule_id.lower() not in rules:
        raise UnknownNameError("rule", rule_id, [*rules, *lint_rule_ids(), *mode_rules(), *reformat_rules()])
    return rules[rule_id.lower()]


def _rules_for(words: str) -> dict[str, tuple[Target, Rule]]:
    """Id to rule and target: of the device that the first word names, of all devices where it names none."""
    from dryfit.plugins import registry

    named = registry.find_target(words.partition(".")[0])
    return {
        rule.id: (target, rule)
        for target in (registry.targets().values() if named is None else [named])
        for rule in (
            *(() if target.limits is None else target.limits.all_rules),
            *(() if target.sparsity is None else target.sparsity.rules.all_rules),
        )
    }


def _cited(number: str, rules: Mapping[str, tuple[Target, Rule]]) -> list[tuple[Target, Rule]]:
    return [one for one in rules.values() if one[1].number and one[1].number == number.upper()]


def _consequence(target: Target, rule: Rule) -> str:
    if rule.severity != "violation":
        return f"a {rule.severity}"
    is_limit = target.limits is not None and rule in target.limits.all_rules
    return "the layer is refused" if is_limit else "zeros of weights are not skipped, and the layer runs all the same"


def rule_facts(target: Target, rule: Rule) -> dict[str, Any]:
    """A rule as plain data."""
    inside, outside = getattr(rule.check, "boundaries", ((), ()))
    return {
        "rule": rule.id,
        "number": rule.number,
        "device": target.device,
        "text": rule.text,
        "kinds": sorted(rule.kinds),
        "parameter": rule.parameter,
        "platform_families": sorted(rule.families),
        "since": _version(rule.since),
        "until": _version(rule.until),
        "precisions": sorted(precision.name for precision in rule.precisions),
        "severity": rule.severity,
        "boundaries": {"inside": [str(value) for value in inside], "outside": [str(value) for value in outside]},
        "remedy": rule.remedy,
        "fidelity": rule.fidelity,
        "source": rule.source,
    }


def _version(version: tuple[int, ...] | None) -> str | None:
    return None if version is None else ".".join(map(str, version))
