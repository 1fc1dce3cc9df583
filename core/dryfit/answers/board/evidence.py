"""What one build on a board shows against what dryfit expects of it: layers with their rules, facts and times.

These records are what rules are counted by (`board_read`) and what corrections are learnt from.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from dryfit.answers.board.dla_rows import DlaRow, dla_rows
from dryfit.answers.board.gpu_layers import GpuLayers, GpuPart, is_copy
from dryfit.answers.explain_log import LogLayer, LogRules, log_layer
from dryfit.answers.json_data import Amount, Count
from dryfit.answers.log_comparison import (
    DLA,
    GPU,
    INSIDE,
    NO_DEVICE,
    layers_by_node,
    lists_are_complete,
    own_layer,
    shown_devices,
)
from dryfit.answers.network_cost import SegmentCost, TransferCost, network_cost
from dryfit.answers.placement import LayerAnswer
from dryfit.attrs_classes import frozen
from dryfit.board.kit.manifest import KitBuild
from dryfit.board.logs.layer_lists import segment_of
from dryfit.board.logs.message import FALLBACK, REFUSAL
from dryfit.board.logs.reading import BoardLog
from dryfit.board.results import BoardResults, InspectedLayer, InspectedTensor, MeasuredLayer, MeasuredRuns, type_of
from dryfit.builder.assessment import Assessment
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.design import Design
from dryfit.builder.formats.forms import REFORMAT_RULES
from dryfit.engine.plan import Segment
from dryfit.network.layer import Layer
from dryfit.plugins import registry
from dryfit.target.checks import ParameterCheck
from dryfit.target.cost import combined_error
from dryfit.target.memory_pools import MEMORY_POOL_RULES
from dryfit.target.question import Question
from dryfit.target.rule import LimitRule

PYTHON = "can_run_on_DLA"
"""How the verdict of TensorRT's Python module shows the device of a layer."""
OVER_LIMIT = "fallback.loadable_limit"
"""The message about a layer that left the DLA only because a core loads no more segments."""

ACCEPTED, REFUSED, UNKNOWN = "accepted", "refused", "unknown"
"""What the board's validation of a layer for the DLA said."""


@frozen
class CheckedRule:
    """A rule that applies to a layer, with the value that it looks at.

    Attributes:
        rule: id of the rule.
        holds: whether the layer satisfies it, according to dryfit.
        value: the value as text; "" for a rule whose check is a function that found nothing.
        numbers: the values as numbers; empty if they are not numbers.
    """

    rule: str
    holds: bool
    value: str
    numbers: Sequence[float]


@frozen
class BoardLayer:
    """A layer of a model on the board and in dryfit.

    Attributes:
        build: id of the build.
        layer: name of the layer in TensorRT: that of its ONNX node.
        own: name of dryfit's layer; others that the importer makes of the node, such as shuffles, are not judged.
        kind: kind of that layer.
        precision: computation type for which dryfit asks the rules.
        verdict: `accepted` or `refused` by the board's validation for the DLA, or `unknown`.
        board_device: device on the board; `none` if the build failed because of the layer, "" if unknown.
        shown_by: how the results show it: `can_run_on_DLA`, a `message`, `listed`, or `inside a segment`.
        messages: ids of the log's messages about the layer.
        board_rules: rules that these messages report.
        device: device on which dryfit places it.
        violations: rules of the DLA that it violates according to dryfit.
        risks: inferred rules whose violation dryfit reports as a warning: the DLA may not run the layer.
        checked: the rules of the DLA that apply to it, with their values.
    """

    build: str
    layer: str
    own: str
    kind: str
    precision: str
    verdict: str
    board_device: str
    shown_by: str
    messages: Sequence[str]
    board_rules: Sequence[str]
    device: str | None
    violations: Sequence[str]
    risks: Sequence[str]
    checked: Sequence[CheckedRule]

    @property
    def agrees(self) -> bool:
        """Whether the board's verdict is the one that the rules give."""
        return self.verdict == UNKNOWN or (self.verdict == ACCEPTED) == (not self.violations)


