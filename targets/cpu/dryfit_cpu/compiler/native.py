"""Native functions: named, compiled when first needed, called with their arguments in a table of integers.

A kernel's file under `native/` holds mathematics: functions of a chunk of work and of operands, which are integers,
floats and the named tuples of `descriptors.py`. Everything else about making them run stands here and in
`compilation.py`.

Steps made of them run in the dispatcher. Any other step is a Python function to it.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.errors import DryfitError
from dryfit.forking import ForkSafeLock
from dryfit.target.binding import Array
from dryfit.target.machine_code import compiling
from dryfit_cpu.compiler import loading, object_cache
from dryfit_cpu.compiler.object_cache import FunctionObject

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

        Where the function has to be compiled first, that is done when the work is first looked at: whoever collects
        much work can have all its functions compiled at the same time (`side_by_side.make_ready`).

        Arguments are numbers and descriptors, by the names that the function has for them.

        Raises:
            DryfitError: an argument is missing, unknown, or not of the descriptor that the function takes.
        """
        work = Work(self, arguments, max(1, int(chunks)))
        if self._load(may_compile=False):
            work.descriptor  # noqa: B018  what is wrong with the arguments is raised here
        return work

    def descriptor(self, arguments: Mapping[str, Any]) -> Array:
        """The table of its arguments, int64. Raises what `work` does."""
        self._load()
        given = dict(field for name, value in arguments.items() for field in _fields(name, value))
        if given.keys() != self._fields.keys():
            raise DryfitError(
                "The arguments do not match the function's parameters",
                where=f"native function {self.full_name}",
                found=", ".join(sorted(given.keys() ^ self._fields.keys())),
                allowed=", ".join(self._fields),
                remedy="Pass exactly the declared parameters by name",
            )
        values = [_bits(given[name]) if kind == "float" else int(given[name]) for name, kind in self._fields.items()]
        return np.array(values, dtype=np.int64)

    @property
    def is_loaded(self) -> bool:
        """Whether this process has its machine code."""
        return bool(self._address)

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

    def _load(self, *, may_compile: bool = True) -> bool:
        """Whether its machine code is loaded: from the cache, or compiled where that is allowed."""
        if self._address:
            return True
        with _LOCK:
            if not self._address:
                function = object_cache.read(self.full_name) or (self.compile() if may_compile else None)
                if function is None:
                    return False
                self._fields = dict(function.fields)
                self._address = loading.load(function.code, function.symbol)
        return True


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


FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
"""A native function: descriptor's address, chunk, chunks."""


class Work:
    """One call of a native function, cut into chunks that any thread may run in any order.

    Args:
        native: the function.
        arguments: name to number or descriptor.
        chunks: how many parts it is cut into. The result does not depend on it, nor on who runs which.
    """

    def __init__(self, native: NativeFunction, arguments: Mapping[str, Any], chunks: int) -> None:
        self.native = native
        self.chunks = chunks
        self._arguments = arguments

    @functools.cached_property
    def function(self) -> int:
        """Address of `void (int64 *descriptor, int64 chunk, int64 chunks)`."""
        return self.native.address

    @functools.cached_property
    def descriptor(self) -> Array:
        """The function's arguments, int64."""
        return self.native.descriptor(self._arguments)


@frozen(eq=False)
class NativeStep:
    """A step of native work only: consecutive ones run in the dispatcher without returning to Python.

    Attributes:
        name: the group's name.
        work: in order; each starts when the one before is complete.
        keeps: arrays and tables that the descriptors point into.
        check: called after the work, where it may find what is wrong with the data.
    """

    name: str
    work: Sequence[Work]
    keeps: Sequence[Any] = ()
    check: Callable[[], None] | None = None

    @classmethod
    def joined(cls, name: str, steps: Sequence[NativeStep]) -> NativeStep:
        """Several steps as one, in their order."""
        return cls(name, [work for step in steps for work in step.work], steps)

    def run(self) -> None:
        """Run all work on the calling thread."""
        for work in self.work:
            call = FUNCTION(work.function)
            for chunk in range(work.chunks):
                call(work.descriptor.ctypes.data, chunk, work.chunks)
        if self.check is not None:
            self.check()
