"""Samples for calibration: a folder of pictures, files of arrays, or a function of the user's.

Each source tells the names of its samples before it reads any, so that work can be divided, shown, and gone on with.
"""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.errors import CalibrationError
from dryfit.network.network import Network
from dryfit.network.tensor import Array, Tensor
from dryfit.quantization.picture_preparation import PicturePreparation
from dryfit.quantization.sample_arrays import ARRAYS, Feeds, batch_of, cut_batches, load_arrays, sample_feeds


def call_user_function(place: str) -> Any:
    """What a function without arguments gives.

    Args:
        place: `module:function`, of a module that can be imported, or `folder/file.py:function`.

    Raises:
        CalibrationError: there is no such module, file or function, or it cannot be called so.
    """
    function = user_function(place, "samples")
    try:
        return function()
    except (ImportError, OSError, SyntaxError, AttributeError, TypeError, ValueError) as error:
        raise _not_callable(place, "samples", error) from error


def user_function(place: str, purpose: str) -> Any:
    """A function of the user's.

    Args:
        place: as for `call_user_function`.
        purpose: what it is for, in messages.

    Raises:
        CalibrationError: there is no such module, file or function.
    """
    module, _, name = place.rpartition(":")
    try:
        loaded = _module_of_file(Path(module)) if module.endswith(".py") else importlib.import_module(module)
        return getattr(loaded, name)
    except (ImportError, OSError, SyntaxError, AttributeError, TypeError, ValueError) as error:
        raise _not_callable(place, purpose, error) from error


def _not_callable(place: str, purpose: str, error: Exception) -> CalibrationError:
    return CalibrationError(
        f"The function for {purpose} cannot be called",
        where=place,
        found=f"{type(error).__name__}: {error}",
        allowed="module:function, importable here, or file.py:function"
        + (", without arguments" if purpose == "samples" else ""),
        remedy="Fix the name or the function",
    )


