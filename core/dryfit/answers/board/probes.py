"""Which probes decide which rules, in the fewest builds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import onnx

from dryfit.answers.asked import asked, quiet_log
from dryfit.answers.board.evidence import Expected, RuleChecks
from dryfit.answers.log_comparison import DLA, layers_by_node, own_layer
from dryfit.answers.placement import LayerAnswer, placement_of
from dryfit.attrs_classes import frozen
from dryfit.board.kit.probes import Candidate, candidates, network_of
from dryfit.builder.assessment import assessment_of
from dryfit.building import design_for_assessment
from dryfit.errors import DryfitError, UnknownNameError
from dryfit.network.data_types import DataType
from dryfit.plugins import registry
from dryfit.short_text import count_text
from dryfit.target.rule import LimitRule

INFERRED, ALL = "inferred", "all"
KINDS = (INFERRED, ALL)
PRECISIONS = (("fp16",), ("fp16", "int8"))
MOST_ACCEPTED = 14
"""Layers of one network that the DLA accepts: each may be a segment of its own, and a core loads 16."""


@frozen
class Probed:
    """A candidate with what the rules say about it.

    Attributes:
        candidate: the candidate.
        precision: allowed types of its build.
        violations: rules that it violates.
        risks: undocumented warnings about it.
        applying: rules that apply to it, of those that can refuse a layer.
        is_alone: whether it gets a network of its own, since a parser may refuse it, or no device runs it.
    """

    candidate: Candidate
    precision: Sequence[str]
    violations: frozenset[str]
    risks: frozenset[str]
    applying: frozenset[str]
    is_alone: bool


@frozen
class ProbeNetwork:
    """A network of probes.

    Attributes:
        model: the network.
        title: what it decides.
        options: options of its build.
        layers: number of probed layers.
    """

    model: onnx.ModelProto
    title: str
    options: Mapping[str, Any]
    layers: int


@frozen
class ProbeSet:
    """The networks that decide rules.

    Attributes:
        asked: `inferred` or `all`.
        networks: the networks, one build each.
        decided: rules that they decide.
        undecided: other rules of those asked for, with the reason.
    """

    asked: str
    networks: Sequence[ProbeNetwork]
    decided: Sequence[str]
    undecided: Mapping[str, str]


def probe_networks(platform: str, software: str | None, kind: str) -> ProbeSet:
    """Choose candidates that decide rules, and pack them into the fewest networks.

    A rule is decided by a layer that violates it and no other: the board accepts it or not. A layer that satisfies it
    next to its limit shows that the limit is not lower. As layers do not depend on each other, one build decides many
    rules: in it, each layer that the board refuses is named. Risks, which may end a build, get a build each.

    Args:
        platform: the board.
        software: its version; None for the newest.
        kind: `inferred` for rules that no document states, or `all` for all rules, with more values on both sides.

    Raises:
        UnknownNameError: There is no such kind of probes.
    """
    if kind not in KINDS:
        raise UnknownNameError("kind of probes", kind, KINDS, where="--probes")
    target = registry.target(DLA)
    board = target.platform(platform)
    version = target.software(software, board)
    table = () if target.limits is None else target.limits.all_rules
    rules = {
        one.id: one
        for one in table
        if one.holds_for(board.family, version)
        and (kind == ALL or one.fidelity == INFERRED)
        and not _is_of_version(one)
    }
    limits = {one for one, rule in rules.items() if rule.severity == "violation"}
    risks = {one for one, rule in rules.items() if rule.severity == "warning"}
    needs_int8 = kind == ALL or any(DataType.INT8 in rules[one].precisions for one in limits)
    precisions = PRECISIONS if needs_int8 else PRECISIONS[:1]
    probed = [one for precision in precisions for one in _probed(board.name, software, precision)]
    chosen = list(_chosen(probed, limits, is_all=kind == ALL))
    risky = list(
        _risky(probed, risks if kind == INFERRED else {one for one in risks if rules[one].fidelity == INFERRED})
    )
    decided = {next(iter(one.violations)) for one in chosen if len(one.violations) == 1} & limits
    decided |= {next(iter(one.risks)) for one in risky}
    undecided = {one: _why_undecided(rule, probed) for one, rule in rules.items() if one not in decided}
    return ProbeSet(
        kind, list(_networks([*chosen, *(one for one in risky if one not in chosen)])), sorted(decided), undecided
    )


def _is_of_version(rule: LimitRule) -> bool:
    """Whether a rule looks at the board's version or family alone, which no layer can change."""
    return rule.parameter in ("software version", "platform family", "cores")


