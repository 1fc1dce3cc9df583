"""What a layer plugin is: a layer of somebody's own, by the answers that TensorRT's `IPluginV3` gives; and its fields.

`dryfit.network.plugin_function` makes one of a plain function, which is enough for most.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import attrs
import numpy as np

from dryfit.errors import NetworkError, UnknownNameError
from dryfit.network.data_types import DataType
from dryfit.network.declared_types import WrongTypeError, check_for, described
from dryfit.network.layer import Inputs
from dryfit.network.tensor import Array, TensorSpec

FieldValue = bool | int | float | str | bytes | Array | tuple[Any, ...]
"""What a field can hold; a tuple holds such values, tuples of them, or None."""
Fields = Mapping[str, Any]
"""Field name to value, a `FieldValue`; of which kind, the plugin declares."""


class MemoryLayout(Protocol):
    """How a tensor lies in a device's memory; a `dryfit.target.formats.TensorFormat` is one."""

    @property
    def name(self) -> str:
        """The format's name."""
        ...

    def allows(self, shape: Sequence[int], dtype: DataType) -> bool:
        """Whether the format is defined for tensors of this shape and type."""
        ...

    def array_shape(self, shape: Sequence[int], dtype: DataType) -> tuple[int, ...]:
        """The extents of the array that holds such a tensor."""
        ...

    def pack(self, array: Array) -> Array:
        """The memory of a tensor."""
        ...

    def unpack(self, memory: Array, shape: Sequence[int]) -> Array:
        """The tensor of this shape that a memory holds."""
        ...


Slot = DataType | tuple[DataType, str | MemoryLayout]
"""The type of one input or output, row-major; or the type and a format: `LINEAR`, `HWC`, or the record of any format of
a device, such as `registry.target("DLA").format("CHW16")`."""

PluginKey = tuple[str, str, str]
"""(name, version, namespace)."""

REQUIRED: Any = object()
"""The default of a field that has none."""


@attrs.frozen
class PluginField:
    """What one field of a layer plugin may hold.

    Attributes:
        kind: `bool`, `int`, `float`, `str`, `bytes`, `numpy.ndarray`, a tuple of these such as `tuple[int, ...]`, or a
            union.
        default: what it holds where the layer does not say; without one, every layer has to say.

    Example:
        >>> fields = {"axis": PluginField(int, default=-1), "table": PluginField(np.ndarray)}
    """

    kind: Any
    default: Any = REQUIRED


class LayerPlugin(abc.ABC):
    """A layer of your own.

    A plugin has no state, since all layers that name it share it: what differs from layer to layer stands in `fields`.
    Inputs that are optional and absent are None.

    Attributes:
        plugin_name, plugin_version, plugin_namespace: how layers, ONNX nodes and engines name it.
        declared_fields: name to what the field may hold. Fields are then checked, and completed by their defaults,
            before any method sees them. None: whatever a layer says is taken as it is.
        takes_quantized: whether it computes on quantized values. Where all that such a layer reads is dequantized, and
            all that it gives is quantized, the dequantizations before it and the quantizations after it become part of
            it: it gets codes, and finds their scales in the fields `input_scales` and `output_scales`, one array for
            each input or output, None where it is not quantized. A layer can ask for it too, by
            `set_output_type(index, INT8)` or FP8; it is then an error where it cannot be.

    Source: TensorRT `IPluginV3OneCore`, `IPluginV3OneBuild`, `IPluginV3OneRuntime`.

    Example:
        >>> class Clamp(LayerPlugin):
        ...     plugin_name, plugin_namespace = "Clamp", "acme"
        ...     declared_fields = {"top": PluginField(float, default=6.0)}
        ...
        ...     def output_specs(self, fields, inputs):
        ...         return [TensorSpec(inputs[0].shape, inputs[0].dtype)]
        ...
        ...     def enqueue(self, fields, inputs):
        ...         return [np.clip(inputs[0], 0, fields["top"])]
    """

    plugin_name: str = ""
    plugin_version: str = "1"
    plugin_namespace: str = ""
    declared_fields: Mapping[str, PluginField] | None = None
    takes_quantized: bool = False

    @property
    def key(self) -> PluginKey:
        """Name, version and namespace."""
        return self.plugin_name, self.plugin_version, self.plugin_namespace

    @abc.abstractmethod
    def output_specs(self, fields: Fields, inputs: Inputs) -> Sequence[TensorSpec]:
        """Shapes and types of the outputs; -1 for an extent that is dynamic or depends on the data.

        Args:
            fields: the layer's.
            inputs: specs, with extents of -1 where dynamic, and with contents in `value` where they are known.

        Raises:
            ValueError: fields and inputs do not fit together. The text says why; the layer's name is added to it.
        """

    def format_combinations(self, fields: Fields, inputs: Inputs) -> Sequence[Sequence[Slot]] | None:
        """The types and formats that it can compute with, the best first: one slot for each input, then each output.

        The builder converts FLOAT, HALF and BF16 into one another to meet one of them, and prefers the type that the
        config's flags ask for. None, as here: it takes the types that the network has, row-major.

        Args:
            fields: the layer's.
            inputs: specs of the network's inputs, whose types need not be what it will get.
        """
        del fields, inputs
        return None

    def configure(self, fields: Fields, inputs: Inputs, outputs: Sequence[TensorSpec]) -> Fields:
        """What `enqueue` is to get as its fields, for these shapes; here, the layer's fields.

        Called before the first run with shapes, and once for them: the place for what need not be done in every run.

        Args:
            fields: the layer's.
            inputs: specs without dynamic extents.
            outputs: specs; -1 where an extent depends on the data.
        """
        del inputs, outputs
        return fields

    @abc.abstractmethod
    def enqueue(self, fields: Fields, inputs: Sequence[Array | None]) -> Sequence[Array]:
        """The outputs, of the types and shapes that `output_specs` says.

        Several threads may call it at once.

        Args:
            fields: what `configure` returned.
            inputs: arrays that cannot be written to. In the format HWC the shape is the same `[N, C, H, W]`, and the
                channels of an element lie together in memory. In a device's format they have the extents of its
                `array_shape`, padding and all, and so have the outputs.
        """

    def serialized_fields(self, fields: Fields) -> Fields:
        """The fields that an engine file keeps; here, all. A loaded engine has these, and may be saved again."""
        return fields


