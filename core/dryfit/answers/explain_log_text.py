"""Explained logs as text: what fell back and why, what runs where, what went wrong, and what dryfit expected."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from dryfit.answers.placement_text import listed_names
from dryfit.answers.text import Block, Entries, Line, Table, overlay_lines, table_name
from dryfit.board.logs.message import CONSEQUENCE, NOTE
from dryfit.board.logs.messages import has_own_words, message_named
from dryfit.board.logs.settings import UNFINISHED
from dryfit.short_text import count_text, short_name

if TYPE_CHECKING:
    from dryfit.answers.explain_log import ExplainLogAnswer, LogProblem, ReportedRule
    from dryfit.answers.log_comparison import LayerDifference, LogComparison

LISTED_ROWS = 20
"""Rows of a table that are listed unless the text is verbose."""
LONGEST_LINE = 160
"""Characters of a log's own line that are shown unless the text is verbose."""


def log_line_of(answer: ExplainLogAnswer) -> str:
    """Return the summary of an answer in one line."""
    build = answer.build
    who = build.program or "a builder"
    version = f" of TensorRT {build.tensorrt}" if build.tensorrt else ""
    where = f" on {build.device}" if build.device else ""
    outcome = f": {build.outcome}" if build.outcome else ""
    refused = sum(one.refused for one in answer.fallen)
    counts = [f"{count_text(len(answer.fallen) - refused, 'layer')} left the DLA"]
    if refused:
        counts.append(f"{count_text(refused, 'layer')} refused because fallback is disabled")
    if answer.loadables.count is not None:
        counts += [
            count_text(answer.loadables.count, "DLA segment"),
            f"{count_text(len(answer.gpu_layers), 'layer')} on the GPU",
        ]
    return f"{answer.log}: {who}{version}{where}{outcome}; {', '.join(counts)}"


def log_blocks(answer: ExplainLogAnswer, *, verbose: bool = False) -> Iterator[Block]:
    """Return the lines and tables of an answer."""
    yield Line(log_line_of(answer))
    yield from _build_lines(answer)
    yield Line()
    yield Entries("Why layers left the DLA", list(_causes(answer)))
    yield from _layers(answer, verbose=verbose)
    yield from _lists(answer, verbose=verbose)
    if answer.memory:
        yield Table("Memory", ["what", "size"], list(answer.memory.items()))
    problems = [one for one in answer.problems if _role(one) not in (NOTE, CONSEQUENCE)]
    yield Entries("Errors and warnings", [_problem(one) for one in problems])
    yield Entries("Consequences of errors before them", [_problem(one) for one in answer.problems if _is_after(one)])
    yield Entries("Remarks", [_problem(one) for one in answer.problems if _role(one) == NOTE])
    yield from _unknown(answer, verbose=verbose)
    if answer.comparison is not None:
        yield from _comparison(answer.comparison, verbose=verbose)


def _build_lines(answer: ExplainLogAnswer) -> Iterator[Block]:
    build, size = answer.build, answer.size
    facts = {
        "platform": build.platform,
        "precisions": ", ".join(build.precisions),
        "DLA core": build.dla_core,
        "fallback": {True: "GPU", False: "none", None: None}[build.fallback],
        "standalone": "yes" if build.standalone else None,
        "model": build.model,
    }
    shown = [f"{name}: {value}" for name, value in facts.items() if value not in (None, "")]
    if shown:
        yield Line("; ".join(shown))
    yield Line(f"{count_text(size.lines, 'line')}, {size.known_lines} of them understood")
    if not size.known_lines:
        yield Line("No line is known from a log of TensorRT: pass what trtexec or the builder printed (2>&1)")
    if build.outcome == UNFINISHED:
        yield Line("The log is cut off, or the program ended early: its last line is missing")
    if build.runs > 1:
        yield Line(f"The log has {build.runs} runs of {build.program}; their layers are listed together")
    if size.cut_lines:
        yield Line(f"{count_text(size.cut_lines, 'line')} of more than 1 MiB: only the beginning was read")
    if size.dropped:
        yield Line(f"{count_text(size.dropped, 'entry')} more were counted and are not listed")


def _causes(answer: ExplainLogAnswer) -> Iterator[tuple[str, str, str]]:
    for cause in answer.causes:
        operation = f" ({cause.operation})" if cause.operation else ""
        yield listed_names(cause.layers), f"{cause.meaning}{operation}{_ids(cause.rules)}", cause.remedy


def _ids(rules: Sequence[ReportedRule]) -> str:
    return f" [{', '.join(one.rule for one in rules)}]" if rules else ""


