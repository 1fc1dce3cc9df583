"""The linker of kernels: what it links computes what LLVM's linker makes of it, and nothing damaged gets through."""

from __future__ import annotations

import ctypes
import functools
import platform
import struct
import sys
from pathlib import Path

import llvmlite.binding as llvm
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dryfit.errors import DryfitError
from dryfit_cpu.compiler import elf, loading, machine
from dryfit_cpu.compiler.elf import AARCH64, INSTRUCTION_SETS, STUB_BYTES, X86_64
from dryfit_cpu.compiler.loading import CannotLinkError, lay_out, linked

MODULE = """
target triple = "{triple}"
@table = internal constant [4 x i64] [i64 3, i64 -5, i64 1000000007, i64 {last}]
declare i8* @memset(i8*, i32, i64)
declare i32 @sched_yield()
define internal i64 @entry_of(i64 %index) noinline {{
  %place = getelementptr [4 x i64], [4 x i64]* @table, i64 0, i64 %index
  %value = load i64, i64* %place
  ret i64 %value
}}
define i64 @kernel(i64 %index, i64 %buffer, i64 %bytes) {{
  %pointer = inttoptr i64 %buffer to i8*
  %filled = call i8* @memset(i8* %pointer, i32 7, i64 %bytes)
  %given = call i32 @sched_yield()
  %entry = call i64 @entry_of(i64 %index)
  %more = call i64 @entry_of(i64 3)
  %sum = add i64 %entry, %more
  ret i64 %sum
}}
"""
"""Constants, a call inside, calls outside."""

on_linux = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in INSTRUCTION_SETS,
    reason="kernels are linked by LLVM on this system",
)


