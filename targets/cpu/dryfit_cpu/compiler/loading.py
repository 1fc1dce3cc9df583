"""From an object file to the address of its function in this process; both stay for the process's life.

On Linux, x86-64 and AArch64, dryfit's own linker does it. What that linker does not know, and other systems, LLVM
links: the results are the same, but LLVM's library then takes some 50 MB of the process's memory.
"""

from __future__ import annotations

import ctypes
import logging
import mmap
import os
import platform
import sys

from dryfit.errors import DryfitError
from dryfit_cpu.compiler.linker import CannotLinkError, lay_out, linked
from dryfit_cpu.compiler.relocations import AARCH64, INSTRUCTION_SETS, InstructionSet

EXTERNALS = frozenset({"memcpy", "memset", "memmove", "sched_yield", "SwitchToThread"})
"""What a kernel may call: functions that every process has."""

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
    from dryfit_cpu.compiler import machine

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
        raise CannotLinkError("The system has other object files", where="kernel loader", found=platform.platform())
    return found


def _function(name: str) -> int:
    """The address of a function that kernels may call."""
    if name not in EXTERNALS:
        raise DryfitError(
            "A kernel calls a function that it may not",
            where="kernel loader",
            found=name,
            allowed=", ".join(sorted(EXTERNALS)),
        )
    return ctypes.cast(ctypes.CDLL(None)[name], ctypes.c_void_p).value or 0


def _make_executable(base: int, size: int, instructions: InstructionSet) -> None:
    if instructions is AARCH64:
        _forget_instructions(base, size)
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    if protect(base, size, mmap.PROT_READ | mmap.PROT_EXEC):
        raise DryfitError(
            "The system does not let this process execute the machine code of kernels",
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
        raise CannotLinkError("Instructions cannot be replaced", where="kernel loader", found=str(error)) from error
    clear(ctypes.c_void_p(base), ctypes.c_void_p(base + size))
