"""Runs plugins of programs: tensors are copied to memory whose addresses the plugin gets, and from it."""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import dryfit
from dryfit_tensorrt import memory
from dryfit_tensorrt.behaviour.dimension_expressions import evaluated
from dryfit_tensorrt.behaviour.plugin_faces import CHANNELS_LAST, Array, Face, Layout, Record, Shape, Slot, tensor_desc

_CURRENT = threading.local()


class UsedBy:
    """The execution context that runs in this thread, in a `with` statement: plugins are attached once to each."""

    def __init__(self, context: Any) -> None:
        self._context = context

    def __enter__(self) -> None:
        self._before = getattr(_CURRENT, "context", None)
        _CURRENT.context = self._context

    def __exit__(self, *error: object) -> None:
        _CURRENT.context = self._before


class Attached:
    """A plugin that belongs to an execution context.

    Attributes:
        face: the plugin.
        runs: what it is configured for now.
    """

    def __init__(self, face: Face, tactic: int) -> None:
        self.face = face.attached()
        self.face.set_tactic(tactic)
        if self.face.plugin is not face.plugin:  # one that is not a copy may be in use elsewhere
            weakref.finalize(self, self.face.release)
        self.runs: Run | None = None


def attached(face: Face, record: Record, handle: int) -> Attached:
    """Return the plugin that belongs to the context that runs, or a new one outside of any."""
    context = getattr(_CURRENT, "context", None)
    if context is None:
        return Attached(face, record.tactic)
    held = vars(context).setdefault("_plugins", {})
    if handle not in held:
        held[handle] = Attached(face, record.tactic)
    return held[handle]  # type: ignore[no-any-return]


