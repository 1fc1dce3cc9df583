"""Files of ranges looked at: what is wrong with one, how two of them differ, and one file of several.

Every finding is given at once, for a file alone and for a model; none of them is an exception.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator, Mapping, Sequence

from dryfit.attrs_classes import frozen
from dryfit.errors import CalibrationError
from dryfit.network.network import Network
from dryfit.quantization.cache_document import MODEL
from dryfit.quantization.calibrator import Solution
from dryfit.quantization.scale_table import ScaleTable, scale_table
from dryfit.quantization.stored_ranges import Flaw, StoredRange, StoredRanges
from dryfit.short_text import count_text

TENSORRT_NAMES = ("(Unnamed Layer*", "(Unnamed ITensor*")
"""How names begin that TensorRT gives to tensors without one. Source: published caches."""

OWN_SHARE = 0.5
"""A file of whose names fewer than this share are the model's is another model's. Our choice: caches of a model have
names of constants and of fused layers beside its tensors; those of another have a few chance names such as `input`."""


class FindingKind(enum.StrEnum):
    """What a finding is about; the values are the words of `dryfit cache check --fail-on`."""

    DAMAGED = "damaged"
    """A place in the file that cannot be read."""
    DUPLICATE = "duplicate"
    """An entry of a tensor that has one already."""
    NEGATIVE = Flaw.NEGATIVE.value
    """A scale below zero, or minus zero."""
    NOT_FINITE = Flaw.NOT_FINITE.value
    """A scale that is NaN or infinite."""
    ZERO = Flaw.ZERO.value
    """A scale of zero, which means none."""
    FOREIGN = "foreign"
    """The file is another model's."""
    MISSING = "missing"
    """A tensor of the model without a scale, which does not follow from others either."""
    UNKNOWN = "unknown"
    """A scale of a tensor that the model does not have."""
    UNNAMED = "unnamed"
    """A scale under a name that TensorRT made up, and that no other tool can match."""


@frozen
class CacheFinding:
    """One thing that is wrong with a file.

    Attributes:
        kind: what it is about; see `FINDING_TITLES`.
        tensor: the name in the file or the model; empty where the finding is about none.
        place: where in the file; empty where it is about none.
        text: the rest.
    """

    kind: str
    tensor: str
    place: str
    text: str


def findings_in_file(stored: StoredRanges) -> Iterator[CacheFinding]:
    """What is wrong with a file whatever the model is."""
    for damage in stored.damages:
        allowed = f"; allowed: {damage.allowed}" if damage.allowed else ""
        yield CacheFinding(FindingKind.DAMAGED, "", damage.place, f"{damage.message}: {damage.found}{allowed}")
    first = stored.by_name
    for entry in stored.repeated:
        text = f"{first[entry.name].place} has scale {first[entry.name].scale:.7g}, this has {entry.scale:.7g}"
        yield CacheFinding(FindingKind.DUPLICATE, entry.name, entry.place, text)
    for entry in stored.entries:
        if entry.flaw is not None:
            yield CacheFinding(
                FindingKind(entry.flaw.value), entry.name, entry.place, f"its scale is {entry.scale:.7g}"
            )


def findings_for_model(stored: StoredRanges, network: Network, digest: str | None = None) -> Iterator[CacheFinding]:
    """What is wrong with a file as the one of a model.

    Args:
        stored: the file; of what occurs twice the first entry counts.
        network: the model.
        digest: `sha256:` and the digest of the model's file, to compare with the one that the file may tell.
    """
    entries = stored.by_name
    named = [name for name in entries if not name.startswith(TENSORRT_NAMES) or network.find_tensor(name)]
    strange = [name for name in named if network.find_tensor(name) is None]
    told = stored.facts.get(MODEL)
    if named and len(named) - len(strange) < OWN_SHARE * len(named):
        text = f"the model has {len(named) - len(strange)} of its {len(named)} tensors"
        yield CacheFinding(FindingKind.FOREIGN, "", "", text)
    elif digest is not None and told is not None and told != digest:
        yield CacheFinding(FindingKind.FOREIGN, "", "", f"it was calibrated for the file {told}, and this is {digest}")
    for missing in stored_scale_table(stored, network).missing:
        # What has an entry without a scale is a finding already.
        if missing.tensor not in entries:
            wanted = f"required by {', '.join(missing.needed_by)}" if missing.needed_by else "not required by any layer"
            yield CacheFinding(FindingKind.MISSING, missing.tensor, "", wanted)
    for name in strange:
        yield CacheFinding(FindingKind.UNKNOWN, name, entries[name].place, "the model has no tensor with this name")
    for name, entry in entries.items():
        if name.startswith(TENSORRT_NAMES) and network.find_tensor(name) is None:
            yield CacheFinding(FindingKind.UNNAMED, name, entry.place, "the name was generated by TensorRT")


def stored_scale_table(stored: StoredRanges, network: Network) -> ScaleTable:
    """The scales that the tensors of a model have by a file, those that follow from others included.

    Groups keep the ranges that the file has: it is looked at as it is.
    """
    solutions: Mapping[str, Solution] = {
        name: Solution(entry.dynamic_range) for name, entry in stored.by_name.items() if entry.dynamic_range is not None
    }
    return scale_table(network, solutions, shares_ranges=False)


