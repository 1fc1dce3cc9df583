"""The layer plugin interface, modeled on TensorRT's `IPluginV3`, and the fields of a plugin.

`dryfit.network.plugin_function` creates a plugin from a plain function, which is enough for most layers.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.errors import NetworkError, UnknownNameError
from dryfit.network.data_types import DataType
from dryfit.network.declared_types import WrongTypeError, check_for, described
from dryfit.network.layer import Inputs
from dryfit.network.tensor import Array, TensorSpec

FieldValue = bool | int | float | str | bytes | Array | tuple[Any, ...]
"""Value of a field; a tuple contains such values, tuples of them, or None."""
Fields = Mapping[str, Any]
"""Field name to value, a `FieldValue` of the type that the plugin declares."""


class MemoryLayout(Protocol):
    """Memory layout of a tensor on a device, such as a `dryfit.target.formats.TensorFormat`."""

    @property
    def name(self) -> str:
        """Name of the format."""
        ...

    def allows(self, shape: Sequence[int], dtype: DataType) -> bool:
        """Return whether the format is defined for tensors of this shape and type."""
        ...

    def array_shape(self, shape: Sequence[int], dtype: DataType) -> tuple[int, ...]:
        """Return the extents of the array that holds such a tensor."""
        ...

    def pack(self, array: Array) -> Array:
        """Return the memory of a tensor."""
        ...

    def unpack(self, memory: Array, shape: Sequence[int]) -> Array:
        """Return the tensor of this shape that a memory holds."""
        ...


Slot = DataType | tuple[DataType, str | MemoryLayout]
"""The type of one input or output, row-major; or the type and a format: `LINEAR`, `HWC`, or the record of a device
format, such as `registry.target("DLA").format("CHW16")`."""

PluginKey = tuple[str, str, str]
"""(name, version, namespace)."""

REQUIRED: Any = object()
"""Marker of a field without a default."""


@frozen
class PluginField:
    """Declaration of one field of a layer plugin.

    Attributes:
        kind: `bool`, `int`, `float`, `str`, `bytes`, `numpy.ndarray`, a tuple of these such as `tuple[int, ...]`, or a
            union.
        default: value used when a layer does not set the field. Without a default, every layer must set it.

    Example:
        >>> fields = {"axis": PluginField(int, default=-1), "table": PluginField(np.ndarray)}
    """

    kind: Any
    default: Any = REQUIRED


class LayerPlugin(abc.ABC):
    """A custom layer.

    A plugin must be stateless, because all layers that name it share one instance: everything that differs between
    layers belongs in `fields`. Absent optional inputs are None.

    Attributes:
        plugin_name, plugin_version, plugin_namespace: the key under which layers, ONNX nodes and engines find the
            plugin.
        declared_fields: field name to its declaration. Fields are then checked, and missing ones filled with their
            defaults, before any method is called. None: fields are accepted unchecked.
        takes_quantized: whether the plugin computes on quantized values. If all inputs of such a layer are dequantized
            and all its outputs are quantized, the surrounding dequantizations and quantizations become part of the
            layer: it receives codes, with their scales in the fields `input_scales` and `output_scales`, one array per
            input or output, None if not quantized. A layer can also request this with `set_output_type(index, INT8)` or
            FP8; it is then an error if it is not possible.

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
        """Return the shapes and types of the outputs; -1 for an extent that is dynamic or data-dependent.

        Args:
            fields: the layer's.
            inputs: input specs; dynamic extents are -1, and known contents are in `value`.

        Raises:
            ValueError: The fields do not match the inputs. The message must give the reason; dryfit adds the layer's
                name.
        """

    def format_combinations(self, fields: Fields, inputs: Inputs) -> Sequence[Sequence[Slot]] | None:
        """Return the supported combinations of type and format, best first: one slot per input, then per output.

        The builder converts between FLOAT, HALF and BF16 to match a combination, and prefers the type that the flags of
        the builder config request. None (default): the types of the network, row-major.

        Args:
            fields: the fields of the layer.
            inputs: specs of the layer's inputs in the network; the plugin may receive other types.
        """
        del fields, inputs
        return None

    def configure(self, fields: Fields, inputs: Inputs, outputs: Sequence[TensorSpec]) -> Fields:
        """Return the fields that `enqueue` receives for these shapes. Default: the fields of the layer.

        Called once per set of shapes, before the first run with them: use it for work that need not be repeated in
        every run.

        Args:
            fields: the fields of the layer.
            inputs: specs without dynamic extents.
            outputs: specs; -1 for an extent that depends on the data.
        """
        del inputs, outputs
        return fields

    @abc.abstractmethod
    def enqueue(self, fields: Fields, inputs: Sequence[Array | None]) -> Sequence[Array]:
        """Compute and return the outputs, with the types and shapes of `output_specs`.

        May be called from several threads at once.

        Args:
            fields: what `configure` returned.
            inputs: read-only arrays. In the format HWC, the shape is still `[N, C, H, W]`, and the channels of an
                element are contiguous in memory. In a device format, inputs and outputs have the extents of its
                `array_shape`, including padding.
        """

    def serialized_fields(self, fields: Fields) -> Fields:
        """Return the fields to store in an engine file. Default: all. A loaded engine has only these fields."""
        return fields


def plugin_title(key: PluginKey) -> str:
    """Return the display name of a plugin, such as `acme::Swish version 1`."""
    name, version, namespace = key
    return f"{namespace}::{name} version {version}" if namespace else f"{name} version {version}"


DEEPEST_TUPLE = 16
"""Tuples inside tuples, counted with the outermost, that engine files hold."""

SCALE_FIELDS = {
    name: PluginField(tuple[np.ndarray[Any, Any] | None, ...], default=()) for name in ("input_scales", "output_scales")
}
"""Additional fields of a plugin that supports quantized tensors."""


def kept_fields(fields: Mapping[str, Any], where: str) -> dict[str, FieldValue]:
    """Return fields in the form that a layer stores and an engine file restores.

    numpy numbers become Python numbers, and lists become tuples.

    Args:
        fields: the fields that a user or a model provides.
        where: the layer, used in error messages.

    Raises:
        NetworkError: An engine file cannot store the value of a field.
    """
    return {name: _kept(value, f"{where}, field {name!r}") for name, value in fields.items()}


def complete_fields(plugin: LayerPlugin, fields: Fields, where: str) -> Fields:
    """Return a layer's fields as the plugin declares them, with defaults for fields that the layer omits.

    Raises:
        UnknownNameError: The plugin has no such field.
        NetworkError: A field is missing or has the wrong type. The message lists all such fields.
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
            remedy="Pass the fields that the plugin declares",
        )
    return complete


def all_declared_fields(plugin: LayerPlugin) -> Mapping[str, PluginField] | None:
    """Return the fields that a plugin declares, plus those for quantized tensors; None if it declares none."""
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
                allowed=", ".join(one.text for one in DataType),
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
