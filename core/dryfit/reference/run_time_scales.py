"""Scales of quantize and dequantize layers that are known in a run only: given by the caller, or computed."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dryfit.errors import ExecutionError
from dryfit.network.layer import Layer
from dryfit.network.layers.dequantize import Dequantize
from dryfit.network.layers.dynamic_quantize import DynamicQuantize
from dryfit.network.layers.quantize import Quantize
from dryfit.network.layers.scale_granularity import wrong_scales
from dryfit.network.tensor import Tensor
from dryfit.reference.registry import Array


def run_time_scale(layer: Layer) -> Tensor | None:
    """The scale of a layer that has to be looked at in each run; None for one known before, or found by quantizing.

    What a dynamic quantize layer finds is right for its data, whatever the data is.
    """
    if not isinstance(layer, (Quantize, Dequantize)):
        return None
    scale = layer.get_input(1)
    if scale is None or scale.spec.value is not None:
        return None
    producer = scale.producer
    if producer is not None and producer.kind == "constant":
        return None
    while isinstance(producer, Dequantize):  # scales that are quantized themselves
        source = producer.get_input(0)
        producer = None if source is None else source.producer
    return None if isinstance(producer, DynamicQuantize) else scale


def check_run_time_scale(layer: Layer, arrays: Mapping[str, Array]) -> None:
    """Refuse values of a run-time scale by which nothing can be quantized.

    Args:
        layer: of any kind.
        arrays: tensor name to contents; without the scale where the layer's group makes it.

    Raises:
        ExecutionError: one is not finite or not positive. A computed one may be 0: a tensor of zeros has such a range.
    """
    scale = run_time_scale(layer)
    if scale is None or scale.name not in arrays:
        return
    values = arrays[scale.name].astype(np.float64)
    is_given = scale.producer is None
    wrong = wrong_scales(values if is_given else np.where(values == 0, 1, values))
    if wrong is not None:
        raise ExecutionError(
            "Scales are finite and positive",
            where=f"{layer.where}, tensor {scale.name!r}",
            found=wrong,
            allowed="finite numbers above 0" if is_given else "finite numbers, none of them negative",
            remedy=f"Give {scale.name!r} other values" if is_given else "Look at what computes it",
        )
