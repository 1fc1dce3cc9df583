"""The meaning of an engine's stored tensors: the tensor of the user's network, and the real values they represent.

A tensor of the user's network may be stored several times: as its layer computes it, as INT8 codes for the next layer,
as the caller expects it. All versions are connected by conversions to the one with the user's name.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.network.data_types import DataType
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor
from dryfit.quantization.int8_steps import DynamicRange
from dryfit.quantization.rounding import Rounding, round_values
from dryfit.reference.precision import rounded
from dryfit.target.kernels import Array


@frozen
class StoredTensor:
    """A tensor of an engine's network.

    Attributes:
        name: name in the engine's network.
        of: name of the user's tensor that this is a version of.
        dtype: type in which the tensor is stored.
        scale: scale of INT8 codes that represent floating-point values; None if elements represent themselves.
        is_signed: whether the INT8 codes represent UINT8 codes that are larger by 128.
    """

    name: str
    of: str
    dtype: DataType
    scale: float | None = None
    is_signed: bool = False

    def real(self, array: Array) -> Array:
        """Return the values that an array of this tensor represents; codes times the scale in FP32."""
        if self.is_signed:
            return np.ascontiguousarray(array).view(np.uint8).reshape(array.shape) ^ np.uint8(128)
        if self.scale is None:
            return array
        return np.asarray(array.astype(np.float32) * np.float32(self.scale))

    def represented(self, values: Array, rounding: Rounding) -> Array:
        """Return values as this tensor would store them.

        Args:
            values: real values, or elements of the tensor's own type.
            rounding: rounding of values half-way between two INT8 codes; other types round them to even. Values out of
                range are saturated, as in `dryfit.reference.precision.rounded`.
        """
        if self.is_signed:
            return (rounded(values, np.dtype(np.uint8)) ^ np.uint8(128)).view(np.int8)
        if self.scale is None:
            return rounded(values, self.dtype.numpy)
        codes = round_values(values.astype(np.float32) / np.float32(self.scale), rounding)
        return np.asarray(np.clip(codes, -128, 127).astype(np.int8))

    def saturation(self, array: Array) -> int | None:
        """Return the number of elements at an end of the type's range; None for types at least as wide as FP32.

        The ends are -128 and 127 for INT8, and the largest finite number and infinity for FP16.
        """
        if self.dtype is DataType.INT8:
            return int(np.count_nonzero((array == -128) | (array == 127)))
        if self.dtype is DataType.HALF:
            return int(np.count_nonzero(np.abs(array) >= np.finfo(np.float16).max))
        return None


def stored_tensors(network: Network, declared: Mapping[str, DataType]) -> dict[str, StoredTensor]:
    """Return the tensors of an engine's network that are versions of the user's, by name.

    Tensors that passes substituted for the user's are omitted, and so are codes whose scale is not a single number.

    Args:
        network: the engine's network.
        declared: type of each tensor of the user's network, by name.
    """
    origins = _origins(network, declared)
    found = {}
    for tensor in network.tensors:
        of = origins.get(tensor.name)
        if of is None:
            continue
        stands_for_real = tensor.dtype.is_integer and declared[of].is_floating_point
        scale = _scale(tensor) if stands_for_real else None
        is_alike = tensor.dtype is declared[of] or (tensor.dtype.is_floating_point and declared[of].is_floating_point)
        is_signed = tensor.dtype is DataType.INT8 and declared[of] is DataType.UINT8
        if is_alike or is_signed or scale is not None:
            found[tensor.name] = StoredTensor(tensor.name, of, tensor.dtype, scale, is_signed)
    return found


def _origins(network: Network, names: Collection[str]) -> dict[str, str]:
    """Return the user's tensor by tensor name: the one with that name, or one connected by conversions."""
    found = {tensor.name: tensor.name for tensor in network.tensors if tensor.name in names}
    for layer in network.layers:
        source = layer.inputs[0] if layer.is_conversion else None
        if source is not None and source.name in found:
            found.setdefault(layer.outputs[0].name, found[source.name])
    for layer in reversed(network.layers):
        source = layer.inputs[0] if layer.is_conversion else None
        if source is not None and layer.outputs[0].name in found:
            found.setdefault(source.name, found[layer.outputs[0].name])
    return found


def _scale(tensor: Tensor) -> float | None:
    """Return the single scale of a tensor of codes; None if there is none or several, or if the zero point is not 0."""
    layers = [tensor.producer, *(reader for reader, index in tensor.consumers if index == 0)]
    for layer in layers:
        is_quantizing = layer is not None and layer.kind == ("quantize" if layer is tensor.producer else "dequantize")
        if layer is None or not is_quantizing or layer.inputs[1] is None:
            continue
        scale, zero_points = layer.inputs[1].spec.value, [one for one in layer.inputs[2:] if one is not None]
        if any(one.spec.value is None or np.any(one.spec.value) for one in zero_points):
            return None
        return float(scale.reshape(-1)[0]) if scale is not None and scale.size == 1 else None
    return None if tensor.dynamic_range is None else DynamicRange(*tensor.dynamic_range).scale
