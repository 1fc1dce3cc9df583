"""The record of one known message: what it looks like, what it means, which rule it reports, and what helps."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import attrs

from dryfit.attrs_classes import frozen

FALLBACK, REASON, REFUSAL, PROBLEM, CONSEQUENCE, MEMORY, NOTE = (
    "fallback",
    "reason",
    "refusal",
    "problem",
    "consequence",
    "memory",
    "note",
)
ROLES = (FALLBACK, REASON, REFUSAL, PROBLEM, CONSEQUENCE, MEMORY, NOTE)
"""`fallback`: a layer moves to the GPU; `reason`: why the layer that it names, or the next one, cannot run on the DLA;
`refusal`: the same without fallback; `problem`: something else to mend; `consequence`: what follows from an error
before it; `memory`: sizes; `note`: worth knowing."""


def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern; one that begins with a name is only tried at the beginning of a line, or after its code."""
    begins_with_name = pattern.startswith(("(?P<layer>", "(?P<text>"))
    return re.compile(rf"^(?:\d+: )?{pattern}" if begins_with_name else pattern)


@frozen(kw_only=True)
class KnownMessage:
    """A message of TensorRT or of trtexec.

    Patterns are our own: they match what the message states and leave out what differs between versions.

    Attributes:
        id: stable name.
        role: one of `ROLES`.
        anchor: words that each such line has; the pattern is only tried on lines with them.
        pattern: regular expression with the groups `layer`, `kind` (TensorRT's layer type), `operation`, `tensor`,
            `limit` and `found`, as far as the message has them.
        versions: TensorRT versions in whose logs the message was seen.
        meaning: what it means, in one sentence.
        rules: ids of the rules that it reports; the first is the one that all versions have.
        operation_rules: more rules, by the operation that the message names.
        remedy: what helps; "" where the remedies of the rules are enough.
        source: threads and documents with the message.
    """

    id: str
    role: str
    anchor: str
    pattern: re.Pattern[str] = attrs.field(converter=_compiled)
    versions: str
    meaning: str
    rules: Sequence[str] = ()
    operation_rules: Mapping[str, Sequence[str]] = attrs.field(factory=dict)
    remedy: str = ""
    source: str = ""

    def rules_for(self, operation: str) -> Sequence[str]:
        """Return the rules that the message reports for an operation; "" if it names none."""
        return (*self.rules, *self.operation_rules.get(operation.upper(), ()))


def threads(*places: str) -> str:
    """Return the addresses of GitHub threads, given as `owner/name#number`, separated by commas."""
    return ", ".join(
        f"https://github.com/{name}/issues/{number}" for name, _, number in (place.partition("#") for place in places)
    )
