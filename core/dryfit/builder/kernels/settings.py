"""From a builder config to the choice of kernels of one build."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator

from dryfit.builder.canonicalise import optimum_shapes
from dryfit.builder.config.builder_config import BuilderConfig, BuilderFlag
from dryfit.builder.config.timing_cache import TimingCache
from dryfit.builder.kernels.choice import KernelChoice
from dryfit.builder.kernels.timing import KernelTimes
from dryfit.builder.kernels.timing_cache_file import SharedTimingCache
from dryfit.network.network import Network
from dryfit.reference.inference import infer_specs
from dryfit.target.kernels import Specs


@contextlib.contextmanager
def kernel_times(config: BuilderConfig, lowered: Network) -> Iterator[KernelTimes | None]:
    """What tells how long kernels take, as a config wants it; None for not at all. At the end what was found is kept.

    Kernels are measured at the optimum shapes of the first profile. The timing cache is read when two kernels are
    equal in all but speed, and not before.

    Args:
        config: says whether and how times are known.
        lowered: the engine's network, whose groups are asked about.
    """
    if config.builder_optimization_level == 0:
        yield None
        return

    specs = functools.cache(functools.partial(optimum_specs, lowered, config))
    shared = functools.cache(SharedTimingCache)

    def cache() -> TimingCache:
        if config.get_flag(BuilderFlag.DISABLE_TIMING_CACHE):
            return TimingCache()
        given = config.get_timing_cache()
        return shared().cache if given is None else given

    yield KernelTimes(specs, cache, not config.get_flag(BuilderFlag.ERROR_ON_TIMING_CACHE_MISS))
    if shared.cache_info().currsize:
        shared().save()


def kernel_choice(config: BuilderConfig, network: Network) -> KernelChoice:
    """The kernels that a config names, forbids and allows.

    Args:
        config: has their names and patterns.
        network: the user's, whose layers they are named for.
    """
    return KernelChoice(
        config.explicit_kernels(network),
        forbidden=config.forbidden_kernels,
        allows_spread=not config.get_flag(BuilderFlag.STRICT_NANS),
    )


def optimum_specs(lowered: Network, config: BuilderConfig) -> Specs:
    """Specs of all tensors at the optimum shapes of the first profile.

    Args:
        lowered: the engine's network.
        config: has the profiles.
    """
    return infer_specs(lowered, optimum_shapes(lowered, config))
