"""How Numba hands over what it makes: a function's code and that of all it calls as one LLVM module, optimized once.

By default Numba makes each function ready to be called from Python: it optimizes the function alone, makes machine code
and a wrapper for it, and its caller, which it is inlined into, goes through all of that again. Nothing here is ever
called by Python. Of the 42 seconds of processor time that a first build of an INT8 ResNet-50 took on an AMD EPYC
(Zen 3), more than half went into that.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
from numba._dynfunc import make_function
from numba.core import codegen, compiler, typed_passes, untyped_passes
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.llvm_bindings import create_pass_builder
from numba.core.runtime.nrt import rtsys

from dryfit_cpu.compiler import machine
from dryfit_cpu.compiler.tier import is_x86


class CodeLibrary(codegen.JITCodeLibrary):  # type: ignore[misc]
    """The code of one function and of those that it calls, as LLVM's.

    Attributes:
        is_final: whether it is a native function's own, and so optimized: others become part of one.
    """

    is_final = False

    def _optimize_functions(self, ll_module: Any) -> None:
        """Leave it to the optimization of the whole."""
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        """Optimize a native function together with all that is inlined into it."""
        if not self.is_final:
            return
        full, options = self._codegen._module_pass_manager() if is_x86() else _passes_for_tier()
        for passes in (_inlining(), full, _without_errors()):
            passes.run(self._final_module, options)

    def _finalize_final_module(self) -> None:
        """Make nothing executable: the module's code is emitted by `machine`, for the current tier."""
        self._finalized = True

    def add_linking_library(self, library: Any) -> None:
        """Leave out Numba's reference counting, which every function brings along and none uses."""
        if library is not rtsys.library:
            super().add_linking_library(library)

    def get_pointer_to_function(self, name: str) -> int:  # noqa: ARG002  as Numba has it
        """No address: there is none. Makes the code complete, as Numba's does."""
        self._ensure_finalized()
        return 0


def _passes_for_tier() -> tuple[Any, Any]:
    """Numba's passes, for what the tier has: for the processor itself they would make vectors of any length (SVE)."""
    options = create_pass_builder(machine.target_machine(), opt=3, loop_vectorize=True)
    return options.getModulePassManager(), options


def _inlining() -> Any:
    """Passes that inline, and leave what LLVM's own order of passes expects: values in registers, no dead branches."""
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.add_sccp_pass()
    passes.add_simplify_cfg_pass()
    return passes


def _without_errors() -> Any:
    """Passes that find out that no error is ever returned, and remove what Numba's wrapper would do with one."""
    passes = llvm.create_new_module_pass_manager()
    passes.add_ipsccp_pass()
    passes.add_simplify_cfg_pass()
    passes.add_global_dead_code_eliminate_pass()
    passes.add_strip_dead_prototype_pass()
    return passes


@register_pass(mutates_CFG=True, analysis_only=False)
class Lowering(typed_passes.NativeLowering):  # type: ignore[misc]
    """Numba's pass that makes LLVM code, into a library of ours."""

    _name = "dryfit_lowering"

    def run_pass(self, state: Any) -> bool:
        """Make the code of a function. Only a native function has a wrapper for C, and only its code is optimized."""
        flags, library = state.flags, CodeLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        library.is_final = not flags.no_cfunc_wrapper
        library.enable_object_caching()
        flags.no_compile, state.library = True, library
        super().run_pass(state)
        if not library.is_final:
            # Numba's callers know a function by what Python would call. Nobody does.
            made = state["cr"]
            entry = make_function(made.fndesc.lookup_module(), made.fndesc.qualname, "", 0, made.env, (library,))
            state.targetctx.insert_user_function(entry, made.fndesc, [library])
            state["cr"] = made._replace(cfunc=entry)
        return True


_UNUSED = frozenset(
    {
        untyped_passes.WithLifting,
        untyped_passes.InlineClosureLikes,
        untyped_passes.FindLiterallyCalls,
        untyped_passes.LiteralUnroll,
        untyped_passes.MakeFunctionToJitFunction,
        untyped_passes.LiteralPropagationSubPipelinePass,
        untyped_passes.InlineInlinables,
        typed_passes.InlineOverloads,
        typed_passes.NopythonRewrites,
        typed_passes.AnnotateTypes,
    }
)
"""Numba's steps for what native functions do not contain: objects, closures, arrays, literal tuples to be unrolled."""


class Pipeline(compiler.CompilerBase):  # type: ignore[misc]
    """Numba's own steps, but for the last and those that nothing here needs."""

    def define_pipelines(self) -> list[Any]:
        """The steps."""
        manager = PassManager("dryfit")
        for one, text in compiler.DefaultPassBuilder.define_nopython_pipeline(self.state).passes:
            if one not in _UNUSED:
                manager.add_pass(Lowering if one is typed_passes.NativeLowering else one, text)
        manager.finalize()
        return [manager]
