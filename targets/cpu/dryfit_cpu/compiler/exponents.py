"""Multiplying by a power of two, where an exponential may leave the range of FP32."""

from __future__ import annotations

import math

from llvmlite import ir

from dryfit_cpu.compiler import emit
from dryfit_cpu.compiler.emit import INT, SHORT, Builder, Value
from dryfit_cpu.compiler.operations import operation
from dryfit_cpu.compiler.tier import is_x86
from dryfit_cpu.compiler.vectors import FLOATS, INTS, LANES, VECTOR

_HAS_SCALING = is_x86() and LANES == 16
_LOWEST = -87.3
_HIGHEST = 88.72283172607422
"""The largest FP32 number with a finite exponential."""


@operation(VECTOR, VECTOR, VECTOR, VECTOR)
def scaled_exponential(builder: Builder, p: Value, n: Value, x: Value) -> Value:
    """`p * 2**n`, which is e to the power of x: 0 where x is below -87.3, infinity above 88.7, NaN for NaN.

    p is between 1/2 and 2, n a whole number up to 129; where x is below -87.3, they may be anything.
    """
    below = builder.fcmp_ordered("<", x, emit.constant(FLOATS, _LOWEST))
    zero = emit.constant(FLOATS, 0.0)
    if _HAS_SCALING:
        arguments = [p, n, zero, ir.Constant(SHORT, -1), ir.Constant(INT, 4)]
        scaled = emit.call(builder, f"llvm.x86.avx512.mask.scalef.ps.{32 * LANES}", FLOATS, arguments)
        return builder.select(below, zero, scaled)
    # A number that 1.5 * 2**23 was added to counts wholes by its last bit; there they are added to p's exponent.
    whole = builder.bitcast(builder.fadd(n, emit.constant(FLOATS, 12582912.0)), INTS)
    moved = builder.add(builder.bitcast(p, INTS), builder.shl(whole, emit.constant(INTS, 23)))
    beyond = builder.fcmp_unordered(">", x, emit.constant(FLOATS, _HIGHEST))
    infinite = builder.fadd(x, emit.constant(FLOATS, math.inf))
    return builder.select(below, zero, builder.select(beyond, infinite, builder.bitcast(moved, FLOATS)))
