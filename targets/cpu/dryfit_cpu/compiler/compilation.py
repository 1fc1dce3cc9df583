"""The one place that knows how Numba is used. Imported only when a function is not in the cache.

A native function is compiled by Numba to LLVM, and LLVM's module by llvmlite to an object file, which is kept.
Numba's own cache is not used: it does not see the sources of intrinsics, and needs numba in every process.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import inspect
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar, get_type_hints

from numba import cfunc, njit, types
from numba.extending import intrinsic

from dryfit.errors import DryfitError
from dryfit_cpu.compiler import emit, machine
from dryfit_cpu.compiler.code_library import Pipeline
from dryfit_cpu.compiler.object_cache import FunctionObject
from dryfit_cpu.descriptors import Chunk

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])
_NATIVE: set[Callable[..., Any]] = set()
_OPTIONS: dict[str, Any] = {"error_model": "numpy", "forceinline": True, "pipeline_class": Pipeline}
_INNER_OPTIONS: dict[str, Any] = {**_OPTIONS, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""Python calls none of them."""


def native(function: FunctionT) -> FunctionT:
    """Make a function native: `function(chunk, *operands)`, each an int (64 bits), a float (FP32) or a descriptor.

    Descriptors are the named tuples of `descriptors.py`: the function is annotated with what it takes. What is no part
    of a larger work takes two ints in the place of the chunk.

    It returns nothing and raises nothing: it works on addresses, and calls `inlined` functions and operations only.
    """
    _NATIVE.add(function)
    return function


def inlined(function: FunctionT) -> FunctionT:
    """Make a function one that native functions call; it becomes part of them."""
    return njit(**_INNER_OPTIONS)(function)  # type: ignore[no-any-return]


def outlined(function: Callable[..., Any]) -> Any:
    """Make a function that native functions call, and that stays a function of its own inside each of them.

    What is large and needed rarely is then compiled once where it is called in several places, and does not disturb the
    code around it.
    """
    dispatcher: Any = njit(**{**_INNER_OPTIONS, "forceinline": False})(function)

    def declare(typing_context: Any, *kinds: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            compiled = dispatcher.overloads[signature.args]
            context.active_code_library.add_linking_library(compiled.library)
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


def compile_function(module: str, name: str) -> FunctionObject:
    """Machine code of a native function for the current tier.

    Raises:
        DryfitError: the function was not made native.
    """
    with _no_garbage_collection():
        symbol, fields, llvm_ir = _translate(module, name)
        return FunctionObject(symbol, fields, machine.object_file(llvm_ir))


@contextlib.contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Numba makes hundreds of thousands of objects that stay: to look through them all the time took a fifth of it."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


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
        raise DryfitError(
            "The function must be decorated with @native",
            where=f"native function {module}.{name}",
            remedy="Add the decorator",
        )
    hints = get_type_hints(function)
    names = list(inspect.signature(function).parameters)
    takes_chunk = hints[names[0]] is Chunk
    operands = names[1 if takes_chunk else 2 :]
    body, arguments = inlined(function), _descriptor_reader([hints[operand] for operand in operands])

    if takes_chunk:

        def entry(descriptor: int, chunk: int, chunks: int) -> int:
            body(Chunk(chunk, chunks), *arguments(descriptor))
            return 0
    else:

        def entry(descriptor: int, chunk: int, chunks: int) -> int:
            body(chunk, chunks, *arguments(descriptor))
            return 0

    fields = [field for operand in operands for field in _fields(operand, hints[operand])]
    compiled = cfunc(types.int64(types.int64, types.int64, types.int64), **_OPTIONS)(entry)
    return compiled.native_name, fields, compiled.inspect_llvm()


def _fields(name: str, kind: type) -> Iterator[tuple[str, str]]:
    """(name, `int` or `float`) of an operand, or of each field of a descriptor, by `operand.field`."""
    if kind in {int, float}:
        yield name, kind.__name__
    else:
        for field, inner in get_type_hints(kind).items():
            yield from _fields(f"{name}.{field}", inner)


def _numba_type(kind: type) -> Any:
    if kind in {int, float}:
        return types.float32 if kind is float else types.int64
    return types.BaseTuple.from_types([_numba_type(inner) for inner in get_type_hints(kind).values()], kind)  # type: ignore[no-untyped-call]


def _descriptor_reader(kinds: Sequence[type]) -> Any:
    """An operation that gives the operands at a descriptor's address as a tuple."""
    operands: Any = types.Tuple([_numba_type(kind) for kind in kinds])  # type: ignore[no-untyped-call]

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        places = itertools.count()

        def read(kind: Any) -> Any:
            if isinstance(kind, types.BaseTuple):
                return context.make_tuple(builder, kind, [read(inner) for inner in kind.types])  # type: ignore[attr-defined]
            value = emit.load(builder, emit.WORD, emit.offset(builder, values[0], 8 * next(places)), 8)
            return value if kind is types.int64 else builder.bitcast(builder.trunc(value, emit.INT), emit.FLOAT)

        return read(signature.return_type)

    def declare(_typing_context: Any, _descriptor: Any) -> Any:
        return operands(types.int64), generate

    return intrinsic(declare)
