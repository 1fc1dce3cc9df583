"""The page of tensor formats and of the reasons for copies between them; published as `tensor-formats.md`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from docs.pages.rules import rule_section

from dryfit.builder.formats.forms import FORBIDDEN_COPIES, REFORMAT_RULES
from dryfit.network.data_types import DataType
from dryfit.plugins import registry
from dryfit.target.formats import TensorFormat
from dryfit.target.target import Target

HEAD = """# Tensor formats

`make docs` writes this page from the formats' descriptions, which also define extents, strides, sizes, `pack` and
`unpack`.

The memory of a tensor is a C-contiguous array with these axes. `N` stands for everything before the channels, `C` for
channels, `H` and `W` (after `D`, if any) for space. `up(x, n)` is `x` rounded up to a multiple of `n`, `ceil(x / n)`
the quotient rounded up, and `size` the bytes per element. `pack` writes zeros as padding; `unpack` never reads it.

`context.get_strides(name)` returns the strides along N, C, H and W in elements, or in vectors of elements for formats
whose last axis is a vector of channels. `tensor.allowed_formats` says which formats an input or output of a network may
have, by name, as members of `TensorFormat`, or as TensorRT's bit mask `1 << int(TensorFormat.CHW16)`. On the command
line, use `--input-io-formats fp16:chw16`, where `chw` stands for LINEAR.
"""

REFORMATS = """## Copies between formats

Formats are chosen to move the fewest bytes over the whole network: the bytes of the copies, and those that a device
moves internally when it reads or writes a format other than its native one, the first of its table above. One copy
serves all readers of the tensor in that format. A format that only some layer kinds read, such as DLA_HWC4, is read
directly (inferred: the guide calls it the native image format). A conversion of type inside a loadable is not a copy.
Each copy cites one of these rules as its reason; `dryfit explain` shows which input or output format would avoid it.
"""

FORBIDDEN = """## Forbidden copies

If no choice of formats avoids such a copy, the build fails, and `dryfit check` reports it.
"""


def formats_page() -> str:
    """The page."""
    parts = [HEAD]
    for target in registry.targets().values():
        parts += [f"## {target.device}\n", *_tables(target)]
    parts += [REFORMATS, *map(rule_section, REFORMAT_RULES.values())]
    parts += [FORBIDDEN, *map(rule_section, FORBIDDEN_COPIES.values())]
    return "\n".join(parts)


def _tables(target: Target) -> Iterable[str]:
    sides = {"read": target.input_formats, "written": target.output_formats}
    formats = {one: None for table in sides.values() for some in table.values() for one in some}
    yield "| format | array | read as | written as | only for |\n|---|---|---|---|---|"
    for one in formats:
        types = [_types([dtype for dtype, some in table.items() if one in some]) for table in sides.values()]
        yield f"| {one.name} | `{array_words(one)}` | {types[0]} | {types[1]} | {_restrictions(one) or 'anything'} |"
    yield ""
    sources = dict.fromkeys(one.source for one in formats if one.source)
    yield "".join(f"Source: {source}.\n" for source in sources)


def _types(types: Sequence[DataType]) -> str:
    if all(dtype in types for dtype in DataType if dtype.is_device_type):
        return "any type"
    return ", ".join(dtype.text for dtype in types) or "never"


def array_words(one: TensorFormat) -> str:
    """The axes of a format's memory, such as `[N][ceil(C / 16)][H][W][16]`."""
    if one.is_plain:
        return "as the tensor"
    space = ["D", "H", "W"][-one.spatial_axes :]
    vector = one.channels_vector
    if one.channels_last:
        channels, width = "", "C" if vector == 1 else "C'" if one.padded_channels else f"up(C, {vector})"
    else:
        channels, width = (f"ceil(C / {vector})", str(vector)) if one.has_vectors else ("C", "")
    if one.line_alignment_bytes:
        lengths = " or ".join(f"{count} on {family}" if family else str(count) for family, count in _lines(one))
        space[-1] = f"up(W, ({lengths}) / {width} / size)" if width else f"up(W, {lengths} / size)"
    rows, columns = (space[:-1], space[-1:]) if one.rows_first else ([], space)
    return "".join(f"[{axis}]" for axis in ["N", *rows, channels, *columns, width] if axis)


def _lines(one: TensorFormat) -> Sequence[tuple[str, int]]:
    """Families and their alignments; "" is for all families where none is named."""
    named = sorted((family, count) for family, count in one.line_alignment_bytes.items() if family)
    return named or list(one.line_alignment_bytes.items())


def _restrictions(one: TensorFormat) -> str:
    words = []
    if one.channel_counts:
        padded = {
            count: one.padded_channels.get(count, -(-count // one.channels_vector) * one.channels_vector)
            for count in one.channel_counts
        }
        words.append("C of " + ", ".join(f"{count} (C' {inner})" for count, inner in padded.items()))
    if one.reader_kinds:
        words.append(f"a first {' or '.join(sorted(one.reader_kinds))}")
    return "; ".join(words)