class Run:
    """A plugin at one set of shapes, with the memory of its tensors.

    Args:
        plugin: the plugin.
        record: of the layer.
        inputs: specs of the layer's inputs.
        outputs: specs of its outputs; -1 where the data decides.
    """

    def __init__(
        self,
        plugin: Attached,
        record: Record,
        inputs: Sequence[dryfit.TensorSpec | None],
        outputs: Sequence[dryfit.TensorSpec],
    ) -> None:
        self._plugin, self._record = plugin, record
        api, tensors = plugin.face.api, record.tensors(inputs)
        slots = record.layouts()
        scales = record.scales or [1.0] * len(slots)
        count = len(tensors)
        shapes = [*(spec.shape for spec in tensors), *(spec.shape for spec in outputs)]
        descs = [tensor_desc(api, shape, slot, scale) for shape, slot, scale in zip(shapes, slots, scales, strict=True)]
        self._descs = descs[:count], descs[count:]
        self._scales = scales
        self._outside = record.outer_layouts()
        self._types = [dtype for dtype, _ in slots]
        self._layouts = [layout for _, layout in slots]
        self._shapes = [spec.shape for spec in tensors]
        self._outputs = [spec.shape for spec in outputs]
        self._addresses: dict[int, int] = {}
        self._workspace = 0
        weakref.finalize(self, _free, self._addresses)

    def _address(self, place: int, size: int) -> int:
        """The address of the memory of a tensor, or of the workspace (-1), which grows as it is needed."""
        found = self._addresses.get(place, 0)
        held = memory.allocation_at(found) if found else None
        if held is None or held.size < size:
            if found:
                memory.free(found)
            found = self._addresses[place] = memory.allocate(size)
        return found

    def run(self, arrays: Sequence[Array | None]) -> list[Array]:
        """Return the outputs for inputs of these shapes.

        Raises:
            PluginError: The plugin failed.
        """
        plugin, record = self._plugin, self._record
        if plugin.runs is not self:
            plugin.face.change_shapes(*self._descs)
            plugin.runs = self
        tensors, count = record.tensors(arrays), len(self._shapes)
        steps = evaluated(record.nodes, self._shapes, record.values(arrays))
        largest = [_shape(steps, places) for places in record.shapes]
        inputs = [self._given(index, array) for index, array in enumerate(tensors)]
        outputs = []
        for index, shape in enumerate(largest):
            alias = record.aliases.get(str(index))
            size = self._bytes(count + index, shape)
            outputs.append(inputs[alias] if alias is not None else self._address(count + index, size))
        workspace = self._address(-1, record.workspace) if record.workspace else 0
        stream = getattr(getattr(_CURRENT, "context", None), "_stream", 0)
        plugin.face.enqueue(*self._descs, inputs, outputs, workspace, stream)
        return self._results(outputs, record.values(arrays))

    def _given(self, index: int, array: Array) -> int:
        """The address of a copy of an input."""
        layout = self._layouts[index]
        if self._is_quantized(index):
            codes = np.clip(np.rint(np.asarray(array, np.float32) / np.float32(self._scales[index])), -128, 127)
            array = packed(codes, (self._types[index], layout))
        plain = np.moveaxis(array, -3, -1) if layout == CHANNELS_LAST else array
        contents = np.ascontiguousarray(plain).reshape(-1).view(np.uint8)
        address = self._address(index, contents.size)
        if contents.size:
            memory.view(address, contents.size)[:] = contents
        return address

    def _is_quantized(self, slot: int) -> bool:
        """Whether the plugin computes in INT8 on real numbers, which the layer converts."""
        return self._outside[slot][0] is not self._types[slot]

    def _bytes(self, slot: int, shape: Shape) -> int:
        return _elements(shape, self._types[slot], self._layouts[slot]) * self._types[slot].numpy.itemsize

    def _results(self, addresses: Sequence[int], values: Sequence[Any]) -> list[Array]:
        """Copies of the outputs, in the extents that size tensors state."""
        record, count = self._record, len(self._shapes)
        stated = {node[1] for node in record.nodes if node[0] == "size"}
        sizes = {
            index: int(memory.array_at(addresses[index], (), self._types[count + index].numpy)) for index in stated
        }
        bounds = evaluated(record.nodes, self._shapes, values)
        steps = evaluated(record.nodes, self._shapes, values, sizes) if stated else bounds
        for node, upper in zip(record.nodes, bounds, strict=True):
            if node[0] == "size" and not 0 <= sizes[node[1]] <= (upper or 0):
                raise dryfit.PluginError(
                    "The plugin stated an extent outside of its bounds",
                    where=f"size tensor, output {node[1]}",
                    found=sizes[node[1]],
                    allowed=f"0 to {upper}",
                    remedy="Fix the plugin, or the upper bound that it declares",
                )
        found = []
        for index, places in enumerate(record.shapes):
            shape, slot = _shape(steps, places), count + index
            dtype, layout = self._types[slot], self._layouts[slot]
            if layout == CHANNELS_LAST:
                moved = (*shape[:-3], *shape[-2:], shape[-3])
                array = np.moveaxis(memory.array_at(addresses[index], moved, dtype.numpy).copy(), -1, -3)
            else:
                extents = shape if isinstance(layout, str) else layout.array_shape(shape, dtype)
                array = memory.array_at(addresses[index], tuple(extents), dtype.numpy).copy()
            if self._is_quantized(slot):
                codes = array if isinstance(layout, str) else layout.unpack(array, shape)
                array = codes.astype(np.float32) * np.float32(self._scales[slot])
            found.append(array)
        return found


def packed(array: Array, slot: Slot) -> Array:
    """Return an array in the form in which a layer plugin gets it in a format."""
    dtype, layout = slot
    plain = np.ascontiguousarray(array, dtype.numpy)
    if not isinstance(layout, str):
        return layout.pack(plain)
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(plain, -3, -1)), -1, -3) if layout == CHANNELS_LAST else plain


def _shape(steps: Sequence[int | None], places: Sequence[int]) -> Shape:
    """The extents of an output whose steps are all known."""
    shape = tuple(steps[place] for place in places)
    if None in shape or any(extent is not None and extent < 0 for extent in shape):
        raise dryfit.PluginError(
            "The plugin's output has an impossible shape",
            found=shape,
            remedy="Fix get_output_shapes, or the shapes of the inputs",
        )
    return tuple(int(extent or 0) for extent in shape)


def _elements(shape: Shape, dtype: dryfit.DataType, layout: Layout) -> int:
    return math.prod(shape if isinstance(layout, str) else layout.array_shape(shape, dtype))


def _free(addresses: Mapping[int, int]) -> None:
    for address in addresses.values():
        if memory.allocation_at(address) is not None:
            memory.free(address)
