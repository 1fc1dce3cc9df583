"""Explain the log of a build on a board: `dryfit.explain_log` and `dryfit explain-log`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, ClassVar, Unpack

import attrs

from dryfit.answers.asked import Model
from dryfit.answers.explain_log_text import log_blocks, log_line_of
from dryfit.answers.explain_rule import RuleExplanation, all_rules
from dryfit.answers.json_data import Count
from dryfit.answers.log_comparison import LogComparison, compared_with_model
from dryfit.answers.options import Options
from dryfit.answers.text import Answer, Block
from dryfit.attrs_classes import frozen
from dryfit.board.logs.layer_lists import DlaSegment, GpuLayer
from dryfit.board.logs.message import CONSEQUENCE, MEMORY, NOTE, PROBLEM, REASON, KnownMessage
from dryfit.board.logs.raw_lines import read_lines
from dryfit.board.logs.reading import BoardLog, FallenLayer, MessageCount, read_log
from dryfit.board.logs.settings import UNFINISHED, LogSettings
from dryfit.engine.progress import ProgressMonitor
from dryfit.errors import ConfigError, ExecutionError
from dryfit.network.layer import LAYER_KINDS
from dryfit.plugins import registry

KIND_RULE = "layer.kind"
"""The rule of a device that does not run layers of some kind, without the device's name."""
_OTHER_LAYERS = (
    "Replace them by layers that the DLA runs; constants and shape computations cost little on the GPU unless they "
    "divide a segment"
)
PHASE = "Reading the log"
"""The phase that a progress monitor receives; its steps are MiB."""
_STEP = 1 << 20


@frozen
class LogBuild:
    """What a log shows about its build; fields that it does not show are empty or None.

    Attributes:
        program: program that wrote the log, such as `trtexec`.
        command: command line of the program.
        outcome: `passed`, `failed` or `unfinished`, by the last line of trtexec or of a sample.
        runs: number of runs of trtexec or of a sample in the log.
        tensorrt: TensorRT version.
        device: name of the selected device.
        platform: platform that the device lines fit.
        precisions: allowed computation types besides FP32.
        dla_core: DLA core.
        fallback: whether fallback to the GPU is allowed.
        standalone: whether the build makes a standalone loadable.
        model: path of the model.
    """

    program: str
    command: str
    outcome: str
    runs: Count
    tensorrt: str
    device: str
    platform: str | None
    precisions: Sequence[str]
    dla_core: int | None
    fallback: bool | None
    standalone: bool
    model: str


@frozen
class ReportedRule:
    """A rule of dryfit that a message of a log reports.

    Attributes:
        rule: id of the rule, for `dryfit explain-rule`.
        text: what the rule requires; "" if its device's package is not installed.
        remedy: how to fix a violation.
        source: document and section.
    """

    rule: str
    text: str
    remedy: str
    source: str


@frozen
class LogLayer:
    """A layer that the log moves from the DLA to the GPU.

    Attributes:
        name: name of the layer in the log.
        kind: TensorRT's type of the layer; "" if the log does not show it.
        line: number of the first line about it.
        refused: whether the build fails because of it.
        messages: ids of the messages about it.
        rules: ids of the rules that these messages report.
    """

    name: str
    kind: str
    line: Count
    refused: bool
    messages: Sequence[str]
    rules: Sequence[str]


@frozen
class LogCause:
    """A reason why layers left the DLA, with all of its layers.

    Attributes:
        message: id of the message.
        operation: operation that the message names, or the log's own words for a reason that is not known; "" for none.
        kind: TensorRT's type of the layers, if the message states nothing else about the reason; "" otherwise.
        meaning: what the message means.
        versions: TensorRT versions in whose logs it was seen.
        rules: rules of dryfit that it reports.
        remedy: what would help.
        source: where the message is documented or was seen.
        layers: names of the layers.
    """

    message: str
    operation: str
    kind: str
    meaning: str
    versions: str
    rules: Sequence[ReportedRule]
    remedy: str
    source: str
    layers: Sequence[str]


@frozen
class LogProblem:
    """A known warning, error or remark that is not about a single layer's device.

    Attributes:
        message: id of the message.
        severity: severity of its first line; "" if that line has none.
        line: number of its first line.
        count: number of lines.
        text: its first line.
        meaning: what the message means.
        rules: rules of dryfit that it reports.
        remedy: what would help; "" for a remark or a consequence of another error.
        source: where the message is documented or was seen.
        names: layers or tensors that the lines name.
    """

    message: str
    severity: str
    line: Count
    count: Count
    text: str
    meaning: str
    rules: Sequence[ReportedRule]
    remedy: str
    source: str
    names: Sequence[str]


