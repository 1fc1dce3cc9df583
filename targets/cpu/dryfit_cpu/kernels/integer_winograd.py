"""Convolution of quantized images with a 3 x 3 window of stride 1 by Winograd's filtering, exact in whole numbers.

A rival of the direct convolution with the same results, bit for bit. An output tile of 4 x 4 takes 36 products where
the direct convolution takes 144. They are of 16-bit integers, of which a machine multiplies half as many as of bytes
(VNNI), or as many as the direct convolution does (all others): so half or a quarter of the time for them is left, and
transforms come in addition.

Why it is exact. With matrices without fractions (`native/winograd_matrices.py`) transformed bytes and weights are whole
numbers that 16 bits hold:

    |B^T d B|  <=  10 * 10 * 128 = 12800        rows of B^T have absolute sums up to 10
    |G g G^T|  <=   7 *  7 * 128 =  6272        those of G up to 7

Their products and the output transform are computed modulo 2**32, and give 576 times the sums at most, which is
9 * 2**6. Multiplying by the inverse of 9 modulo 2**32 leaves 64 times the sum, so that the sum is found wherever it
lies between -2**25 and 2**25. Up to 227 input channels it always does; with more the weights decide: no sum of products
is larger than 128 times the sum of the weights without their signs.

Our own arrangement; for the filtering itself see `winograd.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.convolution import Convolution
from dryfit.network.packed_elements import is_stand_in
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, Specs
from dryfit_cpu.codes import PANEL_CHANNELS, WHOLE_TILE
from dryfit_cpu.compiler.native import NativeFunction, NativeStep, Work
from dryfit_cpu.compiler.tier import current_tier
from dryfit_cpu.descriptors import WordTable
from dryfit_cpu.kernels.convolution import convolve_integers, window_of
from dryfit_cpu.kernels.dense_operands import DenseOperands, Images, with_dense_channels
from dryfit_cpu.kernels.integer_endings import without_needless_rounding
from dryfit_cpu.kernels.integer_products import ChannelNumbers, bind_integer_layer
from dryfit_cpu.kernels.integer_weights import UNIT, accepted_weights, pack_integer_panels
from dryfit_cpu.kernels.operands import Workspace, fp32_bytes, image_of, require_extents
from dryfit_cpu.kernels.requantization import bound_requantization, weighted_integer_kernel
from dryfit_cpu.kernels.windows import WindowGeometry
from dryfit_cpu.kernels.winograd import require_tiles, suits
from dryfit_cpu.kernels.winograd_tiling import Tiling, positions_of
from dryfit_cpu.native.winograd_matrices import WHOLE_MULTIPLES

_LEAST_EXTENT = 7
"""Of smaller images too much of the tiles lies outside."""
PAIR = 2
"""Input channels that are multiplied at once."""
_LARGEST_VALUE = 128
"""Of the size of an INT8 value."""
_LARGEST_SUM = 2**31 // (max(WHOLE_MULTIPLES) ** 2 & -(max(WHOLE_MULTIPLES) ** 2))
"""What sums stay below: 2**31 divided by the power of two in the largest multiple of them."""

_TRANSFORM_INPUT, _MULTIPLY, _TRANSFORM_OUTPUT = (
    NativeFunction("integer_winograd", name) for name in ("transform_input", "multiply", "transform_output")
)


def _accepts(group: LayerGroup, specs: Specs) -> bool:
    layer = group.main
    return (
        isinstance(layer, Convolution)
        and convolve_integers.accepts(group, specs)
        and suits(layer, window_of(group, specs).input[1], PANEL_CHANNELS)
        and min(specs[layer.outputs[0].name].shape[2:]) >= _LEAST_EXTENT
        and not accepted_weights(group).has_zero_points
        and _may_have_small_sums(accepted_weights(group).kernel)
    )


def _may_have_small_sums(weights: Array) -> bool:
    """Whether sums are small enough, as far as the weights are there: of an engine's they are looked at packed."""
    return is_stand_in(weights) or has_small_sums(weights)


def has_small_sums(weights: Array) -> bool:
    """Whether no sum of INT8 values times weights, INT8 `[K, ...]`, is too large for this kernel."""
    magnitudes = np.abs(weights.reshape(len(weights), -1).astype(np.int16)).sum(axis=1, dtype=np.int64)
    return int(magnitudes.max(initial=0)) * _LARGEST_VALUE < _LARGEST_SUM


