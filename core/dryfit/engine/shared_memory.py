"""Tensors that need no memory of their own, because they are stored in that of another one.

The inputs of a concatenation of channels are stored in its output: whatever computes or reads them does so in their
place. What a layer only sees otherwise, such as a reshape, is stored in its input. Nothing is copied then.

A tensor lives as long as what is stored in it. So that a network with long connections, such as a U-Net, needs no more
memory for that, only what keeps the largest set of live tensors nearly as small is shared.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import attrs

from dryfit.attrs_classes import frozen
from dryfit.engine.buffers import new_array, size_of
from dryfit.engine.memory_planner import largest_live_set
from dryfit.engine.resolved_operation import ResolvedOperation
from dryfit.errors import PluginError
from dryfit.network.tensor import TensorSpec
from dryfit.target.kernels import Array, HostLayout

GROWTH = 1.02
"""Of the largest live set, which sharing may cost. Our choice: what tensors save by it is time, not memory."""

_NO_CHANNELS = (0, 0)


@attrs.frozen
class Stored:
    """A tensor with memory: its static spec, layout, and the steps in which it is live."""

    spec: TensorSpec
    layout: HostLayout
    first: int
    last: int


@frozen(eq=False)
class Inside:
    """Where a tensor lies in another one.

    Attributes:
        of: name of the other one.
        channels: the first of its channels, and the one behind the last.
        seen: what makes the tensor's array of the other one's; None for these channels.
    """

    of: str
    channels: tuple[int, int] = _NO_CHANNELS
    seen: Callable[[Array], Array | None] | None = None

    def view(self, array: Array) -> Array:
        """Return the tensor's array, in the other one's.

        Raises:
            PluginError: The kernel no longer gives a view.
        """
        seen = array[:, slice(*self.channels)] if self.seen is None else self.seen(array)
        if seen is None:
            raise PluginError(
                "A kernel that gave a view of an array must give one of every array like it",
                where=f"array in tensor {self.of!r}",
                found=f"no view of {array.dtype} {array.shape}",
                remedy="Let the kernel's `view` depend on shapes and strides only, or leave it out",
            )
        return seen


def shared_memory(
    running: Sequence[ResolvedOperation],
    stored: Mapping[str, Stored],
    inputs: Mapping[str, tuple[TensorSpec, HostLayout]],
    specs: Mapping[str, TensorSpec],
    foreign: Collection[str],
) -> dict[str, Inside]:
    """Return the stored tensors that lie in others.

    Args:
        running: operations, in the order in which they run.
        stored: tensors between them, by name.
        inputs: those that are given, by name.
        specs: of every tensor.
        foreign: names of tensors that lie in no other one: not all that touches them expects gaps between pixels, or
            values that do not begin at a cache line.
    """
    found = dict(_views(running, stored, inputs, specs, foreign))
    _add_joined(found, running, stored, specs, foreign)
    limit = GROWTH * _live_bytes(stored)
    if _live_bytes(merged(stored, found)) <= limit:
        return found
    kept: dict[str, Inside] = {}
    for _, group in itertools.groupby(sorted(found, key=lambda name: found[name].of), lambda name: found[name].of):
        more = {**kept, **{name: found[name] for name in group}}
        kept = more if _live_bytes(merged(stored, more)) <= limit else kept
    return kept


def merged(stored: Mapping[str, Stored], inside: Mapping[str, Inside]) -> dict[str, Stored]:
    """Return the tensors that have memory of their own, live as long as what lies in them."""
    found = {name: one for name, one in stored.items() if name not in inside}
    for name in inside:
        root = inside[name].of
        while root in inside:
            root = inside[root].of
        if root in found:
            one, part = found[root], stored[name]
            found[root] = attrs.evolve(one, first=min(one.first, part.first), last=max(one.last, part.last))
    return found


def _live_bytes(stored: Mapping[str, Stored]) -> int:
    return largest_live_set([(size_of(one.spec), one.first, one.last) for one in stored.values()])


def _views(
    running: Sequence[ResolvedOperation],
    stored: Mapping[str, Stored],
    inputs: Mapping[str, tuple[TensorSpec, HostLayout]],
    specs: Mapping[str, TensorSpec],
    foreign: Collection[str],
) -> Iterator[tuple[str, Inside]]:
    """The outputs that are their input, seen otherwise, and dense."""
    places = {**inputs, **{name: (one.spec, one.layout) for name, one in stored.items()}}
    for resolved in running:
        view, read, name = resolved.kernel.view, resolved.group.inputs, resolved.group.outputs[0].name
        if view is None or not read or name not in stored or read[0].name not in places:
            continue
        source = read[0].name
        if name in foreign or source in foreign:
            continue
        seen = functools.partial(view, resolved.group, specs)
        array = seen(new_array(*places[source]))
        if array is not None and _lies_like(array, new_array(stored[name].spec, stored[name].layout)):
            yield name, Inside(source, seen=seen)


def _lies_like(array: Array, dense: Array) -> bool:
    """Whether an array has the type, the shape and the strides of another one."""
    strides = [
        [stride for stride, extent in zip(one.strides, one.shape, strict=True) if extent != 1] for one in (array, dense)
    ]
    return array.dtype == dense.dtype and array.shape == dense.shape and strides[0] == strides[1]


def _add_joined(
    found: dict[str, Inside],
    running: Sequence[ResolvedOperation],
    stored: Mapping[str, Stored],
    specs: Mapping[str, TensorSpec],
    foreign: Collection[str],
) -> None:
    """Add the inputs of concatenations of channels, whose pixels lie apart then, with their channels together."""
    for resolved in reversed(running):
        whole, layer = resolved.group.outputs[0].name, resolved.group.main
        if not resolved.kernel.joins_channels or whole not in stored or whole in foreign:
            continue
        layout, rank = stored[whole].layout, stored[whole].spec.rank
        if layout is not HostLayout.CHANNELS_LAST or rank not in (4, 5) or getattr(layer, "axis", None) != 1:
            continue
        start, names = 0, [tensor.name for tensor in layer.connected_inputs]
        placed = [found[name] for name in names if name in found]
        if len(placed) == len(names) and whole not in found and _are_consecutive(placed):
            # As in DenseNet, where the inputs of a concatenation are the first ones of the next.
            found[whole] = Inside(placed[0].of, (placed[0].channels[0], placed[-1].channels[1]))
            continue
        for name in names:
            begin, start = start, start + specs[name].shape[1]
            is_free = name in stored and name not in foreign and name not in found and names.count(name) == 1
            if is_free and stored[name].layout is layout:
                found[name] = Inside(whole, (begin, start))


def _are_consecutive(parts: Sequence[Inside]) -> bool:
    """Whether these are channels of one tensor, one after the other."""
    return all(one.channels != _NO_CHANNELS for one in parts) and all(
        (before.of, before.channels[1]) == (after.of, after.channels[0]) for before, after in itertools.pairwise(parts)
    )
