"""Which layers run as one: each segment's layers joined to groups, as the device and the kernels that run them allow.

Greedy, in execution order: a layer joins the group whose output it reads, where nobody else reads that output, one of
the kernels that may run the group takes the layer, and a fusion of the device begins so, if the device declares any. A
sum of two branches joins the one that is ready last, so that the other operand is there when the group runs. What in
the end is the beginning of a fusion only is cut back to the longest that is whole. Which of the kernels that can run a
group does so is chosen apart from it (`choose_kernels`), since it may take measuring.

Where a kernel works on quantized values, the dequantizations that a layer reads through belong to its group. They are
repeated in every group that does so, and left out of the engine where nobody reads their results. When a quantize layer
ends a group that only requantizes what another group gives, the two become one.

A segment that its target compiles is one group, whatever is in it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import attrs

from dryfit.builder.fusion.groups import FusedGroup, JoinedGroup, LayerPlace, in_order
from dryfit.builder.fusion.quantized_fusion import (
    dequantizations_before,
    may_end,
    needed,
    quantized_type,
    sources_of_its_own,
)
from dryfit.builder.kernels.choice import KernelChoice
from dryfit.builder.kernels.selection import KernelSelection
from dryfit.builder.kernels.timing import KernelTimes
from dryfit.engine.segment_program import segment_kernel
from dryfit.errors import PluginError
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor
from dryfit.plugins import registry
from dryfit.quantization.rounding import RoundingFunction
from dryfit.target.forks import fork_after, has_constants, with_next
from dryfit.target.fusions import allowing, chain
from dryfit.target.group import LayerGroup, SegmentGroup, is_repeatable
from dryfit.target.kernels import Kernel, Specs

Places = Mapping[str, LayerPlace]
"""Layer name to place."""

LONGEST_GROUP = 32
"""Layers of a group after its dequantizations, to which no more is joined. Our choice: in real networks a dozen run as
one, and each that joins is asked about with the whole group, so that a thousand sums in a row would take a million
questions."""


def fuse_layers(network: Network, places: Places, choice: KernelChoice | None = None) -> list[JoinedGroup]:
    """The groups of the engine's network, in an order in which they can run.

    Args:
        network: layers in execution order.
        places: of all layers but constants.
        choice: of kernels; where it is left out, no kernel is named or forbidden.

    Raises:
        BuildError: no kernel runs a layer, or a compiled segment needs what can be computed only after it.
    """
    specs = {tensor.name: tensor.spec for tensor in network.tensors}
    outputs = {tensor.name for tensor in network.outputs}
    fuser = _Fuser(specs, outputs, places, choice or KernelChoice())
    compiled: dict[int, list[Layer]] = {}
    for layer in network.layers:
        place = places.get(layer.name)
        if place is not None and is_compiled(place):
            compiled.setdefault(place.segment, []).append(layer)
        elif place is not None:
            fuser.add(layer)
    groups = [*fuser.finished(), *(_whole_segment(layers, places) for layers in compiled.values())]
    return [groups[index] for index in in_order([fused.group for fused in groups])]


def is_compiled(place: LayerPlace) -> bool:
    """Whether a layer belongs to a segment that its target compiles to a program."""
    return place.segment >= 0 and registry.target(place.device).compile_segment_at is not None


def rounds_once(place: LayerPlace) -> bool:
    """Whether the device rounds a group's result once, rather than after each layer."""
    arithmetic = registry.target(place.device).arithmetic.get(place.precision)
    return arithmetic is None or arithmetic.rounds != "layer"


def own_rounding(device: str) -> RoundingFunction | None:
    """The function by which a device rounds INT8; None where it rounds by a mode that native kernels have."""
    record = registry.target(device).arithmetic.get(DataType.INT8)
    functions = (one for one in (record.roundings if record else ()) if isinstance(one, RoundingFunction))
    return next(functions, None)


def _whole_segment(layers: Sequence[Layer], places: Places) -> JoinedGroup:
    place = places[layers[0].name]
    load_segment = registry.target(place.device).load_segment
    if load_segment is None:
        raise PluginError(
            f"The target {place.device} compiles segments and cannot load them",
            remedy="Set `load_segment_at` in its Target record; it loads what `compile_segment_at` produces",
        )
    kernel = segment_kernel(place.device, lambda program: load_segment(program.tobytes()))
    return JoinedGroup(SegmentGroup(layers), [kernel], place)


