"""LLVM on this machine: from a module's text to an object file; and from an object file to addresses, where LLVM links.

A process whose kernels are all in the cache does not import this: see `loading`.
"""

from __future__ import annotations

import functools
import platform
import re
import sys
from typing import Any

import llvmlite.binding as llvm

from dryfit.errors import DryfitError
from dryfit.forking import ForkSafeLock
from dryfit_cpu.compiler.elf import EXTERNALS, INSTRUCTION_SETS
from dryfit_cpu.compiler.tier import current_tier, feature_string, host_features, is_arm, is_x86, this_processor

_LOCK = ForkSafeLock()
_IS_LINKED_HERE = sys.platform == "linux" and platform.machine() in INSTRUCTION_SETS
_CODE_MODEL = (
    {"reloc": "pic", "codemodel": "small"} if _IS_LINKED_HERE else {"reloc": "default", "codemodel": "jitdefault"}
)
"""Where dryfit links by itself, code names places by their distance: it is shorter, and needs few kinds of relocation.
LLVM's linker wants code that reaches everywhere."""


@functools.cache
def target_machine() -> Any:
    """The target machine of the current tier."""
    _initialize()
    cpu, features = cpu_and_features()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    return target.create_target_machine(cpu=cpu, features=features, opt=3, jit=True, **_CODE_MODEL)


_SCHEDULED_AS = dict.fromkeys(("sapphirerapids", "emeraldrapids", "graniterapids", "graniterapids-d"), "icelake-server")
"""Processors that code is not scheduled for, and what it is scheduled for instead; its instructions are theirs.

By its model of these LLVM 22 loads weights of the integer register block so early that the sums do not fit registers
any more: a turn takes 157 instructions, 64 of them with the stack, in the place of 99 and none.
"""


def cpu_and_features() -> tuple[str, str]:
    """The CPU that code of the current tier is made for, and which features it has or lacks, in LLVM's words."""
    tier = current_tier()
    if is_arm():
        return "generic", feature_string(dict.fromkeys(("neon", *tier.required), True))
    if tier.cpu and is_x86():
        return tier.cpu, ""
    # A tier that does without byte products must not be given them.
    hidden = () if tier.has_byte_products else ("avx512vnni", "avxvnni")
    features = {name: has and name not in hidden for name, has in host_features().items()}
    cpu = this_processor().cpu
    return _SCHEDULED_AS.get(cpu, cpu), feature_string(features)


def object_file(llvm_ir: str) -> bytes:
    """Machine code for a module.

    Raises:
        DryfitError: the module calls a function that is not known to be in every process; linking it would end
            the process.
    """
    for name in re.findall(r"^declare .*?@\"?([\w.$]+)\"?\(", llvm_ir, re.MULTILINE):
        if not name.startswith("llvm.") and name not in EXTERNALS:
            raise DryfitError(
                "A kernel calls an external function that is not allowed",
                where="kernel compiler",
                found=name,
                allowed=", ".join(sorted(EXTERNALS)),
                remedy="Call only the allowed functions in native code",
            )
    return bytes(target_machine().emit_object(_verified(llvm_ir)))


def assembly(llvm_ir: str) -> str:
    """The machine code of a module as text, in the assembler's own words: for tests of what LLVM made of a loop."""
    return str(target_machine().emit_assembly(_verified(llvm_ir)))


def _verified(llvm_ir: str) -> Any:
    module = llvm.parse_assembly(llvm_ir)
    module.verify()
    return module


def load(code: bytes, symbol: str) -> int:
    """The address of a function in an object file; it stays for the life of the process."""
    with _LOCK:
        engine = _engine()
        engine.add_object_file(llvm.object_file.ObjectFileRef.from_data(code))
        engine.finalize_object()
        return int(engine.get_function_address(symbol))


@functools.cache
def _initialize() -> None:
    for start in (llvm.initialize_native_target, llvm.initialize_native_asmprinter):
        start()


@functools.cache
def _engine() -> Any:
    machine = target_machine()
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
