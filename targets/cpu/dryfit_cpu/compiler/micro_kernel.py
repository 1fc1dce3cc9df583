"""The register block in FP32: sums from the bias or from earlier sums to clamped results.

What a block is stands in `register_block.py`. Here it gets its beginning (the bias, or sums of an earlier block of k)
and its end (the residual is added, the sums are clamped, and stored).

What is left of the channels is computed by narrow blocks: one vector wide, of which the last may be there in part.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types

from dryfit_cpu.compiler import emit
from dryfit_cpu.compiler.emit import FLOAT, Builder, Value, load, offset, operation, store, word
from dryfit_cpu.compiler.register_block import LANES, VECTORS, BlockProduct, BlockTerms, Strides, sum_segments
from dryfit_cpu.compiler.vectors import first_mask

_SUMS = emit.vector_of(FLOAT, LANES)
_PRODUCT = BlockProduct(FLOAT, _SUMS, emit.multiply_add)


def micro_kernel(rows: int, *, runs: int, is_narrow: bool = False) -> Any:
    """An operation that computes one block of `rows` pixels in so many runs (1 or 2).

    A narrow block is one vector wide, of which the first `lanes` channels are there.

    Its arguments, all integers but `low` and `high`:
        input0, input1: addresses of the first pixel of each run; input_stride: bytes between pixels of a run.
        segments: address of `segment_count` byte offsets; segment_length: values in each.
        weights: address of the panel's first row, or of the columns of it that are wanted.
        start0, start1, start_stride: addresses of what the sums begin at: the bias (stride 0), or earlier sums.
        output0, output1, output_stride: addresses of the results.
        residual0, residual1, residual_stride: addresses of what is added; residual0 is 0 for none.
        low, high: limits of the results.
        ahead: address of what is needed next; a cache line of it is asked for in each turn.
        lanes: channels of a narrow block; a wide one has no use for it.
    """
    name = f"{'narrow_' if is_narrow else ''}block_{rows}_{runs}"

    def body(builder: Builder, *arguments: Value) -> None:
        _block(builder, rows // runs, runs, 1 if is_narrow else VECTORS, *arguments)

    @operation(types.void, *[types.int64] * 16, types.float32, types.float32, types.int64, types.int64)
    def block(builder: Builder, *arguments: Value) -> None:
        # A function of its own, never inlined: among the code that calls it, LLVM gave some sums a place on the stack
        # (66 stores and loads in one loop). The arguments that do not fit registers stay on the stack until the end
        # needs them, which is where they should be.
        emit.outlined(builder, name, arguments, body)

    return block


def _block(
    builder: Builder,
    run: int,
    runs: int,
    vectors: int,
    input0: Value,
    input1: Value,
    input_stride: Value,
    segments: Value,
    segment_count: Value,
    segment_length: Value,
    weights: Value,
    start0: Value,
    start1: Value,
    start_stride: Value,
    output0: Value,
    output1: Value,
    output_stride: Value,
    residual0: Value,
    residual1: Value,
    residual_stride: Value,
    low: Value,
    high: Value,
    ahead: Value,
    lanes: Value,
) -> None:
    """The body of a block: prologue, loops over segments and their values, epilogue."""

    def pixels(base0: Value, base1: Value, strides: Strides) -> list[Value]:
        return [strides.address(base, pixel) for base in (base0, base1)[:runs] for pixel in range(run)]

    outputs = pixels(output0, output1, Strides.of(builder, output_stride))
    residuals = pixels(residual0, residual1, Strides.of(builder, residual_stride))
    # Lines of the output and the residual are on their way while k is summed: with few inputs a block ends before they
    # would be there.
    for address in outputs:
        for vector in range(vectors):
            emit.prefetch(builder, offset(builder, address, 4 * LANES * vector), write=True)
    with builder.if_then(builder.icmp_signed("!=", residual0, word(0))):
        for address in residuals:
            for vector in range(vectors):
                emit.prefetch(builder, offset(builder, address, 4 * LANES * vector))

    starts = pixels(start0, start1, Strides.of(builder, start_stride))
    sums = [
        load(builder, _SUMS, offset(builder, address, 4 * LANES * vector))
        for address in starts
        for vector in range(vectors)
    ]
    terms = BlockTerms((input0, input1)[:runs], input_stride, segments, segment_count, segment_length, weights, ahead)
    sums = sum_segments(builder, _PRODUCT, run, terms, sums)
    limits = emit.splat(builder, low, LANES), emit.splat(builder, high, LANES)
    with builder.if_else(builder.icmp_signed("!=", residual0, word(0))) as (with_residual, without):
        with with_residual:
            _finish(builder, sums, outputs, residuals, limits, lanes)
        with without:
            _finish(builder, sums, outputs, None, limits, lanes)


def _finish(
    builder: Builder,
    sums: list[Value],
    outputs: list[Value],
    residuals: list[Value] | None,
    limits: tuple[Value, Value],
    lanes: Value,
) -> None:
    low, high = limits
    vectors = len(sums) // len(outputs)
    mask = first_mask(builder, lanes) if vectors == 1 else None
    for pixel, output in enumerate(outputs):
        for vector in range(vectors):
            # Sums become outputs in their registers: a pass of its own over the output for bias, residual and clamp
            # would read and write it once more, on 56 x 56 images from beyond the second-level cache.
            value, at = sums[pixel * vectors + vector], 4 * LANES * vector
            if residuals is not None:
                value = builder.fadd(value, _load(builder, offset(builder, residuals[pixel], at), mask))
            # The limit comes first: where the value is NaN, the comparison fails and the value is taken.
            value = builder.select(builder.fcmp_ordered(">", low, value), low, value)
            value = builder.select(builder.fcmp_ordered("<", high, value), high, value)
            _store(builder, value, offset(builder, output, at), mask)


def _load(builder: Builder, address: Value, mask: Value | None) -> Value:
    """The vector at an address; zero in the lanes that the mask leaves out."""
    if mask is None:
        return load(builder, _SUMS, address)
    # Masked, although sums of missing channels would be harmless: behind the last channel of the last pixel memory may
    # end, and what follows a pixel's channels is another pixel's.
    pointer = builder.inttoptr(address, _SUMS.as_pointer())
    arguments = [pointer, ir.Constant(emit.INT, 1), mask, emit.constant(_SUMS, 0)]
    return emit.call(builder, f"llvm.masked.load.v{LANES}f32.p0", _SUMS, arguments)


def _store(builder: Builder, value: Value, address: Value, mask: Value | None) -> None:
    """Write a vector, without the lanes that the mask leaves out."""
    if mask is None:
        store(builder, value, address)
        return
    pointer = builder.inttoptr(address, _SUMS.as_pointer())
    arguments = [value, pointer, ir.Constant(emit.INT, 1), mask]
    emit.call(builder, f"llvm.masked.store.v{LANES}f32.p0", ir.VoidType(), arguments)
