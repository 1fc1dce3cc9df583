"""From an object file to the address of its function in this process; both stay for the process's life.

On Linux, x86-64 and AArch64, dryfit's own linker does it. What that linker does not know, and other systems, LLVM
links: the results are the same, but LLVM's library then takes some 50 MB of the process's memory.

Linking makes one image of an object file's sections, in which all that depends on its place is set. What kernels need
of a linker is a page of Python: code, constants, calls between them, and calls of a few functions that every process
has.
"""

from __future__ import annotations

import ctypes
import logging
import mmap
import os
import platform
import sys
from collections.abc import Mapping, Sequence

from dryfit.attrs_classes import frozen
from dryfit.errors import DryfitError
from dryfit_cpu.compiler import elf
from dryfit_cpu.compiler.elf import (
    AARCH64,
    EXTERNALS,
    INSTRUCTION_SETS,
    PATCH_BYTES,
    STUB_BYTES,
    InstructionSet,
    ObjectFile,
    Relocation,
    Section,
    damaged,
)

LARGEST_ALIGNMENT = 4096
"""Bytes of a page, to which images are aligned at least."""


class CannotLinkError(DryfitError):
    """The object has something that this linker does not know, though another may."""


@frozen(eq=False)
class MemoryImage:
    """An object file with a place for everything.

    Attributes:
        parts: the object.
        instructions: its instruction set.
        places: index of each section that is loaded to where it begins, in bytes from the image's beginning.
        stubs: name of each function outside to where the jump to it stands.
        size: of the image in bytes.
    """

    parts: ObjectFile
    instructions: InstructionSet
    places: Mapping[int, int]
    stubs: Mapping[str, int]
    size: int

    def offset_of(self, name: str) -> int:
        """Where a function of the object begins, in bytes from the image's beginning.

        Raises:
            DryfitError: the object has no such function.
        """
        for symbol in self.parts.symbols:
            if symbol.name == name and symbol.section in self.places:
                section = self.parts.sections[symbol.section]
                if section.flags & elf.EXECUTABLE and symbol.offset < len(section.contents):
                    return self.places[symbol.section] + symbol.offset
        raise damaged(f"no function {name}")


def lay_out(code: bytes, instructions: InstructionSet) -> MemoryImage:
    """Read an object file and give everything its place.

    Raises:
        CannotLinkError: the object is of another format or machine, or has a kind of section or relocation that kernels
            on Linux do not have.
        DryfitError: it is damaged.
    """
    if not elf.is_elf(code):
        raise _unknown("a format other than 64-bit little-endian ELF")
    parts = elf.read_object(code)
    if parts.machine != instructions.number:
        raise _unknown(f"code for machine {parts.machine}")
    places: dict[int, int] = {}
    size = 0
    for index, section in enumerate(parts.sections):
        if _is_loaded(section):
            size += -size % _alignment(section)
            places[index] = size
            size += len(section.contents)
    stubs: dict[str, int] = {}
    size += -size % STUB_BYTES
    for relocation in _relocations(parts, places):
        _check(relocation, parts.sections[relocation.section], instructions)
        if relocation.symbol.section == elf.UNDEFINED and relocation.symbol.name not in stubs:
            stubs[relocation.symbol.name] = size
            size += STUB_BYTES
    return MemoryImage(parts, instructions, places, stubs, size)


def linked(image: MemoryImage, base: int, functions: Mapping[str, int]) -> bytes:
    """The image's bytes, for one address in memory.

    Args:
        image: what `lay_out` gave.
        base: the address, a multiple of `LARGEST_ALIGNMENT`.
        functions: address of every function in `image.stubs`.

    Raises:
        DryfitError: the object is damaged.
    """
    memory = bytearray(image.size)
    for index, place in image.places.items():
        contents = image.parts.sections[index].contents
        memory[place : place + len(contents)] = contents
    for name, place in image.stubs.items():
        memory[place : place + STUB_BYTES] = image.instructions.stub + functions[name].to_bytes(8, "little")
    for relocation in _relocations(image.parts, image.places):
        place = image.places[relocation.section] + relocation.offset
        target = _target(image, relocation) + relocation.addend
        word = int.from_bytes(memory[place : place + PATCH_BYTES], "little")
        word = image.instructions.patches[relocation.kind](word, base + place, base + target)
        memory[place : place + PATCH_BYTES] = word.to_bytes(PATCH_BYTES, "little")
    return bytes(memory)


def _is_loaded(section: Section) -> bool:
    """Whether it belongs to the image. Tables for unwinding do not: nothing is thrown through kernels."""
    if not section.flags & elf.LOADED or section.name == ".eh_frame":
        return False
    if section.kind != elf.PROGBITS or section.flags & (elf.WRITABLE | elf.THREAD_LOCAL):
        raise _unknown(f"section {section.name} of kind {section.kind} with flags {section.flags:#x}")
    return True


