"""Conditions on answers, such as `fallback>3%`: `--fail-on` exits with code 1 if one of them holds.

A condition is a subject with an optional limit; the default is more than 0: `fallback>3%`, `missing`, `ratio>1.01`,
`dla.convolution.cbuf`. Each command defines its subjects and the values that they measure.
"""

from __future__ import annotations

import difflib
import operator
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import attrs

from dryfit.attrs_classes import frozen
from dryfit.errors import ConfigError

CONDITION = re.compile(
    r"(?P<subject>[a-z][\w.]*)\s*((?P<operator>>=|<=|!=|==|=|>|<)\s*(?P<limit>\d+(\.\d+)?)\s*(?P<unit>%|[a-z]*))?",
    re.IGNORECASE,
)
OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
}
PERCENT = "%"
BYTES = {"b": 1, "kb": 1000, "mb": 1000**2, "gb": 1000**3, "kib": 1024, "mib": 1024**2, "gib": 1024**3}
"""Units of sizes, in lower case, to bytes."""


@frozen
class Outcome:
    """The result of a condition.

    Attributes:
        condition: the condition as the user wrote it.
        actual: measured value, in words.
        failed: whether the condition holds, so that the check fails.
    """

    condition: str
    actual: str
    failed: bool

    def __str__(self) -> str:
        return f"{self.condition}: {self.actual}"


@frozen
class FailCondition:
    """A single condition.

    Attributes:
        text: the condition as the user wrote it.
        subject: subject whose value the condition limits.
        operator: one of `OPERATORS`.
        limit: a number, a percentage or a size, depending on `unit`.
        unit: "", "%", or one of `BYTES`.
    """

    text: str
    subject: str
    operator: str = ">"
    limit: float = 0
    unit: str = ""

    def outcome(self, value: float, words: str | None = None) -> Outcome:
        """Evaluate the condition for a value.

        Args:
            value: value in the unit of the limit; a size in bytes.
            words: the value in words; None for the plain number.
        """
        limit = self.limit * BYTES.get(self.unit, 1)
        found = f"{value:.7g}" if words is None else words
        return Outcome(self.text, found, OPERATORS[self.operator](value, limit))


