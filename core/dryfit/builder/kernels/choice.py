"""Which host kernel runs a group of layers: the one that the user names, else the fastest of those that may."""

from __future__ import annotations

import contextlib
import fnmatch
import functools
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

import attrs

from dryfit.attrs_classes import frozen
from dryfit.builder.config.builder_config import BuilderConfig, BuilderFlag
from dryfit.builder.config.enumerations import REFIT_FLAGS
from dryfit.builder.config.optimization_profile import optimum_shapes
from dryfit.builder.config.timing_cache import SharedTimingCache, TimingCache
from dryfit.builder.kernels.timing import KernelTimes
from dryfit.errors import BuildError, PluginError, UnknownNameError
from dryfit.network.equal_layers import LayerKeys, StandIns
from dryfit.network.layer import Layer
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor
from dryfit.plugins import registry
from dryfit.reference.inference import infer_specs
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Kernel, Specs, is_activation
from dryfit.target.target import Target


def kernels_for(device: str) -> Sequence[Kernel]:
    """All kernels that may run a device's layers: its own, then the host's, each by priority and name.

    Raises:
        PluginError: the device names a kernel of its own as another one is named; engines find kernels by name.
    """
    return _in_order(registry.target(device), registry.host())


@functools.lru_cache(maxsize=64)
def _in_order(target: Target, host: Target) -> Sequence[Kernel]:
    def ordered(kernels: Sequence[Kernel]) -> list[Kernel]:
        return sorted(kernels, key=lambda kernel: (-kernel.priority, kernel.name))

    own = [] if target.device == host.device else ordered(target.kernels)
    kernels = (*own, *(kernel for kernel in ordered(host.kernels) if kernel not in own))
    names = [kernel.name for kernel in kernels]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise PluginError(
            "Kernel names must be unique",
            where=f"target {target.device}, kernels_at",
            found=", ".join(twice),
            remedy="Begin the names of your kernels with the name of your package",
        )
    return kernels


def serves(kernel: Kernel, group: LayerGroup, specs: Specs) -> bool:
    """Whether a kernel says that it can run a group."""
    return kernel.refusal(group, specs) is None


def takes(kernel: Kernel, group: LayerGroup, layer: Layer, specs: Specs) -> bool:
    """Whether a kernel says that it can run a group with one more layer at its end."""
    longer = LayerGroup((*group.layers, layer))
    return kernel.answer(longer, lambda: kernel.fuses(group, layer)) and serves(kernel, longer, specs)


def activations(group: LayerGroup, specs: Specs) -> Iterator[Tensor]:
    """The tensors that a group reads and writes at run time: not constants, and not what is known before the run."""
    return (tensor for tensor in (*group.inputs, *group.outputs) if is_activation(tensor, specs))


class _EqualGroups:
    """Asks kernels about groups, and once about those that are equal but for names and neighbours."""

    def __init__(self) -> None:
        # Few kernels look at more of the weights than their shapes; those are asked again about each array.
        self._keys = {outlines: LayerKeys(outlines=outlines) for outlines in (True, False)}
        self._known: dict[Hashable, Sequence[Kernel] | None] = {}
        self._numbers: dict[int, int] = {}

    def serving(self, kernels: Sequence[Kernel], group: LayerGroup, specs: Specs) -> Sequence[Kernel]:
        """Those of the kernels that say that they can run a group."""

        def ask(layers: Sequence[Layer], known: Specs) -> list[Kernel]:
            asked = LayerGroup(tuple(layers))
            return [kernel for kernel in kernels if serves(kernel, asked, known)]

        return self._answer(kernels, group.layers, specs, "serve", ask)

    def taking(self, kernels: Sequence[Kernel], group: LayerGroup, layer: Layer, specs: Specs) -> Sequence[Kernel]:
        """Those of the kernels that say that they can run a group with one more layer at its end."""

        def ask(layers: Sequence[Layer], known: Specs) -> list[Kernel]:
            asked = LayerGroup(tuple(layers[:-1]))
            return [kernel for kernel in kernels if takes(kernel, asked, layers[-1], known)]

        return self._answer(kernels, (*group.layers, layer), specs, "take", ask)

    def _answer(
        self,
        kernels: Sequence[Kernel],
        layers: Sequence[Layer],
        specs: Specs,
        what: str,
        ask: Callable[[Sequence[Layer], Specs], list[Kernel]],
    ) -> Sequence[Kernel]:
        for outlines, keys in self._keys.items():
            layers_key = keys.of(layers, specs)
            if layers_key is None:
                break
            key = (outlines, what, layers_key, self._number_of(kernels))
            if key not in self._known:
                stand_ins = StandIns(layers, specs, outlines=outlines)
                able, is_kept = stand_ins.watch.alone(functools.partial(ask, stand_ins.layers, stand_ins.specs))
                self._known[key] = able if is_kept else None
            known = self._known[key]
            if known is not None:
                return known
        return ask(layers, specs)

    def _number_of(self, kernels: Sequence[Kernel]) -> int:
        if id(kernels) not in self._numbers:
            keys = self._keys[False]
            self._numbers[keys.identity(kernels)] = keys.number(tuple(map(keys.identity, kernels)))
        return self._numbers[id(kernels)]


