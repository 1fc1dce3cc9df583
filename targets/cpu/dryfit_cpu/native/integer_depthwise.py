"""Depthwise convolution of INT8 values: each channel by its own window, a block of channels at a time."""

from __future__ import annotations

from typing import Any

from dryfit_cpu.codes import REAL_PRODUCTS
from dryfit_cpu.compiler.compilation import inlined, native
from dryfit_cpu.compiler.memory import STACK_BYTES, load, load_int, stack_memory
from dryfit_cpu.compiler.tier import current_tier
from dryfit_cpu.compiler.vectors import LANES
from dryfit_cpu.compiler.wide_numbers import as_integer_bits
from dryfit_cpu.compiler.window_terms import sum_windows, sum_windows_of_distances
from dryfit_cpu.compiler.window_variants import TO_SCALED_SUMS
from dryfit_cpu.descriptors import ChannelScales, Chunk, Image, RequantizationSteps, WindowAxis, WordTable
from dryfit_cpu.native.indices import BLOCK_BYTES, blocks_of_line, inside, pixel, share
from dryfit_cpu.native.requantization import fixed_products, fixed_scales, last_limits, requantized, write_limited


@inlined
def _write_pixel(
    sums: int,
    channels: int,
    first_channel: int,
    residual_pixel: int,
    residual: Image,
    output_pixel: int,
    output: Image,
    scales: ChannelScales,
    steps: RequantizationSteps,
) -> None:
    """The results of an output from its scaled sums, or from sums that fixed-point numbers scale."""
    for lane in range(0, channels, LANES):
        count = channels - lane
        add = residual_pixel + lane * residual.channel_stride
        x = load(sums + lane * 4)
        if scales.scaling != REAL_PRODUCTS:
            # The panel's FP32 multipliers are 1 then, and `sums_are_exact` holds: so these are the sums themselves.
            place = first_channel + lane
            scale = fixed_scales(scales.multipliers, scales.shifts, place, scales.scaling)
            doubles = scales.shifts + 8 * place
            x = fixed_products(as_integer_bits(x), scale, doubles, scales.scaling, steps.rounding)
        x = requantized(x, add, residual.channel_stride, residual.kind, count, steps)
        to = output_pixel + lane * output.channel_stride
        write_limited(to, output.channel_stride, output.kind, x, count, steps.rounding, last_limits(steps))


def _with(sum_lines: Any) -> Any:
    """The native function whose windows are summed by an operation of `compiler/window_terms.py`."""

    def depthwise(
        chunk: Chunk,
        source: Image,
        outside: int,
        blocks: WordTable,
        form: int,
        scales: ChannelScales,
        output: Image,
        residual: Image,
        window_rows: WindowAxis,
        window_columns: WindowAxis,
        steps: RequantizationSteps,
    ) -> None:
        """Exact sums over windows, requantized; the source's channels lie together, and fill the blocks.

        Blocks are described in `compiler/window_variants.py`, and so is the form: INT8 results whose channels lie
        together may be written at once; all others go through scaled sums on the stack. Those that fixed-point
        multipliers and shifts scale, one each a channel, are there as they are.
        """
        scratch = stack_memory()
        row_hop, left = window_rows.dilation * source.row_stride, window_columns.before
        # A piece of work is a line of outputs and a block of channels: the block's weights then stay in registers along
        # the line, and the rows of the image that it reads are in the first-level cache for the next line of the same
        # chunk.
        index, stop = share(chunk, output.images * output.rows * blocks.rows)
        while index < stop:
            line, first_block, end_block = blocks_of_line(index, stop, blocks.rows)
            index += end_block - first_block
            image = line // output.rows
            row = line - image * output.rows
            first_row = row * window_rows.step - window_rows.before
            begin_row, end_row = inside(first_row, window_rows.dilation, window_rows.extent, 0, source.rows)
            at_row, to_row = pixel(source, image, first_row, 0), pixel(output, image, row, 0)
            add_row = pixel(residual, image, row, 0)
            for block in range(
                blocks.address + first_block * BLOCK_BYTES, blocks.address + end_block * BLOCK_BYTES, BLOCK_BYTES
            ):
                channel, width = load_int(block), load_int(block + 8)
                number, panel = load_int(block + 16), load_int(block + 24)
                at, to = at_row + channel, to_row + channel * output.channel_stride
                if form != TO_SCALED_SUMS:
                    sum_lines(
                        number, at, row_hop, begin_row, end_row, -left, source.columns, source.pixel_stride, outside,
                        panel, output.columns, to, output.pixel_stride, form, window_rows.extent, window_columns.extent,
                        window_columns.step, window_columns.dilation,
                    )  # fmt: skip
                    continue
                add = add_row + channel * residual.channel_stride
                # As many outputs at a time as their sums fit the stack.
                waiting = STACK_BYTES // (4 * width)
                for turn in range((output.columns + waiting - 1) // waiting):
                    first = turn * waiting
                    pixels = min(waiting, output.columns - first)
                    sum_lines(
                        number, at, row_hop, begin_row, end_row, first * window_columns.step - left, source.columns,
                        source.pixel_stride, outside, panel, pixels, scratch, 4 * width, form, window_rows.extent,
                        window_columns.extent, window_columns.step, window_columns.dilation,
                    )  # fmt: skip
                    for place in range(pixels):
                        _write_pixel(
                            scratch + place * width * 4, min(width, output.channels - channel), channel,
                            add + (first + place) * residual.pixel_stride, residual,
                            to + (first + place) * output.pixel_stride, output, scales, steps,
                        )  # fmt: skip

    return depthwise


depthwise = native(_with(sum_windows))
if current_tier().has_byte_products:
    depthwise_of_distances = native(_with(sum_windows_of_distances))
