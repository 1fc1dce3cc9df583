"""The page of boards: what people contributed, overlays and public reports, against what the rules say today.

A report is a log or a thread that somebody published, in our words: a file of `docs/boards/reports`. A layer of it
stands for the probe of a kit that has the property by which the board judged it; whatever else a report does not show
is the probe's, and within all limits. What dryfit predicts is asked of the rules when the page is written.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs

from dryfit.answers.asked import asked
from dryfit.answers.log_comparison import DLA
from dryfit.board.kit.probes import candidates, network_of
from dryfit.errors import ConfigError, UnknownNameError
from dryfit.plugins import registry
from dryfit.plugins.overlays import require_known_overlays
from dryfit.target.overlay_file import read_overlay
from dryfit.target.overlays import Overlay, require_agreement
from dryfit_dla.limits.documents import REPORTS

FOLDER = Path(__file__).parents[1] / "boards"
SCHEMA = 1
ACCEPTED, REFUSED = "accepted", "refused"
_FIELDS = ("schema", "title", "board", "platform", "software", "precision", "source", "assumed", "words", "layers")
_LAYER_FIELDS = ("layer", "probe", "verdict", "count", "named")


@attrs.frozen
class ReportedLayer:
    """A layer of a report.

    Attributes:
        layer: its name there.
        probe: the probe of a kit that stands for it.
        verdict: `accepted` or `refused` by the board.
        count: how many layers of this kind the report shows.
        named: the rule that the board's own message names; "" where it names none.
    """

    layer: str
    probe: str
    verdict: str
    count: int = 1
    named: str = ""


@attrs.frozen
class Report:
    """What somebody published about a build.

    Attributes:
        name: name of the file, without its suffix.
        title: the network, in a few words.
        board: the board, as the report has it.
        platform, software: whose rules are asked.
        precision: allowed types of the build, as `--precision` has them.
        source: address.
        words: what it shows, in our words.
        layers: the layers.
        assumed: what the report does not show; "" for nothing.
    """

    name: str
    title: str
    board: str
    platform: str
    software: str
    precision: str
    source: str
    words: str
    layers: Sequence[ReportedLayer]
    assumed: str = ""


@attrs.frozen
class Prediction:
    """A layer of a report, with what the rules say of it.

    Attributes:
        report: the report.
        layer: the layer.
        violations: rules that it violates.
    """

    report: Report
    layer: ReportedLayer
    violations: Sequence[str]

    @property
    def predicted(self) -> str:
        """`accepted` or `refused`, by the rules."""
        return REFUSED if self.violations else ACCEPTED

    @property
    def agrees(self) -> bool:
        """Whether the board did so, and for the rule that it names."""
        return self.predicted == self.layer.verdict and (not self.layer.named or self.layer.named in self.violations)


def read_report(path: Path) -> Report:
    """Read the file of a report.

    Raises:
        ConfigError: It is no TOML, or a field is missing or has the wrong form.
        UnknownNameError: A field or a probe does not exist.
    """
    try:
        data: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError("The report is not valid TOML", where=path.name, found=error, remedy="Correct it") from error
    _require(data, _FIELDS, path.name, optional=("assumed",))
    if data.pop("schema") != SCHEMA or not isinstance(data["layers"], list) or not data["layers"]:
        raise ConfigError(
            "The report has the wrong form",
            where=path.name,
            allowed=f"schema = {SCHEMA}, and one or more [[layers]]",
            remedy="Compare it with another report of the folder",
        )
    if not str(data["source"]).startswith("https://"):
        raise ConfigError(
            "A report must have an address where everybody can read it",
            where=f"{path.name}, source",
            found=repr(data["source"]),
            allowed="an address that begins with https://",
            remedy="Name the thread, or the file with its commit",
        )
    probes = {one.name for one in candidates()}
    layers = []
    for one in data.pop("layers"):
        _require(one, _LAYER_FIELDS, f"{path.name}, layers", optional=("count", "named"))
        if one["probe"] not in probes:
            raise UnknownNameError("probe", one["probe"], probes, where=path.name)
        if one["verdict"] not in (ACCEPTED, REFUSED):
            raise UnknownNameError("verdict", one["verdict"], (ACCEPTED, REFUSED), where=path.name)
        layers.append(ReportedLayer(**one))
    return Report(name=path.stem, layers=layers, **data)


def _require(data: Any, fields: Sequence[str], where: str, optional: Sequence[str]) -> None:
    for name in data:
        if name not in fields:
            raise UnknownNameError("field", name, fields, where=where)
    missing = [name for name in fields if name not in data and name not in optional]
    if missing:
        raise ConfigError("Fields of the report are missing", where=where, found=", ".join(missing), remedy="Add them")


def reports() -> list[Report]:
    """The reports that were contributed, by name of the file."""
    return [read_report(path) for path in sorted((FOLDER / "reports").glob("*.toml"))]


def overlays(folder: Path = FOLDER / "overlays") -> list[Overlay]:
    """The overlays that were contributed, by name of the file.

    Raises:
        ConfigError: A file has another form, does not say who made it and of what, or two files contradict each other.
        UnknownNameError: A file speaks of a board, rule, limit or parameter that does not exist.
    """
    found = [read_overlay(path) for path in sorted(folder.glob("*.toml"))]
    for one in found:
        missing = [name for name in ("author", "source", "software") if not getattr(one, name)]
        if missing:
            raise ConfigError(
                "Fields of the contributed overlay are missing",
                where=one.where,
                found=", ".join(missing),
                remedy="Let `dryfit board learn --author NAME` write it",
            )
    require_known_overlays(found)
    # Boards and versions may differ; results of the same ones must not.
    for board in {one.board_text for one in found}:
        require_agreement([one for one in found if one.board_text == board])
    return found


def predictions(report: Report) -> Iterator[Prediction]:
    """What the rules say of the layers of a report."""
    makers = {one.name: one for one in candidates()}
    target = registry.target(DLA)
    options: dict[str, Any] = {
        "device": DLA,
        "fallback": "GPU",
        "platform": report.platform,
        "software": report.software,
        "precision": report.precision,
        "assume_scales": "int8" in report.precision,
    }
    for one in report.layers:
        subject = asked(network_of([makers[one.probe]]), None, options, needs_shapes=False)
        # The network as it is imported: older builders did not remove what has no effect.
        question = subject.config.questions(target)
        verdicts = {
            layer.name: target.verdict(question(layer))
            for layer in subject.network.layers
            if one.probe in layer.onnx_nodes
        }
        own = verdicts.get(one.probe) or next(iter(verdicts.values()))
        yield Prediction(report, one, [violation.rule for violation in own.violations])


def report_schema() -> dict[str, Any]:
    """The JSON Schema of a report's file, after TOML was parsed."""
    text = {"type": "string", "minLength": 1}
    layer = {
        "type": "object",
        "additionalProperties": False,
        "required": [name for name in _LAYER_FIELDS if name not in ("count", "named")],
        "properties": {
            **dict.fromkeys(_LAYER_FIELDS, text),
            "verdict": {"enum": [ACCEPTED, REFUSED]},
            "count": {"type": "integer", "minimum": 1},
        },
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "report of a board in docs/boards/reports",
        "type": "object",
        "additionalProperties": False,
        "required": [name for name in _FIELDS if name != "assumed"],
        "properties": {
            **dict.fromkeys(_FIELDS, text),
            "schema": {"const": SCHEMA},
            "source": {"type": "string", "pattern": "^https://"},
            "layers": {"type": "array", "minItems": 1, "items": layer},
        },
    }


