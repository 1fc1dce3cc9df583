"""Layer plugins: configured when memory and shapes are known, and run as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.plugin import Plugin
from dryfit.reference.plugin import ConfiguredPlugin
from dryfit.target.kernels import Array, Binding, kernel


@kernel("cpu.plugin", kinds=("plugin",), data_types=DataType)
def run_plugin(binding: Binding) -> Callable[[], None]:
    """A function that runs the group's layer plugin, configured for the shapes of the binding."""
    layer = cast("Plugin", binding.group.main)
    tensors = [None if tensor is None else tensor.name for tensor in layer.inputs]
    configured = ConfiguredPlugin(layer, [None if name is None else binding.specs[name] for name in tensors])
    inputs = [None if name is None else _array(binding, name) for name in tensors]
    outputs = [binding.arrays[tensor.name] for tensor in layer.outputs]

    def run() -> None:
        for output, result in zip(outputs, configured.run(inputs), strict=True):
            np.copyto(output, result)

    return run


def _array(binding: Binding, name: str) -> Array | None:
    """A bound array, or the contents of a constant."""
    return binding.arrays.get(name, binding.specs[name].value)
