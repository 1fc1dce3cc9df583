"""Bytes that a target's own function makes of a segment: its compiler a program, its exporter a file.

The function is a stranger's: whatever it raises is told with the segment that it was given, and what it gives is looked
at.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from dryfit.errors import BuildError, DryfitError, PluginError
from dryfit.plugins import registry
from dryfit.target.segments import PlannedSegment
from dryfit.target.target import Target


@attrs.frozen
class SegmentFunction:
    """One of the functions that a target may have for its segments.

    Attributes:
        noun: what it is called.
        verb: what it does with a segment.
        of: the function of a target; None where it has none.
        place: where a target says that it is.
    """

    noun: str
    verb: str
    of: Callable[[Target], Callable[[PlannedSegment], bytes] | None]
    place: Callable[[Target], str | None]


COMPILER = SegmentFunction(
    "compiler", "compile", lambda target: target.compile_segment, lambda target: target.compile_segment_at
)
EXPORTER = SegmentFunction(
    "exporter", "write", lambda target: target.export_segment, lambda target: target.export_segment_at
)


def target_bytes(function: SegmentFunction, planned: PlannedSegment) -> bytes:
    """What a function of its target makes of a segment.

    Raises:
        BuildError: the function refuses the segment, or fails.
        PluginError: the target has no such function, or it gave something else than bytes.
    """
    target = registry.target(planned.device)
    where = f"segment {planned.index} of {planned.device}"
    make = function.of(target)
    if make is None:
        raise PluginError(f"The target has no segment {function.noun}", where=where)
    try:
        made = make(planned)
    except DryfitError:
        raise
    except Exception as error:
        raise BuildError(
            f"The target's {function.noun} could not {function.verb} a segment",
            where=where,
            found=f"{type(error).__name__}: {error}",
            remedy="Put one of its layers on another device, or report it to the makers of the target",
        ) from error
    if not isinstance(made, bytes):
        raise PluginError(
            f"A target's {function.noun} gives bytes",
            where=f"{where}, {function.place(target)}",
            found=type(made).__name__,
        )
    return made
