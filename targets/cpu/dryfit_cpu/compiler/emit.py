"""Small words for writing LLVM code, and how such code becomes an operation that native functions can call.

Addresses are 64-bit integers, loops carry values, functions stay outlined.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from dryfit_cpu.compiler.tier import is_arm

BYTE, SHORT, INT, WORD, FLOAT = ir.IntType(8), ir.IntType(16), ir.IntType(32), ir.IntType(64), ir.FloatType()
Value = Any
Builder = Any


def vector_of(element: Any, lanes: int) -> Any:
    """The type of a vector register."""
    return ir.VectorType(element, lanes)


def word(number: int) -> Value:
    """A 64-bit integer constant."""
    return ir.Constant(WORD, int(number))


def constant(kind: Any, number: float) -> Value:
    """A vector constant with the number in each lane."""
    return ir.Constant(kind, [number] * kind.count)


def offset(builder: Builder, address: Value, number: int) -> Value:
    """The address so many bytes on."""
    return builder.add(address, word(number)) if number else address


def load(builder: Builder, kind: Any, address: Value, alignment: int = 1) -> Value:
    """The value at an address."""
    value = builder.load(builder.inttoptr(address, kind.as_pointer()))
    value.align = alignment
    return value


def store(builder: Builder, value: Value, address: Value, alignment: int = 1) -> None:
    """Write a value at an address."""
    builder.store(value, builder.inttoptr(address, value.type.as_pointer())).align = alignment


def splat(builder: Builder, value: Value, lanes: int) -> Value:
    """A vector with the value in each lane."""
    kind = vector_of(value.type, lanes)
    first = builder.insert_element(ir.Constant(kind, ir.Undefined), value, ir.Constant(INT, 0))
    return builder.shuffle_vector(first, ir.Constant(kind, ir.Undefined), constant(vector_of(INT, lanes), 0))


def call(builder: Builder, name: str, result: Any, arguments: Sequence[Value], flags: Sequence[str] = ()) -> Value:
    """A call of a function that the module does not define, such as an LLVM intrinsic, with fast-math flags."""
    module = builder.module
    if name not in module.globals:
        ir.Function(module, ir.FunctionType(result, [argument.type for argument in arguments]), name)
    return builder.call(module.globals[name], arguments, fastmath=flags)


def masked_load(builder: Builder, kind: Any, pointer: Value, mask: Value) -> Value:
    """The vector that a pointer names; zero in the lanes that the mask leaves out, of which nothing is read."""
    arguments = [pointer, ir.Constant(INT, 1), mask, constant(kind, 0)]
    return call(builder, f"llvm.masked.load.{name_of(kind)}.p0", kind, arguments)


def masked_store(builder: Builder, value: Value, pointer: Value, mask: Value) -> None:
    """Write a vector, without the lanes that the mask leaves out."""
    arguments = [value, pointer, ir.Constant(INT, 1), mask]
    call(builder, f"llvm.masked.store.{name_of(value.type)}.p0", ir.VoidType(), arguments)


def name_of(kind: Any) -> str:
    """What LLVM's intrinsics call a type of vectors: `v16f32`."""
    return f"v{kind.count}" + ("f32" if kind.element == FLOAT else f"i{kind.element.width}")


def shuffled(builder: Builder, a: Value, b: Value, order: Sequence[int]) -> Value:
    """The lanes of two vectors, those of b counted on from those of a, in this order."""
    return builder.shuffle_vector(a, b, ir.Constant(vector_of(INT, len(order)), list(order)))


