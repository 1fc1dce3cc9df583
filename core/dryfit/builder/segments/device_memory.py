"""Where each tensor of the engine lies in its device's memory.

A tensor that only one segment sees lies in the activations pool of that device. What crosses a border, and each copy
that a reformat makes, lies in a pool of its device that is called `ACTIVATIONS` and has no limit: the memory of the
board. A device that declares no pool for activations has everything there.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

import attrs

from dryfit.attrs_classes import frozen
from dryfit.builder.formats.choice import Formats
from dryfit.builder.formats.forms import TensorForm, TensorForms
from dryfit.builder.fusion.groups import FusedGroup, JoinedGroup
from dryfit.builder.fusion.lowering import LoweredNetwork
from dryfit.builder.placement.roles import LayerRole
from dryfit.builder.placement.target_variant import Specs, TargetVariant, knowing, known_shape
from dryfit.engine.memory_planner import MemoryPlan, plan_memory
from dryfit.engine.plan import TensorPlacement
from dryfit.network.data_types import DataType
from dryfit.network.network import Network
from dryfit.network.tensor import Shape, Tensor
from dryfit.target.formats import LINEAR
from dryfit.target.kernels import HostLayout
from dryfit.target.memory_pools import MemoryPool

ACTIVATIONS = MemoryPool("ACTIVATIONS", {"": None}, holds="activations", alignment_bytes=256)
"""The pool of a device that declares none for activations; aligned as TensorRT's own allocator is."""


@frozen
class DeviceMemory:
    """The layout of all devices' memory.

    Attributes:
        placements: tensor name to place, for every tensor that is stored and carries data.
        pool_sizes: `device/pool` to bytes that activations take.
    """

    placements: Mapping[str, TensorPlacement]
    pool_sizes: Mapping[str, int]

    def lines(self) -> Iterator[str]:
        """What a dump says of it."""
        for one in self.placements.values():
            yield f"{one.tensor}: {one.size} bytes at {one.offset} of {one.device}/{one.pool}"


@attrs.frozen
class PlacedTensor:
    """A tensor, or a copy of one, that has to lie somewhere.

    Attributes:
        name: of the tensor in the engine's network; None for a copy that only the device makes.
        form: device, type and format.
        size: bytes.
        life: first and last operation.
        segment: the one that alone sees it; -1 for none.
    """

    name: str | None
    form: TensorForm
    size: int
    life: tuple[int, int]
    segment: int


@frozen
class MemoryContents:
    """What has to lie in the memory of all devices.

    Attributes:
        order: names of the tensors of the engine's network.
        on_border: inputs and outputs of the network, which the caller stores, by name.
        pools: (`device/pool`, segment or -1) to the pool and what lies in it.
    """

    order: Sequence[str]
    on_border: Mapping[str, PlacedTensor]
    pools: Mapping[tuple[str, int], tuple[MemoryPool, Sequence[PlacedTensor]]]


def memory_contents(
    lowered: LoweredNetwork,
    groups: Sequence[JoinedGroup],
    formats: Formats,
    variants: Mapping[str, TargetVariant],
    specs: Specs,
) -> MemoryContents:
    """Find out what has to lie in the memory of all devices, and how long.

    Args:
        lowered: the engine's network.
        groups: its operations, in execution order.
        formats: the form of each tensor of the network that was cut.
        variants: device name to target.
        specs: tensor name to spec at the shapes the engine is optimised for, of the network that was cut.
    """
    border = {tensor.name for tensor in (*lowered.network.inputs, *lowered.network.outputs)}
    on_border: dict[str, PlacedTensor] = {}
    pools: dict[tuple[str, int], tuple[MemoryPool, list[PlacedTensor]]] = {}
    members: dict[tuple[str, int], list[PlacedTensor]] = {}
    for one in _Collector(lowered, groups, formats, variants, specs).collect():
        if one.name is not None and one.name in border:
            on_border[one.name] = one
            continue
        place = one.form.device, one.segment
        if place not in members:
            pool = _activations_pool(variants[one.form.device], one.segment)
            key = one.segment if pool.per == "segment" else -1
            _, members[place] = pools.setdefault((f"{one.form.device}/{pool.name}", key), (pool, []))
        members[place].append(one)
    return MemoryContents([tensor.name for tensor in lowered.network.tensors], on_border, pools)