@frozen
class BoardFact:
    """A number or form that a build shows, against dryfit's.

    Attributes:
        build: id of the build.
        what: what is compared, such as `loadables` or `inputs of {ForeignNode[a...b]}`.
        board: what the results show.
        dryfit: what dryfit expects.
        agrees: whether they are the same.
        behind: rule or declaration behind dryfit's value.
        fidelity: `documented`, `inferred` or `confirmed`.
        source: document and section.
    """

    build: str
    what: str
    board: str
    dryfit: str
    agrees: bool
    behind: str
    fidelity: str
    source: str


@frozen
class BoardTime:
    """A measured time against its estimate, with what the estimate consists of.

    Attributes:
        build: id of the build.
        part: `network` for a whole run, `segment` of the DLA, `copy` into or out of its memory, or `layer` for engine
            layers of the GPU.
        name: TensorRT's name of the segment, copy or layer; "" for a network.
        device: device of the part; all devices, joined by ` + `, for a network.
        precisions: number of layers by computation type.
        measured_microseconds: median.
        runs: number of measured runs; 0 if unknown.
        estimated_microseconds: estimate; None if dryfit has none.
        is_lower_bound: whether a part of the estimate is a lower bound.
        error_factor: stated error of the estimate, as a factor; None if unknown.
        compute_microseconds: part of the estimate for arithmetic.
        memory_microseconds: part of the estimate for memory.
        overhead_microseconds: part of the estimate that does not depend on sizes.
        steps: number of steps that the estimate consists of.
        transfers_microseconds: part of the estimate for copies between devices.
        fidelity: fidelity of the estimate.
        source: source of its figures.
    """

    build: str
    part: str
    name: str
    device: str
    precisions: Mapping[str, Count]
    measured_microseconds: Amount
    runs: Count
    estimated_microseconds: Amount | None
    is_lower_bound: bool
    error_factor: float | None
    compute_microseconds: Amount
    memory_microseconds: Amount
    overhead_microseconds: Amount
    steps: Count
    transfers_microseconds: Amount
    fidelity: str
    source: str

    @property
    def ratio(self) -> float | None:
        """Measured by estimated time; None without an estimate."""
        return self.measured_microseconds / self.estimated_microseconds if self.estimated_microseconds else None

    @property
    def is_within_error(self) -> bool | None:
        """Whether the measured time is within the stated error; None if the estimate has none."""
        if self.ratio is None or self.error_factor is None:
            return None
        too_fast = self.ratio < 1 / self.error_factor and not self.is_lower_bound
        return not too_fast and self.ratio <= self.error_factor


@frozen(eq=False)
class Expected:
    """What dryfit expects of a build.

    Attributes:
        config: config of the build.
        design: the decisions.
        assessment: what they mean for the user.
        layers: placement of the layers.
    """

    config: BuilderConfig
    design: Design
    assessment: Assessment
    layers: Sequence[LayerAnswer]


@frozen(eq=False)
class BuildEvidence:
    """One build on a board with what dryfit expects of it: all that corrections are learnt from.

    Attributes:
        build: id of the build.
        expected: what dryfit expects.
        layers: the layers whose verdict or device the results show.
        runs: measured times of whole runs; None if there are none.
        profile: measured times of the engine's layers.
        inspected: the engine's layers.
    """

    build: str
    expected: Expected
    layers: Sequence[BoardLayer]
    runs: MeasuredRuns | None
    profile: Sequence[MeasuredLayer]
    inspected: Sequence[InspectedLayer]


# Layers ---------------------------------------------------------------------------------------------------------------


