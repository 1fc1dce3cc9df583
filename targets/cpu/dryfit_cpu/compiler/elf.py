"""Relocatable ELF objects of 64 bits, little endian: what LLVM writes on Linux, read without LLVM.

Nothing in a file is trusted: each number is checked against what it counts or points into.

Source: System V Application Binary Interface, chapters 4 and 5, with the sizes of ELF-64.

What a linker writes where code names a place is one small function for each kind of relocation that kernels have. They
are made position independent, so that there are few kinds: distances within one image. Others are not known here on
purpose; LLVM links what has them.

Source: System V Application Binary Interface, AMD64 supplement, table 4.9; ELF for the Arm 64-bit Architecture,
section 5.7.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from dryfit.attrs_classes import frozen
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


@frozen(eq=False)
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


@frozen(eq=False)
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
        "Machine code cannot be loaded: its object file is corrupt",
        where="kernel loader",
        found=found,
        remedy="Delete the folder of compiled kernels; they will be recompiled",
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


Patch = Callable[[int, int, int], int]
"""(the 32-bit word that stands there, its address, the address that it names) to the word that belongs there."""

PATCH_BYTES = 4
"""Bytes that any of the patches changes."""
STUB_BYTES = 16


@frozen(eq=False)
class InstructionSet:
    """How one instruction set is linked.

    Attributes:
        number: in the header of ELF.
        patches: kind of relocation to what it does.
        calls: kinds that may go through a stub, where the function is too far away.
        stub: machine code of 8 bytes that jumps to the address in the 8 bytes behind it.
    """

    number: int
    patches: Mapping[int, Patch]
    calls: frozenset[int]
    stub: bytes


def _signed(value: int, bits: int) -> int:
    """A value in two's complement."""
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise damaged(f"a distance of {value}, which does not fit in {bits} bits")
    return value & (1 << bits) - 1


def _relative(_word: int, place: int, target: int) -> int:
    return _signed(target - place, 32)


def _branch(word: int, place: int, target: int) -> int:
    """A jump or call on AArch64: 26 bits, of whole instructions."""
    if (target - place) % 4:
        raise damaged(f"a jump of {target - place} bytes")
    return word & ~0x03FFFFFF | _signed(target - place >> 2, 26)


def _page(word: int, place: int, target: int) -> int:
    """`adrp`: the distance in pages of 4 KiB, its two lowest bits apart from the others."""
    pages = _signed((target >> 12) - (place >> 12), 21)
    return word & ~0x60FFFFE0 | (pages & 3) << 29 | pages >> 2 << 5


def _in_page(scale: int) -> Patch:
    """`add`, or a load or store of `1 << scale` bytes: the place in the page, in units of what is loaded."""

    def patch(word: int, _place: int, target: int) -> int:
        within = target & 0xFFF
        if within % (1 << scale):
            raise damaged(f"a load of {1 << scale} bytes at byte {within} of a page")
        return word & ~0x003FFC00 | within >> scale << 10

    return patch


X86_64 = InstructionSet(
    number=62,
    patches={2: _relative, 4: _relative},  # PC32, PLT32
    calls=frozenset({4}),
    stub=bytes.fromhex("ff2502000000 6690"),  # jmp [rip + 2]; two bytes without effect
)
AARCH64 = InstructionSet(
    number=183,
    patches={
        275: _page,  # ADR_PREL_PG_HI21
        277: _in_page(0),  # ADD_ABS_LO12_NC
        278: _in_page(0),  # LDST8_ABS_LO12_NC
        282: _branch,  # JUMP26
        283: _branch,  # CALL26
        284: _in_page(1),  # LDST16_ABS_LO12_NC
        285: _in_page(2),  # LDST32_ABS_LO12_NC
        286: _in_page(3),  # LDST64_ABS_LO12_NC
        299: _in_page(4),  # LDST128_ABS_LO12_NC
    },
    calls=frozenset({282, 283}),
    stub=bytes.fromhex("50000058 00021fd6"),  # ldr x16, 8 bytes ahead; br x16
)
EXTERNALS = frozenset({"memcpy", "memset", "memmove", "sched_yield", "SwitchToThread"})
"""What a kernel may call: functions that every process has."""

INSTRUCTION_SETS = {"x86_64": X86_64, "aarch64": AARCH64}
"""By the name that Linux has for the machine."""
