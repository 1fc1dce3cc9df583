"""What Numba hands over: one optimized module, of which nothing was made executable."""

from __future__ import annotations

import gc
import re

from numba.core.registry import cpu_target

from dryfit_cpu.compiler import compilation


def defined(llvm_ir: str) -> list[str]:
    return re.findall(r"^define .*?@\"?([\w.$]+)\"?\(", llvm_ir, re.MULTILINE)


def test_a_module_holds_a_function_its_wrapper_and_what_stays_outside():
    symbol, _, llvm_ir = compilation._translate("dispatch", "lead")
    names = defined(llvm_ir)
    assert symbol in names
    assert len(names) == 2, f"what is inlined leaves no function of its own: {names}"


def test_a_function_that_stays_is_there_once():
    _, _, llvm_ir = compilation._translate("pointwise", "pointwise")
    assert sum("rare_activation" in name for name in defined(llvm_ir)) == 1


def test_the_module_calls_neither_python_nor_reference_counting():
    _, _, llvm_ir = compilation._translate("pointwise", "pointwise")
    called = re.findall(r"^declare .*?@\"?([\w.$]+)\"?\(", llvm_ir, re.MULTILINE)
    assert all(name.startswith("llvm.") or name in {"memcpy", "memset"} for name in called), called


def test_nothing_becomes_executable_in_numba():
    compilation._translate("dispatch", "follow")
    engine = cpu_target.target_context.codegen()._engine
    assert not [name for name in engine._defined_symbols if "dryfit" in name]


def test_garbage_is_collected_again_after_compiling():
    compilation.compile_function("dispatch", "follow")
    assert gc.isenabled()