def board_layers(build: KitBuild, log: BoardLog, results: BoardResults, expected: Expected) -> list[BoardLayer]:
    """Return each layer of a model whose device or verdict the results show.

    Raises:
        ConfigError: A file of the results is damaged.
    """
    rules = LogRules.of(log.settings)
    fallen = {one.name: log_layer(one, rules) for one in log.fallen.values()}
    shown = dict(shown_devices(log, list(fallen.values())))
    are_complete = lists_are_complete(log)
    asked: dict[str, bool] = {}
    for answered in results.verdicts(build):
        if answered.type != "CONSTANT":  # a constant of a node may have its name, and runs nowhere
            asked[answered.layer] = asked.get(answered.layer, True) and answered.on_dla
    checks = RuleChecks(expected)
    found = []
    for node, of_node in layers_by_node(expected.layers).items():
        layer = own_layer(node, of_node)
        # A log of `dryfit exec` has dryfit's names.
        name = next((one for one in (node, layer.name) if one in fallen or one in shown or one in asked), node)
        device, how = shown.get(name) or ((DLA, INSIDE) if are_complete and not log.lists.dropped else ("", ""))
        verdict, reason = _verdict(name, device, fallen.get(name), log, asked)
        if not device and verdict == UNKNOWN:
            continue
        one = fallen.get(name)
        own = layer.verdicts.get(DLA)
        found.append(
            BoardLayer(
                build=build.id,
                layer=node,
                own=layer.name,
                kind=layer.kind,
                precision=checks.precision(layer),
                verdict=verdict,
                board_device=device,
                shown_by=reason or how,
                messages=[] if one is None else list(one.messages),
                board_rules=[] if one is None else list(one.rules),
                device=layer.device,
                violations=list(dict.fromkeys(rule.rule for rule in layer.violations(DLA))),
                risks=[] if own is None else [rule.rule for rule in own.warnings if rule.fidelity == "inferred"],
                checked=list(checks.of([layer])),
            )
        )
    return found


def _verdict(
    name: str, device: str, fallen: LogLayer | None, log: BoardLog, asked: Mapping[str, bool]
) -> tuple[str, str]:
    """Return (verdict of the board's validation, how it is shown if not by the device)."""
    if name in asked:
        return (ACCEPTED if asked[name] else REFUSED), PYTHON
    if fallen is not None:
        roles = {one.id for one in log.fallen[name].messages.values() if one.role in (FALLBACK, REFUSAL)}
        return (ACCEPTED if roles == {OVER_LIMIT} else REFUSED), ""
    if device == DLA:
        return ACCEPTED, ""
    return UNKNOWN, ""


class RuleChecks:
    """The rules of the DLA that apply to layers, with the values that they look at."""

    def __init__(self, expected: Expected) -> None:
        target = registry.target(DLA)
        self._table = target.limits
        self._layers: dict[str, Layer] = {layer.name: layer for layer in expected.design.network.layers}
        self._question = expected.config.questions(target, expected.design.specs)

    def precision(self, layer: LayerAnswer) -> str:
        """Return the type for which the rules are asked."""
        held = self._layers.get(layer.name)
        return layer.precision if held is None else self._question(held).precision.name

    def of(self, layers: Iterable[LayerAnswer]) -> Iterator[CheckedRule]:
        """Yield the rules that apply to the layers of one node, each rule once for each layer."""
        for one in layers:
            held = self._layers.get(one.name)
            if held is None or self._table is None:
                continue
            question = self._question(held)
            if self._table.lacks(held.kind):
                yield CheckedRule(f"{DLA.lower()}.layer.kind", False, held.kind, ())
                continue
            violated = {rule.rule: rule.actual for rule in one.violations(DLA)}
            for rule in self._table.all_rules:
                if rule.severity == "violation" and _applies(rule, question):
                    value, numbers = _looked_at(rule, question)
                    yield CheckedRule(rule.id, rule.id not in violated, value or violated.get(rule.id, ""), numbers)


def _applies(rule: LimitRule, question: Question) -> bool:
    try:
        return rule.applies_to(question)
    except Exception:  # noqa: BLE001  a rule may be a stranger's; its failure is a violation of its own
        return False


def _looked_at(rule: LimitRule, question: Question) -> tuple[str, Sequence[float]]:
    """Return what a rule with a constraint looks at, as text and as numbers."""
    check = rule.check
    if not isinstance(check, ParameterCheck):
        return "", ()
    try:
        value = check.quantity(question)
    except Exception:  # noqa: BLE001  as above
        return "", ()
    values = list(value) if check.every else [value]
    names = [str(getattr(one, "name", one)) for one in values]
    numbers = [float(one) for one in values if isinstance(one, int | float) and math.isfinite(one)]
    return ", ".join(names), numbers if len(numbers) == len(values) else ()


