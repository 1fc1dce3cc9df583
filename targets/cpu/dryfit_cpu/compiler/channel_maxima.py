"""What a sliding window takes the maximum of: INT8 values, a register full of channels at a time."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from dryfit_cpu.compiler import emit
from dryfit_cpu.compiler.emit import BYTE, Builder, Value, load, store
from dryfit_cpu.compiler.sliding_windows import Line, Values, sliding_window
from dryfit_cpu.compiler.window_variants import MAXIMA


class ByteMaxima:
    """Maxima over rows first, then over columns; a row or column in the padding is -128."""

    vectors = 1
    together = 4
    kept_weights = 0

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

    def finish(self, builder: Builder, line: Line, sums: Values, output: Value) -> None:
        """Write them as they are."""
        del line
        store(builder, sums[0], output)

    def _larger(self, builder: Builder, a: Value, b: Value) -> Value:
        return emit.call(builder, f"llvm.smax.v{self._bytes.count}i8", self._bytes, [a, b])


largest_of_windows = sliding_window([ByteMaxima(width) for width in MAXIMA.widths], MAXIMA.windows)
"""An operation: the number of a variant of `MAXIMA`, then the fields of a `Line`; panel and form are unused."""