def _moves(layer: Layer) -> bool:
    """Whether a layer's results are values of its first input, all of them or a part."""
    return layer.only_moves_values or layer.kind == "slice"


@attrs.frozen(eq=False)
class _Joined:
    """Layers that may run as one, by any of these kernels; `fusion` is the device's that allows it, or ""."""

    group: LayerGroup
    candidates: Sequence[Kernel]
    fusion: str = ""


@attrs.define(eq=False)
class _GrowingGroup:
    """A group to which layers are joined.

    Attributes:
        place: where it runs.
        joined: all its layers.
        whole: the longest beginning that is a complete fusion; None as long as there is none.
    """

    place: LayerPlace
    joined: _Joined
    whole: _Joined | None

    @property
    def group(self) -> LayerGroup:
        return self.joined.group

    @property
    def is_quantized(self) -> bool:
        """Whether it dequantizes what it reads."""
        return len(self.group.prologue) > 0

    def grow(self, joined: _Joined, *, is_whole: bool) -> None:
        self.joined = joined
        self.whole = joined if is_whole else self.whole


def choose_kernels(
    groups: Sequence[JoinedGroup],
    choice: KernelChoice,
    times: KernelTimes | None = None,
    selection: KernelSelection | None = None,
) -> list[FusedGroup]:
    """The groups, each with the kernel that runs it.

    Args:
        groups: what runs as one.
        choice: that gave their candidates.
        times: tells how long kernels take; None: nothing is measured, and the first by name is taken.
        selection: asks the user's selector; None where there is none.

    Raises:
        BuildError: times have to be known and are not, no candidate could be run to measure it, or the selector fails.
    """
    found = []
    for one in groups:
        if isinstance(one.group, SegmentGroup):
            kernel, reason = one.candidates[0], "the segment is compiled"
        else:
            candidates = one.candidates if selection is None else selection.among(one.candidates, one.group)
            kernel, reason = choice.fastest(candidates, one.group, times)
            tactic = "" if times is None else times.tactic(kernel, one.group)
            reason += f"; {tactic}" if tactic else ""
            if selection is not None:
                selection.note(one.group, kernel, times)
        rounding = own_rounding(one.place.device) if one.group.main.kind == "quantize" else None
        if rounding is not None and kernel in registry.host().kernels:
            reason = f"{one.place.device} rounds by the function {rounding}, which only numpy computes on the host"
        found.append(FusedGroup(one.group, kernel, one.place, reason, one.fusion))
    return found


