"""Quantized operators, with the numbers and the definition of a quantize method.

Those that sum products run on the kernels of integer groups. Those that are functions of one code, or of two, are
tables: whatever a method makes of 8 bits is computed once for each code, when the step is bound; then a result costs a
load.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import cast

import attrs
import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.quantized_operator import QuantizedOperator
from dryfit.network.tensor import Tensor
from dryfit.quantization.methods.operators import operator_of
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, HostLayout, Kernel, Specs, is_activation, kernel
from dryfit_cpu.compiler.native import NativeFunction, NativeStep, Work
from dryfit_cpu.kernels import convolution, deconvolution, integer_depthwise, integer_matrix_multiply
from dryfit_cpu.kernels.copying import parts_along, placed_arguments
from dryfit_cpu.kernels.integer_pointwise import CodeTable, lookup_work
from dryfit_cpu.kernels.operands import aligned_empty, all_specs, bound_array, input_of
from dryfit_cpu.kernels.requantization import StatedGroup
from dryfit_cpu.kernels.unsigned_quantization import flip_work, memory_alike
from dryfit_cpu.kernels.written_out import CODE_TYPES, written_out

_LOOK_UP_PAIRS = NativeFunction("lookup", "look_up_pairs")
_OF_ONE_CODE = frozenset({"dequantize", "leaky_relu", "relu", "requantize", "sigmoid"})
_EVERY_CODE = np.arange(256, dtype=np.uint8)


def _reads_codes(group: LayerGroup, specs: Specs, operators: frozenset[str]) -> bool:
    """Whether a group is one of these operators, and all that it reads is known when it runs, with a grid for each."""
    layer = group.main
    if not isinstance(layer, QuantizedOperator) or len(group.layers) > 1:
        return False
    inputs = [tensor for tensor in layer.inputs if tensor is not None]
    return (
        operator_of(layer.real_layer()) in operators
        and len(inputs) == len(layer.inputs) == len(layer.scales)
        and all(is_activation(tensor, specs) and specs[tensor.name].dtype in CODE_TYPES for tensor in inputs)
        and all(scale is not None and scale.ndim == 0 for scale in layer.scales)
    )


def _accepts_pairs(group: LayerGroup, specs: Specs) -> bool:
    """Both operands of the output's shape: then no definition asks which of the two is repeated."""
    if not _reads_codes(group, specs, frozenset({"eltwise_sum"})):
        return False
    shapes = {specs[tensor.name].shape for tensor in (*group.main.inputs, *group.main.outputs) if tensor is not None}
    return len(shapes) == 1 and len(group.main.inputs) == len({tensor.name for tensor in group.inputs})


def _codes(dtype: DataType, rank: int, axis: int) -> Array:
    """All codes along an axis, in the order of unsigned bytes."""
    shape = [1] * rank
    shape[axis] = 256
    return _EVERY_CODE.view(dtype.numpy).reshape(shape)


def _results(layer: QuantizedOperator, inputs: list[Array]) -> Array:
    """What the method makes of codes; UINT8 results as the INT8 values of their bytes."""
    results = np.asarray(layer.operator_method().evaluate(layer, inputs)[0])
    return results.view(np.int8) if results.dtype == np.uint8 else results


def _bytes(array: Array) -> Array:
    return array.view(np.int8) if array.dtype == np.uint8 else array


@kernel(
    "cpu.quantized_function",
    kinds="quantized_operator",
    data_types=CODE_TYPES | {DataType.FLOAT},
    accepts=functools.partial(_reads_codes, operators=_OF_ONE_CODE),
    layout=HostLayout.ANY,
)
def look_up_codes(binding: Binding) -> NativeStep:
    """A step that looks up each code."""
    layer = cast("QuantizedOperator", binding.group.main)
    source = bound_array(binding, input_of(binding.group).name)
    output = _bytes(bound_array(binding, layer.outputs[0].name))
    table = CodeTable(_results(layer, [_EVERY_CODE.view(source.dtype)]), None)
    work = lookup_work(table, _bytes(source), output, binding.num_threads)
    return NativeStep(binding.group.name, work, [binding, table])


