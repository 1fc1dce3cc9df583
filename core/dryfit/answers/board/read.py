"""Read what a kit found on a board, against what dryfit expects: `dryfit.board_read` and `dryfit board read`."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import attrs

from dryfit.answers.asked import asked, quiet_log
from dryfit.answers.board.evidence import (
    ACCEPTED,
    REFUSED,
    UNKNOWN,
    BoardFact,
    BoardLayer,
    BoardTime,
    BuildEvidence,
    Expected,
    board_facts,
    board_layers,
    board_times,
)
from dryfit.answers.board.outputs import BoardOutput, board_outputs
from dryfit.answers.board.read_text import read_blocks, read_line
from dryfit.answers.explain_rule import RuleExplanation, all_rules
from dryfit.answers.json_data import Count
from dryfit.answers.log_comparison import DLA
from dryfit.answers.options import NetworkOptions, OverlaysSaid
from dryfit.answers.placement import placement_of
from dryfit.answers.text import Answer, Block
from dryfit.attrs_classes import define, frozen
from dryfit.board.kit.archive import Archive
from dryfit.board.kit.manifest import KitBuild
from dryfit.board.logs.reading import BoardLog, read_log
from dryfit.board.results import DONE, BoardFacts, BoardResults
from dryfit.builder.assessment import assessment_of
from dryfit.building import design_for_assessment
from dryfit.errors import ConfigError, DryfitError, UnknownNameError
from dryfit.plugins import registry
from dryfit.target.overlays import Overlay
from dryfit.target.target import Platform

CONFIRMED, SUPPORTED, CONTRADICTED, UNDECIDED = "confirmed", "supported", "contradicted", "undecided"
NOT_OBSERVED = "not observed"


@frozen
class RuleEvidence:
    """What the results show about one rule of the DLA.

    Attributes:
        rule: id of the rule.
        text: what it requires.
        fidelity: its fidelity in dryfit: `documented`, `inferred` or `confirmed`.
        outcome: `confirmed` on this board: layers that violate it were refused for it, and no layer contradicts it;
            `supported`: only layers that satisfy it were seen, and were accepted; `contradicted` by a layer; `not
            observed`: a risk that did not come true; `undecided`: no layer decides.
        refused: number of refused layers that violate it alone, or for which the log reports it.
        accepted: number of accepted layers that satisfy it.
        refused_shared: number of refused layers that violate it and other rules.
        accepted_against: accepted layers that violate it, as `build/layer`; for a risk, layers that run on the DLA.
        refused_against: layers that satisfy it and were refused, and for which the log reports it, as `build/layer`.
        source: document and section of the rule.
    """

    rule: str
    text: str
    fidelity: str
    outcome: str
    refused: Count
    accepted: Count
    refused_shared: Count
    accepted_against: Sequence[str]
    refused_against: Sequence[str]
    source: str

    @property
    def agreeing(self) -> int:
        """Number of layers that agree with the rule."""
        return self.refused + self.accepted


@frozen
class ReadBuild:
    """One build of the kit.

    Attributes:
        build: id of the build.
        title: what it is.
        purpose: `model` or `probe`.
        state: `done`, `failed` or `missing` on the board.
        seconds: duration on the board.
        layers: number of layers whose verdict or device the results show.
        agreeing: number of these for which the rules give the board's verdict.
        same_device: number of these that dryfit places on the board's device.
        options: options with which dryfit was asked.
        notes: what is missing, and what was assumed.
    """

    build: str
    title: str
    purpose: str
    state: str
    seconds: float
    layers: Count
    agreeing: Count
    same_device: Count
    options: Mapping[str, str]
    notes: Sequence[str]


@frozen(repr=False, kw_only=True)
class BoardReadAnswer(Answer):
    """What a board did with the builds of a kit, against what dryfit expects.

    Attributes:
        results: path of the results.
        digest: SHA-256 of the results, by which corrections cite them.
        packed_by: version of dryfit that packed the kit.
        is_anonymous: whether the kit replaced names and weights.
        board: what the kit found out about the board.
        platform: platform whose rules were asked.
        software: version whose rules were asked.
        power_mode: power mode of the estimates; None if dryfit does not know the board's.
        overlays: overlays with which dryfit was asked, each with its board and a digest.
        builds: the builds.
        rules: the rules about which the results say something, contradicted ones first.
        layers: every layer whose verdict or device the results show.
        facts: loadables, copies and forms.
        times: measured times against estimates.
        outputs: outputs of the board against those computed here.
        unexplained: layers that satisfy all rules, and that the board refused without naming one, as `build/layer`.
        notes: what was assumed.
    """

    COMMAND: ClassVar[str] = "board read"

    results: str
    digest: str
    packed_by: str
    is_anonymous: bool
    board: BoardFacts
    platform: str
    software: str
    power_mode: str | None
    overlays: Sequence[str]
    builds: Sequence[ReadBuild]
    rules: Sequence[RuleEvidence]
    layers: Sequence[BoardLayer]
    facts: Sequence[BoardFact]
    times: Sequence[BoardTime]
    outputs: Sequence[BoardOutput]
    unexplained: Sequence[str]
    notes: Sequence[str]

    @property
    def differing(self) -> Sequence[BoardLayer]:
        """The layers for which the rules give another verdict than the board."""
        return [one for one in self.layers if not one.agrees]

    def blocks(self, *, verbose: bool = False) -> Iterator[Block]:
        """Return the lines and tables that `dryfit board read` prints."""
        return read_blocks(self, verbose=verbose)

    def summary_line(self) -> str:
        """Return a one-line summary of the answer."""
        return read_line(self)


def board_read(
    results: str | os.PathLike[str],
    *,
    kit: str | os.PathLike[str] | None = None,
    outputs: bool = True,
    overlays: OverlaysSaid = (),
) -> BoardReadAnswer:
    """Read the results of a kit, and compare them with what dryfit expects of the same builds.

    Board, TensorRT version and power mode are those of the results. Of the user's models, the results have names and
    numbers only: pass the kit, so that dryfit can place them again. Probes are in the results.

    Args:
        results: path of `results.zip`, as the kit packed it on the board.
        kit: path of the kit; None for results of probes alone.
        outputs: whether to compute the outputs here and compare them.
        overlays: corrections of the rules and cost parameters to compare with: overlays, or paths of their files.

    Raises:
        ConfigError: The results or the kit are damaged, or do not belong together.
        UnknownNameError: dryfit does not know the board.
        OSError: A file cannot be read.
    """
    return read_board(results, kit, outputs=outputs, overlays=overlays)[0]


def read_board(
    results: str | os.PathLike[str],
    kit: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    *,
    outputs: bool = False,
    overlays: OverlaysSaid = (),
) -> tuple[BoardReadAnswer, Sequence[BuildEvidence]]:
    """Return the answer of `board_read`, and the builds that dryfit can place. Raises what `board_read` raises."""
    with contextlib.ExitStack() as stack:
        opened = stack.enter_context(BoardResults.open(results))
        archives = [opened.archive]
        kits = [kit] if isinstance(kit, str | os.PathLike) else kit or ()
        opened_kits = [stack.enter_context(Archive.open(one)) for one in kits]
        archives += _same_kit(opened, opened_kits)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dryfit-")))
        logs = {one.id: read_log(opened.log(one)) for one in opened.manifest.builds}
        reading = _Reading(
            opened,
            archives,
            folder,
            _Board.of(opened, list(logs.values())),
            NetworkOptions.said({"overlays": overlays}).overlays,
        )
        for build in opened.manifest.builds:
            reading.add(build, logs[build.id], outputs=outputs)
        return reading.answer(os.fspath(results)), reading.evidence


def _same_kit(results: BoardResults, kits: Sequence[Archive]) -> list[Archive]:
    """Return the kits that the results are of; none where no kit was passed.

    Raises:
        ConfigError: All are other kits.
    """
    same = [one for one in kits if one.manifest == results.manifest]
    if kits and not same:
        raise ConfigError(
            "The results belong to another kit",
            where=", ".join(one.name for one in kits),
            found=", ".join(build.id for one in kits for build in one.manifest.builds)[:200],
            allowed=", ".join(one.id for one in results.manifest.builds)[:200],
            remedy="Pass the kit that was copied to the board",
        )
    return same


@frozen
class _Board:
    """The board as options of dryfit.

    Attributes:
        platform: the platform.
        software: its software version.
        power_mode: its power mode; None if dryfit does not know it.
        notes: what was assumed.
    """

    platform: str
    software: str
    power_mode: str | None
    notes: Sequence[str]

    @classmethod
    def of(cls, results: BoardResults, logs: Sequence[BoardLog]) -> _Board:
        """Return the board of results.

        Raises:
            UnknownNameError: dryfit does not know it.
        """
        notes: list[str] = []
        named = results.manifest.platform
        # A device name without further lines fits several modules.
        shown = [
            one.settings.platform for one in logs if one.settings.multiprocessors or "simul" in one.settings.device
        ]
        name = next((one for one in shown if one is not None), named)
        target = registry.target(DLA)
        platform = target.platform(name)
        if platform.name != target.platform(named).name:
            notes.append(f"The kit was packed for {named}, and the logs are of {platform.name}")
        version = results.board.tensorrt or next((one.settings.version for one in logs if one.settings.version), "")
        try:
            software = target.software(version or None, platform)
        except (ConfigError, UnknownNameError) as error:
            software = target.software(None, platform)
            notes.append(f"There are no rules for TensorRT {version}: the newest ones are used ({error})")
        if not version:
            notes.append("The results do not show TensorRT's version: the newest rules are used")
        mode = _power_mode(results.board.power_mode, platform)
        if mode is None and platform.power_modes:
            shown_mode = results.board.power_mode or "an unknown one"
            notes.append(f"Estimates are for {platform.power_modes[0].name}; the board's power mode is {shown_mode}")
        return cls(platform.name, ".".join(map(str, software)), mode, notes)

    @property
    def options(self) -> dict[str, str]:
        """Options of dryfit for the board."""
        own = {"platform": self.platform, "software": self.software}
        return {**own, "power_mode": self.power_mode} if self.power_mode else own


def _power_mode(shown: str, platform: Platform) -> str | None:
    """Return dryfit's name of a power mode that nvpmodel shows: `MODE_15W`, `15W`, `MODE_15W_4CORE` or `MAXN`."""
    words = shown.upper().removeprefix("MODE_").replace(" ", "_").split("_")
    named = {one.name.upper(): one.name for one in platform.power_modes}
    return named.get("_".join(words)) or (named.get(words[0]) if words[-1] != "SUPER" else None)


