"""trtexec's command line as options and values; what its version rejects or interprets differently is an error."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

import attrs

from dryfit.board.trtexec_options import BUILD_OPTIONS, RUN_OPTIONS, missing_option
from dryfit.board.versions import Version
from dryfit.errors import ConfigError, UnknownNameError

SHAPE_OPTIONS = ("--minShapes", "--optShapes", "--maxShapes", "--shapes")
SWITCHES = frozenset(
    {
        *("--skipInference", "--buildOnly", "--fp16", "--int8", "--best", "--bf16", "--fp8", "--int4"),
        *("--stronglyTyped", "--noTF32", "--allowGPUFallback", "--buildDLAStandalone", "--safe", "--restricted"),
        *("--directIO", "--refit", "--stripWeights", "--versionCompatible", "--excludeLeanRuntime"),
        *("--noBuilderCache", "--noCompilationCache", "--errorOnTimingCacheMiss", "--allowWeightStreaming"),
        *("--monitorMemory", "--distributiveIndependence"),
    }
)
"""Options that have no value."""

_QUOTED_OR_JOINED = re.compile(r"""(?P<quoted>'[^']*'|"(?:[^"\\]|\\.)*"|\\[^\n])|\\\n""", re.DOTALL)
"""What a shell leaves as it is, or a backslash at the end of a line, which joins it to the next one."""


@attrs.frozen
class TrtexecArguments:
    """The options of a command line.

    Attributes:
        values: value by option, "" for a switch.
        profiles: shape options and their values, for each optimization profile.
    """

    values: dict[str, str]
    profiles: list[dict[str, str]]

    def has(self, option: str) -> bool:
        """Return whether an option is present."""
        return option in self.values


def arguments_of(text: str) -> list[str]:
    r"""Return the words of a command after the program's name, split as a shell does.

    Raises:
        ConfigError: A quote is not closed, or there are no words.

    Example:
        >>> arguments_of("trtexec \\\n  --onnx='my model.onnx' --fp16")
        ['--onnx=my model.onnx', '--fp16']
    """
    joined = _QUOTED_OR_JOINED.sub(lambda match: match["quoted"] or "", text)
    try:
        words = shlex.split(joined)
    except ValueError as error:
        raise ConfigError(
            "The command line cannot be parsed",
            where="trtexec",
            found=error,
            remedy="Close all quotes; it is split as a shell does",
        ) from error
    if not words:
        raise ConfigError(
            "The command line cannot be parsed",
            where="trtexec",
            found="no word",
            remedy="Begin with the program's name: trtexec --onnx=FILE",
        )
    return words[1:]


def read_arguments(arguments: Sequence[str], software: Version) -> TrtexecArguments:
    """Parse the options of a command line.

    Raises:
        UnknownNameError: An option does not exist.
        ConfigError: The version lacks an option, an option occurs twice, or its value is missing or not allowed.
    """
    values: dict[str, str] = {}
    profiles: list[dict[str, str]] = [{}]
    for option, value in _options(arguments, software):
        if option == "--profile":
            _start_profile(profiles, value)
            continue
        place = profiles[-1] if option in SHAPE_OPTIONS else values
        if option in place:
            raise ConfigError(
                "An option must not be repeated: trtexec uses only one of them",
                where=option,
                remedy="Give the option once",
            )
        place[option] = value
    return TrtexecArguments(values, [one for one in profiles if one])


def _options(arguments: Sequence[str], software: Version) -> Iterator[tuple[str, str]]:
    """Return the options that affect the build, with their values."""
    for argument in arguments:
        option, equals, value = argument.partition("=")
        if option in RUN_OPTIONS:
            continue
        if option not in BUILD_OPTIONS:
            raise UnknownNameError("option", option, BUILD_OPTIONS.keys() | RUN_OPTIONS, where="trtexec")
        lacking = missing_option(option, software)
        if lacking:
            raise ConfigError(
                f"Unknown option: {lacking}",
                where=option,
                remedy="Leave the option out, or choose a TensorRT version that has it",
            )
        if bool(equals) == (option in SWITCHES):
            raise ConfigError(
                "The option takes no value" if equals else "The option takes a value",
                where=option,
                found=argument,
                remedy=f"Write {option}" if equals else f"Write {option}=VALUE",
            )
        yield option, value


def _start_profile(profiles: list[dict[str, str]], value: str) -> None:
    """Continue with the shapes of another profile."""
    index = len(profiles) if profiles[-1] else len(profiles) - 1
    if value != str(index):
        raise ConfigError(
            "Profiles must be numbered in order",
            where="--profile",
            found=value,
            allowed=index,
            remedy="Number the profiles from 0 in steps of 1",
        )
    if profiles[-1]:
        profiles.append({})