def _module_of_file(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


NamedFeeds = tuple[str, Feeds]

PICTURES = frozenset({".bmp", ".jpeg", ".jpg", ".png", ".ppm", ".webp"})
_NUMBERED = re.compile(r"(.*\.np[yz])\[(\d+)\]", re.IGNORECASE)


class SampleSource(Protocol):
    """Where samples come from. A source can be pickled, and gives the same samples in every process."""

    @property
    def text(self) -> str:
        """How samples are made, in words: sources with other texts give other values."""
        ...

    def names(self, network: Network) -> Sequence[str]:
        """Names of all samples, in order."""
        ...

    def samples(self, names: Sequence[str], network: Network) -> Iterator[NamedFeeds]:
        """These samples, in this order, each read when it is asked for: its name, and an array for each input."""
        ...


def image_count(feeds: Feeds) -> int:
    """How many images a sample has, by the first axis of the first input."""
    array = next(iter(feeds.values()))
    return int(array.shape[0]) if array.ndim else 1


def source_of(place: str, preparation: PicturePreparation | None = None) -> SampleSource:
    """The source that a user means: a folder, a file of arrays, `module:function` or `file.py:function`.

    Raises:
        CalibrationError: there is no such place, or it has no samples.
    """
    path = Path(place)
    if path.is_dir():
        kinds = {one.suffix.lower() for one in path.rglob("*") if one.is_file()}
        if kinds & PICTURES and kinds & ARRAYS:
            raise CalibrationError(
                "A folder must contain either pictures or arrays",
                where=place,
                found=", ".join(sorted(kinds & (PICTURES | ARRAYS))),
                remedy="Move one kind to another folder",
            )
        if kinds & PICTURES:
            return PictureFolder(path, preparation or PicturePreparation())
        if kinds & ARRAYS:
            return ArrayFiles(path)
    elif path.suffix.lower() in ARRAYS and path.is_file():
        return ArrayFiles(path)
    elif ":" in place and not path.exists():
        return FunctionSamples(place)
    raise CalibrationError(
        "No samples found",
        where=place,
        allowed=f"a folder with pictures ({', '.join(sorted(PICTURES))}) or arrays ({', '.join(sorted(ARRAYS))}), "
        "a file of arrays, module:function, or file.py:function",
        remedy="Pass a folder, file or function with samples",
    )


@frozen
class PictureFolder:
    """The pictures in a folder and in those inside it, in the order of their names.

    Where the input's batch is fixed and larger than 1, as many pictures make a sample, called by the first.

    Attributes:
        folder: the folder.
        preparation: how a picture becomes the network's input.
    """

    folder: Path
    preparation: PicturePreparation

    @property
    def text(self) -> str:
        """The preparation; not where the folder is."""
        return f"pictures: {self.preparation.text}"

    def names(self, network: Network) -> Sequence[str]:
        """Names of the first picture of each sample, as paths inside the folder.

        Raises:
            CalibrationError: the number of pictures is no multiple of the batch.
        """
        pictures, batch = self._pictures(), batch_of(_only_input(network, str(self.folder)))
        if len(pictures) % batch:
            raise CalibrationError(
                "The number of pictures must be a multiple of the batch size",
                where=str(self.folder),
                found=f"{len(pictures)} pictures",
                allowed=f"a multiple of the network's batch, {batch}",
                remedy="Add or remove pictures, or export the model with batch 1 or a dynamic batch",
            )
        return pictures[::batch]

    def samples(self, names: Sequence[str], network: Network) -> Iterator[NamedFeeds]:
        """`[N, C, H, W]` or `[N, H, W, C]`, in the type of the input."""
        tensor = _only_input(network, str(self.folder))
        batch, pictures = batch_of(tensor), self._pictures()
        places = {name: place for place, name in enumerate(pictures)}
        for name in names:
            paths = [self.folder / one for one in pictures[places[name] : places[name] + batch]]
            yield name, {tensor.name: np.stack([self.preparation.array(path, tensor) for path in paths])}

    def _pictures(self) -> list[str]:
        found = [one for one in self.folder.rglob("*") if one.suffix.lower() in PICTURES and one.is_file()]
        return sorted(one.relative_to(self.folder).as_posix() for one in found)


@frozen
class ArrayFiles:
    """Arrays in `.npy` files, for networks of one input, or `.npz` files, which name the inputs.

    An array has the input's rank, or one axis less: then it is a sample without its batch. An array of several batches
    is cut along the first axis: a fixed batch is one sample, of a dynamic one each row is.

    Attributes:
        path: a file, or a folder with files.
    """

    path: Path

    @property
    def text(self) -> str:
        """Arrays are taken as they are."""
        return "arrays"

    def names(self, network: Network) -> Sequence[str]:
        """`file`, or `file[0]` and so on where a file has several samples."""
        found: list[str] = []
        for name in self._files():
            count = len(self._pieces(name, network))
            found += [name] if count == 1 else [f"{name}[{index}]" for index in range(count)]
        return found

    def samples(self, names: Sequence[str], network: Network) -> Iterator[NamedFeeds]:
        """Views of the arrays by input name."""
        opened, pieces = "", list[Feeds]()
        for name in names:
            numbered = _NUMBERED.fullmatch(name)
            file, index = (numbered[1], int(numbered[2])) if numbered else (name, 0)
            if file != opened:
                opened, pieces = file, self._pieces(file, network)
            yield name, pieces[index]

    def _files(self) -> list[str]:
        if self.path.is_file():
            return [self.path.name]
        found = [one for one in self.path.rglob("*") if one.suffix.lower() in ARRAYS and one.is_file()]
        return sorted(one.relative_to(self.path).as_posix() for one in found)

    def _pieces(self, name: str, network: Network) -> list[Feeds]:
        """The samples of a file. They are views: of an .npy file only what is looked at is read."""
        path = self.path if self.path.is_file() else self.path / name
        arrays = _read(path, network)
        cut = {key: cut_batches(arrays[key], network.tensor(key), f"{path}, input {key!r}") for key in arrays}
        counts = {len(pieces) for pieces in cut.values()}
        if len(counts) != 1:
            raise CalibrationError(
                "The arrays of a file must have the same number of samples",
                where=str(path),
                found=", ".join(f"{key!r}: {len(pieces)}" for key, pieces in cut.items()),
                remedy="Write the file again",
            )
        return [dict(zip(cut, pieces, strict=True)) for pieces in zip(*cut.values(), strict=True)]


@frozen
class FunctionSamples:
    """What a function without arguments gives: a sequence or an iterable of samples, each a dict of arrays.

    Where the network has one input, an array is a sample as well.

    Attributes:
        place: `module:function` or `file.py:function`.
    """

    place: str

    @property
    def text(self) -> str:
        """The function's place; what it does is the user's to know."""
        return f"function {self.place}"

    def names(self, network: Network) -> Sequence[str]:  # noqa: ARG002  as `SampleSource` has it
        """`0`, `1` and so on. An iterable that does not tell its length is run through."""
        samples = call_user_function(self.place)
        return [str(index) for index in range(len(samples) if hasattr(samples, "__len__") else sum(1 for _ in samples))]

    def samples(self, names: Sequence[str], network: Network) -> Iterator[NamedFeeds]:
        """What the function gives, in its own order; an iterable is run through to the last of these."""
        samples = call_user_function(self.place)
        if hasattr(samples, "__getitem__"):
            yield from ((name, self._feeds(samples[int(name)], network, name)) for name in names)
            return
        wanted = {int(name) for name in names}
        shown = itertools.islice(samples, max(wanted, default=-1) + 1)
        for index, one in enumerate(shown):
            if index in wanted:
                yield str(index), self._feeds(one, network, str(index))

    def _feeds(self, sample: object, network: Network, name: str) -> Feeds:
        if isinstance(sample, Mapping):
            return sample
        where = f"sample {name!r} of {self.place}"
        found = sample_feeds(sample, network, where)
        if len(found) != 1:
            raise CalibrationError(
                "The function must return one batch per sample",
                where=where,
                found=f"{len(found)} batches",
                remedy="Split the sample",
            )
        return found[0]


def _only_input(network: Network, where: str) -> Tensor:
    if len(network.inputs) != 1:
        raise CalibrationError(
            "The network has several inputs, and the samples do not name theirs",
            where=where,
            found=", ".join(repr(tensor.name) for tensor in network.inputs),
            allowed="a network with one input",
            remedy="Use .npz files, which name the inputs, or a function",
        )
    return network.inputs[0]


def _read(path: Path, network: Network) -> dict[str, Array]:
    """The arrays of a file by input name; never runs code that is in the file."""
    try:
        arrays = load_arrays(path)
    except ValueError as error:
        raise CalibrationError(
            "The arrays cannot be read",
            where=str(path),
            found=error,
            remedy="Save them again with numpy.save or numpy.savez",
        ) from error
    if not isinstance(arrays, dict):
        return {_only_input(network, str(path)).name: arrays}
    wanted = {tensor.name for tensor in network.inputs}
    if set(arrays) != wanted:
        raise CalibrationError(
            "The names of the arrays must match the inputs of the network",
            where=str(path),
            found=", ".join(sorted(map(repr, arrays))),
            allowed=", ".join(sorted(map(repr, wanted))),
            remedy="Rename the arrays",
        )
    return arrays
