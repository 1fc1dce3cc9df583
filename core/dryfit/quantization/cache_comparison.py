"""Two or more files of ranges beside each other: how they differ, and one file of them all."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping, Sequence

import attrs

from dryfit.errors import CalibrationError
from dryfit.quantization.stored_ranges import StoredRange, StoredRanges
from dryfit.short_text import count_text

# How two differ -------------------------------------------------------------------------------------------------------


@attrs.frozen
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


@attrs.frozen
class Comparison:
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


def compare(first: StoredRanges, second: StoredRanges) -> Comparison:
    """How the scales of two sound files differ."""
    before, after = first.by_name, second.by_name
    both = [name for name in before if name in after]
    differences = [ScaleDifference(name, before[name].scale, after[name].scale) for name in both]
    changed = [one for one in differences if one.first != one.second]
    return Comparison(
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


@attrs.frozen
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
        raise CalibrationError("There is no file to merge")
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
        remedy=f"Say which counts: --on-conflict {words}",
    )