@frozen
class Subjects:
    """The subjects that the conditions of a command can use.

    Attributes:
        texts: description of each subject, by name.
        aliases: alternative names of subjects.
        units: units that a limit may have, by subject; none means a number.
        limits: default limit by subject; 0 for the others.
        rules: returns the ids of rules, and their prefixes, for a word that is not a subject, given its first word.
            None if rules are not supported as subjects.
    """

    texts: Mapping[str, str]
    aliases: Mapping[str, str] = attrs.field(factory=dict)
    units: Mapping[str, Collection[str]] = attrs.field(factory=dict)
    limits: Mapping[str, float] = attrs.field(factory=dict)
    rules: Callable[[str], Collection[str]] | None = None

    @property
    def listed(self) -> str:
        """All subjects in words, without the ids of rules, which are too many to list."""
        return ", ".join(self.texts) + (" and the ids of rules" if self.rules else "")

    def condition(self, text: str) -> FailCondition:
        """Parse a condition such as `fallback>3%`.

        Raises:
            ValueError: The text is not a condition, or the subject does not exist; the message states what is allowed.
        """
        text = text.strip()
        match = CONDITION.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r} is not a condition; conditions are {self.listed}, and limits such as >3")
        subject = match["subject"].lower()
        subject = self.aliases.get(subject, subject)
        if subject not in self.texts:
            self._require_rule(subject)
        unit = (match["unit"] or "").lower()
        if unit and unit not in self.units.get(subject, ()):
            allowed = ", ".join(sorted(self.units.get(subject, ()))) or "none"
            raise ValueError(f"{text!r}: {subject} does not support the unit {match['unit']!r}, allowed: {allowed}")
        limit = float(match["limit"]) if match["limit"] else self.limits.get(subject, 0)
        return FailCondition(text, subject, match["operator"] or ">", limit, unit)

    def conditions(self, texts: str | Sequence[str | FailCondition]) -> tuple[FailCondition, ...]:
        """Parse the conditions of `"fallback>3%,loadables>8"`, or of several such strings.

        Raises:
            ConfigError: A text is not a condition; the message states what is allowed.
        """
        found: list[FailCondition] = []
        for one in [texts] if isinstance(texts, str) else texts:
            if isinstance(one, FailCondition):
                found.append(one)
                continue
            try:
                found += [self.condition(text) for text in one.split(",") if text.strip()]
            except ValueError as error:
                raise ConfigError(
                    "Unknown condition",
                    where="--fail-on",
                    found=error,
                    remedy="Use one of the listed conditions, with or without a limit",
                ) from error
        return tuple(found)

    def _require_rule(self, subject: str) -> None:
        known = self.rules(subject.partition(".")[0]) if self.rules else ()
        if subject in known:
            return
        close = difflib.get_close_matches(subject, [*self.texts, *sorted(known)], n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        what = "condition or rule" if self.rules else "condition"
        raise ValueError(f"unknown {what} {subject!r}; conditions: {self.listed}{hint}")


def counted_outcomes(conditions: Sequence[FailCondition], values: Mapping[str, float]) -> list[Outcome]:
    """Evaluate each condition, given the values by subject."""
    return [condition.outcome(values[condition.subject]) for condition in conditions]


def beginnings(rule: str) -> Iterator[str]:
    """Return the id of a rule and its prefixes: `dla`, `dla.pooling`, `dla.pooling.window`."""
    words = rule.split(".")
    return (".".join(words[:count]) for count in range(1, len(words) + 1))


def _placement_rules(first_word: str) -> Collection[str]:
    """Return the ids and prefixes of the rules of the named device; of all devices if the word names none."""
    from dryfit.plugins import registry

    named = registry.find_target(first_word)
    targets = registry.targets().values() if named is None else [named]
    tables = [target.limits for target in targets if target.limits is not None]
    return {beginning for table in tables for rule in table.all_rules for beginning in beginnings(rule.id)}


PLACEMENT_SUBJECTS = Subjects(
    {
        "fallback": "layers that are not on their requested device, as a count or % of all layers on devices",
        "unplaced": "layers that cannot be placed on any allowed device, as a count or %",
        "loadables": "segments on the requested device",
        "segments": "segments on all devices",
        "reformats": "copies between types, formats or devices, as a count or bytes, such as 1.5MiB",
        "warnings": "warnings about layers on the device where they run",
        "refusals": "errors that a build would raise",
    },
    aliases={"reformat": "reformats", "refusal": "refusals", "warning": "warnings"},
    units={"fallback": {PERCENT}, "unplaced": {PERCENT}, "reformats": set(BYTES)},
    rules=_placement_rules,
)
"""What conditions on a placement look at: `dryfit.check` and `dryfit check --fail-on`."""


def _lint_rules(_: str) -> Collection[str]:
    """Return the ids of all lint rules and their prefixes, for any word, so that typos get a suggestion."""
    from dryfit.quantization.lint import all_lint_rules

    return {beginning for rule in all_lint_rules() for beginning in beginnings(rule)}


LINT_SUBJECTS = Subjects(
    {
        "errors": "unsupported layers",
        "warnings": "findings that cost accuracy or time",
        "notes": "notes",
        "findings": "all of these",
    },
    aliases={"error": "errors", "warning": "warnings", "note": "notes", "finding": "findings"},
    rules=_lint_rules,
)
"""What conditions on Q/DQ look at: `dryfit.lint` and `dryfit qdq lint --fail-on`."""


def _sparsity_rules(_: str) -> Collection[str]:
    """Return the ids of all sparsity rules and their prefixes, for any word."""
    from dryfit.plugins import registry

    tables = [target.sparsity.rules for target in registry.targets().values() if target.sparsity is not None]
    return {beginning for table in tables for rule in table.all_rules for beginning in beginnings(rule.id)}


SPARSITY_SUBJECTS = Subjects(
    {
        "dense": "layers whose zeros are not skipped, as a count or % of the multiply-accumulates",
        "ineligible": "layers whose zeros would not be skipped with any weights, as a count or %",
        "unpruned": "eligible layers whose weights do not have the pattern, as a count or %",
    },
    units={subject: {PERCENT} for subject in ("dense", "ineligible", "unpruned")},
    rules=_sparsity_rules,
)
"""What conditions on sparse weights look at: `dryfit.find_sparsity` and `dryfit sparsity check --fail-on`."""

TRANSLATE_SUBJECTS = Subjects(
    {
        "codes": "the largest difference of a tensor in INT8 codes",
        "different": "codes that differ",
        "missing": "tensors without a scale",
        "lost": "layers that are INT8 in the Q/DQ model and floating point in the other",
        "unequal": "scales that implicit quantization merges into one",
        "weights": "codes of weights that an implicit build would compute differently",
        "notes": "settings that the other form cannot express",
    }
)
"""What conditions on a translation look at: `dryfit.translate` and `dryfit translate --fail-on`."""

CACHE_DIFF_SUBJECTS = Subjects(
    {
        "ratio": "the largest ratio of two scales of one tensor, such as ratio>1.01",
        "changed": "tensors whose scales differ",
        "added": "tensors that only SECOND has",
        "removed": "tensors that only FIRST has",
    },
    limits={"ratio": 1},
)
"""What conditions on two calibration caches look at: `dryfit.diff_caches` and `dryfit cache diff --fail-on`."""

CACHE_SUBJECTS = Subjects(
    {
        "damaged": "unreadable entries",
        "duplicate": "duplicate entries of a tensor",
        "negative": "negative scales",
        "nonfinite": "NaN or infinite scales",
        "zero": "zero scales, which mean none",
        "foreign": "1 if the file belongs to another model",
        "missing": "tensors of MODEL without a scale",
        "unknown": "scales of tensors that are not in MODEL",
        "unnamed": "scales under names generated by TensorRT",
        "findings": "all of these",
    },
)
"""What conditions on a calibration cache look at: `dryfit.check_cache` and `dryfit cache check --fail-on`."""
