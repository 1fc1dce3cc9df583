"""Quantized operators that sum products: the kernels of integer groups, with the numbers of a quantize method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import attrs
import numpy as np

from dryfit.network.layers.quantized_operator import QuantizedOperator
from dryfit.network.tensor import TensorSpec
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, Kernel, Specs, kernel
from dryfit_cpu.kernels import (
    integer_convolution,
    integer_deconvolution,
    integer_depthwise,
    integer_fully_connected,
    integer_matrix_multiply,
)
from dryfit_cpu.kernels.operands import bound_array
from dryfit_cpu.kernels.stated_groups import StatedGroup
from dryfit_cpu.kernels.unsigned_codes import flip_work, memory_alike
from dryfit_cpu.kernels.written_out import CODE_TYPES, written_out
from dryfit_cpu.steps import NativeStep, Work


def for_quantize_methods(base: Kernel) -> Kernel:
    """A kernel of quantized operators that computes what a kernel of integer groups does.

    Args:
        base: whose groups begin with the dequantizations of data and weights, and may end with a quantization.
    """

    def accepts(group: LayerGroup, specs: Specs) -> bool:
        if getattr(group.main, "computes", "") not in base.kinds:
            return False
        stated = _stated(group, specs)
        return stated is not None and base.accepts(stated, _all_specs(stated, specs))

    def pack(group: LayerGroup) -> Mapping[str, Array]:
        return base.pack(cast("StatedGroup", _stated(group)))

    def workspace_bytes(group: LayerGroup, specs: Specs, num_threads: int) -> int:
        stated = cast("StatedGroup", _stated(group, specs))
        return base.workspace_bytes(stated, _all_specs(stated, specs), num_threads)

    @kernel(
        base.name.replace("integer", "quantized"),
        kinds="quantized_operator",
        data_types=CODE_TYPES,
        accepts=accepts,
        pack=pack,
        packs_constants=True,
        workspace_bytes=workspace_bytes,
        layout=base.layout,
        priority=base.priority,
    )
    def bind(binding: Binding) -> NativeStep:
        stated = _stated(binding.group, binding.specs)
        if stated is None:
            raise binding.group.main.problem(
                "Its quantize method has another rule for this number of samples than for others",
                remedy="Build it for one shape",
            )
        return _bind(base, stated, binding)

    return bind


def _stated(group: LayerGroup, specs: Specs | None = None) -> StatedGroup | None:
    layer = group.main
    return written_out(layer, specs) if isinstance(layer, QuantizedOperator) and len(group.layers) == 1 else None


def _all_specs(stated: StatedGroup, specs: Specs) -> dict[str, TensorSpec]:
    """Specs of a group's tensors, INT8 ones and inner ones among them."""
    tensors = [tensor for layer in stated.layers for tensor in (*layer.inputs, *layer.outputs) if tensor is not None]
    return {**specs, **{tensor.name: tensor.spec for tensor in tensors}}


def _bind(base: Kernel, stated: StatedGroup, binding: Binding) -> NativeStep:
    """The step of the integer group, with UINT8 codes flipped before and after it."""
    before, after, arrays = list[Work](), list[Work](), dict(binding.arrays)
    for tensor in (stated.weights.source.tensor, stated.outputs[0]):
        array = bound_array(binding, tensor.name)
        if array.dtype == np.int8:
            continue
        arrays[tensor.name] = flipped = memory_alike(array)
        if tensor is stated.outputs[0]:
            after += flip_work(flipped, array, binding.num_threads)
        else:
            before += flip_work(array, flipped, binding.num_threads)
    inner = attrs.evolve(binding, group=stated, specs=_all_specs(stated, binding.specs), arrays=arrays)
    step = cast("NativeStep", base.bind(inner))
    return NativeStep(binding.group.name, [*before, *step.work, *after], [inner, *step.keeps])


WEIGHTED = tuple(
    for_quantize_methods(base)
    for base in (
        integer_convolution.convolve_integers,
        integer_depthwise.convolve_integer_channels,
        integer_deconvolution.deconvolve_integers,
        integer_deconvolution.deconvolve_integer_channels,
        integer_fully_connected.connect_integers,
        integer_matrix_multiply.multiply_integers,
    )
)