# Facts ----------------------------------------------------------------------------------------------------------------


def board_facts(
    build: KitBuild, log: BoardLog, inspected: Sequence[InspectedLayer], expected: Expected
) -> list[BoardFact]:
    """Return loadables, copies, forms at the borders of segments and precisions on the GPU, against dryfit's."""
    segments = [one for one in expected.assessment.segments if one.device == DLA]
    found = list(_pool_facts(build, log, segments))
    if "DLA" in log.lists.headings or log.lists.segments:
        found.append(_fact(build, "loadables", len(log.lists.segments), len(segments), _CUT))
    copies = list(filter(is_copy, inspected))
    if inspected:
        causes = list(dict.fromkeys(one.rule for one in expected.assessment.reformats if one.rule))
        rules = [REFORMAT_RULES[one] for one in causes if one in REFORMAT_RULES]
        behind = _Behind(
            ", ".join(causes) or "no rule asks for a copy",
            rules[0].fidelity if rules else "inferred",
            rules[0].source if rules else "",
        )
        found.append(_fact(build, "copies", len(copies), len(expected.assessment.reformats), behind))
    of_name = _SegmentsByName([(_nodes(one.layers, expected.layers), one) for one in segments])
    for layer in inspected:
        segment: Segment | None = of_name.segment(layer.name)
        if segment is None:
            continue
        for side, tensors, names in (
            ("inputs", layer.inputs, segment.inputs),
            ("outputs", layer.outputs, segment.outputs),
        ):
            # An inspector may also list constants inside the segment.
            shown = [one for one in tensors if one.name in expected.design.specs or one.name.startswith("Reformatted ")]
            forms = _forms(shown)
            meant = _expected_forms(names, expected.design)
            if forms and meant:
                found.append(_fact(build, f"{side} of {layer.name}", ", ".join(forms), ", ".join(meant), _FORMS))
    types = GpuLayers(expected.layers, inspected).precisions()
    found += [_fact(build, f"precision of {one.name}", one.board, one.dryfit, _PRECISION) for one in types]
    return found


@frozen
class _Behind:
    """What is behind a value of dryfit: rule or declaration, its fidelity, and its source."""

    text: str
    fidelity: str
    source: str


_CUT = _Behind(
    "where layers on other devices cut the network", "inferred", "the placement of the layers between two segments"
)
_FORMS = _Behind("formats of the DLA", "documented", "`dryfit targets show DLA` names the document of each format")
_PRECISION = _Behind(
    "fastest allowed type of the GPU", "inferred", "allowed types of the build, scales, and types set for single layers"
)


def _fact(build: KitBuild, what: str, board: object, dryfit: object, behind: _Behind) -> BoardFact:
    agrees = board == dryfit
    return BoardFact(build.id, what, str(board), str(dryfit), agrees, behind.text, behind.fidelity, behind.source)


_POOLS = {"managed SRAM": "DLA_MANAGED_SRAM", "local DRAM": "DLA_LOCAL_DRAM", "global DRAM": "DLA_GLOBAL_DRAM"}
_MIB = 1 << 20


def _pool_facts(build: KitBuild, log: BoardLog, segments: Sequence[Segment]) -> Iterator[BoardFact]:
    """Yield what segments need of each memory pool, in MiB as the builder's summary has it, and how many there are."""
    rule = MEMORY_POOL_RULES["memory_pool.segment"]
    behind = _Behind(rule.id, rule.fidelity, rule.source)
    candidates = log.messages.get("note.candidates")
    if candidates is not None:
        yield _fact(build, "offloaded candidates", int(candidates.values["found"]), len(segments), behind)
    summary = log.messages.get("memory.dla_pools")
    for text, sizes in {} if summary is None else summary.values.items():
        if "required by accepted" not in text:
            continue
        for part in sizes.split(", "):
            pool, _, size = part.partition("RAM ")
            name = _POOLS.get(f"{pool}RAM")
            if name is not None and size.endswith(" MiB"):
                needed = sum(one.pools.get(name, 0) for one in segments)
                board, own = float(size.removesuffix(" MiB")), needed / _MIB
                # The builder rounds to whole MiB, and the needs of several segments before it adds them.
                is_same = abs(board - own) <= max(1, len(segments))
                fact = _fact(build, f"{name} of all segments", size, f"{own:.1f} MiB", behind)
                yield attrs.evolve(fact, agrees=is_same)