class _Reading:
    """Collects what the builds show."""

    def __init__(
        self,
        results: BoardResults,
        archives: Sequence[Archive],
        folder: Path,
        board: _Board,
        overlays: Sequence[Overlay],
    ) -> None:
        self._results, self._archives, self._folder, self._board = results, archives, folder, board
        self._overlays = overlays
        self.evidence: list[BuildEvidence] = []
        self._builds: list[ReadBuild] = []
        self._layers: list[BoardLayer] = []
        self._facts: list[BoardFact] = []
        self._times: list[BoardTime] = []
        self._outputs: list[BoardOutput] = []

    def add(self, build: KitBuild, log: BoardLog, *, outputs: bool) -> None:
        """Take one build.

        Raises:
            ConfigError: A file of the results is damaged.
        """
        state = self._results.state(build)
        notes = [state.note] if state.note else []
        options = {**build.options, **self._board.options}
        layers: list[BoardLayer] = []
        model = next((found for one in self._archives if (found := one.model(build)) is not None), None)
        if model is None:
            notes.append(f"{build.model} is not in the results: pass the kit (--kit) to compare this build")
        elif state.state != "missing":
            try:
                layers = self._compare(build, log, model, options, notes, outputs=outputs and state.state == DONE)
            except DryfitError as error:
                notes.append(f"dryfit cannot place this model: {error}")
        self._layers += layers
        self._builds.append(
            ReadBuild(
                build=build.id,
                title=build.title,
                purpose=build.purpose,
                state=state.state,
                seconds=state.seconds,
                layers=len(layers),
                agreeing=sum(one.agrees for one in layers),
                same_device=sum(one.board_device == (one.device or "none") for one in layers),
                options={name: str(value) for name, value in options.items()},
                notes=notes,
            )
        )

    def _compare(
        self,
        build: KitBuild,
        log: BoardLog,
        model: bytes,
        options: Mapping[str, Any],
        notes: list[str],
        *,
        outputs: bool,
    ) -> list[BoardLayer]:
        given = {**options, "overlays": self._overlays}
        if given.get("calibration_cache"):
            given["calibration_cache"] = self._file(str(given["calibration_cache"]))
        subject = asked(model, None, given, needs_shapes=False)
        with quiet_log():
            design = design_for_assessment(subject.network, subject.config)
            assessment = assessment_of(design, subject.config)
        placement = placement_of(build.model, assessment, subject.config.settings(subject.network))
        expected = Expected(subject.config, design, assessment, placement.layers)
        layers = board_layers(build, log, self._results, expected)
        runs, profile = self._results.runs(build), self._results.profile(build)
        inspected = self._results.layers(build)
        self.evidence.append(BuildEvidence(build.id, expected, layers, runs, profile, inspected))
        self._facts += board_facts(build, log, inspected, expected)
        self._times += board_times(build, self._results, expected)
        if outputs:
            found, told = board_outputs(build, self._results, subject.network, subject.config, design)
            self._outputs += found
            notes += told
        return layers

    def _file(self, name: str) -> Path:
        """Return the path of a file of the kit, which is written to a folder of this call.

        Raises:
            ConfigError: The kit was not passed, or does not contain it.
        """
        holder = next((one for one in self._archives if name in one.files), None)
        if holder is None:
            raise ConfigError("A file of the kit is missing", where=name, remedy="Pass the kit (--kit)")
        path = self._folder / name.rpartition("/")[2]
        path.write_bytes(holder.contents(name))
        return path

    def answer(self, path: str) -> BoardReadAnswer:
        """Return the answer."""
        unexplained = [f"{one.build}/{one.layer}" for one in self._layers if _is_unexplained(one)]
        return BoardReadAnswer(
            results=path,
            digest=self._results.digest,
            packed_by=self._results.manifest.dryfit,
            is_anonymous=self._results.manifest.is_anonymous,
            board=self._results.board,
            platform=self._board.platform,
            software=self._board.software,
            power_mode=self._board.power_mode,
            overlays=[one.label for one in self._overlays],
            builds=self._builds,
            rules=rule_evidence(self._layers),
            layers=self._layers,
            facts=self._facts,
            times=self._times,
            outputs=self._outputs,
            unexplained=unexplained,
            notes=self._board.notes,
        )


