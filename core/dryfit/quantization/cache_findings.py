"""What is wrong with a file of ranges, alone and for a model: every finding at once, none of them an exception."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping

import attrs

from dryfit.network.network import Network
from dryfit.quantization.cache_document import MODEL
from dryfit.quantization.calibrator import Solution
from dryfit.quantization.scale_table import ScaleTable, scale_table
from dryfit.quantization.stored_ranges import Flaw, StoredRanges

TENSORRT_NAMES = ("(Unnamed Layer*", "(Unnamed ITensor*")
"""How names begin that TensorRT gives to tensors without one. Source: published caches."""

OWN_SHARE = 0.5
"""A file of whose names fewer than this share are the model's is another model's. Our choice: caches of a model have
names of constants and of fused layers beside its tensors; those of another have a few chance names such as `input`."""


class FindingKind(enum.Enum):
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


@attrs.frozen
class Finding:
    """One thing that is wrong.

    Attributes:
        kind: what it is about.
        tensor: the name in the file or the model; "" where it is about none.
        place: in the file, such as `line 3`; "" where it is about none.
        text: the rest.
    """

    kind: FindingKind
    tensor: str
    place: str
    text: str


def findings_in_file(stored: StoredRanges) -> Iterator[Finding]:
    """What is wrong with a file whatever the model is."""
    for damage in stored.damages:
        allowed = f"; allowed: {damage.allowed}" if damage.allowed else ""
        yield Finding(FindingKind.DAMAGED, "", damage.place, f"{damage.message}: {damage.found}{allowed}")
    first = stored.by_name
    for entry in stored.repeated:
        text = f"{first[entry.name].place} has the scale {first[entry.name].scale:.7g}, this has {entry.scale:.7g}"
        yield Finding(FindingKind.DUPLICATE, entry.name, entry.place, text)
    for entry in stored.entries:
        if entry.flaw is not None:
            yield Finding(FindingKind(entry.flaw.value), entry.name, entry.place, f"its scale is {entry.scale:.7g}")


def findings_for_model(stored: StoredRanges, network: Network, digest: str | None = None) -> Iterator[Finding]:
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
        yield Finding(FindingKind.FOREIGN, "", "", text)
    elif digest is not None and told is not None and told != digest:
        yield Finding(FindingKind.FOREIGN, "", "", f"it was found for the file {told}, and this is {digest}")
    for missing in stored_scale_table(stored, network).missing:
        # What has an entry without a scale is a finding already.
        if missing.tensor not in entries:
            wanted = f"wanted by {', '.join(missing.needed_by)}" if missing.needed_by else "wanted by nothing"
            yield Finding(FindingKind.MISSING, missing.tensor, "", wanted)
    for name in strange:
        yield Finding(FindingKind.UNKNOWN, name, entries[name].place, "the model has no such tensor")
    for name, entry in entries.items():
        if name.startswith(TENSORRT_NAMES) and network.find_tensor(name) is None:
            yield Finding(FindingKind.UNNAMED, name, entry.place, "TensorRT made the name up")


def stored_scale_table(stored: StoredRanges, network: Network) -> ScaleTable:
    """The scales that the tensors of a model have by a file, those that follow from others included.

    Groups keep the ranges that the file has: it is looked at as it is.
    """
    solutions: Mapping[str, Solution] = {
        name: Solution(entry.dynamic_range) for name, entry in stored.by_name.items() if entry.dynamic_range is not None
    }
    return scale_table(network, solutions, shares_ranges=False)
