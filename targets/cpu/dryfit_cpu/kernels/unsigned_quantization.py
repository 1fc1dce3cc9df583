"""Quantize layers to UINT8 and dequantize layers of it, as those of INT8 codes that are 128 lower.

An engine keeps codes between layers as INT8 (`dryfit.builder.precision.signed_codes`); what is left for this kernel is
what the caller gives and gets, such as the bytes of a picture. UINT8 codes are INT8 ones that are 128 lower: the
highest bit of each is flipped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import attrs
import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layer_copies import copy_layer
from dryfit.network.layers.generators import Constant
from dryfit.network.layers.quantization import Dequantize, Quantize
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, HostLayout, Specs, kernel
from dryfit_cpu.compiler.native import NativeStep, Work
from dryfit_cpu.kernels.dense_operands import channels_last
from dryfit_cpu.kernels.integer_pointwise import CodeTable, lookup_work
from dryfit_cpu.kernels.operands import aligned_empty, all_specs, bound_array, input_of
from dryfit_cpu.kernels.quantization import scale_and_round

_FLIPS = CodeTable((np.arange(256, dtype=np.uint8) ^ np.uint8(128)).view(np.int8), None)


def flip_work(source: Array, output: Array, threads: int) -> list[Work]:
    """Work that gives the codes of the other type; source and output, 8-bit integers, may be the same memory."""
    return lookup_work(_FLIPS, source.view(np.int8), output.view(np.int8), threads)


def memory_alike(array: Array) -> Array:
    """Memory for as many INT8 codes, in the order in which an array has its own."""
    is_channels_last = array.ndim == 4 and array.strides[1] == 1
    return channels_last(array.shape, np.int8) if is_channels_last else aligned_empty(array.shape, np.int8)


def _signed(group: LayerGroup, specs: Specs) -> LayerGroup | None:
    """The layer of INT8 codes that stands for a layer of UINT8 ones; None where its numbers are not known."""
    layer = group.main
    if not isinstance(layer, (Quantize, Dequantize)) or len(group.layers) > 1:
        return None
    data, scale, *others = (cast("Tensor", tensor) for tensor in layer.inputs)
    quantized = layer.outputs[0] if isinstance(layer, Quantize) else data
    zeros = others[0].spec.value if others else np.zeros(scale.shape, np.uint8)
    if specs[quantized.name].dtype is not DataType.UINT8 or zeros is None or scale.spec.value is None:
        return None
    network, copy = Network(), copy_layer(layer)
    if isinstance(copy, Quantize):
        copy.to_type = DataType.INT8
    x = network.add_input(
        data.name, DataType.INT8 if data is quantized else specs[data.name].dtype, specs[data.name].shape
    )
    factor = network.add_layer(Constant(shape=scale.shape, weights=scale.spec.value), []).outputs[0]
    network.rename_tensor(factor, scale.name)
    signed = (np.ascontiguousarray(zeros) ^ np.uint8(128)).view(np.int8)
    zero_point = network.add_layer(Constant(shape=zeros.shape, weights=signed), []).outputs[0]
    added = network.add_layer(copy, [x, factor, zero_point])
    network.rename_tensor(added.outputs[0], layer.outputs[0].name)
    return LayerGroup([added])


def _accepts(group: LayerGroup, specs: Specs) -> bool:
    signed = _signed(group, specs)
    return signed is not None and scale_and_round.accepts(signed, all_specs(signed, specs))


@kernel(
    "cpu.unsigned_quantization",
    kinds=["quantize", "dequantize"],
    data_types=[DataType.FLOAT, DataType.HALF, DataType.UINT8],
    accepts=_accepts,
    layout=HostLayout.ANY,
)
def scale_and_round_unsigned(binding: Binding) -> NativeStep | Callable[[], None]:
    """The step of the INT8 layer, with codes flipped before or after it."""
    layer, threads, arrays = binding.group.main, binding.num_threads, dict(binding.arrays)
    signed = cast("LayerGroup", _signed(binding.group, binding.specs))
    inner = attrs.evolve(binding, group=signed, specs=all_specs(signed, binding.specs), arrays=arrays)
    before, after = list[Work](), list[Work]()
    name = (layer.outputs[0] if isinstance(layer, Quantize) else input_of(binding.group)).name
    codes = bound_array(binding, name)
    if isinstance(layer, Quantize):
        arrays[name] = codes.view(np.int8)
        after = flip_work(codes, codes, threads)
    else:
        arrays[name] = flipped = memory_alike(codes)
        before = flip_work(codes, flipped, threads)
    step = scale_and_round.bind(inner)
    if isinstance(step, NativeStep):
        return NativeStep(binding.group.name, [*before, *step.work, *after], [inner, step])
    flips = NativeStep(binding.group.name, after, [inner])

    def run() -> None:
        step.run()
        flips.run()

    return run
