"""This machine's peak: what its multipliers do when nothing has to be loaded or stored.

A loop multiplies and adds in registers only, by the instructions that the register blocks of this tier use: fused
multiply-adds in FP32; in INT8 products of bytes (`vpdpbusd`) where the machine has them, else of pairs of 16-bit
integers (`vpmaddwd` and an addition). What a kernel reaches of that is its share of the peak. It is measured in the
same run as the kernels, because clocks differ from machine to machine and from minute to minute.
"""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types

from dryfit_cpu.compiler import emit
from dryfit_cpu.compiler.emit import FLOAT, INT, Loop, operation
from dryfit_cpu.compiler.tier import current_tier, is_x86

LANES = current_tier().lanes
_SUMS = 12
"""Sums that do not wait for each other: a multiply-add takes four or five cycles, and two begin in each."""
_PAIR_SUMS = 8
"""Sums of pairs: an addition takes one cycle, and 16 registers have no room for more."""
_TURNS = 10_000
_RUNS = 40


def peak_of(precision: str, clock: Callable[[], float] = time.thread_time) -> float | None:
    """Multiply-accumulates a second of one thread, the most of some short runs; None where this is not x86 in INT8.

    Args:
        precision: `fp32`, or `int8` in any of its forms.
        clock: tells seconds.
    """
    is_real, is_paired = precision == "fp32", not current_tier().has_byte_products
    if not is_real and not is_x86():
        return None
    products, sums = (1, _SUMS) if is_real else (2, _PAIR_SUMS) if is_paired else (4, _SUMS)
    run, operands = _loop(is_real, sums), np.zeros(64, np.int8)
    run(operands.ctypes.data, 1)
    least = float("inf")
    for _ in range(_RUNS):
        start = clock()
        run(operands.ctypes.data, _TURNS)
        least = min(least, clock() - start)
    return _TURNS * sums * LANES * products / least


def share_of_peak(macs: int, seconds: float, precision: str, threads: int) -> str:
    """What so many multiply-accumulates in so many seconds are of the peak, measured now; empty where there is none."""
    peak = peak_of(precision) if macs else None
    return "" if peak is None else f"{macs / seconds / (threads * peak):.0%}"


@functools.cache
def _loop(is_real: bool, count: int) -> Any:
    @operation(types.void, types.int64, types.int64)
    def multiply(builder: Any, address: Any, turns: Any) -> None:
        kind = emit.vector_of(FLOAT if is_real else INT, LANES)
        ones, others = ([emit.load(builder, kind, address) for _ in range(number)] for number in (2, 4))
        loop = Loop(builder, turns, [*ones, *[emit.load(builder, kind, address)] * count])
        # What is multiplied is hidden from LLVM in each turn: it would take the products of a loop out of it.
        ones, sums = [_hidden(builder, one) for one in loop.values[:2]], loop.values[2:]
        if is_real:
            sums = [emit.multiply_add(builder, ones[0], others[0], total) for total in sums]
        elif current_tier().has_byte_products:
            name = f"llvm.x86.avx512.vpdpbusd.{32 * LANES}"
            sums = [emit.call(builder, name, kind, [total, ones[0], others[0]]) for total in sums]
        else:
            pairs = itertools.cycle(itertools.product(ones, others))
            for _ in range(count):
                sums = [*sums[1:], builder.add(sums[0], _pairs(builder, *next(pairs)))]
        for total in loop.finish([*ones, *sums])[2:]:
            emit.store(builder, _hidden(builder, total), address)

    @numba.njit  # type: ignore[untyped-decorator]
    def run(address: int, turns: int) -> None:
        multiply(address, turns)

    return run


def _pairs(builder: Any, one: Any, other: Any) -> Any:
    """Two products of 16-bit integers in each lane, added."""
    name = {16: "avx512.pmaddw.d.512", 8: "avx2.pmadd.wd", 4: "sse2.pmadd.wd"}[LANES]
    pairs = [builder.bitcast(value, emit.vector_of(ir.IntType(16), 2 * LANES)) for value in (one, other)]
    return emit.call(builder, f"llvm.x86.{name}", one.type, pairs)


def _hidden(builder: Any, value: Any) -> Any:
    """The same vector in a register, with its origin hidden from LLVM; not taken out of a loop."""
    constraint = ("=v,0" if LANES == 16 else "=x,0") if is_x86() else "=w,0"
    assembly = ir.InlineAsm(ir.FunctionType(value.type, [value.type]), "", constraint, side_effect=True)
    return builder.call(assembly, [value])
