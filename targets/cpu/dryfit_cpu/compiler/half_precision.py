"""FP16 and BF16, which vectors know in memory only: to and from FP32, on machines that can and on those that cannot."""

from __future__ import annotations

from llvmlite import ir

from dryfit_cpu.codes import BF16
from dryfit_cpu.compiler import emit
from dryfit_cpu.compiler.emit import Builder, Value
from dryfit_cpu.compiler.tier import current_tier
from dryfit_cpu.compiler.vectors import FLOATS, INTS, LANES, SHORTS

_HAS_HALF = current_tier().has_half


def widened(builder: Builder, bits: Value, code: Value) -> Value:
    """Bits of the type that the element code tells as FP32."""
    # Both are computed and one is taken: few instructions each, and a kernel has one way for 16-bit types instead of
    # two copies of all its loops.
    return _chosen(builder, code, _widened_brain(builder, bits), _widened_half(builder, bits))


def narrowed(builder: Builder, value: Value, code: Value) -> Value:
    """FP32 as bits of the type that the element code tells, rounded to nearest even; NaN stays NaN."""
    return _chosen(builder, code, _narrowed_brain(builder, value), _narrowed_half(builder, value))


def _chosen(builder: Builder, code: Value, brain: Value, half: Value) -> Value:
    return builder.select(builder.icmp_signed("==", code, emit.word(BF16)), brain, half)


def _widened_brain(builder: Builder, brain: Value) -> Value:
    """BF16 bits as FP32, of which they are the upper half."""
    return builder.bitcast(builder.shl(builder.zext(brain, INTS), emit.constant(INTS, 16)), FLOATS)


def _narrowed_brain(builder: Builder, value: Value) -> Value:
    """FP32 as BF16 bits, rounded to nearest even."""
    bits = builder.bitcast(value, INTS)
    upper = builder.lshr(bits, emit.constant(INTS, 16))
    odd = builder.and_(upper, emit.constant(INTS, 1))
    # Half of the last place, less one, and the last bit that stays: ties go to even, and a carry into the exponent is
    # the right result, up to infinity.
    nearest = builder.lshr(builder.add(builder.add(bits, emit.constant(INTS, 0x7FFF)), odd), emit.constant(INTS, 16))
    # A NaN whose payload is in the lower half only would turn into infinity.
    quiet = builder.or_(upper, emit.constant(INTS, 0x40))
    return builder.trunc(builder.select(builder.fcmp_unordered("uno", value, value), quiet, nearest), SHORTS)


def _widened_half(builder: Builder, half: Value) -> Value:
    """FP16 bits as FP32."""
    if _HAS_HALF:
        return builder.fpext(builder.bitcast(half, emit.vector_of(ir.HalfType(), LANES)), FLOATS)
    bits = builder.zext(half, INTS)
    magnitude = builder.shl(builder.and_(bits, emit.constant(INTS, 0x7FFF)), emit.constant(INTS, 13))
    sign = builder.shl(builder.and_(bits, emit.constant(INTS, 0x8000)), emit.constant(INTS, 16))
    # Moved to FP32's places the exponent is 112 too low; the product puts that right for subnormal numbers too, which
    # need no case then.
    finite = builder.fmul(builder.bitcast(magnitude, FLOATS), emit.constant(FLOATS, 2.0**112))
    special = builder.or_(magnitude, emit.constant(INTS, 0x7F800000))
    is_special = builder.icmp_unsigned(">=", magnitude, emit.constant(INTS, 0x0F800000))
    chosen = builder.select(is_special, special, builder.bitcast(finite, INTS))
    return builder.bitcast(builder.or_(chosen, sign), FLOATS)


def _narrowed_half(builder: Builder, value: Value) -> Value:
    """FP32 as FP16 bits, rounded to nearest even."""
    if _HAS_HALF:
        return builder.bitcast(builder.fptrunc(value, emit.vector_of(ir.HalfType(), LANES)), SHORTS)
    bits = builder.bitcast(value, INTS)
    sign = builder.and_(bits, emit.constant(INTS, -0x80000000))
    magnitude = builder.xor(bits, sign)
    # Below the smallest normal number: adding 0.5 lets the FP32 adder round to multiples of 2**-24.
    shifted = builder.fadd(builder.bitcast(magnitude, FLOATS), emit.constant(FLOATS, 0.5))
    subnormal = builder.sub(builder.bitcast(shifted, INTS), emit.constant(INTS, 0x3F000000))
    odd = builder.and_(builder.lshr(magnitude, emit.constant(INTS, 13)), emit.constant(INTS, 1))
    rebiased = builder.add(magnitude, emit.constant(INTS, 0xFFF - (112 << 23)))
    normal = builder.lshr(builder.add(rebiased, odd), emit.constant(INTS, 13))
    half = builder.select(builder.icmp_unsigned("<", magnitude, emit.constant(INTS, 113 << 23)), subnormal, normal)
    infinity, nan = emit.constant(INTS, 0x7C00), emit.constant(INTS, 0x7E00)
    half = builder.select(builder.icmp_unsigned(">=", magnitude, emit.constant(INTS, 0x477FF000)), infinity, half)
    half = builder.select(builder.icmp_unsigned(">", magnitude, emit.constant(INTS, 0x7F800000)), nan, half)
    return builder.trunc(builder.or_(half, builder.lshr(sign, emit.constant(INTS, 16))), SHORTS)
