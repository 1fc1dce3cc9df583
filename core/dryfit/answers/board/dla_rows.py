"""Rows of a profile that belong to the DLA: its segments, and copies into and out of its memory.

TensorRT runs a segment asynchronously: the row of the segment is the time of handing it over, and the time that the DLA
takes is in the row of the first tensor that is copied back, which waits for it. A public profile of TensorRT on Orin
shows a segment with 0.0085 ms, its first output with 7.6931 ms, and the next ones with about 0.01 ms each
(NVIDIA/TensorRT issue 3143). Without such rows, as with tensors that need no copy, the segment's row has its time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from dryfit.answers.board.gpu_layers import is_segment
from dryfit.attrs_classes import frozen
from dryfit.board.results import MeasuredLayer

_COPY = re.compile(r"(?P<tensor>.+) (?P<how>to nvm|from nvm|copy finish)")


@frozen
class DlaRow:
    """A measured part of a run.

    Attributes:
        name: name of the segment, or of the row of a copy.
        microseconds: measured time.
        is_segment: whether it is a segment; else it is a copy.
        tensor: the tensor whose copy the time includes; "" for none.
    """

    name: str
    microseconds: float
    is_segment: bool
    tensor: str = ""


def dla_rows(profile: Iterable[MeasuredLayer]) -> list[DlaRow]:
    """Return the segments and copies of a profile.

    Where segments follow each other without a copy between them, the profile does not show the time of each, and they
    are left out.
    """
    found: list[DlaRow] = []
    handed_over: list[MeasuredLayer] = []
    alone: list[MeasuredLayer] = []
    has_copies = False
    for row in profile:
        copy = _COPY.fullmatch(row.name)
        has_copies |= copy is not None
        if is_segment(row.name):
            handed_over.append(row)
            alone.append(row)
        elif copy is not None and copy["how"] == "from nvm" and handed_over:
            if len(handed_over) == 1:
                [segment] = handed_over
                whole = segment.microseconds + row.microseconds
                found.append(DlaRow(segment.name, whole, is_segment=True, tensor=copy["tensor"]))
            handed_over = []
        elif copy is not None and copy["how"] != "copy finish":
            found.append(DlaRow(row.name, row.microseconds, is_segment=False, tensor=copy["tensor"]))
    if not has_copies:
        found = [DlaRow(one.name, one.microseconds, is_segment=True) for one in alone]
    return found
