"""The one place that knows how Numba is used. Imported only when a function is not in the cache.

A native function is compiled by Numba to LLVM, and LLVM's module by llvmlite to an object file, which is kept.
Numba's own cache is not used: it does not see the sources of intrinsics, and needs numba in every process.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from numba import cfunc, njit, types
from numba.extending import intrinsic

from dryfit.errors import DryfitError
from dryfit_cpu.compiler import emit, machine
from dryfit_cpu.compiler.object_cache import CompiledFunction

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])
_NATIVE: set[Callable[..., Any]] = set()
_OPTIONS: dict[str, Any] = {"error_model": "numpy", "forceinline": True}


def native(function: FunctionT) -> FunctionT:
    """Make a function native: `function(chunk, chunks, *fields)`, fields being ints (64 bits) and floats (FP32).

    It returns nothing and raises nothing: it works on addresses, and calls `inlined` functions and operations only.
    """
    _NATIVE.add(function)
    return function


def inlined(function: FunctionT) -> FunctionT:
    """Make a function one that native functions call; it becomes part of them."""
    return njit(**_OPTIONS)(function)  # type: ignore[no-any-return]


def outlined(function: Callable[..., Any]) -> Any:
    """Make a function that native functions call, and that stays a function of its own inside each of them.

    What is large and needed rarely is then compiled once where it is called in several places, and does not disturb the
    code around it.
    """
    dispatcher: Any = njit(error_model="numpy")(function)

    def declare(typing_context: Any, *kinds: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            compiled = context.compile_subroutine(builder, dispatcher.py_func, signature)
            callee = context.declare_function(builder.module, compiled.fndesc)
            call = context.call_conv.call_function
            result = call(builder, callee, signature.return_type, signature.args, values, attrs=("noinline",))
            return result[1]

        return typing_context.resolve_function_type(dispatcher._numba_type_, kinds, {}), generate

    # Numba reads the number of arguments from the function's signature.
    first = inspect.Parameter("typing_context", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = [first, *inspect.signature(function).parameters.values()]
    declare.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return intrinsic(declare)


def compile_function(module: str, name: str) -> CompiledFunction:
    """Machine code of a native function for the current tier.

    Raises:
        DryfitError: the function was not made native.
    """
    symbol, fields, llvm_ir = _translate(module, name)
    return CompiledFunction(symbol, fields, machine.object_file(llvm_ir))


def assembly(module: str, name: str) -> str:
    """The same code as text.

    Raises:
        DryfitError: the function was not made native.
    """
    return machine.assembly(_translate(module, name)[2])


def _translate(module: str, name: str) -> tuple[str, list[tuple[str, str]], str]:
    """A native function's symbol, its fields and its LLVM code, which Numba has optimized."""
    function = getattr(importlib.import_module(f"dryfit_cpu.native.{module}"), name)
    if function not in _NATIVE:
        raise DryfitError("The function is not native", where=f"native function {module}.{name}")
    parameters = list(inspect.signature(function).parameters.values())[2:]
    fields = [(parameter.name, str(parameter.annotation)) for parameter in parameters]
    body, arguments = inlined(function), _descriptor_reader([kind for _, kind in fields])

    def entry(descriptor: int, chunk: int, chunks: int) -> int:
        body(chunk, chunks, *arguments(descriptor))
        return 0

    compiled = cfunc(types.int64(types.int64, types.int64, types.int64), **_OPTIONS)(entry)
    return compiled.native_name, fields, compiled.inspect_llvm()


def _descriptor_reader(kinds: Sequence[str]) -> Any:
    """An operation that gives the fields at a descriptor's address as a tuple."""
    fields: Any = types.Tuple([types.float32 if kind == "float" else types.int64 for kind in kinds])  # type: ignore[no-untyped-call]

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        read = []
        for index, kind in enumerate(kinds):
            value = emit.load(builder, emit.WORD, emit.offset(builder, values[0], 8 * index), 8)
            if kind == "float":
                value = builder.bitcast(builder.trunc(value, emit.INT), emit.FLOAT)
            read.append(value)
        return context.make_tuple(builder, signature.return_type, read)

    def declare(_typing_context: Any, _descriptor: Any) -> Any:
        return fields(types.int64), generate

    return intrinsic(declare)