@functools.cache
def object_for(architecture: str, last: int = 42) -> bytes:
    """An object of the module, made as kernels are."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    triple = f"{architecture}-unknown-linux-gnu"
    target = llvm.Target.from_triple(triple).create_target_machine(opt=2, reloc="pic", codemodel="small", jit=True)
    return bytes(target.emit_object(llvm.parse_assembly(MODULE.format(triple=triple, last=last))))


def here() -> bytes:
    return object_for(platform.machine())


def call(address: int, index: int) -> tuple[int, bytes]:
    """What the kernel returns, and the memory that it filled."""
    buffer = ctypes.create_string_buffer(16)
    kernel = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(address)
    return kernel(index, ctypes.addressof(buffer), 9), buffer.raw


@on_linux
@pytest.mark.parametrize(("index", "expected"), [(0, 45), (1, 37), (2, 1000000049), (3, 84)])
def test_linked_code_reads_its_constants_and_calls_inside_and_outside(index, expected):
    assert call(loading.link(here(), "kernel"), index) == (expected, b"\7" * 9 + b"\0" * 7)


@on_linux
def test_llvm_and_we_link_to_the_same_results():
    ours, theirs = loading.link(here(), "kernel"), machine.load(here(), "kernel")
    assert [call(ours, index) for index in range(4)] == [call(theirs, index) for index in range(4)]


@on_linux
def test_code_can_be_executed_but_not_written_to():
    address = loading.link(here(), "kernel")
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, rights, *_ = line.split()
        start, end = (int(text, 16) for text in span.split("-"))
        if start <= address < end:
            assert rights == "r-xp"
            return
    pytest.fail("the code is nowhere")


@on_linux
def test_what_we_cannot_link_llvm_links(monkeypatch):
    monkeypatch.setattr(loading, "INSTRUCTION_SETS", {})
    with pytest.raises(CannotLinkError):
        loading.link(here(), "kernel")
    assert call(loading.load(here(), "kernel"), 2)[0] == 1000000049


@on_linux
def test_a_call_of_another_function_than_kernels_may_call_is_refused_by_name():
    code = here().replace(b"sched_yield", b"system_call")
    with pytest.raises(DryfitError, match="system_call") as caught:
        loading.link(code, "kernel")
    assert not isinstance(caught.value, CannotLinkError)


def test_a_function_that_the_object_lacks_is_named():
    with pytest.raises(DryfitError, match="colonel"):
        lay_out(object_for("x86_64"), X86_64).offset_of("colonel")


def test_constants_are_no_function():
    image = lay_out(object_for("x86_64"), X86_64)
    with pytest.raises(DryfitError, match="corrupt"):
        image.offset_of("table")


# Other objects --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [b"", b"\xcf\xfa\xed\xfe" + bytes(100), b"\x7fELF\x01\x01\x01" + bytes(100)])
def test_another_format_is_left_to_llvm(code):
    with pytest.raises(CannotLinkError, match="format other than 64-bit little-endian ELF"):
        lay_out(code, X86_64)


def test_code_for_another_machine_is_refused():
    with pytest.raises(CannotLinkError, match="machine 183"):
        lay_out(object_for("aarch64"), X86_64)


def test_an_unknown_relocation_is_left_to_llvm():
    code = bytearray(object_for("x86_64"))
    place = place_of_section(code, ".rela.text") + 8
    struct.pack_into("<I", code, place, 9)
    with pytest.raises(CannotLinkError, match="relocation of kind 9"):
        lay_out(bytes(code), X86_64)


def test_data_that_is_written_to_is_left_to_llvm():
    code = bytearray(object_for("x86_64"))
    index = [section.name for section in elf.read_object(bytes(code)).sections].index(".text")
    struct.pack_into("<Q", code, section_headers(code) + 64 * index + 8, elf.LOADED | elf.WRITABLE)
    with pytest.raises(CannotLinkError, match=r"section \.text"):
        lay_out(bytes(code), X86_64)


# Damaged objects ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("architecture", ["x86_64", "aarch64"])
@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_a_damaged_object_is_refused_or_linked_within_its_bounds(architecture, data):
    code = bytearray(object_for(architecture))
    if data.draw(st.booleans(), "truncate"):
        del code[data.draw(st.integers(0, len(code) - 1), "length") :]
    for _ in range(data.draw(st.integers(0, 4), "changes") if code else 0):
        # Most of what can go wrong stands in the header and in the tables at the end.
        place = data.draw(st.one_of(st.integers(0, len(code) - 1), st.integers(0, min(63, len(code) - 1))), "place")
        code[place] = data.draw(st.integers(0, 255), "byte")
    instructions = INSTRUCTION_SETS[architecture]
    try:
        image = lay_out(bytes(code), instructions)
        contents = linked(image, 0x7F0000000000, dict.fromkeys(image.stubs, 0x1234))
    except DryfitError:
        return
    assert len(contents) == image.size < 2 * len(code) + 3 * 4096


def test_every_truncation_is_refused():
    code = object_for("x86_64")
    for length in range(len(code)):
        with pytest.raises(DryfitError):
            lay_out(code[:length], X86_64)


def test_a_place_beyond_its_section_is_refused():
    code = bytearray(object_for("x86_64"))
    sections = elf.read_object(bytes(code)).sections
    size = next(len(section.contents) for section in sections if section.name == ".text")
    struct.pack_into("<Q", code, place_of_section(code, ".rela.text"), size - 3)
    with pytest.raises(DryfitError, match=f"byte {size - 3} of {size}"):
        lay_out(bytes(code), X86_64)


def test_a_symbol_that_does_not_exist_is_refused():
    code = bytearray(object_for("x86_64"))
    struct.pack_into("<I", code, place_of_section(code, ".rela.text") + 12, 10_000)
    with pytest.raises(DryfitError, match="symbol 10000"):
        lay_out(bytes(code), X86_64)


def section_headers(code: bytearray) -> int:
    return int.from_bytes(code[40:48], "little")


def place_of_section(code: bytearray, name: str) -> int:
    """Where a section's contents begin in the file."""
    index = [section.name for section in elf.read_object(bytes(code)).sections].index(name)
    return int(struct.unpack_from("<Q", code, section_headers(code) + 64 * index + 24)[0])


# AArch64, read instruction by instruction -----------------------------------------------------------------------------


@pytest.mark.parametrize("base", [0x1000, 0x7F12_3456_7000])
def test_aarch64_code_names_the_places_that_it_means(base):
    image = lay_out(object_for("aarch64"), AARCH64)
    memory = linked(image, base, dict.fromkeys(image.stubs, 0x1122334455667788))
    named = set()
    for relocation in image.parts.relocations:
        if relocation.section not in image.places:
            continue
        place = image.places[relocation.section] + relocation.offset
        word = int.from_bytes(memory[place : place + 4], "little")
        symbol = relocation.symbol
        inside = image.places.get(symbol.section, 0) + symbol.offset + relocation.addend
        target = base + image.stubs.get(symbol.name, inside)
        named.add(relocation.kind)
        if relocation.kind == 283:
            assert base + place + 4 * signed(word, 26) == target
        elif relocation.kind == 275:
            distance = signed((word >> 5 & 0x7FFFF) << 2 | word >> 29 & 3, 21)
            assert (base + place >> 12) + distance == target >> 12
        else:
            assert relocation.kind == 277
            assert word >> 10 & 0xFFF == target & 0xFFF
    assert named == {275, 277, 283}
    for place in image.stubs.values():
        assert memory[place : place + STUB_BYTES] == AARCH64.stub + bytes.fromhex("8877665544332211")


def signed(word: int, bits: int) -> int:
    value = word & (1 << bits) - 1
    return value - (value >> bits - 1 << bits)
