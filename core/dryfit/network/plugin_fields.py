"""Fields of layer plugins: what they may hold, and what a plugin declares of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dryfit.errors import NetworkError, UnknownNameError
from dryfit.network.data_types import DataType
from dryfit.network.declared_types import WrongTypeError, check_for, described
from dryfit.network.layer_plugin import REQUIRED, Fields, FieldValue, LayerPlugin, PluginField

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
            f"The fields do not fit the plugin {plugin.plugin_name!r}: {'; '.join(problems)}", where=where
        )
    return complete


def all_declared_fields(plugin: LayerPlugin) -> Mapping[str, PluginField] | None:
    """The fields that a plugin declares, with those that quantized tensors bring; None where it declares none."""
    if plugin.declared_fields is None:
        return None
    return {**(SCALE_FIELDS if plugin.takes_quantized else {}), **plugin.declared_fields}


def _kept(value: Any, where: str, depth: int = 0) -> Any:
    if depth > DEEPEST_TUPLE:
        raise NetworkError("The field is nested too deeply", where=where, allowed=f"{DEEPEST_TUPLE} levels")
    if isinstance(value, np.generic):
        value = value.item()
    if type(value) in (bool, int, float, str, bytes) or (value is None and depth):
        return value
    if isinstance(value, np.ndarray):
        try:
            DataType.from_numpy(value.dtype)
        except UnknownNameError as error:
            raise NetworkError("The array has a type that networks do not", where=where, found=value.dtype) from error
        return value
    if isinstance(value, (tuple, list)):
        return tuple(_kept(item, f"{where}[{index}]", depth + 1) for index, item in enumerate(value))
    raise NetworkError(
        "The field holds what no engine file can hold",
        where=where,
        found=described(value),
        allowed="bool, int, float, str, bytes, arrays, and tuples of these",
    )
