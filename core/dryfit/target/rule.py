"""A limit rule: a check with its text, its source and the scope in which it holds."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import attrs

from dryfit.attrs_classes import frozen
from dryfit.errors import ConfigError, PluginError, UnknownNameError
from dryfit.network.data_types import DataType
from dryfit.rule import Rule
from dryfit.target.checks import FunctionCheck, ParameterCheck
from dryfit.target.declared_object import data_types, names
from dryfit.target.question import Check, Finding, Question
from dryfit.target.verdict import Violation

_VERSION = re.compile(r"[0-9]+(?:\.[0-9]+)*")
_WORDS = re.compile(r"[\w.-]+(, [\w.-]+)+")
"""Several values, of which one is allowed."""
_RENAMED = tuple(one.name for one in DataType if one.name != one.text)
_TYPES = re.compile(rf"(?<![\w'])({'|'.join(_RENAMED)})(?![\w'])")

SEVERITIES = ("violation", "warning", "note")
"""Effect of a rule that fails: the layer is rejected; a warning is reported; the device's behavior is reported."""


@frozen(eq=False, kw_only=True)
class LimitRule(Rule):
    """A statement about layers of some kinds on a device; targets use it as `dryfit.target.limits.Rule`.

    `check` is its `finder`. The severities are those of `SEVERITIES`: only a `violation` is decisive; a `warning`
    reports a risk, and a `note` reports what the device does on its own.

    Attributes:
        kinds: layer kinds that the rule applies to. Empty: every kind.
        parameter: the parameter that the rule checks.
        families: platform families that the rule applies to. Empty: all.
        since, until: first and last software version that the rule applies to; None for no bound. A last version of (8,
            4) includes every 8.4.x.
        precisions: computation types that the rule applies to. Empty: all.
        when: checks that must hold for the rule to apply, such as "the operation is DIV".
        promotes_to: type in which the device computes a layer that fails the rule, whatever was requested. Notes only.
        declared_at: `file:line` of the declaration; "" if unknown.
    """

    finder: Check = attrs.field(alias="check", repr=False)
    severity: str = "violation"
    kinds: frozenset[str] = attrs.field(converter=names)
    parameter: str
    families: frozenset[str] = attrs.field(default=frozenset(), converter=names)
    since: tuple[int, ...] | None = None
    until: tuple[int, ...] | None = None
    precisions: frozenset[DataType] = attrs.field(default=frozenset(), converter=data_types)
    when: Sequence[ParameterCheck | FunctionCheck] = ()
    promotes_to: DataType | None = None
    declared_at: str = ""

    @property
    def check(self) -> Check:
        """The check that tests the rule."""
        return self.finder

    def applies_to(self, question: Question) -> bool:
        """Return whether the rule applies to this layer, platform, version and precision."""
        return self.may_apply(question.layer.kind, question.family, question.software, question.precision) and all(
            condition(question) is None for condition in self.when
        )

    def may_apply(self, kind: str, family: str, software: tuple[int, ...], precision: DataType) -> bool:
        """Return whether the rule applies to a layer kind in this context, without testing its conditions."""
        return (
            (not self.kinds or kind in self.kinds)
            and self.holds_for(family, software)
            and (not self.precisions or precision in self.precisions)
        )

    def holds_for(self, family: str, software: tuple[int, ...]) -> bool:
        """Return whether the rule applies to a platform family with a software version."""
        padded = (*software, *(0 for _ in (self.since or ())[len(software) :]))
        return (
            (not self.families or family in self.families)
            and (self.since is None or padded >= self.since)
            and (self.until is None or software[: len(self.until)] <= self.until)
        )

    def finding(self, question: Question) -> Finding | None:
        """Return what the check finds; None if the rule holds, or does not apply to the layer.

        Raises:
            TypeError: The check returned an object of another type.
            Exception: The check or a condition raised an exception.
        """
        layer = question.layer
        is_in_scope = self.may_apply(layer.kind, question.family, question.software, question.precision)
        return self.finding_in_scope(question) if is_in_scope else None

    def finding_in_scope(self, question: Question) -> Finding | None:
        """Return `finding` for a question that passed `may_apply`. Raises the same errors."""
        if any(condition(question) is not None for condition in self.when):
            return None
        found = self.check(question)
        if found is not None and not isinstance(found, Finding):
            raise TypeError(f"a check returns a Finding or None, not {type(found).__name__}")
        return found

    def violation(self, finding: Finding) -> Violation:
        """Return the record of a failed check."""
        parameter = finding.parameter or self.parameter
        return Violation(
            rule=self.id,
            parameter=parameter,
            actual=finding.actual,
            allowed=finding.allowed,
            message=finding.message or _message(parameter, finding),
            remedy=self.remedy if finding.remedy is None else finding.remedy,
            source=self.source,
            fidelity=self.fidelity,
        )

    @property
    def limits(self) -> Mapping[str, Any]:
        """The limits of the check by name, such as `high`: what an overlay can move. Empty for a check without any."""
        found = getattr(self.check, "limits", None)
        return found if isinstance(found, Mapping) else {}

    def with_limits(self, limits: Mapping[str, Any]) -> LimitRule:
        """Return the rule with other limits, in its check and in its text.

        Raises:
            UnknownNameError: The rule has no limit of this name.
            ConfigError: A limit has another type than the rule's own.
        """
        for name, value in limits.items():
            if name not in self.limits:
                raise UnknownNameError(f"limit of {self.id}", name, self.limits)
            _require_like(self.limits[name], value, f"limit {name} of {self.id}")
        check: Any = self.check
        moved = check.with_limits(limits)
        return attrs.evolve(self, check=moved, text=self.text.replace(check.text, moved.text))

    @property
    def scope(self) -> str:
        """Scope of the rule in words (families, versions, precisions); "" if it always applies."""
        versions = {
            (False, False): "",
            (True, False): f"from {_version(self.since)}",
            (False, True): f"up to {_version(self.until)}",
            (True, True): f"{_version(self.since)} to {_version(self.until)}",
        }[self.since is not None, self.until is not None]
        parts = [
            ", ".join(sorted(self.families)),
            versions,
            ", ".join(sorted(precision.text for precision in self.precisions)),
        ]
        return "; ".join(filter(None, parts))


