"""What a core can have loaded at the same time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dryfit_dla import TARGET
from dryfit_dla.loadable import Loadable
from dryfit_dla.runtime.status import DlaError, Status

if TYPE_CHECKING:
    from dryfit_dla.runtime.board import Board


def require_same_device(loadable: Loadable, board: Board, where: str) -> None:
    """Refuse a loadable for another kind of device, or for software that the board does not have yet.

    Source: our reading: layouts and limits differ between Xavier and Orin, and what the compiler of one version writes
    no older runtime can know. Nothing is published on loadables of one Orin board on another; they are taken.

    Raises:
        DlaError: it is one of these.
    """
    if loadable.family != board.platform.family:
        raise DlaError(
            Status.INVALID_PARAM,
            "The loadable was built for another platform family",
            where=f"{where}: loadable {loadable.name!r}",
            found=f"{loadable.platform}, {loadable.family}",
            allowed=board.platform.family,
            remedy=f"Build it for this board: config.set_platform('DLA', {board.platform.name!r})",
        )
    if loadable.software[: len(board.software)] > board.software:
        raise DlaError(
            Status.INCOMPATIBLE_DLA_SW_VERSION,
            "The loadable requires newer software than the board has",
            where=f"{where}: loadable {loadable.name!r}",
            found=_version(loadable.software),
            allowed=f"{_version(board.software)} or older",
            remedy="Build the loadable for the board's software version, or update the board",
        )


def require_room(loadable: Loadable, loaded: Sequence[Loadable], board: Board, where: str) -> None:
    """Refuse a loadable that the core cannot take beside the others.

    Source: TensorRT 10 developer guide, Working with DLA: Customizing DLA Memory Pools: an Orin core strictly has 1 MiB
    of managed SRAM. Our reading: that an engine takes at most twice the pool is TensorRT's doing, which runs all of its
    loadables; here each module holds its own for as long as it is loaded, so the sum over all of them counts.

    Raises:
        DlaError: it would be one too many, or they would need more of a memory than the core has.
    """
    limit = board.max_loadables
    if limit is not None and len(loaded) >= limit:
        raise DlaError(
            Status.OUT_OF_RESOURCES,
            "The core cannot hold another loadable",
            where=where,
            found=f"{len(loaded)} loaded, and {loadable.name!r}",
            allowed=limit,
            source=TARGET.segment_rules.source,
            remedy="Unload one, or use another core",
        )
    for pool in TARGET.memory_pools:
        core = pool.core_bytes.get(board.platform.family)
        if core is None:
            continue
        taken = sum(one.pools.get(pool.name, 0) for one in (*loaded, loadable))
        if taken > core:
            raise DlaError(
                Status.OUT_OF_RESOURCES,
                f"The core does not have enough {pool.name} memory for one more loadable",
                where=f"{where}: loadable {loadable.name!r}",
                found=f"{taken} bytes for {len(loaded) + 1} loadables",
                allowed=f"{core} bytes",
                source=pool.source,
                remedy="Unload one, use another core, or build the loadables with a lower limit for this pool",
            )


def _version(software: Sequence[int]) -> str:
    return ".".join(map(str, software))
