"""The inputs of `dryfit run`: arrays from files, or random ones."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dryfit.errors import ExecutionError

if TYPE_CHECKING:
    import numpy as np

    from dryfit.engine.engine import Engine

    Arrays = dict[str, np.ndarray[Any, Any]]


def read_inputs(engine: Engine, files: tuple[str, ...]) -> Arrays:
    """Arrays by input name, from `name=file.npy`, or from `file.npz` with the names inside.

    Where the engine has one input, its name may be left out.

    Raises:
        ExecutionError: a file cannot be read, or it is not clear which input it is for.
    """
    names = input_names(engine)
    arrays: Arrays = {}
    for text in files:
        name, equals, place = text.partition("=")
        path = Path(place if equals else text)
        loaded = _load(path)
        if isinstance(loaded, dict):
            arrays |= loaded
        elif equals or len(names) == 1:
            arrays[name if equals else names[0]] = loaded
        else:
            raise ExecutionError(
                "The engine has several inputs", where=f"--input {text}", allowed=", ".join(f"{n}=..." for n in names)
            )
    return arrays


def random_inputs(engine: Engine, seed: int) -> Arrays:
    """Random inputs of the shapes that the engine was best built for: numbers in 0 to 1, integers 0 to 9, bits.

    Raises:
        ExecutionError: the machine does not have the memory.
    """
    import numpy as np

    from dryfit.engine.buffers import aligned_bytes, check_size

    rng = np.random.default_rng(seed)
    arrays: Arrays = {}
    for name in input_names(engine):
        shape = engine.get_tensor_profile_shape(name, 0)[1]
        dtype = engine.get_tensor_dtype(name)
        # Numbers are drawn in 4 or 8 bytes each. The memory is asked for once before it is filled.
        aligned_bytes(check_size(math.prod(shape) * 8, f"input {name!r}", shape))
        if dtype.is_floating_point:
            arrays[name] = rng.random(shape, np.float32).astype(dtype.numpy)
        else:
            arrays[name] = rng.integers(0, 2 if dtype.name == "BOOL" else 10, shape).astype(dtype.numpy)
    return arrays


def input_names(engine: Engine) -> list[str]:
    """Names of the engine's inputs, in its order."""
    return [tensor.name for tensor in engine.plan.network.inputs]


class Batches:
    """Inputs cut along their first axis into as many runs as the engine's batch size needs.

    Raises:
        ExecutionError: an engine input has no first axis of a fixed extent, or the arrays are no multiple of it.
    """

    def __init__(self, engine: Engine, arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
        self.arrays = arrays
        self.sizes = {name: engine.get_tensor_profile_shape(name, 0)[1][0] for name in arrays}
        counts = {name: array.shape[0] / self.sizes[name] for name, array in arrays.items() if array.ndim}
        if len(counts) != len(arrays) or len(set(counts.values())) != 1 or not min(counts.values()).is_integer():
            raise ExecutionError(
                "The inputs cannot be cut into runs of the engine's batch size",
                where="--batches",
                found=", ".join(f"{name!r} {array.shape}" for name, array in arrays.items()),
                allowed=", ".join(f"{name!r}: a multiple of {size}" for name, size in self.sizes.items()),
            )
        self._count = int(next(iter(counts.values())))

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Mapping[str, np.ndarray[Any, Any]]]:
        for run in range(self._count):
            yield {
                name: array[run * self.sizes[name] : (run + 1) * self.sizes[name]]
                for name, array in self.arrays.items()
            }


def _load(path: Path) -> Any:
    """One array from .npy, or a dict of them from .npz; never runs code that is in the file."""
    from dryfit.quantization.array_files import ARRAYS, load_arrays

    if path.suffix not in ARRAYS:
        raise ExecutionError("Inputs are .npy or .npz files", where=f"--input {path}", found=path.suffix or "no suffix")
    try:
        return load_arrays(path)
    except ValueError as error:
        raise ExecutionError("The input cannot be read", where=f"--input {path}", found=error) from error
