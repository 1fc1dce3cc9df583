"""trtexec's command line as options and values; what its version rejects or interprets differently is an error."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Collection, Iterator, Sequence

from dryfit.attrs_classes import frozen
from dryfit.board.trtexec_options import OPTION_ALIASES, TRTEXEC_OPTIONS, OptionAnswer, missing_option
from dryfit.board.versions import Version, version_text
from dryfit.errors import ConfigError, UnknownNameError

SHAPE_OPTIONS = ("--minShapes", "--optShapes", "--maxShapes")

_QUOTED_OR_JOINED = re.compile(r"""(?P<quoted>'[^']*'|"(?:[^"\\]|\\.)*"|\\[^\n])|\\\n""", re.DOTALL)
"""What a shell leaves as it is, or a backslash at the end of a line, which joins it to the next one."""


@frozen
class TrtexecArguments:
    """The options of a command line.

    Attributes:
        values: value by option, "" for a switch; several values of one option are joined by commas.
        profiles: shape options and their values, for each optimization profile.
        version: version whose trtexec the command line is for.
    """

    values: dict[str, str]
    profiles: list[dict[str, str]]
    version: Version

    def has(self, option: str) -> bool:
        """Return whether an option is present."""
        return option in self.values

    def text(self, option: str, default: str = "") -> str:
        """Return the value of an option."""
        return self.values.get(option, default)

    def number(self, option: str, default: int) -> int:
        """Return the value of an option as a whole number.

        Raises:
            ConfigError: The value is not a whole number.
        """
        text = self.text(option, str(default))
        if not text.removeprefix("-").isdigit():
            raise ConfigError("The value must be a number", where=option, found=repr(text), remedy=f"Write {option}=N")
        return int(text)

    def decimal(self, option: str, default: float) -> float:
        """Return the value of an option as a number.

        Raises:
            ConfigError: The value is not a finite number.
        """
        return _decimal(self.text(option, str(default)), option)

    def decimals(self, option: str) -> list[float]:
        """Return the entries of a list of numbers.

        Raises:
            ConfigError: An entry is not a finite number.
        """
        return [_decimal(entry, option) for entry in self.listed(option)]

    def listed(self, option: str) -> list[str]:
        """Return the entries of a list separated by commas; empty without the option."""
        return [entry for entry in self.text(option).split(",") if entry]

    def word(self, option: str, default: str, known: Collection[str]) -> str:
        """Return the value of an option that takes one of several words.

        Raises:
            UnknownNameError: The value is not one of them.
        """
        word = self.text(option, default)
        if word not in known:
            raise UnknownNameError("word", word, known, where=option)
        return word


def _decimal(text: str, option: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ConfigError("The value must be a number", where=option, found=repr(text), remedy=f"Write {option}=X")
    return value


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
        if option in place and not TRTEXEC_OPTIONS[option].is_repeatable:
            raise ConfigError(
                "An option must not be repeated: trtexec uses only one of them",
                where=option,
                remedy="Pass the option only once",
            )
        place[option] = f"{place[option]},{value}" if option in place else value
    return TrtexecArguments(values, [one for one in profiles if one], software)


def _options(arguments: Sequence[str], software: Version) -> Iterator[tuple[str, str]]:
    """Return the options by their names, with their values."""
    for argument in arguments:
        given, equals, value = argument.partition("=")
        option = OPTION_ALIASES.get(given, given)
        if option not in TRTEXEC_OPTIONS:
            known = [name for name in (*TRTEXEC_OPTIONS, *OPTION_ALIASES) if not missing_option(name, software)]
            of = f"the {len(known)} options of trtexec {version_text(software)}"
            told = f"{of}; `dryfit exec` without options lists them"
            raise UnknownNameError("option", given, known, where="trtexec", told=told)
        found = TRTEXEC_OPTIONS[option]
        lacking = missing_option(given, software)
        if lacking:
            raise ConfigError(
                f"Unknown option: {lacking}",
                where=given,
                remedy="Leave the option out, or choose a TensorRT version that has it",
            )
        if found.answer is OptionAnswer.REFUSED:
            raise ConfigError(
                f"{given} is not supported", where="trtexec", remedy=f"{found.why[0].upper()}{found.why[1:]}"
            )
        if bool(equals) == found.is_switch and not found.value.startswith("["):
            raise ConfigError(
                "The option takes no value" if equals else "The option takes a value",
                where=given,
                found=argument,
                remedy=f"Write {given}" if equals else f"Write {given}=VALUE",
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
            remedy="Number the profiles 0, 1, 2, ...",
        )
    if profiles[-1]:
        profiles.append({})
