"""The rules of a device, on layers and on weights with zeros."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dryfit.cli.rules.family import Facts, RuleFamily

if TYPE_CHECKING:
    from dryfit.target.limits import Rule
    from dryfit.target.target import Target


def device_family(target: Target) -> RuleFamily:
    """The rules of one device."""
    return RuleFamily(
        target.device.lower(),
        f"what {target.device} takes",
        lambda: [rule_facts(target, rule) for rule in _rules(target)],
        _shown,
        ("rule", "what it says", "holds for", "when it fails"),
        lambda facts: (facts["rule"], facts["text"], facts["scope"] or "everywhere", facts["severity"]),
    )


def _rules(target: Target) -> Sequence[Rule]:
    tables = (target.limits, None if target.sparsity is None else target.sparsity.rules)
    return [rule for table in tables if table is not None for rule in table.all_rules]


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
        "scope": rule.scope,
        "severity": rule.severity,
        "consequence": _consequence(target, rule),
        "boundaries": {"inside": [str(value) for value in inside], "outside": [str(value) for value in outside]},
        "remedy": rule.remedy,
        "fidelity": rule.fidelity,
        "source": rule.source,
    }


def _shown(facts: Facts) -> Mapping[str, str]:
    return {
        "device": facts["device"],
        "layer kinds": ", ".join(facts["kinds"]) or "every kind",
        "looks at": facts["parameter"],
        "holds for": facts["scope"] or "every platform, version and precision",
        "just inside": ", ".join(facts["boundaries"]["inside"]),
        "just outside": ", ".join(facts["boundaries"]["outside"]),
        "when it fails": facts["consequence"],
        "what to do": facts["remedy"],
        "fidelity": facts["fidelity"],
        "source": facts["source"],
    }


def _consequence(target: Target, rule: Rule) -> str:
    if rule.severity != "violation":
        return f"a {rule.severity}"
    is_limit = target.limits is not None and rule in target.limits.all_rules
    return "the layer is refused" if is_limit else "zeros of weights are not skipped, and the layer runs all the same"


def _version(version: tuple[int, ...] | None) -> str | None:
    return None if version is None else ".".join(map(str, version))
