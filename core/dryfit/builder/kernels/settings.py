"""From a builder config to the choice of kernels of one build."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator

import attrs

from dryfit.builder.canonicalise import optimum_shapes
from dryfit.builder.config.builder_config import BuilderConfig, BuilderFlag
from dryfit.builder.kernels.choice import KernelChoice
from dryfit.builder.kernels.timing import KernelTimes
from dryfit.builder.kernels.timing_cache import TimingCache
from dryfit.builder.kernels.timing_cache_file import SharedTimingCache
from dryfit.network.network import Network
from dryfit.reference.inference import infer_specs
from dryfit.target.kernels import Specs


@contextlib.contextmanager
def kernel_choice(config: BuilderConfig, network: Network, lowered: Network) -> Iterator[KernelChoice]:
    """The choice of kernels as a config wants it. At the end what was measured is kept.

    Kernels are measured at the optimum shapes of the first profile. The timing cache is read when two kernels are
    equal in all but speed, and not before.

    Args:
        config: names and forbids kernels, and says whether and how times are known.
        network: the user's.
        lowered: the engine's, whose groups are asked about.
    """
    choice = unmeasured_choice(config, network)
    if config.builder_optimization_level == 0:
        yield choice
        return

    specs = functools.cache(functools.partial(optimum_specs, lowered, config))
    shared = functools.cache(SharedTimingCache)

    def cache() -> TimingCache:
        if config.get_flag(BuilderFlag.DISABLE_TIMING_CACHE):
            return TimingCache()
        given = config.get_timing_cache()
        return shared().cache if given is None else given

    may_measure = not config.get_flag(BuilderFlag.ERROR_ON_TIMING_CACHE_MISS)
    yield attrs.evolve(choice, times=KernelTimes(specs, cache, may_measure))
    if shared.cache_info().currsize:
        shared().save()


def unmeasured_choice(config: BuilderConfig, network: Network) -> KernelChoice:
    """The choice that a config leaves, without knowing how long kernels take.

    Args:
        config: names and forbids kernels.
        network: the user's.
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
