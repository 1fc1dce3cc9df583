"""Cycles of a command stream: of the multiply array, the output unit and the memories. Estimates of Vela's estimates.

The array makes a block of results at a time, one group of input channels in four cycles. Products are counted in whole
blocks and groups, and an operation takes as long as the slowest of array, output unit and memories.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from dryfit.network.layer import Layer
from dryfit.network.tensor import TensorSpec
from dryfit.target.cost import CostEstimate, CostQuestion, StepCost, TransferQuestion
from dryfit_ethos_u.layouts import tflite_operator
from dryfit_ethos_u.machines import CACHES, MODE_OF, VELA, Accelerator, System, system
from dryfit_ethos_u.memory import SCALE_BYTES
from dryfit_ethos_u.operators import Grid, inputs_of, is_depthwise, kind_of, outputs_of, parameters

BASIS = "cycles of Vela's model: the slowest of multiply array, output unit and memories for each operation"
SOURCE = f"{VELA}: per-operation cycles of its performance report; fitted to them, not measured"
ERRORS = {"u55": 1.2, "u65": 1.2, "u85": 1.25}
"""Above the mean error against Vela over the models of the package's tests; Vela's own error is unknown."""

START_CYCLES = {"u55": 150, "u65": 150, "u85": 700, "u85-1024": 400, "u85-2048": 400}
"""Family or accelerator to cycles until the first block of an operation arrives. Fitted to Vela's cycles of small
operations."""
_FREE = frozenset({"quantize", "dequantize", "squeeze", "unsqueeze", "identity", "constant", "shape"})
_FUSED_WITH = frozenset(
    {"convolution", "deconvolution", "fully_connected", "matrix_multiply", "elementwise", "pooling"}
)


@attrs.frozen
class Work:
    """What an operation asks of the machine.

    Attributes:
        array: cycles of the multiply array.
        output: cycles of the output unit.
        feature_bytes: bytes of feature maps that are read and written.
        constant_bytes: bytes of weights and scales.
        macs: multiply-accumulates.
    """

    array: float
    output: float
    feature_bytes: int
    constant_bytes: int
    macs: int


def estimate_cost(question: CostQuestion) -> CostEstimate | None:
    """Return the cycles of a segment, operation by operation."""
    accelerator, mode = MODE_OF[question.platform.name]
    memories = system(question.power_mode, question.platform.family)
    steps = [_step(layers, question, accelerator, memories, mode) for layers in _operations(question.layers) if layers]
    return CostEstimate(
        microseconds=sum(step.microseconds for step in steps),
        bytes_moved=sum(step.bytes_moved for step in steps),
        macs=sum(step.macs for step in steps),
        basis=f"{BASIS}; {memories.name}, {mode}",
        source=SOURCE,
        steps=steps,
        error_factor=ERRORS[accelerator.family],
    )


def estimate_transfer(question: TransferQuestion) -> CostEstimate:
    """Return what a tensor takes that lies in the arena, where the CPU finds it."""
    memories = system(question.power_mode, question.platform.family)
    _, mode = MODE_OF[question.platform.name]
    rate = memories.other_bytes_per_cycle if mode in CACHES else memories.sram_bytes_per_cycle
    time = question.bytes_moved / rate / memories.clock_hz * 1e6
    return CostEstimate(time, question.bytes_moved, 0, "bytes over the rate of the arena's memory", SOURCE)


def _operations(layers: Sequence[Layer]) -> list[list[Layer]]:
    """The layers in operations: an activation belongs to what it ends, and quantization to what it surrounds."""
    found: list[list[Layer]] = []
    of_layer: dict[str, int] = {}
    waiting: list[Layer] = []
    for layer in layers:
        before = layer.inputs[0].producer if layer.inputs and layer.inputs[0] is not None else None
        joins = before is not None and before.name in of_layer
        if kind_of(layer) in _FREE or _only_renames(layer):
            if joins and before is not None:
                found[of_layer[before.name]].append(layer)
                of_layer[layer.name] = of_layer[before.name]
            else:
                waiting.append(layer)
        elif joins and layer.kind == "activation" and before is not None and before.kind in _FUSED_WITH:
            found[of_layer[before.name]].append(layer)
            of_layer[layer.name] = of_layer[before.name]
        else:
            found.append([layer, *waiting])
            of_layer[layer.name] = len(found) - 1
            waiting = []
    if waiting:
        found = [[*found[0], *waiting], *found[1:]] if found else [waiting]
    return found


def _only_renames(layer: Layer) -> bool:
    """Whether a shuffle moves nothing: a reshape, or the importer's change of layout."""
    if layer.kind != "shuffle":
        return False
    order = tuple(parameters(layer).first_transpose)
    return order in ((), tuple(range(len(order)))) or tflite_operator(layer) != "TRANSPOSE"


