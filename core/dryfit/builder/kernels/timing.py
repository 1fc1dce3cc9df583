"""How long kernels take: looked up in a timing cache, else measured by running them in turns on random numbers."""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.builder.config.timing_cache import TimingCache, TimingCacheKey
from dryfit.engine.buffers import new_array
from dryfit.errors import BuildError, PluginError
from dryfit.network.data_types import DataType
from dryfit.network.tensor import TensorSpec
from dryfit.plugins import registry
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, HostLayout, Kernel, Specs
from dryfit.target.memory import aligned_bytes
from dryfit.target.tactics import LEAST_GAIN, group_signature, timed_name

LEAST_RUNS, MOST_RUNS = 3, 25
SECONDS_PER_KERNEL = 0.03
"""A kernel that has run for so long runs no more, once there were three runs."""
ENOUGH_SECONDS = 0.5
"""One that has run for so long runs no more at all: what disturbs the machine is small beside it."""

_LOG = logging.getLogger("dryfit.builder")
_INDEX_BITS = 32
_SHORTEST = 0.001
"""Microseconds: no time is 0, whatever the clock says, and none is told more exactly."""

Clock = Callable[[], float]


@frozen(eq=False)
class KernelTimes:
    """Tells how long kernels take for groups of one network.

    Attributes:
        specs: gives the concrete specs that are measured at; called when they are needed.
        cache: gives the timing cache; called for each group, so that `TimingCache` itself means that nothing is kept.
        may_measure: whether a kernel that is not in the cache is measured, or is an error.
        tactic_cache: gives the cache that engines of this machine read tactics from; None: tactics are not measured.
        measures_all: whether tactics are measured even where kernels know their order.
        clock: tells seconds.
        tactic_clock: tells seconds of the calling thread, which alone runs one kernel's tactics.
    """

    specs: Callable[[], Specs]
    cache: Callable[[], TimingCache] = TimingCache
    may_measure: bool = True
    tactic_cache: Callable[[], TimingCache] | None = None
    measures_all: bool = False
    clock: Clock = time.perf_counter
    tactic_clock: Clock = time.thread_time

    def microseconds(self, kernels: Sequence[Kernel], group: LayerGroup) -> dict[str, float] | None:
        """Kernel name to microseconds of one run with one thread; None where shapes are not known, or are empty.

        A kernel that fails is left out, with a warning.

        Raises:
            BuildError: the cache lacks a kernel and nothing may be measured, or every kernel fails.
        """
        specs = self.specs()
        if not _is_static(group, specs):
            return None
        signature, cache = group_signature(group, specs), self.cache()
        keys = [TimingCacheKey(signature, kernel.name, kernel.version, kernel.layout.value) for kernel in kernels]
        missing = {key: kernel for key, kernel in zip(keys, kernels, strict=True) if cache.query(key) is None}
        for key in missing:
            self._require_leave(group, key)
        times, failures = least_microseconds(list(missing.values()), group, specs, self.clock)
        for failure in failures:
            _LOG.warning("%s: a kernel fails and is left out: %s", group.name, failure)
        for key, kernel in missing.items():
            if kernel.name in times:
                cache.update(key, times[kernel.name])
        found = {key.kernel: cache.query(key) if key not in missing else times.get(key.kernel) for key in keys}
        known = {name: time for name, time in found.items() if time is not None}
        if not known:
            raise BuildError(
                "All kernels for the layer failed",
                where=f"layer {group.name!r}",
                found="; ".join(failures),
                remedy="Report this to the maintainers of the kernels; meanwhile put the layer "
                "on another device or forbid these kernels",
            )
        return known

    def known(self, kernel: Kernel, group: LayerGroup) -> float | None:
        """Return the microseconds of a kernel if the timing cache has them; measures nothing."""
        signature = group_signature(group, self.specs())
        return self.cache().query(TimingCacheKey(signature, kernel.name, kernel.version, kernel.layout.value))

    def tactic(self, kernel: Kernel, group: LayerGroup) -> str:
        """Return which tactic of a kernel runs a group on this machine and why, in words; empty without a choice.

        What is not in the cache is measured if the kernel does not know it, or if all is measured.
        """
        if self.tactic_cache is None or not kernel.has_tactics or not _is_static(group, specs := self.specs()):
            return ""
        tactics = kernel.tactics(group, specs)
        if len(tactics.names) < 2:
            return ""
        signature, cache = group_signature(group, specs), self.tactic_cache()
        keys = {
            name: TimingCacheKey(signature, timed_name(kernel.name, name), kernel.version, kernel.layout.value)
            for name in tactics.names
        }
        times = {name: time for name, key in keys.items() if (time := cache.query(key)) is not None}
        is_wanted = self.may_measure and (self.measures_all or not tactics.are_ranked)
        if is_wanted and len(times) < len(keys):
            found, failures = tactic_microseconds(kernel, tactics.names, group, specs, self.tactic_clock)
            for failure in failures:
                _LOG.warning("%s: a tactic fails and is left out: %s", group.name, failure)
            for name in found.keys() - times.keys():
                cache.update(keys[name], found[name])
            times = {**found, **times}
        best, first = tactics.fastest(times), tactics.names[0]
        others = sorted((time, name) for name, time in times.items() if name != best)
        if first not in times or not others:
            return f"tactic {best}, the default on this processor"
        ratio = others[0][0] / times[best]
        gain = f"{ratio:.2f}x faster than" if ratio >= LEAST_GAIN else "as fast as"
        return f"tactic {best}, measured: {gain} {others[0][1]}"

    def _require_leave(self, group: LayerGroup, key: TimingCacheKey) -> None:
        if not self.may_measure:
            raise BuildError(
                "The timing cache must have every kernel (ERROR_ON_TIMING_CACHE_MISS is set)",
                where=f"layer {group.name!r}",
                found=f"{key.kernel}, version {key.version}, for {key.group}",
                remedy="Clear the flag, or measure on this machine and add the measurement to the cache",
            )