def _layers(answer: ExplainLogAnswer, *, verbose: bool) -> Iterator[Block]:
    rows = [
        (table_name(one.name), one.kind or None, one.line, ", ".join(one.rules) or "not stated")
        for one in answer.fallen[: None if verbose else LISTED_ROWS]
    ]
    if rows:
        yield Table("Layers that left the DLA", ["layer", "type", "line", "rules"], rows)
        yield from _more(answer.fallen, verbose=verbose)


def _lists(answer: ExplainLogAnswer, *, verbose: bool) -> Iterator[Block]:
    loadables = answer.loadables
    if loadables.count is not None:
        limit = f" of at most {loadables.limit}" if loadables.limit is not None else ""
        over = f"; {count_text(loadables.over_limit, 'layer')} beyond the limit" if loadables.over_limit else ""
        made = (
            f"; {loadables.offloaded} of {loadables.candidates} candidates were accepted"
            if loadables.candidates is not None
            else ""
        )
        yield Line(f"Loadables: {loadables.count}{limit}{over}{made}")
    if answer.segments:
        rows = [
            (short_name(one.layers[0]) if one.layers else None, short_name(one.layers[-1]) if one.layers else None)
            for one in answer.segments[: None if verbose else LISTED_ROWS]
        ]
        yield Table("Segments on the DLA", ["from", "to"], rows)
        yield from _more(answer.segments, verbose=verbose)
    if answer.gpu_layers and verbose:
        yield Table("Layers on the GPU", ["type", "layer"], [(one.kind or None, one.name) for one in answer.gpu_layers])


def _more(entries: Sequence[object], *, verbose: bool) -> Iterator[Block]:
    if not verbose and len(entries) > LISTED_ROWS:
        yield Line(f"  and {len(entries) - LISTED_ROWS} more (--verbose lists them)")


def _role(problem: LogProblem) -> str:
    return message_named(problem.message).role


def _is_after(problem: LogProblem) -> bool:
    return _role(problem) == CONSEQUENCE


def _problem(one: LogProblem) -> tuple[str, str, str]:
    times = f" ({one.count} lines)" if one.count > 1 else ""
    names = f": {listed_names(one.names)}" if one.names else ""
    words = f" ({short_name(one.text, LONGEST_LINE)})" if has_own_words(one.message) else ""
    return f"line {one.line}{times}", f"{one.meaning}{names}{words}{_ids(one.rules)}", one.remedy


def _unknown(answer: ExplainLogAnswer, *, verbose: bool) -> Iterator[Block]:
    shown = answer.unknown if verbose else answer.unknown[:LISTED_ROWS]
    entries = [
        (
            f"line {one.line}{f' ({one.count} lines)' if one.count > 1 else ''}",
            one.text if verbose else short_name(one.text, LONGEST_LINE),
            "",
        )
        for one in shown
    ]
    yield Entries("Not known to dryfit", entries)
    yield from _more(answer.unknown, verbose=verbose)


# Comparison -----------------------------------------------------------------------------------------------------------


def _comparison(found: LogComparison, *, verbose: bool) -> Iterator[Block]:
    yield Line()
    yield Line(
        f"Compared with dryfit's placement of {found.model} ({found.platform} {found.software}): "
        f"{found.agreeing} of {count_text(found.compared, 'layer')} on the same device"
    )
    yield Line(f"Settings of the log: {' '.join(found.options)}")
    yield from overlay_lines(found.overlays)
    yield from (Line(f"Note: {note}.") for note in found.notes)
    if found.rules_found:
        yield Line(
            f"{found.same_rule} of {count_text(len(found.rules_found), 'layer')} that left the DLA violate a rule that "
            "the log states, according to dryfit too"
        )
        rows = [
            (table_name(name), ", ".join(rules) or "none")
            for name, rules in list(found.rules_found.items())[: None if verbose else LISTED_ROWS]
        ]
        yield Table("Rules that dryfit finds violated by layers that left the DLA", ["layer", "rules"], rows)
        yield from _more(list(found.rules_found), verbose=verbose)
    shown = found.differences if verbose else found.differences[:LISTED_ROWS]
    yield Entries("Layers for which dryfit expected another device", [_difference(one) for one in shown])
    yield from _more(found.differences, verbose=verbose)
    if found.unmatched:
        yield Line(f"Layers of the log that the model does not have: {listed_names(found.unmatched)}")


def _difference(one: LayerDifference) -> tuple[str, str, str]:
    expected = one.dryfit_device or "no device"
    why = f" for {', '.join(one.log_rules)}" if one.log_rules else ""
    return (
        one.layer,
        f"{one.log_device} in the log ({one.shown_by}{why}), {expected} here: {'; '.join(one.reasons)}",
        "",
    )
