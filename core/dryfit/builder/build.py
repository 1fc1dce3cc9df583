"""From a network and a config to decisions or to a plan, with the ranges that were found for its tensors.

Ranges are given: a calibrator runs the network, for which it needs an engine, so calibration stands above the build
(`dryfit.calibration`), and `dryfit.building` calls the one and then the other.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dryfit.builder.assessment import offloadings
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.design import NUM_STAGES, Design, design_network
from dryfit.builder.precision.scales import FoundRanges
from dryfit.builder.refit.preparation import check_refit_flags, prepared_for_refit
from dryfit.builder.refusals import require_buildable
from dryfit.builder.stages import Stages, logger
from dryfit.engine.plan import Plan
from dryfit.network.network import Network
from dryfit.plugins import facade
from dryfit.plugins.contributions import BuildObserver

if TYPE_CHECKING:
    from dryfit.builder.segments.export import Exported


def decide(
    network: Network, config: BuilderConfig, found: FoundRanges | None = None, *, bounds_memory: bool = False
) -> Design:
    """The decisions that an assessment tells of; plugins that watch builds are told of them.

    Args:
        network: the user's.
        config: what it would be built with.
        found: what the config's calibrator found; None where it has none.
        bounds_memory: as `design_network` takes it.

    Raises:
        NetworkError, ConfigError, BuildError: as `design_network`.
    """
    check_refit_flags(config, network)
    observer = _observer(network, config)
    try:
        with Stages(f"Assessing {network.name}", NUM_STAGES, config.progress_monitor, observer=observer) as stages:
            return design_network(network, config, stages, found, bounds_memory=bounds_memory)
    finally:
        observer.build_finished(None)


def build_plan(
    network: Network,
    config: BuilderConfig,
    found: FoundRanges | None = None,
    *,
    dump_directory: Path | None = None,
) -> Plan:
    """Decide where and how each layer runs, and pack its weights. The network stays as it is.

    Args:
        network: the user's.
        config: what it is built with.
        found: what the config's calibrator found; None where it has none.
        dump_directory: where a text of each stage's result goes; None for nowhere.

    Raises:
        DryfitError: what `dryfit.building.Builder.build_plan` raises, but for calibration.
    """
    return _built(network, config, found, dump_directory, exports=False)[0]


def build_for_export(
    network: Network,
    config: BuilderConfig,
    found: FoundRanges | None = None,
    *,
    dump_directory: Path | None = None,
) -> tuple[Plan, Exported]:
    """(the plan, the segments that their targets can write as files), as `build_plan` builds it."""
    return _built(network, config, found, dump_directory, exports=True)


def _built(
    network: Network, config: BuilderConfig, found: FoundRanges | None, dump_directory: Path | None, *, exports: bool
) -> tuple[Plan, Exported]:
    from dryfit.builder import linking  # assessments do without

    num_stages = NUM_STAGES + linking.NUM_STAGES
    check_refit_flags(config, network)
    observer = _observer(network, config)
    plan: Plan | None = None
    try:
        with Stages(
            f"Building {network.name}", num_stages, config.progress_monitor, dump_directory, observer
        ) as stages:
            design = design_network(network, config, stages, found, joins_layers=True)
            require_buildable(design, config)
            linked, exported = linking.link(network, design, config, stages, exports=exports)
            plan = prepared_for_refit(linked, network, config, design)
    finally:
        observer.build_finished(plan)
    logger.info("%d layers in %d segments", len(plan.operations), len(plan.segments))
    for offloading in offloadings(plan.segments, plan.rejected):
        logger.info("%s", offloading)
    return plan, exported


def _observer(network: Network, config: BuilderConfig) -> BuildObserver:
    """What tells all plugins that watch a build; it does nothing where none does."""
    if not facade.is_implemented("observe_build"):
        return BuildObserver()
    return facade.build_observers(network, config.settings(network))
