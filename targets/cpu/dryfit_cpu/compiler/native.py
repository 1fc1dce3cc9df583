"""Native functions: named, compiled when first needed, called with their arguments in a table of integers.

A kernel's file under `native/` holds mathematics: functions of a chunk of work and of operands, which are integers,
floats and the named tuples of `descriptors.py`. Everything else about making them run stands here and in
`compilation.py`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from dryfit.errors import DryfitError
from dryfit.forking import ForkSafeLock
from dryfit.target.machine_code import compiling
from dryfit_cpu.compiler import loading, object_cache
from dryfit_cpu.compiler.object_cache import FunctionObject
from dryfit_cpu.steps import Work

_LOCK = ForkSafeLock()
NATIVE_FUNCTIONS: dict[str, NativeFunction] = {}
"""Every native function of this process that a kernel names, loaded or not."""


class NativeFunction:
    """A function of `dryfit_cpu.native`, compiled or read from the cache when it is first used.

    Example:
        >>> work = NativeFunction("reduction", "reduce").work(4, source=Elements(...), ...)  # doctest: +SKIP
    """

    def __init__(self, module: str, name: str) -> None:
        self.module = module
        self.name = name
        self._address = 0
        self._fields: Mapping[str, str] = {}
        NATIVE_FUNCTIONS.setdefault(self.full_name, self)

    @property
    def full_name(self) -> str:
        """`file.function`."""
        return f"{self.module}.{self.name}"

    @property
    def address(self) -> int:
        """Where its machine code begins."""
        self._load()
        return self._address

    def place(self, name: str) -> int:
        """Index of an argument, or of a field of one (`source.address`), in the table of all."""
        self._load()
        return list(self._fields).index(name)

    def work(self, chunks: int, **arguments: Any) -> Work:
        """One call of it, cut into chunks.

        Args:
            chunks: how many parts it is cut into.
            arguments: numbers and descriptors, by the names that the function has for them.

        Raises:
            DryfitError: an argument is missing, unknown, or not of the descriptor that the function takes.
        """
        self._load()
        given = dict(field for name, value in arguments.items() for field in _fields(name, value))
        if given.keys() != self._fields.keys():
            raise DryfitError(
                "The arguments do not fit the function",
                where=f"native function {self.full_name}",
                found=", ".join(sorted(given.keys() ^ self._fields.keys())),
                allowed=", ".join(self._fields),
            )
        values = [_bits(given[name]) if kind == "float" else int(given[name]) for name, kind in self._fields.items()]
        return Work(self._address, np.array(values, dtype=np.int64), max(1, int(chunks)))

    @property
    def is_ready(self) -> bool:
        """Whether it need not be compiled any more."""
        return bool(self._address) or object_cache.read(self.full_name) is not None

    def compile(self) -> FunctionObject:
        """Its machine code, made now and kept."""
        from dryfit_cpu.compiler import compilation

        with compiling(self.full_name):
            function = compilation.compile_function(self.module, self.name)
            object_cache.write(self.full_name, function)
        return function

    def _load(self) -> None:
        if self._address:
            return
        with _LOCK:
            if self._address:
                return
            function = object_cache.read(self.full_name) or self.compile()
            self._fields = dict(function.fields)
            self._address = loading.load(function.code, function.symbol)


def _fields(name: str, value: Any) -> Iterator[tuple[str, float]]:
    """(name, number) of an argument, or of each field of a descriptor."""
    if hasattr(value, "_asdict"):
        for field, inner in value._asdict().items():
            yield from _fields(f"{name}.{field}", inner)
    else:
        yield name, value


def _bits(value: float) -> int:
    """An FP32 value's bits as an integer."""
    return int(struct.unpack("<i", struct.pack("<f", value))[0])
