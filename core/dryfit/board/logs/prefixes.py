"""What precedes a message on its line: times, severities and names of loggers, and of the tools that pass lines on.

Seen in public logs: trtexec `[05/10/2024-12:24:42] [W] [TRT] `, TensorRT's Python logger `[TensorRT] WARNING: ` (7) and
`[12/04/2024-11:57:45] [TRT] [W] ` (8 and later), DeepStream `WARNING: [TRT]: `, GStreamer's own lines, jetson-inference
`[TRT]    `, ONNX Runtime `2023-05-04 10:00:00.1 [W:onnxruntime:, file.h:86 log] [2023-05-04 10:00:00 WARNING] `,
Torch-TensorRT `WARNING: [Torch-TensorRT] - `, polygraphy `[W] `, and builds in containers or CI, which add times.
Several threads may write one line, so that times and severities are repeated.
"""

from __future__ import annotations

import re

from dryfit.attrs_classes import frozen

VERBOSE, INFO, WARNING, ERROR, UNSTATED = "verbose", "info", "warning", "error", ""
SEVERITIES = (ERROR, WARNING, INFO, VERBOSE, UNSTATED)
"""The severities, the most severe first; a line of other programs has none."""

_WORDS = {
    **dict.fromkeys(("V", "VERBOSE", "DEBUG", "TRACE", "LOG", "X", "U"), VERBOSE),
    **dict.fromkeys(("I", "INFO"), INFO),
    **dict.fromkeys(("W", "WARNING", "WARN"), WARNING),
    **dict.fromkeys(("E", "ERROR", "F", "FATAL", "INTERNAL_ERROR", "CRITICAL", "!"), ERROR),
}
_LEVEL = "VERBOSE|DEBUG|TRACE|INFO|WARNING|WARN|INTERNAL_ERROR|ERROR|FATAL|CRITICAL"
_TIME = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"
_PREFIX = re.compile(
    rf"""\s*(?:
      \[\d\d/\d\d/\d{{4}}-\d\d:\d\d:\d\d\]                                  # TensorRT
    | \[(?P<letter>[VIWEFXU!])\](?=[\s\[]|$)
    | \[(?:TRT|TensorRT)\]:?
    | \[(?P<ort>[VIWEF]):onnxruntime:[^\]]*\]
    | \[Torch-TensorRT[^\]]*\]\s-
    | \[(?:{_TIME}\s)?(?P<boxed>{_LEVEL})\s*\]
    | \[{_TIME}[^\]]{{0,20}}\]
    | {_TIME}(?=[\s\[])
    | (?P<word>{_LEVEL})\s*:(?!:)(?:[\w.]+:)?
    | \d+:\d\d:\d\d\.\d{{6,9}}\s+\d+\s+0x[0-9a-f]+\s+(?P<gst>{_LEVEL}|\w+)\s+\S+\s+\S+:\d+:\S*
    | NvDsInferContext\[UID\s\d+\]:
    | \#\d+\s\d+\.\d+(?=\s)                                              # docker build
    | [\w-]+[-_]\d+\s+\|(?=\s)                                           # docker compose
    | [A-Z][a-z]{{2}}\s+\d+\s\d\d:\d\d:\d\d\s\S+\s\S+\[\d+\]:              # syslog
    | (?P<glog>[IWEF])\d{{4}}\s\d\d:\d\d:\d\d\.\d+\s+\d+\s\S+:\d+\]          # Triton
    | \[[\w-]+-\d+\](?=\s)                                               # ros2 launch
    | >+(?=\s)                                                           # quoted in a mail or an issue
    | \d\d:\d\d:\d\d(?:[.,]\d+)?(?=\s)
    )""",
    re.VERBOSE,
)


_TRTEXEC = re.compile(r"\[\d\d/\d\d/\d{4}-\d\d:\d\d:\d\d\] \[([VIWEFX])\] (?:\[TRT\] )?(?![\[>\d])")
"""All that precedes a message of trtexec, which most lines of a long log have."""


@frozen
class LogLine:
    """A line of a log, without what precedes its message.

    Attributes:
        number: number of the line, from 1.
        severity: `error`, `warning`, `info` or `verbose`; "" if the line does not state one.
        text: the message.
    """

    number: int
    severity: str
    text: str


def log_line(number: int, text: str) -> LogLine:
    """Split a line.

    Example:
        >>> log_line(7, "[12/04/2024-11:57:45] [TRT] [W] Splitting DLA subgraph")
        LogLine(number=7, severity='warning', text='Splitting DLA subgraph')
    """
    usual = _TRTEXEC.match(text)
    if usual is not None:
        return LogLine(number, _WORDS[usual[1]], text[usual.end() :].strip())
    severity, start = UNSTATED, 0
    while found := _PREFIX.match(text, start):
        word = found["letter"] or found["ort"] or found["boxed"] or found["word"] or found["gst"] or found["glog"]
        if word:
            severity = _WORDS.get(word, severity)
        start = found.end()
    return LogLine(number, severity, text[start:].strip())