def _nodes(layers: Sequence[str], placed: Sequence[LayerAnswer]) -> list[str]:
    nodes = {one.name: one.onnx_nodes[0] if one.onnx_nodes else one.name for one in placed}
    return [nodes.get(name, name) for name in layers]


class _SegmentsByName:
    """Finds dryfit's segment for TensorRT's name of one: `{ForeignNode[first...last]}`.

    Layers that TensorRT fuses or removes may be missing at an end, so that one that is the same decides if the other
    is that of no other segment.
    """

    def __init__(self, segments: Sequence[tuple[Sequence[str], Any]]) -> None:
        self._segments = [(names, segment) for names, segment in segments if names]

    def segment(self, name: str) -> Any:
        """Return the segment; None if there is none, or the name is not that of a segment."""
        ends = segment_of(name).layers if "ForeignNode" in name else ()
        if not ends:
            return None
        both = [one for names, one in self._segments if (names[0], names[-1]) == (ends[0], ends[-1])]
        first = [one for names, one in self._segments if names[0] == ends[0]]
        last = [one for names, one in self._segments if names[-1] == ends[-1]]
        return next((one[0] for one in (both, first, last) if len(one) == 1), None)


_LAYOUTS = (
    ("thirty-two wide", "CHW32"),
    ("sixteen wide", "CHW16"),
    ("four wide", "CHW4"),
    ("two wide", "CHW2"),
    ("channel == 4", "DLA_HWC4"),
    ("column stride", "DLA_LINEAR"),
    ("channel % 16", "HWC16"),
    ("channel % 8", "HWC8"),
    ("channel % 4", "HWC4"),
    ("channel major", "HWC"),
    ("row major", "LINEAR"),
    ("row-major", "LINEAR"),
    ("linear", "LINEAR"),
)
"""Words of TensorRT's inspector to formats, the most specific first. Source: engines of TensorRT 8.2 to 10."""


def form_of(text: str) -> str:
    """Return type and format in dryfit's words for TensorRT's words; "" if they are not known.

    Example:
        >>> form_of("Thirty-two wide channel vectorized row major Int8 format")
        'INT8 CHW32'
    """
    low = text.lower()
    kind = type_of(text)
    layout = next((name for word, name in _LAYOUTS if word in low), "")
    return f"{kind} {layout}" if kind and layout else ""


def _forms(tensors: Sequence[InspectedTensor]) -> list[str]:
    forms = [form_of(one.form) for one in tensors]
    return sorted(set(forms)) if all(forms) else []


def _expected_forms(names: Sequence[str], design: Design) -> list[str]:
    found = []
    for name in names:
        forms = design.formats.forms.get(name)
        on_dla = [] if forms is None else [one for one in (forms.produced, *forms.copies) if one.device == DLA]
        if not on_dla:
            return []
        found.append(f"{on_dla[0].dtype.text} {on_dla[0].layout.name}")
    return sorted(set(found))


# Times ----------------------------------------------------------------------------------------------------------------


