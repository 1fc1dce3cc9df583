"""The answer of `dryfit board read` as lines and tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from dryfit.answers.text import Block, Entries, Line, Table, table_name
from dryfit.estimate_text import duration, time_text
from dryfit.short_text import count_text

if TYPE_CHECKING:
    from dryfit.answers.board.evidence import BoardLayer, BoardTime
    from dryfit.answers.board.outputs import BoardOutput
    from dryfit.answers.board.read import BoardReadAnswer, RuleEvidence

_SHOWN = 20
"""Rows of a table without `--verbose`."""


def read_line(answer: BoardReadAnswer) -> str:
    """Return the summary of an answer."""
    decided = [one for one in answer.layers if one.verdict != "unknown"]
    agreeing = sum(one.agrees for one in decided)
    outcomes = Counter(one.outcome for one in answer.rules)
    rules = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items())
    return (
        f"{agreeing} of {count_text(len(decided), 'layer')} as the rules say; "
        f"{count_text(len(answer.rules), 'rule')}{f': {rules}' if rules else ''}"
    )


def read_blocks(answer: BoardReadAnswer, *, verbose: bool) -> Iterator[Block]:
    """Return the lines and tables of an answer."""
    board = answer.board
    named = ", ".join(filter(None, [board.model, answer.power_mode or board.power_mode]))
    yield Line(f"Board: {answer.platform}{f' ({named})' if named else ''}, TensorRT {board.tensorrt or 'unknown'}")
    corrected = f", corrected by {', '.join(answer.overlays)}" if answer.overlays else ""
    yield Line(f"Rules and estimates: {answer.platform} {answer.software}{corrected}")
    yield Line(answer.summary_line())
    yield from (Line(f"Note: {one}.") for one in answer.notes)
    rows = [
        (one.build, one.state, f"{one.agreeing} of {one.layers}", f"{one.same_device} of {one.layers}", one.title)
        for one in answer.builds
    ]
    yield Table("Builds", ["build", "state", "verdicts agree", "devices agree", "what"], rows)
    yield Entries("Notes on builds", [(one.build, note, "") for one in answer.builds for note in one.notes])
    yield from _rule_blocks(answer.rules, verbose=verbose)
    yield from _difference_blocks(answer, verbose=verbose)
    facts = [one for one in answer.facts if verbose or not one.agrees]
    if answer.facts:
        agreeing = sum(one.agrees for one in answer.facts)
        yield Line(f"Loadables, copies, formats and precisions: {agreeing} of {len(answer.facts)} as expected")
    if facts:
        listed = [(one.build, one.what, one.board, one.dryfit, one.behind) for one in facts]
        yield Table("Differences" if not verbose else "", ["build", "what", "board", "dryfit", "behind it"], listed)
    yield from _time_blocks(answer.times, verbose=verbose)
    yield from _output_blocks(answer.outputs)


def _rule_blocks(rules: Sequence[RuleEvidence], *, verbose: bool) -> Iterator[Block]:
    kept = [one for one in rules if verbose or one.outcome in ("contradicted", "confirmed", "not observed")]
    rows = [(one.rule, one.fidelity, one.outcome, one.refused, one.accepted, _against(one)) for one in kept]
    if rows:
        columns = ["rule", "fidelity", "outcome", "refused for it", "accepted within it", "against it"]
        yield Table("Rules on this board", columns, rows)
    others = Counter(one.outcome for one in rules if one not in kept)
    if others:
        text = ", ".join(f"{count} {outcome}" for outcome, count in others.items())
        yield Line(f"Other rules: {text} (--verbose lists them)")


def _against(one: RuleEvidence) -> str:
    places = [
        *(f"{name} accepted" for name in one.accepted_against),
        *(f"{name} refused" for name in one.refused_against),
    ]
    return ", ".join(places[:3]) + (f" and {len(places) - 3} more" if len(places) > 3 else "")


def _difference_blocks(answer: BoardReadAnswer, *, verbose: bool) -> Iterator[Block]:
    differing = answer.differing
    shown = differing if verbose else differing[:_SHOWN]
    rows = [(one.build, table_name(one.layer), one.verdict, _expected(one), one.shown_by) for one in shown]
    if rows:
        yield Table("Layers with another verdict", ["build", "layer", "board", "dryfit", "shown by"], rows)
    if len(differing) > len(shown):
        yield Line(f"and {len(differing) - len(shown)} more (--verbose lists them)")


def _expected(one: BoardLayer) -> str:
    return f"refused for {', '.join(one.violations)}" if one.violations else "accepted"


def _time_blocks(times: Sequence[BoardTime], *, verbose: bool) -> Iterator[Block]:
    shown = [one for one in times if one.estimated_microseconds is not None]
    networks = [one for one in shown if one.part == "network"]
    kept = shown if verbose else [*networks, *[one for one in shown if one.part != "network"][:_SHOWN]]
    rows = [
        (
            one.build,
            table_name(one.name) or "whole run",
            duration(one.measured_microseconds),
            time_text(one.estimated_microseconds, one.error_factor, is_lower_bound=one.is_lower_bound),
            "-" if one.ratio is None else f"{one.ratio:.2f}",
            {True: "yes", False: "no", None: "-"}[one.is_within_error],
        )
        for one in kept
    ]
    if rows:
        columns = ["build", "part", "measured", "estimated", "ratio", "within error"]
        yield Table("Times", columns, rows)


def _output_blocks(outputs: Sequence[BoardOutput]) -> Iterator[Block]:
    rows = [
        (
            one.build,
            table_name(one.output),
            one.elements,
            "-" if one.different is None else f"{one.different} (at most {one.largest_codes})",
            f"{one.largest:.3g} of {one.largest_value:.3g}",
            one.notes or "-",
        )
        for one in outputs
    ]
    if rows:
        columns = ["build", "output", "values", "INT8 codes that differ", "largest difference", "notes"]
        yield Table("Outputs", columns, rows)
