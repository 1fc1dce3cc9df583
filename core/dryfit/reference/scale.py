"""Scale: an affine function and a power."""

from __future__ import annotations

from collections.abc import Sequence

from dryfit.network.layers.scale import Scale
from dryfit.reference.precision import rounded, weights_for, widened
from dryfit.reference.registry import Array, reference


@reference(Scale)
def scale(layer: Scale, inputs: Sequence[Array]) -> list[Array]:
    """`(x * scale + shift) ^ power`.

    FP16 and BF16: the scale is rounded to the input's type; shift and power are not, as a bias is not.
    """
    x = inputs[0]
    y = widened(x)
    shape = layer.coefficient_shape(x.shape)
    if layer.scale is not None and layer.scale.size:
        y = y * weights_for(x, layer.scale).reshape(shape)
    if layer.shift is not None and layer.shift.size:
        y = y + layer.shift.astype(y.dtype).reshape(shape)
    if layer.power is not None and layer.power.size and (layer.power != 1).any():
        y = y ** layer.power.astype(y.dtype).reshape(shape)
    return [rounded(y, x.dtype)]