@frozen
class UnknownMessage:
    """Warnings or errors that dryfit does not know, and that differ only in names and numbers.

    Attributes:
        severity: severity of the lines; "" for lines without one that report a failure.
        line: number of the first line.
        count: number of lines.
        text: the first line.
    """

    severity: str
    line: Count
    count: Count
    text: str


@frozen
class LogSize:
    """How much of a log was read and understood.

    Attributes:
        lines: number of lines.
        known_lines: number of lines that were understood; the others are information without effect here, output of
            other programs, or `unknown`.
        cut_lines: number of lines that were too long, so that only their beginning was kept.
        dropped: number of entries that were only counted because there were too many.
    """

    lines: Count
    known_lines: Count
    cut_lines: Count
    dropped: Count


@frozen
class Loadables:
    """The segments on the DLA, each of which is one loadable.

    Attributes:
        count: number of segments that the log lists; None if it has no list.
        limit: how many a core can load, as far as the log shows.
        candidates: number of segments that were meant for the DLA; None if the log does not show it.
        offloaded: number of these that became loadables.
        over_limit: number of layers on the GPU only because of the limit.
    """

    count: Count | None
    limit: Count | None
    candidates: Count | None
    offloaded: Count | None
    over_limit: Count


@frozen(repr=False, kw_only=True)
class ExplainLogAnswer(Answer):
    """What the log of a build on a board shows, with the rules behind it and what would help.

    Attributes:
        log: path of the log; `<input>` for an open file.
        size: how much was read and understood.
        build: what the log shows about its build.
        fallen: layers that left the DLA, in the order of the log.
        causes: why they left it, the cause of the most layers first.
        segments: segments on the DLA.
        gpu_layers: engine layers on the GPU.
        loadables: counts of the segments, and the limit.
        memory: sizes that the log shows, by what they are.
        problems: known warnings, errors and remarks.
        unknown: warnings and errors that dryfit does not know.
        comparison: where dryfit would have placed layers differently; None without a model.

    Example:
        >>> from io import BytesIO
        >>> log = BytesIO(b"[W] [TRT] DLA only supports FP16 and Int8 precision type. Switching a device type to GPU.")
        >>> answer = dryfit.explain_log(log)
        >>> [(layer.name, layer.rules) for layer in answer.fallen]
        [('a', ['dla.precision', 'dla.types'])]
    """

    COMMAND: ClassVar[str] = "explain-log"

    log: str
    size: LogSize
    build: LogBuild
    fallen: Sequence[LogLayer]
    causes: Sequence[LogCause]
    segments: Sequence[DlaSegment]
    gpu_layers: Sequence[GpuLayer]
    loadables: Loadables
    memory: Mapping[str, str]
    problems: Sequence[LogProblem]
    unknown: Sequence[UnknownMessage]
    comparison: LogComparison | None = None

    def blocks(self, *, verbose: bool = False) -> Iterator[Block]:
        """Return the lines and tables that `dryfit explain-log` prints."""
        return log_blocks(self, verbose=verbose)

    def summary_line(self) -> str:
        """Return a one-line summary of the answer."""
        return log_line_of(self)


def explain_log(
    log: str | os.PathLike[str] | BinaryIO,
    model: Model | None = None,
    *,
    encoding: str | None = None,
    progress: ProgressMonitor | None = None,
    **options: Unpack[Options],
) -> ExplainLogAnswer:
    """Explain a log that trtexec, a builder or a runtime of TensorRT 5 to 10 wrote on a board.

    The log is read line by line, so that its size does not matter. It may be cut off, contain output of other programs,
    and be in UTF-8 or UTF-16. Warnings and errors that are not known are listed, never dropped.

    Args:
        log: path of the log, or a file opened for reading bytes.
        model: the model of the build; with it, the placement in the log is compared with dryfit's.
        encoding: encoding of the log; None to find it.
        progress: monitor that receives the number of MiB that were read, and can cancel.
        options: keyword arguments named like the options of `dryfit check`, for what the log does not show about the
            build, or to override it. They require a model.

    Raises:
        OSError: The log cannot be read.
        ConfigError: The encoding is unknown, or the settings of the log, the options and the model conflict.
        OnnxImportError: The model is corrupt or has unsupported operators.
        UnknownNameError: A device, platform or option value does not exist.
        ExecutionError: `progress` cancelled the work.

    Example:
        >>> from io import BytesIO
        >>> log = BytesIO(b"Default DLA is enabled but layer conv1 is not supported on DLA, falling back to GPU.")
        >>> answer = dryfit.explain_log(log, "digits.onnx")
        >>> [(one.layer, one.log_device, one.dryfit_device) for one in answer.comparison.differences]
        [('conv1', 'GPU', 'DLA')]
    """
    _require_known(encoding)
    if isinstance(log, str | os.PathLike):
        path = Path(log)
        with path.open("rb") as file:
            found = _read(file, path.stat().st_size, encoding, progress)
        name = str(path)
    else:
        name, found = "<input>", _read(log, 0, encoding, progress)
    rules = LogRules.of(found.settings)
    fallen = [log_layer(one, rules) for one in found.fallen.values()]
    return ExplainLogAnswer(
        log=name,
        size=LogSize(found.lines, found.known_lines, found.cut_lines, found.dropped + found.lists.dropped),
        build=_build(found),
        fallen=fallen,
        causes=_causes(found, rules),
        segments=list(found.lists.segments.values()),
        gpu_layers=list(found.lists.gpu.values()),
        loadables=_loadables(found),
        memory={
            name: value
            for one in found.messages.values()
            if one.message.role == MEMORY
            for name, value in one.values.items()
        },
        problems=[
            _problem(one, rules)
            for one in found.messages.values()
            if one.message.role in (PROBLEM, CONSEQUENCE, NOTE, REASON)
        ],
        unknown=[UnknownMessage(one.severity, one.line, one.count, one.text) for one in found.unknown.values()],
        comparison=None if model is None else compared_with_model(found, fallen, model, options),
    )


