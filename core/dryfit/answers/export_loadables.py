"""Export the segments that a device's own runtime can load: `dryfit.export_loadables`, `dryfit export loadables`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Unpack

import attrs

from dryfit.answers.asked import Asked, Model, asked
from dryfit.answers.json_data import Count, hidden
from dryfit.answers.options import Options
from dryfit.answers.placement import Placement, placement_of
from dryfit.answers.placement_text import defaults_line, heading, offloading_blocks, pools_text, summary_line
from dryfit.answers.text import Answer, Block, Line, Table, bytes_text
from dryfit.atomic_file import write_atomically
from dryfit.attrs_classes import frozen
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.building import Builder, Loadables
from dryfit.engine.plan import Segment
from dryfit.errors import BuildError, ConfigError, EngineFileError


@frozen(kw_only=True)
class WrittenLoadable(Segment):
    """A loadable that was written, with its segment.

    Attributes:
        file: path of the loadable.
        size: size of the loadable in bytes.
    """

    JSON_NAMES: ClassVar[Mapping[str, str]] = {"file": "file", "size": "bytes", **Segment.JSON_NAMES}

    file: str
    size: Count


@frozen
class RefusedSegment:
    """A segment that cannot be exported as a loadable.

    Attributes:
        segment: index of the segment.
        reason: why it was not exported.
    """

    segment: Count
    reason: str


@frozen(repr=False, kw_only=True)
class ExportLoadablesAnswer(Placement, Answer):
    """The loadables of a model, and where its other layers run.

    Attributes:
        loadables: the loadables that were written.
        refused: segments that the exporter of their device cannot write.
        notes: remarks on options that were adjusted.
    """

    COMMAND: ClassVar[str] = "export loadables"

    loadables: Sequence[WrittenLoadable]
    refused: Sequence[RefusedSegment]
    notes: Sequence[str] = hidden(())

    @property
    def remarks(self) -> Sequence[str]:
        """What the command prints after the answer: why segments have no loadable, and what is simulated."""
        simulated = [f"Simulated: {self.simulated}."] if self.simulated else []
        return [*(f"No loadable: {one.reason}" for one in self.refused), *simulated]

    def summary_line(self) -> str:
        """Return a one-line summary of the answer."""
        return f"{heading(self)}: {summary_line(self, is_built=True)}"

    def blocks(self, *, verbose: bool = False) -> Iterator[Block]:  # noqa: ARG002  there is no more to show
        """Return the lines and tables that `dryfit export loadables` prints."""
        yield Line(summary_line(self, is_built=True))
        yield Line(heading(self))
        yield from defaults_line(self.assumed, self.overlays)
        rows = [
            (one.file, one.device, len(one.layers), bytes_text(one.size), pools_text(one.pools, with_empty=True))
            for one in self.loadables
        ]
        yield Table("Loadables", ["file", "device", "layers", "size", "memory pools"], rows)
        yield from offloading_blocks(self)


def export_loadables(
    model: Model,
    output: str | os.PathLike[str],
    config: BuilderConfig | None = None,
    *,
    force: bool = False,
    **options: Unpack[Options],
) -> ExportLoadablesAnswer:
    """Write one file for each segment that its device's own runtime can load.

    DLA loadables use dryfit's own format: they run here by emulation and do not load on a board.

    Args:
        model: a path, an ONNX model, a network, or a PyTorch module with `example_inputs`.
        output: folder for the files `NAME.segmentN.loadable`; created if missing.
        config: build settings; None to use the options.
        force: whether to replace loadables of the same model name in the folder.
        options: keyword arguments named like the options of `dryfit export loadables`.

    Raises:
        ConfigError: The options, the config and the model conflict, or the folder already has loadables of this name.
        BuildError: No segment has a loadable, or none of them can be written.
        EngineFileError: A file cannot be written, or an earlier one cannot be removed.
        OnnxImportError: The model is corrupt or has unsupported operators.
        UnknownNameError: A device, platform or option value does not exist.

    Example:
        >>> answer = dryfit.export_loadables("digits.onnx", "loadables", device="DLA", precision="fp16", fallback="GPU")
        >>> [(loadable.file, loadable.layers) for loadable in answer.loadables][2]
        ('loadables/digits.segment4.loadable', ['classifier'])
    """
    subject = asked(model, config, options)
    folder, name = Path(output), Path(subject.name).stem
    earlier = _loadables_in(folder, name)
    if earlier and not force:
        raise ConfigError(
            "The folder already has loadables of a model with this name",
            where=f"--output {folder}",
            found=", ".join(sorted(one.name for one in earlier)),
            remedy="Choose another folder, or give --force",
        )
    built = Builder().build_loadables(subject.network, subject.config)
    return _answer(subject, subject.name, built, _write_folder(folder, name, built.files))


def build_standalone(subject: Asked, builder: Builder, output: Path) -> ExportLoadablesAnswer:
    """Build a standalone loadable and write it to a file.

    Raises:
        BuildError: The build cannot be a single loadable.
        EngineFileError: The file cannot be written.
    """
    built = builder.build_loadables(subject.network, subject.config)
    [(segment, contents)] = built.files.items()
    write_loadable(output, contents, f"file {str(output)!r}")
    return _answer(subject, subject.network.name, built, {segment: output})


def _answer(subject: Asked, name: str, built: Loadables, paths: Mapping[int, Path]) -> ExportLoadablesAnswer:
    placement = placement_of(name, built.plan, built.plan.settings, subject.assumed)
    segments = {one.index: one for one in placement.segments}
    return ExportLoadablesAnswer(
        **placement.placement_fields,
        loadables=[
            WrittenLoadable(**attrs.asdict(segments[index], recurse=False), file=str(path), size=path.stat().st_size)
            for index, path in paths.items()
        ],
        refused=[RefusedSegment(index, str(error)) for index, error in built.refused.items()],
        notes=subject.notes,
    )


# Files ----------------------------------------------------------------------------------------------------------------


def _write_folder(folder: Path, name: str, files: Mapping[int, bytes]) -> dict[int, Path]:
    """Write each file as `NAME.segmentN.loadable` in a folder, created if missing; return path by segment.

    Other files of this name, left by an earlier build, are removed.
    """
    if not files:
        raise BuildError(
            "No segment was exported as a loadable",
            found="no layer runs on a device with loadables",
            remedy="Choose such a device (--device DLA); `dryfit check` shows what keeps layers off it",
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EngineFileError(
            "The folder cannot be created",
            where=str(folder),
            found=error.strerror,
            remedy="Choose a folder that you can write to",
        ) from error
    paths = {index: folder / f"{name}.segment{index}.loadable" for index in files}
    for index, path in paths.items():
        write_loadable(path, files[index], f"file {str(path)!r}")
    for path in _loadables_in(folder, name) - set(paths.values()):
        try:
            path.unlink()
        except OSError as error:
            raise EngineFileError(
                "The file cannot be removed",
                where=str(path),
                found=error.strerror,
                remedy="Remove it yourself, or choose another folder",
            ) from error
    return paths


def _loadables_in(folder: Path, name: str) -> set[Path]:
    """Return the loadables of a model with this name in a folder, which may not exist."""
    pattern = re.compile(re.escape(name) + r"\.segment\d+\.loadable")
    return {path for path in folder.glob("*.loadable") if pattern.fullmatch(path.name)}


def write_loadable(path: Path, contents: bytes, where: str) -> None:
    """Write the file of a loadable; on failure, no partial file is left.

    Args:
        path: the file.
        contents: its bytes.
        where: what names the file in an error.

    Raises:
        EngineFileError: The file cannot be written.
    """
    try:
        write_atomically(path, [contents])
    except OSError as error:
        raise EngineFileError(
            "The loadable cannot be written",
            where=where,
            found=error.strerror,
            remedy="Choose an existing, writable folder with enough free space",
        ) from error
