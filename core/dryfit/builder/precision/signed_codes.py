"""Which UINT8 codes an engine keeps as INT8 ones that are 128 lower: then the host's integer kernels run them.

`(q - zero_point) * scale` is the same number with `q - 128` and `zero_point - 128`, and a quantization to INT8 with the
lower zero point gives `q - 128` for every real number, saturated ones and NaN among them. Layers that only choose and
order codes do not see the difference. So networks between UINT8 Q and DQ, as ONNX Runtime's quantizer writes them,
become the INT8 form with zero points, and no value changes.

Only what runs on the host is kept so: to a device UINT8 is UINT8, and it refuses or takes it by its own rules. What the
caller gives or gets stays UINT8 too, and with it all codes that are beside it in one layer.
"""

from __future__ import annotations

from collections.abc import Collection

from dryfit.builder.placement.assign import Assignment
from dryfit.builder.placement.roles import LayerRole
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.slice import SampleMode, Slice
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor
from dryfit.passes.quantization.commutation import commutation_of
from dryfit.plugins import registry

_BORDERS = frozenset({"constant", "quantize", "dequantize"})
"""Kinds at which codes begin and end: their own values or zero points are moved with the codes. A
cast is none: it reads codes as numbers."""
_ZERO_MATTERS = frozenset({"activation", "padding"})
"""Kinds that commute with quantization because code 0 stands for 0, which a moved code does not."""


def signed_codes(network: Network, assignment: Assignment) -> frozenset[str]:
    """Names of the UINT8 tensors, zero points and other constants among them, that are kept as INT8.

    Args:
        network: as it was placed.
        assignment: devices and roles of its layers.
    """
    border = {*network.inputs, *network.outputs}
    found = {tensor for tensor in network.tensors if tensor.dtype is DataType.UINT8 and tensor not in border}
    waiting = list(network.layers) if found else []
    while waiting:
        layer = waiting.pop()
        codes = _codes_of(layer)
        if set(codes) <= found and (not codes or _takes_signed(layer, codes, assignment)):
            continue
        # Codes that meet in one layer stay of one type.
        for tensor in found.intersection(codes):
            found.remove(tensor)
            waiting += [reader for reader, _ in tensor.consumers]
            waiting += [] if tensor.producer is None else [tensor.producer]
    return frozenset(tensor.name for tensor in found)


def _codes_of(layer: Layer) -> list[Tensor]:
    tensors = (*layer.inputs, *layer.outputs)
    return [tensor for tensor in tensors if tensor is not None and tensor.dtype is DataType.UINT8]


def _takes_signed(layer: Layer, codes: Collection[Tensor], assignment: Assignment) -> bool:
    """Whether a layer means the same with codes that are 128 lower."""
    if layer.kind == "constant":
        return True
    is_work = assignment.roles[layer.name] is LayerRole.WORK
    if not is_work or layer.output_types or assignment.devices[layer.name] != registry.host().device:
        return False
    return layer.kind in _BORDERS or _only_chooses(layer, codes)


def _only_chooses(layer: Layer, codes: Collection[Tensor]) -> bool:
    """Whether each element that a layer gives is one of the codes that it reads."""
    row = commutation_of(layer)
    if not row.commutes or layer.kind in _ZERO_MATTERS:
        return False
    if isinstance(layer, Slice) and layer.mode is SampleMode.FILL and layer.get_input(4) is None:
        return False
    data = [tensor for _, tensor in row.data_inputs(layer)]
    specs = {tensor: tensor.spec for tensor in layer.inputs if tensor is not None}
    return all(tensor in (*data, *layer.outputs) for tensor in codes) and not row.obstacle(layer, specs)