def _require_known(encoding: str | None) -> None:
    """Reject an encoding that Python does not have.

    Raises:
        ConfigError: It is unknown, or does not make text of bytes.
    """
    try:
        str(b"ab", encoding or "utf-8", "replace")  # nothing is looked up to decode no bytes
    except LookupError as error:
        raise ConfigError(
            "Unknown encoding of the log",
            where="encoding",
            found=encoding,
            allowed="the name of a codec of Python",
            remedy="Use a name of Python's codecs, such as cp1252 or shift_jis, or leave it out",
        ) from error


def _read(file: BinaryIO, size: int, encoding: str | None, progress: ProgressMonitor | None) -> BoardLog:
    """Read a log, and report the bytes read to a monitor.

    Raises:
        ExecutionError: The monitor cancelled the work.
    """
    if progress is None:
        return read_log(read_lines(file, encoding=encoding))
    done = 0

    def watch(read: int) -> None:
        nonlocal done
        while (done + 1) * _STEP <= read:
            if not progress.step_complete(PHASE, done):
                raise ExecutionError(
                    "The progress monitor canceled the work",
                    where=f"phase {PHASE!r}",
                    found=f"step {done}",
                    remedy="Start again, or let step_complete return True",
                )
            done += 1

    progress.phase_start(PHASE, None, -(-size // _STEP))
    try:
        return read_log(read_lines(file, encoding=encoding, watch=watch))
    finally:
        progress.phase_finish(PHASE)


@frozen
class LogRules:
    """The rules of all installed devices, collected when the first one is needed, as far as they hold for a log.

    Attributes:
        version: TensorRT version of the log; empty if it does not show it.
        family: platform family of its board; "" if it does not show it.
    """

    version: tuple[int, ...] = ()
    family: str = ""
    _known: dict[str, RuleExplanation] = attrs.field(factory=dict)

    @classmethod
    def of(cls, settings: LogSettings) -> LogRules:
        """Return the rules for what a log shows about its build."""
        version = tuple(int(part) for part in settings.version.split(".") if part.isdecimal())
        target = registry.find_target("DLA")
        if target is None or settings.platform is None:
            return cls(version)
        return cls(version, target.platform(settings.platform).family)

    def named(self, rule_ids: Sequence[str]) -> list[ReportedRule]:
        """Return those of these rules that hold for the log; all of them if none does, since the log contradicts it."""
        if rule_ids and not self._known:
            self._known.update({rule.rule: rule for family in all_rules() for rule in family.rules})
        found = [(one, self._known.get(one)) for one in rule_ids]
        holding = [(one, rule) for one, rule in found if rule is None or self._holds(rule)]
        return [
            ReportedRule(one, "", "", "") if rule is None else ReportedRule(one, rule.text, rule.remedy, rule.source)
            for one, rule in holding or found
        ]

    def _holds(self, rule: RuleExplanation) -> bool:
        limit = rule.limit
        if limit is None:
            return True
        if self.family and limit.platform_families and self.family not in limit.platform_families:
            return False
        if not self.version:
            return True
        since, until = _parts(limit.since), _parts(limit.until)
        return (not since or self.version >= since) and (not until or self.version[: len(until)] <= until)


def _parts(version: str | None) -> tuple[int, ...]:
    return () if version is None else tuple(map(int, version.split(".")))


def _build(found: BoardLog) -> LogBuild:
    settings = found.settings
    return LogBuild(
        program=settings.program,
        command=settings.command,
        outcome=settings.outcome if settings.runs or settings.outcome != UNFINISHED else "",
        runs=settings.runs,
        tensorrt=settings.version,
        device=settings.device,
        platform=settings.platform,
        precisions=settings.precisions or (),
        dla_core=settings.dla_core,
        fallback=settings.fallback,
        standalone=settings.is_standalone,
        model=settings.model,
    )


def log_layer(fallen: FallenLayer, rules: LogRules) -> LogLayer:
    """Return a layer that left the DLA, with the rules that hold for the log."""
    reported = dict.fromkeys(
        one.rule
        for (_, operation), message in fallen.messages.items()
        for one in rules.named(message.rules_for(operation))
    )
    messages = dict.fromkeys(message.id for message in fallen.messages.values())
    return LogLayer(fallen.name, fallen.kind, fallen.line, fallen.is_refused, list(messages), list(reported))


def _causes(found: BoardLog, rules: LogRules) -> list[LogCause]:
    """Group the layers that left the DLA by what states the reason: the most specific messages about each."""
    grouped: dict[tuple[str, str, str], tuple[KnownMessage, list[str]]] = {}
    for layer in found.fallen.values():
        stated = {key: one for key, one in layer.messages.items() if one.rules_for(key[1])}
        stated = stated or {key: one for key, one in layer.messages.items() if one.role == REASON}
        kind = "" if stated else layer.kind
        for (_, operation), message in (stated or layer.messages).items():
            grouped.setdefault((message.id, operation, kind), (message, []))[1].append(layer.name)
    causes = [
        _cause(message, operation, kind, layers, rules) for (_, operation, kind), (message, layers) in grouped.items()
    ]
    return sorted(causes, key=lambda cause: -len(cause.layers))


def _cause(message: KnownMessage, operation: str, kind: str, layers: Sequence[str], rules: LogRules) -> LogCause:
    """Return the cause that a message states; one that states none follows from the type of its layers."""
    reported = rules.named(message.rules_for(operation))
    meaning, remedy = message.meaning, message.remedy or _remedy(reported)
    known = _limits_of(kind)
    if known is not None:
        reported = rules.named([known.rule]) if known.rule else []
        meaning, remedy = known.meaning, known.remedy
    return LogCause(message.id, operation, kind, meaning, message.versions, reported, remedy, message.source, layers)


@frozen
class _KindLimits:
    """What is known about layers of a type of which a log only shows that they left the DLA."""

    rule: str
    meaning: str
    remedy: str


def _limits_of(layer_type: str) -> _KindLimits | None:
    """Return what the rules of the DLA state about a type of TensorRT; None for an unknown one."""
    target = registry.find_target("DLA")
    # Plugins have a type for each of their interfaces, such as PLUGIN_V2.
    is_plugin = layer_type.startswith("PLUGIN")
    kinds = ["plugin"] if is_plugin else [kind for kind, cls in LAYER_KINDS.items() if cls.layer_type == layer_type]
    if target is None or target.limits is None or not kinds:
        return None
    why = {kind: target.limits.unsupported.get(kind) for kind in kinds}
    supported = [kind for kind in kinds if not target.limits.lacks(kind)]
    if not supported:
        reason = next((f": {text}" for text in why.values() if text), "")
        rule = f"dla.{KIND_RULE}"
        return _KindLimits(rule, f"Layers of type {layer_type} do not run on the DLA{reason}", _OTHER_LAYERS)
    family = " or ".join(f"`dryfit explain-rule dla.{kind}`" for kind in supported)
    return _KindLimits(
        "",
        f"Layers of type {layer_type} run on the DLA within limits; the log does not state which one is violated",
        f"Pass the model (--model) to see the violated rules; {family} lists the limits",
    )


def _remedy(rules: Sequence[ReportedRule]) -> str:
    return next((rule.remedy for rule in rules if rule.remedy), "")


def _problem(counted: MessageCount, rules: LogRules) -> LogProblem:
    message = counted.message
    reported = rules.named(message.rules)
    return LogProblem(
        message.id,
        counted.severity,
        counted.line,
        counted.count,
        counted.text,
        message.meaning,
        reported,
        message.remedy or _remedy(reported),
        message.source,
        list(counted.names),
    )


def _loadables(found: BoardLog) -> Loadables:
    over = found.messages.get("fallback.loadable_limit")
    candidates = found.messages.get("note.candidates")
    return Loadables(
        count=len(found.lists.segments) if "DLA" in found.lists.headings or found.lists.segments else None,
        limit=int(over.values["limit"]) if over else None,
        candidates=int(candidates.values["limit"]) if candidates else None,
        offloaded=int(candidates.values["found"]) if candidates else None,
        over_limit=over.count if over else 0,
    )
