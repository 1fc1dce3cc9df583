"""Plugin layers: the plugin is the reference."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dryfit.errors import DryfitError, ExecutionError, PluginError
from dryfit.network.layers.plugin import Plugin
from dryfit.network.tensor import TensorSpec
from dryfit.reference.registry import Array, reference


@reference(Plugin)
def plugin(layer: Plugin, inputs: Sequence[Array | None]) -> list[Array]:
    """What the plugin's `enqueue` returns, checked against its `output_specs`."""
    specs = layer.infer_outputs([None if array is None else TensorSpec.of(array) for array in inputs])
    where = f"layer {layer.name!r}, plugin {layer.plugin_name!r}"
    try:
        outputs = list(layer.implementation().enqueue(layer.fields, [_read_only(array) for array in inputs]))
    except DryfitError:
        raise
    except Exception as error:  # a plugin is foreign code: whatever it raises is told with the layer's name
        raise ExecutionError(f"The plugin failed: {error or type(error).__name__}", where=where) from error
    found = [(getattr(array, "dtype", None), np.shape(array)) for array in outputs]
    fits = len(outputs) == len(specs) and all(
        isinstance(array, np.ndarray)
        and array.dtype == spec.dtype.numpy
        and array.ndim == spec.rank
        and all(expected in (-1, extent) for expected, extent in zip(spec.shape, array.shape, strict=True))
        for array, spec in zip(outputs, specs, strict=True)
    )
    if not fits:
        raise PluginError(
            "The plugin's outputs are not what it said they would be",
            where=where,
            found=found,
            allowed=[(spec.dtype.numpy, spec.shape) for spec in specs],
        )
    return outputs


def _read_only(array: Array | None) -> Array | None:
    if array is None:
        return None
    view = array.view()
    view.flags.writeable = False
    return view
