"""Write what a board showed as an overlay: `dryfit.board_learn` and `dryfit board learn`."""

from __future__ import annotations

import datetime as dt
import functools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import attrs

from dryfit.answers.board.dla_rows import dla_rows
from dryfit.answers.board.evidence import ACCEPTED, REFUSED, BuildEvidence, transfer_of
from dryfit.answers.board.gpu_layers import GpuLayers, StepTimes
from dryfit.answers.board.read import BoardReadAnswer, read_board
from dryfit.answers.json_data import Amount, Count, hidden
from dryfit.answers.log_comparison import DLA, GPU
from dryfit.answers.network_cost import network_cost
from dryfit.answers.text import Answer, Block, Entries, Line
from dryfit.atomic_file import refuse_to_overwrite
from dryfit.attrs_classes import frozen
from dryfit.board.learned_cost import LearnedCost, Measurement, learn_cost
from dryfit.board.learned_rules import LearnedRules, OpenLimit, SeenLayer, Undecided, learn_rules
from dryfit.board.logs.layer_lists import segment_of
from dryfit.errors import ConfigError
from dryfit.network.data_types import DataType
from dryfit.plugins import registry
from dryfit.short_text import count_text
from dryfit.target.cost import TransferQuestion
from dryfit.target.overlay_file import write_overlay
from dryfit.target.overlays import Overlay, RuleChange, numbers


@frozen
class LearnedRule:
    """A rule that the board does not have as it is documented.

    Attributes:
        rule: id of the rule.
        change: `off`, or the limits of the board, such as `high = 31`.
        documented: the documented limits; "" for a rule without any.
        layers: number of layers that show it.
        reason: what they show.
    """

    rule: str
    change: str
    documented: str
    layers: Count
    reason: str

    @property
    def text(self) -> str:
        """The change, with the documented limits."""
        return f"{self.change} (documented: {self.documented})" if self.documented else self.change


@frozen
class LearnedParameter:
    """A parameter of a device's cost model, fitted to the board's latencies.

    Attributes:
        device: device of the cost model.
        name: name of the parameter in overlays.
        documented: value without the overlay.
        value: fitted value.
        error: standard error of the value, relative to it; null for a stated error of the model.
    """

    device: str
    name: str
    documented: float
    value: float
    error: float | None


@frozen
class CostFit:
    """How well the cost model of a device fits the board's latencies, as relative errors.

    Attributes:
        device: the device.
        measurements: number of latencies.
        error_before: median error of the documented parameters.
        error_fitted: median error of the fitted parameters.
        error_held_out: median error of latencies that were left out of the fit.
        largest_held_out: largest error of these.
    """

    device: str
    measurements: Count
    error_before: Amount
    error_fitted: Amount
    error_held_out: Amount
    largest_held_out: Amount


