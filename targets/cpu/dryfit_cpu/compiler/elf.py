"""Relocatable ELF objects of 64 bits, little endian: what LLVM writes on Linux, read without LLVM.

Nothing in a file is trusted: each number is checked against what it counts or points into.

Source: System V Application Binary Interface, chapters 4 and 5, with the sizes of ELF-64.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from dryfit.errors import DryfitError

UNDEFINED = 0
"""Section of a symbol that the object does not define."""
PROGBITS, SYMBOL_TABLE, RELOCATIONS, NOBITS, RELOCATIONS_WITHOUT_ADDEND = 1, 2, 4, 8, 9
"""Kinds of sections."""
WRITABLE, LOADED, EXECUTABLE, THREAD_LOCAL = 0x1, 0x2, 0x4, 0x400
"""Flags of sections."""

_IDENTITY = b"\x7fELF\x02\x01\x01"
_RELOCATABLE = 1
_HEADER = struct.Struct("<16xHH20xQ10xHHH")
_SECTION = struct.Struct("<IIQ8xQQIIQ8x")
_SYMBOL = struct.Struct("<I2xHQ8x")
_RELOCATION = struct.Struct("<QIIq")


@attrs.frozen(eq=False)
class Section:
    """One section: its header's fields, and its bytes; none where it has no place in the file."""

    name: str
    kind: int
    flags: int
    contents: memoryview
    alignment: int
    link: int
    info: int


@attrs.frozen
class Symbol:
    """A name for a place: so many bytes into a section, which is given by its index."""

    name: str
    section: int
    offset: int


@attrs.frozen
class Relocation:
    """A place in a section that depends on where a symbol will lie."""

    section: int
    offset: int
    kind: int
    symbol: Symbol
    addend: int


@attrs.frozen(eq=False)
class ObjectFile:
    """What a linker needs of an object.

    Attributes:
        machine: ELF's number of the instruction set.
        sections: all, by index.
        symbols: all, by index.
        relocations: those with addends.
    """

    machine: int
    sections: Sequence[Section]
    symbols: Sequence[Symbol]
    relocations: Sequence[Relocation]


def is_elf(code: bytes) -> bool:
    """Whether this is ELF of the only class and byte order that are read here."""
    return code.startswith(_IDENTITY)


def read_object(code: bytes) -> ObjectFile:
    """The parts of an object file that begins as `is_elf` wants it.

    Raises:
        DryfitError: it is no relocatable object, or something in it points outside.
    """
    data = memoryview(code)
    kind, machine, table, size, count, names = _HEADER.unpack(_cut(data, 0, _HEADER.size, "header"))
    if kind != _RELOCATABLE or size != _SECTION.size or not names < count:
        raise damaged(f"kind {kind}, section headers of {size} bytes, {names} of {count} has their names")
    headers = list(_SECTION.iter_unpack(_cut(data, table, count * size, "section headers")))
    contents = [
        _cut(data, offset, 0 if kind == NOBITS else size, f"section {index}")
        for index, (_, kind, _, offset, size, *_) in enumerate(headers)
    ]
    sections = [
        Section(_text(bytes(contents[names]), name), kind, flags, held, alignment, link, info)
        for (name, kind, flags, _, _, link, info, alignment), held in zip(headers, contents, strict=True)
    ]
    tables = [index for index, section in enumerate(sections) if section.kind == SYMBOL_TABLE]
    if len(tables) != 1:
        raise damaged(f"{len(tables)} tables of symbols")
    symbols = list(_symbols(sections, tables[0]))
    return ObjectFile(machine, sections, symbols, list(_relocations(sections, symbols, tables[0])))


def damaged(found: str) -> DryfitError:
    """The error for an object in which something is wrong."""
    return DryfitError(
        "Machine code cannot be loaded: its object file is damaged",
        where="kernel loader",
        found=found,
        remedy="Empty the folder of compiled kernels; they are compiled again",
    )


def _cut(data: memoryview, start: int, size: int, what: str) -> memoryview:
    if start + size > len(data):
        raise damaged(f"{what} at bytes {start} to {start + size} of {len(data)}")
    return data[start : start + size]


def _text(names: bytes, offset: int) -> str:
    """A name of a table of names: up to the next zero."""
    end = names.find(b"\0", offset)
    if end < 0:
        raise damaged(f"a name at byte {offset} of {len(names)}")
    return names[offset:end].decode("utf-8", "replace")


def _rows(layout: struct.Struct, section: Section) -> Iterator[tuple[Any, ...]]:
    if len(section.contents) % layout.size:
        raise damaged(f"section {section.name} of {len(section.contents)} bytes, rows of {layout.size}")
    return layout.iter_unpack(section.contents)


def _symbols(sections: Sequence[Section], table: int) -> Iterator[Symbol]:
    if not sections[table].link < len(sections):
        raise damaged(f"names of symbols in section {sections[table].link} of {len(sections)}")
    names = bytes(sections[sections[table].link].contents)
    for name, section, offset in _rows(_SYMBOL, sections[table]):
        yield Symbol(_text(names, name), section, offset)


def _relocations(sections: Sequence[Section], symbols: Sequence[Symbol], table: int) -> Iterator[Relocation]:
    for section in sections:
        if section.kind != RELOCATIONS:
            continue
        if section.link != table or not section.info < len(sections):
            raise damaged(f"relocations of section {section.info} of {len(sections)} with symbols of {section.link}")
        for offset, kind, symbol, addend in _rows(_RELOCATION, section):
            if not symbol < len(symbols):
                raise damaged(f"relocation by symbol {symbol} of {len(symbols)}")
            yield Relocation(section.info, offset, kind, symbols[symbol], addend)
