"""Which segments can a device's own runtime load? `dryfit.export_loadables` and `dryfit export loadables`."""

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
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.building import Builder, Loadables
from dryfit.engine.plan import Segment
from dryfit.errors import BuildError, ConfigError, EngineFileError


@attrs.frozen(kw_only=True)
class WrittenLoadable(Segment):
    """A file that was written, and the segment that is in it.

    Attributes:
        file: path of the loadable.
        size: size of the loadable in bytes.
    """

    JSON_NAMES: ClassVar[Mapping[str, str]] = {"file": "file", "size": "bytes", **Segment.JSON_NAMES}

    file: str
    size: Count


@attrs.frozen
class RefusedSegment:
    """A segment of which there is no loadable.

    Attributes:
        segment: index of the segment.
        reason: why it was not exported.
    """

    segment: Count
    reason: str


@attrs.frozen(repr=False, kw_only=True)
class ExportLoadablesAnswer(Placement, Answer):
    """The loadables of a model, and where its other layers run.

    Attributes:
        loadables: the loadables that were written.
        refused: segments that their device's exporter cannot write.
        notes: remarks about options that were adjusted.
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
        """The answer in one line."""
        return f"{heading(self)}: {summary_line(self, is_built=True)}"

    def blocks(self, *, verbose: bool = False) -> Iterator[Block]:  # noqa: ARG002  there is no more to show
        """What `dryfit export loadables` prints."""
        yield Line(summary_line(self, is_built=True))
        yield Line(heading(self))
        yield from defaults_line(self.assumed)
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
    """Write one file for each segment of a model that its device's own runtime would load.

    Those of the DLA are dryfit's own and run here, by emulation; no board takes them.

    Args:
        model: a path, an ONNX model, a network, or a PyTorch module with `example_inputs`.
        output: the folder for the files `NAME.segmentN.loadable`; it is made.
        config: how the model is built; None where options say it.
        force: whether the loadables of a model of this name that the folder has are replaced.
        options: named as the options of `dryfit export loadables`.

    Raises:
        ConfigError: options, config and model do not fit together, or the folder has loadables of this name.
        BuildError: no segment has a loadable, or none of them can be written.
        EngineFileError: a file cannot be written, or an earlier one not be removed.
        OnnxImportError: the model is damaged or has operators that are not supported.
        UnknownNameError: there is no such device, platform or word.

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
    """Build one standalone loadable and write it to a file.

    Raises:
        BuildError: what was asked for cannot be one loadable.
        EngineFileError: the file cannot be written.
    """
    built = builder.build_loadables(subject.network, subject.config)
    [(segment, contents)] = built.files.items()
    _write_file(output, contents)
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
    """Write each file as `NAME.segmentN.loadable` in a folder, which is made; returns segment to path.

    Other such files of this name, which an earlier build left there, are removed.
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
        _write_file(path, files[index])
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
    """The files in a folder, which may not exist, that the loadables of a model of this name would have."""
    pattern = re.compile(re.escape(name) + r"\.segment\d+\.loadable")
    return {path for path in folder.glob("*.loadable") if pattern.fullmatch(path.name)}


def _write_file(path: Path, contents: bytes) -> None:
    """Write a file, whole or not at all."""
    try:
        write_atomically(path, [contents])
    except OSError as error:
        raise EngineFileError(
            "The loadable cannot be written",
            where=f"file {str(path)!r}",
            found=error.strerror,
            remedy="Choose a folder that exists, is writable and has space",
        ) from error
