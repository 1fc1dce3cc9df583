"""The short form of a layer plugin: one decorated numpy or Numba function."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dryfit.errors import PluginError
from dryfit.network.data_types import DataType
from dryfit.network.layer import Inputs
from dryfit.network.layer_plugin import REQUIRED, SCALE_FIELDS, Fields, LayerPlugin, PluginField, Slot
from dryfit.network.tensor import Array, TensorSpec

OutputFunction = Callable[..., TensorSpec | Sequence[TensorSpec]]


def layer_plugin(
    name: str,
    *,
    version: str = "1",
    namespace: str = "",
    outputs: OutputFunction | None = None,
    formats: Sequence[Sequence[Slot]] | None = None,
    takes_quantized: bool = False,
) -> Callable[[Callable[..., Any]], FunctionPlugin]:
    """Create a layer plugin from a function.

    The function's positional parameters are the layer's inputs; a parameter whose default is None is an optional input.
    Its keyword-only parameters are the fields, typed by their annotation or, without one, by their default. It returns
    an array or a tuple of arrays. Functions compiled with `numba.njit` are supported.

    Args:
        name: name of the plugin.
        version: version of the plugin.
        namespace: namespace of the plugin.
        outputs: function with the same parameters that receives the specs of the inputs and returns the spec or specs
            of the outputs. Default: one output with the shape and type of the first input.
        formats: supported combinations of type and format; see `LayerPlugin.format_combinations`.
        takes_quantized: see `LayerPlugin`; the function then has the fields `input_scales` and `output_scales`.

    Raises:
        PluginError: The function has parameters that are neither inputs nor fields, or a field has no type.

    Example:
        >>> @layer_plugin("Swish", namespace="acme")
        ... def swish(x, *, beta: float = 1.0):
        ...     return x / (1 + np.exp(-beta * x))
    """

    def decorate(function: Callable[..., Any]) -> FunctionPlugin:
        return FunctionPlugin(function, (name, version, namespace), outputs, formats, takes_quantized=takes_quantized)

    return decorate


class FunctionPlugin(LayerPlugin):
    """A layer plugin created by `layer_plugin`. It can still be called as the function."""

    def __init__(
        self,
        function: Callable[..., Any],
        key: tuple[str, str, str],
        outputs: OutputFunction | None = None,
        formats: Sequence[Sequence[Slot]] | None = None,
        *,
        takes_quantized: bool = False,
    ) -> None:
        functools.update_wrapper(self, function, updated=())
        self.plugin_name, self.plugin_version, self.plugin_namespace = key
        self.takes_quantized = takes_quantized
        self._function = function
        self._is_compiled = hasattr(function, "py_func")
        source = getattr(function, "py_func", function)
        self._signature = inspect.signature(source)
        self._outputs = outputs
        self._formats = formats
        self.declared_fields = fields = _declared_fields(source, self._signature)
        missing = sorted(SCALE_FIELDS.keys() - fields.keys()) if takes_quantized else []
        if missing:
            raise PluginError(
                "A function that takes quantized tensors must have keyword-only parameters for their scales",
                where=_place(source),
                found=f"no {', '.join(missing)}",
                remedy="Add these parameters",
            )

    def __call__(self, *inputs: Any, **fields: Any) -> Any:
        """Call the function and return its result."""
        if not self._is_compiled:
            return self._function(*inputs, **fields)
        bound = self._signature.bind(*inputs, **fields)
        bound.apply_defaults()
        # Compiled functions take keyword-only parameters by their place, and know no defaults of them.
        return self._function(*bound.args, *bound.kwargs.values())

    def output_specs(self, fields: Fields, inputs: Inputs) -> Sequence[TensorSpec]:
        """Return the result of the function `outputs`, or the first input's shape and type."""
        self._check_inputs(inputs)
        if self._outputs is not None:
            specs = self._outputs(*inputs, **fields)
            return [specs] if isinstance(specs, TensorSpec) else specs
        first = next((spec for spec in inputs if spec is not None), None)
        if first is None:
            raise ValueError("it has no input to take the output's shape from")
        return [TensorSpec(first.shape, first.dtype)]

    def format_combinations(self, fields: Fields, inputs: Inputs) -> Sequence[Sequence[Slot]] | None:
        """Return the combinations passed to the decorator."""
        del fields, inputs
        return self._formats

    def configure(self, fields: Fields, inputs: Inputs, outputs: Sequence[TensorSpec]) -> Fields:
        """Return the fields, with the types of the outputs for `enqueue`."""
        return {**super().configure(fields, inputs, outputs), _TYPES: tuple(spec.dtype.name for spec in outputs)}

    def enqueue(self, fields: Fields, inputs: Sequence[Array | None]) -> Sequence[Array]:
        """Call the function. Floating-point results of another width are rounded to the type of the output."""
        types = fields[_TYPES]
        result = self(*inputs, **{name: value for name, value in fields.items() if name != _TYPES})
        arrays = list(result) if isinstance(result, (tuple, list)) else [result]
        if not isinstance(types, tuple) or len(types) != len(arrays):
            return arrays
        return [_of_type(array, DataType[name]) for array, name in zip(arrays, types, strict=True)]

    def _check_inputs(self, inputs: Inputs) -> None:
        """Refuse more or fewer inputs than the function has parameters.

        Raises:
            ValueError: says how many there may be.
        """
        parameters = self._signature.parameters.values()
        positional = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
        most = float("inf") if any(one.kind is one.VAR_POSITIONAL for one in parameters) else len(positional)
        required = [one.name for one in positional if one.default is one.empty]
        absent = [name for index, name in enumerate(required) if index >= len(inputs) or inputs[index] is None]
        if absent:
            raise ValueError(f"the required input {absent[0]!r} is missing")
        if len(inputs) > most:
            raise ValueError(f"it takes {most} inputs, not {len(inputs)}")


