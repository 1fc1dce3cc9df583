"""`dryfit migrate`: the uses in a script that a newer TensorRT removed or changed, and what to write instead."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal

import attrs

from dryfit.answers.conditions import FailCondition, Outcome, Subjects
from dryfit.answers.json_data import Count
from dryfit.answers.text import Answer, Block, Entries, Line
from dryfit.attrs_classes import frozen
from dryfit.errors import ConfigError
from dryfit_tensorrt.script_uses import Use, keywords_of, uses_of
from dryfit_tensorrt.settings import ApiLevel, api_level
from dryfit_tensorrt.surface.changes import (
    BEHAVIOR,
    DEPRECATED,
    IMPLICIT_BATCH,
    REMOVED,
    REMOVED_SINCE,
    SIGNATURES,
    SOURCES,
    STRONG_TYPING,
    Advice,
)
from dryfit_tensorrt.surface.class_parents import PARENTS
from dryfit_tensorrt.surface.tables import Member, classes, enumerations

Kind = Literal["removed", "changed", "deprecated"]

KINDS: Mapping[Kind, str] = {
    "removed": "names that the newer version does not have",
    "changed": "uses that do something else in the newer version, or need other arguments",
    "deprecated": "names that the newer version discourages",
}
"""Kind of a finding to what it is."""

SUBJECTS = Subjects({**{str(kind): text for kind, text in KINDS.items()}, "findings": "all of these"})
"""What `--fail-on` may look at."""


@frozen
class MigrationFinding:
    """One use that needs a change.

    Attributes:
        line: line in the script.
        column: column in the script, from 1.
        use: the source of the use.
        name: class and member in TensorRT's API.
        kind: `removed`, `changed` or `deprecated`.
        since: version of TensorRT with the change.
        text: what changed.
        instead: what to write in the newer version.
        translation: what dryfit translates; empty for nothing.
        source: document that lists the change; empty for none.
        certain: whether the class follows from the script; if not, it was guessed from the variable's name.
        guard: condition under which the use runs, if that tests the version or whether the name exists; empty for none.
    """

    line: Count
    column: Count
    use: str
    name: str
    kind: Kind
    since: str
    text: str
    instead: str
    translation: str = ""
    source: str = ""
    certain: bool = True
    guard: str = ""

    @property
    def counts(self) -> bool:
        """Whether the script needs a change for it: what tests for the version first does not."""
        return not self.guard


@frozen
class MigrationSummary:
    """Counts over a script, without the uses that a test of the version guards.

    Attributes:
        removed: number of uses of names that the newer version does not have.
        changed: number of uses that do something else there, or need other arguments.
        deprecated: number of uses of names that it discourages.
        findings: sum of these.
        guarded: number of further uses that a test of the version guards.
    """

    removed: Count
    changed: Count
    deprecated: Count
    findings: Count
    guarded: Count


@frozen(repr=False)
class MigrateAnswer(Answer):
    """What a script needs for a newer version of TensorRT.

    Attributes:
        script: path of the script.
        from_version: version that the script was written for.
        to_version: version that it moves to.
        uses_tensorrt: whether the script imports TensorRT.
        findings: uses that need a change, in the script's order.
        summary: totals of the findings.
        conditions: results of the requested conditions, in the requested order.
    """

    COMMAND: ClassVar[str] = "migrate"

    script: str
    from_version: str
    to_version: str
    uses_tensorrt: bool
    findings: Sequence[MigrationFinding]
    summary: MigrationSummary
    conditions: Sequence[Outcome] = ()

    def blocks(self, *, verbose: bool = False) -> Iterator[Block]:
        """Return the findings by kind, and what dryfit translates; with `verbose`, what is guarded as well."""
        counted = [one for one in self.findings if one.counts]
        for kind in KINDS:
            found = [one for one in counted if one.kind == kind]
            if found:
                yield Entries(kind.capitalize(), [_entry(one) for one in found])
        translations: dict[str, list[int]] = {}
        for one in counted:
            if one.translation:
                translations.setdefault(one.translation, []).append(one.line)
        if translations:
            entries = [(_lines(lines), text, "") for text, lines in translations.items()]
            yield Entries("What dryfit translates", entries)
        guarded = [one for one in self.findings if not one.counts]
        if guarded and verbose:
            yield Entries("Guarded by a test of the version", [_entry(one) for one in guarded])
        yield Line(self.summary_line())

    def summary_line(self) -> str:
        """Return a one-line summary of the counts."""
        one = self.summary
        title = f"{self.script}, TensorRT {self.from_version} to {self.to_version}"
        if not self.uses_tensorrt:
            return f"{title}: the script does not import tensorrt"
        counts = [f"{getattr(one, kind)} {kind}" for kind in KINDS if getattr(one, kind)]
        guarded = f"; {one.guarded} guarded by a test of the version" if one.guarded else ""
        return f"{title}: {', '.join(counts) or 'nothing to change'}{guarded}"


def _entry(one: MigrationFinding) -> tuple[str, str, str]:
    guess = "" if one.certain else " (by the variable's name)"
    guard = f", if {one.guard}" if one.guard else ""
    return f"line {one.line}", f"{one.use}: {one.text}{guess}{guard}", one.instead


def _lines(lines: Sequence[int]) -> str:
    several = list(dict.fromkeys(lines))
    return f"{'line' if len(several) == 1 else 'lines'} {', '.join(map(str, several))}"


def migrate(
    script: str | Path,
    from_version: str = "8.6",
    to_version: str = "11.1",
    fail_on: str | Sequence[str | FailCondition] = (),
) -> MigrateAnswer:
    """List what of a script a newer version of TensorRT removed or changed. The script does not run.

    Args:
        script: path of a Python file.
        from_version: version that the script was written for.
        to_version: version that it moves to.
        fail_on: conditions, such as `"removed"`; see `MigrateAnswer.conditions`.

    Raises:
        UnknownNameError: dryfit does not have a version.
        ConfigError: the versions are not in order, or the file is not a Python script.
    """
    older, newer = api_level(from_version), api_level(to_version)
    if _numbers(older) >= _numbers(newer):
        raise ConfigError(
            "--to must be a newer version than --from",
            found=f"from {older.name} to {newer.name}",
            allowed="a version newer than --from",
            remedy="Swap --from and --to, or choose another version",
        )
    conditions = SUBJECTS.conditions(fail_on)
    uses = _uses(Path(script))
    findings = [] if uses is None else [*_findings(uses, older, newer)]
    counted = [one for one in findings if one.counts]
    numbers = {kind: sum(one.kind == kind for one in counted) for kind in KINDS}
    summary = MigrationSummary(**numbers, findings=len(counted), guarded=len(findings) - len(counted))
    outcomes = [one.outcome(getattr(summary, one.subject)) for one in conditions]
    return MigrateAnswer(str(script), older.name, newer.name, uses is not None, findings, summary, outcomes)


def _numbers(level: ApiLevel) -> tuple[int, ...]:
    return tuple(map(int, level.name.split(".")))


def _uses(path: Path) -> list[Use] | None:
    try:
        return uses_of(path.read_text(encoding="utf-8"), str(path))
    except (SyntaxError, ValueError) as error:
        place = f", line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        raise ConfigError(
            "The file is not a Python script",
            where=f"{path}{place}",
            found=error.msg if isinstance(error, SyntaxError) else str(error),
            remedy="Use a Python 3 script; convert Python 2 scripts with 2to3 first",
        ) from error


class _Versions:
    """What two versions have.

    Args:
        older, newer: the versions.
    """

    def __init__(self, older: ApiLevel, newer: ApiLevel) -> None:
        self.older, self.newer = older, newer
        self.majors = int(older.name.partition(".")[0]), int(newer.name.partition(".")[0])
        self.classes = tuple(map(classes, self.majors))
        self.enumerations = tuple(map(enumerations, self.majors))

    def has(self, name: str, index: int) -> bool:
        """Whether the older (0) or newer (1) version has a class or an enumeration."""
        return name in self.classes[index] or name in self.enumerations[index]

    def member(self, owner: str, name: str, index: int) -> Member | None:
        """Return a member of a class, or of the classes that it derives from; None if there is none."""
        kind: str | None = owner
        while kind is not None:
            found = self.classes[index].get(kind, {}).get(name)
            if found is not None:
                return found
            kind = PARENTS.get(kind)
        return None

    def advice(self, owner: str, member: str = "") -> Advice:
        """Return what to write instead of a class or a member that is gone."""
        later = REMOVED_SINCE.get(f"{owner}.{member}")
        found = REMOVED.get(owner) or _known(owner, member) or Advice("10.0", "Look it up in the migration guide")
        return found if later is None or not self.is_between(later.since) else attrs.evolve(later, since=found.since)

    def is_between(self, since: str) -> bool:
        """Whether a change is newer than the older version and not newer than the newer one."""
        numbers = tuple(map(int, since.split(".")))
        return _numbers(self.older) < numbers <= _numbers(self.newer)


_CALLBACKS = {"IOutputAllocator"}
"""Classes whose methods a newer version has as names to override, which its table does not list."""


def _findings(uses: Sequence[Use], older: ApiLevel, newer: ApiLevel) -> Iterator[MigrationFinding]:
    versions = _Versions(older, newer)
    for use in uses:
        found = _integer_finding(use, versions) if use.integer is not None else _finding(use, versions)
        if found is not None:
            yield found


def _finding(use: Use, versions: _Versions) -> MigrationFinding | None:
    """Return what is to be done about a use; None for nothing."""
    owner, member = use.owner, use.member
    if not owner:
        return _module_finding(use, versions)
    name = f"{owner}.{member}"
    members = versions.enumerations[0].get(owner)
    if members is not None:
        newer = versions.enumerations[1].get(owner)
        # A whole enumeration that is gone is reported where it is named.
        if member in members and newer is not None and member not in newer:
            return _removed(use, name, versions)
        return _listed(use, name, versions)
    before, after = versions.member(owner, member, 0), versions.member(owner, member, 1)
    if before is None or owner in _CALLBACKS:
        return None
    if after is None:
        return _removed(use, name, versions) if versions.has(owner, 1) or owner in PARENTS else None
    if use.is_written and after.is_read_only and not before.is_read_only:
        advice = versions.advice(owner, member)
        return _made(use, name, "changed", advice, f"{name} can only be read from {advice.since} on")
    if use.call is not None and _fits(before, use.call) and not _fits(after, use.call):
        advice = SIGNATURES.get(name, Advice(versions.newer.name, "Pass the arguments of the newer version"))
        return _made(use, name, "changed", advice, f"{name} needs other arguments from {advice.since} on")
    if name == "Builder.create_network" and use.call is not None:
        return _network_finding(use, versions)
    return _listed(use, name, versions)


def _module_finding(use: Use, versions: _Versions) -> MigrationFinding | None:
    """A class, an enumeration or a function of the module."""
    name = use.member
    if versions.has(name, 1) or not (versions.has(name, 0) or name in REMOVED):
        return _listed(use, name, versions)
    return _removed(use, name, versions)


def _removed(use: Use, name: str, versions: _Versions) -> MigrationFinding | None:
    advice = versions.advice(*name.split("."))
    if not versions.is_between(advice.since):
        return None
    return _made(use, name, "removed", advice, f"removed in TensorRT {advice.since}")


def _listed(use: Use, name: str, versions: _Versions) -> MigrationFinding | None:
    """What the tables of names say that both versions have: another meaning, a deprecation, a coming removal."""
    if name in BEHAVIOR and versions.is_between(BEHAVIOR[name].since):
        advice = BEHAVIOR[name]
        return _made(use, name, "changed", advice, f"changed in TensorRT {advice.since}")
    if name in DEPRECATED and versions.is_between(DEPRECATED[name].since):
        advice = DEPRECATED[name]
        return _made(use, name, "deprecated", advice, f"deprecated in TensorRT {advice.since}")
    owner, _, member = name.rpartition(".")
    found = _known(owner, member) if owner else REMOVED.get(name)
    if (
        found is not None
        and versions.majors[1] == 10
        and found.since == "11.0"
        and (use.is_written or member != "dtype")
    ):
        return _made(use, name, "deprecated", found, f"deprecated; removed in TensorRT {found.since}")
    return None


def _network_finding(use: Use, versions: _Versions) -> MigrationFinding | None:
    """A network that is created without the flags that newer versions imply."""
    assert use.call is not None  # noqa: S101  the caller has looked
    given = " ".join(ast.unparse(one) for one in (*use.call.args, *(one.value for one in use.call.keywords)))
    if versions.majors[0] == 8 and given in {"", "0"} and versions.is_between(IMPLICIT_BATCH.since):
        return _made(use, "Builder.create_network", "changed", IMPLICIT_BATCH, "changed in TensorRT 10.0")
    if versions.is_between(STRONG_TYPING.since) and "STRONGLY_TYPED" not in given:
        return _made(use, "Builder.create_network", "changed", STRONG_TYPING, "changed in TensorRT 11.0")
    return None


def _integer_finding(use: Use, versions: _Versions) -> MigrationFinding | None:
    """An integer in place of an enumeration's value, whose meaning differs between the versions."""
    before, after = (one.get(use.owner) for one in versions.enumerations)
    if before is None or use.integer is None:
        return None
    old_names, new_names = ({value: name for name, value in (one or {}).items()} for one in (before, after))
    values = [bit for bit in range(64) if use.integer >> bit & 1] if use.is_mask else [use.integer]
    differing = [value for value in values if old_names.get(value) != new_names.get(value)]
    if not differing or not any(value in old_names for value in differing):
        return None
    old, new = versions.older.name, versions.newer.name
    facts = [
        f"{value} is {old_names.get(value, 'nothing')} in {old} and {new_names.get(value, 'nothing')} in {new}"
        for value in differing
    ]
    kept = [old_names[value] for value in values if old_names.get(value) in (after or {})]
    gone = [old_names[value] for value in values if value in old_names and old_names[value] not in (after or {})]
    item = f"1 << int(trt.{use.owner}.{{}})" if use.is_mask else f"trt.{use.owner}.{{}}"
    written = f"Write {' | '.join(f'`{item.format(name)}`' for name in kept)}" if kept else ""
    advice = [versions.advice(use.owner, name) for name in gone]
    dropped = [f"{name}: {one.instead}" for name, one in zip(gone, advice, strict=True)]
    since = min((one.since for one in advice), default="10.0" if versions.majors[1] == 10 else "11.0")
    translation = next((one.translation for one in advice if one.translation), "")
    what = "bit" if use.is_mask else "value"
    told = Advice(since, ". ".join(filter(None, [written, *dropped])), translation)
    return _made(use, use.owner, "changed", told, f"{use.owner} was renumbered: {what} {'; '.join(facts)}")


def _fits(member: Member, call: ast.Call) -> bool:
    """Whether any overload takes the arguments of a call."""
    if any(isinstance(one, ast.Starred) for one in call.args) or any(one.arg is None for one in call.keywords):
        return True
    named = set(keywords_of(call))
    for overload in member.overloads:
        names = [one.name for one in overload]
        given = {*names[: len(call.args)], *named}
        required = {one.name for one in overload if not one.is_optional}
        if len(call.args) <= len(names) and named <= set(names) and required <= given:
            return True
    return not member.overloads


def _known(owner: str, member: str) -> Advice | None:
    """Return the advice for a member, of its own class or of one that it derives from, or for the whole class."""
    kind: str | None = owner
    while kind is not None:
        found = REMOVED.get(f"{kind}.{member}") or REMOVED.get(kind)
        if found is not None:
            return found
        kind = PARENTS.get(kind)
    return None


def _made(use: Use, name: str, kind: Kind, advice: Advice, text: str) -> MigrationFinding:
    return MigrationFinding(
        use.line,
        use.column,
        use.text,
        name,
        kind,
        advice.since,
        text,
        advice.instead,
        advice.translation,
        SOURCES.get(advice.since, ""),
        use.is_certain,
        use.guard,
    )