def plugin_title(key: PluginKey) -> str:
    """A plugin in words, such as `acme::Swish version 1`."""
    name, version, namespace = key
    return f"{namespace}::{name} version {version}" if namespace else f"{name} version {version}"


DEEPEST_TUPLE = 16
"""Tuples inside tuples, counted with the outermost, that engine files hold."""

SCALE_FIELDS = {
    name: PluginField(tuple[np.ndarray[Any, Any] | None, ...], default=()) for name in ("input_scales", "output_scales")
}
"""The fields that a plugin which takes quantized tensors gets beside its own."""


def kept_fields(fields: Mapping[str, Any], where: str) -> dict[str, FieldValue]:
    """Fields as a layer keeps them, and as they come back from an engine file.

    Numbers of numpy become Python's, and lists tuples.

    Args:
        fields: what a user or a model says.
        where: the layer, for errors.

    Raises:
        NetworkError: a field holds what no engine file can hold.
    """
    return {name: _kept(value, f"{where}, field {name!r}") for name, value in fields.items()}


def complete_fields(plugin: LayerPlugin, fields: Fields, where: str) -> Fields:
    """A layer's fields as the plugin declares them, with defaults for those that the layer leaves out.

    Raises:
        UnknownNameError: the plugin has no such field.
        NetworkError: a field is missing, or of another type; all that are wrong are listed.
    """
    declared = all_declared_fields(plugin)
    if declared is None:
        return fields
    for name in fields:
        if name not in declared:
            raise UnknownNameError(f"field of the plugin {plugin.plugin_name!r}", name, declared, where=where)
    complete, problems = {}, []
    for name, field in declared.items():
        if name not in fields and field.default is REQUIRED:
            problems.append(f"field {name!r} is missing")
            continue
        try:
            complete[name] = check_for(field.kind)(fields.get(name, field.default))
        except WrongTypeError as error:
            problems.append(f"field {name!r} is {error.found}, not {error.allowed}")
    if problems:
        raise NetworkError(
            f"The fields do not match the plugin {plugin.plugin_name!r}: {'; '.join(problems)}",
            where=where,
            remedy="Give the fields as the plugin declares them",
        )
    return complete


def all_declared_fields(plugin: LayerPlugin) -> Mapping[str, PluginField] | None:
    """The fields that a plugin declares, with those that quantized tensors bring; None where it declares none."""
    if plugin.declared_fields is None:
        return None
    return {**(SCALE_FIELDS if plugin.takes_quantized else {}), **plugin.declared_fields}


def _kept(value: Any, where: str, depth: int = 0) -> Any:
    if depth > DEEPEST_TUPLE:
        raise NetworkError(
            "The field is nested too deeply",
            where=where,
            allowed=f"{DEEPEST_TUPLE} levels",
            remedy="Flatten the tuples",
        )
    if isinstance(value, np.generic):
        value = value.item()
    if type(value) in (bool, int, float, str, bytes) or (value is None and depth):
        return value
    if isinstance(value, np.ndarray):
        try:
            DataType.from_numpy(value.dtype)
        except UnknownNameError as error:
            raise NetworkError(
                "This array type is not supported",
                where=where,
                found=value.dtype,
                remedy="Convert the array with numpy.asarray",
            ) from error
        return value
    if isinstance(value, (tuple, list)):
        return tuple(_kept(item, f"{where}[{index}]", depth + 1) for index, item in enumerate(value))
    raise NetworkError(
        "The field has a value that cannot be stored in an engine file",
        where=where,
        found=described(value),
        allowed="bool, int, float, str, bytes, arrays, and tuples of these",
        remedy="Convert the value",
    )
