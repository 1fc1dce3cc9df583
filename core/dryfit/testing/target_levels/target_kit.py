"""What the levels of the conformance kit of targets share: the target, and what it declares."""

from __future__ import annotations

from typing import Any, ClassVar

import dryfit.network.network  # noqa: F401  fills the table of layer kinds
from dryfit.plugins import registry
from dryfit.target.target import Target, inherited
from dryfit.testing import record_checks
from dryfit.testing.kit import Cases, ConformanceKit
from dryfit.testing.trial_networks import TRIAL_PRECISIONS


class TargetKit(ConformanceKit):
    """The parent of the levels.

    Attributes:
        target: the record; the one thing that a subclass has to state.
        networks: how many random networks are made for each precision.
    """

    target: ClassVar[Target]
    networks: ClassVar[int] = 6

    @property
    def complete(self) -> Target:
        """The record with what it leaves out filled in from the host's."""
        is_host = self.target.segment_rules.is_host
        return self.target if is_host else inherited(self.target, registry.host())

    def own(self, name: str) -> Any:
        """What the target itself declares; None where it inherits that, has none, or names what cannot be loaded.

        The last is told by a test of the record, and the others need not repeat it.
        """
        return record_checks.declaration(self.target, name)[0] if record_checks.declares(self.target, name) else None


def precision_cases(kit: TargetKit) -> Cases:
    """The computation types of a target."""
    return [(one.name, one) for one in kit.complete.precisions]


def trial_precision_cases(kit: TargetKit) -> Cases:
    """Those whose engines are compared with the reference."""
    return [(one.name, one) for one in TRIAL_PRECISIONS if one in kit.complete.precisions]


NO_TRIAL_PRECISION = f"precision whose numbers the kit knows ({', '.join(one.name for one in TRIAL_PRECISIONS)})"