def _pack(group: LayerGroup) -> dict[str, Array]:
    """Panels of pairs of input channels, with all places of the window for one pair after the other."""
    kernel = accepted_weights(group).kernel
    K, C, *_ = kernel.shape
    # The weights as they are, INT8, nine places of them: transformed they would be 36 positions of 16 bits, eight times
    # as much, and reading that from memory takes longer than transforming it in the cache.
    pairs = kernel.reshape(K, C // PAIR, PAIR, 3 * 3).swapaxes(2, 3)
    return pack_integer_panels(group, pairs.reshape(K, 1, -1), together=PAIR)


def _workspace_bytes(group: LayerGroup, specs: Specs, num_threads: int) -> int:
    window = window_of(group, specs)
    return _tiling(window, num_threads).workspace_bytes + fp32_bytes(_scratch_shape(window, num_threads))


def _tiling(window: WindowGeometry, threads: int) -> Tiling:
    return Tiling(WHOLE_TILE, window, window.input[1] // PAIR, threads, may_cut_channels=True)


def _scratch_shape(window: WindowGeometry, threads: int) -> tuple[int, int, int, int]:
    """(chunks of the products, positions in two rows, pairs, 32): the transformed weights that each has at a time.

    With a pair more, so that positions do not share sets of the first-level cache.
    """
    return 1 if threads == 1 else 2 * threads, 2 * (WHOLE_TILE + 2), window.input[1] // PAIR + 1, PANEL_CHANNELS


@weighted_integer_kernel(
    "cpu.integer_winograd",
    kinds="convolution",
    accepts=_accepts,
    pack=_pack,
    workspace_bytes=_workspace_bytes,
)
def convolve_integers_in_tiles(binding: Binding) -> NativeStep:
    """A step that convolves.

    Where an engine was refitted with weights whose sums might be too large, it convolves them directly: to the same
    results.
    """
    window = window_of(binding.group, binding.specs)
    require_tiles(window, PANEL_CHANNELS)
    C, K = window.input[1], window.output[1]
    panels = binding.weight("panels", (1, K // PANEL_CHANNELS, C // PAIR * 9, PANEL_CHANNELS, PAIR), DataType.INT8)
    # Few inputs have small sums whatever the weights are: then they need not be copied to be looked at.
    if 9 * C * _LARGEST_VALUE**2 < _LARGEST_SUM:
        return _bind(binding, window, panels)
    weights = panels[0].swapaxes(1, 2).reshape(K, C // PAIR, 3, 3, PAIR)
    if has_small_sums(weights):
        return _bind(binding, window, panels)
    runs = weights.transpose(0, 2, 3, 1, 4).reshape(1, K // PANEL_CHANNELS, PANEL_CHANNELS, -1, UNIT)
    packed = {**binding.weights, "panels": np.ascontiguousarray(runs.swapaxes(2, 3))}
    return bind_integer_layer(attrs.evolve(binding, weights=packed), window)


def _bind(binding: Binding, window: WindowGeometry, panels: Array) -> NativeStep:
    """A step that convolves strip by strip: transform, multiply, transform back."""
    threads, workspace, tiling = binding.num_threads, Workspace(binding), _tiling(window, binding.num_threads)
    source, steps = accepted_weights(binding.group).source, without_needless_rounding(bound_requantization(binding))
    images = Images.of(binding, source.tensor.name, steps.residual)
    read, work = with_dense_channels(images.source, threads, is_read=True)
    dense = DenseOperands.between(images.output, images.residual, threads)
    output, residual = dense.output, dense.residual
    require_extents(read.shape, window.input, "input of a window")
    require_extents(output.shape, window.output, "output of a window")
    transformed, products = map(workspace.take, tiling.plane_shapes)
    scratch, keeps = workspace.take(_scratch_shape(window, threads)), list[object]()
    numbers = ChannelNumbers.of(binding, (1, window.output[1]))
    largest_products = 3 * 3 * window.input[1] * _LARGEST_VALUE**2
    results = {
        "output": output.image,
        "residual": image_of(residual, output.kind),
        **numbers.arguments(steps, output, residual, largest_products),
    }
    work += dense.before
    for strip in tiling.strips():
        work.append(tiling.input_work(_TRANSFORM_INPUT, read, transformed, strip, source.zero_point))
        product, tables = _multiply_work(tiling, strip[1], transformed, panels, scratch, products)
        work.append(product)
        keeps += tables
        work.append(tiling.output_work(_TRANSFORM_OUTPUT, products, strip, results))
    keeps += [binding, images, read, output, residual, transformed, products, panels, scratch, numbers]
    return NativeStep(binding.group.name, [*work, *dense.after], keeps)


def _multiply_work(
    tiling: Tiling, tiles: int, transformed: Array, panels: Array, scratch: Array, products: Array
) -> tuple[Work, Sequence[Array]]:
    """Work that multiplies the tiles of a strip by the weights at each position, and the tables for it."""
    blocks, segments = block_table(tiles), np.zeros(1, np.int64)
    work = _MULTIPLY.work(
        len(scratch),
        transformed=positions_of(transformed),
        blocks=WordTable(blocks.ctypes.data, len(blocks)),
        segments=segments.ctypes.data,
        pairs=scratch.shape[2] - 1,
        windows=panels.ctypes.data,
        panels=panels.shape[1],
        part_panels=panels.shape[1] // tiling.channel_parts,
        groups=panels.shape[1] * tiling.tile_parts,
        scratch=scratch.ctypes.data,
        products=positions_of(products),
    )
    return work, (blocks, segments)


def block_table(tiles: int) -> Array:
    """(first tile, tiles) of register blocks, INT64, of two sizes: as few tiles twice, or beyond, as there can be."""
    whole, fewer = current_tier().rows, current_tier().fewer_rows
    counts = [(count, -(-max(tiles - count * whole, 0) // fewer)) for count in range(-(-tiles // whole) + 1)]
    best = min(counts, key=lambda pair: (pair[0] * whole + pair[1] * fewer, sum(pair)))
    # Two sizes of block, as strips are short: with one size up to half of the last block would be computed for nothing.
    sizes = [whole] * best[0] + [fewer] * best[1]
    ends = np.minimum(np.cumsum(sizes), tiles)
    return np.stack([np.maximum(ends - sizes, 0), sizes], axis=1).astype(np.int64)