RuleEntry = Callable[[frozenset[str]], LimitRule]
"""A rule without its layer kinds, which `rules` adds."""


def _message(parameter: str, finding: Finding) -> str:
    """What must hold and what was found; data types by the names that people use."""
    allowed = finding.allowed.removeprefix("each ")  # what was found shows that there are several
    if _WORDS.fullmatch(allowed):
        allowed = f"one of {allowed}"
    return usual_types(f"{parameter} must be {allowed} (found {finding.actual})")


def usual_types(text: str) -> str:
    """Return a text with the usual names of data types, `FP16` for `HALF`; quoted names are unchanged."""
    if not any(name in text for name in _RENAMED):  # most texts, which are found faster so
        return text
    return _TYPES.sub(lambda found: DataType[found[1]].text, text)


def rule(
    id: str,
    check: Check,
    *,
    source: str,
    text: str | None = None,
    parameter: str | None = None,
    remedy: str = "",
    families: str | Iterable[str] = (),
    since: str | None = None,
    until: str | None = None,
    precisions: Iterable[DataType] = (),
    severity: str = "violation",
    fidelity: str = "documented",
    when: ParameterCheck | FunctionCheck | Sequence[ParameterCheck | FunctionCheck] = (),
    promotes_to: DataType | None = None,
    number: str = "",
) -> RuleEntry:
    """Return a rule of a limit table, to pass to `rules`.

    Args:
        id: id without the device, which the table adds: `convolution.kernel`.
        check: the test.
        source: document and section.
        text: the rule in one sentence. Default: the text of the check.
        parameter: the parameter that the rule checks. Default: that of the check.
        remedy: how the user can fix it.
        families: platform families that the rule applies to. Default: all.
        since: first software version, such as "8.4".
        until: last software version; "8.4" includes 8.4.1.
        precisions: computation types that the rule applies to. Default: all.
        severity: one of `SEVERITIES`.
        fidelity: `documented`, `inferred` or `confirmed`.
        when: one or more conditions under which the rule applies.
        promotes_to: for notes: type in which the device computes the layer.
        number: comma-separated short names under which documents cite the rule.

    Raises:
        PluginError: Neither the check nor the arguments provide a text, or the severity does not exist.
    """
    if severity not in SEVERITIES:
        raise PluginError(
            "Unknown severity",
            where=f"rule {id!r}",
            found=severity,
            allowed=", ".join(SEVERITIES),
            remedy="Set `severity` to one of these",
        )
    text = text or getattr(check, "text", None)
    parameter = parameter or getattr(check, "parameter", None)
    if text is None or parameter is None:
        raise PluginError(
            "A rule must have `text` and `parameter`",
            where=f"rule {id!r}",
            remedy="Set `text` and `parameter`, or create the check with `dryfit.target.checks`",
        )
    conditions = [when] if isinstance(when, (ParameterCheck, FunctionCheck)) else list(when)
    if conditions:
        text = f"where {' and '.join(one.condition for one in conditions)}: {text}"
    words, looked_at = text, parameter
    caller = sys._getframe(1)  # noqa: SLF001  inspect.stack reads source files, for each of hundreds of rules
    place = f"{caller.f_code.co_filename}:{caller.f_lineno}"
    return lambda kinds: LimitRule(
        id=id,
        kinds=kinds,
        check=check,
        text=words,
        parameter=looked_at,
        source=source,
        remedy=remedy,
        families=[families] if isinstance(families, str) else families,
        since=_parsed(since),
        until=_parsed(until),
        precisions=precisions,
        severity=severity,
        fidelity=fidelity,
        when=conditions,
        promotes_to=promotes_to,
        number=number,
        declared_at=place,
    )


def rules(kinds: str | Iterable[str], *entries: RuleEntry) -> list[LimitRule]:
    """Return the rules of layer kinds: `rules(("convolution", "fully_connected"), rule(...), rule(...))`.

    An empty tuple, `rules((), ...)`, applies the rules to every kind that the device supports.
    """
    names = frozenset([kinds] if isinstance(kinds, str) else kinds)
    return [entry(names) for entry in entries]


def _require_like(declared: Any, value: Any, where: str) -> None:
    """Reject a limit of another type than the declared one.

    Raises:
        ConfigError: A number stands for a word, a single value for several, or the other way around.
    """
    several = isinstance(declared, Sequence) and not isinstance(declared, str)
    kinds = {_kind(one) for one in (declared if several else [declared])}
    found = value if isinstance(value, tuple) else (value,)
    if isinstance(value, tuple) != several or not found or not all(_kind(one) in kinds for one in found):
        words = " or ".join(sorted(kinds))
        raise ConfigError(
            "The limit has another type than the rule's",
            where=where,
            found=repr(value),
            allowed=f"a list of {words}s" if several else f"one {words}",
            remedy=f"Write it like the rule's own: {declared!r}",
        )


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return "version" if _VERSION.fullmatch(value) else "string"


def _version(version: tuple[int, ...] | None) -> str:
    return ".".join(map(str, version or ()))


def _parsed(version: str | None) -> tuple[int, ...] | None:
    return None if version is None else tuple(int(part) for part in version.split("."))