@frozen(repr=False, kw_only=True)
class BoardLearnAnswer(Answer):
    """What results of a board say of dryfit's rules and cost model, as an overlay.

    Attributes:
        output: file that was written; null for none.
        name: name of the overlay.
        platform: platform of the board.
        software: TensorRT version of the board.
        layers: number of layers whose verdict the results show.
        rules: rules that the board has otherwise.
        parameters: fitted parameters of the cost models.
        costs: how well the cost model of each device fits; none for a device without enough latencies.
        confirmed: rules that the board was seen to obey, with the number of layers that were refused for them alone.
        open_limits: moved limits between two tried values; `board_pack(after=...)` makes probes for the values between.
        undecided: refused layers for which several rules can be the reason, or none.
        notes: what could not be used.
        overlay: the overlay.
    """

    COMMAND: ClassVar[str] = "board learn"

    output: str | None
    name: str
    platform: str
    software: str
    layers: Count
    rules: Sequence[LearnedRule]
    parameters: Sequence[LearnedParameter]
    costs: Sequence[CostFit]
    confirmed: Mapping[str, Count]
    open_limits: Sequence[OpenLimit]
    undecided: Sequence[Undecided]
    notes: Sequence[str]
    overlay: Overlay = hidden(eq=False)

    def blocks(self, *, verbose: bool = False) -> Iterator[Block]:  # noqa: ARG002  there is no more to show
        """Return the lines and lists that `dryfit board learn` prints."""
        yield Line(self.summary_line())
        yield from (Line(note) for note in self.notes)
        changes = [(one.rule, one.text, one.reason) for one in self.rules]
        yield Entries("Rules that the board has otherwise", changes)
        for cost in self.costs:
            yield Line(
                f"Cost model of {cost.device}: median error {cost.error_held_out:.1%} of latencies that were left out "
                f"of the fit (largest {cost.largest_held_out:.1%}; {cost.error_before:.1%} before)"
            )
            own = [one for one in self.parameters if one.device == cost.device]
            yield Entries(f"Fitted parameters of {cost.device}", [(one.name, _parameter_text(one), "") for one in own])
        confirmed = [(rule, count_text(layers, "layer"), "") for rule, layers in self.confirmed.items()]
        yield Entries("Rules confirmed on this board", confirmed)
        yield Entries(
            "Refused layers that no rule explains for certain",
            [(one.layer, ", ".join(one.candidates) or "no rule speaks of it", "") for one in self.undecided],
        )
        yield Entries(
            "Limits between two tried values (narrow them: dryfit board pack --after RESULTS)",
            [(f"{one.rule}, {one.limit}", open_limit_text(one), "") for one in self.open_limits],
        )
        if self.output is not None:
            yield Line(f"Wrote {self.output}. Use it with --overlay {self.output}.")

    def summary_line(self) -> str:
        """Return a one-line summary of the answer."""
        counts = (
            count_text(len(self.rules), "changed rule"),
            count_text(len(self.confirmed), "confirmed rule"),
            count_text(len(self.parameters), "cost parameter"),
        )
        board = f"{self.platform}, TensorRT {self.software}"
        return f"{self.name} ({board}): {', '.join(counts)} from {count_text(self.layers, 'layer')}"


def open_limit_text(one: OpenLimit) -> str:
    """Return between which values a limit is."""
    refused = "no value beyond it was tried" if one.refused is None else f"{one.refused:g} was refused"
    return f"{one.taken:g} ran on the device, {refused}"


def _parameter_text(one: LearnedParameter) -> str:
    error = "" if one.error is None else f" +- {one.error:.1%}"
    return f"{one.value:.4g}{error} (before: {one.documented:.4g})"


def board_learn(
    results: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str] | None = None,
    *,
    kit: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    name: str = "",
    author: str = "",
    force: bool = False,
) -> BoardLearnAnswer:
    """Learn from results of a board which rules it has otherwise, and fit the cost model to its latencies.

    A rule is named only if no other can explain what the board did. A narrower limit is the largest value that the
    board took; the reason names the smallest that it refused. Nothing is learnt of what no build tried.

    Args:
        results: path of `results.zip`, or several of the same board, version and power mode.
        output: path of the overlay to write; None for none.
        kit: path of the kit; several for results of several kits; None for results of probes alone.
        name: name of the overlay. Default: the name of the file, or the platform.
        author: who made it.
        force: whether to overwrite the output.

    Raises:
        ConfigError: The results or the kit are damaged, or are of different boards, or the output exists.
        UnknownNameError: dryfit does not know the board.
        OSError: A file cannot be read or written.
    """
    if output is not None:
        refuse_to_overwrite(Path(output), force=force)
    paths = [results] if isinstance(results, str | os.PathLike) else list(results)
    read = [read_board(path, kit) for path in paths]
    answers = [answer for answer, _ in read]
    _require_one_board(answers)
    evidence = [
        attrs.evolve(one, build=one.build if len(read) == 1 else f"{index + 1}:{one.build}")
        for index, (_, builds) in enumerate(read)
        for one in builds
    ]
    learned = learned_overlay(evidence, answers[0].platform, answers[0].software)
    named = name or (Path(output).stem if output is not None else answers[0].platform)
    today, source = dt.datetime.now(dt.UTC).date(), _source(answers, learned)
    overlay = attrs.evolve(learned.overlay, name=named, author=author, made=today, source=source)
    if output is not None:
        write_overlay(overlay, output)
    notes = [note for answer in answers for note in answer.notes]
    return learned.answer(overlay, None if output is None else os.fspath(output), notes)