def _step(
    layers: Sequence[Layer], question: CostQuestion, accelerator: Accelerator, memories: System, mode: str
) -> StepCost:
    work = work_of(layers[0], question, accelerator)
    is_in_cache = mode not in CACHES or work.feature_bytes <= CACHES[mode]
    sram = work.feature_bytes / memories.sram_bytes_per_cycle * _BURSTS if is_in_cache else 0.0
    other = 0.0 if is_in_cache else work.feature_bytes / memories.other_bytes_per_cycle * _BURSTS
    constants = work.constant_bytes if mode != "Sram_Only" else 0
    sram += (work.constant_bytes - constants) / memories.sram_bytes_per_cycle
    other += constants / memories.other_bytes_per_cycle * _of(_WEIGHT_STREAMS, accelerator)
    other += _of(_STREAM_LATENCIES, accelerator) if constants else 0
    if mode in CACHES:  # what crosses the border lies in the arena, and narrow pixels waste its bursts
        crossing = [*_from_outside(layers, question), *_to_outside(layers, question)]
        other += sum(_burst_bytes(one, accelerator) for one in crossing) / memories.other_bytes_per_cycle
    is_work = work.array + work.output > 0
    start = _of(START_CYCLES, accelerator) if is_work else 0
    compute = max(work.array, work.output) + min(work.array, work.output) * _OVERLAP
    microsecond = memories.clock_hz / 1e6
    return StepCost(
        layers=[layer.name for layer in layers],
        compute_microseconds=compute / microsecond,
        memory_microseconds=max(sram, other) / microsecond,
        overhead_microseconds=start / microsecond,
        cycles=math.ceil(compute),
        bytes_moved=work.feature_bytes + work.constant_bytes,
        macs=work.macs,
        overlaps=True,
    )


_LONG_BURSTS = {"u65": 64, "u85": 128, "u85-1024": 96, "u85-2048": 96}
"""Bytes of a burst to DRAM. Source: Vela, Dram_burst_length; on the U65 half of it, on wide U85 3/4, fitted."""
_WEIGHT_STREAMS = {"u55": 1.0, "u65": 1.0, "u85": 3.3, "u85-512": 2.2, "u85-1024": 1.0, "u85-2048": 1.0}
"""How much longer short streams of weights take than their bytes. Fitted."""
_STREAM_LATENCIES = {"u55": 0, "u65": 0, "u85": 0, "u85-1024": 2000, "u85-2048": 1000}
"""Cycles until the streams of an operation's weights arrive, beside their bytes. Fitted."""
_BURSTS = 1.5
"""Bytes of bursts over bytes of feature maps: bricks of 16 channels use half of a burst of 32 bytes where they are
written, and all where rows are read. Fitted to Vela's access cycles."""
_OVERLAP = 0.03
"""Part of the faster unit's cycles that the slower one waits for, at the first and last block. Fitted."""


def _from_outside(layers: Sequence[Layer], question: CostQuestion) -> list[TensorSpec]:
    """Images that an operation reads and that no layer of the segment makes."""
    made = {tensor.name for layer in question.layers for tensor in layer.outputs}
    found = {one.name: question.specs[one.name] for layer in layers for one in layer.connected_inputs}
    known = {name for name, spec in found.items() if name in made or spec.value is not None or len(spec.shape) != 4}
    return [spec for name, spec in found.items() if name not in known]


def _to_outside(layers: Sequence[Layer], question: CostQuestion) -> list[TensorSpec]:
    """Images that an operation gives to others than the layers of its segment."""
    inside = {layer.name for layer in question.layers}
    given = [tensor for layer in layers for tensor in layer.outputs if len(tensor.shape) == _IMAGE_RANK]
    return [
        question.specs[one.name]
        for one in given
        if one.is_network_output or any(reader.name not in inside for reader, _ in one.consumers)
    ]


_IMAGE_RANK = 4


def _burst_bytes(image: TensorSpec, accelerator: Accelerator) -> float:
    """Bytes of the bursts that move an image of `[N, C, H, W]`."""
    waste = _of(_LONG_BURSTS, accelerator) / min(image.shape[1], image.shape[3])
    return image.dtype.bytes_of(math.prod(image.shape)) * max(waste, _BURSTS)


def _of(table: Mapping[str, float], accelerator: Accelerator) -> float:
    """What a table says of an accelerator, or else of its family."""
    return table.get(accelerator.name, table[accelerator.family])


