"""Plugin layers: the plugin is the reference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import numpy as np

from dryfit.errors import DryfitError, ExecutionError
from dryfit.network.data_types import DataType
from dryfit.network.format_combinations import (
    LINEAR,
    Layout,
    arranged,
    chosen_combination,
    plugin_shape,
    rearranged,
    with_types,
)
from dryfit.network.layer import Inputs
from dryfit.network.layers.plugin import Plugin
from dryfit.network.tensor import Array, TensorSpec
from dryfit.reference.registry import reference


@reference(Plugin)
def plugin(layer: Plugin, inputs: Sequence[Array | None]) -> list[Array]:
    """What the plugin's `enqueue` returns, checked against its `output_specs`."""
    return ConfiguredPlugin(layer, [None if array is None else TensorSpec.of(array) for array in inputs]).run(inputs)


class ConfiguredPlugin:
    """A plugin layer for one set of shapes, configured once and ready for any number of runs.

    Where the plugin does not compute in the inputs' floating-point types it gets others that it does compute in, FLOAT
    if it can, and its outputs are rounded to the types that the network expects.

    Raises:
        NetworkError: the plugin refuses the inputs.
        PluginError: there is no such plugin.
        ExecutionError: the plugin's `configure` failed.
    """

    def __init__(self, layer: Plugin, inputs: Inputs) -> None:
        self._where = f"layer {layer.name!r}, plugin {layer.plugin_name!r}"
        self._plugin = layer.implementation()
        self._promised = list(layer.infer_outputs(inputs))
        fields = layer.complete_fields()
        own = [spec.dtype for spec in (*inputs, *self._promised) if spec is not None]
        self._layouts: list[Layout] = [LINEAR for _ in self._promised]
        with self._failures_told("configure"):
            combination = chosen_combination(self._plugin, fields, inputs, [*own[:1], DataType.FLOAT])
            if combination is None:
                self._slots: list[tuple[DataType | None, Layout]] = [
                    (None if spec is None else spec.dtype, LINEAR) for spec in inputs
                ]
                self._given, given_inputs = self._promised, list(inputs)
            else:
                self._slots = list(combination.inputs)
                self._layouts = [layout for _, layout in combination.outputs]
                given_inputs = with_types(inputs, combination.input_types)
                self._given = list(self._plugin.output_specs(fields, given_inputs))
            self._fields = MappingProxyType(dict(self._plugin.configure(fields, given_inputs, self._given)))

    def run(self, inputs: Sequence[Array | None]) -> list[Array]:
        """The outputs for inputs of these shapes.

        Raises:
            ExecutionError: the plugin fails, or its outputs are not what it said.
        """
        arrays = [
            None if array is None or dtype is None else arranged(array, dtype, layout)
            for array, (dtype, layout) in zip(inputs, self._slots, strict=True)
        ]
        with self._failures_told("enqueue"):
            outputs = self._plugin.enqueue(self._fields, arrays)
        return [
            output if output.dtype == spec.dtype.numpy else output.astype(spec.dtype.numpy)
            for output, spec in zip(self._checked(outputs), self._promised, strict=True)
        ]

    @contextmanager
    def _failures_told(self, method: str) -> Iterator[None]:
        try:
            yield
        except DryfitError:
            raise
        except Exception as error:  # a plugin is foreign code: whatever it raises is told with the layer's name
            raise ExecutionError(
                f"The plugin failed in `{method}`: {error or type(error).__name__}",
                where=self._where,
                remedy="Fix the plugin, or report it to its authors",
            ) from error

    def _checked(self, outputs: Any) -> list[Array]:
        is_sequence = isinstance(outputs, Sequence)
        arrays = [np.asarray(one) if isinstance(one, np.generic) else one for one in outputs] if is_sequence else []
        layouts = self._layouts
        if is_sequence and len(arrays) == len(self._given) and all(map(_is_as_promised, arrays, self._given, layouts)):
            given = zip(arrays, self._given, layouts, strict=True)
            return [rearranged(array, spec.shape, layout) for array, spec, layout in given]
        raise ExecutionError(
            "The plugin's outputs must match its `output_specs`",
            where=self._where,
            found=[_described(array) for array in arrays] if is_sequence else type(outputs).__name__,
            allowed=[
                f"{spec.dtype.numpy} {plugin_shape(spec, layout)}"
                for spec, layout in zip(self._given, layouts, strict=True)
            ],
            remedy="Fix the plugin, or report it to its authors",
        )


def _is_as_promised(array: Any, spec: TensorSpec, layout: Layout) -> bool:
    shape = plugin_shape(spec, layout)
    return (
        isinstance(array, np.ndarray)
        and array.dtype == spec.dtype.numpy
        and array.ndim == len(shape)
        and all(promised in (-1, extent) for promised, extent in zip(shape, array.shape, strict=True))
    )


def _described(array: Any) -> str:
    return f"{array.dtype} {array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