def _require_one_board(answers: Sequence[BoardReadAnswer]) -> None:
    """Reject results of different boards.

    Raises:
        ConfigError: Platform, version or power mode differ.
    """
    boards = {f"{one.platform}, TensorRT {one.software}, power mode {one.power_mode}" for one in answers}
    if len(boards) > 1:
        raise ConfigError(
            "The results are of different boards",
            where="results",
            found="; ".join(sorted(boards)),
            allowed="results of one board",
            remedy="Make one overlay of each, and use them together: --overlay a.toml --overlay b.toml",
        )


def _source(answers: Sequence[BoardReadAnswer], learned: LearnedFacts) -> str:
    board = answers[0].board
    times = sum(one.measurements for one in learned.costs.values())
    measured = f" and {count_text(times, 'time')}" if times else ""
    where = ", ".join(filter(None, (board.model, board.release, answers[0].power_mode or board.power_mode)))
    counted = f"{count_text(learned.rules.layers, 'layer')}{measured}"
    digests = ", ".join(one.digest[:12] for one in answers)
    return " ".join(f"{counted}{f' on {where}' if where else ''}; results sha256 {digests}".split())


# What the evidence says -----------------------------------------------------------------------------------------------


@frozen(eq=False)
class LearnedFacts:
    """What builds on a board show.

    Attributes:
        rules: of the rules.
        costs: device to the fit of its cost model, where one could be made.
        overlay: both as an overlay without a name.
        documented: device to its cost parameters without the overlay.
    """

    rules: LearnedRules
    costs: Mapping[str, LearnedCost]
    overlay: Overlay
    documented: Mapping[str, Mapping[str, float]]

    def answer(self, overlay: Overlay, output: str | None, notes: Sequence[str]) -> BoardLearnAnswer:
        """Return the answer about an overlay of these facts."""
        table = registry.target(DLA).limits
        documented = {} if table is None else {one.id: RuleChange(limits=one.limits).text for one in table.rules}
        return BoardLearnAnswer(
            output=output,
            name=overlay.name,
            platform=overlay.platform,
            software=overlay.software,
            layers=self.rules.layers,
            rules=[
                LearnedRule(rule, one.text, documented[rule].removesuffix("on"), one.layers, one.reason)
                for rule, one in overlay.rules.items()
            ],
            parameters=[
                LearnedParameter(device, name, self.documented[device][name], one.value, one.error)
                for device, cost in self.costs.items()
                for name, one in cost.parameters.items()
            ],
            costs=[
                CostFit(
                    device,
                    cost.measurements,
                    cost.error_before,
                    cost.error_fitted,
                    cost.error_held_out,
                    cost.largest_held_out,
                )
                for device, cost in self.costs.items()
            ],
            confirmed={rule: one.layers for rule, one in overlay.confirmed.items()},
            open_limits=self.rules.open_limits,
            undecided=self.rules.undecided,
            notes=notes,
            overlay=overlay,
        )


def learned_overlay(evidence: Sequence[BuildEvidence], platform: str, software: str) -> LearnedFacts:
    """Return what the builds of one board show.

    Args:
        evidence: the builds.
        platform: the board.
        software: its TensorRT version.
    """
    target = registry.target(DLA)
    table = target.limits
    assert table is not None  # noqa: S101  the DLA has rules
    rules = learn_rules(table, (seen for one in evidence for seen in seen_layers(one)))
    documented, costs = {}, dict[str, LearnedCost]()
    for device, measure in ((DLA, dla_measurements), (GPU, gpu_measurements)):
        corrected = registry.target(device)
        parameters = corrected.cost_parameters.get(corrected.platform(platform).name)
        found = (
            None if parameters is None else learn_cost(parameters, [time for one in evidence for time in measure(one)])
        )
        if found is not None:
            costs[device], documented[device] = found, numbers(parameters)
    overlay = Overlay(
        name=platform,
        platform=platform,
        software=software,
        rules=rules.changes,
        cost={device.lower(): cost.parameters for device, cost in costs.items()},
        confirmed=rules.confirmed,
    )
    return LearnedFacts(rules, costs, overlay, documented)