@frozen(eq=False)
class KernelChoice:
    """Chooses the kernels of one build.

    A device's own kernels come before the host's, and a higher priority before a lower one. Several that are equal in
    this are all candidates: the group takes what layers any of them takes, and then the fastest.

    Attributes:
        named: layer name to the kernel that the user wants for the group whose main layer it is.
        forbidden: patterns of the names of kernels that are not chosen, unless they are named.
        allows_spread: whether kernels that spread NaN may be chosen.
        ranks_unmeasured: whether kernels have an order where they are not measured.
        has_fixed_constants: whether constants keep their values: no refit gives them others, or takes them away.
    """

    named: Mapping[str, str] = attrs.field(factory=dict)
    forbidden: Sequence[str] = ()
    allows_spread: bool = True
    ranks_unmeasured: bool = False
    has_fixed_constants: bool = True
    _equal: _EqualGroups = attrs.field(factory=_EqualGroups, init=False, repr=False)
    _ranked: dict[tuple[int, ...], Sequence[Kernel]] = attrs.field(factory=dict, init=False, repr=False)
    _met: set[str] = attrs.field(factory=set, init=False)
    _permitted: dict[tuple[str, str], Sequence[Kernel]] = attrs.field(factory=dict, init=False)
    _own: dict[str, Sequence[Kernel]] = attrs.field(factory=dict, init=False)

    def candidates(self, device: str, group: LayerGroup, specs: Specs) -> Sequence[Kernel]:
        """The kernels that may run a group; at least one.

        Raises:
            BuildError: there is none that is permitted, or the one that the user names cannot.
            UnknownNameError: the device has no kernel of the name that the user gives.
        """
        if self.named and group.main.name in self.named:
            return (self._named(device, group, specs),)
        able = self._equal.serving(self._permitted_for(device, group.main.kind), group, specs)
        if not able:
            raise _nothing_serves(device, group, specs, [*self.forbidden] if self._met else [])
        return self._of_first_rank(able)

    def absorbing(self, device: str, group: LayerGroup, specs: Specs) -> Sequence[Kernel]:
        """The kernels that may run a group with the dequantizations it begins with; none where it runs without them.

        That is so where the user names a kernel that does not absorb them, and where the device has a kernel of its own
        that runs the layer on real numbers: the host's arithmetic does not take the place of the device's.
        """
        name = self.named.get(group.main.name)
        able = self._equal.serving(kernels_for(device), group, specs)
        if name is not None:
            return [kernel for kernel in able if kernel.name == name][:1]
        able = [kernel for kernel in able if self._permits(kernel)]
        plain, host = LayerGroup((group.main,)), registry.host().kernels
        if device not in self._own:
            others = [kernel for kernel in kernels_for(device) if kernel not in host]
            self._own[device] = [kernel for kernel in others if self._permits(kernel)]
        own = self._equal.serving(self._own[device], plain, specs)
        return [] if not able or (own and able[0] in host) else self._of_first_rank(able)

    def running(
        self, kernels: Sequence[Kernel], longer: LayerGroup, last: LayerGroup, specs: Specs
    ) -> Sequence[Kernel]:
        """Those of the kernels that run a group that ends with another; none where the user names one for the other."""
        if last.main.name in self.named:
            return []
        return self._equal.serving(kernels, longer, specs)

    def taking(self, candidates: Sequence[Kernel], group: LayerGroup, layer: Layer, specs: Specs) -> Sequence[Kernel]:
        """The candidates that run a group with one more layer at its end.

        A layer for which the user names a kernel begins a group of its own.
        """
        if layer.name in self.named:
            return []
        return self._equal.taking(candidates, group, layer, specs)

    def fastest(self, candidates: Sequence[Kernel], group: LayerGroup, times: KernelTimes | None) -> tuple[Kernel, str]:
        """The candidate that runs a group, and why, in words.

        Args:
            candidates: of `candidates` or `absorbing`, and of these what `taking` and `running` left.
            group: the layers.
            times: tells how long kernels take; None: nothing is measured, and the first by name is taken.

        Raises:
            BuildError: times have to be known and are not, or no candidate could be run to measure it.
        """
        if group.main.name in self.named:
            return candidates[0], "set by the user"
        if len(candidates) == 1:
            return candidates[0], "the only one of the highest priority"
        by_name = sorted(candidates, key=lambda kernel: kernel.name)
        if times is None:
            ranked = max(by_name, key=lambda kernel: kernel.unmeasured_priority)  # the first of several
            if self.ranks_unmeasured and ranked.unmeasured_priority:
                return ranked, "of the highest priority among kernels that are not measured"
            return by_name[0], "first by name, because kernels are not measured"
        found = times.microseconds(by_name, group)
        if found is None:
            return by_name[0], "first by name, because data-dependent shapes cannot be measured"
        timed = sorted((kernel for kernel in by_name if kernel.name in found), key=lambda kernel: found[kernel.name])
        if len(timed) == 1:
            return timed[0], "the only one that could be measured"
        ratio = found[timed[1].name] / found[timed[0].name]
        return timed[0], f"chosen by measurement ({ratio:.1f}x faster than {timed[1].name})"

    def without_effect(self, kernels: Mapping[str, str]) -> list[str]:
        """What was named for layers, or forbidden, and changes nothing, in words.

        Args:
            kernels: name of each group's main layer to the kernel that runs it.
        """
        useless = [
            f"No kernel of this build's devices matches {pattern!r}, so forbidding it has no effect"
            for pattern in self.forbidden
            if pattern not in self._met
        ]
        return useless + [
            f"The kernel {name} set for layer {layer!r} has no effect: no engine layer begins with "
            "this layer, or its segment is compiled as a whole"
            for layer, name in self.named.items()
            if kernels.get(layer) != name
        ]

    def _of_first_rank(self, able: Sequence[Kernel]) -> Sequence[Kernel]:
        """The kernels of the first one's priority that are the device's own, or the host's, as it is."""
        key = tuple(map(id, able))
        if key not in self._ranked:
            host, first = registry.host().kernels, able[0]
            self._ranked[key] = [
                kernel for kernel in able if kernel.priority == first.priority and (kernel in host) == (first in host)
            ]
        return self._ranked[key]

    def _permitted_for(self, device: str, kind: str) -> Sequence[Kernel]:
        """The device's kernels that serve layers of a kind and may be chosen: a handful of a hundred, found once."""
        if (device, kind) not in self._permitted:
            permitted = [kernel for kernel in kernels_for(device) if self._permits(kernel)]
            self._permitted[device, kind] = [kernel for kernel in permitted if kind in kernel.kinds]
        return self._permitted[device, kind]

    def _permits(self, kernel: Kernel) -> bool:
        """Whether a kernel may be chosen; notes which patterns it fits."""
        fitting = {pattern for pattern in self.forbidden if fnmatch.fnmatchcase(kernel.name, pattern)}
        self._met.update(fitting)
        return not fitting and (self.allows_spread or not kernel.spreads_nan)

    def _named(self, device: str, group: LayerGroup, specs: Specs) -> Kernel:
        name, where = self.named[group.main.name], f"layer {group.main.name!r}"
        # Of two kernels of one name the device's own is meant, as in an engine.
        kernels = {kernel.name: kernel for kernel in reversed(kernels_for(device))}
        if name not in kernels:
            raise UnknownNameError(f"kernel of {device}", name, kernels, where=where)
        reason = kernels[name].refusal(group, specs)
        if reason is not None:
            able = [kernel.name for kernel in kernels_for(device) if serves(kernel, group, specs)]
            raise BuildError(
                f"The kernel {name} set for this layer does not support it: {reason}",
                where=where,
                found=_described(group, specs),
                allowed=", ".join(able) or "no kernel",
                remedy="Set one of these with `config.set_kernel`, or clear the setting with `config.reset_kernel`",
            )
        return kernels[name]