def work_of(layer: Layer, question: CostQuestion, accelerator: Accelerator) -> Work:
    """Return the work of an operation by its main layer."""
    inputs, outputs = inputs_of(layer, question.specs), outputs_of(layer, question.specs)
    data = [one for one in inputs if not one.is_constant]
    moved = sum(one.dtype.bytes_of(math.prod(one.shape)) for one in (*data, *outputs))
    kind = kind_of(layer)
    if kind in _FREE or _only_renames(layer) or not data:
        return Work(0, 0, 0, 0, 0)
    macs = layer.multiply_accumulates(question.specs) if layer.sums_products else 0
    constants = sum(stored_bits(one) for one in inputs if one.is_constant) // 8 if layer.sums_products else 0
    plain, product, total, maximum, table = accelerator.element_cycles
    elements = math.prod(outputs[0].shape)
    wide = 2 if data[0].dtype.bits == 16 else 1
    made = parameters(layer)
    if kind in ("convolution", "deconvolution"):
        channels = data[0].shape[1]
        constants += SCALE_BYTES * outputs[0].shape[1]
        array = _array_cycles(made, channels, outputs[0].shape, wide, accelerator)
        macs = elements * math.prod(made.kernel_size_nd) * channels // made.num_groups
        return Work(array, elements * plain, moved, constants, macs)
    if kind in ("fully_connected", "matrix_multiply"):
        columns = outputs[0].shape[-1] if kind == "matrix_multiply" else made.num_output_channels
        depth, rows = data[0].shape[-1], elements // columns
        if kind == "fully_connected":
            depth = math.prod(data[0].shape) // rows
        constants += SCALE_BYTES * columns
        array = _vector_cycles(depth, columns, rows, wide, accelerator)
        return Work(array, elements * plain, moved, constants, elements * depth)
    if kind == "pooling":
        window = math.prod(made.window_size_nd)
        per_element = maximum if made.pooling_type.name == "MAX" else plain
        return Work(_window_cycles(outputs[0].shape, window, accelerator), elements * per_element, moved, 0, 0)
    if kind == "elementwise":
        per_element = {"SUM": total, "SUB": total, "PROD": product}.get(made.op.name, plain)
        return Work(0, elements * per_element, moved, 0, 0)
    if kind == "softmax":
        rows = elements // outputs[0].shape[-1]
        blocks = math.ceil(rows / math.prod(accelerator.block[:2])) * 4 * outputs[0].shape[-1]
        return Work(blocks, elements * 10 * plain + 800, moved, 0, 0)
    if kind == "reduce":
        count = max(math.prod(data[0].shape) // max(elements, 1), 1)
        array = _vector_cycles(4 * count, elements, 1, wide, accelerator)
        return Work(array, elements * plain, moved, 0, 0)
    shape = outputs[0].shape if len(outputs[0].shape) > 2 else (1, elements, 1, 1)
    per_element = table if kind in ("activation", "unary") and wide == 1 else plain
    return Work(_window_cycles(shape, 1, accelerator) * wide, elements * per_element, moved, 0, 0)


def _blocks(shape: Sequence[int], accelerator: Accelerator) -> tuple[int, int]:
    """Blocks of results in a plane, and blocks of channels, of `[N, C, H, W]`."""
    *batch, channels, height, width = (1,) * (4 - len(shape)) + tuple(shape)
    rows, columns, depth = accelerator.block
    if height == 1 and rows > 1:
        rows, columns = 1, columns * rows  # one row: the block lies along it
    plane = math.prod(batch) * math.ceil(height / rows) * math.ceil(width / columns)
    return plane, math.ceil(channels / depth)


def _array_cycles(layer: Any, channels: int, shape: Sequence[int], wide: int, accelerator: Accelerator) -> float:
    """Cycles of a convolution: kernel after kernel, or in parts of four places where channels are few."""
    plane, depth = _blocks(shape, accelerator)
    places = math.prod(layer.kernel_size_nd)
    weights = 4 * accelerator.block[2]  # the decoder's time for the weights of a block
    if is_depthwise(layer, channels):
        return max(4 * wide * plane, weights) * math.ceil(places / 4) * depth / accelerator.cores
    if layer.kind == "deconvolution":
        plane = math.ceil(plane / math.prod(layer.stride_nd)) * math.prod(layer.stride_nd)
    inner = channels // layer.num_groups
    whole = places * math.ceil(inner * wide / 32)
    parts = math.ceil(places * wide / 4) * math.ceil(inner / 8)
    return max(4 * plane, weights) * min(whole, parts) * depth / accelerator.cores


def _vector_cycles(depth: int, columns: int, rows: int, wide: int, accelerator: Accelerator) -> float:
    """Cycles of products of a matrix: one row has too few results to hide the decoding of weights."""
    height, width, channels = accelerator.block
    plane = math.ceil(rows / (height * width))
    steps = math.ceil(depth * wide / 32) * math.ceil(columns / channels)
    return max(4 * plane, 4 * channels) * steps / accelerator.cores


def _window_cycles(shape: Sequence[int], places: int, accelerator: Accelerator) -> float:
    """Cycles of a window without weights; at least four places are as fast as one."""
    plane, depth = _blocks(shape, accelerator)
    return max(4, places) * (1 if accelerator.macs == 32 else 4) * plane * depth / accelerator.cores


def stored_bits(weights: Grid) -> int:
    """Return the bits of constants in Vela's coding, which comes near their entropy."""
    values = weights.codes if weights.codes is not None else weights.real
    if values is None or values.ndim < 2:
        return 0
    if weights.codes is None:
        return 8 * int(values.size)
    _, counts = np.unique(values, return_counts=True)
    shares = counts / values.size
    return int(values.size * min(float(-(shares * np.log2(shares)).sum()) + 0.1, 8.0))
