"""What a log shows about its build: the program and its command line, TensorRT's version, the board and the options."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence

import attrs

from dryfit.attrs_classes import define, frozen
from dryfit.board.logs.prefixes import LogLine

_RUNNING = re.compile(
    r"&&&& (?P<state>RUNNING|PASSED|FAILED|WAIVED) TensorRT\.(?P<program>\S+)"
    r"(?: \[(?:TensorRT v(?P<version>\d+)|dryfit [^\]]+)\])?(?: \[b\d+\])?(?: # (?P<command>.+))?"
)
_VERSION = re.compile(r"(?:^|\b)TensorRT [Vv]ersion:? (?P<version>\d+(?:\.\d+)+)")
_COUNTED = re.compile(
    r"^(?P<label>Selected Device|SMs|Device Global Memory|Compute Capability|Precision|DLACore"
    r"|Model|Safe mode|DirectIO mode|Build DLA standalone loadable|Strongly Typed): ?(?P<value>.*)$"
)
_DLA_CORE = re.compile(r"^Using DLA core (?P<core>\d+)\b|^DLA_?(?P<device>\d)\b", re.IGNORECASE)
_NUMBER = re.compile(r"\d+")

PASSED, FAILED, UNFINISHED = "passed", "failed", "unfinished"


@frozen
class Board:
    """A board that a log's device lines fit.

    Attributes:
        platform: name of the platform.
        words: what the name of the device contains, in lower case.
        multiprocessors: number of streaming multiprocessors ("SMs").
        least_memory: fewest MiB of memory.
    """

    platform: str
    words: str
    multiprocessors: int
    least_memory: int = 0


BOARDS = (
    Board("agx-orin-64", "orin", 16),
    Board("agx-orin-32", "orin", 14),
    Board("orin-nx-16", "orin", 8, 10_000),
    Board("orin-nx-8", "orin", 8),
    Board("orin-nano", "orin", 4),
    Board("agx-xavier", "xavier", 8),
    Board("xavier-nx", "xavier", 6),
)
"""Source: product briefs of the modules (CUDA cores, 128 per multiprocessor on Orin and 64 on Xavier; memory). The
module of 8 GB with 8 multiprocessors is an Orin NX or an Orin Nano; only the first has a DLA."""

_FAMILIES: Mapping[str, str] = {"orin": "agx-orin-64", "xavier": "agx-xavier"}
"""The platform for a device name without a number of multiprocessors."""


@define
class LogSettings:
    """What a log shows about its build; attributes that it does not show are None or empty.

    Attributes:
        program: name of the program, such as `trtexec`.
        command: its command line.
        outcome: `passed`, `failed` or `unfinished`.
        runs: number of programs that the log shows the start of.
        version: TensorRT version, such as `8.5.2`.
        device: name of the selected device.
        multiprocessors: its number of multiprocessors.
        memory: its memory in MiB.
        precisions: allowed computation types besides FP32, in the words of dryfit's options.
        dla_core: DLA core.
        fallback: whether fallback to the GPU is allowed.
        is_standalone: whether the build makes a standalone loadable.
        strongly_typed: whether the network is strongly typed.
        model: path of the model.
    """

    program: str = ""
    command: str = ""
    outcome: str = UNFINISHED
    runs: int = 0
    version: str = ""
    device: str = ""
    multiprocessors: int | None = None
    memory: int | None = None
    precisions: tuple[str, ...] | None = None
    dla_core: int | None = None
    fallback: bool | None = None
    is_standalone: bool = False
    strongly_typed: bool = False
    model: str = ""
    values: dict[str, str] = attrs.field(factory=dict)

    def take(self, line: LogLine) -> bool:
        """Return whether a line shows a setting, and keep the setting."""
        text = line.text
        if text.startswith("&&&& "):
            return self._take_frame(text)
        version = _VERSION.search(text) if "ersion" in text else None
        if version is not None:
            self.version = self.version or version["version"]
            return True
        found = _COUNTED.match(text)
        if found is not None:
            return self._take_value(found["label"], found["value"].strip())
        core = _DLA_CORE.match(text)
        if core is not None:
            self.dla_core = int(core["core"] or core["device"])
            return True
        return False

    def _take_frame(self, text: str) -> bool:
        frame = _RUNNING.search(text)
        if frame is None:
            return False
        if frame["state"] == "RUNNING":
            self.runs += 1
            self.outcome = UNFINISHED
        elif frame["state"] in ("PASSED", "FAILED"):
            self.outcome = PASSED if frame["state"] == "PASSED" else FAILED
        self.program = frame["program"]
        self.version = version_of(frame["version"] or "") or self.version
        if frame["command"]:
            self.command = frame["command"]
            self._take_arguments(_words(frame["command"])[1:])
        return True

    def _take_arguments(self, arguments: Sequence[str]) -> None:
        options = dict(one.lstrip("-").partition("=")[::2] for one in arguments if one.startswith("-"))
        words = [word for word in ("fp16", "int8", "bf16", "fp8") if word in options]
        words = ["fp16", "int8"] if "best" in options else words
        if "useDLACore" in options:
            core = _NUMBER.search(options["useDLACore"])
            self.dla_core = int(core[0]) if core else 0
            self.fallback = "allowGPUFallback" in options
            # trtexec sets FP16 for a DLA without INT8.
            words = words or ["fp16"]
        self.precisions = tuple(words)
        self.is_standalone = "buildDLAStandalone" in options
        self.strongly_typed = "stronglyTyped" in options
        self.model = options.get("onnx", "") or self.model
        self.values = options

    def _take_value(self, label: str, value: str) -> bool:
        number = _NUMBER.search(value)
        match label:
            case "Selected Device":
                self.device = value
            case "SMs" if number:
                self.multiprocessors = int(number[0])
            case "Device Global Memory" if number:
                self.memory = int(number[0])
            case "Precision":
                self._take_precision(value)
            case "DLACore" if number:
                self.dla_core = int(number[0])
                self.fallback = "fallback" in value.lower()
            case "Model" if value:
                self.model = value
            case "Build DLA standalone loadable":
                self.is_standalone = value == "Enabled"
            case "Strongly Typed":
                self.strongly_typed = value == "Enabled"
        return True

    def _take_precision(self, value: str) -> None:
        words = [word for word in ("fp16", "int8", "bf16", "fp8") if word in value.lower()]
        if words and self.precisions is None:
            self.precisions = tuple(words)

    @property
    def platform(self) -> str | None:
        """The platform that the device lines fit; None if they fit none."""
        name = self.device.lower()
        platform, simulated, _ = name.partition(", simulated")
        if simulated:  # a log of `dryfit exec`
            return platform if platform != "default board" else None
        for board in BOARDS:
            fits_memory = self.memory is None or self.memory >= board.least_memory
            if board.words in name and self.multiprocessors == board.multiprocessors and fits_memory:
                return board.platform
        return next((platform for word, platform in _FAMILIES.items() if word in name), None)


def version_of(digits: str) -> str:
    """Return the version that trtexec writes as one number; "" if it is not one.

    Example:
        >>> version_of("8502"), version_of("8612"), version_of("100300")
        ('8.5.2', '8.6.12', '10.3.0')
    """
    if not digits.isdecimal() or len(digits) < 4:
        return ""
    number = int(digits)
    major, rest = divmod(number, 1000 if number < 100_000 else 10_000)
    return f"{major}.{rest // 100}.{rest % 100}"


def _words(command: str) -> list[str]:
    """Split a command line as a shell does; one that was cut off inside a quote, at spaces."""
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()