# The page -------------------------------------------------------------------------------------------------------------

_HEAD = """# Boards

Generated by `make docs` from the files in `docs/boards`: overlays that `dryfit board learn` wrote from a board's
results, and summaries of public reports about builds for the DLA. *Predicted* is what the current rules answer.
"""

_NAMED_HEAD = """
## Rules that boards named

Layers that a board refused with a message that names the rule as the reason. A star marks rules that were themselves
inferred from builder logs.

| rule | board, TensorRT | layers | reports |
|---|---|---|---|
"""

_COMPARED_HEAD = """
## Predicted against real

{count} reports with {total} layers; for {agreeing} of them the rules predict what the board did. A report shows few
properties of a layer; the others are those of the named probe. Rules with a star were inferred from builder logs, some
of them from these reports, so agreement with them confirms nothing.
"""

_CONTRIBUTE = """
## Contribute

Pack a kit (`dryfit board pack --probes all --platform YOUR-BOARD`), run it on the board, and write an overlay with
`dryfit board learn results.zip --author NAME -o my-board.toml`. Add the overlay to `docs/boards/overlays` and run
`make docs`: its confirmed and changed rules then appear here. `make test` checks that each file in the folder matches
[the overlay schema](overlay.schema.json), names its author and source, names existing rules, and does not contradict
another file for the same board and version. An overlay contains nothing from your model, only rule ids, counts and
numbers.

A report is one file in `docs/boards/reports`: board, version, source, a sentence about what it shows, and for each
layer the corresponding probe, the board's verdict and the rule that the board's message names
([schema](board-report.schema.json)). Record facts only; do not copy logs or text.
"""


