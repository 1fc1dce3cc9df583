"""Loadables as the command line writes them and tells of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dryfit.answers.json_data import plain
from dryfit.answers.placement import placement_of
from dryfit.answers.placement_text import heading, offloading_blocks, summary_line
from dryfit.answers.text import bytes_text
from dryfit.atomic_file import write_atomically
from dryfit.cli.console import print_defaults, print_json, print_line, print_note, print_table, show
from dryfit.errors import BuildError, EngineFileError

if TYPE_CHECKING:
    from dryfit.builder.config.builder_config import BuilderConfig
    from dryfit.building import Builder, Loadables
    from dryfit.network.network import Network


def write_standalone(
    builder: Builder, network: Network, config: BuilderConfig, output: Path, *, defaults: Sequence[str], as_json: bool
) -> None:
    """Build a standalone loadable, write it to a file and tell of it.

    Raises:
        BuildError: what was asked for cannot be one loadable.
        EngineFileError: the file cannot be written.
    """
    built = builder.build_loadables(network, config)
    (contents,) = built.files.values()
    write_file(output, contents)
    tell(network.name, built, {next(iter(built.files)): output}, defaults=defaults, as_json=as_json)


def write_folder(folder: Path, name: str, files: Mapping[int, bytes]) -> dict[int, Path]:
    """Write each file as `NAME.segmentN.loadable` in a folder, which is made; returns segment to path.

    Other such files of this name, which an earlier build left there, are removed.

    Raises:
        BuildError: there is none.
        EngineFileError: a file cannot be written, or an earlier one not be removed.
    """
    if not files:
        raise BuildError(
            "No segment has a loadable",
            found="no layer runs on a device that has loadables",
            remedy="Choose such a device with --device DLA, and see with `dryfit check` what keeps layers from it",
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EngineFileError("The folder cannot be made", where=str(folder), found=error.strerror) from error
    paths = {index: folder / f"{name}.segment{index}.loadable" for index in files}
    for index, path in paths.items():
        write_file(path, files[index])
    for path in earlier_loadables(folder, name) - set(paths.values()):
        try:
            path.unlink()
        except OSError as error:
            raise EngineFileError("The file cannot be removed", where=str(path), found=error.strerror) from error
    return paths


def earlier_loadables(folder: Path, name: str) -> set[Path]:
    """The files in a folder, which may not exist, that `write_folder` would give the model of this name."""
    pattern = re.compile(re.escape(name) + r"\.segment\d+\.loadable")
    return {path for path in folder.glob("*.loadable") if pattern.fullmatch(path.name)}


def write_file(path: Path, contents: bytes) -> None:
    """Write a file, whole or not at all.

    Raises:
        EngineFileError: it cannot be written.
    """
    try:
        write_atomically(path, [contents])
    except OSError as error:
        raise EngineFileError(
            "The loadable cannot be written",
            where=f"file {str(path)!r}",
            found=error.strerror,
            remedy="Choose a folder that exists, is writable and has space",
        ) from error


def tell(
    model: str, built: Loadables, paths: Mapping[int, Path], *, defaults: Sequence[str] = (), as_json: bool
) -> None:
    """Tell what was written: one row a loadable."""
    placement = placement_of(model, built.plan, built.plan.settings, defaults)
    report = plain(placement)
    segments = {one["id"]: one for one in report["segments"]}
    loadables: list[dict[str, Any]] = [
        {"file": str(path), "bytes": path.stat().st_size, **segments[index]} for index, path in paths.items()
    ]
    refused = [{"segment": index, "reason": str(error)} for index, error in built.refused.items()]
    if as_json:
        print_json({**report, "loadables": loadables, "refused": refused})
        return
    print_line(heading(placement))
    print_defaults(placement.assumed)
    rows = [
        (
            one["file"],
            one["device"],
            len(one["layers"]),
            bytes_text(one["bytes"]),
            ", ".join(f"{pool} {bytes_text(size)}" for pool, size in one["pools"].items()),
        )
        for one in loadables
    ]
    print_table("Loadables", ["file", "device", "layers", "size", "memory pools"], rows)
    show(offloading_blocks(placement))
    print_line(summary_line(placement))
    for one in refused:
        print_note(f"No loadable: {one['reason']}")
    if placement.simulated:
        print_note(f"Simulated: {placement.simulated}.")
