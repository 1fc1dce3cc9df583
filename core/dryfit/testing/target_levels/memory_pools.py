"""Fourth level: memory pools, and whether what a plan puts there adds up."""

from __future__ import annotations

from dryfit.network.data_types import DataType
from dryfit.target.memory_pools import MemoryPool
from dryfit.testing import plan_checks, pool_checks
from dryfit.testing.kit import declared, require_none
from dryfit.testing.target_levels.target_kit import NO_TRIAL_PRECISION, TargetKit, trial_precision_cases


class TargetMemoryPools(TargetKit):
    """Memory pools, and what plans put there."""

    cases = {
        "pool": lambda kit: [(pool.name, pool) for pool in kit.own("memory_pools") or ()],
        "trial_precision": trial_precision_cases,
    }

    def test_a_memory_pool_takes_its_own_defaults(self, pool: MemoryPool | None) -> None:
        """Names, contents, defaults, least limits."""
        require_none(pool_checks.pool_problems(declared(pool, "memory pool"), self.target))

    def test_the_memory_of_a_plan_adds_up(self, trial_precision: DataType | None) -> None:
        """Tensors that live at a time lie apart; the peak is what the plan tells, and within the limits."""
        declared(self.own("memory_pools"), "memory pool")
        precision = declared(trial_precision, NO_TRIAL_PRECISION)
        seeds = range(self.networks)
        require_none(
            [problem for seed in seeds for problem in plan_checks.memory_problems(self.complete, precision, seed)]
        )
