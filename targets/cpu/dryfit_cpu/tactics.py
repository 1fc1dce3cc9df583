"""How kernels go through their operands: the ways that there are, and which one is best on known processors.

All of it is known when a kernel is bound, so no way needs code of its own:

* `tiles`: a product's outer loop is over tiles of pixels; all weights are read for each tile, and should stay in the
  second-level cache.
* `panels`: the outer loop is over panels of output channels; all pixels are read for each panel.
* `panels-256`: the same, with each panel cut along k into blocks of about 256 words, whose weights stay in the
  first-level cache while tiles go by. FP32 only: the sums wait in the output, which is exact there.
* `rows`, `planes`: depthwise convolution goes through all channels row by row, or through all rows block of channels
  by block of channels.

What is best depends on the sizes of the caches most of all. `FAMILIES` says it for processors on which it was measured;
on all others a build measures.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path

from dryfit.attrs_classes import frozen
from dryfit.target.tactics import Tactics
from dryfit_cpu.compiler.tier import current_tier, this_processor

TILES, PANELS, PANELS_BY_BLOCKS, ROWS, PLANES = "tiles", "panels", "panels-256", "rows", "planes"
BLOCK_WORDS = 256
"""Words of k in a block of `panels-256`: 16 KiB of weights for 16 channels, half of a first-level cache."""
_LEAST_TILES = 4
"""With fewer there is nothing that weights could stay in a cache for."""


@frozen
class Family:
    """What is best on processors of one kind.

    Attributes:
        cached_weight_bytes: weights up to this size stay in the second-level cache while tiles go by.
        cached_input_bytes: what the pixels of a product sum over, up to this size, stays there while panels go by.
        panel_bytes: a panel larger than this is cut into blocks of k where its runs of memory allow.
        plane_bytes: channels of a block in a whole image up to this size go by plane by plane in depthwise convolution.
        source: where these come from; empty for a guess.
    """

    cached_weight_bytes: int
    cached_input_bytes: int
    panel_bytes: int
    plane_bytes: int
    source: str = ""


_MEBIBYTE = 1 << 20

FAMILIES = {
    "znver3": Family(
        400_000,
        _MEBIBYTE // 4,
        300_000,
        _MEBIBYTE // 4,
        "measured on an AMD EPYC of this family, 512 KiB of second-level cache a core: the layers of MobileNetV2 and "
        "ResNet-50 in FP32, other sizes of weights and panels were no faster; inputs in whole small networks, of 64 "
        "KiB to 4 MiB",
    ),
    "znver4": Family(
        400_000,
        _MEBIBYTE // 2,
        300_000,
        _MEBIBYTE // 2,
        "weights and panels measured on an AMD EPYC with AVX512-VNNI, 1 MiB of second-level cache a core; inputs and "
        "planes by the size of that cache, as on znver3",
    ),
}
"""By LLVM's name of the processor."""


@functools.cache
def family() -> Family:
    """What is best here, or a guess by the size of the second-level cache."""
    known = FAMILIES.get(this_processor().cpu)
    if known is not None:
        return known
    cache = _second_level_bytes()
    return Family(cache * 2 // 5, cache // 2, cache * 3 // 10, cache // 2)


def _second_level_bytes() -> int:
    """Of one core, as Linux tells it; 1 MiB where nobody does."""
    try:
        text = Path("/sys/devices/system/cpu/cpu0/cache/index2/size").read_text().strip()
        return int(text.removesuffix("K")) * 1024
    except (OSError, ValueError):
        return _MEBIBYTE


def goes_by_tiles(tiles: int, depth: int, weight_bytes: int) -> bool:
    """Whether the outer loop of a product is over tiles, because the weights are what stays in the cache meanwhile.

    Each output sums over `depth` words.

    With tiles outside all weights are read once for each tile, with panels outside all pixels once for each panel. So
    the weights have to be what stays in the cache, or be what is read only once.
    """
    # In a network weights come from beyond that cache, whatever their size: other layers ran since they were last used.
    # With panels outside each is read once, and asked for a panel ahead. A transformer of 4 layers by 128, with 32
    # tokens, takes 13 to 17 % less time so than with tiles outside; measured alone, with weights still in the cache,
    # its products differ little.
    input_bytes = 4 * tiles * current_tier().rows * depth
    fits = weight_bytes <= family().cached_weight_bytes
    return fits and input_bytes > family().cached_input_bytes and tiles >= _LEAST_TILES


def product_tactics(pixels: int, depth: int, outputs: int, *, has_blocks: bool) -> Tactics:
    """Those of a product of so many pixels and output channels, with `depth` words of k.

    `has_blocks` says whether k may be cut.
    """
    tiles = -(-pixels // current_tier().rows)
    if tiles < 2 or outputs <= current_tier().block_channels:
        return Tactics()  # one panel or tile: the loops are the same
    names = [TILES, PANELS] if goes_by_tiles(tiles, depth, 4 * depth * outputs) else [PANELS, TILES]
    if has_blocks and depth > BLOCK_WORDS * 3 // 2:
        names.append(PANELS_BY_BLOCKS)
    return _ranked(names)


def plane_tactics(image: Sequence[int], width: int) -> Tactics:
    """Those of depthwise convolution to images (N, C, H, W), by blocks of `width` channels in FP32."""
    _, _, H, W = image
    is_large = 4 * width * H * W > family().plane_bytes
    return _ranked([ROWS, PLANES] if is_large else [PLANES, ROWS]) if H > 1 else Tactics()


def _ranked(names: Sequence[str]) -> Tactics:
    return Tactics(names, are_ranked=bool(family().source))


def cut_runs(offsets: Sequence[int], length: int) -> tuple[list[int], int]:
    """Runs of so many words, and the same cut into equal pieces of about `BLOCK_WORDS`: byte offsets, and words."""
    parts = -(-length // BLOCK_WORDS)
    while length % parts:
        parts += 1
    piece = length // parts
    if piece < BLOCK_WORDS // 4:
        return list(offsets), length
    return [start + 4 * piece * part for start in offsets for part in range(parts)], piece
