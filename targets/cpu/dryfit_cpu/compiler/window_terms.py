"""What a sliding window makes of INT8 values: sums of products, or maxima, a register full of channels at a time.

Products are of bytes where the machine has them, on other Arm processors of 16-bit integers, else of FP32. Byte
products (VNNI, `sdot`), 64 channels of a column of three rows, and a fourth that is zero:

    row 0   a0 a1 a2 a3 ...    64 bytes, with VNNI 128 above their values
    row 1   b0 b1 b2 b3 ...
    row 2   c0 c1 c2 c3 ...
                |                 interleaved: bytes of two rows, then pairs of two pairs
    a0 b0 c0 00  a1 b1 c1 00 ...  16 channels in each of four registers
        x   weights of the column, packed alike  ->  one instruction for 16 channels and an output

With VNNI the sums begin 128 times the sum of the weights below the bias. Interleaving goes by 16 bytes, which leaves
channels in the order that `kernels/window_panels.py` names; packing results to bytes puts them right.

16-bit integers are widened from two rows at a time. In FP32 a row is read at a time; products of bytes and their sums
are small enough for it to hold them exactly. So are those of weights with zero points, which have 9 bits: where other
sums are of byte products, these are in FP32.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from dryfit_cpu.compiler import emit
from dryfit_cpu.compiler.emit import BYTE, FLOAT, INT, SHORT, Builder, Value, load, offset, store, word
from dryfit_cpu.compiler.memory import limited_lanes, whole_lanes
from dryfit_cpu.compiler.sliding_windows import Values, WindowLine, interleaved, sliding_window
from dryfit_cpu.compiler.tier import current_tier, is_arm
from dryfit_cpu.compiler.window_variants import (
    AVERAGES,
    DISTANCES,
    HAS_BIAS,
    HIGH,
    HIGH_BYTES,
    LAST_HIGH,
    LAST_LOW,
    LOW,
    LOW_BYTES,
    MAXIMA,
    RATIO,
    STARTS,
    SUMS,
    TO_BIASED_BYTES,
    TO_BYTES,
    TO_BYTES_AGAIN,
    ZERO_POINT,
    group_rows,
)
from dryfit_cpu.compiler.word_products import add_shorts, add_signed_bytes, half_of


class _Sums:
    """What both kinds of sums have in common.

    Blocks of `width` channels, registers of `lanes` sums.
    """

    kind = ""
    together = 1
    kept_weights = 0
    looks_ahead = False

    def __init__(self, width: int, lanes: int, sums: Any) -> None:
        self.name = f"{self.kind}_{width}"
        self.width, self.lanes, self.vectors = width, lanes, width // lanes
        self.sums, self.floats = emit.vector_of(sums, lanes), emit.vector_of(FLOAT, lanes)

    def first(self, builder: Builder, panel: Value) -> Values:
        """The starts."""
        return self._vectors(builder, self.sums, offset(builder, panel, STARTS))

    def weights(self, builder: Builder, panel: Value, index: Value) -> Values:
        """Four bytes a channel."""
        place = builder.add(panel, builder.mul(index, word(4 * self.width)))
        return self._vectors(builder, self.sums, offset(builder, place, STARTS + 12 * self.width))

    def finish(self, builder: Builder, line: WindowLine, sums: Values, output: Value) -> None:
        """Scale, and round and limit, or leave them scaled."""
        scaled = [
            builder.fmul(self.real(builder, x), m) for x, m in zip(sums, self._reals(builder, line, 4), strict=True)
        ]
        with builder.if_else(builder.icmp_signed("==", line.form, word(TO_BYTES))) as (is_common, is_other):
            with is_common:
                self.write_bytes(builder, line.panel, scaled, output)
            with is_other:
                self._finish_other(builder, line, scaled, output)

    def _finish_other(self, builder: Builder, line: WindowLine, scaled: Values, output: Value) -> None:
        """All forms but the first."""
        has_bias = builder.icmp_signed("!=", load(builder, INT, offset(builder, line.panel, HAS_BIAS), 4), INT(0))

        def biased() -> Values:
            return [builder.fadd(x, b) for x, b in zip(scaled, self._reals(builder, line, 8), strict=True)]

        scaled = emit.changed_if(builder, has_bias, scaled, biased)
        choice = builder.switch(line.form, builder.append_basic_block("scaled"))
        after = builder.append_basic_block("finished")
        for form, write in ((TO_BIASED_BYTES, self.write_bytes), (TO_BYTES_AGAIN, self._round_twice)):
            block = builder.append_basic_block("rounded")
            choice.add_case(word(form), block)
            builder.position_at_end(block)
            write(builder, line.panel, scaled, output)
            builder.branch(after)
        builder.position_at_end(choice.default)
        self.write_scaled(builder, scaled, output)
        builder.branch(after)
        builder.position_at_end(after)

    def _reals(self, builder: Builder, line: WindowLine, place: int) -> Values:
        """FP32 numbers of the channels that stand so many bytes a channel behind the starts."""
        return self._vectors(builder, self.floats, offset(builder, line.panel, STARTS + place * self.width))

    def _round_twice(self, builder: Builder, panel: Value, values: Values, output: Value) -> None:
        low, high, ratio = (self.splat(builder, panel, place) for place in (LOW, HIGH, RATIO))
        limited = [limited_lanes(builder, value, low, high) for value in values]
        again = [builder.sitofp(whole_lanes(builder, value), self.floats) for value in limited]
        self.write_bytes(builder, panel, [builder.fmul(value, ratio) for value in again], output)

    def splat(self, builder: Builder, panel: Value, place: int) -> Value:
        """An FP32 value of the panel's limits in each lane."""
        return emit.splat(builder, load(builder, FLOAT, offset(builder, panel, place), 4), self.lanes)

    def real(self, builder: Builder, sums: Value) -> Value:
        """Sums as FP32."""
        raise NotImplementedError

    def write_bytes(self, builder: Builder, panel: Value, values: Values, output: Value) -> None:
        """Write numbers rounded to nearest even, within the last limits, with the zero point added."""
        raise NotImplementedError

    def write_scaled(self, builder: Builder, values: Values, output: Value) -> None:
        """Write numbers in the order of the channels."""
        raise NotImplementedError

    def _vectors(self, builder: Builder, kind: Any, address: Value) -> Values:
        size = 4 * self.lanes
        return [load(builder, kind, offset(builder, address, size * v), size) for v in range(self.vectors)]