def _nothing_serves(device: str, group: LayerGroup, specs: Specs, forbidden: Sequence[str]) -> BuildError:
    return BuildError(
        f"No kernel supports this {group.main.kind} layer on {device}",
        where=f"layer {group.name!r}",
        found=_described(group, specs),
        remedy=f"Allow more kernels; forbidden: {', '.join(map(repr, forbidden))}" if forbidden else None,
    )


def _described(group: LayerGroup, specs: Specs) -> str:
    return ", ".join(f"{tensor.name!r}: {specs[tensor.name].dtype.text}" for tensor in activations(group, specs))


_MEASURING_LEVEL = 4
"""From this optimization level on, tactics are measured even on processors whose best ones are known; 3 is the
default."""


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

    yield KernelTimes(
        specs,
        cache,
        not config.get_flag(BuilderFlag.ERROR_ON_TIMING_CACHE_MISS),
        # An engine does not name tactics: whoever runs it reads them from the shared cache, whatever the config's is.
        tactic_cache=None if config.get_flag(BuilderFlag.DISABLE_TIMING_CACHE) else lambda: shared().cache,
        measures_all=config.builder_optimization_level >= _MEASURING_LEVEL,
    )
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
        ranks_unmeasured=config.ranks_unmeasured_kernels,
        has_fixed_constants=not any(config.get_flag(flag) for flag in REFIT_FLAGS),
    )


def optimum_specs(lowered: Network, config: BuilderConfig) -> Specs:
    """Specs of all tensors at the optimum shapes of the first profile.

    Args:
        lowered: the engine's network.
        config: has the profiles.
    """
    return infer_specs(lowered, optimum_shapes(lowered, config))
