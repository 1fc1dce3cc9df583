"""The files that `dryfit export trtexec` writes, with the check that they match the config."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import attrs

from dryfit.answers.asked import quiet_log
from dryfit.atomic_file import write_atomically
from dryfit.attrs_classes import frozen
from dryfit.board.board_build import BoardBuild, BoardFiles
from dryfit.board.from_config import board_build
from dryfit.board.python_script import comment_text, python_script
from dryfit.board.script_data import parse_script
from dryfit.board.trtexec_arguments import arguments_of
from dryfit.board.trtexec_line import TrtexecLine, lowered_limits, trtexec_line
from dryfit.board.trtexec_parser import parse_trtexec
from dryfit.board.versions import Version
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.errors import ConfigError
from dryfit.network.network import Network
from dryfit.quantization import calibration_cache


@frozen
class BoardFile:
    """A file written for the board.

    Attributes:
        file: path of the file on this machine.
        use: purpose of the file.
    """

    file: str
    use: str


@frozen
class Exports:
    """An export that was verified to match the config.

    Attributes:
        build: the build that the config describes.
        files: paths of the files on the board.
        line: trtexec command line; None if not requested.
        script: text of the Python script; None if not requested.
        notes: settings that trtexec adds, settings that a build lowers, and settings without effect on the board.
            Scripts contain them as comments.
    """

    build: BoardBuild
    files: BoardFiles
    line: TrtexecLine | None
    script: str | None
    notes: tuple[str, ...]

    @classmethod
    def of(
        cls,
        network: Network,
        config: BuilderConfig,
        software: Version,
        files: BoardFiles,
        *,
        with_line: bool,
        with_script: bool,
    ) -> Exports:
        """Export the config, read the result back and compare it with the config.

        Raises:
            ConfigError: TensorRT or trtexec cannot express the config; the message lists all reasons.
            DryfitError: A memory pool limit may have to be lowered, and the network cannot be placed.
        """
        exported = board_build(network, config, software)
        with quiet_log():  # what is lowered is in the notes
            lowered = lowered_limits(network, config)
        build = attrs.evolve(exported.build, pools={**exported.build.pools, **lowered.limits})
        notes = (*exported.notes, *lowered.notes)
        if build.scales is None:
            files = attrs.evolve(files, calibration_cache="")
        line = trtexec_line(build, files, network) if with_line else None
        script = python_script(build, files, notes) if with_script else None
        if line is not None:
            read = parse_trtexec(arguments_of(line.shell_text()), network, software, lambda _: _scales(build))
            _require_same(read, (line.build, files), "command line")
        if script is not None:
            _require_same(parse_script(script, lambda _: _scales(build)), (build, files), "script")
        return cls(build, files, line, script, (*notes, *(line.notes if line is not None else ())))

    def write(self, program: str, *, output: Path | None, script: Path | None) -> list[BoardFile]:
        """Write the files and return each with its purpose.

        Raises:
            ConfigError: A file cannot be written.
        """
        written = []
        cache = self.build.calibration_cache
        for path, text, use in (
            (Path(self.files.calibration_cache), None if cache is None else cache.to_bytes(), "scales, for the board"),
            (output, None if self.line is None else self._shell_script(self.line, program), "trtexec's command line"),
            (script, None if self.script is None else self.script.encode(), "Python script for TensorRT's API"),
        ):
            if path is not None and text is not None:
                _write(path, text, is_program=path in (output, script))
                written.append(BoardFile(str(path), use))
        return written

    def _shell_script(self, line: TrtexecLine, program: str) -> bytes:
        return f"#!/bin/sh\n{comment_text(self.notes)}set -e\n{line.shell_text(program)}\n".encode()


def _scales(build: BoardBuild) -> Mapping[str, float]:
    """Return the scales as the board would read them from the file."""
    cache = build.calibration_cache
    return {} if cache is None else calibration_cache.parse(cache.to_bytes()).scales


def _require_same(read: tuple[BoardBuild, BoardFiles], meant: tuple[BoardBuild, BoardFiles], what: str) -> None:
    """Reject an export that differs from the intended build.

    Raises:
        ConfigError: The builds differ; the message lists the differences.
    """
    told, wanted = (
        {**attrs.asdict(one, recurse=False), **attrs.asdict(two, recurse=False)} for one, two in (read, meant)
    )
    differences = [
        f"{name} {told[name]!r} instead of {value!r}" for name, value in wanted.items() if told[name] != value
    ]
    if differences:
        raise ConfigError(
            f"The {what} does not match the config",
            found="; ".join(differences)[:1000],
            remedy="This is a bug in dryfit; please report it with the model and its options",
        )


def _write(path: Path, text: bytes, *, is_program: bool) -> None:
    try:
        write_atomically(path, [text])
        if is_program:
            path.chmod(path.stat().st_mode | (path.stat().st_mode & 0o444) >> 2)
    except OSError as error:
        raise ConfigError(
            "The file cannot be written",
            where=str(path),
            found=error,
            remedy="Choose an existing, writable folder with enough free space",
        ) from error
