"""What a linker writes where code names a place: one small function for each kind of relocation that kernels have.

Kernels are made position independent, so that there are few kinds: distances within one image. Others are not known
here on purpose; LLVM links what has them.

Source: System V Application Binary Interface, AMD64 supplement, table 4.9; ELF for the Arm 64-bit Architecture,
section 5.7.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from dryfit_cpu.compiler.elf import damaged

Patch = Callable[[int, int, int], int]
"""(the 32-bit word that stands there, its address, the address that it names) to the word that belongs there."""

PATCH_BYTES = 4
"""Bytes that any of the patches changes."""
STUB_BYTES = 16


@attrs.frozen(eq=False)
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
        raise damaged(f"a distance of {value}, which {bits} bits do not hold")
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
            raise damaged(f"a load of {1 << scale} bytes at {within} of a page")
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
INSTRUCTION_SETS = {"x86_64": X86_64, "aarch64": AARCH64}
"""By the name that Linux has for the machine."""
