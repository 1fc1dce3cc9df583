"""Explain a rule: limits of devices, modes, copies, memory pools and lint rules, in one common form."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import attrs

from dryfit.answers.text import Answer, Block, Line, Table
from dryfit.attrs_classes import frozen
from dryfit.errors import UnknownNameError
from dryfit.rule import Rule

if TYPE_CHECKING:
    from dryfit.target.limits import Rule as LimitRule
    from dryfit.target.target import Target

LIST_COMMAND = "dryfit explain-rule --list"


@frozen(kw_only=True)
class Boundaries:
    """Values on both sides of a limit.

    Attributes:
        inside: values that just satisfy the limit.
        outside: values that just violate the limit.
    """

    inside: Sequence[str] = ()
    outside: Sequence[str] = ()


@frozen(kw_only=True)
class LimitScope:
    """The scope of a rule on the layers of a device.

    Attributes:
        device: name of the device.
        kinds: layer kinds that the rule applies to; empty for every kind.
        parameter: parameter that the rule limits.
        platform_families: platform families that it applies to; empty for all.
        since: first software version, such as `8.5`; None for no lower bound.
        until: last software version; None for no upper bound.
        precisions: computation types that it applies to; empty for all.
        scope: platform families, versions and precisions in words; "" if the rule always applies.
        boundaries: values on both sides of the limit, if it is a range or a list.
    """

    device: str
    kinds: Sequence[str]
    parameter: str
    platform_families: Sequence[str]
    since: str | None
    until: str | None
    precisions: Sequence[str]
    scope: str
    boundaries: Boundaries


@frozen(kw_only=True, repr=False)
class RuleExplanation(Answer):
    """A rule with its text, source and remedy.

    Attributes:
        rule: id of the rule.
        number: short names used in documents, separated by commas; "" for none.
        text: what the rule requires, in one sentence.
        severity: severity of a violation: `error` or `violation`, `warning`, `note`.
        consequence: what dryfit does on a violation; "" if the text states it.
        remedy: how to fix a violation.
        fidelity: `documented`, `inferred` or `confirmed`.
        source: document and section.
        limit: scope of a rule on the layers of a device; None for other rules.

    Example:
        >>> explain_rule("dla.convolution.kernel").limit.boundaries.outside
        ['0', '33']
    """

    COMMAND: ClassVar[str] = "explain-rule"
    JSON_BESIDE: ClassVar[str] = "limit"

    rule: str
    number: str
    text: str
    severity: str
    consequence: str
    remedy: str
    fidelity: str
    source: str
    limit: LimitScope | None = None

    @property
    def numbers(self) -> list[str]:
        """The numbers that documents use for the rule."""
        return [number.strip() for number in self.number.split(",") if number.strip()]

    def summary_line(self) -> str:
        """Return a one-line summary of the answer."""
        return f"{self.rule}: {self.text}"

    def blocks(self, *, verbose: bool = False) -> Iterator[Block]:  # noqa: ARG002  there is no more to show
        """Return the lines that `dryfit explain-rule` prints for one rule."""
        one = self.limit
        applies = (
            {
                "device": one.device,
                "layer kinds": ", ".join(one.kinds) or "every kind",
                "looks at": one.parameter,
                "holds for": one.scope or "all platforms, versions and precisions",
                "just inside": ", ".join(one.boundaries.inside),
                "just outside": ", ".join(one.boundaries.outside),
            }
            if one
            else {}
        )
        told = {
            "cited as": self.number,
            **applies,
            "severity": "" if self.consequence else self.severity,
            "when violated": self.consequence,
            "what to do": self.remedy,
            "fidelity": self.fidelity if one else "",
            "source": self.source,
        }
        yield Line(self.summary_line())
        yield from (Line(f"  {label:<13} {text}") for label, text in told.items() if text)


@frozen
class RuleFamily:
    """The rules whose ids start with the same word.

    Attributes:
        word: the first word of the ids.
        title: topic of the rules.
        rules: rules in display order.
    """

    word: str
    title: str
    rules: Sequence[RuleExplanation]


@frozen(repr=False)
class RulesAnswer(Answer):
    """Several rules, grouped by family.

    Attributes:
        families: rules grouped by the first word of their ids.
    """

    COMMAND: ClassVar[str] = "explain-rule"
    JSON_NAMES: ClassVar[Mapping[str, str]] = {"rules": "rules"}

    families: Sequence[RuleFamily]

    @property
    def rules(self) -> Sequence[RuleExplanation]:
        """The rules of all families."""
        return [rule for family in self.families for rule in family.rules]

    def summary_line(self) -> str:
        """Return a one-line summary of the answer."""
        return ", ".join(f"{family.word} ({len(family.rules)})" for family in self.families if family.rules)

    def blocks(self, *, verbose: bool = False) -> Iterator[Block]:  # noqa: ARG002  there is no more to show
        """Return a table for each rule family, with one line per rule, as `dryfit explain-rule` prints it."""
        for family in self.families:
            title = f"{family.word}: {family.title}" if len(self.families) > 1 else ""
            limits = [rule.limit for rule in family.rules if rule.limit is not None]
            if limits and len(limits) == len(family.rules):
                scopes = [limit.scope or "everywhere" for limit in limits]
                rows = [
                    (one.rule, one.text, scope, one.severity) for one, scope in zip(family.rules, scopes, strict=True)
                ]
                yield Table(title, ["rule", "what it says", "holds for", "when violated"], rows)
            elif family.rules:
                severities = [(one.rule, one.text, one.severity) for one in family.rules]
                yield Table(title, ["rule", "what it says", "severity"], severities)


def explain_rule(rule_id: str) -> RuleExplanation:
    """Return everything that is known about one rule.

    Args:
        rule_id: id of the rule, or a number that documents use only for it, such as `IO-03`. Case-insensitive.

    Raises:
        UnknownNameError: No rule has this name, or several rules do; `find_rules` returns those.
    """
    found = [rule for family in find_rules(rule_id) for rule in family.rules]
    if len(found) > 1:
        ids = [rule.rule for rule in found]
        raise UnknownNameError("rule", rule_id, ids, told=", ".join(ids))
    return found[0]


def find_rules(words: str) -> list[RuleFamily]:
    """Return the rule with this id, or else the rules whose document number or id prefix matches.

    Args:
        words: an id or its first words, or a number such as `SS-02` or its letters. Case-insensitive.

    Raises:
        UnknownNameError: No rule matches. The message names the closest rules and the number of the others.
    """
    first = words.lower().partition(".")[0]
    families = _families_of_device(first) or [one for one in _stated_families() if one.word == first] or all_rules()
    tests: Sequence[Callable[[RuleExplanation, str], bool]] = (_is_named, _is_cited, _is_below)
    for test in tests:
        fitting = [(one, [rule for rule in one.rules if test(rule, words)]) for one in families]
        if any(rules for _, rules in fitting):
            return [attrs.evolve(one, rules=rules) for one, rules in fitting if rules]
    raise _unknown_rule(words)


def all_rules() -> list[RuleFamily]:
    """Return every rule: first those of all installed devices, then the others."""
    from dryfit.plugins import registry

    return [*map(_device_family, registry.targets().values()), *_stated_families()]


def _is_named(rule: RuleExplanation, words: str) -> bool:
    return rule.rule == words.lower()


def _is_cited(rule: RuleExplanation, words: str) -> bool:
    asked = words.upper()
    return any(number == asked or number.startswith(f"{asked}-") for number in rule.numbers)


def _is_below(rule: RuleExplanation, words: str) -> bool:
    return rule.rule.startswith(f"{words.lower()}.")


def _unknown_rule(words: str) -> UnknownNameError:
    """Return the error for an unknown rule; the closest names are ids or their first words."""
    families = all_rules()
    counts = ", ".join(f"{family.word} ({len(family.rules)})" for family in families if family.rules)
    ids = [rule.rule for family in families for rule in family.rules]
    first_words = {one.rpartition(".")[0] for one in ids}
    return UnknownNameError("rule", words, {*ids, *first_words}, told=f"{counts}; `{LIST_COMMAND}` lists them all")


# Rules of devices -----------------------------------------------------------------------------------------------------


def _families_of_device(word: str) -> list[RuleFamily]:
    from dryfit.plugins import registry

    target = registry.find_target(word)
    return [] if target is None else [_device_family(target)]


def _device_family(target: Target) -> RuleFamily:
    """Return the rules of one device, on layers and on sparse weights."""
    limits = () if target.limits is None else target.limits.all_rules
    sparsity = () if target.sparsity is None or target.sparsity.rules is None else target.sparsity.rules.all_rules
    dense = "zero weights are not skipped; the layer runs anyway"
    rules = [_limit(target, rule, "the layer is refused") for rule in limits]
    rules += [_limit(target, rule, dense) for rule in sparsity]
    return RuleFamily(target.device.lower(), f"what {target.device} takes", rules)


def _limit(target: Target, rule: LimitRule, consequence: str) -> RuleExplanation:
    inside, outside = getattr(rule.check, "boundaries", ((), ()))
    scope = LimitScope(
        device=target.device,
        kinds=sorted(rule.kinds),
        parameter=rule.parameter,
        platform_families=sorted(rule.families),
        since=_version(rule.since),
        until=_version(rule.until),
        precisions=sorted(precision.name for precision in rule.precisions),
        scope=rule.scope,
        boundaries=Boundaries(inside=list(map(str, inside)), outside=list(map(str, outside))),
    )
    return _explained(rule, consequence if rule.severity == "violation" else f"a {rule.severity}", scope)


def _version(version: tuple[int, ...] | None) -> str | None:
    return None if version is None else ".".join(map(str, version))


# Other rules ----------------------------------------------------------------------------------------------------------


def _stated_families() -> list[RuleFamily]:
    """Return the rules that belong to no device, ordered by topic."""
    from dryfit.builder.config import mode_rules as modes
    from dryfit.builder.config.standalone import STANDALONE_OUTCOMES, STANDALONE_RULES
    from dryfit.builder.formats.forms import FORBIDDEN_COPIES, REFORMAT_RULES
    from dryfit.quantization.lint import all_lint_rules
    from dryfit.target.memory_pools import MEMORY_POOL_RULES

    reformats = [
        *_family("reformat", "", REFORMAT_RULES.values(), "the tensor is copied").rules,
        *_family("reformat", "", FORBIDDEN_COPIES.values()).rules,
    ]
    return [
        _family("builder_flags", "flags that cannot be combined in any build", modes.FLAG_RULES),
        _family("implicit", "networks calibrated by a calibrator", modes.IMPLICIT_RULES),
        _family("explicit", "networks with quantize or dequantize layers", modes.EXPLICIT_RULES),
        _family("strongly_typed", "networks that were created with STRONGLY_TYPED", modes.STRONGLY_TYPED_RULES),
        _family("standalone", "the engine capability DLA_STANDALONE", (*STANDALONE_RULES, *STANDALONE_OUTCOMES)),
        RuleFamily("reformat", "copies between types, formats or devices", reformats),
        _family("memory_pool", "limits of memory pools", MEMORY_POOL_RULES.values(), ""),
        _family("qdq", "where Q/DQ layers are placed: dryfit qdq lint", all_lint_rules().values(), ""),
    ]


def _family(word: str, title: str, rules: Iterable[Rule], consequence: str = "the build fails") -> RuleFamily:
    return RuleFamily(word, title, [_explained(rule, consequence) for rule in rules])


def _explained(rule: Rule, consequence: str, limit: LimitScope | None = None) -> RuleExplanation:
    return RuleExplanation(
        rule=rule.id,
        number=rule.number,
        text=rule.text,
        severity=rule.severity,
        consequence=consequence,
        remedy=rule.remedy,
        fidelity=rule.fidelity,
        source=rule.source,
        limit=limit,
    )
