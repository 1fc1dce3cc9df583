"""Types and formats of a network's inputs and outputs in one line, as trtexec spells them: `fp16:chw16,int8:chw32+chw`.

One entry serves every tensor; several are for one tensor each, in the network's order. `chw` is TensorRT's LINEAR.

Source: trtexec, `--inputIOFormats` and `--outputIOFormats`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import attrs

from dryfit.errors import ConfigError
from dryfit.network.data_types import DataType
from dryfit.network.io_types import io_type
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor
from dryfit.target.formats import LINEAR

IO_TYPE_WORDS = {
    "fp32": DataType.FLOAT,
    "fp16": DataType.HALF,
    "bf16": DataType.BF16,
    "int8": DataType.INT8,
    "int32": DataType.INT32,
    "int64": DataType.INT64,
    "uint8": DataType.UINT8,
    "bool": DataType.BOOL,
}
"""trtexec's words for the types of inputs and outputs."""

LINEAR_WORD = "chw"


@attrs.frozen
class IoFormat:
    """The type of one input or output, and the formats that it may have.

    Attributes:
        dtype: the type.
        formats: names of tensor formats.

    Example:
        >>> IoFormat.parse("fp16:chw16+dla_linear", "--input-io-formats").formats
        ('CHW16', 'DLA_LINEAR')
    """

    dtype: DataType
    formats: tuple[str, ...] = (LINEAR.name,)

    @classmethod
    def parse(cls, text: str, source: str) -> IoFormat:
        """One entry. Whether a device has the formats is seen when the network is built.

        Raises:
            ConfigError: it is no entry.
        """
        word, colon, names = (part.strip() for part in text.lower().partition(":"))
        formats = tuple(name.strip() for name in names.split("+"))
        if not colon or word not in IO_TYPE_WORDS or not all(formats):
            allowed = f"TYPE:FORMAT+FORMAT, such as fp16:chw16; the types are {', '.join(IO_TYPE_WORDS)}"
            raise ConfigError("This is no type and format", where=source, found=repr(text), allowed=allowed)
        named = (LINEAR.name if name == LINEAR_WORD else name.upper() for name in formats)
        return cls(IO_TYPE_WORDS[word], tuple(dict.fromkeys(named)))

    @classmethod
    def of(cls, tensor: Tensor) -> IoFormat:
        """What a network says of one of its inputs or outputs."""
        return cls(io_type(tensor), tuple(sorted(tensor.allowed_formats or {LINEAR.name})))

    def __str__(self) -> str:
        word = next((word for word, dtype in IO_TYPE_WORDS.items() if dtype is self.dtype), self.dtype.name.lower())
        return f"{word}:{'+'.join(LINEAR_WORD if name == LINEAR.name else name.lower() for name in self.formats)}"

    def set_on(self, tensor: Tensor) -> None:
        """Give an input or output of a network this type on the caller's side, and these formats.

        Raises:
            NetworkError: an output cannot have the type.
        """
        if tensor.producer is not None or tensor.dtype is not self.dtype:
            tensor.dtype = self.dtype
        tensor.allowed_formats = frozenset(self.formats)


def parse_io_formats(text: str, source: str) -> list[IoFormat]:
    """The entries of a list.

    Raises:
        ConfigError: an entry is none.
    """
    return [IoFormat.parse(entry, source) for entry in text.split(",")]


def io_formats_text(entries: Sequence[IoFormat]) -> str:
    """A list as one line; entries that are all alike are written once.

    Example:
        >>> io_formats_text([IoFormat(DataType.HALF, ("CHW16",)), IoFormat(DataType.FLOAT)])
        'fp16:chw16,fp32:chw'
    """
    return ",".join(map(str, dict.fromkeys(entries) if len(set(entries)) == 1 else entries))


def set_io_formats(network: Network, inputs: Sequence[IoFormat], outputs: Sequence[IoFormat]) -> None:
    """Give all inputs, or all outputs, of a network their types and formats.

    Args:
        network: the user's.
        inputs: one entry for all, or one for each in the network's order; none: they stay as they are.
        outputs: the same.

    Raises:
        ConfigError: there are several entries, but not one for each tensor.
        NetworkError: an output cannot have the type.
    """
    for side, tensors, entries in (("inputs", network.inputs, inputs), ("outputs", network.outputs, outputs)):
        if len(entries) not in (0, 1, len(tensors)):
            raise ConfigError(
                f"The types and formats do not fit the network's {side}",
                found=f"{len(entries)} entries: {io_formats_text(entries)}",
                allowed=f"1, or one for each of {', '.join(repr(tensor.name) for tensor in tensors)}",
            )
        for index, tensor in enumerate(tensors if entries else ()):
            entries[index % len(entries)].set_on(tensor)


@contextmanager
def io_formats_set(network: Network, chosen: dict[str, IoFormat]) -> Iterator[None]:
    """Give some inputs and outputs other types and formats for a while."""
    tensors = [one for one in (*network.inputs, *network.outputs) if one.name in chosen]
    before = [(one, one.allowed_formats, one.dtype, one.io_dtype) for one in tensors]
    try:
        for tensor in tensors:
            chosen[tensor.name].set_on(tensor)
        yield
    finally:
        for tensor, formats, dtype, io_dtype in before:
            tensor.allowed_formats = formats
            if tensor.producer is not None:
                tensor.io_dtype = io_dtype
            elif tensor.dtype is not dtype:
                tensor.dtype = dtype