def _is_static(group: LayerGroup, specs: Specs) -> bool:
    """Whether all shapes of a group are known, and none is empty."""
    tensors = [*group.inputs, *(tensor for layer in group.layers for tensor in layer.outputs)]
    return all(specs[tensor.name].is_static and 0 not in specs[tensor.name].shape for tensor in tensors)


def least_microseconds(
    kernels: Sequence[Kernel], group: LayerGroup, specs: Specs, clock: Clock = time.perf_counter
) -> tuple[dict[str, float], list[str]]:
    """Kernel name to the least time of one run with one thread; and which kernels failed, in words."""
    memory: dict[tuple[str, HostLayout], Array] = {}  # shared, as the kernels run one after another
    bind = {
        kernel.name: functools.partial(_bound, kernel, group, specs, memory, functools.partial(kernel.pack, group))
        for kernel in kernels
    }
    return _least(bind, clock)


def tactic_microseconds(
    kernel: Kernel, tactics: Sequence[str], group: LayerGroup, specs: Specs, clock: Clock = time.thread_time
) -> tuple[dict[str, float], list[str]]:
    """The same for the tactics of one kernel, which share its packed weights."""
    memory: dict[tuple[str, HostLayout], Array] = {}
    weights = functools.cache(functools.partial(kernel.pack, group))
    bind = {tactic: functools.partial(_bound, kernel, group, specs, memory, weights, tactic) for tactic in tactics}
    return _least(bind, clock)


def _least(bind: Mapping[str, Callable[[], Callable[[], None]]], clock: Clock) -> tuple[dict[str, float], list[str]]:
    """Name to the least microseconds of one run of what it binds; and which failed, in words.

    Each runs once before, because it may compile itself. Then they take turns, so that what else the machine does meets
    all of them; and the least time counts, because all that disturbs a run makes it longer.
    """
    failures: list[str] = []
    runs: dict[str, Callable[[], None]] = {}
    seconds: dict[str, list[float]] = {}

    def attempt(name: str, action: Callable[[str], None]) -> None:
        try:
            action(name)
        except Exception as error:  # noqa: BLE001  a plugin's kernel may raise anything
            failures.append(f"{name}: {type(error).__name__}: {error}")
            runs.pop(name, None)

    def prepare(name: str) -> None:
        run = bind[name]()
        run()
        runs[name], seconds[name] = run, []

    def take_turn(name: str) -> None:
        start = clock()
        runs[name]()
        seconds[name].append(clock() - start)

    for name in bind:
        attempt(name, prepare)
    for turn in range(MOST_RUNS):
        for name in list(runs):
            if sum(seconds[name]) < (ENOUGH_SECONDS if turn < LEAST_RUNS else SECONDS_PER_KERNEL):
                attempt(name, take_turn)
    return {name: max(round(min(seconds[name]) * 1e6, 3), _SHORTEST) for name in runs}, failures


def _bound(
    kernel: Kernel,
    group: LayerGroup,
    specs: Specs,
    memory: dict[tuple[str, HostLayout], Array],
    weights: Callable[[], Mapping[str, Array]],
    tactic: str = "",
) -> Callable[[], None]:
    """A function that runs a kernel on arrays from `memory`, or on new ones that it adds there."""
    create_schedule = registry.host().create_schedule
    if create_schedule is None:
        raise PluginError(
            "The host target must have a schedule to run kernels",
            where=registry.host().device,
            remedy="Set `create_schedule_at` in its Target record",
        )
    arrays = {}
    for tensors, make in ((group.inputs, _filled), (group.outputs, new_array)):
        for tensor in tensors:
            place = tensor.name, kernel.layout
            if place not in memory:
                memory[place] = make(specs[tensor.name], kernel.layout)
            arrays[tensor.name] = memory[place]
    workspace = aligned_bytes(kernel.workspace_bytes(group, specs, 1))
    step = kernel.bind(Binding(group, specs, arrays, weights(), workspace, tactic=tactic))
    schedule = create_schedule([step], 1)
    return schedule.run  # type: ignore[no-any-return]


def _filled(spec: TensorSpec, layout: HostLayout) -> Array:
    """What is known of a tensor, or random numbers; zeros for wide integers, which may be indices.

    Planes of the last two axes repeat along the others: random numbers for a gigabyte take half a minute, and kernels
    take the same time for any.
    """
    if spec.value is not None:
        return spec.value
    array = new_array(spec, layout)
    generator = np.random.default_rng(0)
    plane = (1,) * (spec.rank - 2) + spec.shape[-2:]
    if spec.dtype is DataType.BOOL or (spec.dtype.is_integer and spec.dtype.bits < _INDEX_BITS):
        array[...] = generator.integers(0, 2, plane).astype(array.dtype)
    elif spec.dtype.is_integer:
        array[...] = 0
    else:
        array[...] = generator.standard_normal(plane).astype(array.dtype)
    return array