class ByteSums(_Sums):
    """Sums of byte products in INT32. Numbers that are written as bytes have to be below 2**31."""

    kind = "byte_sums"
    together = 4

    def __init__(self, width: int) -> None:
        super().__init__(width, width // 4, INT)
        self.bytes, self.shorts = emit.vector_of(BYTE, width), emit.vector_of(SHORT, width // 2)
        # Three columns of four registers: a window of 3 x 3. Beside them 12 sums, 4 values and the limits fit 32
        # registers; the 16 of AVX2 have no room for weights at all.
        # Arm has 32 registers too.
        self.kept_weights = 12 if current_tier().lanes == 16 or is_arm() else 0

    def column(self, builder: Builder, addresses: Sequence[Value]) -> Values:
        """Four registers of a quarter of the channels each."""
        rows = [load(builder, self.bytes, one) for one in addresses]
        if current_tier().byte_shift:
            rows = [builder.xor(row, emit.constant(self.bytes, -128)) for row in rows]
        # Four rows make the four bytes of a VNNI word; windows of three rows waste a quarter of the products. Plain
        # loops over taps reached 12 to 15 GOP/s on one core, this 75 to 110.
        rows += [emit.constant(self.bytes, 0)] * (4 - len(rows))
        pairs = [
            [
                builder.bitcast(interleaved(builder, *rows[first : first + 2], high=high), self.shorts)
                for first in (0, 2)
            ]
            for high in (False, True)
        ]
        return [
            builder.bitcast(interleaved(builder, *pair, high=high), self.bytes)
            for pair in pairs
            for high in (False, True)
        ]

    def added(self, builder: Builder, sums: Values, column: Values, weights: Values) -> Values:
        """One instruction a register."""
        if not current_tier().byte_shift:
            return [add_signed_bytes(builder, *terms) for terms in zip(column, weights, sums, strict=True)]
        name = f"llvm.x86.avx512.vpdpbusd.{8 * self.width}"
        # Named with its older signature of 32-bit lanes, which every LLVM takes.
        return [
            emit.call(builder, name, self.sums, [total, builder.bitcast(values, self.sums), weight])
            for total, values, weight in zip(sums, column, weights, strict=True)
        ]

    def real(self, builder: Builder, sums: Value) -> Value:
        """Rounded to nearest even."""
        return builder.sitofp(sums, self.floats)

    def write_bytes(self, builder: Builder, panel: Value, values: Values, output: Value) -> None:
        """Packed with saturation, which also puts the channels in order."""
        a, b, c, d = (whole_lanes(builder, value) for value in values)
        halves = [emit.packed(builder, *pair) for pair in ((a, b), (c, d))]
        zero = emit.splat(builder, load(builder, SHORT, offset(builder, panel, ZERO_POINT), 4), self.width // 2)
        halves = [
            emit.call(builder, f"llvm.sadd.sat.v{self.width // 2}i16", self.shorts, [half, zero]) for half in halves
        ]
        result = emit.packed(builder, *halves)
        for name, place in (("smax", LOW_BYTES), ("smin", HIGH_BYTES)):
            four = load(builder, INT, offset(builder, panel, place), 4)
            limit = builder.bitcast(emit.splat(builder, four, self.lanes), self.bytes)
            result = emit.call(builder, f"llvm.{name}.v{self.width}i8", self.bytes, [result, limit])
        store(builder, result, output)

    def write_scaled(self, builder: Builder, values: Values, output: Value) -> None:
        """Four channels at a time: those that lie together in a register."""
        for vector, value in enumerate(values):
            for first in range(0, self.lanes, 4):
                part = emit.shuffled(builder, value, value, range(first, first + 4))
                store(builder, part, offset(builder, output, 4 * (4 * first + 4 * vector)))


class ShortSums(ByteSums):
    """Sums in INT32 of products of 16-bit integers, of Arm without products of bytes: four channels an instruction."""

    kind = "short_sums"
    together = 2

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.kept_weights = 0

    def column(self, builder: Builder, addresses: Sequence[Value]) -> Values:
        """Two registers of half of the channels for each row."""
        rows = [builder.sext(load(builder, self.bytes, one), emit.vector_of(SHORT, self.width)) for one in addresses]
        half = self.width // 2
        return [emit.shuffled(builder, row, row, range(first, first + half)) for row in rows for first in (0, half)]

    def added(self, builder: Builder, sums: Values, column: Values, weights: Values) -> Values:
        """An instruction for each register of sums and each row."""
        result = list(sums)
        for index, values in enumerate(column):
            weight = builder.bitcast(weights[index], self.shorts)
            for half in (0, 1):
                place = 2 * (index % 2) + half
                terms = half_of(builder, values, half), half_of(builder, weight, half)
                result[place] = add_shorts(builder, *terms, result[place])
        return result


_PACKED_LANES = 8
"""Of registers whose bytes are packed by instructions of their own: of AVX2. AVX512 cuts to bytes in one, where Arm and
shorter registers of x86 do so quickly enough."""


class RealSums(_Sums):
    """Sums in FP32."""

    kind = "real_sums"

    def __init__(self, width: int) -> None:
        super().__init__(width, current_tier().lanes, FLOAT)
        self.kept_weights = 18 if current_tier().lanes == 16 else 0

    def column(self, builder: Builder, addresses: Sequence[Value]) -> Values:
        """The values of a row."""
        bytes_of, ints = emit.vector_of(BYTE, self.lanes), emit.vector_of(INT, self.lanes)
        # Without byte products FP32 is as quick as pairs of 16 bits: one multiply-add a value, no pairing of rows, and
        # whole numbers up to 2**24 are exact in it. `sums_are_exact` in the kernel says when that is enough.
        places = [offset(builder, addresses[0], self.lanes * vector) for vector in range(self.vectors)]
        return [builder.sitofp(builder.sext(load(builder, bytes_of, one), ints), self.floats) for one in places]

    def added(self, builder: Builder, sums: Values, column: Values, weights: Values) -> Values:
        """Exact, whether fused or not."""
        return [emit.multiply_add(builder, *terms) for terms in zip(column, weights, sums, strict=True)]

    def real(self, builder: Builder, sums: Value) -> Value:
        """They are FP32 already."""
        del builder
        return sums

    def write_bytes(self, builder: Builder, panel: Value, values: Values, output: Value) -> None:
        """Limited before they are rounded, so that only bytes are left."""
        low, high = (self.splat(builder, panel, place) for place in (LAST_LOW, LAST_HIGH))
        bytes_of = emit.vector_of(BYTE, self.lanes)
        whole = [whole_lanes(builder, limited_lanes(builder, value, low, high)) for value in values]
        if self.lanes == _PACKED_LANES:
            self._pack(builder, panel, whole, output)
            return
        zero = emit.splat(builder, load(builder, INT, offset(builder, panel, ZERO_POINT), 4), self.lanes)
        for index, value in enumerate(whole):
            narrow = builder.trunc(builder.add(value, zero), bytes_of)
            store(builder, narrow, offset(builder, output, self.lanes * index))

    def _pack(self, builder: Builder, panel: Value, whole: Values, output: Value) -> None:
        """Write bytes by the instructions of AVX2 that pack, two registers at a time."""
        # Cut to bytes lane by lane, each register would take five instructions.
        quads = emit.vector_of(INT, self.lanes // 2)
        zero = emit.splat(builder, load(builder, SHORT, offset(builder, panel, ZERO_POINT), 4), 2 * self.lanes)
        for index in range(0, len(whole), 2):
            shorts = builder.add(emit.packed(builder, *whole[index : index + 2]), zero)
            halves = [emit.shuffled(builder, shorts, shorts, range(8 * half, 8 * half + 8)) for half in (0, 1)]
            packed = builder.bitcast(emit.packed(builder, *halves), quads)
            # Packing goes by 128 bits: of each, four values of both registers.
            ordered = emit.shuffled(builder, packed, packed, (0, 2, 1, 3))
            store(builder, ordered, offset(builder, output, self.lanes * index))

    def write_scaled(self, builder: Builder, values: Values, output: Value) -> None:
        """In order."""
        for index, value in enumerate(values):
            store(builder, value, offset(builder, output, 4 * self.lanes * index))


_TERMS = RealSums if group_rows() == 1 else ShortSums if group_rows() == 2 else ByteSums

sum_windows = sliding_window([_TERMS(width) for width in SUMS.widths], SUMS.windows)
"""An operation: the number of a variant of `SUMS`, then the fields of a `WindowLine`."""
sum_windows_of_distances = (
    sliding_window([RealSums(width) for width in DISTANCES.widths], DISTANCES.windows)
    if current_tier().has_byte_products
    else sum_windows
)
"""The same for `DISTANCES`."""
sum_any_windows = sliding_window([_TERMS(width) for width in AVERAGES.widths], AVERAGES.windows)
"""The same for `AVERAGES`."""


class ByteMaxima:
    """Maxima over rows first, then over columns; a row or column in the padding is -128."""

    vectors = 1
    together = 4
    kept_weights = 0
    looks_ahead = False

    def __init__(self, width: int) -> None:
        self.name = f"byte_maxima_{width}"
        self._bytes = emit.vector_of(BYTE, width)

    def first(self, builder: Builder, panel: Value) -> Values:
        """The least value."""
        del builder, panel
        return [emit.constant(self._bytes, -128)]

    def column(self, builder: Builder, addresses: Sequence[Value]) -> Values:
        """The largest of some rows."""
        rows = [load(builder, self._bytes, address) for address in addresses]
        return [functools.reduce(lambda a, b: self._larger(builder, a, b), rows)]

    def weights(self, builder: Builder, panel: Value, index: Value) -> Values:
        """None."""
        del builder, panel, index
        return []

    def added(self, builder: Builder, sums: Values, column: Values, weights: Values) -> Values:
        """The larger of each."""
        del weights
        return [self._larger(builder, sums[0], column[0])]

    def finish(self, builder: Builder, line: WindowLine, sums: Values, output: Value) -> None:
        """Write them as they are."""
        del line
        store(builder, sums[0], output)

    def _larger(self, builder: Builder, a: Value, b: Value) -> Value:
        return emit.call(builder, f"llvm.smax.v{self._bytes.count}i8", self._bytes, [a, b])


largest_of_windows = sliding_window([ByteMaxima(width) for width in MAXIMA.widths], MAXIMA.windows)
"""An operation: the number of a variant of `MAXIMA`, then the fields of a `WindowLine`; panel and form are unused."""
