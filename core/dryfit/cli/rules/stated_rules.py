"""The rules that are no device's: on modes, copies and memory pools, and those of the lint."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dryfit.cli.rules.family import Facts, RuleFamily

if TYPE_CHECKING:
    from dryfit.rule import Rule

NOT_BUILT = "the network is not built"


def stated_families() -> Sequence[RuleFamily]:
    """The families, in the order of what they speak of."""
    return [
        _stated("builder_flags", "flags that exclude one another in every build", _flags),
        _stated("implicit", "networks whose scales a calibrator finds", _implicit),
        _stated("explicit", "networks with quantize or dequantize layers", _explicit),
        _stated("strongly_typed", "networks that were created with STRONGLY_TYPED", _strongly_typed),
        _stated("standalone", "the engine capability DLA_STANDALONE", _standalone),
        _stated("reformat", "copies between types, formats or devices", _reformats),
        _stated("memory_pool", "limits of memory pools", _memory_pools),
        RuleFamily(
            "qdq",
            "where quantizations stand: dryfit qdq lint",
            _lint,
            lambda facts: {
                "severity": facts["severity"],
                "what to do": facts["remedy"],
                "source": facts["source"],
            },
            ("rule", "what it says", "severity"),
            lambda facts: (facts["rule"], facts["text"], facts["severity"]),
        ),
    ]


def _stated(word: str, title: str, load: Callable[[], Sequence[Facts]]) -> RuleFamily:
    return RuleFamily(word, title, load, _shown, ("rule", "what it says"), lambda one: (one["rule"], one["text"]))


def _shown(facts: Facts) -> Mapping[str, str]:
    return {"when it fails": facts["consequence"], "what to do": facts["remedy"], "source": facts["source"]}


def _facts(rules: Iterable[Rule], consequence: str = NOT_BUILT) -> list[dict[str, Any]]:
    return [
        {
            "rule": rule.id,
            "number": rule.number,
            "text": rule.text,
            "consequence": consequence,
            "remedy": rule.remedy,
            "source": rule.source,
        }
        for rule in rules
    ]


def _flags() -> Sequence[Facts]:
    from dryfit.builder.explicit_quantization.mode_rules import FLAG_RULES

    return _facts(FLAG_RULES)


def _implicit() -> Sequence[Facts]:
    from dryfit.builder.explicit_quantization.mode_rules import IMPLICIT_RULES

    return _facts(IMPLICIT_RULES)


def _explicit() -> Sequence[Facts]:
    from dryfit.builder.explicit_quantization.mode_rules import EXPLICIT_RULES

    return _facts(EXPLICIT_RULES)


def _strongly_typed() -> Sequence[Facts]:
    from dryfit.builder.explicit_quantization.mode_rules import STRONGLY_TYPED_RULES

    return _facts(STRONGLY_TYPED_RULES)


def _standalone() -> Sequence[Facts]:
    from dryfit.builder.segments.standalone import STANDALONE_OUTCOMES, STANDALONE_RULES

    return _facts((*STANDALONE_RULES, *STANDALONE_OUTCOMES))


def _reformats() -> Sequence[Facts]:
    from dryfit.builder.tensor_formats.reformat_rules import FORBIDDEN_COPIES, REFORMAT_RULES

    return [*_facts(REFORMAT_RULES.values(), "the tensor is copied"), *_facts(FORBIDDEN_COPIES.values())]


def _memory_pools() -> Sequence[Facts]:
    from dryfit.target.memory_pool_rules import MEMORY_POOL_RULES

    return _facts(MEMORY_POOL_RULES.values(), "")


def _lint() -> Sequence[Facts]:
    from dryfit.cli.qdq_report import rule_data
    from dryfit.quantization.lint import all_lint_rules

    return [{**rule_data(rule), "number": ""} for rule in all_lint_rules().values()]
