"""Limits of memory pools in one line, as trtexec's `--memPoolSize` spells them: `dlaSRAM:1,dlaLocalDRAM:512`.

Source: trtexec in NVIDIA/TensorRT: dlaSRAM is rounded down to a power of two, the others are passed on as they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from dryfit.builder.config.enumerations import MemoryPoolType
from dryfit.errors import ConfigError

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


def parse_memory_pool_sizes(text: str, where: str, notes: list[str] | None = None) -> dict[str, int]:
    """Memory pool to limit in bytes.

    Args:
        text: pairs of pool and size. A pool goes by trtexec's name or by its own. A size is in MiB, or has one of the
            letters B, K, M and G behind it; what is no whole number of bytes is rounded down, and the size of dlaSRAM,
            as trtexec does, to a power of two. That of DLA_MANAGED_SRAM is not.
        where: the option or file that it comes from.
        notes: takes a sentence for each size that was rounded to a power of two.

    Raises:
        ConfigError: an entry is none.
    """
    names = {word.lower(): pool for word, pool in TRTEXEC_POOLS.items()}
    sizes: dict[str, int] = {}
    for entry in text.split(","):
        word, _, size = (part.strip() for part in entry.rpartition(":"))
        match = _SIZE.fullmatch(size.upper())
        if not word or match is None:
            raise ConfigError(
                "A memory pool's limit is its name and a size in MiB",
                where=where,
                found=entry,
                allowed="such as dlaSRAM:0.5 or DLA_GLOBAL_DRAM:256M",
            )
        if match[0].startswith("-"):
            raise ConfigError(
                "A memory pool's limit is not negative",
                where=f"{where}, {word}",
                found=size,
                allowed="0 or more",
                remedy="Leave it out for the default",
            )
        size_bytes = int(float(match[1]) * _UNITS[match[2] or "M"])
        if word.lower() == _ROUNDED and size_bytes & (size_bytes - 1):
            rounded = 1 << size_bytes.bit_length() - 1
            if notes is not None:
                notes.append(
                    f"{where}: {word}:{size} is {size_bytes} bytes, rounded down to {rounded}, a power of two, as "
                    "trtexec does"
                )
            size_bytes = rounded
        sizes[str(names.get(word.lower(), word))] = size_bytes
    return sizes


def memory_pool_sizes_text(sizes: Mapping[str, int]) -> str:
    """The limits as trtexec spells them, in MiB: what `parse_memory_pool_sizes` reads, where dlaSRAM's is a power of 2.

    Args:
        sizes: memory pool to limit in bytes.
    """
    words = {pool: word for word, pool in TRTEXEC_POOLS.items()}
    return ",".join(f"{words.get(pool, pool)}:{_mebibytes(size)}" for pool, size in sizes.items())


def _mebibytes(size: int) -> str:
    """A number of bytes in MiB, exactly: a power of two below has few binary places."""
    return f"{size / (1 << 20):.20f}".rstrip("0").rstrip(".")
