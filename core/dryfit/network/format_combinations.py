"""The type and format combinations that a layer plugin supports, and the selection among them.

In LINEAR and in HWC (channels innermost), a plugin receives arrays of the tensor's own shape. A device format, such as
one that groups channels into vectors (CHW16, CHW32), is given by its record: the plugin then receives the memory in the
device's layout, including padding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.errors import NetworkError, PluginError
from dryfit.network.data_types import EXCHANGED_TYPES, DataType
from dryfit.network.layer import Inputs
from dryfit.network.layer_plugin import Fields, LayerPlugin, MemoryLayout, plugin_title
from dryfit.network.tensor import Array, TensorSpec

LINEAR, CHANNELS_LAST = "LINEAR", "HWC"
PLUGIN_FORMATS = (LINEAR, CHANNELS_LAST)

Layout = str | MemoryLayout
"""`LINEAR`, `HWC`, or the record of a device's format."""


@frozen
class FormatCombination:
    """A combination that a plugin's `format_combinations` returns.

    Attributes:
        inputs: (type, format) of each input; ignored for an absent input.
        outputs: (type, format) of each output.
    """

    inputs: Sequence[tuple[DataType, Layout]]
    outputs: Sequence[tuple[DataType, Layout]]

    @property
    def input_types(self) -> tuple[DataType, ...]:
        """Type of each input."""
        return tuple(dtype for dtype, _ in self.inputs)

    @property
    def output_types(self) -> tuple[DataType, ...]:
        """Type of each output."""
        return tuple(dtype for dtype, _ in self.outputs)

    def __str__(self) -> str:
        return " -> ".join(
            ", ".join(f"{dtype.name} {layout if isinstance(layout, str) else layout.name}" for dtype, layout in side)
            for side in (self.inputs, self.outputs)
        )


def stated_combinations(plugin: LayerPlugin, fields: Fields, inputs: Inputs) -> list[FormatCombination] | None:
    """Return a plugin's combinations, validated; None if it uses the types of the network.

    Raises:
        PluginError: Slots are missing, or are not types and formats.
    """
    answer = plugin.format_combinations(fields, inputs)
    if answer is None:
        return None
    num_outputs = len(plugin.output_specs(fields, inputs))
    combinations = []
    for slots in answer:
        read = [_slot(slot) for slot in slots] if isinstance(slots, (tuple, list)) else [None]
        if None in read or len(read) != len(inputs) + num_outputs:
            raise PluginError(
                "A combination must have a type, or a (type, format) pair, for each input and then each output",
                where=f"layer plugin {plugin_title(plugin.key)}",
                found=slots,
                allowed=f"{len(inputs)} inputs and {num_outputs} outputs; formats {', '.join(PLUGIN_FORMATS)}, or a "
                "TensorFormat",
                remedy="Fix the plugin's combinations, or report it to its authors",
            )
        pairs = [slot for slot in read if slot is not None]
        combinations.append(FormatCombination(pairs[: len(inputs)], pairs[len(inputs) :]))
    return combinations


def _slot(slot: Any) -> tuple[DataType, Layout] | None:
    dtype, layout = slot if isinstance(slot, tuple) and len(slot) == 2 else (slot, LINEAR)
    is_layout = layout in PLUGIN_FORMATS if isinstance(layout, str) else callable(getattr(layout, "unpack", None))
    return (dtype, layout) if isinstance(dtype, DataType) and is_layout else None


