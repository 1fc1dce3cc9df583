"""How long kernels take: looked up in a timing cache, else measured by running them once on random numbers."""

from __future__ import annotations

import logging
import statistics
import time
from collections.abc import Callable, Sequence

import attrs
import numpy as np

from dryfit.builder.group_signature import group_signature
from dryfit.builder.timing_cache import TimingCache, TimingCacheKey
from dryfit.engine.buffers import aligned_bytes, new_array
from dryfit.errors import BuildError, PluginError
from dryfit.network.data_types import DataType
from dryfit.network.tensor import TensorSpec
from dryfit.plugins import registry
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, HostLayout, Kernel, Specs

LEAST_RUNS, MOST_RUNS = 3, 25
SECONDS_PER_KERNEL = 0.05
"""No new run begins after so long, once there were three."""

_LOG = logging.getLogger("dryfit.builder")
_INDEX_BITS = 32
_SHORTEST = 0.001
"""Microseconds: no time is 0, whatever the clock says, and none is told more exactly."""

Clock = Callable[[], float]


@attrs.frozen(eq=False)
class KernelTimes:
    """Tells how long kernels take for groups of one network.

    Attributes:
        specs: gives the concrete specs that are measured at; called when they are needed.
        cache: gives the timing cache; called for each group, so that `TimingCache` itself means that nothing is kept.
        may_measure: whether a kernel that is not in the cache is measured, or is an error.
        clock: tells seconds.
    """

    specs: Callable[[], Specs]
    cache: Callable[[], TimingCache] = TimingCache
    may_measure: bool = True
    clock: Clock = time.perf_counter

    def microseconds(self, kernels: Sequence[Kernel], group: LayerGroup) -> dict[str, float] | None:
        """Kernel name to microseconds of one run with one thread; None where shapes are not known, or are empty.

        A kernel that fails is left out, with a warning.

        Raises:
            BuildError: the cache lacks a kernel and nothing may be measured, or every kernel fails.
        """
        specs = self.specs()
        tensors = [*group.inputs, *(tensor for layer in group.layers for tensor in layer.outputs)]
        if not all(specs[tensor.name].is_static and 0 not in specs[tensor.name].shape for tensor in tensors):
            return None
        signature, cache = group_signature(group, specs), self.cache()
        times, failures = {}, []
        for kernel in kernels:
            key = TimingCacheKey(signature, kernel.name, kernel.version, kernel.layout.value)
            found = cache.query(key)
            if found is None:
                self._require_leave(group, key)
                try:
                    found = median_microseconds(kernel, group, specs, self.clock)
                except Exception as error:  # noqa: BLE001  a plugin's kernel may raise anything
                    failures.append(f"{kernel.name}: {type(error).__name__}: {error}")
                    _LOG.warning("%s: a kernel fails and is left out: %s", group.name, failures[-1])
                    continue
                cache.update(key, found)
            times[kernel.name] = found
        if not times:
            raise BuildError(
                "Every kernel of the layer fails", where=f"layer {group.name!r}", found="; ".join(failures)
            )
        return times

    def _require_leave(self, group: LayerGroup, key: TimingCacheKey) -> None:
        if not self.may_measure:
            raise BuildError(
                "The flag ERROR_ON_TIMING_CACHE_MISS is on, and the timing cache lacks a kernel",
                where=f"layer {group.name!r}",
                found=f"{key.kernel}, version {key.version}, for {key.group}",
                remedy="Clear the flag, or measure on this machine and add the measurement to the cache",
            )


def median_microseconds(kernel: Kernel, group: LayerGroup, specs: Specs, clock: Clock = time.perf_counter) -> float:
    """The median time of one run with one thread, after a first run in which the kernel may compile itself.

    Raises:
        Exception: whatever the kernel raises.
    """
    schedule = _bound(kernel, group, specs)
    schedule()
    seconds: list[float] = []
    while len(seconds) < LEAST_RUNS or (len(seconds) < MOST_RUNS and sum(seconds) < SECONDS_PER_KERNEL):
        start = clock()
        schedule()
        seconds.append(clock() - start)
    return max(round(statistics.median(seconds) * 1e6, 3), _SHORTEST)


def _bound(kernel: Kernel, group: LayerGroup, specs: Specs) -> Callable[[], None]:
    """A function that runs a kernel on memory of its own."""
    create_schedule = registry.host().create_schedule
    if create_schedule is None:
        raise PluginError("The host's target has no schedule, so nothing can run", where=registry.host().device)
    generator = np.random.default_rng(0)
    tensors = {tensor.name: specs[tensor.name] for tensor in (*group.inputs, *group.outputs)}
    arrays = {name: _filled(spec, kernel.layout, generator) for name, spec in tensors.items()}
    workspace = aligned_bytes(kernel.workspace_bytes(group, specs, 1))
    step = kernel.bind(Binding(group, specs, arrays, kernel.pack(group), workspace))
    schedule = create_schedule([step], 1)
    return schedule.run  # type: ignore[no-any-return]


def _filled(spec: TensorSpec, layout: HostLayout, generator: np.random.Generator) -> Array:
    """What is known of a tensor, or random numbers; zeros for wide integers, which may be indices."""
    if spec.value is not None:
        return spec.value
    array = new_array(spec, layout)
    if spec.dtype is DataType.BOOL or (spec.dtype.is_integer and spec.dtype.bits < _INDEX_BITS):
        array[...] = generator.integers(0, 2, spec.shape).astype(array.dtype)
    elif spec.dtype.is_integer:
        array[...] = 0
    else:
        array[...] = generator.standard_normal(spec.shape).astype(array.dtype)
    return array