def packed(builder: Builder, a: Value, b: Value) -> Value:
    """Two vectors of integers in one register, half as wide and saturated, in turns of 128 bits each: as x86 packs."""
    width = a.type.element.width
    if is_arm():
        name = f"llvm.aarch64.neon.sqxtn.v{a.type.count}i{width // 2}"
        halves = [call(builder, name, vector_of(ir.IntType(width // 2), a.type.count), [one]) for one in (a, b)]
        return shuffled(builder, halves[0], halves[1], range(2 * a.type.count))
    family, suffix = {512: ("avx512", ".512"), 256: ("avx2", ""), 128: ("sse2", ".128")}[width * a.type.count]
    name = f"llvm.x86.{family}.{'packssdw' if width == 32 else 'packsswb'}{suffix}"
    return call(builder, name, vector_of(ir.IntType(width // 2), 2 * a.type.count), [a, b])


def clamped(builder: Builder, value: Value, low: Value, high: Value) -> Value:
    """Numbers within limits; NaN stays NaN."""
    # Comparison and choice, as `maxps` takes them: the limit first, so that the instruction gives the other operand,
    # the value, where one is NaN.
    value = builder.select(builder.fcmp_ordered(">", low, value), low, value)
    return builder.select(builder.fcmp_ordered("<", high, value), high, value)


def gated(builder: Builder, value: Value, slope: Value, shift: Value) -> Value:
    """`value * clip(slope * value + shift, 0, 1)`, hard swish; NaN stays NaN."""
    gate = multiply_add(builder, slope, value, shift)
    low, high = (ir.Constant(gate.type, [limit] * gate.type.count) for limit in (0.0, 1.0))
    return builder.fmul(value, clamped(builder, gate, low, high))


def multiply_add(builder: Builder, a: Value, b: Value, c: Value) -> Value:
    """`a * b + c`, rounded once where the machine can."""
    return call(builder, f"llvm.fmuladd.v{a.type.count}f32", a.type, [a, b, c])


def prefetch(builder: Builder, address: Value, *, write: bool = False, locality: int = 3) -> None:
    """Ask for a cache line; the address need not exist."""
    pointer = builder.inttoptr(address, BYTE.as_pointer())
    flags = [ir.Constant(INT, int(write)), ir.Constant(INT, locality), ir.Constant(INT, 1)]
    call(builder, "llvm.prefetch.p0", ir.VoidType(), [pointer, *flags])


def fill(builder: Builder, address: Value, value: Value, count: Value) -> None:
    """Write a byte so many times."""
    pointer = builder.inttoptr(address, BYTE.as_pointer())
    arguments = [pointer, value, count, ir.Constant(ir.IntType(1), 0)]
    call(builder, "llvm.memset.p0.i64", ir.VoidType(), arguments)


def opaque(builder: Builder, value: Value) -> Value:
    """The same integer, with its origin hidden from LLVM.

    What is derived from it inside a loop cannot be moved out of the loop: so row addresses become the scaled
    addressing of one base register instead of a register each, which would spill.
    """
    return builder.call(ir.InlineAsm(ir.FunctionType(WORD, [WORD]), "", "=r,0", side_effect=True), [value])


def opaque_vector(builder: Builder, value: Value) -> Value:
    """The same vector in a register of x86, with its origin hidden from LLVM."""
    return builder.call(ir.InlineAsm(ir.FunctionType(value.type, [value.type]), "", "=v,0"), [value])


def one_after_the_other(builder: Builder, *values: Value) -> list[Value]:
    """The same integers and vectors in registers of x86: what is made of them begins when all of them are there.

    LLVM moves nothing across that depends on them. It mixes the words of an unrolled loop otherwise, whose operands
    together take more registers than there are.
    """
    kinds = ["v" if isinstance(value.type, ir.VectorType) else "r" for value in values]
    constraints = [f"={kind}" for kind in kinds] + [str(place) for place in range(len(kinds))]
    types = [value.type for value in values]
    barrier = ir.InlineAsm(ir.FunctionType(ir.LiteralStructType(types), types), "", ",".join(constraints))
    passed = builder.call(barrier, list(values))
    return [builder.extract_value(passed, place) for place in range(len(values))]


def changed_if(
    builder: Builder, condition: Value, values: Sequence[Value], change: Callable[[], Sequence[Value]]
) -> list[Value]:
    """What `change` makes of values where the condition holds, by a jump; else the values."""
    before = builder.block
    with builder.if_then(condition):
        changed = change()
        inside = builder.block
    return merged(builder, (before, values), (inside, changed))


def merged(builder: Builder, *ways: tuple[Any, Sequence[Value]]) -> list[Value]:
    """Values where ways meet, each of them (last block, values in their order)."""
    results = [builder.phi(value.type) for value in ways[0][1]]
    for block, values in ways:
        for phi, value in zip(results, values, strict=True):
            phi.add_incoming(value, block)
    return results


class Loop:
    """`for index in range(count)` with values that each turn passes to the next.

    Example:
        >>> loop = Loop(builder, count, [total])                       # doctest: +SKIP
        >>> loop.finish([builder.add(loop.values[0], loop.index)])     # doctest: +SKIP
    """

    def __init__(self, builder: Builder, count: Value, values: Sequence[Value]) -> None:
        self.builder = builder
        before = builder.block
        self._head = builder.append_basic_block("head")
        body = builder.append_basic_block("body")
        self._exit = builder.append_basic_block("exit")
        builder.branch(self._head)
        builder.position_at_end(self._head)
        self.index = builder.phi(WORD)
        self.index.add_incoming(word(0), before)
        self.values = [builder.phi(value.type) for value in values]
        for phi, value in zip(self.values, values, strict=True):
            phi.add_incoming(value, before)
        builder.cbranch(builder.icmp_signed("<", self.index, count), body, self._exit)
        builder.position_at_end(body)

    def finish(self, values: Sequence[Value]) -> list[Value]:
        """End the turn with these values; returns what they are after the last turn."""
        end = self.builder.block
        self.index.add_incoming(self.builder.add(self.index, word(1)), end)
        for phi, value in zip(self.values, values, strict=True):
            phi.add_incoming(value, end)
        self.builder.branch(self._head)
        self.builder.position_at_end(self._exit)
        return self.values


def outlined(builder: Builder, name: str, arguments: Sequence[Value], body: Callable[..., None]) -> None:
    """Call `body(builder, *arguments)` as a function of its own that LLVM does not inline.

    Its registers are then allocated without regard to the caller's, and arguments beyond the sixth wait on the stack
    until they are needed: a register block of the whole register file does not spill.
    """
    module = builder.module
    if name not in module.globals:
        kind = ir.FunctionType(ir.VoidType(), [argument.type for argument in arguments])
        function = ir.Function(module, kind, name)
        function.linkage = "internal"
        function.attributes.add("noinline")
        function.attributes.add("nounwind")
        inner = ir.IRBuilder(function.append_basic_block("entry"))
        body(inner, *function.args)
        inner.ret_void()
    builder.call(module.globals[name], arguments)


def operation(result: Any, *kinds: Any) -> Callable[[Callable[..., Any]], Any]:
    """Make `generate(builder, *values) -> value` an operation of these Numba types, callable from native functions.

    A generator that returns None has a void result.
    """

    def make(generate: Callable[..., Any]) -> Any:
        def emit(context: Any, builder: Any, _signature: Any, values: Sequence[Any]) -> Any:
            value = generate(builder, *values)
            return context.get_dummy_value() if value is None else value

        def declare(_typing_context: Any, *_arguments: Any) -> Any:
            return result(*kinds), emit

        # Numba reads the number of arguments from the function's signature.
        names = ["typing_context", *(f"argument{index}" for index in range(len(kinds)))]
        parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names]
        declare.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return intrinsic(declare)

    return make


def outlined_operation(name: str, *kinds: Any) -> Callable[[Callable[..., None]], Any]:
    """Make `body(builder, *values)` an operation of these Numba types that stays a function of its own, `outlined`."""

    def make(body: Callable[..., None]) -> Any:
        return operation(types.void, *kinds)(lambda builder, *values: outlined(builder, name, values, body))

    return make
