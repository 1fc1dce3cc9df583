"""Limit rules: declarative statements about layers on a device.

A table of rules is the source of the documentation, the checks, the messages and the boundary tests. All applicable
rules are evaluated; none stops another.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING

import attrs

from dryfit.attrs_classes import frozen
from dryfit.errors import NetworkError, PluginError, UnknownNameError, described_failure, place_of_failure
from dryfit.network.data_types import DataType
from dryfit.target.precision_rule import precision_rule
from dryfit.target.question import Check, Finding, Question
from dryfit.target.rule import SEVERITIES, RuleEntry, rule, rules
from dryfit.target.rule import LimitRule as Rule  # the name by which targets know it
from dryfit.target.verdict import Verdict, Violation

if TYPE_CHECKING:
    from dryfit.network.data_types import DataType
    from dryfit.network.layer import Layer

__all__ = ["Check", "Finding", "LimitTable", "Question", "Rule", "RuleEntry", "rule", "rules"]


@frozen(eq=False)
class LimitTable:
    """All rules of a device, and the layer kinds that it supports.

    Attributes:
        device: name of the device. It is added as the first word of rule ids that do not start with it.
        rules: the rules, in the order in which they are reported.
        supported_kinds: layer kinds that the device can run if no rule fails. None: every kind.
        unsupported: layer kind to the documented reason why the device never runs it.
        unmodelled: layer kind to what is known about it, for kinds that the device may run under conditions for which
            the table has no rules. They are rejected, because support cannot be guaranteed; the verdict says so.
        source: document that lists the layers.
        precisions_source: document that lists the computation types of the device. Default: `source`.
        precisions: the computation types. The table of a target has those of its record (see `Target.limits`).
        kind_rules: derived from the lists of kinds: the rules that layers of any other kind fail.
        precision_rules: derived from `precisions`: the rule that layers computed in any other type fail.

    Raises:
        PluginError: Two rules have the same id, or a kind is in two of the lists.
    """

    device: str
    rules: Sequence[Rule]
    supported_kinds: frozenset[str] | None = None
    unsupported: Mapping[str, str] = attrs.field(factory=dict)
    unmodelled: Mapping[str, str] = attrs.field(factory=dict)
    source: str = ""
    precisions_source: str = ""
    precisions: Sequence[DataType] = ()
    kind_rules: Sequence[Rule] = attrs.field(init=False, default=())
    precision_rules: Sequence[Rule] = attrs.field(init=False, default=())
    _rules_by_scope: dict[tuple[str, str, tuple[int, ...], DataType], Sequence[Rule]] = attrs.field(
        init=False, factory=dict, repr=False
    )

    def __attrs_post_init__(self) -> None:
        prefix = f"{self.device.lower()}."
        # The device's name is put before each id here, so that a table states it once.
        named = [one if one.id.startswith(prefix) else attrs.evolve(one, id=prefix + one.id) for one in self.rules]
        object.__setattr__(self, "rules", tuple(named))
        object.__setattr__(self, "kind_rules", tuple(self._kind_rules()))
        if self.precisions:
            made = precision_rule(self.device, self.precisions, self.precisions_source or self.source)
            object.__setattr__(self, "precision_rules", (made,))
        ids = [one.id for one in self.all_rules]
        kinds = [*(self.supported_kinds or ()), *self.unsupported, *self.unmodelled]
        for what, all_names in (("rules have one id", ids), ("lists have a common layer kind", kinds)):
            twice = sorted({name for name in all_names if all_names.count(name) > 1})
            if twice:
                raise PluginError(
                    f"Two {what}",
                    where=f"limit table of {self.device}",
                    found=", ".join(twice),
                    remedy="Merge the duplicates, or rename one of them",
                )

    @property
    def all_rules(self) -> Sequence[Rule]:
        """The rules on kinds, then the rule on precision, then the other rules."""
        return (*self.kind_rules, *self.precision_rules, *self.rules)

    def rule(self, rule_id: str) -> Rule:
        """Return a rule by id.

        Raises:
            UnknownNameError: The table has no such rule.
        """
        found = {one.id: one for one in self.all_rules}
        if rule_id not in found:
            raise UnknownNameError(f"{self.device} rule", rule_id, found)
        return found[rule_id]

    def evaluate(self, question: Question) -> Verdict:
        """Evaluate all applicable rules. A layer of an unsupported kind fails for that reason alone."""
        return self._verdict(question, ((one, self._found_in_scope(one, question)) for one in self._asked(question)))

    def _verdict(self, question: Question, findings: Iterable[tuple[Rule, Finding | None]]) -> Verdict:
        found: dict[str, list[Violation]] = {severity: [] for severity in SEVERITIES}
        precision = question.precision
        for one, finding in findings:
            if finding is None:
                continue
            # What fails to note something is told as a warning: the device does nothing of its own that we know of.
            is_lost_note = finding.is_failure and one.severity == "note"
            found["warning" if is_lost_note else one.severity].append(one.violation(finding))
            if not finding.is_failure:
                precision = one.promotes_to or precision
        support = Verdict.support(question)
        if precision is question.precision and not any(found.values()):
            return support
        reasons = found["violation"], found["warning"], found["note"]
        return Verdict(support.layer, support.device, support.platform, support.software, *reasons, precision)

    def repeated(self) -> Callable[[Question], Verdict]:
        """Return `evaluate` for the layers of one unchanged network, evaluating equal layers only once."""
        shared = _shared_answers.get()
        if shared is None:
            return _RepeatedQuestions(self)
        return shared.setdefault(id(self), _RepeatedQuestions(self)).of_another_network()

    def failures(self, question: Question) -> list[str]:
        """Return the rules that could not be evaluated, with the errors that their code raised."""
        found = [self.finding(rule, question) for rule in self._asked(question)]
        return [str(one.message) for one in found if one is not None and one.is_failure]

    def _asked(self, question: Question) -> Sequence[Rule]:
        """The rules that are evaluated: those on kinds alone for a kind that the device does not have.

        Of the others those that can speak of a layer of this kind in this precision, in their order. Of a hundred rules
        a dozen do: they are picked out once for each kind, not for each layer.
        """
        if self.lacks(question.layer.kind):
            return self.kind_rules
        key = (question.layer.kind, question.family, question.software, question.precision)
        found = self._rules_by_scope.get(key)
        if found is None:
            found = self._rules_by_scope[key] = tuple(
                one for one in (*self.precision_rules, *self.rules) if one.may_apply(*key)
            )
        return found

    def finding(self, rule: Rule, question: Question) -> Finding | None:
        """Return the finding of a rule; None if it holds, or does not apply to the layer.

        A rule whose own code raises is also a finding, because it is unknown whether the device can run the layer.

        Raises:
            NetworkError: The layer itself is invalid.
        """
        return self._found(rule, question, rule.finding)

    def _found_in_scope(self, rule: Rule, question: Question) -> Finding | None:
        return self._found(rule, question, rule.finding_in_scope)

    def _found(self, rule: Rule, question: Question, find: Callable[[Question], Finding | None]) -> Finding | None:
        try:
            return find(question)
        except NetworkError:
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001  a rule may be a stranger's
            failure = described_failure(error)
            if not place_of_failure(error) and rule.declared_at:
                failure = f"{failure} (declared at {rule.declared_at})"
            return Finding(
                failure,
                "a rule that can be evaluated",
                message=f"limit rule {rule.id} could not be evaluated: {failure}",
                remedy=f"Report it to the maintainers of the target {self.device}, or let the layer run "
                "on another device",
                is_failure=True,
            )

    def lacks(self, kind: str) -> bool:
        """Return whether the device runs no layer of a kind, or none that the table has rules for."""
        return self.supported_kinds is not None and kind not in self.supported_kinds

    def _kind_rules(self) -> list[Rule]:
        """The rules of a table with a list of kinds: the kind is on it, and not on that of kinds not modelled yet."""
        if self.supported_kinds is None:
            return []
        known = ", ".join(sorted(self.supported_kinds))

        def has_kind(question: Question) -> Finding | None:
            kind = question.layer.kind
            if not self.lacks(kind) or kind in self.unmodelled:
                return None
            reason = self.unsupported.get(kind, "its documentation does not list them")
            return Finding(kind, known, message=f"{kind} layers are not supported on {self.device}: {reason}")

        def is_modelled(question: Question) -> Finding | None:
            kind = question.layer.kind
            if kind not in self.unmodelled:
                return None
            message = f"dryfit has no rules yet for {kind} layers on {self.device}: {self.unmodelled[kind]}"
            return Finding(kind, known, message=message)

        listed = Rule(
            id=f"{self.device.lower()}.layer.kind",
            kinds=frozenset(),
            check=has_kind,
            text=f"the layer kind must be supported on {self.device}",
            parameter="layer kind",
            source=self.source,
            remedy="Let this layer run on a fallback device, or rebuild it from layers of other kinds",
        )
        if not self.unmodelled:
            return [listed]
        return [
            listed,
            Rule(
                id=f"{self.device.lower()}.layer.unmodelled",
                kinds=frozenset(),
                check=is_modelled,
                text=f"dryfit must have rules for the layer kind on {self.device}",
                parameter="layer kind",
                source=self.source,
                remedy="Let this layer run on a fallback device",
                fidelity="inferred",
            ),
        ]


_shared_answers: ContextVar[dict[int, _RepeatedQuestions] | None] = ContextVar("shared_answers", default=None)


@contextlib.contextmanager
def shared_answers() -> Iterator[None]:
    """Evaluate equal layers only once in all networks placed meanwhile: those of trials are nearly the same."""
    token = _shared_answers.set({} if (outer := _shared_answers.get()) is None else outer)
    try:
        yield
    finally:
        _shared_answers.reset(token)


class _RepeatedQuestions:
    """Verdicts of one table, with the findings that hold for every equal layer kept."""

    def __init__(self, table: LimitTable) -> None:
        # Layers need numpy, and tables are read without it.
        from dryfit.network.equal_layers import LayerKeys

        self._table = table
        self._keys = LayerKeys(outlines=True)
        self._known: dict[Hashable, Sequence[tuple[Rule, Finding | None, bool]]] = {}
        self._verdicts: dict[Hashable, Verdict] = {}
        self._options: dict[int, tuple[object, int]] = {}

    def of_another_network(self) -> _RepeatedQuestions:
        """Verdicts on the layers of another network, with the same findings."""
        other = _RepeatedQuestions(self._table)
        other._keys = self._keys.of_another_network()
        other._known, other._verdicts = self._known, self._verdicts
        return other

    def __call__(self, question: Question) -> Verdict:
        layer_key = self._keys.of((question.layer,))
        if layer_key is None or question.specs is not None or question.weights is not None:
            return self._table.evaluate(question)
        key = (
            *(layer_key, question.precision, question.explicit_device, self._options_key(question.options)),
            *(question.device, question.platform, question.family, question.software, question.cores),
        )
        same = self._verdicts.get(key)
        if same is not None:
            found = same.violations, same.warnings, same.notes, same.precision
            return Verdict(question.layer.name, same.device, same.platform, same.software, *found)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._found_alone(question)
        verdict = self._table._verdict(  # noqa: SLF001  they belong together
            question,
            (
                (one, finding if is_kept else self._table._found_in_scope(one, question))  # noqa: SLF001
                for one, finding, is_kept in known
            ),
        )
        if all(is_kept for _, _, is_kept in known):
            self._verdicts[key] = verdict
        return verdict

    def _options_key(self, options: object) -> int:
        """What stands for the options: mostly all questions have the same object."""
        if id(options) not in self._options:
            self._options[id(options)] = options, self._keys.number(self._keys.value(options))
        return self._options[id(options)][1]

    def _found_alone(self, question: Question) -> Sequence[tuple[Rule, Finding | None, bool]]:
        """What each rule finds of the layer alone, and whether it looked at no more; without those that hold."""
        from dryfit.network.equal_layers import StandIns

        stand_ins = StandIns((question.layer,), outlines=True)

        def is_put_here(layer: Layer) -> bool:
            del layer
            return stand_ins.watch.lacks("is_put_here")

        alone = attrs.evolve(question, layer=stand_ins.layers[0], is_put_here=is_put_here)
        found = []
        for one in self._table._asked(question):  # noqa: SLF001
            finding, is_kept = stand_ins.watch.alone(partial(one.finding_in_scope, alone))
            if finding is not None or not is_kept:
                found.append((one, finding, is_kept))
        return found