def plan_device_memory(contents: MemoryContents, layouts: Mapping[str, HostLayout]) -> DeviceMemory:
    """Lay out the memory of all devices.

    Args:
        contents: what lies there.
        layouts: tensor name to host layout.
    """
    pool_sizes: dict[str, int] = {}
    placements: dict[str, TensorPlacement] = {}
    for name, one in contents.on_border.items():
        layout = layouts.get(name, HostLayout.LINEAR)
        placements[name] = TensorPlacement(name, one.form.device, one.form.layout.name, "", 0, one.size, layout)
    for (name, _), (pool, members) in contents.pools.items():
        offsets, total = _planned(pool, members)
        pool_sizes[name] = pool_sizes.get(name, 0) + total
        for one, offset in zip(members, offsets, strict=True):
            if one.name is not None:
                layout = layouts.get(one.name, HostLayout.LINEAR)
                placements[one.name] = TensorPlacement(
                    one.name, one.form.device, one.form.layout.name, pool.name, offset, one.size, layout
                )
    in_order = {name: placements[name] for name in contents.order if name in placements}
    return DeviceMemory(in_order, dict(sorted(pool_sizes.items())))


def segment_pool_bytes(contents: MemoryContents, num_segments: int) -> Sequence[Mapping[str, int]]:
    """For each segment pool name to bytes of activations, for the pools with a limit a segment.

    The large pools, which all segments share, are not laid out.
    """
    found: list[dict[str, int]] = [{} for _ in range(num_segments)]
    for (_, segment), (pool, members) in contents.pools.items():
        if segment >= 0:
            found[segment][pool.name] = _planned(pool, members).total
    return found


def _planned(pool: MemoryPool, members: Sequence[PlacedTensor]) -> MemoryPlan:
    return plan_memory([(one.size, *one.life) for one in members], pool.alignment_bytes)


def _activations_pool(variant: TargetVariant, segment: int) -> MemoryPool:
    """The pool for a tensor of one segment, or, for segment -1, for one between segments."""
    for pool in variant.target.memory_pools:
        if pool.holds == "activations" and (segment >= 0 or pool.per != "segment"):
            return pool
    return ACTIVATIONS


class _Collector:
    """Finds out what has to be stored, how, and how long."""

    def __init__(
        self,
        lowered: LoweredNetwork,
        groups: Sequence[JoinedGroup],
        formats: Formats,
        variants: Mapping[str, TargetVariant],
        specs: Specs,
    ) -> None:
        self._lowered = lowered
        self._groups = groups
        self._formats = formats
        self._variants = variants
        self._specs = specs
        self._places: dict[Hashable, tuple[tuple[TensorForm, int], ...]] = {}

    def collect(self) -> list[PlacedTensor]:
        written: dict[str, int] = {tensor.name: -1 for tensor in self._lowered.network.inputs}
        last_read: dict[str, int] = {}
        readers: dict[str, list[JoinedGroup]] = {}
        for step, fused in enumerate(self._groups):
            for tensor in fused.group.inputs:
                last_read[tensor.name] = step
                readers.setdefault(tensor.name, []).append(fused)
            if fused.place.role is not LayerRole.SHAPE:
                written.update((tensor.name, step) for tensor in fused.group.outputs)
        producers = {tensor.name: fused for fused in self._groups for tensor in fused.group.outputs}
        stored: list[PlacedTensor] = []
        for tensor in self._lowered.network.tensors:
            name = tensor.name
            origin = self._lowered.origins.get(name)
            # What carries no data, shape tensors in whatever type, is with the host.
            if name not in written or origin is None or origin[0] not in self._formats.forms:
                continue
            life = (written[name], max(written[name], last_read.get(name, -1)))
            segment = self._only_segment(tensor, producers.get(name), readers.get(name, []))
            (own, size), *copies = self._forms_and_sizes(tensor, *origin)
            stored.append(PlacedTensor(name, own, size, life, segment))
            # The engine's network has no tensors for copies of the same type.
            stored += [PlacedTensor(None, copy, copied, life, -1) for copy, copied in copies]
        return stored

    def _only_segment(self, tensor: Tensor, producer: JoinedGroup | None, readers: Sequence[JoinedGroup]) -> int:
        """The segment that alone sees a tensor; -1 where there is none."""
        segments = {reader.place.segment for reader in readers}
        segments.add(-1 if producer is None else producer.place.segment)
        return segments.pop() if len(segments) == 1 and not tensor.is_network_output else -1

    def _forms_and_sizes(self, tensor: Tensor, origin: str, dtype: DataType) -> Sequence[tuple[TensorForm, int]]:
        """The forms of a tensor of the engine's network with their bytes, its own first: its origin's in this type."""
        forms, shape = self._formats.forms[origin], known_shape(self._specs[origin])
        is_output = tensor.is_network_output
        # Tensors inside a segment share the record of their forms, which live as long as `self._formats`.
        key = (id(forms), shape, dtype, is_output)
        if key not in self._places:
            # A type that only a cast inside the producer's device sees has no form of its own.
            linear = TensorForm(forms.produced.device, dtype, LINEAR)
            own, *copies = forms.of_type(dtype, is_output=is_output) or [linear]
            found = [(self._readable(own, forms), self._size(own, shape))]
            self._places[key] = (*found, *((copy, self._size(copy, shape)) for copy in copies))
        return self._places[key]

    def _readable(self, form: TensorForm, forms: TensorForms) -> TensorForm:
        """The form on a device that knows its format: the caller may be asked for a format of the device it feeds."""
        others = [other.device for other in (forms.produced, *forms.copies)]
        owner = knowing(self._variants, form.layout, [form.device, *others])
        return form if owner.device == form.device else attrs.evolve(form, device=owner.device)

    def _size(self, form: TensorForm, shape: Shape) -> int:
        return knowing(self._variants, form.layout, [form.device]).size_bytes(form.layout, shape, form.dtype)