_TYPES = "(output types)"
"""A key among configured fields that no keyword-only parameter can have."""


def _of_type(result: Any, dtype: DataType) -> Any:
    """A floating-point result in a floating-point type; anything else as it is, for whoever checks it."""
    array = np.asarray(result)
    if array.dtype == dtype.numpy or not dtype.is_floating_point or array.dtype.hasobject:
        return array
    is_floating = np.issubdtype(array.dtype, np.floating) or array.dtype.name in _FLOATING_NAMES
    return array.astype(dtype.numpy) if is_floating else array


_FLOATING_NAMES = frozenset(dtype.numpy_name for dtype in DataType if dtype.is_floating_point)


def _declared_fields(function: Callable[..., Any], signature: inspect.Signature) -> dict[str, PluginField]:
    """The keyword-only parameters as fields.

    Raises:
        PluginError: a parameter takes any keyword, or a field has neither an annotation nor a default.
    """
    fields = [one for one in signature.parameters.values() if one.kind is one.KEYWORD_ONLY]
    if any(one.kind is one.VAR_KEYWORD for one in signature.parameters.values()):
        raise PluginError(
            "The function of a layer plugin must have a parameter for each field",
            where=_place(function),
            found="**kwargs",
            remedy="Replace **kwargs by keyword-only parameters",
        )
    kinds = _annotations(function, [one.name for one in fields if one.annotation is not one.empty])
    untyped = [one.name for one in fields if one.name not in kinds and one.default in (one.empty, None)]
    if untyped:
        raise PluginError(
            "Every field of a layer plugin must have a type",
            where=_place(function),
            found=f"keyword-only parameters without annotation or default: {', '.join(untyped)}",
            remedy="Annotate the parameters, or give them defaults",
        )
    return {
        one.name: PluginField(
            kinds.get(one.name, type(one.default)), REQUIRED if one.default is one.empty else one.default
        )
        for one in fields
    }


def _annotations(function: Callable[..., Any], names: Sequence[str]) -> dict[str, Any]:
    """The types of some parameters; those of the others, which may be unknown at run time, are not looked at."""

    class Chosen:
        __annotations__ = {name: function.__annotations__[name] for name in names}

    try:
        return typing.get_type_hints(Chosen, globalns=getattr(function, "__globals__", {}))
    except (NameError, TypeError) as error:
        raise PluginError(
            "The annotation of a field of a layer plugin cannot be resolved",
            where=_place(function),
            found=error,
            remedy="Import the type in the module of the function",
        ) from error


def _place(function: Callable[..., Any]) -> str:
    return f"{function.__module__}.{getattr(function, '__qualname__', function)}"