class _Fuser:
    """Adds one layer after another. Those that are named as real read real numbers, whoever would dequantize them."""

    def __init__(
        self,
        specs: Specs,
        outputs: set[str],
        places: Places,
        choice: KernelChoice,
        real: Collection[str] = (),
    ) -> None:
        self._specs = specs
        self._real = real
        self._outputs = outputs
        self._places = places
        self._choice = choice
        self._groups: list[_GrowingGroup] = []
        self._group_of: dict[str, _GrowingGroup] = {}
        self._rounding_once: dict[tuple[str, DataType], bool] = {}

    def add(self, layer: Layer) -> None:
        if layer.name in self._group_of:
            return  # joined with the first layer of its fork
        sources = self._latest_first(layer)
        growing = next((one for one in map(self._ending_in, sources) if one and self._join(one, layer)), None)
        growing = growing or self._join_fork(layer) or self._begin(layer)
        self._group_of[layer.name] = growing
        if layer.kind == "quantize" and growing.is_quantized:
            self._join_source(growing)

    def _latest_first(self, layer: Layer) -> Sequence[Tensor]:
        """The inputs that other layers give, the one that is ready last first."""
        given = {tensor.name: tensor for tensor in layer.inputs if tensor is not None and tensor.producer is not None}
        if len(given) < 2:
            return list(given.values())
        return sorted(given.values(), key=lambda tensor: -(tensor.producer.index if tensor.producer else 0))

    def _giving(self, tensor: Tensor) -> _GrowingGroup | None:
        """The group whose only output is this tensor, if layers may join it."""
        producer = tensor.producer
        growing = self._group_of.get(producer.name if producer is not None else "")
        if growing is None or tensor.name in self._outputs or growing.place.segment < 0:
            return None
        is_end = growing.group.layers[-1] is producer and len(growing.group.outputs) == 1
        return growing if is_end and tensor.consumers else None

    def _ending_in(self, tensor: Tensor) -> _GrowingGroup | None:
        """The group whose only output is this tensor, if one layer alone reads it."""
        growing = self._giving(tensor)
        if growing is None:
            return None
        only_reader = tensor.consumers[0][0]
        # Ends at the second reader: a tensor may have thousands, each of which asks this.
        is_read_once = all(consumer is only_reader for consumer, _ in tensor.consumers)
        return growing if is_read_once and self._rounds_once(growing.place) else None

    def _rounds_once(self, place: LayerPlace) -> bool:
        """`rounds_once`, asked once for each device and precision."""
        key = place.device, place.precision
        if key not in self._rounding_once:
            self._rounding_once[key] = rounds_once(place)
        return self._rounding_once[key]

    def _begin(self, layer: Layer) -> _GrowingGroup:
        """A group of a layer, with the dequantizations before it where a kernel absorbs them."""
        place = self._places[layer.name]
        candidates: Sequence[Kernel] = ()
        group = LayerGroup((*self._dequantizations(layer), layer))
        if group.prologue and layer.name not in self._real:
            quantized = attrs.evolve(place, precision=quantized_type(group) or place.precision)
            if self._rounds_once(quantized):
                candidates = self._choice.absorbing(place.device, group, self._specs)
                place = quantized if candidates else place
        if not candidates:
            group = LayerGroup((layer,)) if len(group.layers) > 1 else group
            candidates = self._choice.candidates(place.device, group, self._specs)
        joined = _Joined(group, candidates)
        self._groups.append(_GrowingGroup(place, joined, joined if self._may_end(group) else None))
        return self._groups[-1]

    def _dequantizations(self, layer: Layer) -> list[Layer]:
        """The dequantizations at a layer's place that it reads through."""
        place = self._places[layer.name]
        found = [] if place.segment < 0 else dequantizations_before(layer)
        return [one for one in found if place.is_beside(self._places.get(one.name))]

    def _join(self, growing: _GrowingGroup, layer: Layer) -> bool:
        """Add a layer to a group whose output it reads, if device and kernels allow it."""
        place = self._places[layer.name]
        is_near = growing.place.is_beside(place) if growing.is_quantized else growing.place == place
        if not is_near or len(growing.group.layers) - len(growing.group.prologue) >= LONGEST_GROUP:
            return False
        if _moves(layer) and _moves(growing.group.main) and place.device != registry.host().device:
            return False  # on a device each is a layer with a cost of its own; here they are one copy
        # The other operand of a sum may be quantized too, or not.
        others = self._dequantizations(layer) if growing.is_quantized else []
        for group in [LayerGroup((*growing.group.layers, *others)), growing.group] if others else [growing.group]:
            taking = self._choice.taking(growing.joined.candidates, group, layer, self._specs)
            if not taking:
                continue
            longer = LayerGroup((*group.layers, layer))
            candidates = self._able_to_round(place, longer, taking)
            if candidates and self._grow(growing, longer, candidates):
                return True
        return False

    def _join_fork(self, layer: Layer) -> _GrowingGroup | None:
        """Join the whole fork that a layer is among the first of to the group before it, or make it a group of its own.

        No fusion of a device describes a fork: on a device that declares fusions, its layers are not joined. Nor are
        they where a kernel would take them for their constants, and a refit may give these other values.
        """
        place = self._places[layer.name]
        for tensor in layer.connected_inputs:
            fork = fork_after(tensor)
            if not fork or not self._may_join(fork, place):
                continue
            longer = with_next(fork)
            forks = [longer, fork] if self._places.get(longer[-1].name) == place else [fork]
            if not self._choice.has_fixed_constants:
                forks = [one for one in forks if not any(has_constants(layer) for layer in one)]
            before = self._giving(tensor)
            is_near = before is not None and before.place == place
            if before and is_near and any(self._grow_by_fork(before, (*before.group.layers, *one)) for one in forks):
                return before
            alone = self._begin(fork[0])
            if any(self._grow_by_fork(alone, tuple(one)) for one in forks) or fork[0] is layer:
                return alone
            self._groups.remove(alone)
        return None

    def _may_join(self, fork: Sequence[Layer], place: LayerPlace) -> bool:
        """Whether all layers of a fork are at this place, where none of their results has to be rounded."""
        is_new = not any(one.name in self._group_of for one in fork)
        is_together = is_new and place.segment >= 0 and all(self._places.get(one.name) == place for one in fork)
        return is_together and registry.target(place.device).fusions is None and self._rounds_once(place)

    def _grow_by_fork(self, growing: _GrowingGroup, layers: tuple[Layer, ...]) -> bool:
        """Make a group these layers, if a kernel that may run it takes them all."""
        able = [kernel for kernel in growing.joined.candidates if kernel.fuses_forks]
        is_named = any(layer.name in self._choice.named for layer in layers[1:])
        if growing.is_quantized or not able or is_named or len(layers) > LONGEST_GROUP:
            return False
        taking = self._choice.taking(able, LayerGroup(layers[:-1]), layers[-1], self._specs)
        if taking:
            joined = _Joined(LayerGroup(layers), taking)
            growing.grow(joined, is_whole=self._may_end(joined.group))
            self._group_of.update(dict.fromkeys((layer.name for layer in layers), growing))
        return len(taking) > 0

    def _join_source(self, growing: _GrowingGroup) -> None:
        """Join a group that ends in a quantize layer to one whose quantized output only it reads."""
        for tensor in sources_of_its_own(growing.group, self._outputs):
            before = self._ending_in(tensor)
            if before is None or not before.is_quantized or before.place != growing.place:
                continue
            longer = LayerGroup((*before.group.layers, *growing.group.layers))
            running = self._choice.running(before.joined.candidates, longer, growing.group, self._specs)
            candidates = self._able_to_round(before.place, longer, running)
            if candidates and self._grow(before, longer, candidates):
                self._groups.remove(growing)
                for layer in growing.group.layers:
                    # A dequantization stays where it was: in its own group, or in the one that first read through it.
                    if not is_repeatable(layer):
                        self._group_of[layer.name] = before
                return

    def _able_to_round(self, place: LayerPlace, group: LayerGroup, candidates: Sequence[Kernel]) -> Sequence[Kernel]:
        """The kernels that can quantize in a group: the host's only by a rounding mode."""
        if all(layer.kind != "quantize" for layer in group.layers) or own_rounding(place.device) is None:
            return candidates
        host = registry.host().kernels
        return [kernel for kernel in candidates if kernel not in host]

    def _grow(self, growing: _GrowingGroup, longer: LayerGroup, candidates: Sequence[Kernel]) -> bool:
        """Make a group longer, if the device declares no fusions or one begins so."""
        fusions, layers = registry.target(growing.place.device).fusions, chain(longer.layers)
        if fusions is None or len(layers) == 1:
            growing.grow(_Joined(longer, candidates), is_whole=self._may_end(longer))
            return True
        fusion = allowing(
            fusions,
            layers,
            lambda one, error: registry.fail_function(growing.place.device, f"fusion {one.name}, where", error),
        )
        if fusion is None and not any(one.may_begin_with(layers) for one in fusions):
            return False
        growing.grow(
            _Joined(longer, candidates, fusion.name if fusion else ""),
            is_whole=fusion is not None and self._may_end(longer),
        )
        return True

    def _may_end(self, group: LayerGroup) -> bool:
        """Whether a group is whole: what an implicitly quantized network computes in INT8 may give real numbers."""
        is_implicit = self._places[group.main.name].precision is DataType.INT8
        return not group.prologue or is_implicit or may_end(group)

    def finished(self) -> list[JoinedGroup]:
        """The groups, none longer than the fusions of its device allow."""
        groups = list(self._cut_back())
        groups = [groups[index] for index in needed([whole.group for whole, _ in groups], self._outputs)]
        return [JoinedGroup(whole.group, whole.candidates, place, whole.fusion) for whole, place in groups]

    def _cut_back(self) -> Iterable[tuple[_Joined, LayerPlace]]:
        """The groups, and after each what becomes of the layers that are too many for it."""
        for growing in self._groups:
            whole = () if growing.whole is None else growing.whole.group.layers
            if growing.whole is not None:
                yield growing.whole, growing.place
            left = [layer for layer in growing.group.layers if layer not in whole]
            if not left:
                continue
            real = {growing.group.main.name} if growing.whole is None else set()
            rest = _Fuser(self._specs, self._outputs, self._places, self._choice, real)
            for layer in left:
                # A dequantization has a group of its own from the beginning.
                if not is_repeatable(layer):
                    rest.add(layer)
            yield from rest._cut_back()