# Rules ----------------------------------------------------------------------------------------------------------------


def rule_evidence(layers: Iterable[BoardLayer]) -> list[RuleEvidence]:
    """Count by rule what layers of one or several boards show, contradicted rules first."""
    counts: dict[str, _Counts] = {}
    for one in layers:
        if one.verdict != UNKNOWN:
            _count(one, counts)
    known = {rule.rule: rule for family in all_rules() for rule in family.rules}
    found = [_evidence(known.get(rule), rule, one) for rule, one in sorted(counts.items())]
    order = (CONTRADICTED, CONFIRMED, NOT_OBSERVED, SUPPORTED, UNDECIDED)
    return sorted(found, key=lambda one: order.index(one.outcome))


@define
class _Counts:
    refused: int = 0
    accepted: int = 0
    shared: int = 0
    accepted_against: list[str] = attrs.field(factory=list)
    refused_against: list[str] = attrs.field(factory=list)


def _count(one: BoardLayer, counts: dict[str, _Counts]) -> None:
    place = f"{one.build}/{one.layer}"

    def of(rule: str) -> _Counts:
        return counts.setdefault(rule, _Counts())

    # The builder of a board finds a risk only when it compiles the segment.
    if one.board_device == DLA and not one.violations:
        for rule in one.risks:
            of(rule).accepted_against.append(place)
    elif one.verdict == REFUSED and not one.violations and len(one.risks) == 1:
        of(one.risks[0]).refused += 1
    if one.verdict == ACCEPTED:
        for rule in one.violations:
            of(rule).accepted_against.append(place)
        for checked in one.checked:
            of(checked.rule).accepted += checked.holds
        return
    # What the log reports decides; without it, a layer decides about a rule that it violates alone.
    decided = [rule for rule in one.violations if rule in one.board_rules] or list(one.violations)
    for rule in one.violations:
        of(rule).refused += len(decided) == 1 and rule in decided
        of(rule).shared += len(decided) > 1 or rule not in decided
    if not one.violations and len(one.board_rules) == 1:
        of(one.board_rules[0]).refused_against.append(place)


def _evidence(rule: RuleExplanation | None, name: str, one: _Counts) -> RuleEvidence:
    if rule is not None and rule.severity == "warning" and one.accepted_against and not one.refused:
        outcome = NOT_OBSERVED
    elif one.accepted_against or one.refused_against:
        outcome = CONTRADICTED
    elif one.refused:
        outcome = CONFIRMED
    else:
        outcome = SUPPORTED if one.accepted else UNDECIDED
    return RuleEvidence(
        rule=name,
        text="" if rule is None else rule.text,
        fidelity="" if rule is None else rule.fidelity,
        outcome=outcome,
        refused=one.refused,
        accepted=one.accepted,
        refused_shared=one.shared,
        accepted_against=one.accepted_against,
        refused_against=one.refused_against,
        source="" if rule is None else rule.source,
    )


def _is_unexplained(one: BoardLayer) -> bool:
    return one.verdict == REFUSED and not one.violations and len(one.board_rules) != 1 and len(one.risks) != 1
