"""The checks of `dryfit plugins doctor` on a target: every declaration is exercised once, on small layers.

Each request that a user could make later is made here, so that failures are known in advance.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import EntryPoint

import attrs
import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.errors import UnknownNameError, place_of_failure, plugin_traceback
from dryfit.network.layer import LAYER_KINDS, Layer
from dryfit.plugins.loading import described
from dryfit.plugins.plugin_registry import PluginRegistry
from dryfit.rule import FIDELITIES
from dryfit.target.checks import ParameterCheck
from dryfit.target.cost import CostQuestion, TransferQuestion, require_estimate
from dryfit.target.limits import LimitTable, Rule
from dryfit.target.question import Question
from dryfit.target.target import Target
from dryfit.testing.arithmetic_checks import PLACES
from dryfit.testing.example_layers import EXAMPLES
from dryfit.testing.limit_checks import random_layer, undeclared_quantization
from dryfit.testing.pool_checks import CONTENTS, SPANS
from dryfit.testing.trial_networks import make_trial

LAYERS_A_KIND = 4
"""How many layers of each kind rules are asked about. Our choice: of several ranks and types, in a few milliseconds."""


@frozen
class TargetProblem:
    """A problem of a target.

    Attributes:
        part: declaration that has the problem.
        message: description of the problem, in one line.
        place: `file:line` where the maintainers can fix it; "" if unknown.
        error: exception that was raised; None for none.
        remedy: what the maintainers can do; "" if the message states it.
    """

    part: str
    message: str
    place: str = ""
    error: BaseException | None = None
    remedy: str = ""


def examine_target(record: Target, target: Target, entry: EntryPoint, plugins: PluginRegistry) -> None:
    """Record every problem of a target.

    Args:
        record: target as declared by its package.
        target: target including everything it inherits.
        entry: entry that names the target.
        plugins: plugins that provide the target.
    """
    for problem in _problems(record, target):
        remedy = problem.remedy or f"Fix it in {problem.place or 'the package'}"
        trace = "" if problem.error is None else plugin_traceback(problem.error)
        plugins.fail(entry, problem.message, trace, remedy=remedy, part=problem.part, place=problem.place)


def _problems(record: Target, target: Target) -> Iterator[TargetProblem]:
    broken = False
    for field in attrs.fields(Target):
        if field.name.endswith("_at"):
            for problem in _raised(field.name, functools.partial(getattr, record, field.name.removesuffix("_at"))):
                broken = True
                yield problem
    if broken:
        return
    yield from _word_problems(record)
    table = record.limits
    if table is not None:
        yield from _kind_problems(table, record)
        yield from _rule_problems(table, target)
    yield from _cost_problems(target)


def _raised(part: str, ask: Callable[[], object]) -> Iterator[TargetProblem]:
    """Return the problem if the call raises; else None."""
    try:
        ask()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001  a plugin may raise anything, even SystemExit
        message, remedy = described(error)
        yield TargetProblem(part, message, place_of_failure(error), error, remedy)


# Words -----------------------------------------------------------------------------------------------------------


def _word_problems(record: Target) -> Iterator[TargetProblem]:
    """Report fields with an invalid option value."""
    for one in record.arithmetic.values():
        part = f"arithmetic of {one.precision.text}"
        yield from _unknown(part, "value of `rounds`", one.rounds, PLACES)
        yield from _unknown(part, "fidelity", one.fidelity, FIDELITIES)
    for pool in record.memory_pools:
        yield from _unknown(f"memory pool {pool.name}", "value of `holds`", pool.holds, CONTENTS)
        yield from _unknown(f"memory pool {pool.name}", "value of `per`", pool.per, SPANS)
    for fusion in record.fusions or ():
        for kind in fusion.kinds:
            yield from _unknown(f"fusion {fusion.name}", "layer kind", kind.removesuffix("?"), LAYER_KINDS)
    for formats in (*record.input_formats.values(), *record.output_formats.values()):
        for layout in formats:
            for kind in layout.reader_kinds:
                yield from _unknown(f"tensor format {layout.name}", "layer kind", kind, LAYER_KINDS)


def _unknown(part: str, what: str, word: str, known: Iterable[str], place: str = "") -> Iterator[TargetProblem]:
    if word not in known:
        yield TargetProblem(part, str(UnknownNameError(what, word, known)), place)


# Rules -----------------------------------------------------------------------------------------------------------


def _kind_problems(table: LimitTable, record: Target) -> Iterator[TargetProblem]:
    """Report unknown layer kinds, and kinds for which an INT8 device lacks a declaration."""
    # The other lists may name kinds that dryfit does not have: their layers never run there anyway.
    for kind in sorted(table.supported_kinds or ()):
        yield from _unknown(f"limits, supported_kinds, {kind}", "layer kind", kind, LAYER_KINDS)
    for rule in table.rules:
        for kind in sorted(rule.kinds):
            yield from _unknown(f"rule {rule.id}, {kind}", "layer kind", kind, LAYER_KINDS, rule.declared_at)
        yield from _unknown(f"rule {rule.id}, fidelity", "fidelity", rule.fidelity, FIDELITIES, rule.declared_at)
    for kind in undeclared_quantization(record):
        yield TargetProblem(
            f"limits, {kind}",
            f"the target computes in INT8, and its limit table does not mention {kind} layers: a quantized model is "
            "cut at each of them",
            remedy=f"Add {kind!r} to `supported_kinds`, or say in `unsupported` why the device does not take it",
        )


def _rule_problems(table: LimitTable, target: Target) -> Iterator[TargetProblem]:
    """Report exceptions of rules on layers of each kind; one problem per rule."""
    told: set[str] = set()
    for question in _questions(table, target):
        for rule in table.rules:
            if rule.id in told or (rule.kinds and question.layer.kind not in rule.kinds):
                continue
            for problem in _raised(f"rule {rule.id}", functools.partial(_ask, rule, question)):
                told.add(rule.id)
                yield attrs.evolve(problem, place=problem.place or rule.declared_at)


def _ask(rule: Rule, question: Question) -> None:
    """Evaluate a rule for any platform and version, including its parameters if its conditions do not hold.

    Raises:
        Exception: Any exception of the rule.
    """
    variant = attrs.evolve(
        question,
        precision=min(rule.precisions, key=lambda one: one.name, default=question.precision),
        family=min(rule.families, default=question.family),
        software=rule.since or rule.until or question.software,
    )
    rule.finding(variant)
    for check in (*rule.when, rule.check):
        if isinstance(check, ParameterCheck):
            with contextlib.suppress(*_NOT_UNKNOWN):
                check.quantity(variant)


_NOT_UNKNOWN = (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""What a quantity may raise for layers that the rule does not speak of."""