def _alignment(section: Section) -> int:
    alignment = max(1, section.alignment)
    if alignment & alignment - 1 or alignment > LARGEST_ALIGNMENT:
        raise damaged(f"section {section.name} at multiples of {alignment}")
    return alignment


def _relocations(parts: ObjectFile, places: Mapping[int, int]) -> Sequence[Relocation]:
    if any(one.kind == elf.RELOCATIONS_WITHOUT_ADDEND and one.info in places for one in parts.sections):
        raise _unknown("relocations without addends")
    return [relocation for relocation in parts.relocations if relocation.section in places]


def _check(relocation: Relocation, section: Section, instructions: InstructionSet) -> None:
    """Refuse a relocation of an unknown kind, outside its section, or to a place that no image has."""
    symbol = relocation.symbol
    if relocation.kind not in instructions.patches:
        raise _unknown(f"relocation of kind {relocation.kind}")
    if relocation.offset + PATCH_BYTES > len(section.contents):
        raise damaged(f"a relocation at byte {relocation.offset} of {len(section.contents)} of {section.name}")
    if symbol.section == elf.UNDEFINED and relocation.kind not in instructions.calls:
        raise _unknown(f"{symbol.name}, which is external data")


def _target(image: MemoryImage, relocation: Relocation) -> int:
    """Where a relocation's symbol is, in bytes from the image's beginning."""
    symbol = relocation.symbol
    if symbol.section == elf.UNDEFINED:
        return image.stubs[symbol.name]
    if symbol.section not in image.places:
        raise damaged(f"symbol {symbol.name} in section {symbol.section}, which is not loaded")
    if symbol.offset > len(image.parts.sections[symbol.section].contents):
        raise damaged(f"symbol {symbol.name} at byte {symbol.offset} of its section")
    return image.places[symbol.section] + symbol.offset


def _unknown(found: str) -> CannotLinkError:
    return CannotLinkError(
        "The object file has a feature that this linker does not support", where="kernel loader", found=found
    )


_LOG = logging.getLogger("dryfit.cpu")
_images: list[mmap.mmap] = []
"""What must not be unmapped while the process lives."""


def load(code: bytes, symbol: str) -> int:
    """The address of a function in an object file.

    Raises:
        DryfitError: the object is damaged, calls what it may not, or the system does not let the process execute it.
    """
    try:
        return link(code, symbol)
    except CannotLinkError as reason:
        _LOG.debug("%s is linked by LLVM: %s", symbol, reason)
    from dryfit_cpu.compiler import machine  # it loads LLVM, which a process with kept kernels does without

    return machine.load(code, symbol)


def link(code: bytes, symbol: str) -> int:
    """The same without LLVM.

    Raises:
        CannotLinkError: the object, or the system, is one that dryfit's own linker does not know.
        DryfitError: see `load`.
    """
    instructions = _instructions()
    image = lay_out(code, instructions)
    functions = {name: _function(name) for name in image.stubs}
    offset = image.offset_of(symbol)
    # Pages are written to first and executed then, never both at once.
    memory = mmap.mmap(-1, image.size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_WRITE)
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    memory[:] = linked(image, base, functions)
    _make_executable(base, image.size, instructions)
    _images.append(memory)
    return base + offset


def _instructions() -> InstructionSet:
    found = INSTRUCTION_SETS.get(platform.machine()) if sys.platform == "linux" else None
    if found is None:
        raise CannotLinkError(
            "Object files of this system are not supported", where="kernel loader", found=platform.platform()
        )
    return found


def _function(name: str) -> int:
    """The address of a function that kernels may call."""
    if name not in EXTERNALS:
        raise DryfitError(
            "A kernel calls an external function that is not allowed",
            where="kernel loader",
            found=name,
            allowed=", ".join(sorted(EXTERNALS)),
            remedy="Call only the allowed functions in native code",
        )
    return ctypes.cast(ctypes.CDLL(None)[name], ctypes.c_void_p).value or 0


def _make_executable(base: int, size: int, instructions: InstructionSet) -> None:
    if instructions is AARCH64:
        _forget_instructions(base, size)
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    if protect(base, size, mmap.PROT_READ | mmap.PROT_EXEC):
        raise DryfitError(
            "The system does not allow this process to execute compiled kernels",
            where="kernel loader",
            found=os.strerror(ctypes.get_errno()),
            remedy="Allow it in the settings of SELinux (execmem), systemd (MemoryDenyWriteExecute) or the container",
        )


def _forget_instructions(base: int, size: int) -> None:
    """Make the processor read again what it may have fetched from there as instructions; x86 sees by itself.

    Raises:
        CannotLinkError: the compiler's runtime library, which knows how, is not there.
    """
    try:
        clear = ctypes.CDLL("libgcc_s.so.1")["__clear_cache"]
    except (OSError, AttributeError) as error:
        raise CannotLinkError(
            "The instruction cache cannot be flushed", where="kernel loader", found=str(error)
        ) from error
    clear(ctypes.c_void_p(base), ctypes.c_void_p(base + size))
