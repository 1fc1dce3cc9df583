"""Formats and copies: the bytes that copies between types, formats and devices move, by cause and by border."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from dryfit.answers.estimate import EstimateAnswer
from dryfit.answers.reformat_removal import ExplainedReformat
from dryfit.answers.text import Block, Line, Table, bytes_text, table_name, type_text
from dryfit.engine.plan import Reformat
from dryfit.estimate_text import duration
from dryfit.reporting.facts import ReportFacts
from dryfit.reporting.figures import Figure, Legend, Part, bars, chart, percent

INSIDE, BETWEEN = "inside a device", "between devices"


def part(facts: ReportFacts) -> Part | None:
    """The part about copies; None if the model cannot be built, so that its copies are unknown."""
    found = facts.check
    if found.refusals and not found.reformats:
        return None
    copies = found.reformats
    if not copies:
        finding = "No tensor is copied between types, formats or devices."
        return Part(name="copies", title="Formats and copies", finding=finding, blocks=list(_traffic(facts)))
    return Part(
        name="copies",
        title="Formats and copies",
        finding=_finding(copies),
        figures=[_by_cause(copies), _by_border(copies)],
        blocks=[*_cause_table(facts), *_border_table(facts), *_removal(facts), *_traffic(facts)],
        details=list(_all_copies(facts)),
        basis="" if facts.estimate is None else "Times and DRAM traffic are estimates; bytes of copies are exact.",
        numbers=_numbers(facts),
    )


def _numbers(facts: ReportFacts) -> dict[str, Any]:
    """Bytes, shares and times of copies with the same cause or border, and bytes of DRAM by device."""
    copies, times, cost = facts.check.reformats, _times(facts), facts.estimate
    total = sum(one.size for one in copies) or 1
    found: dict[str, Any] = {"bytes": bytes_by(copies, _reach)}
    for name, key in (("rules", lambda one: one.rule), ("borders", border)):
        sizes = bytes_by(copies, key)
        found[name] = {
            one: {
                "copies": sum(key(copy) == one for copy in copies),
                "bytes": size,
                "share": size / total,
                "microseconds": _known_time([copy for copy in copies if key(copy) == one], times),
            }
            for one, size in sizes.items()
        }
    found["dram_bytes"] = {} if cost is None else dram_bytes(cost)
    return found


def dram_bytes(cost: EstimateAnswer) -> dict[str, int]:
    """Return the bytes that each device moves to and from DRAM."""
    return {device: sum(one.dram_bytes for one in cost.segments if one.device == device) for device in cost.devices}


def bytes_by(copies: Sequence[Reformat], key: Callable[[Reformat], str]) -> dict[str, int]:
    """Return the bytes that copies write by what they have in common, the largest first."""
    found: dict[str, int] = {}
    for one in copies:
        found[key(one)] = found.get(key(one), 0) + one.size
    return dict(sorted(found.items(), key=lambda entry: -entry[1]))


def border(copy: Reformat) -> str:
    """Return the two sides of a copy: `GPU FP16 LINEAR to DLA FP16 CHW16`."""
    return f"{type_text(copy.source)} to {type_text(copy.destination)}"


def _reach(copy: Reformat) -> str:
    return INSIDE if copy.source.split()[0] == copy.destination.split()[0] else BETWEEN


def _finding(copies: Sequence[Reformat]) -> str:
    total = sum(one.size for one in copies)
    between = bytes_by(copies, _reach).get(BETWEEN, 0)
    rule, size = next(iter(bytes_by(copies, lambda one: one.rule).items()))
    share = percent(size / total) if total else "most"
    return (
        f"{'1 copy writes' if len(copies) == 1 else f'{len(copies)} copies write'} {bytes_text(total)} per inference, "
        f"{bytes_text(between)} of it between devices; the rule {rule} causes {share} of the bytes."
    )


def _bars(copies: Sequence[Reformat], key: Callable[[Reformat], str], name: str, title: str) -> Figure:
    order = list(bytes_by(copies, key))
    summed = [
        {"of": name, "reach": reach, "size": size / 1024}
        for reach in (BETWEEN, INSIDE)
        for name, size in bytes_by([one for one in copies if _reach(one) == reach], key).items()
    ]
    legend = Legend("reach", {BETWEEN: "var(--warning)", INSIDE: "var(--device-5)"})
    specification = bars(summed, "of", "size", "KiB per inference", legend=legend, order=order, row_height=26)
    said = "; ".join(f"{one}: {bytes_text(size)}" for one, size in bytes_by(copies, key).items())
    return chart(name, title, said, specification)


def _by_cause(copies: Sequence[Reformat]) -> Figure:
    return _bars(copies, lambda one: one.rule, "causes", "Bytes that copies write, by rule")


def _by_border(copies: Sequence[Reformat]) -> Figure:
    return _bars(copies, border, "borders", "Bytes that copies write, by border")


def _times(facts: ReportFacts) -> Mapping[tuple[str, str, str], float | None]:
    """(tensor, device, device) -> estimated microseconds of a copy between devices."""
    transfers = () if facts.estimate is None else facts.estimate.transfers
    return {(one.tensor, one.sender, one.destination): one.microseconds for one in transfers}


def _time(copies: Sequence[Reformat], times: Mapping[tuple[str, str, str], float | None]) -> str:
    """Estimated time of copies; `-` if one of them has none. Copies inside a device are part of its steps."""
    known = _known_time(copies, times)
    return "-" if known is None else duration(known)


def _known_time(copies: Sequence[Reformat], times: Mapping[tuple[str, str, str], float | None]) -> float | None:
    found = [times.get((one.tensor, one.source.split()[0], one.destination.split()[0])) for one in copies]
    known = [one for one in found if one is not None]
    return sum(known) if len(known) == len(found) else None


def _cause_table(facts: ReportFacts) -> Iterator[Block]:
    copies, times = facts.check.reformats, _times(facts)
    explained = {one.rule: one for one in facts.explanation.reformats}
    total = sum(one.size for one in copies) or 1
    rows = []
    for rule, size in bytes_by(copies, lambda one: one.rule).items():
        own = [one for one in copies if one.rule == rule]
        told = explained.get(rule)
        words = ("", "") if told is None else (told.remedy, told.rule_source)
        rows.append((rule, len(own), bytes_text(size), percent(size / total, 1), _time(own, times), *words))
    columns = ["rule", "copies", "bytes", "share", "estimated time", "remedy", "source"]
    yield Table("Causes of copies", columns, rows)


def _border_table(facts: ReportFacts) -> Iterator[Block]:
    copies, times = facts.check.reformats, _times(facts)
    rows = []
    for name, size in bytes_by(copies, border).items():
        own = [one for one in copies if border(one) == name]
        rows.append((*name.split(" to "), len(own), bytes_text(size), _time(own, times)))
    yield Table("Borders", ["from", "to", "copies", "bytes", "estimated time"], rows)


def _removal(facts: ReportFacts) -> Iterator[Block]:
    found = facts.explanation.io_formats
    if found is not None:
        before, after = found.before, found.after
        yield Line(
            f"With other formats of inputs and outputs, {before.reformats} -> {after.reformats} copies of "
            f"{bytes_text(before.reformat_bytes)} -> {bytes_text(after.reformat_bytes)} remain: {found.apply}"
        )


def _traffic(facts: ReportFacts) -> Iterator[Block]:
    cost = facts.estimate
    if cost is not None:
        rows = [(device, bytes_text(size)) for device, size in dram_bytes(cost).items()]
        yield Table("DRAM traffic (estimated)", ["device", "bytes"], rows)


def _all_copies(facts: ReportFacts) -> Iterator[Block]:
    times = _times(facts)
    removals = {(one.tensor, one.source, one.destination): _removed_by(one) for one in facts.explanation.reformats}
    rows = [
        (
            table_name(one.tensor),
            type_text(one.source),
            type_text(one.destination),
            bytes_text(one.size),
            _time([one], times),
            one.cause,
            removals.get((one.tensor, one.source, one.destination), "-"),
        )
        for one in sorted(facts.check.reformats, key=lambda one: -one.size)
    ]
    columns = ["tensor", "from", "to", "bytes", "estimated time", "cause", "avoided by"]
    yield Table("Copies, largest first", columns, rows)


def _removed_by(copy: ExplainedReformat) -> str:
    found = copy.removed_by
    return "-" if found is None else f"{copy.tensor} as {found.io_format}"