def _questions(table: LimitTable, target: Target) -> Iterator[Question]:
    """Return a few layers of each kind that the device supports."""
    rng = np.random.default_rng(0)
    config = BuilderConfig()
    kinds = LAYER_KINDS if table.supported_kinds is None else table.supported_kinds
    for kind in sorted(set(kinds) & set(EXAMPLES)):
        for _ in range(LAYERS_A_KIND):
            layer = random_layer(kind, rng)
            question = config.question(layer, target)
            for precision in target.precisions[:1]:
                question = attrs.evolve(question, precision=precision)
            yield question


# Cost ------------------------------------------------------------------------------------------------------------


def _cost_problems(target: Target) -> Iterator[TargetProblem]:
    """Report exceptions and invalid results of the cost functions for one small question each."""
    platform = target.platforms[0]
    mode, estimate_cost, estimate_transfer = platform.power_mode(None), target.estimate_cost, target.estimate_transfer
    if estimate_cost is not None:
        layers = _small_layers(target)
        question = CostQuestion(
            layers=layers,
            specs={
                one.name: one.spec for layer in layers for one in (*layer.inputs, *layer.outputs) if one is not None
            },
            platform=platform,
            software=target.software(None, platform),
            precisions={layer.name: target.precisions[0] for layer in layers},
            power_mode=mode,
        )
        yield from _raised("estimate_cost", lambda: require_estimate(estimate_cost(question)))
    if estimate_transfer is not None:
        moved = TransferQuestion(4096, platform, mode)
        yield from _raised("estimate_transfer", lambda: require_estimate(estimate_transfer(moved)))


def _small_layers(target: Target) -> list[Layer]:
    """Return one layer of each kind that the target supports."""
    trial = make_trial(target, target.precisions[0], 0)
    return [layer for layer in trial.network.layers if layer.kind != "constant"]
