"""Export a build for a board: `dryfit.export_trtexec` and `dryfit export trtexec`. Builds nothing."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar, Unpack

from dryfit.answers.asked import Model, quiet_log
from dryfit.answers.board_exports import BoardFile, Exports
from dryfit.answers.exported_config import board_version, config_for_board, config_of_engine, every_device_stated
from dryfit.answers.json_data import hidden
from dryfit.answers.options import NetworkOptions, Options
from dryfit.answers.text import Answer, Block, Line
from dryfit.attrs_classes import frozen
from dryfit.board.board_build import BoardFiles
from dryfit.board.versions import version_text
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.building import assess
from dryfit.engine.engine import Engine
from dryfit.engine.plan import LayerPlacement
from dryfit.errors import ConfigError
from dryfit.network.network import Network
from dryfit.short_text import printable


@frozen(repr=False)
class ExportTrtexecAnswer(Answer):
    """A build as a trtexec command line or a Python script for a board.

    Attributes:
        model: the exported model or engine.
        tensorrt: TensorRT version that the export targets.
        command: trtexec and its arguments, unquoted; None if only a script was requested.
        shell: the command line, quoted for a shell.
        files: the files that were written.
        notes: defaults that were applied, active overlays, settings that trtexec adds, and settings without effect on
            the board.
        option_notes: remarks on options that were adjusted.
        is_printed: whether to print the command line because no file was requested.
    """

    COMMAND: ClassVar[str] = "export trtexec"

    model: str
    tensorrt: str
    command: Sequence[str] | None
    shell: str | None
    files: Sequence[BoardFile]
    notes: Sequence[str]
    option_notes: Sequence[str] = hidden(())
    _is_printed: bool = True

    @property
    def file_lines(self) -> Sequence[str]:
        """The files with their purpose, one line each."""
        return [f"{one.file}: {one.use}" for one in self.files]

    @property
    def remarks(self) -> Sequence[str]:
        """What the command prints after the answer: files written besides the command line, and the notes."""
        escaped = self._is_printed and self.shell is not None and printable(self.shell) != self.shell
        text = "control characters in names are shown as escapes; --output writes them as they are"
        notes = [*self.notes, *([text] if escaped else [])]
        # A shell can then take what stands on stdout.
        return [*(self.file_lines if self._is_printed else ()), *(f"Note: {note}." for note in notes)]

    def summary_line(self) -> str:
        """Return a one-line summary of the answer."""
        written = ", ".join(one.file for one in self.files)
        return f"{self.model} for TensorRT {self.tensorrt}: {written or self.shell}"

    def blocks(self, *, verbose: bool = False) -> Iterator[Block]:  # noqa: ARG002  there is no more to show
        """Return what `dryfit export trtexec` prints: the command line, or the files that were written."""
        if self._is_printed and self.shell is not None:
            yield Line(self.shell)
        else:
            yield from map(Line, self.file_lines)


def export_trtexec(
    model: Model,
    config: BuilderConfig | None = None,
    *,
    onnx: str | os.PathLike[str] | None = None,
    output: str | os.PathLike[str] | None = None,
    script: str | os.PathLike[str] | None = None,
    scales: str | os.PathLike[str] | None = None,
    every_layer: bool = False,
    tensorrt: str | None = None,
    save_engine: str | None = None,
    timing_cache_file: str | None = None,
    trtexec: str = "trtexec",
    **options: Unpack[Options],
) -> ExportTrtexecAnswer:
    r"""Return the trtexec command line, or a Python script, that builds a model on a board with a given config.

    The output is read back and compared with the config before it is returned. Builds nothing.

    Args:
        model: a path, an ONNX model, a network imported from one, or a PyTorch module with `example_inputs`; with
            `onnx`, the path of an engine file. The export refers to the model by its path, or for a model in memory by
            its name with the suffix `.onnx`.
        config: build settings for the board; None to use the options.
        onnx: path of the ONNX model that the engine was built from.
        output: path of a shell script for the command line.
        script: path of a Python script for the TensorRT API; without `output`, no command line is exported.
        scales: path of the INT8 scales for the board; by default the model's name with the suffix `.trtexec.cache` in
            the current folder.
        every_layer: whether to pin every layer to the device on which it is placed here.
        tensorrt: TensorRT version of the board; None for the version of the devices.
        save_engine: path on the board where the engine is saved.
        timing_cache_file: path of the timing cache on the board.
        trtexec: path of trtexec on the board.
        options: keyword arguments named like the options of `dryfit export trtexec`.

    Raises:
        ConfigError: The options, the config and the model conflict, TensorRT or trtexec cannot express the config, or a
            file cannot be written.
        EngineFileError: The engine is corrupt, or belongs to another version of dryfit.
        OnnxImportError: The model is corrupt or has unsupported operators.
        UnknownNameError: A device, platform or option value does not exist.

    Example:
        >>> print(dryfit.export_trtexec("digits.onnx", device="DLA", precision="fp16", fallback="GPU").shell)
        trtexec \
          --onnx=digits.onnx \
          --saveEngine=digits.engine \
          --fp16 \
          --useDLACore=0 \
          --allowGPUFallback \
          --skipInference
    """
    placed: Sequence[LayerPlacement] = ()
    option_notes: Sequence[str] = ()
    assumed: Sequence[str] = ()
    if onnx is None:
        subject = config_for_board(model, config, options)
        network, described, option_notes = subject.network, subject.config, subject.notes
        assumed = subject.assumed
        name = source = subject.name if isinstance(model, str | os.PathLike) else f"{subject.name}.onnx"
    else:
        if config is not None:
            raise ConfigError(
                "Build options cannot be given for an engine",
                where="config",
                remedy="Leave out the config; an engine holds its own",
            )
        engine = Engine.load(Path(model))
        network, described = config_of_engine(engine, Path(onnx), NetworkOptions.said(options))
        name, source, placed = str(model), str(onnx), engine.plan.layers
    stem = Path(source).stem
    files = BoardFiles(
        source,
        save_engine or f"{stem}.engine",
        f"{stem}.trtexec.cache" if scales is None else str(scales),
        timing_cache_file or "",
    )
    with _devices(network, described, placed, is_stated=every_layer) as notes:
        exports = Exports.of(
            network,
            described,
            board_version(described, tensorrt),
            files,
            with_line=script is None or output is not None,
            with_script=script is not None,
        )
    written = exports.write(
        trtexec, output=None if output is None else Path(output), script=None if script is None else Path(script)
    )
    line = exports.line
    return ExportTrtexecAnswer(
        model=name,
        tensorrt=version_text(exports.build.software),
        command=None if line is None else [trtexec, *line.arguments],
        shell=None if line is None else line.shell_text(trtexec),
        files=written,
        notes=[
            *([f"defaults: {' '.join(assumed)}"] if assumed else []),
            *(f"overlay {label}" for label in described.overlay_labels),
            *notes,
            *exports.notes,
        ],
        option_notes=option_notes,
        is_printed=line is not None and output is None,
    )


@contextlib.contextmanager
def _devices(
    network: Network, config: BuilderConfig, placed: Sequence[LayerPlacement], *, is_stated: bool
) -> Iterator[list[str]]:
    """Temporarily assign each layer the device of `placed` if `is_stated`, else the one that a build chooses."""
    if not is_stated:
        yield []
        return
    if not placed:
        with quiet_log():  # where layers go is in what is written
            placed = assess(network, config).layers
    with every_device_stated(network, config, placed) as notes:
        yield notes
