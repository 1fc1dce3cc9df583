"""What users hand to a calibration as samples: `.npy` and `.npz` files, and mappings of input names to arrays."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from dryfit.errors import CalibrationError
from dryfit.network.data_types import DataType
from dryfit.network.network import Network
from dryfit.network.tensor import Array, Tensor

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
        raise ValueError("arrays of Python objects are not supported, as they could run code")
    count = math.prod(shape)
    if count * dtype.itemsize > size:
        raise ValueError(f"the header states shape {shape} of {dtype}, and the file has {size} bytes")
    return count


Feeds = Mapping[str, Array]
"""Input name to array."""

Samples = Iterable[Feeds | tuple[str, Feeds] | Array | Sequence[Any]] | Array
"""Feeds, or their name and feeds. Where the network has one input: arrays or lists of numbers, or one array of all."""


def named_samples(samples: Samples, network: Network) -> Iterator[tuple[str, Feeds]]:
    """The samples with their names; one without a name is called by its number, from 0.

    Raises:
        CalibrationError: they are no samples, or do not say which input they are for.
    """
    if isinstance(samples, (Mapping, str, bytes)) or not (isinstance(samples, Iterable) or _is_array(samples)):
        raise CalibrationError(
            "Samples must be a list or another iterable",
            where=f"network {network.name!r}",
            found=f"a {type(samples).__name__}",
            allowed=_allowed(network),
            remedy="Use [sample] for one sample" if isinstance(samples, Mapping) else None,
        )
    number, several = 0, iter([samples] if _is_array(samples) else samples)
    sample: Any
    for sample in several:
        name, unnamed = sample if _is_named(sample) else (None, sample)
        for feeds in sample_feeds(unnamed, network, f"sample {str(number) if name is None else name!r}"):
            yield str(number) if name is None else name, feeds
            number += 1


def sample_feeds(sample: Any, network: Network, where: str) -> Sequence[Feeds]:
    """The samples that one thing stands for: a mapping is one, an array as many as it has batches of the input.

    Raises:
        CalibrationError: it is neither, or does not fit the input.
    """
    if isinstance(sample, Mapping):
        inputs = {tensor.name: tensor for tensor in network.inputs}  # other names are the executor's to refuse
        return [
            {
                name: _input_array(value, inputs[name], network, where) if name in inputs else value
                for name, value in sample.items()
            }
        ]
    if isinstance(sample, (list, tuple)) and len(sample) == 1 and _is_array(sample[0]):
        sample = sample[0]
    if len(network.inputs) != 1:
        raise _no_sample(network, where, f"a {type(sample).__name__}")
    tensor = network.inputs[0]
    array = _input_array(sample, tensor, network, where)
    return [{tensor.name: piece} for piece in cut_batches(array, tensor, f"{where}, input {tensor.name!r}")]


def _input_array(value: Any, tensor: Tensor, network: Network, where: str) -> Array:
    """An array as it is; a list of numbers in the type of the input, which is FP32 for one of INT8."""
    if _is_array(value):
        return as_array(value)
    try:
        if isinstance(value, (list, tuple, int, float)):
            dtype = DataType.FLOAT if tensor.spec.dtype is DataType.INT8 else tensor.spec.dtype
            return np.asarray(value, dtype.numpy)
    except (TypeError, ValueError) as error:
        raise _no_sample(
            network, where, f"a {type(value).__name__} that cannot be converted to an array: {error}"
        ) from error
    raise _no_sample(network, where, f"a {type(value).__name__}")


def cut_batches(array: Array, tensor: Tensor, where: str) -> Sequence[Array]:
    """The batches of an input in an array, as views; an array with one axis less is a sample without its batch.

    Raises:
        CalibrationError: the array does not fit the input.
    """
    shape, whole = tensor.shape, array
    if array.ndim == len(shape) - 1:
        whole = array[None]
    batch = batch_of(tensor)
    fits = whole.ndim == len(shape) and all(w in (-1, h) for w, h in zip(shape[1:], whole.shape[1:], strict=True))
    if not fits or (whole.ndim and (whole.shape[0] % batch or not math.prod(whole.shape))):
        raise CalibrationError(
            "The shape of the array must match the input",
            where=where,
            found=array.shape,
            allowed=f"{shape}, or a multiple of it along the first axis",
            remedy="Reshape or crop the array",
        )
    return [whole[start : start + batch] for start in range(0, whole.shape[0], batch)] if whole.ndim else [whole]


def batch_of(tensor: Tensor) -> int:
    """The extent of an input's first axis; 1 where it is dynamic or there is none."""
    return max(1, tensor.shape[0]) if tensor.shape else 1


def as_array(value: Any) -> Array:
    """An array of numpy, or of any library with `__array__`, `__array_interface__` or DLPack, as one of numpy."""
    is_only_dlpack = hasattr(value, "__dlpack__") and not hasattr(value, "__array__")
    is_only_dlpack &= not hasattr(value, "__array_interface__")
    return np.from_dlpack(value) if is_only_dlpack else np.asarray(value)


def _is_array(value: Any) -> bool:
    return any(hasattr(value, name) for name in ("__array_interface__", "__array__", "__dlpack__"))


def _is_named(sample: Any) -> bool:
    return isinstance(sample, tuple) and len(sample) == 2 and isinstance(sample[0], str)


def _no_sample(network: Network, where: str, found: str) -> CalibrationError:
    return CalibrationError(
        "Not a sample", where=where, found=found, allowed=_allowed(network), remedy="Pass one array per input"
    )


def _allowed(network: Network) -> str:
    mapping = f"{{{', '.join(f'{tensor.name!r}: array' for tensor in network.inputs)}}}"
    return f"{mapping}, or an array" if len(network.inputs) == 1 else mapping
