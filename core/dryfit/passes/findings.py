"""What passes return: whether they changed the network, and what became of its quantization.

A pass is given what the passes before it found, which it only reads, and returns what it found itself. The pipeline
joins the two, so that nobody hands a pass something to fill.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from dryfit.attrs_classes import frozen
from dryfit.quantization.rewrites import RewriteJournal


@frozen
class LeftLayer:
    """A layer for which a quantize method is chosen, and that is computed in real numbers.

    Attributes:
        layer: its name.
        method: of the network.
        reason: why, in words.
    """

    layer: str
    method: str
    reason: str

    def __str__(self) -> str:
        return f"{self.layer!r} stays in floating point, without the quantize method {self.method!r}: {self.reason}"


@frozen
class ReplacedGroups:
    """Quantized groups whose places one layer each took, and those that stay.

    Attributes:
        causes: name of each layer that took a group's place to why it is there.
        taken: name of each layer of such a group to the name of the layer that took its place.
        left: layers that the network's quantize method does not compute.
        warnings: other layers that stay as they are though something else could be meant, in words.
        problems: layers that cannot be what the user asks for, in words.
    """

    causes: Mapping[str, str] = attrs.field(factory=dict)
    taken: Mapping[str, str] = attrs.field(factory=dict)
    left: Sequence[LeftLayer] = attrs.field(factory=list)
    warnings: Sequence[str] = attrs.field(factory=list)
    problems: Sequence[str] = attrs.field(factory=list)

    def then(self, later: ReplacedGroups) -> ReplacedGroups:
        """These and those of a later pass."""
        return ReplacedGroups(
            {**self.causes, **later.causes},
            {**self.taken, **later.taken},
            [*self.left, *later.left],
            [*self.warnings, *later.warnings],
            [*self.problems, *later.problems],
        )


@frozen(eq=False)
class PassFindings:
    """What one pass, or several in a row, found in a network.

    Attributes:
        changed: whether the network changed.
        claims: what became of the quantized groups that plugins may claim.
        operators: what became of the layers that quantize methods may compute.
        rewrites: what became of quantizations and dequantizations.
    """

    changed: bool = False
    claims: ReplacedGroups = ReplacedGroups()
    operators: ReplacedGroups = ReplacedGroups()
    rewrites: RewriteJournal = attrs.field(factory=RewriteJournal)

    def then(self, later: PassFindings) -> PassFindings:
        """These and those of a later pass."""
        return PassFindings(
            self.changed or later.changed,
            self.claims.then(later.claims),
            self.operators.then(later.operators),
            self.rewrites.then(later.rewrites),
        )
