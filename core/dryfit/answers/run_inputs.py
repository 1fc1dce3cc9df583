"""The inputs of `dryfit run`: arrays and pictures from files, samples from a folder, or random numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dryfit.errors import ExecutionError

if TYPE_CHECKING:
    import numpy as np

    from dryfit.engine.engine import Engine
    from dryfit.quantization.picture_preparation import PicturePreparation

    Feeds = Mapping[str, np.ndarray[Any, Any]]
    Arrays = dict[str, np.ndarray[Any, Any]]


class RunInputs:
    """The sets of inputs of a run, processed one after another.

    Attributes:
        names: names of the samples.
        has_pictures: whether the inputs were read from pictures.
    """

    def __init__(self, names: Sequence[str], feeds: Callable[[], Iterable[Feeds]], *, has_pictures: bool) -> None:
        self.names = names
        self.feeds = feeds
        self.has_pictures = has_pictures

    def __len__(self) -> int:
        return len(self.names)

    @classmethod
    def of(
        cls,
        engine: Engine,
        said: Sequence[str] | Feeds,
        data: str | None,
        seed: int | None,
        preparation: PicturePreparation,
        limit: int | None,
        *,
        batches: bool,
    ) -> RunInputs:
        """Load the inputs given by the options of `dryfit run`, or arrays by input name.

        Raises:
            CalibrationError, ExecutionError: Samples cannot be read or do not match the engine's inputs.
        """
        from dryfit.quantization.calibration_data import PICTURES, PictureFolder, source_of

        if data is not None:
            source, network = source_of(data, preparation), engine.plan.network
            names = list(source.names(network))[:limit]
            return cls(
                names,
                lambda: (feeds for _, feeds in source.samples(names, network)),
                has_pictures=isinstance(source, PictureFolder),
            )
        files = () if isinstance(said, Mapping) else said
        if isinstance(said, Mapping):
            arrays = dict(said)
        else:
            arrays = random_inputs(engine, seed) if seed is not None else read_inputs(engine, files, preparation)
        pictures = [Path(text) for text in files if Path(text).suffix.lower() in PICTURES]
        name = ", ".join(one.name.rpartition("=")[2] for one in pictures) or "sample"
        cut = list(Batches(engine, arrays)) if batches else [arrays]
        names = [name] if len(cut) == 1 else [f"{name} {index}" for index in range(len(cut))]
        return cls(names, lambda: cut, has_pictures=bool(pictures))


def read_inputs(engine: Engine, files: Sequence[str], preparation: PicturePreparation) -> Arrays:
    """Read arrays by input name from `name=file.npy`, from a picture, or from `file.npz`, which contains the names.

    The name can be omitted if the engine has one input.

    Raises:
        ExecutionError: A file cannot be read, or its input is ambiguous.
    """
    from dryfit.quantization.calibration_data import PICTURES

    names = input_names(engine)
    arrays: Arrays = {}
    for text in files:
        name, equals, place = text.partition("=")
        path = Path(place if equals else text)
        if not equals and len(names) == 1:
            name = names[0]
        loaded = _picture(engine, name, path, preparation) if path.suffix.lower() in PICTURES else _load(path)
        if isinstance(loaded, dict):
            arrays |= loaded
        elif equals or len(names) == 1:
            arrays[name] = loaded
        else:
            raise ExecutionError(
                "The engine has several inputs",
                where=f"--input {text}",
                allowed=", ".join(f"{n}=..." for n in names),
                remedy="Name the input: --input NAME=FILE",
            )
    return arrays


def random_inputs(engine: Engine, seed: int) -> Arrays:
    """Return random inputs in the optimum shapes of the engine: numbers in 0 to 1, integers 0 to 9, bits.

    Raises:
        ExecutionError: The machine does not have enough memory.
    """
    import numpy as np

    from dryfit.engine.buffers import check_size
    from dryfit.target.memory import aligned_bytes

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
    """Return the names of the engine's inputs, in its order."""
    return [tensor.name for tensor in engine.plan.network.inputs]


class Batches:
    """Inputs split along their first axis into as many runs as the engine's batch size requires.

    Raises:
        ExecutionError: An engine input has no static first axis, or the array length is not a multiple of it.
    """

    def __init__(self, engine: Engine, arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
        self.arrays = arrays
        self.sizes = {name: engine.get_tensor_profile_shape(name, 0)[1][0] for name in arrays}
        counts = {name: array.shape[0] / self.sizes[name] for name, array in arrays.items() if array.ndim}
        if len(counts) != len(arrays) or len(set(counts.values())) != 1 or not min(counts.values()).is_integer():
            raise ExecutionError(
                "The batch of the inputs must be a multiple of the engine's",
                where="--batches",
                found=", ".join(f"{name!r} {array.shape}" for name, array in arrays.items()),
                allowed=", ".join(f"{name!r}: a multiple of {size}" for name, size in self.sizes.items()),
                remedy="Add or remove samples, or build an engine with another batch size",
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


def _picture(engine: Engine, name: str, path: Path, preparation: PicturePreparation) -> Any:
    """Return a picture as a batch of one for an input."""
    inputs = {tensor.name: tensor for tensor in engine.plan.network.inputs}
    if name not in inputs:
        raise ExecutionError(
            "A picture can be used for one input only",
            where=f"--input {path}",
            allowed=", ".join(f"{one}=..." for one in inputs),
            remedy="Name the input: --input NAME=FILE",
        )
    return preparation.array(path, inputs[name])[None]


def _load(path: Path) -> Any:
    """Load one array from .npy, or a dict of arrays from .npz, without executing code in the file."""
    from dryfit.quantization.sample_arrays import ARRAYS, load_arrays

    if path.suffix not in ARRAYS:
        raise ExecutionError(
            "Inputs must be .npy or .npz files, or pictures",
            where=f"--input {path}",
            found=path.suffix or "no suffix",
            remedy="Convert the file to .npy, .npz, PNG or JPEG",
        )
    try:
        return load_arrays(path)
    except ValueError as error:
        raise ExecutionError(
            "The input cannot be read",
            where=f"--input {path}",
            found=error,
            remedy="Check the path and the file; arrays must not need pickle",
        ) from error