def boards_page() -> str:
    """The page, in Markdown."""
    found = [prediction for report in reports() for prediction in predictions(report)]
    return "".join((_HEAD, _confirmed(found), _overlays(overlays()), _compared(found), _CONTRIBUTE))


def _confirmed(found: Sequence[Prediction]) -> str:
    named: dict[str, list[Prediction]] = {}
    for one in found:
        if one.layer.named and one.agrees:
            named.setdefault(one.layer.named, []).append(one)
    rows = []
    for rule, several in sorted(named.items()):
        star, layers = "*" if _is_from_logs(rule) else "", sum(one.layer.count for one in several)
        rows.append(f"| `{rule}`{star} | {_boards(several)} | {layers} | {_sources(several)} |\n")
    return _NAMED_HEAD + "".join(rows)


def _boards(several: Sequence[Prediction]) -> str:
    return "; ".join(dict.fromkeys(f"{one.report.board}, {one.report.software}" for one in several))


def _sources(several: Sequence[Prediction]) -> str:
    return ", ".join(dict.fromkeys(_link(one.report) for one in several))


def _link(report: Report) -> str:
    place = report.source.removeprefix("https://").removeprefix("github.com/")
    thread, _, number = place.replace("/pull/", "/issues/").partition("/issues/")
    repository, _, path = place.partition("/blob/")
    name = f"{thread}#{number}" if number else f"{repository}, {path.partition('/')[2]}"
    return f"[{name}]({report.source})"


def _overlays(found: Sequence[Overlay]) -> str:
    head = "\n## Overlays\n\n"
    if not found:
        return f"{head}None yet: every row on this page comes from a public report.\n"
    rows = []
    for one in found:
        confirmed = [(rule, "as documented", fact.layers) for rule, fact in one.confirmed.items()]
        changed = [(rule, change.text, change.layers) for rule, change in one.rules.items()]
        rows += [
            f"| `{rule}` | {text} | {one.board_text} | {layers} | {one.name} by {one.author}: {one.source} |\n"
            for rule, text, layers in sorted([*confirmed, *changed])
        ]
    return f"{head}| rule | on the board | board | layers | overlay |\n|---|---|---|---|---|\n{''.join(rows)}"


def _compared(found: Sequence[Prediction]) -> str:
    agreeing = sum(one.layer.count for one in found if one.agrees)
    total = sum(one.layer.count for one in found)
    count = len({one.report.name for one in found})
    parts = [_COMPARED_HEAD.format(count=count, total=total, agreeing=agreeing)]
    by_report: dict[str, list[Prediction]] = {}
    for one in found:
        by_report.setdefault(one.report.name, []).append(one)
    for several in by_report.values():
        report = several[0].report
        parts.append(
            f"\n### {report.title[:1].upper()}{report.title[1:]}: {report.board}\n\n"
            f"{report.words}{f' {report.assumed}' if report.assumed else ''} "
            f"Source: {_link(report)}. Predicted for `{report.platform}`, {report.software}, {report.precision}.\n\n"
            "| layer | layers | probe | on the board | predicted | outcome |\n|---|---|---|---|---|---|\n"
        )
        parts += [
            f"| `{one.layer.layer}` | {one.layer.count} | `{one.layer.probe}` | {_real(one.layer)} | {_told(one)} | "
            f"{'agrees' if one.agrees else '**differs**'} |\n"
            for one in several
        ]
    return "".join(parts)


def _real(layer: ReportedLayer) -> str:
    return f"{layer.verdict}: `{layer.named}`" if layer.named else layer.verdict


def _is_from_logs(rule: str) -> bool:
    """Whether a rule was inferred from what builders print."""
    table = registry.target(DLA).limits
    return table is not None and REPORTS in table.rule(rule).source


def _told(one: Prediction) -> str:
    rules = ", ".join(f"`{rule}`{'*' if _is_from_logs(rule) else ''}" for rule in one.violations)
    return f"{one.predicted}: {rules}" if rules else one.predicted
