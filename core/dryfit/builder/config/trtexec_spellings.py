"""Settings in trtexec syntax: types and formats of inputs and outputs, and memory pool limits.

`fp16:chw16,int8:chw32+chw`: a single entry applies to every tensor; several entries apply to one tensor each, in
network order. `chw` is TensorRT's LINEAR. `dlaSRAM:1,dlaLocalDRAM:512`: sizes in MiB.

Source: trtexec in NVIDIA/TensorRT: `--inputIOFormats`, `--outputIOFormats` and `--memPoolSize`; dlaSRAM is rounded down
to a power of two, the other pools are passed on as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from dryfit.attrs_classes import frozen
from dryfit.builder.config.enumerations import MemoryPoolType
from dryfit.errors import ConfigError
from dryfit.network.copying import io_type
from dryfit.network.data_types import DataType
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


@frozen
class IoFormat:
    """The type of one input or output, and its allowed formats.

    Attributes:
        dtype: data type.
        formats: names of tensor formats.

    Example:
        >>> IoFormat.parse("fp16:chw16+dla_linear", "--input-io-formats").formats
        ('CHW16', 'DLA_LINEAR')
    """

    dtype: DataType
    formats: tuple[str, ...] = (LINEAR.name,)

    @classmethod
    def parse(cls, text: str, source: str) -> IoFormat:
        """Parse one entry. Whether a device supports the formats is checked at build time.

        Raises:
            ConfigError: The text is not an entry.
        """
        word, colon, names = (part.strip() for part in text.lower().partition(":"))
        formats = tuple(name.strip() for name in names.split("+"))
        if not colon or word not in IO_TYPE_WORDS or not all(formats):
            allowed = f"TYPE:FORMAT+FORMAT, such as fp16:chw16; the types are {', '.join(IO_TYPE_WORDS)}"
            raise ConfigError(
                "The entry must be a type and a format",
                where=source,
                found=repr(text),
                allowed=allowed,
                remedy="Write each entry as TYPE:FORMAT; separate entries by commas and formats by +",
            )
        named = (LINEAR.name if name == LINEAR_WORD else name.upper() for name in formats)
        return cls(IO_TYPE_WORDS[word], tuple(dict.fromkeys(named)))

    @classmethod
    def of(cls, tensor: Tensor) -> IoFormat:
        """Return the type and formats that a network sets for one of its inputs or outputs."""
        return cls(io_type(tensor), tuple(sorted(tensor.allowed_formats or {LINEAR.name})))

    def __str__(self) -> str:
        word = next((word for word, dtype in IO_TYPE_WORDS.items() if dtype is self.dtype), self.dtype.name.lower())
        return f"{word}:{'+'.join(LINEAR_WORD if name == LINEAR.name else name.lower() for name in self.formats)}"

    def set_on(self, tensor: Tensor) -> None:
        """Set this caller-side type and these formats on an input or output of a network.

        Raises:
            NetworkError: The output cannot have the type.
        """
        if tensor.producer is not None or tensor.dtype is not self.dtype:
            tensor.dtype = self.dtype
        tensor.allowed_formats = frozenset(self.formats)


def parse_io_formats(text: str, source: str) -> list[IoFormat]:
    """Parse the entries of a list.

    Raises:
        ConfigError: The text contains an invalid entry.
    """
    return [IoFormat.parse(entry, source) for entry in text.split(",")]


def io_formats_text(entries: Sequence[IoFormat]) -> str:
    """Format a list as one line; identical entries are written once.

    Example:
        >>> io_formats_text([IoFormat(DataType.HALF, ("CHW16",)), IoFormat(DataType.FLOAT)])
        'fp16:chw16,fp32:chw'
    """
    return ",".join(map(str, dict.fromkeys(entries) if len(set(entries)) == 1 else entries))


def set_io_formats(network: Network, inputs: Sequence[IoFormat], outputs: Sequence[IoFormat]) -> None:
    """Set the types and formats of all inputs or outputs of a network.

    Args:
        network: the user's network.
        inputs: one entry for all inputs, or one per input in network order; empty: not changed.
        outputs: entries for the outputs, in the same form.

    Raises:
        ConfigError: The number of entries is neither 1 nor the number of tensors.
        NetworkError: An output cannot have the type.
    """
    for side, tensors, entries in (("inputs", network.inputs, inputs), ("outputs", network.outputs, outputs)):
        if len(entries) not in (0, 1, len(tensors)):
            raise ConfigError(
                f"The types and formats must match the network's {side}",
                found=f"{len(entries)} entries: {io_formats_text(entries)}",
                allowed=f"1, or one for each of {', '.join(repr(tensor.name) for tensor in tensors)}",
                remedy=f"Specify one entry for all, or one for each of the network's {side}",
            )
        for index, tensor in enumerate(tensors if entries else ()):
            entries[index % len(entries)].set_on(tensor)


@contextmanager
def io_formats_set(network: Network, chosen: dict[str, IoFormat]) -> Iterator[None]:
    """Temporarily set types and formats of some inputs and outputs."""
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


TRTEXEC_POOLS: Mapping[str, str] = {
    "workspace": MemoryPoolType.WORKSPACE,
    "dlaSRAM": MemoryPoolType.DLA_MANAGED_SRAM,
    "dlaLocalDRAM": MemoryPoolType.DLA_LOCAL_DRAM,
    "dlaGlobalDRAM": MemoryPoolType.DLA_GLOBAL_DRAM,
}
"""trtexec's names of memory pools to ours."""

