"""What threads of native functions need of the machine: atomic counters, a pause, a call by address."""

from __future__ import annotations

import sys

from llvmlite import ir
from numba import types

from dryfit_cpu.compiler import emit
from dryfit_cpu.compiler.emit import INT, WORD, Builder, Value, operation
from dryfit_cpu.compiler.tier import is_x86

_int = types.int64


@operation(_int, _int)
def load_acquire(builder: Builder, address: Value) -> Value:
    """The counter at an address, and everything that was written before it was."""
    return builder.load_atomic(builder.inttoptr(address, WORD.as_pointer()), "acquire", 8, typ=WORD)


@operation(types.void, _int, _int)
def store_release(builder: Builder, address: Value, value: Value) -> None:
    """Write a counter, after everything that was written before."""
    builder.store_atomic(value, builder.inttoptr(address, WORD.as_pointer()), "release", 8)


@operation(_int, _int, _int)
def fetch_add(builder: Builder, address: Value, value: Value) -> Value:
    """Add to a counter; returns what it was."""
    # Sequentially consistent: on x86 an atomic addition is that anyway, and there are few of them for each chunk.
    return builder.atomic_rmw("add", builder.inttoptr(address, WORD.as_pointer()), value, "seq_cst")


@operation(_int, _int, _int, _int)
def compare_and_swap(builder: Builder, address: Value, expected: Value, value: Value) -> Value:
    """Write a counter if it still is what was expected; returns whether it was."""
    pointer = builder.inttoptr(address, WORD.as_pointer())
    result = builder.cmpxchg(pointer, expected, value, "seq_cst", "seq_cst")
    return builder.zext(builder.extract_value(result, 1), WORD)


@operation(types.void)
def pause(builder: Builder) -> None:
    """Tell the core that this is a loop that waits."""
    if is_x86():
        # Without it a waiting loop fills the pipeline with loads that are thrown away when the value changes at last,
        # and takes the core from a sibling thread.
        emit.call(builder, "llvm.x86.sse2.pause", ir.VoidType(), [])


@operation(types.void)
def give_way(builder: Builder) -> None:
    """Let another thread run on this core."""
    emit.call(builder, "SwitchToThread" if sys.platform == "win32" else "sched_yield", INT, [])


@operation(_int, _int, _int, _int, _int)
def call_function(builder: Builder, function: Value, descriptor: Value, chunk: Value, chunks: Value) -> Value:
    """Call a native function by its address."""
    kind = ir.FunctionType(WORD, [WORD, WORD, WORD])
    return builder.call(builder.inttoptr(function, kind.as_pointer()), [descriptor, chunk, chunks])
