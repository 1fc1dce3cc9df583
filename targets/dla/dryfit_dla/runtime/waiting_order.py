"""Whether a submission would wait for itself, by way of others: looked at when it is made, so that no core ever stops.

A submission waits for the one before it on its core and for the signallers of its events. An event has one signaller,
so a circle stays one for ever, and it is closed by the last of its submissions: that one is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

from dryfit_dla.runtime.event import Event
from dryfit_dla.runtime.submission import Stage, Submission


def event_in_circle(waits: Sequence[Event], signals: Sequence[Event], before: Submission | None) -> Event | None:
    """An event that a submission would signal and that has to happen before it can begin; None where there is none.

    Args:
        waits: the events that it waits for.
        signals: the events that it signals.
        before: the last submission of its core that has not ended.
    """
    own = set(signals)
    for event in waits:
        if event in own:
            return event
    if not any(event.is_awaited for event in signals):
        return None
    reached = set[Submission]()
    open_ends = [before, *(event.signaller for event in waits)]
    while open_ends:
        submission = open_ends.pop()
        if submission is None or submission in reached or submission.stage is Stage.ENDED:
            continue
        reached.add(submission)
        for event in submission.waits:
            if event in own:
                return event
            open_ends.append(event.signaller)
        open_ends.append(submission.before)
    return None