_UNITS = {"B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_ROUNDED = "dlasram"
"""The word whose size trtexec rounds, in lower case."""
_SIZE = re.compile(r"-?(\d+|\d*\.\d+)([BKMG]?)")


@frozen
class PoolSizes:
    """Memory pool limits parsed from a string.

    Attributes:
        limits: limit in bytes by memory pool.
        notes: one sentence for each size that was rounded to a power of two.
    """

    limits: Mapping[str, int]
    notes: Sequence[str]


def parse_memory_pool_sizes(text: str, where: str) -> PoolSizes:
    """Parse the limits of memory pools.

    Args:
        text: pairs of pool and size. Pools use trtexec's name or their own. Sizes are in MiB, or have one of the
            suffixes B, K, M and G. Fractional bytes are rounded down. The size of dlaSRAM is rounded down to a power of
            two, as trtexec does; that of DLA_MANAGED_SRAM is not.
        where: option or file that contains the text.

    Raises:
        ConfigError: The text contains an invalid entry.
    """
    names = {word.lower(): pool for word, pool in TRTEXEC_POOLS.items()}
    limits: dict[str, int] = {}
    notes: list[str] = []
    for entry in text.split(","):
        word, _, size = (part.strip() for part in entry.rpartition(":"))
        match = _SIZE.fullmatch(size.upper())
        if not word or match is None:
            raise ConfigError(
                "A memory pool limit must be a name and a size in MiB",
                where=where,
                found=entry,
                allowed="such as dlaSRAM:0.5 or DLA_GLOBAL_DRAM:256M",
                remedy="Write each limit as POOL:SIZE; separate limits by commas",
            )
        if match[0].startswith("-"):
            raise ConfigError(
                "A memory pool limit must not be negative",
                where=f"{where}, {word}",
                found=size,
                allowed="0 or more",
                remedy="Leave it out for the default",
            )
        size_bytes = int(float(match[1]) * _UNITS[match[2] or "M"])
        if word.lower() == _ROUNDED and size_bytes & (size_bytes - 1):
            rounded = 1 << size_bytes.bit_length() - 1
            notes.append(
                f"{where}: {word}:{size} is {size_bytes} bytes, rounded down to {rounded}, a power of two, as "
                "trtexec does"
            )
            size_bytes = rounded
        limits[str(names.get(word.lower(), word))] = size_bytes
    return PoolSizes(limits, notes)


def memory_pool_sizes_text(sizes: Mapping[str, int]) -> str:
    """Format the limits in trtexec syntax, in MiB. `parse_memory_pool_sizes` reads it if dlaSRAM is a power of 2.

    Args:
        sizes: limit in bytes by memory pool.
    """
    words = {pool: word for word, pool in TRTEXEC_POOLS.items()}
    return ",".join(f"{words.get(pool, pool)}:{_mebibytes(size)}" for pool, size in sizes.items())


def _mebibytes(size: int) -> str:
    """Return bytes in MiB, exactly: a power of two has few binary digits."""
    return f"{size / (1 << 20):.20f}".rstrip("0").rstrip(".")