def board_times(build: KitBuild, results: BoardResults, expected: Expected) -> list[BoardTime]:
    """Return the measured times of the network, its segments on the DLA and its layers on the GPU, with estimates.

    Raises:
        ConfigError: A file of the results is damaged.
    """
    if not expected.design.is_whole:
        return []
    cost = network_cost(expected.design)
    found = []
    runs = results.runs(build)
    if runs is not None:
        devices = sorted({one.device for one in cost.segments})
        moved = sum(one.microseconds or 0.0 for one in cost.transfers)
        found.append(
            _time(
                (build.id, "network", "", " + ".join(devices)),
                (runs.median, runs.count),
                cost.latency_microseconds,
                cost.latency_error,
                cost.segments,
                expected,
                moved,
            )
        )
    on_dla = [one for one in cost.segments if one.device == DLA]
    of_name = _SegmentsByName([(_nodes(one.layers, expected.layers), one) for one in on_dla])
    count = 0 if runs is None else runs.count
    for row in dla_rows(results.profile(build)):
        copy = transfer_of(row, cost.transfers)
        copied = 0.0 if copy is None else copy.microseconds or 0.0
        segment: SegmentCost | None = of_name.segment(row.name)
        measured = row.microseconds, count
        if segment is not None and row.is_segment:
            names = (build.id, "segment", row.name, segment.device)
            estimated = None if segment.microseconds is None else segment.microseconds + copied
            errors = [(segment.microseconds or 0.0, segment.error_factor)]
            error = combined_error([*errors, *([] if copy is None else [(copied, copy.error_factor)])])
            found.append(_time(names, measured, estimated, error, [segment], expected, copied))
        elif copy is not None and not row.is_segment:
            names = (build.id, "copy", row.name, DLA)
            one = _time(names, measured, copy.microseconds, copy.error_factor, [], expected, copied)
            found.append(attrs.evolve(one, fidelity=copy.fidelity, source=copy.source))
    parts = GpuLayers(expected.layers, results.layers(build)).parts(results.profile(build), cost.segments)
    found += [_gpu_time(build, part, count, expected) for part in parts]
    return found


def transfer_of(row: DlaRow, transfers: Iterable[TransferCost]) -> TransferCost | None:
    """Return the estimated copy that a row of a profile includes; None if it includes none, or dryfit expects none."""
    end = "destination" if row.name.endswith(" to nvm") and not row.is_segment else "sender"
    return next((one for one in transfers if one.tensor == row.tensor and getattr(one, end) == DLA), None)


def _gpu_time(build: KitBuild, part: GpuPart, runs: int, expected: Expected) -> BoardTime:
    whole = part.segment.estimate
    assert whole is not None  # noqa: S101  its steps are parts
    steps = [whole.steps[index] for index in sorted(part.steps)]
    estimate = attrs.evolve(whole, microseconds=sum(one.microseconds for one in steps), steps=steps)
    segment = attrs.evolve(part.segment, layers=part.layers, estimate=estimate)
    names = (build.id, "layer", part.name, part.segment.device)
    measured = (part.microseconds, runs)
    return _time(names, measured, segment.microseconds, segment.error_factor, [segment], expected, 0.0)


def _time(
    names: tuple[str, str, str, str],
    measured: tuple[float, int],
    estimated: float | None,
    error: float | None,
    segments: Sequence[Any],
    expected: Expected,
    transfers: float,
) -> BoardTime:
    estimates = [one.estimate for one in segments if one.estimate is not None]
    steps = [step for one in estimates for step in one.steps]
    inside = {name for one in segments for name in one.layers}
    precisions: dict[str, int] = {}
    for layer in expected.layers:
        if layer.name in inside:
            precisions[layer.precision] = precisions.get(layer.precision, 0) + 1
    build, part, name, device = names
    return BoardTime(
        build=build,
        part=part,
        name=name,
        device=device,
        precisions=precisions,
        measured_microseconds=measured[0],
        runs=measured[1],
        estimated_microseconds=estimated,
        is_lower_bound=any(one.is_lower_bound for one in estimates),
        error_factor=error,
        compute_microseconds=sum(one.compute_microseconds for one in steps),
        memory_microseconds=sum(one.memory_microseconds for one in steps),
        overhead_microseconds=sum(one.overhead_microseconds for one in steps),
        steps=len(steps),
        transfers_microseconds=transfers,
        fidelity=next((one.fidelity for one in segments if one.device == DLA or len(segments) == 1), "inferred"),
        source="; ".join(dict.fromkeys(one.source for one in estimates)),
    )


__all__ = [
    "ACCEPTED",
    "GPU",
    "NO_DEVICE",
    "REFUSED",
    "UNKNOWN",
    "BoardFact",
    "BoardLayer",
    "BoardTime",
    "BuildEvidence",
    "CheckedRule",
    "Expected",
    "RuleChecks",
    "board_facts",
    "board_layers",
    "board_times",
    "form_of",
    "transfer_of",
]