# How two differ -------------------------------------------------------------------------------------------------------
@frozen
class ScaleDifference:
    """A tensor with two scales.

    Attributes:
        tensor: its name.
        first, second: the scales; 0.0 for none.
    """

    tensor: str
    first: float
    second: float

    @property
    def ratio(self) -> float:
        """The larger scale divided by the smaller, above 1; infinite where one is 0."""
        smaller, larger = sorted((self.first, self.second))
        return larger / smaller if smaller else math.inf


@frozen
class CacheComparison:
    """How two files differ.

    Attributes:
        changed: tensors of both with different scales, the largest ratio first, then in the order of the first file.
        removed: names that only the first file has.
        added: names that only the second file has.
        equal: how many tensors have the same scale in both.
    """

    changed: Sequence[ScaleDifference]
    removed: Sequence[str]
    added: Sequence[str]
    equal: int

    @property
    def largest_ratio(self) -> float:
        """The largest ratio of two scales; 1.0 where all are equal."""
        return max((one.ratio for one in self.changed), default=1.0)


def compare(first: StoredRanges, second: StoredRanges) -> CacheComparison:
    """How the scales of two sound files differ."""
    before, after = first.by_name, second.by_name
    both = [name for name in before if name in after]
    differences = [ScaleDifference(name, before[name].scale, after[name].scale) for name in both]
    changed = [one for one in differences if one.first != one.second]
    return CacheComparison(
        sorted(changed, key=lambda one: -one.ratio),
        [name for name in before if name not in after],
        [name for name in after if name not in before],
        len(both) - len(changed),
    )


# One of several -------------------------------------------------------------------------------------------------------


class ConflictRule(enum.Enum):
    """Which of two scales of one tensor counts; the values are the words of `dryfit cache merge --on-conflict`."""

    REFUSE = "refuse"
    """Neither: it is an error."""
    FIRST = "first"
    """That of the file that is named first."""
    LAST = "last"
    WIDEST = "widest"
    """The larger one, with which nothing is cut off that either keeps."""


@frozen
class Merged:
    """One file of several.

    Attributes:
        stored: its entries, in the order in which they come first. First line and form are the first file's, facts
            those that all files tell alike.
        conflicts: tensors with several scales, each with the numbers of the files (from 0) and their entries.
    """

    stored: StoredRanges
    conflicts: Mapping[str, Sequence[tuple[int, StoredRange]]]


def merge(files: Sequence[tuple[str, StoredRanges]], rule: ConflictRule = ConflictRule.REFUSE) -> Merged:
    """One file of several sound ones.

    A tensor that has no scale in one file and one in another has that; this is no conflict, and neither are equal
    scales.

    Args:
        files: names and contents; at least one.
        rule: what counts in a conflict.

    Raises:
        CalibrationError: there is no file, or there are conflicts and the rule is to refuse them; all are told.
    """
    if not files:
        raise CalibrationError("At least one file is required", remedy="Pass the files to merge")
    stated: dict[str, list[tuple[int, StoredRange]]] = {}
    for index, (_, stored) in enumerate(files):
        for entry in stored.entries:
            stated.setdefault(entry.name, []).append((index, entry))
    conflicts: dict[str, Sequence[tuple[int, StoredRange]]] = {}
    entries = []
    for name, several in stated.items():
        scaled = [(index, entry) for index, entry in several if entry.dynamic_range is not None]
        if len({entry.scale for _, entry in scaled}) > 1:
            conflicts[name] = scaled
        entries.append(_chosen([entry for _, entry in scaled or several], rule))
    if conflicts and rule is ConflictRule.REFUSE:
        raise _conflict_error([name for name, _ in files], conflicts)
    first = files[0][1]
    facts = {
        key: value
        for key, value in first.facts.items()
        if all(key in stored.facts and stored.facts[key] == value for _, stored in files)
    }
    return Merged(StoredRanges(entries, first.form, first.header, facts), conflicts)


def _chosen(entries: Sequence[StoredRange], rule: ConflictRule) -> StoredRange:
    match rule:
        case ConflictRule.LAST:
            return entries[-1]
        case ConflictRule.WIDEST:
            return max(entries, key=lambda entry: entry.scale)
        case _:
            return entries[0]


def _conflict_error(
    names: Sequence[str], conflicts: Mapping[str, Sequence[tuple[int, StoredRange]]]
) -> CalibrationError:
    told = [
        f"{tensor!r}: " + ", ".join(f"{entry.scale:.7g} in {names[index]}" for index, entry in several)
        for tensor, several in conflicts.items()
    ]
    words = ", ".join(one.value for one in ConflictRule if one is not ConflictRule.REFUSE)
    return CalibrationError(
        "The files have different scales for the same tensors",
        where=f"{count_text(len(conflicts), 'tensor')}",
        found="; ".join(told),
        remedy=f"Choose which scale to keep: --on-conflict {words}",
    )