def _probed(platform: str, software: str | None, precision: Sequence[str]) -> Iterator[Probed]:
    """Ask the rules about all candidates at once; those that cannot be placed together, each alone."""
    together = [one for one in candidates() if not one.is_alone]
    alone = [one for one in candidates() if one.is_alone]
    for group in (together, *([one] for one in alone)):
        options = {"platform": platform, "software": software, **_options(precision)}
        try:
            subject = asked(network_of(group), None, options)
            with quiet_log():
                design = design_for_assessment(subject.network, subject.config)
                assessment = assessment_of(design, subject.config)
        except DryfitError:
            continue
        layers = placement_of("probe", assessment, subject.config.settings(subject.network)).layers
        expected = Expected(subject.config, design, assessment, layers)
        checks, nodes = RuleChecks(expected), layers_by_node(layers)
        for one in group:
            if one.name in nodes:
                yield _asked(one, precision, [own_layer(one.name, nodes[one.name])], checks)


def _options(precision: Sequence[str]) -> dict[str, Any]:
    return {"precision": list(precision), **({"assume_scales": True} if "int8" in precision else {})}


def _asked(one: Candidate, precision: Sequence[str], layers: Sequence[LayerAnswer], checks: RuleChecks) -> Probed:
    return Probed(
        candidate=one,
        precision=precision,
        violations=frozenset(rule.rule for layer in layers for rule in layer.violations(DLA)),
        risks=frozenset(
            rule.rule
            for layer in layers
            if DLA in layer.verdicts
            for rule in layer.verdicts[DLA].warnings
            if rule.fidelity == INFERRED
        ),
        applying=frozenset(rule.rule for rule in checks.of(layers) if rule.holds),
        is_alone=one.is_alone or any(layer.device is None for layer in layers),
    )


def _chosen(probed: Sequence[Probed], limits: set[str], *, is_all: bool) -> Iterator[Probed]:
    """Yield candidates that decide rules: for each rule the first that violates it alone, and one that satisfies it."""
    open_rules, shown = set(limits), set[str]()
    kept: list[Probed] = []
    for one in probed:
        decides = one.violations & open_rules if len(one.violations) == 1 else frozenset()
        if decides:
            open_rules -= decides
            kept.append(one)
        elif is_all and one.precision == PRECISIONS[0] and len(one.violations) <= 1:
            kept.append(one)
    # One layer may show the inside of several rules: the one that shows the most comes first.
    wanted = limits - open_rules
    inside = [one for one in probed if not one.violations and not one.is_alone]
    while not is_all:
        best = max(inside, key=lambda one: len(one.applying & (wanted - shown)), default=None)
        if best is None or not best.applying & (wanted - shown):
            break
        shown |= best.applying
        kept.append(best)
    yield from kept


def _risky(probed: Sequence[Probed], risks: set[str]) -> Iterator[Probed]:
    """Yield for each risk the first candidate that has it alone."""
    open_risks = set(risks)
    for one in probed:
        if len(one.risks) == 1 and not one.violations and one.risks <= open_risks:
            open_risks -= one.risks
            yield one


def _networks(chosen: Sequence[Probed]) -> Iterator[ProbeNetwork]:
    for precision in PRECISIONS:
        of_type = [one for one in chosen if one.precision == precision]
        alone = [one for one in of_type if one.is_alone]
        refused = [one for one in of_type if one.violations and one not in alone]
        accepted = [one for one in of_type if not one.violations and one not in alone]
        groups = [accepted[start : start + MOST_ACCEPTED] for start in range(0, len(accepted), MOST_ACCEPTED)] or [[]]
        # What the board refuses takes no segment: it is shared evenly.
        for index, group in enumerate(groups):
            both = [*refused[index :: len(groups)], *group]
            if both:
                yield _network(both, precision, f"{count_text(len(both), 'layer')} at limits")
        for one in alone:
            yield _network([one], precision, f"{one.candidate.name}, which may not build,")


def _network(probed: Sequence[Probed], precision: Sequence[str], title: str) -> ProbeNetwork:
    chosen = [one.candidate for one in probed]
    return ProbeNetwork(
        network_of(chosen), f"{title} in {'+'.join(precision)}", {**_options(precision), "fallback": "GPU"}, len(chosen)
    )


def _why_undecided(rule: LimitRule, probed: Sequence[Probed]) -> str:
    if rule.promotes_to is not None:
        return (
            "it refuses no layer; no file of a build shows types inside a loadable, and the tensors at its border have "
            "the same type either way"
        )
    if rule.severity == "note":
        return "it refuses no layer, and neither the log nor the layer information of a build shows what it states"
    if rule.severity == "warning":
        return "no probe has this risk alone"
    both = [one for one in probed if rule.id in one.violations]
    if both:
        others = sorted(both[0].violations - {rule.id})
        return f"each probe that violates it also violates {', '.join(others)}"
    return "no probe violates it"
