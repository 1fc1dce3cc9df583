"""Runs the counted layers, also inside Callgrind: `python -m tests.targets.cpu.count_instructions`, from the root.

With `prepare` it compiles what they need and prints the cache's key; with that key it runs each layer once while
Callgrind counts. The key is handed over because a processor looks different inside Valgrind, and because Numba inside
it would take minutes.
"""

from __future__ import annotations

import ctypes
import mmap
import sys

import numpy as np
from tests.targets.cpu.counted_layers import bound, counted_layers

from dryfit_cpu.compiler import object_cache

START, STOP, ZERO, DUMP_AS = 0x43540004, 0x43540005, 0x43540001, 0x43540003
"""Callgrind's client requests. Source: valgrind/callgrind.h, an enumeration from the letters C and T on."""

REQUEST = bytes.fromhex("4889f8 31d2 48c1c703 48c1c70d 48c1c73d 48c1c733 4887db 4889d0 c3")
"""rax = the argument, rdx = 0; four rotations and an exchange that change nothing, which Valgrind takes for a request;
return rdx. Source: valgrind.h, for amd64."""


class ClientRequests:
    """Tells Callgrind what to do; does nothing outside Valgrind."""

    def __init__(self) -> None:
        self._code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        self._code.write(REQUEST)
        address = ctypes.addressof(ctypes.c_char.from_buffer(self._code))
        self._function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(address)

    def __call__(self, request: int, argument: int = 0) -> None:
        """Make a request with one argument."""
        words = np.array([request, argument, 0, 0, 0, 0], np.int64)
        self._function(words.ctypes.data)


def main() -> None:
    """Prepare, or run and count."""
    is_preparation = sys.argv[1] == "prepare"
    if not is_preparation:
        object_cache.salt = lambda: sys.argv[1]
    layers = list(counted_layers())
    schedules = [bound(layer) for layer in layers]
    for schedule in schedules:
        schedule.run()
    if is_preparation:
        print(object_cache.salt())  # noqa: T201  read by the test
        return
    if "numba" in sys.modules:
        sys.exit("a kernel was compiled inside Valgrind")
    request = ClientRequests()
    for name, run in [
        ("nothing", lambda: None),
        *((one.name, two.run) for one, two in zip(layers, schedules, strict=True)),
    ]:
        text = ctypes.create_string_buffer(name.encode())
        request(START)
        request(ZERO)
        run()
        request(STOP)
        request(DUMP_AS, ctypes.addressof(text))


if __name__ == "__main__":
    main()
