"""The conformance kit of targets: a third party subclasses it in one file, and pytest does the rest."""

from __future__ import annotations

from dryfit.testing.target_levels.arithmetic import TargetArithmetic
from dryfit.testing.target_levels.declaration import TargetDeclaration
from dryfit.testing.target_levels.formats import TargetFormats
from dryfit.testing.target_levels.kernels import TargetKernels
from dryfit.testing.target_levels.limits import TargetLimits
from dryfit.testing.target_levels.memory_pools import TargetMemoryPools
from dryfit.testing.target_levels.segments import TargetSegments


class TargetConformance(
    TargetDeclaration,
    TargetLimits,
    TargetFormats,
    TargetMemoryPools,
    TargetArithmetic,
    TargetKernels,
    TargetSegments,
):
    """Tests that every target passes: all levels, each of which needs those before it.

    What a target does not declare is skipped, with the reason. What can be set is told by each level: `boundary_layers`
    and `layers` by the limits, `examples` and `kernel_tolerances` by the kernels, `networks` and `tolerances` by the
    networks.

    Attributes:
        target: the record; the one thing that a subclass has to state.

    Example:
        >>> from dryfit.testing import TargetConformance
        >>> class TestAcmeNpu(TargetConformance):
        ...     target = TARGET
    """
