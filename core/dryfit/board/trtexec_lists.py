"""Values of trtexec's options: pairs of a name and a word, shapes. Reading is the inverse of writing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from dryfit.builder.config.layer_rules import PRECISION_WORDS, layer_list
from dryfit.errors import ConfigError
from dryfit.network.data_types import DataType
from dryfit.network.tensor import Shape

_SHAPE = re.compile(r"-?\d+(x-?\d+)*")


def pairs(text: str, option: str) -> Iterator[tuple[str, str]]:
    """The names and words of a list: `conv1:fp16,conv2:int8`.

    As trtexec reads it: commas end entries, the last colon ends the name, single quotes are left out, spaces count.

    Raises:
        ConfigError: an entry has no colon.
    """
    for entry in filter(None, text.split(",")):
        name, colon, word = entry.replace("'", "").rpartition(":")
        if not colon:
            raise ConfigError("This is no name with a word", where=option, found=repr(entry), allowed="NAME:WORD,...")
        yield name, word


def types_text(types: Mapping[str, Sequence[DataType]]) -> str:
    """Layers and their types as one line; several types of a layer are joined by `+`."""
    words = {dtype: word for word, dtype in PRECISION_WORDS.items()}
    return layer_list((name, "+".join(words[one] for one in several)) for name, several in types.items())[0]


def parse_types(text: str, option: str) -> dict[str, tuple[DataType, ...]]:
    """The layers and types of a line.

    Raises:
        ConfigError: an entry is none.
    """
    found = {}
    for name, words in pairs(text, option):
        types = tuple(PRECISION_WORDS.get(word) for word in words.split("+"))
        known = tuple(dtype for dtype in types if dtype is not None)
        if len(known) != len(types):
            raise ConfigError("There is no such type", where=option, found=words, allowed=", ".join(PRECISION_WORDS))
        found[name] = known
    return found


def shapes_text(shapes: Mapping[str, Shape]) -> str:
    """Inputs and their shapes, or values, as one line."""
    return layer_list((name, "x".join(map(str, shape))) for name, shape in shapes.items())[0]


def parse_shapes(text: str, option: str) -> dict[str, Shape]:
    """The inputs and shapes of a line.

    Raises:
        ConfigError: an entry is none.
    """
    found = {}
    for name, shape in pairs(text, option):
        if not _SHAPE.fullmatch(shape):
            raise ConfigError("This is no shape", where=option, found=repr(shape), allowed="numbers joined by x")
        found[name] = tuple(int(extent) for extent in shape.split("x"))
    return found