@kernel(
    "cpu.quantized_concatenation",
    kinds="quantized_operator",
    data_types=CODE_TYPES,
    accepts=functools.partial(_reads_codes, operators=frozenset({"concat"})),
    layout=HostLayout.ANY,
)
def concatenate_codes(binding: Binding) -> NativeStep:
    """A step that looks up the codes of each input, at their place in the output."""
    layer = cast("QuantizedOperator", binding.group.main)
    arrays = [bound_array(binding, cast("Tensor", tensor).name) for tensor in layer.inputs]
    output = _bytes(bound_array(binding, layer.outputs[0].name))
    axis = cast("int", getattr(layer.real_layer(), "axis", 0)) % output.ndim
    every = [_codes(DataType.from_numpy(array.dtype), array.ndim, axis) for array in arrays]
    tables = np.ascontiguousarray(_results(layer, every).reshape(-1, 256))
    work = []
    for array, values, part in zip(arrays, tables, parts_along(axis, arrays, output), strict=True):
        work += lookup_work(CodeTable(values, None), _bytes(array), part, binding.num_threads)
    return NativeStep(binding.group.name, work, [binding, tables])


@kernel(
    "cpu.quantized_sum",
    kinds="quantized_operator",
    data_types=CODE_TYPES,
    accepts=_accepts_pairs,
    layout=HostLayout.ANY,
)
def look_up_pairs(binding: Binding) -> NativeStep:
    """A step that looks up each pair of codes."""
    layer = cast("QuantizedOperator", binding.group.main)
    first, second = (bound_array(binding, cast("Tensor", tensor).name) for tensor in layer.inputs)
    output = _bytes(bound_array(binding, layer.outputs[0].name))
    rows = np.repeat(_EVERY_CODE, 256).reshape(256, 256).view(first.dtype)
    columns = np.ascontiguousarray(np.broadcast_to(_EVERY_CODE, (256, 256))).view(second.dtype)
    # Every pair of codes, by the definition itself: 65,536 results take milliseconds when the step is bound, and no
    # second implementation can differ from the method's.
    table = aligned_empty((256, 256), np.int8)
    table[...] = _results(layer, [rows, columns])
    arrays = {"output": output, "first": _bytes(first), "second": _bytes(second)}
    work = [
        _LOOK_UP_PAIRS.work(chunks, table=table.ctypes.data, **arguments)
        for chunks, arguments in placed_arguments(arrays, binding.num_threads)
    ]
    return NativeStep(binding.group.name, work, [binding, table])


def for_quantize_methods(base: Kernel) -> Kernel:
    """A kernel of quantized operators that computes what a kernel of integer groups does.

    Groups of the base begin with the dequantizations of data and weights, and may end with a quantization.
    """

    def accepts(group: LayerGroup, specs: Specs) -> bool:
        if getattr(group.main, "computes", "") not in base.kinds:
            return False
        stated = _stated(group, specs)
        return stated is not None and base.accepts(stated, all_specs(stated, specs))

    def pack(group: LayerGroup) -> Mapping[str, Array]:
        return base.pack(cast("StatedGroup", _stated(group)))

    def workspace_bytes(group: LayerGroup, specs: Specs, num_threads: int) -> int:
        stated = cast("StatedGroup", _stated(group, specs))
        return base.workspace_bytes(stated, all_specs(stated, specs), num_threads)

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
                "The quantize method uses different rules for different batch sizes",
                remedy="Build the engine for a fixed shape",
            )
        return _bind(base, stated, binding)

    return bind


def _stated(group: LayerGroup, specs: Specs | None = None) -> StatedGroup | None:
    layer = group.main
    return written_out(layer, specs) if isinstance(layer, QuantizedOperator) and len(group.layers) == 1 else None


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
    inner = attrs.evolve(binding, group=stated, specs=all_specs(stated, binding.specs), arrays=arrays)
    step = cast("NativeStep", base.bind(inner))
    return NativeStep(binding.group.name, [*before, *step.work, *after], [inner, *step.keeps])


WEIGHTED = tuple(
    for_quantize_methods(base)
    for base in (
        convolution.convolve_integers,
        integer_depthwise.convolve_integer_channels,
        deconvolution.deconvolve_integers,
        deconvolution.deconvolve_integer_channels,
        convolution.connect_integers,
        integer_matrix_multiply.multiply_integers,
    )
)