def chosen_combination(
    plugin: LayerPlugin,
    fields: Fields,
    inputs: Inputs,
    wishes: Sequence[DataType],
    *,
    allowed: Sequence[DataType] | None = EXCHANGED_TYPES,
) -> FormatCombination | None:
    """Return the combination that a plugin receives; None if it uses the types of the network.

    Of the matching combinations, the one with the most slots of the first preferred type is selected, then of the
    second, and so on; ties are resolved in the plugin's order.

    Args:
        plugin: the plugin.
        fields: complete fields of the layer.
        inputs: specs of the layer's inputs in the network.
        wishes: preferred types for FLOAT, HALF and BF16 slots, best first.
        allowed: types that those slots may have. None: the type in the network for each slot.

    Raises:
        NetworkError: No combination matches. The message lists all of them.
        PluginError: The plugin returned an invalid combination.
    """
    combinations = stated_combinations(plugin, fields, inputs)
    if combinations is None:
        return None
    fitting = [one for one in combinations if _fits(plugin, fields, inputs, one, allowed)]
    if not fitting:
        types = [spec.dtype.text for spec in inputs if spec is not None]
        raise NetworkError(
            f"The plugin {plugin_title(plugin.key)} does not support these types",
            found=f"{', '.join(types)} {_permission(allowed)}",
            allowed="; ".join(map(str, combinations)) or "nothing",
            remedy="Cast the inputs" + (", or permit a type with a builder flag such as FP16" if allowed else ""),
        )

    def granted(combination: FormatCombination) -> list[int]:
        return [-sum(dtype is wish for dtype in _types(combination, inputs)) for wish in wishes]

    return min(fitting, key=granted)


def _permission(allowed: Sequence[DataType] | None) -> str:
    if allowed is None:
        return "in a strongly typed network"
    return f"with {', '.join(dtype.text for dtype in allowed)} permitted"


def _types(combination: FormatCombination, inputs: Inputs) -> list[DataType]:
    """The types of the inputs that are there, and of the outputs."""
    given = zip(combination.input_types, inputs, strict=True)
    return [dtype for dtype, spec in given if spec is not None] + list(combination.output_types)


def _fits(
    plugin: LayerPlugin,
    fields: Fields,
    inputs: Inputs,
    combination: FormatCombination,
    allowed: Sequence[DataType] | None,
) -> bool:
    """Whether the inputs can be had in a combination's types and formats, and the plugin then gives its outputs."""
    for (dtype, layout), spec in zip(combination.inputs, inputs, strict=True):
        if spec is not None and not (_can_be(spec.dtype, dtype, allowed) and _is_defined(spec, dtype, layout)):
            return False
    outputs = list(plugin.output_specs(fields, with_types(inputs, combination.input_types)))
    return tuple(spec.dtype for spec in outputs) == combination.output_types and all(
        _is_defined(spec, dtype, layout) for spec, (dtype, layout) in zip(outputs, combination.outputs, strict=True)
    )


def _can_be(own: DataType, other: DataType, allowed: Sequence[DataType] | None) -> bool:
    return own is other if allowed is None or own not in EXCHANGED_TYPES else other in allowed


def _is_defined(spec: TensorSpec, dtype: DataType, layout: Layout) -> bool:
    """Whether a tensor can have a format; one whose extents are not known yet, where its rank and type allow that."""
    if isinstance(layout, str):
        return layout == LINEAR or spec.rank >= 3
    return layout.allows([max(extent, 1) if extent < 0 else extent for extent in spec.shape], dtype)


def with_types(inputs: Inputs, types: Sequence[DataType]) -> list[TensorSpec | None]:
    """Return the specs with other types; known contents are rounded to them."""
    return [
        spec
        if spec is None or spec.dtype is dtype
        else TensorSpec(spec.shape, dtype, None if spec.value is None else spec.value.astype(dtype.numpy))
        for spec, dtype in zip(inputs, types, strict=True)
    ]


def plugin_shape(spec: TensorSpec, layout: Layout) -> tuple[int, ...]:
    """Return the extents of a plugin's array for a tensor: those of its format, or the tensor's own."""
    return spec.shape if isinstance(layout, str) else layout.array_shape(spec.shape, spec.dtype)


def rearranged(array: Array, shape: Sequence[int], layout: Layout) -> Array:
    """Return the tensor of this shape that a plugin returned in a format."""
    return array if isinstance(layout, str) else layout.unpack(np.ascontiguousarray(array), shape)


def arranged(array: Array, dtype: DataType, layout: Layout) -> Array:
    """Return a read-only array of the type, in the memory order of the format; copied only if necessary."""
    if not isinstance(layout, str):
        view = layout.pack(np.ascontiguousarray(array, dtype.numpy))
    elif layout == CHANNELS_LAST:
        memory = np.ascontiguousarray(np.moveaxis(array, -3, -1), dtype.numpy)
        view = np.moveaxis(memory, -1, -3)
    else:
        view = np.ascontiguousarray(array, dtype.numpy).reshape(array.shape).view()
    view.flags.writeable = False
    return view
