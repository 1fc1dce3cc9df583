"""Arrays in `.npy` and `.npz` files that strangers wrote."""

from __future__ import annotations

import math
from pathlib import Path
from typing import IO, Any

import numpy as np

Array = np.ndarray[Any, Any]

ARRAYS = frozenset({".npy", ".npz"})


def load_arrays(path: Path) -> Array | dict[str, Array]:
    """One array of an .npy file, mapped into memory, or the arrays of an .npz file by name.

    Never runs code that is in the file. An array that its header promises and the file does not have is refused before
    memory is asked for.

    Raises:
        ValueError: the file cannot be read, or is damaged; the text says why.
    """
    try:
        if path.suffix.lower() == ".npy":
            with path.open("rb") as file:
                count = _check_header(file, path.stat().st_size)
            array: Array = np.load(path, mmap_mode="r" if count else None, allow_pickle=False)
            return array
        with np.load(path, allow_pickle=False) as loaded:
            for member in loaded.zip.infolist():
                with loaded.zip.open(member) as file:
                    _check_header(file, member.file_size)
            return dict(loaded)
    except MemoryError as error:
        raise ValueError(str(error) or "not enough memory") from error
    except OSError as error:
        raise ValueError(error.strerror or str(error)) from error
    except Exception as error:  # numpy, zipfile and tokenize raise many kinds of errors on damaged files
        raise ValueError(str(error)) from error


def _check_header(file: IO[bytes], size: int) -> int:
    """The number of elements that an array's header states.

    Raises:
        ValueError: the file is too small for them.
    """
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    if dtype.hasobject:
        raise ValueError("arrays of Python objects are not read, as they could run code")
    count = math.prod(shape)
    if count * dtype.itemsize > size:
        raise ValueError(f"the header states shape {shape} of {dtype}, and the file has {size} bytes")
    return count