_IMAGE_RANKS = (4, 5)
"""Images, and volumes."""


def choose_host_layouts(network: Network, groups: Sequence[FusedGroup]) -> dict[str, HostLayout]:
    """Tensor name to layout, for every tensor that groups read or write.

    An image or a volume is kept with its channels last where its producer or a reader asks for that. Where only kernels
    without a preference touch it, it lies as its neighbours do. The engine's inputs and outputs are row-major.
    """
    border = {tensor.name for tensor in (*network.inputs, *network.outputs)}
    wishes: dict[str, HostLayout] = {}
    for fused in groups:
        for tensor in _tensors(fused):
            is_free = tensor.name not in border and len(tensor.shape) in _IMAGE_RANKS
            wish = fused.kernel.layout if is_free else HostLayout.LINEAR
            wishes[tensor.name] = _stronger(wishes.get(tensor.name, HostLayout.ANY), wish)
    for direction in (groups, groups[::-1]):
        wishes = _spread(direction, wishes, border)
    return {
        name: HostLayout.CHANNELS_LAST if wish is HostLayout.CHANNELS_LAST else HostLayout.LINEAR
        for name, wish in wishes.items()
    }


def _spread(groups: Iterable[FusedGroup], wishes: Mapping[str, HostLayout], border: set[str]) -> dict[str, HostLayout]:
    """The wishes, where kernels without a preference also keep what is still open as they keep the rest.

    One network input or output in a group says nothing: it is row-major for the caller's sake.
    """
    now = dict(wishes)
    for fused in groups:
        if fused.kernel.layout is not HostLayout.ANY:
            continue
        images = [
            tensor for tensor in _tensors(fused) if len(tensor.shape) in _IMAGE_RANKS and tensor.name not in border
        ]
        known = [now[tensor.name] for tensor in images if now[tensor.name] is not HostLayout.ANY]
        if known:
            wish = HostLayout.CHANNELS_LAST if HostLayout.CHANNELS_LAST in known else known[0]
            for tensor in images:
                now[tensor.name] = _stronger(now[tensor.name], wish)
    return now


def _tensors(fused: FusedGroup) -> list[Tensor]:
    """What a group reads and writes, without constants."""
    return [tensor for tensor in (*fused.group.inputs, *fused.group.outputs) if not tensor.is_constant]


def _stronger(first: HostLayout, second: HostLayout) -> HostLayout:
    """The wish that wins where two meet: channels last, then row-major, then none."""
    order = (HostLayout.CHANNELS_LAST, HostLayout.LINEAR, HostLayout.ANY)
    return order[min(order.index(first), order.index(second))]
