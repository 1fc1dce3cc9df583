"""TensorRT's heuristic against noise near the outputs: which layers stay in real numbers though they could be INT8.

A sum of many quantized values smooths their rounding errors. What is quantized after the last such sum is not smoothed
any more, and neither is the rounding of that sum itself. So from the last smoothing layer of each path to an output
everything is computed in real numbers.

Source: TensorRT 10 developer guide, Working with Quantized Types: Quantization Noise Reduction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer


def layers_near_outputs(layers: Sequence[Layer], wanted_types: Mapping[str, DataType] | None = None) -> frozenset[str]:
    """Names of the layers on paths from a last smoothing layer, which is one of them, to a real network output.

    A path does not count that has a plugin layer, or a layer that the user constrained to INT8 by its precision or an
    output type; neither does a network output that the user wants in INT8.

    Args:
        layers: those that run on devices, in topological order.
        wanted_types: name of each network output whose type on the caller's side was stated, to that type.
    """
    wanted, near = wanted_types or {}, set[str]()
    for layer in reversed(layers):
        goes_on = any(
            reader.name in near and not reader.sums_products
            for output in layer.outputs
            for reader, _ in output.consumers
        )
        is_at_end = any(
            output.is_network_output and wanted.get(output.name) is not DataType.INT8 for output in layer.outputs
        )
        if (goes_on or is_at_end) and layer.kind != "plugin" and not _is_constrained(layer):
            near.add(layer.name)
    kept: set[str] = set()
    for layer in layers:
        sources = {tensor.producer.name for tensor in layer.inputs if tensor is not None and tensor.producer}
        # A smoothing layer begins a path anew, whatever came before it.
        if layer.name in near and (layer.sums_products or sources & kept):
            kept.add(layer.name)
    return frozenset(kept)


def _is_constrained(layer: Layer) -> bool:
    return layer.precision is DataType.INT8 or DataType.INT8 in layer.output_types.values()