def seen_layers(evidence: BuildEvidence) -> Iterator[SeenLayer]:
    """The layers of a build on which the board gave a verdict, as the rules see them."""
    expected = evidence.expected
    question = expected.config.questions(registry.target(DLA), expected.design.specs)
    held = {layer.name: layer for layer in expected.design.network.layers}
    for one in evidence.layers:
        if one.verdict in (ACCEPTED, REFUSED):
            questions = [question(held[one.own])] if one.own in held else []
            yield SeenLayer(f"{one.build}/{one.layer}", questions, one.verdict == ACCEPTED, one.board_rules)


def dla_measurements(evidence: BuildEvidence) -> Iterator[Measurement]:
    """The latencies of a build that depend on the DLA's parameters alone: segments, copies, and runs on it alone."""
    design = evidence.expected.design
    if not design.is_whole:
        return
    cost = network_cost(design)
    segments = {_ends(evidence, one.layers): one for one in cost.segments if one.device == DLA}
    for row in dla_rows(evidence.profile):
        names = segment_of(row.name).layers if row.is_segment else ()
        segment = segments.get((names[0], names[-1])) if names else None
        copy = transfer_of(row, cost.transfers)
        inside: list[Callable[[Any], float]] = [] if segment is None else [StepTimes(design, segment).whole]
        inside += [] if copy is None else [_transfer_estimator(evidence, copy.dram_bytes // 2)]
        if inside and (segment is not None or not row.is_segment):
            precision = "" if segment is None else _main_precision(evidence, segment.layers)
            place = f"{evidence.build}/{row.name}"
            yield Measurement(place, evidence.build, row.microseconds, functools.partial(_sum, inside), precision)
    if evidence.runs is not None and segments and len(segments) == len(cost.segments):
        parts: list[Callable[[Any], float]] = [StepTimes(design, one).whole for one in cost.segments]
        parts += [_transfer_estimator(evidence, one.dram_bytes // 2) for one in cost.transfers]
        layers = [name for one in cost.segments for name in one.layers]
        precision = _main_precision(evidence, layers)
        whole = functools.partial(_sum, parts)
        yield Measurement(f"{evidence.build}/run", evidence.build, evidence.runs.median, whole, precision)


def _sum(parts: Sequence[Callable[[Any], float]], record: Any) -> float:
    return sum(part(record) for part in parts)


def gpu_measurements(evidence: BuildEvidence) -> Iterator[Measurement]:
    """The latencies of a build that depend on the GPU's parameters alone: its engine layers."""
    design = evidence.expected.design
    if not design.is_whole:
        return
    cost = network_cost(design)
    times = {one.index: StepTimes(design, one) for one in cost.segments if one.device == GPU}
    for part in GpuLayers(evidence.expected.layers, evidence.inspected).parts(evidence.profile, cost.segments):
        estimate = functools.partial(times[part.segment.index].of, part.steps)
        precision = _main_precision(evidence, part.layers[:1])
        yield Measurement(f"{evidence.build}/{part.name}", evidence.build, part.microseconds, estimate, precision)


def _ends(evidence: BuildEvidence, layers: Sequence[str]) -> tuple[str, str]:
    """The ONNX nodes of a segment's first and last layer, by which TensorRT names it."""
    nodes = {one.name: one.onnx_nodes[0] if one.onnx_nodes else one.name for one in evidence.expected.layers}
    return nodes.get(layers[0], layers[0]), nodes.get(layers[-1], layers[-1])


def _transfer_estimator(evidence: BuildEvidence, moved: int) -> Callable[[Any], float]:
    """Parameters -> estimated time of a copy between the DLA and another device in us."""
    variant = evidence.expected.design.variants[DLA]
    function = variant.target.estimate_transfer
    question = TransferQuestion(moved, variant.platform, variant.power_mode)

    def estimate(record: Any) -> float:
        found = None if function is None else function(attrs.evolve(question, parameters=record))
        return 0.0 if found is None else found.microseconds or 0.0

    return estimate


def _main_precision(evidence: BuildEvidence, layers: Iterable[str]) -> str:
    """The narrowest type in which a layer is computed, by the names that cost parameters have."""
    wanted = set(layers)
    types = {one.precision for one in evidence.expected.layers if one.name in wanted}
    known = (DataType.INT8, DataType.HALF, DataType.BF16)
    return next((one.text for one in known if one.name in types), DataType.FLOAT.text)
